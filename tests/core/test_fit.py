"""Fits of models: checked on construction, readable afterwards."""

from dataclasses import replace

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import NotAnnotatedError, ResultError

FIT = {
    "model": "m",
    "items": ["x", "y"],
    "classes": ("a", "b"),
    "item_probs": [[0.4, 0.6], [1, 0]],
    "class_probs": [0.5, 0.5],
}


def test_a_fit_predicts():
    fit = cg.ModelFit(**FIT, bound=[-3.0, -2.5], n_iter=2, converged=False)
    assert fit.predict() == {"x": "b", "y": "a"}
    assert repr(fit) == "ModelFit(m: 2 items, not converged after 2 iterations, bound -2.5000)"
    frame = fit.to_frame()
    assert frame["class"].tolist() == ["b", "a"]
    assert frame["p(b)"].tolist() == [0.6, 0]


def test_a_fit_with_confusion_but_no_prior_cannot_become_one(fit):
    assert fit.confusion is not None
    with pytest.raises(NotAnnotatedError, match="no posterior that could become a prior"):
        fit.as_prior()


def test_a_volunteers_response_is_predicted_at_a_moment(fit):
    """Of the made-up fit: from the prior before the first response, from the last step after the last."""
    history = fit.confusion.of("anna")
    for at, mean in ((0, history.at(0).mean), (2, history.at(2).mean), (None, history.latest().mean)):
        expected = fit.item_probs[0] @ mean
        assert list(fit.predict_response("anna", "x", at=at).values()) == pytest.approx(expected)
    assert history.at(0).mean.tolist() != history.at(2).mean.tolist() != history.latest().mean.tolist()


def test_a_prior_describes_itself():
    prior = CrowdPrior(
        ids=["a", "b", "c"],
        confusion=np.array([1.0, 2.0, 9.0])[:, None, None] * np.ones((3, 2, 2)),
        shared=np.full((2, 2), 3.0),
        class_concentration=[1, 1],
        classes=["no", "yes"],
        labels=["no", "yes"],
    )
    assert repr(prior) == "CrowdPrior(3 volunteers, median weight of a row 4.0)"
    nobody = replace(prior, ids=[], confusion=np.zeros((0, 2, 2)))
    assert repr(nobody) == "CrowdPrior(0 volunteers, median weight of a row 6.0)"
    assert nobody.of("a").tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_a_state_of_other_items_is_refused():
    graph = cg.simulate.crowd(n_volunteers=5, n_items=20, n_responses=60, seed=0).graph
    fit = cg.IBCC().fit(graph)
    with pytest.raises(ResultError, match="The state is of 20 items; expected 1"):
        replace(fit, items=fit.items[:1], item_probs=fit.item_probs[:1])
