"""What an analysis decides by itself: models by name, the votes of labels, and how many answers are enough."""

import pytest
from builders import crowd, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import MODELS, analyse, guess_votes, named_model
from crowdgraph.analysis.defaults import activity_threshold
from crowdgraph.errors import ParameterError


def test_models_are_known_by_name(small_crowd):
    assert all(model.name == name for name, model in MODELS.items())
    assert named_model("mean_score", graph=small_crowd) == cg.MeanScore()
    with pytest.raises(ParameterError, match="Did you mean 'dynibcc'"):
        named_model("dynibc")


def test_votes_are_guessed_from_gold():
    """Of ten answers to each class: likely 8 and 2, unsure 1 and 1, unlikely 1 and 7."""
    labels = ["likely"] * 8 + ["unsure", "unlikely"] + ["likely"] * 2 + ["unsure"] + ["unlikely"] * 7
    graph = graph_of([f"v{n}" for n in range(20)], ["x"] * 10 + ["y"] * 10, labels, gold={"x": "yes", "y": "no"})
    assert guess_votes(graph) == {"likely": "yes", "unlikely": "no", "unsure": None}
    assert named_model("ibcc", graph=graph).votes["likely"] == "yes"
    assert named_model("cautious", graph=graph).model.votes["likely"] == "yes"
    guessed = analyse(graph)
    assert any("likely for yes, unlikely for no, unsure for none" in note for note in guessed.notes)
    assert any("by 20 answers to 2 gold items" in note for note in guessed.notes)
    stated = analyse(graph, votes={"likely": "no", "unlikely": "yes", "unsure": None})
    assert not any("vote so" in note for note in stated.notes)
    assert "'likely': 'no'" in stated.parameters["model"]


def test_labels_that_gold_does_not_explain_leave_the_prior_to_gold():
    graph = graph_of(list("abcd"), list("xyxy"), ["u", "u", "w", "w"], gold={"x": "yes", "y": "no"})
    assert guess_votes(graph) is None
    assert named_model("ibcc", graph=graph).confusion_prior == "gold"
    assert named_model("cautious", graph=graph).model.confusion_prior == "gold"
    assert "model" not in analyse(graph).skipped


def test_votes_reach_the_model_inside_the_cautious_model():
    graph = crowd(n_volunteers=32, n_items=40, n_responses=640, labels=("u", "v")).graph
    votes = {"u": "no", "v": "yes"}
    analysis = analyse(graph, model="cautious", votes=votes, detector=cg.Leiden(), snapshots=2)
    assert analysis.skipped == {}
    assert analysis.graph.fit().params["votes"] == votes
    expected = cg.Cautious(model=cg.IBCC(votes=votes)).fit(graph).item_probs
    assert analysis.graph.item_probs() == pytest.approx(expected, rel=1e-5, abs=1e-8)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 12))
def test_the_fewest_answers_that_leave_few_enough_volunteers(counts, least, most):
    volunteers, items = zip(*[(k, item) for k, n in enumerate(counts) for item in range(n)], strict=True)
    graph = graph_of(volunteers, items, [k % 2 for k in volunteers])
    threshold = activity_threshold(graph, min_responses=least, max_volunteers=most)
    assert threshold >= least
    assert sum(n >= threshold for n in counts) <= most
    # No lower threshold would do.
    assert threshold == least or sum(n >= threshold - 1 for n in counts) > most


def test_networks_of_large_crowds_are_of_the_most_active():
    graph = crowd(n_volunteers=30, n_responses=900).graph
    analysis = analyse(graph, model="ibcc", detector=cg.Leiden(), snapshots=0, max_volunteers=8)
    network = analysis.graph.network("pi_similarity")
    assert 3 <= len(network) <= 8
    assert (graph.volunteers.n_responses >= network.params["min_responses"]).sum() == len(network)
    assert any("most active" in note for note in analysis.notes)
