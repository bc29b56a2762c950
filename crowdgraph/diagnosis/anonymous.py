"""Ids that are no person's: visitors who did not log in, addresses, and words that stand for nobody."""

from __future__ import annotations

import re
from ipaddress import ip_address

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_anonymous"]

# One id for whoever has none.
NOBODY = re.compile(r"\s*|[-_.?]+|-1|anonymous|anon|guest|unknown|nobody|none|null|nan|n/a|not[-_ ]?logged[-_ ]?in")
# An id for each visit: Zooniverse's, words with a number after them, and addresses of which the end is hidden.
VISIT = re.compile(
    r"not[-_ ]?logged[-_ ]?in[-_: ].+|(anonymous|anon|guest|visitor)([-_: #]?\d+|[-_: #][0-9a-f]{4,64})"
    r"|(\d{1,3}\.){3}x{1,3}"
)
# From this share of all responses, an id that many may share is a warning, and visitors are worth a note.
MUCH = 0.01


def find_anonymous(graph: CrowdGraph) -> list[Finding]:
    """Volunteers whose ids look like nobody's or like a visitor's."""
    texts = [str(volunteer).lower() for volunteer in graph.volunteers.ids.tolist()]
    nobody = np.array([code for code, text in enumerate(texts) if NOBODY.fullmatch(text)], dtype=np.int64)
    visitors = np.array([code for code, text in enumerate(texts) if _is_visit(text)], dtype=np.int64)
    found = [_shared(graph, nobody)] if len(nobody) else []
    return found + ([_visitors(graph, visitors)] if len(visitors) else [])


def _is_visit(text: str) -> bool:
    """Whether an id is made from a visit or is an address of the internet."""
    if VISIT.fullmatch(text):
        return True
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _shared(graph: CrowdGraph, codes: Array) -> Finding:
    n_given = graph.volunteers.n_responses
    share = _share(n_given, codes)
    shown = [repr(volunteer) for volunteer in graph.volunteers.ids[codes].tolist()]
    return Finding(
        topic="anonymous",
        name="shared id",
        severity="warning" if share >= MUCH else "note",
        what=(
            f"{counted(len(codes), 'id')} ({named(shown)}) stand{'s' * (len(codes) == 1)} for nobody in particular, "
            f"with {percent(share)} of the responses."
        ),
        why="Many people under one id are judged as one volunteer, whose skill is nobody's.",
        advice="Give each visit an id of its own, by session or address, or leave these responses out.",
        ids=graph.volunteers.ids[codes],
        evidence={"responses": n_given[codes]},
        numbers={"volunteers": len(codes), "share": share},
    )


def _visitors(graph: CrowdGraph, codes: Array) -> Finding:
    n_given = graph.volunteers.n_responses
    share = _share(n_given, codes)
    return Finding(
        topic="anonymous",
        name="visitors",
        severity="note" if share >= MUCH else "info",
        what=(
            f"{len(codes):,} of {counted(len(n_given), 'volunteer')} ({named(graph.volunteers.ids[codes])}) look like "
            f"visits without a login, with {percent(share)} of the responses."
        ),
        why="One person may come back under other ids, and several may share an address; little is known of each.",
        advice="Keep their answers for the items. Leave them out where volunteers are compared or followed over time.",
        ids=graph.volunteers.ids[codes],
        evidence={"responses": n_given[codes]},
        numbers={"volunteers": len(codes), "share": share},
    )


def _share(n_given: Array, codes: Array) -> float:
    return float(n_given[codes].sum() / max(n_given.sum(), 1))
