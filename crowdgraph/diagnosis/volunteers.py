"""Checks of volunteers: how the work is shared, ids that are nobody's, separate parts, and volunteers hardly known."""

from __future__ import annotations

import re
from ipaddress import ip_address

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.findings import Finding, FindingType, reports
from crowdgraph.kernels.crowd_prior import MAX_ACCURACY_WEIGHT
from crowdgraph.messages import Hint

__all__ = ["check_activity", "check_anonymous", "check_hardly_known", "check_parts"]

# Activity

# Worth a note: from this share of volunteers who answered once, or of answers that come from one volunteer.
ONE_TIMER_SHARE, VERY_ACTIVE_SHARE = 0.3, 0.25
# Among fewer volunteers than this, everybody gives a large share of the answers.
MIN_ACTIVE_VOLUNTEERS = 8

ACTIVITY = FindingType(topic="activity", name="activity", severity="info")
ONE_TIMERS = FindingType(
    topic="activity",
    name="one-timers",
    severity="note",
    why="One answer says hardly anything about its volunteer, and nothing about how they change.",
    advice="Keep their answers; read statements about volunteers and groups as statements about those who stayed.",
)
VERY_ACTIVE = FindingType(
    topic="activity",
    name="very active volunteers",
    severity="note",
    why="What the crowd says is then mostly what they say, and their errors are not made up for by others.",
    advice=Hint(
        "Compare with and without them: fit.influence(volunteer=...). Ask others about the same items.",
        cli="Compare with and without them. Ask others about the same items.",
    ),
)


@reports(ACTIVITY, ONE_TIMERS, VERY_ACTIVE)
def check_activity(graph: CrowdGraph) -> list[Finding]:
    """Report how the work is shared: one-timers, and volunteers who give a large share of the answers."""
    n_answers = graph.answers.n_by_volunteer
    active = n_answers[n_answers > 0]
    if not len(active):
        return []
    return [_activity(active), *_one_timers(graph, n_answers), *_very_active(graph, n_answers)]


def _activity(n_answers: Array) -> Finding:
    n_top = max(1, round(len(n_answers) / 10))
    top = float(np.sort(n_answers)[-n_top:].sum() / n_answers.sum())
    least, median, most = int(n_answers.min()), float(np.median(n_answers)), int(n_answers.max())
    if least == most:
        how_many = f"{quantity(most, 'answer')} each"
    else:
        how_many = f"a median of {median:,g} answer{'s' * (median != 1)}, from {least:,} to {most:,}"
    return ACTIVITY.finding(
        f"Volunteers gave {how_many}; the most active tenth ({quantity(n_top, 'volunteer')}) gave {percent(top)} of "
        "all.",
        numbers={
            "median": float(np.median(n_answers)),
            "least": int(n_answers.min()),
            "most": int(n_answers.max()),
            "share_of_top_tenth": top,
        },
    )


def _one_timers(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    codes = np.flatnonzero(n_answers == 1)
    n_active = int(np.count_nonzero(n_answers))
    share = len(codes) / n_active
    if share < ONE_TIMER_SHARE or n_active < MIN_ACTIVE_VOLUNTEERS:
        return []
    finding = ONE_TIMERS.finding(
        f"{len(codes):,} of {quantity(n_active, 'volunteer')} ({percent(share)}) gave a single answer; together they "
        f"gave {percent(len(codes) / n_answers.sum())} of the answers.",
        ids=graph.volunteers.ids[codes],
        numbers={"volunteers": len(codes), "share": share},
    )
    return [finding]


def _very_active(graph: CrowdGraph, n_answers: Array) -> list[Finding]:
    shares = n_answers / n_answers.sum()
    codes = np.flatnonzero(shares >= VERY_ACTIVE_SHARE)
    if not len(codes) or np.count_nonzero(n_answers) < MIN_ACTIVE_VOLUNTEERS:
        return []
    codes = codes[np.argsort(-shares[codes], kind="stable")]
    ids, share = graph.volunteers.ids[codes], float(shares[codes].sum())
    finding = VERY_ACTIVE.finding(
        f"{quantity(len(codes), 'volunteer')} ({join_names(ids)}) gave {percent(share)} of all answers.",
        ids=ids,
        evidence={"answers": n_answers[codes], "share": shares[codes]},
        numbers={"volunteers": len(codes), "share": share},
    )
    return [finding]


# Anonymous volunteers

# One id for whoever has none.
NOBODY = re.compile(r"\s*|[-_.?]+|-1|anonymous|anon|guest|unknown|nobody|none|null|nan|n/a|not[-_ ]?logged[-_ ]?in")
# An id for each visit: Zooniverse's, words with a number after them, and addresses of which the end is hidden.
VISIT = re.compile(
    r"not[-_ ]?logged[-_ ]?in[-_: ].+|(anonymous|anon|guest|visitor)([-_: #]?\d+|[-_: #][0-9a-f]{4,64})"
    r"|(\d{1,3}\.){3}x{1,3}"
)
# From this share of all responses on, an id that many may share is a warning, and visitors are worth a note.
ANONYMOUS_SHARE = 0.01

SHARED_ID = FindingType(
    topic="anonymous",
    name="shared id",
    severity="note",
    why="Many people under one id are judged as one volunteer, whose skill is nobody's.",
    advice="Give each visit an id of its own, by session or address, or leave these responses out.",
)
VISITORS = FindingType(
    topic="anonymous",
    name="visitors",
    severity="info",
    why="One person may come back under other ids, and several may share an address; little is known of each.",
    advice="Keep their answers for the items. Leave them out where volunteers are compared or followed over time.",
)


@reports(SHARED_ID, VISITORS)
def check_anonymous(graph: CrowdGraph) -> list[Finding]:
    """Find volunteers whose ids look like nobody's or like a visitor's."""
    texts = [str(volunteer).lower() for volunteer in graph.volunteers.ids.tolist()]
    nobody = np.array([code for code, text in enumerate(texts) if NOBODY.fullmatch(text)], dtype=np.int64)
    visitors = np.array([code for code, text in enumerate(texts) if _is_visit(text)], dtype=np.int64)
    return [
        *([_shared_id(graph, nobody)] if len(nobody) else []),
        *([_visitors(graph, visitors)] if len(visitors) else []),
    ]


def _is_visit(text: str) -> bool:
    """Return whether an id names a visit or is an internet address."""
    if VISIT.fullmatch(text):
        return True
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _shared_id(graph: CrowdGraph, codes: Array) -> Finding:
    n_responses = graph.volunteers.n_responses
    share = _share(n_responses, codes)
    names = [repr(volunteer) for volunteer in graph.volunteers.ids[codes].tolist()]
    return SHARED_ID.finding(
        f"{quantity(len(codes), 'id')} ({join_names(names)}) stand{'s' * (len(codes) == 1)} for nobody in particular, "
        f"with {percent(share)} of the responses.",
        severity="warning" if share >= ANONYMOUS_SHARE else "note",
        ids=graph.volunteers.ids[codes],
        evidence={"responses": n_responses[codes]},
        numbers={"volunteers": len(codes), "share": share},
    )


def _visitors(graph: CrowdGraph, codes: Array) -> Finding:
    n_responses = graph.volunteers.n_responses
    share = _share(n_responses, codes)
    return VISITORS.finding(
        f"{len(codes):,} of {quantity(len(n_responses), 'volunteer')} ({join_names(graph.volunteers.ids[codes])}) "
        f"look{'s' * (len(codes) == 1)} like visits without a login, with {percent(share)} of the responses.",
        severity="note" if share >= ANONYMOUS_SHARE else "info",
        ids=graph.volunteers.ids[codes],
        evidence={"responses": n_responses[codes]},
        numbers={"volunteers": len(codes), "share": share},
    )


def _share(n_responses: Array, codes: Array) -> float:
    return float(n_responses[codes].sum() / max(n_responses.sum(), 1))


# Disconnected parts

# From this share of all answers outside the largest part on, the parts are a warning.
OUTSIDE_SHARE = 0.05

DISCONNECTED_PARTS = FindingType(
    topic="parts",
    name="disconnected parts",
    severity="note",
    why="Skills can be compared only through items that both answered; between parts nothing shows who is better.",
    advice="Ask some volunteers of each part about items of the others, add gold to each, or analyse them apart.",
)


@reports(DISCONNECTED_PARTS)
def check_parts(graph: CrowdGraph) -> list[Finding]:
    """Find volunteers who share no items with the others, not even through third ones."""
    if not len(graph.answers):
        return []
    part_of_volunteer, part_of_item = _connected_parts(graph)
    n_answers = np.bincount(part_of_volunteer[graph.answers.volunteer])
    n_parts = int(np.count_nonzero(n_answers))
    if n_parts == 1:
        return []
    outside = np.flatnonzero((graph.answers.n_by_volunteer > 0) & (part_of_volunteer != int(n_answers.argmax())))
    sizes = np.bincount(part_of_volunteer[outside], minlength=len(n_answers))
    outside = outside[np.argsort(-sizes[part_of_volunteer[outside]], kind="stable")]
    share = float(1 - n_answers.max() / n_answers.sum())
    linked = _linked_by_gold(graph, part_of_item, np.flatnonzero(n_answers))
    finding = DISCONNECTED_PARTS.finding(
        f"The crowd falls into {quantity(n_parts, 'part')} that share no items; {quantity(len(outside), 'volunteer')} "
        f"with {percent(share)} of the answers {'lies' if len(outside) == 1 else 'lie'} outside the largest."
        + (" Each part has gold of every class, which links them." if linked else ""),
        severity="warning" if share >= OUTSIDE_SHARE and not linked else "note",
        ids=graph.volunteers.ids[outside],
        evidence={"part": np.unique(part_of_volunteer[outside], return_inverse=True)[1].ravel()},
        numbers={"parts": n_parts, "volunteers": len(outside), "share": share},
    )
    return [finding]


def _connected_parts(graph: CrowdGraph) -> tuple[Array, Array]:
    """Return the number of the connected part to which each volunteer and each item belongs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    volunteer, item = graph.answers.volunteer, graph.answers.item
    n_volunteers, n = len(graph.volunteers), len(graph.volunteers) + len(graph.items)
    links = coo_array((np.ones(len(item), dtype=np.int8), (volunteer, item + n_volunteers)), shape=(n, n))
    part = connected_components(links.tocsr(), directed=False)[1]
    return part[:n_volunteers], part[n_volunteers:]


def _linked_by_gold(graph: CrowdGraph, part_of_item: Array, parts: Array) -> bool:
    """Return whether every part has gold of every class, with which all volunteers can be compared."""
    items = np.flatnonzero(graph.gold.codes >= 0)
    n_classes = len(graph.classes)
    cells = part_of_item[items].astype(np.int64) * n_classes + graph.gold.codes[items]
    n_parts = int(max(part_of_item.max(), parts.max())) + 1
    counts = np.bincount(cells, minlength=n_parts * n_classes).reshape(n_parts, n_classes)
    return bool((counts[parts] > 0).all())


# Volunteers of whom little is known

# Worth a note: from this share of the volunteers, or of the answers, if they come from such volunteers.
HARDLY_KNOWN_SHARE = 0.25

HARDLY_KNOWN = FindingType(
    topic="hardly known",
    name="hardly known volunteers",
    severity="info",
    why="What is said of them is more what the crowd is like than what they are like.",
)


@reports(HARDLY_KNOWN)
def check_hardly_known(graph: CrowdGraph) -> list[Finding]:
    """Find volunteers with fewer answers than the crowd may count for in the models' prior."""
    # With repeated answers, which the models count.
    n_answers = graph.answers.n_by_volunteer
    weight = MAX_ACCURACY_WEIGHT
    codes = np.flatnonzero((n_answers > 0) & (n_answers < weight))
    if not len(codes):
        return []
    n_active = int(np.count_nonzero(n_answers))
    share, share_of_answers = len(codes) / n_active, float(n_answers[codes].sum() / n_answers.sum())
    finding = HARDLY_KNOWN.finding(
        f"{len(codes):,} of {quantity(n_active, 'volunteer')} ({percent(share)}), with {percent(share_of_answers)} of "
        f"the answers, gave fewer than {weight:g} answers, too few to know them: for these the model mostly "
        "assumes what is typical of the crowd.",
        severity="note" if max(share, share_of_answers) >= HARDLY_KNOWN_SHARE else "info",
        advice=Hint(
            "Look at intervals, not at means, and leave them out of networks with min_responses=....",
            cli="Look at intervals, not at means, and leave them out of networks with --min-responses.",
        ),
        ids=graph.volunteers.ids[codes],
        evidence={"answers": n_answers[codes]},
        numbers={
            "volunteers": len(codes),
            "share": share,
            "share_of_answers": share_of_answers,
            "prior_weight": weight,
        },
    )
    return [finding]
