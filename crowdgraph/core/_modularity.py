"""Modularity of hard and soft communities, from weights and participations."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array


def modularity_of(weights: Any, strength: Array, shares: Array) -> float:
    """Return the soft modularity of participations, (V, K), in weights, (V, V); 0 without weights."""
    total = float(strength.sum())
    if total == 0:
        return 0.0
    inside = float((shares * (weights @ shares)).sum()) / total
    return inside - float(((strength @ shares / total) ** 2).sum())


def hard_modularity_of(weights: Any, strength: Array, assignment: Array) -> float:
    """Return the modularity of an assignment, (V,), in which those of no community (-1) are communities of one."""
    total = float(strength.sum())
    loners = strength[assignment < 0]
    alone = float(((loners / total) ** 2).sum()) if total else 0.0
    return modularity_of(weights, strength, one_hot(assignment)) - alone


def one_hot(assignment: Array) -> Array:
    """Return an assignment, (V,), as participations, (V, K); zero for those of no community (-1)."""
    shares = np.zeros((len(assignment), int(assignment.max(initial=-1)) + 1))
    member = np.flatnonzero(assignment >= 0)
    shares[member, assignment[member]] = 1
    return shares
