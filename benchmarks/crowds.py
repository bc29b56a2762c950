"""Simulate crowds for benchmarks, with heavy-tailed activity and volunteers who know the class more or less often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import crowdgraph as cg
from crowdgraph.core.clock import Clock
from crowdgraph.core.tables import NodeTable, ResponseTable


class Size(NamedTuple):
    n_items: int
    n_volunteers: int
    n_responses: int
    n_classes: int
    n_labels: int


SIZES = {
    "a": Size(963, 1_705, 26_558, 2, 3),
    "b": Size(100_000, 10_000, 1_000_000, 4, 4),
    "c": Size(1_000_000, 50_000, 10_000_000, 3, 3),
}
# The share of items whose class a volunteer knows follows a Beta distribution; on others they guess.
SKILLS = {"good": (4.0, 3.0), "poor": (2.0, 4.0)}


def crowd(size: Size, *, skill: str = "good", seed: int = 0) -> cg.CrowdGraph:
    """Return a crowd without gold, in which the r-th volunteer's activity is proportional to 1/r, in random order."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, size.n_volunteers + 1)
    rank = rng.choice(size.n_volunteers, size.n_responses, p=weights / weights.sum())
    volunteer = rng.permutation(size.n_volunteers).astype(np.int32)[rank]
    item = rng.integers(0, size.n_items, size.n_responses).astype(np.int32)
    truth = rng.integers(0, size.n_classes, size.n_items)
    knows = rng.random(size.n_responses) < rng.beta(*SKILLS[skill], size.n_volunteers)[volunteer]
    guess = rng.integers(0, size.n_labels, size.n_responses)
    label = np.where(knows, truth[item], guess).astype(np.int16)
    return cg.CrowdGraph(
        NodeTable("volunteer", np.arange(size.n_volunteers)),
        NodeTable("item", np.arange(size.n_items)),
        ResponseTable(volunteer, item, label, np.arange(size.n_responses), Clock("order")),
        classes=tuple(range(size.n_classes)),
        labels=tuple(range(size.n_labels)),
    )
