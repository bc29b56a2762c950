"""Volunteers of whom so little is known that the prior speaks for them."""

from __future__ import annotations

import re
from ipaddress import ip_address

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.findings import Finding
from crowdgraph.models._priors import DEFAULT_PSEUDO_COUNTS

__all__ = ["find_activity", "find_anonymous", "find_parts", "find_prior"]

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
            f"the most active tenth ({quantity(n_top, 'volunteer')}) gave {percent(top)} of all."
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
            f"{len(once):,} of {quantity(n_active, 'volunteer')} ({percent(share)}) gave a single answer; "
            f"together they "
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
            f"{quantity(len(much), 'volunteer')} ({join_names(graph.volunteers.ids[much])}) gave "
            f"{percent(float(shares[much].sum()))} of all answers."
        ),
        why="What the crowd says is then mostly what they say, and their errors are not made up for by others.",
        advice="Compare with and without them: fit.influence(volunteer=...). Ask others about the same items.",
        ids=graph.volunteers.ids[much],
        evidence={"answers": n_given[much], "share": shares[much]},
        numbers={"volunteers": len(much), "share": float(shares[much].sum())},
    )
    return [finding]


# One id for whoever has none.
NOBODY = re.compile(r"\s*|[-_.?]+|-1|anonymous|anon|guest|unknown|nobody|none|null|nan|n/a|not[-_ ]?logged[-_ ]?in")
# An id for each visit: Zooniverse's, words with a number after them, and addresses of which the end is hidden.
VISIT = re.compile(
    r"not[-_ ]?logged[-_ ]?in[-_: ].+|(anonymous|anon|guest|visitor)([-_: #]?\d+|[-_: #][0-9a-f]{4,64})"
    r"|(\d{1,3}\.){3}x{1,3}"
)
# From this share of all responses, an id that many may share is a warning, and visitors are worth a note.
ANONYMOUS_WARNING_SHARE = 0.01


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
        severity="warning" if share >= ANONYMOUS_WARNING_SHARE else "note",
        what=(
            f"{quantity(len(codes), 'id')} ({join_names(shown)}) stand{'s' * (len(codes) == 1)} for nobody in "
            f"particular, "
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
        severity="note" if share >= ANONYMOUS_WARNING_SHARE else "info",
        what=(
            f"{len(codes):,} of {quantity(len(n_given), 'volunteer')} "
            f"({join_names(graph.volunteers.ids[codes])}) look like "
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


# From this share of all answers outside the largest part, the parts are a warning.
PARTS_WARNING_SHARE = 0.05


def find_parts(graph: CrowdGraph) -> list[Finding]:
    """Volunteers who share no items with the others, not even through third ones."""
    answered = graph.responses.label >= 0
    volunteer, item = graph.responses.volunteer[answered], graph.responses.item[answered]
    if not len(item):
        return []
    part_of_volunteer, part_of_item = _parts(graph, volunteer, item)
    n_answers = np.bincount(part_of_volunteer[volunteer])
    if np.count_nonzero(n_answers) == 1:
        return []
    main = int(n_answers.argmax())
    active = np.bincount(volunteer, minlength=len(graph.volunteers)) > 0
    outside = np.flatnonzero(active & (part_of_volunteer != main))
    sizes = np.bincount(part_of_volunteer[outside], minlength=len(n_answers))
    order = np.argsort(-sizes[part_of_volunteer[outside]], kind="stable")
    tied = _tied_by_gold(graph, part_of_item, np.flatnonzero(n_answers))
    return [_parts_finding(graph, outside[order], part_of_volunteer, n_answers, tied=tied)]


def _parts(graph: CrowdGraph, volunteer: Array, item: Array) -> tuple[Array, Array]:
    """The number of the part to which each volunteer and each item belongs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_volunteers, n = len(graph.volunteers), len(graph.volunteers) + len(graph.items)
    links = coo_array((np.ones(len(item), dtype=np.int8), (volunteer, item + n_volunteers)), shape=(n, n))
    part = connected_components(links.tocsr(), directed=False)[1]
    return part[:n_volunteers], part[n_volunteers:]


def _tied_by_gold(graph: CrowdGraph, part_of_item: Array, parts: Array) -> bool:
    """Whether every part has gold of every class, to which all volunteers can be compared."""
    known = np.flatnonzero(graph.gold.codes >= 0)
    n_classes = len(graph.classes)
    cells = part_of_item[known].astype(np.int64) * n_classes + graph.gold.codes[known]
    n_parts = int(max(part_of_item.max(), parts.max())) + 1
    counts = np.bincount(cells, minlength=n_parts * n_classes).reshape(n_parts, n_classes)
    return bool((counts[parts] > 0).all())


def _parts_finding(graph: CrowdGraph, outside: Array, part: Array, n_answers: Array, *, tied: bool) -> Finding:
    n_parts = int(np.count_nonzero(n_answers))
    share = float(1 - n_answers.max() / n_answers.sum())
    people = quantity(len(outside), "volunteer")
    gold = " Each part has gold of every class, which ties them together." if tied else ""
    return Finding(
        topic="parts",
        name="disconnected parts",
        severity="warning" if share >= PARTS_WARNING_SHARE and not tied else "note",
        what=(
            f"The crowd falls into {quantity(n_parts, 'part')} that share no items; {people} with {percent(share)} of "
            f"the answers {'lies' if len(outside) == 1 else 'lie'} outside the largest.{gold}"
        ),
        why="Skills can be compared only through items that both answered; between parts the prior decides.",
        advice="Ask some volunteers of each part about items of the others, add gold to each, or analyse them apart.",
        ids=graph.volunteers.ids[outside],
        evidence={"part": np.unique(part[outside], return_inverse=True)[1].ravel()},
        numbers={"parts": n_parts, "volunteers": len(outside), "share": share},
    )


# Worth a note: from this share of the volunteers, or of the answers, if they come from such volunteers.
MANY = 0.25


def find_prior(graph: CrowdGraph) -> list[Finding]:
    """Volunteers with fewer answers than the usual prior of the models weighs."""
    # Repeated answers as well: the models count them.
    given = graph.responses.label >= 0
    n_given = np.bincount(graph.responses.volunteer[given], minlength=len(graph.volunteers))
    right, wrong = DEFAULT_PSEUDO_COUNTS
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
            f"{len(ruled):,} of {quantity(n_active, 'volunteer')} ({percent(share)}), with "
            f"{percent(of_answers)} of the "
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
