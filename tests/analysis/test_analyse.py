"""The whole analysis: what it makes, what it decides, and what it skips with a reason."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import MODELS, guess_votes, named_model
from crowdgraph.analysis import analyse as whole_analysis
from crowdgraph.analysis.analyse import _last, _renumbered
from crowdgraph.analysis.defaults import activity_threshold
from crowdgraph.errors import ParameterError

ALL = {"dynibcc", "pi_similarity", "task_cooccurrence", "task communities", "pi_similarity over time", "communities"}


def crowd(**options):
    sizes = {"n_volunteers": 25, "n_items": 60, "n_responses": 800, "seed": 0}
    return cg.simulate.crowd(**{**sizes, **options}).graph


def analyse(graph, **options):
    """An analysis with a detector that does not examine what it finds, which would take most of the time."""
    return whole_analysis(graph, **{"detector": cg.Leiden(), **options})


def table(volunteers, items, labels, **options):
    return cg.CrowdGraph.from_responses({"volunteer": volunteers, "item": items, "label": labels}, **options)


def without_times(graph):
    frame = {name: graph.to_arrow()[name] for name in ("volunteer", "item", "label")}
    return cg.CrowdGraph.from_responses(frame, gold=graph.gold)


@pytest.fixture(scope="module")
def analysis():
    return analyse(crowd(), snapshots=2, seed=3)


def test_every_step_is_done(analysis):
    assert set(analysis.graph.annotations) == ALL
    assert dict(analysis.skipped) == {}
    assert len(analysis.graph.community_track()) == 2
    assert analysis.graph.community_track().counts.tolist() == [400, 800]
    assert analysis.parameters["seed"] == 3
    assert "noise_scale='auto'" in analysis.parameters["model"]
    assert analysis.findings.examined
    assert all(seconds >= 0 for seconds in analysis.timings.values())


def test_the_story_and_the_frame(analysis):
    assert repr(analysis).startswith("Analysis in ")
    frame = analysis.to_frame()
    assert frame["step"].tolist() == list(analysis.timings)
    assert (frame["skipped"] == "").all()


def test_the_same_seed_gives_the_same_analysis(analysis):
    again = analyse(crowd(), snapshots=2, seed=3)
    assert np.array_equal(again.graph.item_probs(), analysis.graph.item_probs())
    assert np.array_equal(again.graph.communities().participation, analysis.graph.communities().participation)


def test_a_drawn_seed_repeats():
    graph = crowd(n_volunteers=4, n_responses=60, gold=0)
    model = cg.GibbsIBCC(chains=2, burn_in=5, max_draws=40)
    first = analyse(graph, model=model, snapshots=0, seed=None)
    again = analyse(graph, model=model, snapshots=0, seed=first.parameters["seed"])
    assert np.array_equal(first.graph.item_probs(), again.graph.item_probs())
    assert not np.array_equal(first.graph.item_probs(), analyse(graph, model=model, snapshots=0).graph.item_probs())


def test_the_graph_stays_as_it_is():
    graph = crowd(n_volunteers=4, n_responses=60)
    analyse(graph, model="ibcc", snapshots=0)
    assert not graph.annotations


def test_the_last_communities_have_the_numbers_of_the_track():
    """Two communities that swapped sizes, and one that ended: the largest at the end is number 0."""
    names = list("abcde")
    made = {"ids": names, "method": "by hand", "modularity": 0.1}
    early = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=float)
    late = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=float)
    track = cg.CommunityTrack(
        ids=names,
        times=[1, 2],
        counts=[10, 20],
        snapshots=[cg.Communities(participation=shares, **made) for shares in (early, late)],
        clock=cg.Clock("number"),
        method="by hand",
        confidence=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]],
    )
    numbered = _renumbered(track)
    assert numbered.sizes.tolist() == [[1, 2, 2], [3, 2, 0]]
    assert numbered.confidence.tolist() == [[0.2, 0.1, 0.3], [0.5, 0.4, 0.6]]
    assert _last(numbered).participation.tolist() == late[:, [1, 0]].tolist()


def test_without_times_ibcc_is_used_and_nothing_is_followed():
    found = analyse(without_times(crowd()))
    assert "ibcc" in found.graph.annotations
    assert "no times" in found.skipped["communities over time"]
    assert any("IBCC is used instead" in note for note in found.notes)
    assert len(found.graph.communities()) >= 1


def test_a_model_of_ones_own():
    found = analyse(crowd(n_volunteers=4, n_responses=100), model=cg.MajorityVote(), snapshots=2)
    assert "no confusion matrices" in found.skipped["pi_similarity"]
    assert found.skipped["communities"] == found.skipped["pi_similarity"]
    assert "task communities" in found.graph.annotations


@pytest.mark.parametrize(
    ("graph", "step", "reason"),
    [
        (table(list("abc"), ["x"] * 3, ["yes", "no", "no"]), "pi_similarity", "No volunteer has 10 answers"),
        (table([*"a" * 10, "b", "c"], list("abcdefghijkl"), ["yes", "no"] * 6), "task_cooccurrence", "Only 1 of 3"),
        (table(["a", "b", "c"], ["x", "x", "y"], ["yes"] * 3), "model", "single class 'yes'"),
        (
            table(list("abc") * 10, [f"{n}{k}" for n in range(10) for k in "abc"], ["yes", "no", "no"] * 10),
            "task_cooccurrence",
            "No two of 3 volunteers are linked",
        ),
        (table(["a", "b"], ["x", "y"], ["u", "v"], classes=["no", "yes"]), "model", "which class a label"),
    ],
)
def test_what_cannot_be_done_is_skipped_with_a_reason(graph, step, reason):
    assert reason in analyse(graph, snapshots=2).skipped[step]


def test_nobody_answered():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["a"], "item": ["x"], "label": [None]}, labels=["no", "yes"], missing="keep"
    )
    assert "no answers" in analyse(graph).skipped["model"]


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
    graph = cg.CrowdGraph.from_responses(columns)
    found = analyse(graph, snapshots=snapshots, min_responses=1)
    always = {"diagnosis", "model", "calibration", "communities over time"}
    assert set(found.skipped) | always >= set(found.timings) - ALL


def test_large_crowds_are_of_the_most_active():
    graph = crowd(n_volunteers=30, n_responses=900)
    found = analyse(graph, model="ibcc", snapshots=0, max_volunteers=8)
    counts = np.sort(graph.volunteers.n_responses)[::-1]
    chosen = len(found.graph.network("pi_similarity"))
    assert 3 <= chosen <= 8
    least = found.graph.network("pi_similarity").params["min_responses"]
    assert (counts >= least).sum() == chosen
    assert any("most active" in note for note in found.notes)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 12))
def test_fewest_answers(counts, least, most):
    rows = [(volunteer, item) for volunteer, n in enumerate(counts) for item in range(n)]
    graph = table([row[0] for row in rows], [row[1] for row in rows], [row[0] % 2 for row in rows])
    bar = activity_threshold(graph, min_responses=least, max_volunteers=most)
    assert bar >= least
    assert sum(n >= bar for n in counts) <= most
    # No lower bar would do.
    assert bar == least or sum(n >= bar - 1 for n in counts) > most


def test_large_data_take_short_cuts(monkeypatch):
    monkeypatch.setattr(sys.modules["crowdgraph.analysis.analyse"], "LARGE_GRAPH", 100)
    found = analyse(crowd(), snapshots=2)
    assert any("fitted from the one before" in note for note in found.notes)


def test_warnings_become_notes():
    graph = crowd(n_volunteers=4, duplicates=0.3, n_responses=100)
    found = analyse(graph, model="ibcc", snapshots=0)
    assert any("repeat a volunteer and item" in note for note in found.notes)


def test_votes_are_guessed_from_gold():
    """Of ten answers to each class: likely 8 and 2, unsure 1 and 1, unlikely 1 and 7."""
    said = ["likely"] * 8 + ["unsure", "unlikely"] + ["likely"] * 2 + ["unsure"] + ["unlikely"] * 7
    graph = table([f"v{n}" for n in range(20)], ["x"] * 10 + ["y"] * 10, said, gold={"x": "yes", "y": "no"})
    assert guess_votes(graph) == {"likely": "yes", "unlikely": "no", "unsure": None}
    assert named_model("ibcc", graph=graph).votes["likely"] == "yes"
    assert named_model("cautious", graph=graph).model.votes["likely"] == "yes"
    found = analyse(graph)
    assert any("likely for yes, unlikely for no, unsure for none" in note for note in found.notes)
    assert any("by 20 answers to 2 gold items" in note for note in found.notes)
    given = analyse(graph, votes={"likely": "no", "unlikely": "yes", "unsure": None})
    assert not any("vote so" in note for note in given.notes)
    assert "'likely': 'no'" in given.parameters["model"]


def test_labels_that_tell_nothing_leave_the_prior_to_gold():
    graph = table(list("abcd"), list("xyxy"), ["u", "u", "w", "w"], gold={"x": "yes", "y": "no"})
    assert guess_votes(graph) is None
    assert named_model("ibcc", graph=graph).confusion_prior == "gold"
    assert named_model("cautious", graph=graph).model.confusion_prior == "gold"
    assert "model" not in analyse(graph).skipped


def test_models_by_name():
    assert all(model.name == name for name, model in MODELS.items())
    assert named_model("mean_score", graph=crowd(n_volunteers=2, n_responses=10)) == cg.MeanScore()
    with pytest.raises(ParameterError, match="Did you mean 'dynibcc'"):
        named_model("dynibc")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 5}, "name of one, such as 'ibcc'"),
        ({"detector": "leiden"}, "detector= takes a detector"),
        ({"model": "nix"}, "is not a choice"),
        ({"votes": {"no": "no"}}, "votes= misses 'yes'"),
        ({"snapshots": -1}, "snapshots=-1"),
        ({"min_responses": 0}, "min_responses=0"),
        ({"max_volunteers": 2}, "max_volunteers=2"),
        ({"seed": "x"}, "seed='x'"),
        ({"progress": 1}, "progress=1"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ParameterError, match=message):
        analyse(crowd(n_volunteers=2, n_responses=10), **options)


def test_not_a_graph():
    with pytest.raises(ParameterError, match="An analysis is of a CrowdGraph; got a list"):
        analyse([])


def test_an_analysis_cannot_be_changed(analysis):
    assert replace(analysis, notes=["x"]).notes == ("x",)
    with pytest.raises(TypeError):
        analysis.skipped["model"] = "x"


def test_the_cautious_model_by_name():
    """Votes reach the model inside of it, and every step is done with it."""
    graph = crowd(labels=("u", "v"))
    votes = {"u": "no", "v": "yes"}
    found = analyse(graph, model="cautious", votes=votes, snapshots=2)
    assert found.skipped == {}
    expected = cg.Cautious(model=cg.IBCC(votes=votes)).fit(graph).item_probs
    assert np.allclose(found.graph.item_probs(), expected)
    assert found.graph.fit().params["votes"] == votes


def test_fewer_than_three_volunteers_have_no_communities():
    """No setting helps."""
    found = analyse(table(["a"] * 12, [f"i{n}" for n in range(12)], ["yes", "no"] * 6))
    assert found.skipped["pi_similarity"] == "Communities need 3 volunteers or more; the whole crowd is 1."
    assert found.skipped["communities"] == found.skipped["pi_similarity"]
    tiny = analyse(table(["a", "b"], ["x", "x"], ["yes", "no"])).skipped["pi_similarity"]
    assert tiny == "Communities need 3 volunteers or more; the whole crowd is 2."
