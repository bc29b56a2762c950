"""Fits that a graph carries already: which of them are analysed instead of fitting a model."""

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.analysis import analyse
from crowdgraph.analysis.finished import choose_fit
from crowdgraph.errors import ParameterError

QUICK = {"snapshots": 0, "min_responses": 200}
# Settings that are nobody's defaults, by which the fit is known again.
OTHER = {"max_iter": 700}


@pytest.fixture(scope="module")
def graph():
    return cg.simulate.crowd(n_volunteers=12, n_items=60, n_responses=300, gold=0.3, seed=0).graph


@pytest.mark.parametrize("model", [cg.IBCC(**OTHER), cg.DynIBCC(**OTHER), cg.DawidSkene(**OTHER)], ids=repr)
def test_a_finished_fit_is_analysed_as_if_it_had_just_been_made(graph, model, tmp_path):
    graph.annotate(model.fit(graph)).save(tmp_path / "project.crowd")
    loaded = cg.load(tmp_path / "project.crowd")
    ours = analyse(loaded, fit=loaded.fit(), **QUICK)
    whole = cg.Calibrated(model=model) if isinstance(model, cg.IBCC) else model
    theirs = analyse(graph, model=whole, **QUICK)
    assert ours.graph.fit().params == {**loaded.fit().params, **OTHER}
    assert ours.graph.fit().model == theirs.graph.fit().model
    np.testing.assert_allclose(ours.graph.fit().item_probs, theirs.graph.fit().item_probs, rtol=1e-12)
    assert ours.parameters == theirs.parameters
    assert ours.plan.to_frame(kind="arrow").equals(theirs.plan.to_frame(kind="arrow"))


def test_a_fit_by_its_own_name_is_not_calibrated(graph):
    fit = cg.IBCC(**OTHER).fit(graph)
    analysis = analyse(graph, fit=fit, model="ibcc", **QUICK)
    assert analysis.graph.fit().model == "ibcc"
    assert np.array_equal(analysis.graph.fit().item_probs, fit.item_probs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fit": 3}, "fit= takes a fit of ibcc, dynibcc, dawid_skene; got an int"),
        ({"fit": cg.MajorityVote()}, "got a fit of 'majority_vote'"),
        ({"model": "dynibcc"}, "model='dynibcc' is not the model of fit=, which is 'ibcc'"),
        ({"model": cg.IBCC()}, "to whose settings model= adds nothing"),
        ({"confusion_prior": (4, 1)}, "to whose settings confusion_prior= adds nothing"),
    ],
)
def test_what_is_not_the_fit(graph, options, message):
    fit = options.get("fit", cg.IBCC())
    options = {**options, "fit": fit.fit(graph) if hasattr(fit, "fit") else fit}
    with pytest.raises(ParameterError, match=message):
        analyse(graph, **options, **QUICK)


def test_a_fit_of_another_graph_is_skipped_with_the_reason(graph):
    other = cg.simulate.crowd(n_volunteers=5, n_items=20, n_responses=60, seed=1).graph
    assert "items" in analyse(graph, fit=cg.IBCC().fit(other), **QUICK).skipped["model"]


IBCC, VOTES = cg.IBCC(confusion_prior=(4, 1)), {"no": "no", "yes": "yes"}


@pytest.mark.parametrize(
    ("model", "options", "chosen", "note"),
    [
        (IBCC, {}, "calibrated", "No model is fitted: the fit of ibcc that comes with the responses is analysed"),
        (IBCC, {"model": "ibcc"}, "ibcc", "No model is fitted"),
        (IBCC, {"model": "calibrated", "confusion_prior": (4, 1)}, "calibrated", "No model is fitted"),
        (cg.IBCC(votes=VOTES), {"votes": VOTES}, "calibrated", "No model is fitted"),
        (cg.DawidSkene(), {}, "dawid_skene", "No model is fitted: the fit of dawid_skene"),
        (IBCC, {"model": "dynibcc"}, None, "fitted anew: it is of ibcc, and dynibcc was asked for. Leave that out"),
        (
            IBCC,
            {"confusion_prior": "gold"},
            None,
            "it was made with confusion_prior=(4.0, 1.0), and 'gold' was asked for",
        ),
        (IBCC, {"votes": VOTES}, None, "it was made with votes=None, and"),
        (cg.DawidSkene(), {"confusion_prior": "gold"}, None, "dawid_skene, which has no confusion_prior"),
        (cg.MajorityVote(), {}, None, "it is of majority_vote, and only fits of ibcc, dynibcc, dawid_skene are"),
    ],
)
def test_the_fit_that_comes_with_responses(graph, model, options, chosen, note):
    choice = choose_fit(graph.annotate(model.fit(graph)), **options)
    assert note in choice.note
    assert (choice.fit is not None) == (chosen is not None)
    assert choice.model == (chosen or options.get("model", "calibrated"))


def test_a_graph_without_a_fit_needs_no_note(graph):
    assert choose_fit(graph) == (None, "calibrated", None)
