"""What notebooks show of graphs and results: small tables in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, cell_text, is_null, to_list
from crowdgraph.core._text import facts, headline, shares
from crowdgraph.core.node_annotations import distinct_names
from crowdgraph.errors import AlignmentError, NotAnnotatedError

if TYPE_CHECKING:
    from crowdgraph.core.communities import Communities
    from crowdgraph.core.community_events import CommunityEvent
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionHistory, ConfusionMatrix, ConfusionSnapshot
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.core.network import VolunteerNetwork
    from crowdgraph.core.network_track import NetworkTrack
    from crowdgraph.core.nodes import Node, Nodes, ParticipationHistory
    from crowdgraph.core.volunteer_values import VolunteerValues

# How many items and volunteers, communities, snapshots and events of a community a notebook shows.
MAX_NODES, MAX_ROWS, MAX_SNAPSHOTS, MAX_EVENTS = 5, 20, 8, 6
# The columns of `Communities.describe` that a notebook shows, and their headings.
DESCRIPTION_HEADINGS = {
    "community": "community",
    "volunteers": "volunteers",
    "share": "share",
    "responses": "responses",
    "centroid": "most central",
    "behaviour": "in words",
}


# The words for events that concern another community.
EVENT_WORDS = {"split": "split from {}", "merged": "merged into {}", "moved": "{volunteers} moved to {}"}


def html_card(title: str, summary: str, *parts: str) -> str:
    """Return a title and a summary, which are escaped here, above parts that are HTML already."""
    return f'<div style="text-align:left"><strong>{escape(title)}</strong>: {escape(summary)}{"".join(parts)}</div>'


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and sentences."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def html_table(columns: Mapping[str, Sequence[object]], *, caption: str = "", shaded: bool = False) -> str:
    """Return a table of columns by name: numbers to the right, text to the left, missing values as empty cells.

    A shaded one has shares from 0 to 1 in its columns of numbers, and the larger a share, the stronger its shade.

    Examples
    --------
    >>> html_table({"who": ["<anna>"]}).count("&lt;anna&gt;")
    1
    """
    sides = {name: "right" if all(map(_is_number_or_null, column)) else "left" for name, column in columns.items()}
    head = "".join(f'<th style="text-align:{side}">{escape(name)}</th>' for name, side in sides.items())
    rows = "".join(
        "<tr>" + "".join(_cell(*pair, shaded=shaded) for pair in zip(row, sides.values(), strict=True)) + "</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    above = f'<caption style="text-align:left;white-space:nowrap">{escape(caption)}</caption>' if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _is_number_or_null(value: object) -> bool:
    return is_null(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object, side: str, *, shaded: bool) -> str:
    # Half transparent at most, so that text can be read in light and in dark notebooks.
    shade = f";background:rgba(0,114,178,{0.5 * value:.2f})" if shaded and isinstance(value, float) else ""
    return f'<td style="text-align:{side};vertical-align:top{shade}">{escape(cell_text(value))}</td>'


def _names(ids: Array) -> list[str]:
    """Return ids as text: even numbers are names."""
    return ["" if is_null(value) else str(value) for value in to_list(ids)]


def _summary(result: object) -> tuple[str, str]:
    """Return the name of a result's type, and the summary that its `repr` has in parentheses."""
    name, _, summary = repr(result).partition("(")
    return name, summary.removesuffix(")")


def fit_html(fit: ModelFit) -> str:
    """Return a fit's summary, how often the classes occur, its first items and its best volunteers."""
    facts = facts_table([("classes", shares(fit.classes, fit.class_probs))])
    return html_card(*_summary(fit), facts, _items_table(fit), _volunteers_table(fit))


def _items_table(fit: ModelFit) -> str:
    first = _most_uncertain(fit)
    columns = {"item": _names(fit.items[first]), **_class_columns(fit, first)}
    return html_table(columns, caption=_first_of(len(fit.items), "items, the most uncertain first"))


def _most_uncertain(fit: ModelFit) -> Array:
    """Return the codes of the few items whose most probable class is least probable."""
    return np.argsort(fit.item_probs.max(axis=1), kind="stable")[:MAX_NODES]


def _class_columns(fit: ModelFit, codes: Array) -> dict[str, list[Any]]:
    """Return the most probable class of some items, and its probability."""
    probs = fit.item_probs[codes]
    classes = [str(fit.classes[code]) for code in probs.argmax(axis=1)]
    return {"class": classes, "probability": probs.max(axis=1).tolist()}


def _volunteers_table(fit: ModelFit) -> str:
    """Return the best volunteers, or nothing if there are none or it is not known which labels are right."""
    track, correct = fit.confusion, fit.correct_labels
    if track is None or not len(track) or not fit.knows_correct_labels:
        return ""
    latest = track.latest()
    accuracy = latest.accuracy(fit.class_probs, correct=correct)
    best = np.argsort(-accuracy, kind="stable")[:MAX_NODES]
    few = replace(latest, ids=latest.ids[best], concentration=latest.concentration[best])
    low, high = few.accuracy_interval(0.9, class_probs=fit.class_probs, correct=correct)
    columns = {
        "volunteer": _names(track.ids[best]),
        "accuracy": accuracy[best].tolist(),
        "from": low.tolist(),
        "to": high.tolist(),
    }
    return html_table(columns, caption=_first_of(len(track), "volunteers, the best first; with 90 % intervals"))


def _first_of(n: int, what: str) -> str:
    return f"{MAX_NODES} of {n:,} {what}" if n > MAX_NODES else f"{n:,} {what}"


def communities_html(communities: Communities) -> str:
    """Return a summary of communities, and a row for each with its size, its centre and its behaviour in words."""
    description = communities._description(_confusion(communities))
    columns: dict[str, list[Any]] = {}
    for key, name in DESCRIPTION_HEADINGS.items():
        if key in description:
            column = description[key][:MAX_ROWS]
            columns[name] = _names(column) if key in ("community", "centroid") else to_list(column)
    return html_card(*_summary(communities), html_table(columns, caption=_some_of(len(communities))))


def _confusion(communities: Communities) -> ConfusionSnapshot | None:
    """Return the communities' own confusion, if it covers all members."""
    try:
        return communities._resolve_confusion(None)
    except (NotAnnotatedError, AlignmentError):
        return None


def _some_of(n_communities: int) -> str:
    return f"{MAX_ROWS} of {n_communities:,} communities" if n_communities > MAX_ROWS else ""


def track_html(track: CommunityTrack) -> str:
    """Return a track's summary, and a row for each community with its sizes and its events."""
    snapshots = np.unique(np.linspace(0, max(len(track) - 1, 0), MAX_SNAPSHOTS).round().astype(int))[: len(track)]
    histories: list[list[CommunityEvent]] = [[] for _ in range(track.n_communities_ever)]
    for event in track.events:
        histories[event.community].append(event)
    columns = {
        "community": [str(k) for k in range(track.n_communities_ever)],
        "volunteers over time": [" → ".join(f"{size:,}" for size in sizes) for sizes in track.sizes[snapshots].T],
        "what became of it, at how many responses": [_history(events, track) for events in histories],
    }
    rows = {name: column[:MAX_ROWS] for name, column in columns.items()}
    return html_card(*_summary(track), html_table(rows, caption=_some_of(track.n_communities_ever)))


def network_track_html(track: NetworkTrack) -> str:
    """Return a summary of networks over time, and a row for each of the last snapshots."""
    arrow = track.measures(kind="arrow").slice(max(len(track) - MAX_ROWS, 0))
    columns = {name: arrow[name].to_pylist() for name in arrow.column_names}
    columns["time"] = [str(time) for time in columns["time"]]
    caption = f"the last {MAX_ROWS} of {len(track):,} snapshots" if len(track) > MAX_ROWS else ""
    return html_card(*_summary(track), html_table(columns, caption=caption))


def _history(events: Sequence[CommunityEvent], track: CommunityTrack) -> str:
    """Return the last events of a community in words."""
    earlier = f"{len(events) - MAX_EVENTS:,} more, " if len(events) > MAX_EVENTS else ""
    return earlier + ", ".join(f"{_event(event)} ({track.counts[event.snapshot]:,})" for event in events[-MAX_EVENTS:])


def _event(event: CommunityEvent) -> str:
    words = EVENT_WORDS.get(event.event)
    return words.format(event.other, volunteers=f"{event.volunteers:,}") if words else event.event


def graph_html(graph: CrowdGraph) -> str:
    """Return a summary of a graph as a small table."""
    return html_card("CrowdGraph", headline(graph), facts_table(facts(graph)))


def values_html(values: VolunteerValues) -> str:
    """Return the largest of some values by volunteer."""
    best = values.top(MAX_ROWS)
    columns = {"volunteer": _names(best.ids), values.quantity: best.array.tolist()}
    caption = f"{MAX_ROWS} of {len(values):,} volunteers" if len(values) > MAX_ROWS else ""
    return html_table(columns, caption=caption)


def network_html(network: VolunteerNetwork) -> str:
    """Return a network's summary and its volunteers of greatest strength."""
    best = np.argsort(-network.strength, kind="stable")[:MAX_NODES]
    columns = {
        "volunteer": _names(network.ids[best]),
        "neighbours": network.degree[best].tolist(),
        "strength": network.strength[best].tolist(),
    }
    table = html_table(columns, caption=_first_of(len(network), "volunteers, the strongest first"))
    return html_card(*_summary(network), table)


def nodes_html(nodes: Nodes[Any]) -> str:
    """Return the first nodes, or the most uncertain items if a fit is known, with what is known of them."""
    kind = nodes.table.kind
    first, order, known = np.arange(min(len(nodes), MAX_NODES)), "in their order", {}
    if kind == "item" and (fit := _fit_of(nodes)) is not None:
        first, order = _most_uncertain(fit), "the most uncertain first"
        known = _class_columns(fit, first)
    columns = {kind: _names(nodes.ids[first]), "responses": nodes.n_responses[first].tolist()}
    columns |= {name: to_list(column[first]) for name, column in nodes.attributes.items()}
    columns |= distinct_names(known, columns)
    return html_table(columns, caption=_first_of(len(nodes), f"{kind}s, {order}"))


def _fit_of(nodes: Nodes[Any]) -> ModelFit | None:
    """Return the latest fit that the graph of some nodes carries."""
    try:
        return nodes._graph.fit()
    except NotAnnotatedError:
        return None


def node_html(node: Node) -> str:
    """Return a node's number of responses and its attributes and, if the graph carries it, what is known of it."""
    facts = [(name, cell_text(value)) for name, value in node.attributes.items()]
    try:
        known = _knowledge(node)
    except NotAnnotatedError:
        known = ""
    summary = f"{node.id!r}, {node.n_responses:,} responses"
    return html_card(type(node).__name__, summary, facts_table(facts) if facts else "", known)


def _knowledge(node: Any) -> str:
    """Return the latest confusion of a volunteer, or the class probabilities of an item."""
    if node.kind == "volunteer":
        return confusion_html(node.confusion.latest(), caption="confusion after the last response")
    probs = {str(name): [share] for name, share in node.class_probs.items()}
    return html_table(probs, caption="probability of each class")


def confusion_html(confusion: ConfusionMatrix, *, caption: str = "probability of a label") -> str:
    """Return a confusion matrix: a row for each true class, a column for each label."""
    columns: dict[str, Sequence[object]] = {"true class": [str(name) for name in confusion.classes]}
    # Labels are distinct as text.
    columns |= {f"says {label}": confusion.mean[:, code].tolist() for code, label in enumerate(confusion.labels)}
    return html_table(columns, caption=caption, shaded=True)


def confusion_history_html(history: ConfusionHistory) -> str:
    """Return the latest confusion of a volunteer, and how many steps led to it."""
    when = "at all times" if history.inference == "static" else "after the last response"
    summary = f"{history.volunteer!r}, {history.inference}, {len(history):,} steps"
    return html_card("ConfusionHistory", summary, confusion_html(history.latest(), caption=when))


def participation_html(history: ParticipationHistory) -> str:
    """Return the last snapshots of a volunteer's participation."""
    last = slice(max(len(history) - MAX_ROWS, 0), None)
    columns: dict[str, Sequence[object]] = {
        "time": [str(time) for time in history.clock.to_python(history.times[last])],
        "responses": history.counts[last].tolist(),
        "community": ["none" if k < 0 else str(k) for k in history.community[last].tolist()],
    }
    columns |= {f"in {k}": column[last].tolist() for k, column in enumerate(history.participation.T)}
    return html_card("ParticipationHistory", f"{history.volunteer!r}, {len(history):,} snapshots", html_table(columns))
