"""What is right about every result: numbers are finite, probabilities sum to one, weights are symmetric."""

import dataclasses
from functools import singledispatch

import numpy as np
from scipy.sparse import issparse

import crowdgraph as cg
from crowdgraph.allocation import Assignment

# How far sums of probabilities may be from one, and how far a bound may fall, relative to itself.
MAX_ROUNDING = {"float64": 1e-9, "float32": 1e-6}


@singledispatch
def check(result):
    """Raise `AssertionError` if a result holds what cannot be right; of most kinds, nothing is known."""


@check.register
def _(fit: cg.ModelFit):
    rounding = MAX_ROUNDING[fit.diagnostics.get("dtype", "float64")]
    check_shares(fit.item_probs, "class probabilities", rounding)
    check_shares(fit.class_probs, "class proportions", rounding)
    falls = -np.diff(fit.bound)
    assert (falls <= rounding * (1 + np.abs(fit.bound[1:]))).all(), f"the bound falls by {falls.max():g}"
    check(fit.confusion)


@check.register
def _(track: cg.ConfusionTrack):
    for name, values in (("steps", track.concentration), ("end", track.latest().concentration)):
        check_finite(values, f"concentration at the {name}")
        assert (values >= 0).all(), f"concentrations at the {name} are negative"
    check_shares(track.latest().mean, "confusion matrices")


@check.register
def _(network: cg.VolunteerNetwork):
    weights = network.weights.toarray() if issparse(network.weights) else network.weights
    check_finite(weights, "weights")
    assert (weights >= 0).all(), "weights are negative"
    assert (weights == weights.T).all(), "weights are not symmetric"
    assert not weights.diagonal().any(), "somebody is linked with themselves"


@check.register
def _(communities: cg.Communities):
    linked = communities.assignment >= 0
    check_shares(communities.participation[linked], "participations")
    assert not communities.participation[~linked].any(), "somebody of no community takes part in one"
    assert (np.diff(communities.sizes) <= 0).all(), "communities are not ordered by size"
    check_finite(communities.modularity, "modularity")


@check.register
def _(track: cg.CommunityTrack):
    for snapshot in track.snapshots:
        linked = snapshot.assignment >= 0
        check_shares(snapshot.participation[linked], "participations")


@check.register
def _(track: cg.NetworkTrack):
    for network in track.snapshots:
        check(network)


@check.register
def _(assignment: Assignment):
    for field in dataclasses.fields(assignment):
        values = getattr(assignment, field.name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            check_finite(values, field.name)


@check.register(list)
def _(results):
    for result in results:
        check(result)


def check_finite(values, name):
    assert np.isfinite(values).all(), f"{name} are not finite"


def check_shares(values, name, rounding=MAX_ROUNDING["float64"]):
    """Check that the last axis holds shares of one."""
    check_finite(values, name)
    assert (values >= 0).all(), f"{name} are negative"
    assert np.allclose(values.sum(axis=-1), 1, rtol=0, atol=rounding), f"{name} do not sum to one"
