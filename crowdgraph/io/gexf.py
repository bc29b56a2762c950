"""Write graphs and networks over time as dynamic GEXF, which Gephi's timeline plays, and read GEXF.

The version is 1.2, which every Gephi and networkx read. Datetimes are declared as ``date``, though they are written to
the last digit: networkx cannot read files that declare ``dateTime``, and Gephi reads both alike. Where the graph has a
zone they are in UTC and end in Z; without an offset Gephi takes any time for UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from os import PathLike, fspath
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from crowdgraph.core._arrays import Array, Grouping
from crowdgraph.core.clock import Clock, Moment, ticks
from crowdgraph.core.communities import Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph, Duplicates
from crowdgraph.core.network_track import NetworkTrack
from crowdgraph.core.response_annotations import fit_with_confusion
from crowdgraph.core.result import check_ids
from crowdgraph.errors import InputError, ParameterError
from crowdgraph.io._annotated import annotated_columns, annotation_or_none, without_clashes
from crowdgraph.io._bipartite import ID_KEY, graph_from_bipartite, graph_record, read_record
from crowdgraph.io._files import atomic_file, is_file, not_a_file
from crowdgraph.io._gexf_parser import ANNOTATIONS, NETWORK, ORIGINAL, RECORD, GexfParser
from crowdgraph.io._known import known_at
from crowdgraph.io._payload import pack_annotations
from crowdgraph.io.graphml import (
    TextColumn,
    _common_types,
    _identity,
    _item_texts,
    _own_texts,
    _response_texts,
    _volunteer_texts,
    time_texts,
)
from crowdgraph.io.networkx import _check_distinct_names, _check_xml, _xml_text, paused_garbage_collection
from crowdgraph.messages import with_article

__all__ = ["read_gexf", "write_gexf", "write_network_track"]

# Names that GEXF and its readers reserve; attributes of these names get an underscore for other programs.
RESERVED = (
    "id",
    "label",
    "viz",
    "parents",
    "pid",
    "slices",
    "spells",
    "start",
    "end",
    "weight",
    "type",
    "thickness",
    "key",
    "u_for_edge",
    "v_for_edge",
    "node_for_adding",
)
# More changes of skill than this are not seen in a film, and make large files.
MAX_CHANGES = 50
# How many characters of the annotations stand on a line.
LINE_LENGTH = 2**15


class Change(NamedTuple):
    """A value that holds from one time to another, all of them as text."""

    value: str
    start: str
    end: str


class ChangingColumn(NamedTuple):
    """An attribute that changes over time: GEXF's name for its type, and the changes of each node or edge."""

    type: str
    changes: Sequence[Sequence[Change]]


# Graphs


def write_gexf(graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None) -> None:
    """Write a graph as dynamic GEXF; see `CrowdGraph.to_gexf`."""
    view, left_out = known_at(graph, at)
    columns = annotated_columns(view, "latest")
    names = {kind: [f"{kind}:{node_id}" for node_id in nodes] for kind, nodes in _nodes(view)}
    _check_distinct_names([*names["volunteer"], *names["item"]])
    changing = without_clashes(_graph_changes(view), view.volunteers.attributes, "volunteers")
    volunteer_texts = _volunteer_texts(view, columns)
    static = {
        "volunteer": {name: column for name, column in volunteer_texts.items() if name not in changing},
        "item": _item_texts(view, columns),
    }
    computed = {kind: without_clashes(static[kind], nodes.attributes, f"{kind}s") for kind, nodes in _nodes(view)}
    tables = {
        kind: _identity(kind, nodes.table) | _own_texts(nodes.attributes, f"{kind}s") | computed[kind]
        for kind, nodes in _nodes(view)
    }
    for table in tables.values():
        del table["label"]  # which stands beside the attributes
    edge_computed = _response_texts(columns)
    edges = _own_texts(view.responses.attributes, "responses") | edge_computed
    node_names = (ID_KEY, *computed["volunteer"], *computed["item"], *changing)
    record = graph_record(view, nodes=node_names, edges=edge_computed, left_out=left_out)
    for text in (*names["volunteer"], *names["item"], *map(str, view.labels), *map(str, view.classes)):
        _check_xml(text)
    for name in (*tables["volunteer"], *tables["item"], *edges, *changing):
        _check_xml(name)
    with (
        paused_garbage_collection(),
        atomic_file(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(_graph_lines(view, names, tables, changing, edges, json.dumps(record)))


def _nodes(graph: CrowdGraph) -> list[tuple[str, Any]]:
    return [("volunteer", graph.volunteers), ("item", graph.items)]


def _graph_lines(
    graph: CrowdGraph,
    names: Mapping[str, list[str]],
    tables: Mapping[str, Mapping[str, TextColumn]],
    changing: Mapping[str, ChangingColumn],
    edges: Mapping[str, TextColumn],
    record: str,
) -> Iterator[str]:
    responses = graph.responses
    times = time_texts(responses.time, responses.clock).texts
    node_types = _common_types(tables.values())
    keys, edge_keys = _keys("n", tuple(node_types)), _keys("e", tuple(edges))
    # Items may have an attribute of the name of something that changes of volunteers.
    changing_keys = _keys("c", tuple(changing))
    yield from _head(graph.responses.clock, "who said what about which item and when, by crowdgraph")
    yield from _declarations("node", "static", keys, node_types)
    yield from _declarations("node", "dynamic", changing_keys, {name: one.type for name, one in changing.items()})
    yield from _declarations("edge", "static", edge_keys, {name: column.type for name, column in edges.items()})
    yield "<nodes>\n"
    groups = {"volunteer": responses.by_volunteer, "item": responses.by_item}
    for kind, table in tables.items():
        values = _static_values(table, keys)
        if kind == "volunteer":
            values += [_changing_values(column, changing_keys[name]) for name, column in changing.items()]
        spells = _first_to_last(groups[kind], times)
        for name, spell, *data in zip(names[kind], spells, *values, strict=True):
            label = quoteattr(name.partition(":")[2])
            yield f"<node id={quoteattr(name)} label={label}{spell}>{_attvalues(data)}</node>\n"
    yield "</nodes>\n<edges>\n"
    yield from _response_lines(graph, names, times, _static_values(edges, edge_keys))
    yield "</edges>\n</graph>\n"
    # What XML has no place for travels in processing instructions, which other programs skip.
    yield _instruction(RECORD, record.replace(">", "\\u003e"))
    packed = pack_annotations(graph)
    for begin in range(0, len(packed), LINE_LENGTH):
        yield _instruction(ANNOTATIONS, packed[begin : begin + LINE_LENGTH])
    yield "</gexf>\n"


def _response_lines(
    graph: CrowdGraph, names: Mapping[str, list[str]], times: Sequence[str | None], values: list[Iterator[str]]
) -> Iterator[str]:
    """Yield an edge for each response: it lasts for the moment at which it was given, and its number is its id."""
    responses = graph.responses
    volunteers, items = (list(map(quoteattr, names[kind])) for kind in ("volunteer", "item"))
    labels = [*(f" label={quoteattr(str(label))}" for label in graph.labels), ""]  # code -1 is the last
    columns = zip(
        responses.volunteer.tolist(), responses.item.tolist(), responses.label.tolist(), times, *values, strict=True
    )
    for number, (volunteer, item, label, time, *data) in enumerate(columns):
        yield (
            f'<edge id="{number}" source={volunteers[volunteer]} target={items[item]}{labels[label]} start="{time}" '
            f'end="{time}">{_attvalues(data)}</edge>\n'
        )


def _first_to_last(groups: Grouping, times: Sequence[str | None]) -> Iterator[str]:
    """Yield the spell of each node: from its first response to its last; none for those without responses."""
    starts = groups.starts.tolist()
    for start, stop in pairwise(starts):
        if start == stop:
            yield ""
        else:
            yield f' start="{times[groups.order[start]]}" end="{times[groups.order[stop - 1]]}"'


def _graph_changes(graph: CrowdGraph) -> dict[str, ChangingColumn]:
    """Return the attributes of volunteers that change: skill, and community if it was tracked."""
    changing: dict[str, ChangingColumn] = {}
    confusion = annotation_or_none(graph.confusion)
    fit = fit_with_confusion(graph)
    if confusion is not None and len(graph.responses):
        source = fit if fit is not None and fit.confusion is confusion else confusion
        column = _skill_changes(source, graph.responses.time[[0, -1]], graph.responses.clock)
        if column is not None:
            changing["skill"] = column
    track = annotation_or_none(graph.community_track)
    if track is not None and len(track):
        end = graph.responses.time[-1:] if len(graph.responses) else track.times[-1:]
        changing["community"] = _community_changes(track, np.append(track.times, max(end[0], track.times[-1])))
    return changing


# Networks over time


def write_network_track(
    track: NetworkTrack,
    path: str | PathLike[str],
    *,
    communities: CommunityTrack | Communities | None = None,
    confusion: ConfusionTrack | ModelFit | None = None,
) -> None:
    """Write networks over time as dynamic GEXF; see `NetworkTrack.save`."""
    if not fspath(path).lower().endswith(".gexf"):
        raise ParameterError(f"{fspath(path)!r} must end in .gexf, the format of networks that change.")
    names = [str(name) for name in track.ids.tolist()]
    _check_distinct_names(names)
    for text in (*names, track.method):
        _check_xml(text)
    ends = _snapshot_ends(track)
    changing: dict[str, ChangingColumn] = {}
    if communities is not None:
        changing["community"] = _communities_of(track, communities, ends)
    if confusion is not None:
        changing["skill"] = _skills_of(track, confusion, ends)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_track_lines(track, ends, list(map(quoteattr, names)), changing))


def _track_lines(
    track: NetworkTrack, ends: Array, names: list[str], changing: Mapping[str, ChangingColumn]
) -> Iterator[str]:
    keys = {name: name for name in changing}
    times = time_texts(ends, track.clock).texts
    yield from _head(track.clock, track.method)
    yield from _declarations("node", "dynamic", keys, {name: column.type for name, column in changing.items()})
    # Gephi takes the attribute of this name for the weight that changes.
    yield from _declarations("edge", "dynamic", {"weight": "weight"}, {"weight": "double"})
    yield "<nodes>\n"
    present = np.zeros((len(track.ids), len(track)), dtype=bool)
    for number, network in enumerate(track):
        present[track.table.codes(network.ids), number] = True
    values = [_changing_values(column, name) for name, column in changing.items()]
    for name, row, *data in zip(names, present, *values, strict=True):
        yield f"<node id={name} label={name}>{_attvalues(data)}{_spells(np.flatnonzero(row), ends, times)}</node>\n"
    yield "</nodes>\n<edges>\n"
    for number, (left, right, snapshots, weights) in enumerate(_links(track)):
        changes = _changes(list(map(repr, weights.tolist())), snapshots, ends, times)
        values_text = "".join(_attvalue("weight", change) for change in changes)
        yield (
            f'<edge id="{number}" source={names[left]} target={names[right]} weight="{weights[-1]}">'
            f"{_attvalues([values_text])}{_spells(snapshots, ends, times)}</edge>\n"
        )
    yield "</edges>\n</graph>\n" + _instruction(NETWORK, json.dumps(track.method).replace(">", "\\u003e")) + "</gexf>\n"


def _snapshot_ends(track: NetworkTrack) -> Array:
    """Return the times of the snapshots and the end of the last one, (T + 1,), which lasts as long as the usual one."""
    if not len(track):
        raise ParameterError("The track has no snapshots, so there is nothing to write.")
    numbers = ticks(track.times)
    steps = np.diff(numbers)
    steps = steps[steps > 0]
    last = numbers[-1] + (np.median(steps).astype(numbers.dtype) if len(steps) else 1)
    times = np.append(numbers, last)
    return times.view(track.times.dtype) if track.times.dtype.kind == "M" else times


def _links(track: NetworkTrack) -> Iterator[tuple[int, int, Array, Array]]:
    """Yield each pair that is ever linked: both codes, the snapshots in which it is linked, and the weights there."""
    pairs, snapshots, weights = [], [], []
    for number, network in enumerate(track):
        left, right, values = network.pairs()
        ends = np.sort(track.table.codes(network.ids)[np.stack([left, right])], axis=0)
        pairs.append(ends[0] * len(track.ids) + ends[1])
        snapshots.append(np.full(len(values), number))
        weights.append(values)
    key, snapshot, weight = np.concatenate(pairs), np.concatenate(snapshots), np.concatenate(weights)
    order = np.lexsort((snapshot, key))
    key, snapshot, weight = key[order], snapshot[order], weight[order]
    bounds = np.append(np.flatnonzero(np.diff(key, prepend=-1)), len(key)).tolist()
    for start, stop in pairwise(bounds):
        one, other = divmod(int(key[start]), len(track.ids))
        yield one, other, snapshot[start:stop], weight[start:stop]


def _communities_of(track: NetworkTrack, communities: CommunityTrack | Communities, ends: Array) -> ChangingColumn:
    if isinstance(communities, Communities):
        communities = CommunityTrack(
            ids=track.ids,
            times=track.times[:1],
            counts=track.counts[:1],
            snapshots=(communities,),
            clock=track.clock,
            method=communities.method,
        )
    if not isinstance(communities, CommunityTrack):
        raise ParameterError(
            f"communities= takes Communities or a CommunityTrack; got {with_article(type(communities))}."
        )
    _check_clock("communities", communities.clock, track)
    _check_volunteers("The communities", track, communities)
    own = communities.table.codes(track.ids)
    until = np.append(communities.times, max(communities.times[-1], ends[-1])) if len(communities) else ends[:1]
    column = _community_changes(communities, until)
    return ChangingColumn(column.type, [column.changes[code] for code in own.tolist()])


def _skills_of(track: NetworkTrack, confusion: ConfusionTrack | ModelFit, ends: Array) -> ChangingColumn:
    own = confusion.confusion if isinstance(confusion, ModelFit) else confusion
    if not isinstance(own, ConfusionTrack):
        raise ParameterError(
            f"confusion= takes a fit with confusion matrices, or its confusion; got {with_article(type(confusion))}."
        )
    if own.inference != "static":
        _check_clock("confusion", own.clock, track)
    _check_volunteers("The confusion matrices", track, own)
    column = _skill_changes(confusion, ends[[0, -1]], track.clock)
    if column is None:
        raise ParameterError(
            "It is not known which labels are right, since the classes are not labels, so there is no skill to write; "
            "leave confusion= out, or give the fit of a model with votes."
        )
    return ChangingColumn(column.type, [column.changes[code] for code in own.table.codes(track.ids).tolist()])


def _check_clock(name: str, clock: Clock, track: NetworkTrack) -> None:
    if clock != track.clock:
        raise ParameterError(f"{name}= has times of {clock}, the networks of {track.clock}; make both from one graph.")


def _check_volunteers(what: str, track: NetworkTrack, other: CommunityTrack | ConfusionTrack) -> None:
    check_ids(
        track.ids, other.table, lacking=f"{what} lack {{}} of the track's volunteers", hint="Make both from one graph."
    )


# Changes


def _skill_changes(source: ModelFit | ConfusionTrack, span: Array, clock: Clock) -> ChangingColumn | None:
    """Return the expected accuracy of each volunteer over time; None if it is not known which labels are right.

    A volunteer has at most `MAX_CHANGES` values, at steps that are spread evenly over their responses. That of a model
    without change holds for the whole span.
    """
    fit = source if isinstance(source, ModelFit) else None
    track: Any = source.confusion if isinstance(source, ModelFit) else source
    correct = None if fit is None else fit.correct_labels
    if correct is None and not set(track.classes) <= set(track.labels):
        return None
    probs = None if fit is None else fit.class_probs
    begin, end = time_texts(span, clock).texts
    if track.inference == "static":
        skills = track.latest().accuracy(probs, correct=correct)
        return ChangingColumn("double", [[Change(f"{skill:.4g}", str(begin), str(end))] for skill in skills.tolist()])
    skills = [f"{skill:.4g}" for skill in track.accuracy(probs, correct=correct).tolist()]
    times = np.append(track.times, span[-1:])
    texts = time_texts(times, clock).texts
    changes = []
    for start, stop in pairwise(track.starts.tolist()):
        steps = np.unique(np.linspace(start, stop - 1, min(stop - start, MAX_CHANGES)).round().astype(np.int64))
        changes.append(_merged([skills[step] for step in steps], [*steps.tolist(), len(times) - 1], times, texts))
    return ChangingColumn("double", changes)


def _community_changes(track: CommunityTrack, until: Array) -> ChangingColumn:
    """Return the community of each volunteer over time, from snapshot to snapshot; nothing while they have none."""
    texts = time_texts(until, track.clock).texts
    changes = []
    for row in track.assignment.T:
        snapshots = np.flatnonzero(row >= 0)
        changes.append(_changes([str(number) for number in row[snapshots].tolist()], snapshots, until, texts))
    return ChangingColumn("integer", changes)


def _changes(values: Sequence[str], snapshots: Array, times: Array, texts: Sequence[str | None]) -> list[Change]:
    """Return values that hold from their snapshot to the next, those that do not change joined."""
    changes: list[Change] = []
    for run in _runs(snapshots):
        steps = [*snapshots[run].tolist(), int(snapshots[run][-1]) + 1]
        changes += _merged(values[run], steps, times, texts)
    return changes


def _merged(values: Sequence[str], steps: Sequence[int], times: Array, texts: Sequence[str | None]) -> list[Change]:
    """Return the changes at some steps among the times, the last of which is the end; equal values are joined.

    What lasts for no time is left out, unless it is the last: Gephi has no two values at once.
    """
    changes: list[Change] = []
    for number, value in enumerate(values):
        begin, end = steps[number], steps[number + 1]
        is_last = number + 1 == len(values)
        if times[begin] == times[end] and not is_last:
            continue
        if changes and changes[-1].value == value:
            changes[-1] = changes[-1]._replace(end=str(texts[end]))
        else:
            changes.append(Change(value, str(texts[begin]), str(texts[end])))
    return changes


def _runs(snapshots: Array) -> Iterator[slice]:
    """Yield the runs of consecutive numbers."""
    bounds = np.append(np.flatnonzero(np.diff(snapshots, prepend=-2) != 1), len(snapshots)).tolist()
    for start, stop in pairwise(bounds):
        yield slice(start, stop)


# Lines


def _head(clock: Clock, description: str) -> Iterator[str]:
    time_format = "date" if clock.kind == "datetime" else "double"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
    yield f"<meta><creator>crowdgraph</creator><description>{_xml_text(description)}</description></meta>\n"
    yield f'<graph defaultedgetype="undirected" mode="dynamic" timeformat="{time_format}">\n'


def _keys(prefix: str, names: Sequence[str]) -> dict[str, str]:
    """Return the id of each attribute, which has the name itself where others see a changed one."""
    return {name: f"{ORIGINAL}{name}" if name in RESERVED else f"{prefix}{number}" for number, name in enumerate(names)}


def _title(name: str, names: Mapping[str, str]) -> str:
    """Return the name that other programs see."""
    title = name
    while title in RESERVED or (title != name and title in names):
        title += "_"
    return title


def _declarations(owner: str, mode: str, keys: Mapping[str, str], types: Mapping[str, str]) -> Iterator[str]:
    if types:
        yield f'<attributes class="{owner}" mode="{mode}">\n'
        for name, kind in types.items():
            title = name if keys[name] == name else _title(name, keys)
            yield f'<attribute id="{keys[name]}" title={quoteattr(title)} type="{kind}"/>\n'
        yield "</attributes>\n"


def _static_values(columns: Mapping[str, TextColumn], keys: Mapping[str, str]) -> list[Iterator[str]]:
    """Return the elements of each column, one for each row; empty text where there is no value."""
    return [_elements(column, keys[name]) for name, column in columns.items()]


def _elements(column: TextColumn, key: str) -> Iterator[str]:
    begin = f'<attvalue for="{key}" value='
    if column.type == "string":
        return ("" if text is None else f"{begin}{quoteattr(text)}/>" for text in column.texts)
    return ("" if text is None else f'{begin}"{text}"/>' for text in column.texts)


def _changing_values(column: ChangingColumn, key: str) -> Iterator[str]:
    return ("".join(_attvalue(key, change) for change in changes) for changes in column.changes)


def _attvalue(key: str, change: Change) -> str:
    return f'<attvalue for="{key}" value="{change.value}" start="{change.start}" end="{change.end}"/>'


def _attvalues(values: Sequence[str]) -> str:
    text = "".join(values)
    return f"<attvalues>{text}</attvalues>" if text else ""


def _spells(snapshots: Array, times: Array, texts: Sequence[str | None]) -> str:
    """Return the spells in which something is there, from the first of consecutive snapshots to the end of the last."""
    spells = [(int(snapshots[run][0]), int(snapshots[run][-1]) + 1) for run in _runs(snapshots)]
    elements = [
        f'<spell start="{texts[begin]}" end="{texts[end]}"/>' for begin, end in spells if times[begin] < times[end]
    ]
    return f"<spells>{''.join(elements)}</spells>" if elements else ""


def _instruction(target: str, text: str) -> str:
    return f"<?{target} {text}?>\n"


# Reading


def read_gexf(path: str | PathLike[str], *, gold: Any = None, duplicates: Duplicates = "all") -> CrowdGraph:
    """Read a graph from a GEXF file.

    A file that `CrowdGraph.to_gexf` wrote comes back as the graph was, annotations included. If it was edited,
    annotations that do not match its nodes any more are left out, with a warning that names them. Other programs, such
    as Gephi, do not keep what crowdgraph adds; a file that they saved is read as theirs.

    Parameters
    ----------
    path
        The file. In files of other programs nodes and edges need the attributes that `CrowdGraph.from_networkx` names:
        `kind` or `bipartite` of nodes, `label` of edges. The time of a response is the attribute `time` of its edge, or
        else its start. Of an attribute that changes, the last value is read.
    gold, duplicates
        As in `CrowdGraph.from_networkx`.

    Raises
    ------
    InputError
        If the file is not GEXF, is cut short, or declares entities, which could expand without end.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "crowd.gexf"
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> graph.annotate(cg.IBCC().fit(graph)).to_gexf(path)
    >>> again = cg.read_gexf(path)
    >>> again.equals(graph), again.fit().model
    (True, 'ibcc')
    """
    if not is_file(path):
        raise InputError(f"{not_a_file(path)}; give the path of a GEXF file.")
    with paused_garbage_collection():
        parser = GexfParser(fspath(path))
        parser.read()
        about = parser.instructions
        record = read_record(about.get(RECORD), about.get(ANNOTATIONS))
        return graph_from_bipartite(parser.source(), record, gold=gold, duplicates=duplicates)
