"""Times: whether there are any, pauses of the whole project, stray ones, and answers that share a moment."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.clock import UNITS, ticks
from crowdgraph.core.columns import Array
from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_times", "seconds"]

# A pause is at least this share of the project's duration, and this many times the mean time between responses.
LONG, MANY_TIMES = 0.05, 20
# On either side of a pause lies at least this share of the responses; at the ends of a project few are left.
EITHER_SIDE = 0.05
# Times are stray if nothing happens over this share of the duration, and hardly any responses lie beyond.
STRAY, HARDLY_ANY = 0.5, 0.01
# Worth a note: this share of answers at the very moment of the volunteer's answer before.
TOGETHER = 0.1
# With fewer responses than this, nothing can be said about pauses.
ENOUGH = 50


def find_times(graph: CrowdGraph) -> list[Finding]:
    """What can be said of the times."""
    responses = graph.responses
    if not len(responses):
        return []
    if responses.clock.kind == "order":
        return [_no_times()]
    found = _together(graph) + ([_no_unit()] if responses.clock.kind == "number" else [])
    if len(responses) >= ENOUGH and responses.time[0] < responses.time[-1]:
        found += _pauses(graph) + _stray(graph)
    return found


def seconds(graph: CrowdGraph) -> Array | None:
    """The time of each response in seconds; None where the times are not datetimes."""
    times = graph.responses.time
    if graph.responses.clock.kind != "datetime":
        return None
    # As floats first: nanoseconds of several centuries apart do not fit into an integer.
    counted_ticks = ticks(times).astype(np.float64)
    return np.asarray((counted_ticks - counted_ticks[:1]) / UNITS[np.datetime_data(times.dtype)[0]])


def _no_times() -> Finding:
    return Finding(
        topic="times",
        name="no times",
        severity="info",
        what="The responses have no times, so pauses and speed were not examined.",
        why="Models of change take the order of the rows for that of time.",
        advice="If the file has a column of times, name it: from_responses(..., time='created_at').",
    )


def _no_unit() -> Finding:
    return Finding(
        topic="times",
        name="times without a unit",
        severity="info",
        what="The times are numbers without a unit, so speed was not examined.",
        why="Only datetimes tell how many seconds lie between two answers.",
        advice="If they are seconds or ranks of something, give datetimes instead where there are any.",
    )


def _together(graph: CrowdGraph) -> list[Finding]:
    rows = graph._rows_by_volunteer.order
    time, volunteer = graph.responses.time[rows], graph.responses.volunteer[rows]
    together = (time[1:] == time[:-1])[volunteer[1:] == volunteer[:-1]]
    share = float(together.mean()) if len(together) else 0.0
    if share < TOGETHER:
        return []
    finding = Finding(
        topic="times",
        name="answers at the same moment",
        severity="note",
        what=f"{percent(share)} of the answers bear the time of the same volunteer's answer before.",
        why="Several answers were sent together or times are coarse: their order, and speed between them, are unknown.",
        advice="Where there is a finer time, use it; read changes within such a moment as chance.",
        numbers={"share": share, "answers": int(np.count_nonzero(together))},
    )
    return [finding]


def _pauses(graph: CrowdGraph) -> list[Finding]:
    """Stretches in which the whole project rested, between two stretches in which it did not."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, duration, n = np.diff(times), times[-1] - times[0], len(times)
    before = np.arange(1, n)
    inside = (before >= EITHER_SIDE * n) & (n - before >= EITHER_SIDE * n)
    long = np.flatnonzero(inside & (gaps >= max(LONG * duration, MANY_TIMES * duration / n)))
    if not len(long):
        return []
    longest = int(long[gaps[long].argmax()])
    start, stop = graph.responses.clock.to_python(graph.responses.time[[longest, longest + 1]])
    rested = float(gaps[long].sum() / duration)
    finding = Finding(
        topic="times",
        name="pauses",
        severity="note",
        what=(
            f"The project rested {_times(len(long))}, for {percent(rested)} of its duration; the longest pause is from "
            f"{start} to {stop}."
        ),
        why="Volunteers, items or instructions may differ before and after; change over time mixes with that.",
        advice="Look at both sides on their own: graph.before(...), graph.window(...).",
        numbers={"pauses": len(long), "share": rested, "longest": float(gaps[longest] / duration)},
    )
    return [finding]


def _stray(graph: CrowdGraph) -> list[Finding]:
    """A few responses that lie far before or after all others."""
    times = ticks(graph.responses.time).astype(np.float64)
    gaps, n = np.diff(times), len(times)
    place = int(gaps.argmax())
    n_early, n_late = place + 1, n - place - 1
    if gaps[place] < STRAY * (times[-1] - times[0]) or min(n_early, n_late) > max(HARDLY_ANY * n, 1):
        return []
    early = n_early < n_late
    first, last = graph.responses.clock.to_python(graph.responses.time[[0, place] if early else [place + 1, n - 1]])
    n_stray, empty = min(n_early, n_late), float(gaps[place] / (times[-1] - times[0]))
    finding = Finding(
        topic="times",
        name="stray times",
        severity="warning",
        what=(
            f"{counted(n_stray, 'response')} from {first} to {last} lie{'s' * (n_stray == 1)} far "
            f"{'before' if early else 'after'} all others; nothing happens in {percent(empty)} of the time."
        ),
        why="Such times are often wrong (an empty date read as 1970, a clock set wrongly) and stretch everything.",
        advice="Check them in the source; leave them out with graph.window(start, stop) if they are wrong.",
        numbers={"responses": n_stray, "share": empty},
    )
    return [finding]


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")
