"""Bots: answers faster than a person can look."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.times import seconds
from crowdgraph.diagnosis.words import counted, named, percent

__all__ = ["find_fast"]

# So many answers in a row, each within this many seconds on average: nobody looks at pictures at that pace for long.
RUN, PACE = 30, 1.0
# If more than this share of the volunteers is so fast, it is not they but the way in which answers are sent.
TOO_MANY = 0.2
# From this share of all answers, fast ones are a warning.
MUCH = 0.01
# A volunteer sends answers together if this share of them, of at least so many, bears the time of the one before.
TOGETHER, REGULAR = 0.1, 5


def find_fast(graph: CrowdGraph) -> list[Finding]:
    """Volunteers who answered thirty times in less than thirty seconds."""
    time = seconds(graph)
    if time is None or not len(time):
        return []
    rows = graph._rows_by_volunteer.order
    rows = rows[graph.responses.label[rows] >= 0]
    volunteer, time = graph.responses.volunteer[rows], time[rows]
    sent_together = _many_send_together(volunteer, time, len(graph.volunteers))
    if sent_together:
        # Several answers bear one time, so the pace is that of the moments.
        moments = np.append(True, (volunteer[1:] != volunteer[:-1]) | (time[1:] != time[:-1]))
        volunteer, time = volunteer[moments], time[moments]
    fastest = _fastest_runs(volunteer, time, len(graph.volunteers))
    fast = np.flatnonzero(fastest < RUN * PACE)
    return [_finding(graph, fast, fastest, sent_together=sent_together)] if len(fast) else []


def _many_send_together(volunteer: Array, time: Array, n_volunteers: int) -> bool:
    """Whether it is the habit of many, and not of a few, to send several answers in a moment."""
    follows = np.flatnonzero(volunteer[1:] == volunteer[:-1]) + 1
    at_once = follows[time[follows] == time[follows - 1]]
    n_following = np.bincount(volunteer[follows], minlength=n_volunteers)
    n_at_once = np.bincount(volunteer[at_once], minlength=n_volunteers)
    regular = n_following >= REGULAR
    return bool(regular.any() and (n_at_once[regular] >= TOGETHER * n_following[regular]).mean() > TOO_MANY)


def _fastest_runs(volunteer: Array, time: Array, n_volunteers: int) -> Array:
    """The shortest time in which each volunteer gave a run of answers, (V,); infinite for those with fewer."""
    fastest = np.full(n_volunteers, np.inf)
    last = np.arange(RUN - 1, len(volunteer))
    same = last[volunteer[last] == volunteer[last - (RUN - 1)]]
    np.minimum.at(fastest, volunteer[same], time[same] - time[same - (RUN - 1)])
    return fastest


def _finding(graph: CrowdGraph, fast: Array, fastest: Array, *, sent_together: bool) -> Finding:
    n_given = graph.volunteers.n_responses
    fast = fast[np.argsort(fastest[fast], kind="stable")]
    share = float(n_given[fast].sum() / n_given.sum())
    common = len(fast) > max(1, TOO_MANY * np.count_nonzero(np.isfinite(fastest)))
    what = (
        f"{counted(len(fast), 'volunteer')} ({named(graph.volunteers.ids[fast])}), with {percent(share)} of the "
        f"responses, gave {RUN} answers in a row in less than {RUN * PACE:g} seconds, the fastest in "
        f"{fastest[fast[0]]:,.3g}."
    )
    if common:
        advice = "So many are so fast that answers may be sent together or drawn from a queue; ask how times are made."
    else:
        advice = (
            "Look at their answers; leave them out with graph.subgraph(volunteers=[...]) if they are not a person's."
        )
    counts = " Answers that bear the same time counted as one." if sent_together else ""
    return Finding(
        topic="bots",
        name="fast answers",
        severity="warning" if share >= MUCH and not common else "note",
        what=what + counts,
        why="Nobody looks at items at that pace for long: a script, or somebody who clicks without looking.",
        advice=advice,
        ids=graph.volunteers.ids[fast],
        evidence={"seconds_for_30": fastest[fast], "responses": n_given[fast]},
        numbers={"volunteers": len(fast), "share": share},
    )
