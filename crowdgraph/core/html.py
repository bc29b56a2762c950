"""What notebooks show of a result: its story and small tables, in the notebook's own colours, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core.columns import Array, cell_text, is_null, to_list
from crowdgraph.errors import AlignmentError, NotAnnotatedError

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionSnapshot
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.lifelines import CommunityEvent

__all__ = ["card", "communities_html", "facts_table", "fit_html", "table", "track_html"]

# How many items and volunteers, communities, snapshots and events of a community are shown.
TOP, MOST_ROWS, MOST_SNAPSHOTS, MOST_EVENTS = 5, 20, 8, 6
# What is told of communities, and by which name.
DESCRIBED = {
    "community": "community",
    "volunteers": "volunteers",
    "share": "share",
    "responses": "responses",
    "centroid": "most central",
    "behaviour": "in words",
}
# How an event is told where it has to do with another community.
WORDS = {"split": "split from {}", "merged": "merged into {}", "moved": "{volunteers} moved to {}"}


def card(title: str, story: str, *parts: str) -> str:
    """A title and a sentence, which are escaped, and parts below, which are HTML already."""
    return f'<div style="text-align:left"><strong>{escape(title)}</strong>: {escape(story)}{"".join(parts)}</div>'


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """A table of names and sentences."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def table(columns: Mapping[str, Sequence[object]], *, caption: str = "") -> str:
    """A table of columns by name: numbers to the right, text to the left, nothing where nothing is known.

    Examples
    --------
    >>> table({"who": ["<anna>"]}).count("&lt;anna&gt;")
    1
    """
    sides = {name: "right" if all(map(_is_number, column)) else "left" for name, column in columns.items()}
    head = "".join(f'<th style="text-align:{side}">{escape(name)}</th>' for name, side in sides.items())
    rows = "".join(
        "<tr>" + "".join(map(_cell, row, sides.values())) + "</tr>" for row in zip(*columns.values(), strict=True)
    )
    above = f'<caption style="text-align:left;white-space:nowrap">{escape(caption)}</caption>' if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _is_number(value: object) -> bool:
    return is_null(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object, side: str) -> str:
    return f'<td style="text-align:{side};vertical-align:top">{escape(cell_text(value))}</td>'


def _names(ids: Array) -> list[str]:
    """Ids as text: even numbers are names."""
    return ["" if is_null(value) else str(value) for value in to_list(ids)]


def _story(result: object) -> tuple[str, str]:
    """The name of a result's type, and what its `repr` tells of it."""
    name, _, story = repr(result).partition("(")
    return name, story.removesuffix(")")


def fit_html(fit: ModelFit) -> str:
    """A fit: its story, how often the classes occur, its first items and its best volunteers."""
    from crowdgraph.core.story import shares

    facts = facts_table([("classes", shares(fit.classes, fit.class_probs))])
    return card(*_story(fit), facts, _items_table(fit), _volunteers_table(fit))


def _items_table(fit: ModelFit) -> str:
    probs = fit.item_probs[:TOP]
    columns = {
        "item": _names(fit.items[:TOP]),
        "class": [str(fit.classes[code]) for code in probs.argmax(axis=1)],
        "probability": probs.max(axis=1).tolist(),
    }
    return table(columns, caption=_first_of(len(fit.items), "items, in their order"))


def _volunteers_table(fit: ModelFit) -> str:
    """The best volunteers; nothing where there are none, or where it is not known which labels are right."""
    track, correct = fit.confusion, fit._correct()
    if track is None or not len(track) or (correct is None and not set(fit.classes) <= set(track.labels)):
        return ""
    latest = track.latest()
    accuracy = latest.accuracy(fit.class_probs, correct=correct)
    best = np.argsort(-accuracy, kind="stable")[:TOP]
    few = replace(latest, ids=latest.ids[best], concentration=latest.concentration[best])
    low, high = few.accuracy_interval(0.9, class_probs=fit.class_probs, correct=correct)
    columns = {
        "volunteer": _names(track.ids[best]),
        "accuracy": accuracy[best].tolist(),
        "from": low.tolist(),
        "to": high.tolist(),
    }
    return table(columns, caption=_first_of(len(track), "volunteers, the best first; with 90 % intervals"))


def _first_of(n: int, what: str) -> str:
    return f"{TOP} of {n:,} {what}" if n > TOP else f"{n:,} {what}"


def communities_html(communities: Communities) -> str:
    """Communities: their story, and a row for each with its size, who is most central and what it does in words."""
    described = communities._description(_confusion(communities))
    shown: dict[str, list[Any]] = {}
    for key, name in DESCRIBED.items():
        if key in described:
            column = described[key][:MOST_ROWS]
            shown[name] = _names(column) if key in ("community", "centroid") else to_list(column)
    return card(*_story(communities), table(shown, caption=_some_of(len(communities))))


def _confusion(communities: Communities) -> ConfusionSnapshot | None:
    """The communities' own confusion, if it is known of all members."""
    try:
        return communities._known_confusion(None)
    except (NotAnnotatedError, AlignmentError):
        return None


def _some_of(n_communities: int) -> str:
    return f"{MOST_ROWS} of {n_communities:,} communities" if n_communities > MOST_ROWS else ""


def track_html(track: CommunityTrack) -> str:
    """A track: its story, and a row for each community with its sizes and what became of it."""
    places = np.unique(np.linspace(0, max(len(track) - 1, 0), MOST_SNAPSHOTS).round().astype(int))[: len(track)]
    lives: list[list[CommunityEvent]] = [[] for _ in range(track.width)]
    for event in track.events:
        lives[event.community].append(event)
    columns = {
        "community": [str(k) for k in range(track.width)],
        "volunteers over time": [" → ".join(f"{size:,}" for size in sizes) for sizes in track.sizes[places].T],
        "what became of it, at how many responses": [_life(events, track) for events in lives],
    }
    shown = {name: column[:MOST_ROWS] for name, column in columns.items()}
    return card(*_story(track), table(shown, caption=_some_of(track.width)))


def _life(events: Sequence[CommunityEvent], track: CommunityTrack) -> str:
    """The last events of a community in words."""
    earlier = f"{len(events) - MOST_EVENTS:,} more, " if len(events) > MOST_EVENTS else ""
    told = (f"{_event(event)} ({track.counts[event.snapshot]:,})" for event in events[-MOST_EVENTS:])
    return earlier + ", ".join(told)


def _event(event: CommunityEvent) -> str:
    words = WORDS.get(event.event)
    return words.format(event.other, volunteers=f"{event.volunteers:,}") if words else event.event
