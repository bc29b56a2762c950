"""Fits of models: checked on construction, readable afterwards."""

import crowdgraph as cg

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
