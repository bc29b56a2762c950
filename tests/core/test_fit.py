"""Fits of models: checked on construction, readable afterwards."""

from dataclasses import replace

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ResultError

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
