"""Volunteers of whom so little is known that the prior speaks for them."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, percent
from crowdgraph.models.priors import USUAL

__all__ = ["find_prior"]

# Worth a note: from this share of the volunteers, or of the answers, if they come from such volunteers.
MANY = 0.25


def find_prior(graph: CrowdGraph) -> list[Finding]:
    """Volunteers with fewer answers than the usual prior of the models weighs."""
    # Repeated answers as well: the models count them.
    given = graph.responses.label >= 0
    n_given = np.bincount(graph.responses.volunteer[given], minlength=len(graph.volunteers))
    right, wrong = USUAL
    weight = len(graph.classes) * (right + wrong * (len(graph.labels) - 1))
    ruled = np.flatnonzero((n_given > 0) & (n_given < weight))
    if not len(ruled):
        return []
    n_active = int(np.count_nonzero(n_given))
    on_gold = graph.gold.known[graph.responses.item[given]].any()
    learned = "confusion_prior='gold'" if on_gold else "learn_prior=True"
    share, of_answers = len(ruled) / n_active, float(n_given[ruled].sum() / n_given.sum())
    finding = Finding(
        topic="prior",
        name="ruled by the prior",
        severity="note" if max(share, of_answers) >= MANY else "info",
        what=(
            f"{len(ruled):,} of {counted(n_active, 'volunteer')} ({percent(share)}), with {percent(of_answers)} of the "
            f"answers, gave fewer than {weight:g}: less than the usual prior of IBCC weighs."
        ),
        why="Their confusion matrices say more about the prior than about them.",
        advice=(
            "Look at intervals, not at means; leave them out of networks with min_responses=...; choose the prior with "
            f"care, or learn it with IBCC({learned})."
        ),
        ids=graph.volunteers.ids[ruled],
        evidence={"answers": n_given[ruled]},
        numbers={"volunteers": len(ruled), "share": share, "share_of_answers": of_answers, "prior_weight": weight},
    )
    return [finding]
