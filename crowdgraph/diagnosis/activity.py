"""How the work is shared: heavy tails, one-timers, and volunteers who give very much of it."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_activity"]

# Worth a note: from this share of volunteers who answered once, or of answers that come from one volunteer.
MANY_ONCE, VERY_MUCH = 0.3, 0.25
# Among fewer volunteers than this, everybody gives much of the work.
FEW = 8


def find_activity(graph: CrowdGraph) -> list[Finding]:
    """Who gives how much."""
    answered = graph.responses.volunteer[graph.responses.label >= 0]
    n_given = np.bincount(answered, minlength=len(graph.volunteers))
    active = n_given[n_given > 0]
    if not len(active):
        return []
    return [_spread(active), *_once(graph, n_given), *_very_active(graph, n_given)]


def _spread(active: Array) -> Finding:
    n_top = max(1, round(len(active) / 10))
    top = float(np.sort(active)[-n_top:].sum() / active.sum())
    return Finding(
        topic="activity",
        name="activity",
        severity="info",
        what=(
            f"Volunteers gave a median of {np.median(active):,g} answers, from {active.min():,} to {active.max():,}; "
            f"the most active tenth ({counted(n_top, 'volunteer')}) gave {percent(top)} of all."
        ),
        numbers={
            "median": float(np.median(active)),
            "least": int(active.min()),
            "most": int(active.max()),
            "share_of_top_tenth": top,
        },
    )


def _once(graph: CrowdGraph, n_given: Array) -> list[Finding]:
    once = np.flatnonzero(n_given == 1)
    n_active = int(np.count_nonzero(n_given))
    share = len(once) / n_active
    if share < MANY_ONCE or n_active < FEW:
        return []
    finding = Finding(
        topic="activity",
        name="one-timers",
        severity="note",
        what=(
            f"{len(once):,} of {counted(n_active, 'volunteer')} ({percent(share)}) gave a single answer; together they "
            f"gave {percent(len(once) / n_given.sum())} of the answers."
        ),
        why="One answer tells hardly anything about its volunteer, and nothing about how they change.",
        advice="Keep their answers; read statements about volunteers and groups as statements about those who stayed.",
        ids=graph.volunteers.ids[once],
        numbers={"volunteers": len(once), "share": share},
    )
    return [finding]


def _very_active(graph: CrowdGraph, n_given: Array) -> list[Finding]:
    shares = n_given / n_given.sum()
    much = np.flatnonzero(shares >= VERY_MUCH)
    if not len(much) or np.count_nonzero(n_given) < FEW:
        return []
    much = much[np.argsort(-shares[much], kind="stable")]
    finding = Finding(
        topic="activity",
        name="very active volunteers",
        severity="note",
        what=(
            f"{counted(len(much), 'volunteer')} ({named(graph.volunteers.ids[much])}) gave "
            f"{percent(float(shares[much].sum()))} of all answers."
        ),
        why="What the crowd says is then mostly what they say, and their errors are not made up for by others.",
        advice="Compare with and without them: fit.influence(volunteer=...). Ask others about the same items.",
        ids=graph.volunteers.ids[much],
        evidence={"answers": n_given[much], "share": shares[much]},
        numbers={"volunteers": len(much), "share": float(shares[much].sum())},
    )
    return [finding]
