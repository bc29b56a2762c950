"""The confusion under which responses were given, and their surprise, against loops over single responses."""

from dataclasses import replace

import builders
import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.core.response_annotations import fit_with_confusion, response_confusion, response_surprise
from crowdgraph.errors import AlignmentError, NotAnnotatedError


def fit_of(graph, *, dynamic, seed=0):
    """Build a fit with random probabilities; the states of a dynamic track have a step for each response."""
    rng = np.random.default_rng(seed)
    shape = (len(graph.classes), len(graph.labels))
    common = {"ids": graph.volunteers.ids, "classes": graph.classes, "labels": graph.labels}
    order, starts = graph.responses.by_volunteer
    if dynamic:
        track = cg.ConfusionTrack(
            starts=starts,
            times=graph.responses.time[order],
            concentration=rng.random((len(order), *shape)) + 0.1,
            initial=np.ones(shape),
            clock=graph.responses.clock,
            **common,
        )
    else:
        track = cg.ConfusionTrack.static(concentration=rng.random((len(graph.volunteers), *shape)) + 0.1, **common)
    return cg.ModelFit(
        model="random",
        items=graph.items.ids,
        classes=graph.classes,
        item_probs=rng.dirichlet(np.ones(shape[0]), len(graph.items)),
        class_probs=np.full(shape[0], 1 / shape[0]),
        confusion=track,
    )


@pytest.fixture
def graph():
    rng = np.random.default_rng(1)
    labels = [None if one == 3 else int(one) for one in rng.integers(0, 4, 60)]
    volunteers, items = rng.integers(0, 5, 60).tolist(), rng.integers(0, 9, 60).tolist()
    return builders.graph_of(volunteers, items, labels, missing="keep", classes=["a", "b"])


@pytest.mark.parametrize("dynamic", [False, True])
def test_each_response_has_the_matrix_of_its_own_step(graph, dynamic):
    fit = fit_of(graph, dynamic=dynamic)
    confusion, surprise = response_confusion(graph, fit.confusion), response_surprise(graph, fit)
    seen = dict.fromkeys(graph.volunteers, 0)
    for row, response in enumerate(graph.responses):
        history = fit.confusion.of(response.volunteer)
        expected = history.mean[seen[response.volunteer]] if dynamic else history.latest().mean
        seen[response.volunteer] += 1
        np.testing.assert_allclose(confusion[row], expected, rtol=1e-14)
        if response.label is None:
            assert np.isnan(surprise[row])
        else:
            column = expected[:, graph.labels.index(response.label)]
            chance = sum(fit.item_probs[graph.responses.item[row]] * column)
            assert surprise[row] == pytest.approx(-np.log(chance), rel=1e-12)
    assert not confusion.flags.writeable
    assert not surprise.flags.writeable


def test_the_state_at_the_time_of_a_response_is_that_of_the_history():
    crowd = cg.simulate.crowd(n_volunteers=5, n_items=30, n_responses=100, seed=0).graph
    track = cg.DynIBCC(confusion_prior=(4, 1)).fit(crowd).confusion
    confusion = response_confusion(crowd, track)
    for row, response in enumerate(crowd.responses):
        np.testing.assert_allclose(confusion[row], track.of(response.volunteer).at(response.time).mean)


def test_the_latest_fit_with_confusion_counts(graph):
    fit = fit_of(graph, dynamic=False)
    assert fit_with_confusion(graph) is None
    voted = graph.annotate(fit).annotate(replace(fit, model="vote", confusion=None))
    assert fit_with_confusion(voted) is fit
    # Confusion alone, annotated later, has no class probabilities that a surprise could rest on.
    other = voted.annotate(fit_of(graph, dynamic=False, seed=1).confusion)
    assert fit_with_confusion(other) is None
    data = next(iter(other.edges(data=True)))[2]
    assert "surprise" not in data
    np.testing.assert_array_equal(data["confusion"], response_confusion(graph, other.confusion())[0])


def test_errors(graph):
    other = builders.graph_of(["z"], ["x"], [1])
    with pytest.raises(AlignmentError, match="another graph"):
        response_confusion(other, fit_of(graph, dynamic=True).confusion)
    with pytest.raises(NotAnnotatedError, match="'random' has no confusion"):
        response_surprise(graph, replace(fit_of(graph, dynamic=False), confusion=None))
    with pytest.raises(AlignmentError, match="60 steps, the graph 10 responses"):
        response_surprise(graph.first(10), fit_of(graph, dynamic=True))
