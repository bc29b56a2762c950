"""A complete analysis: the steps that are done, and those that are skipped with a reason."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, crowd, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import crowdgraph as cg
import crowdgraph.analysis
from crowdgraph.errors import ConvergenceWarning, GoldError, GoldWarning, ParameterError

# The package has a function of the same name.
MODULE = sys.modules["crowdgraph.analysis.analyse"]
ALL = {"dynibcc", "pi_similarity", "task_cooccurrence", "task communities", "pi_similarity over time", "communities"}


def analyse(graph, **options):
    """Analyse with a detector that does not examine its communities, which takes longest."""
    return MODULE.analyse(graph, **{"detector": cg.Leiden(), **options})


def tiny(**options):
    return crowd(**{"n_volunteers": 4, "n_items": 60, "n_responses": 60, **options}).graph


# What is done


def test_every_step_is_done(analysis):
    assert set(analysis.graph.annotations) == ALL
    assert dict(analysis.skipped) == {}
    assert analysis.graph.community_track().counts.tolist() == [320, 640]
    assert analysis.parameters["seed"] == 3
    assert "noise_scale='auto'" in analysis.parameters["model"]
    assert analysis.findings.examined
    assert analysis.predictive.model == "dynibcc"
    assert analysis.predictive.n_replicates == 200
    assert all(seconds >= 0 for seconds in analysis.timings.values())


def test_an_analysis_is_shown_as_text_and_as_a_table(analysis):
    assert repr(analysis).startswith("Analysis in ")
    frame = analysis.to_frame()
    assert frame["step"].tolist() == list(analysis.timings)
    assert (frame["skipped"] == "").all()


def test_an_analysis_cannot_be_changed(analysis):
    assert replace(analysis, notes=["x"]).notes == ("x",)
    with pytest.raises(TypeError):
        analysis.skipped["model"] = "x"


def test_the_graph_stays_as_it_is(analysis, small_crowd):
    assert analysis.graph.annotations
    assert not small_crowd.annotations


def test_the_same_seed_gives_the_same_analysis(analysis, small_crowd):
    again = analyse(small_crowd, model="dynibcc", snapshots=2, seed=3)
    assert np.array_equal(again.graph.item_probs(), analysis.graph.item_probs())
    assert np.array_equal(again.graph.communities().participation, analysis.graph.communities().participation)


def test_a_seed_that_was_drawn_gives_the_same_analysis():
    graph = tiny(gold=0)
    model = cg.GibbsIBCC(chains=2, burn_in=5, max_draws=40)
    first = analyse(graph, model=model, snapshots=0, seed=None)
    again = analyse(graph, model=model, snapshots=0, seed=first.parameters["seed"])
    assert np.array_equal(first.graph.item_probs(), again.graph.item_probs())
    assert not np.array_equal(first.graph.item_probs(), analyse(graph, model=model, snapshots=0).graph.item_probs())


def test_communities_are_numbered_by_their_size_at_the_end(monkeypatch):
    """Of two communities that swapped sizes, and one that ended, the largest at the end is number 0."""
    names = list("abcde")
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": names * 4,
            "item": np.repeat(list("wxyz"), 5),
            "label": ["yes", "no", "no", "yes"] * 5,
            "time": np.arange(20),
        }
    )
    early, late = np.eye(3)[[0, 0, 1, 2, 2]], np.eye(3)[[0, 1, 1, 1, 0]]
    track = cg.CommunityTrack(
        ids=names,
        times=[9, 19],
        counts=[10, 20],
        snapshots=[communities_of(shares, ids=names) for shares in (early, late)],
        clock=graph.responses.clock,
        method="by hand",
        confidence=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]],
        reasons=["", ""],
    )
    monkeypatch.setattr(MODULE, "over_time", lambda *args, **options: track)
    monkeypatch.setattr(MODULE, "MIN_CROWD", 5)
    annotated = analyse(graph, model="ibcc", snapshots=2, min_responses=1).graph
    assert annotated.community_track().sizes.tolist() == [[1, 2, 2], [3, 2, 0]]
    assert annotated.community_track().confidence.tolist() == [[0.2, 0.1, 0.3], [0.5, 0.4, 0.6]]
    assert annotated.communities().participation.tolist() == late[:, [1, 0]].tolist()


# What is skipped


@pytest.mark.parametrize(
    ("graph", "step", "reason"),
    [
        (graph_of(list("abc"), ["x"] * 3, ["yes", "no", "no"]), "pi_similarity", "No volunteer has 10 answers"),
        (graph_of([*"a" * 10, "b", "c"], list("abcdefghijkl"), ["yes", "no"] * 6), "task_cooccurrence", "Only 1 of 3"),
        (graph_of(["a", "b", "c"], ["x", "x", "y"], ["yes"] * 3), "model", "single class 'yes'"),
        (
            graph_of(list("abc") * 10, [f"{n}{k}" for n in range(10) for k in "abc"], ["yes", "no", "no"] * 10),
            "task_cooccurrence",
            "No two of 3 volunteers are linked",
        ),
        (graph_of(["a", "b"], ["x", "y"], ["u", "v"], classes=["no", "yes"]), "model", "which class a label"),
        (graph_of(["a"], ["x"], [None], labels=["no", "yes"], missing="keep"), "model", "no answers"),
        # No setting helps.
        (
            graph_of(["a"] * 12, [f"i{n}" for n in range(12)], ["yes", "no"] * 6),
            "communities",
            "Networks need 2 volunteers or more; the whole crowd is 1.",
        ),
        (
            graph_of(["a", "b"] * 12, [f"i{n // 2}" for n in range(24)], ["yes", "no", "no", "yes"] * 6),
            "communities",
            "2 volunteers are too few for communities: they need 30. Pairs of volunteers are compared instead.",
        ),
    ],
)
def test_what_cannot_be_done_is_skipped_with_a_reason(graph, step, reason):
    skipped = analyse(graph, snapshots=2).skipped
    assert reason in skipped[step]
    assert skipped["communities"] == skipped.get("pi_similarity", skipped["communities"])


@pytest.mark.parametrize("n_volunteers", [3, 29])
def test_small_crowds_have_pairs_instead_of_communities(n_volunteers):
    graph = crowd(n_volunteers=n_volunteers, n_items=60, n_responses=[40] * n_volunteers).graph
    analysis = analyse(graph, snapshots=2)
    assert {"pi_similarity", "task_cooccurrence", "error_correlation"} <= set(analysis.graph.annotations)
    assert list(analysis.skipped) == ["communities"]
    assert analysis.skipped["communities"].startswith(f"{n_volunteers} volunteers are too few for communities")
    few = analyse(graph.annotate(cg.IBCC().fit(graph)), snapshots=0, min_responses=41)
    assert "No volunteer has 41 answers" in few.skipped["communities"]


def test_by_default_classes_are_calibrated_and_nobody_is_followed_who_does_not_change(small_crowd):
    analysis = analyse(small_crowd, snapshots=0)
    fit = analysis.graph.fit("calibrated ibcc")
    assert fit.dependence.source == "gold"
    assert fit.confusion.inference == "static"
    assert any("one confusion matrix for all times" in note for note in analysis.notes)
    assert analysis.calibration.gold == "hidden"


def test_volunteers_who_change_are_followed_with_the_same_classes():
    graph = crowd(0.95, n_volunteers=30, n_items=300, n_responses=[200] * 30, drift="step", gold=0.2).graph
    analysis = analyse(graph, snapshots=0)
    fit = analysis.graph.fit("calibrated ibcc over time")
    assert fit.confusion.inference == "smoothed"
    assert fit.diagnostics["noise_scale"] > 0
    np.testing.assert_allclose(fit.item_probs, cg.Calibrated().fit(graph).item_probs, atol=1e-12)
    assert any("DynIBCC follows them" in note for note in analysis.notes)


def test_an_explicit_prior_reaches_the_model(small_crowd):
    analysis = analyse(small_crowd, confusion_prior=(3, 1), snapshots=0)
    assert "confusion_prior=(3.0, 1.0)" in analysis.parameters["model"]
    matrix = np.array([[3.0, 1.0], [1.0, 3.0]])
    assert "((3.0, 1.0), (1.0, 3.0))" in analyse(small_crowd, confusion_prior=matrix, snapshots=0).parameters["model"]
    with pytest.raises(GoldError, match="there are none"):
        analyse(small_crowd.with_gold(None), confusion_prior="gold", snapshots=0)
    with pytest.raises(ParameterError, match="'majority_vote' has no prior"):
        analyse(small_crowd, model="majority_vote", confusion_prior=(3, 1))


def test_without_times_ibcc_is_used_and_nothing_is_followed(small_crowd):
    columns = {name: small_crowd.to_arrow()[name] for name in ("volunteer", "item", "label")}
    analysis = analyse(cg.CrowdGraph.from_responses(columns, gold=small_crowd.gold), model="dynibcc")
    assert "calibrated ibcc" in analysis.graph.annotations
    assert "no times" in analysis.skipped["communities over time"]
    assert any("IBCC is used instead" in note for note in analysis.notes)
    assert len(analysis.graph.communities()) >= 1


def test_without_confusion_matrices_only_tasks_have_communities(small_crowd):
    analysis = analyse(small_crowd, model=cg.MajorityVote(), snapshots=2)
    assert "no confusion matrices" in analysis.skipped["pi_similarity"]
    assert analysis.skipped["communities"] == analysis.skipped["pi_similarity"]
    assert "task communities" in analysis.graph.annotations
    # Steps that were skipped took time as well.
    reasons = dict(zip(*analysis.to_frame()[["step", "skipped"]].to_numpy().T, strict=True))
    assert reasons["pi_similarity"] == analysis.skipped["pi_similarity"]
    assert reasons["task communities"] == ""
    assert f"skipped pi_similarity, communities: {analysis.skipped['communities']}" in repr(analysis)


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_small_crowds_never_fail(n_volunteers, n_items, n_labels, snapshots, timed):
    rng = np.random.default_rng(n_volunteers + 10 * n_items)
    n = 3 * n_volunteers
    columns = {
        "volunteer": np.arange(n) % n_volunteers,
        "item": rng.integers(0, n_items, n),
        "label": rng.integers(0, n_labels, n),
        "time": np.arange(n),
    }
    if not timed:
        del columns["time"]
    analysis = analyse(cg.CrowdGraph.from_responses(columns), snapshots=snapshots, min_responses=1)
    always = {"diagnosis", "model", "skill over time", "calibration", "changes", "predictive checks"}
    always |= {"communities over time", "what next"}
    assert set(analysis.skipped) | always >= set(analysis.timings) - ALL


# Who changed


def test_links_by_shared_items_can_be_validated():
    options = {"model": "majority_vote", "detector": cg.Leiden(), "snapshots": 0}
    planted = crowd(n_volunteers=40, n_items=200, n_responses=2_400, n_communities=2, mixing=0.05).graph
    analysis = cg.analysis.analyse(planted, validate=0.01, **options)
    network = analysis.graph.network("task_cooccurrence")
    assert network.p_values.data.max() <= 0.01
    assert analysis.parameters["validate"] == 0.01
    structureless = crowd(n_volunteers=40, n_items=200, n_responses=2_400).graph
    skipped = cg.analysis.analyse(structureless, validate=0.01, **options).skipped
    assert skipped["task_cooccurrence"] == "No two of 40 volunteers are linked by more items than chance explains."


def test_changes_are_those_of_the_fit():
    graph = tiny(n_responses=[150] * 12, n_items=250, drift="step", drifting=0.3, n_volunteers=12)
    analysis = analyse(graph, model="ibcc", snapshots=0)
    assert "changes" in analysis.timings
    assert analysis.changes.n_tested == 12
    assert analysis.changes.to_frame().equals(cg.IBCC().fit(graph).changes().to_frame())


def test_changes_need_times(columns):
    del columns["time"]
    analysis = analyse(cg.CrowdGraph.from_responses(columns), snapshots=0)
    assert analysis.changes is None
    assert analysis.skipped["changes"] == "There are no times; name the column that has them."


# What is noted


def test_large_data_take_short_cuts(small_crowd, monkeypatch):
    monkeypatch.setattr(MODULE, "LARGE_GRAPH", 100)
    analysis = analyse(small_crowd, snapshots=2)
    assert any("fitted from the one before" in note for note in analysis.notes)
    assert any("the model was checked on those about" in note for note in analysis.notes)
    assert analysis.predictive.n_replicates >= 100


def test_a_fit_of_some_items_says_the_same_of_them(small_crowd):
    fit = cg.IBCC().fit(small_crowd)
    part, few = MODULE._of_items(small_crowd, fit, np.array([1, 4, 7]))
    few.check_matches(part)
    for item in part.items.ids:
        assert few.predict()[item] == fit.predict()[item]
    for volunteer in part.volunteers.ids:
        assert_array_equal(few.confusion.of(volunteer).mean, fit.confusion.of(volunteer).mean)


def test_warnings_become_notes():
    analysis = analyse(tiny(duplicates=0.3), model="ibcc", snapshots=0)
    assert any("repeat a volunteer and item" in note for note in analysis.notes)


class Complaining(cg.MajorityVote):
    """A model that warns of all kinds."""

    def fit(self, graph, **options):
        for number in range(3):
            warnings.warn(f"not settled after {number}", ConvergenceWarning, stacklevel=1)
        warnings.warn("gold for nobody", GoldWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return super().fit(graph, **options)


def test_warnings_of_one_kind_are_one_note_and_those_of_others_are_passed_on():
    with pytest.warns(DeprecationWarning, match="old"):
        analysis = analyse(tiny(gold=0), model=Complaining(), snapshots=0)
    assert list(analysis.notes) == ["not settled after 0 (And 2 more like this.)", "gold for nobody"]


class Broken(cg.MajorityVote):
    """A model with a bug."""

    def fit(self, graph, **options):
        raise ZeroDivisionError


def test_errors_that_are_bugs_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        analyse(tiny(), model=Broken())
