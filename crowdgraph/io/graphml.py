"""Write graphs as GraphML, which Gephi, Cytoscape and others read, and read GraphML."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.clock import Clock, Moment
from crowdgraph.core.graph import CrowdGraph, Duplicates, History
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._annotated import AnnotatedColumns, annotated_columns, without_clashes
from crowdgraph.io._bipartite import ID_KEY, BipartiteGraph, graph_from_bipartite, graph_record, read_record
from crowdgraph.io._files import atomic_file, is_file, not_a_file
from crowdgraph.io._graph_parser import GraphParser
from crowdgraph.io._known import known_at
from crowdgraph.io._network_files import MARK
from crowdgraph.io._payload import JSON, column_texts, column_type, pack_annotations
from crowdgraph.io.networkx import _check_distinct_names, _check_xml, _xml_text, paused_garbage_collection
from crowdgraph.messages import Hint, quote

__all__ = ["read_graphml", "write_graphml"]

BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
# How the values of GraphML's types become Python's.
VALUES = {"int": int, "long": int, "float": float, "double": float, "string": str}
EXPECTED = (
    "expected GraphML with a node for each volunteer and item, such as graph.to_graphml or networkx.write_graphml write"
)


class TextColumn(NamedTuple):
    """A column as text, None where there is nothing, and GraphML's name for the type of its values."""

    type: str
    texts: Sequence[str | None]


# Writing


def write_graphml(
    graph: CrowdGraph, path: str | PathLike[str], *, at: Moment | None = None, history: History = "latest"
) -> None:
    """Write a graph as GraphML; see `CrowdGraph.to_graphml`."""
    view, left_out = known_at(graph, at)
    columns = annotated_columns(view, history)
    names = {
        "volunteer": [f"volunteer:{node_id}" for node_id in view.volunteers],
        "item": [f"item:{node_id}" for node_id in view.items],
    }
    _check_distinct_names([*names["volunteer"], *names["item"]])
    computed = {
        "volunteer": without_clashes(_volunteer_texts(view, columns), view.volunteers.attributes, "volunteers"),
        "item": without_clashes(_item_texts(view, columns), view.items.attributes, "items"),
    }
    nodes = {
        kind: _identity(kind, table) | _own_texts(table.attributes, f"{kind}s") | computed[kind]
        for kind, table in (("volunteer", view.volunteers.table), ("item", view.items.table))
    }
    edge_computed = _response_texts(columns)
    edges = _responses(view) | _own_texts(view.responses.attributes, "responses") | edge_computed
    record = graph_record(
        view, nodes=(ID_KEY, *computed["volunteer"], *computed["item"]), edges=edge_computed, left_out=left_out
    )
    about = {"crowdgraph": json.dumps(record), "crowdgraph_annotations": pack_annotations(view)}
    for text in (*names["volunteer"], *names["item"], *map(str, view.labels), *map(str, view.classes)):
        _check_xml(text)
    for name in (*nodes["volunteer"], *nodes["item"], *edges):
        _check_xml(name)
    ends = (view.responses.volunteer.tolist(), view.responses.item.tolist())
    with (
        paused_garbage_collection(),
        atomic_file(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(_lines(names, nodes, edges, ends, {name: text for name, text in about.items() if text}))


def _lines(
    names: Mapping[str, list[str]],
    nodes: Mapping[str, Mapping[str, TextColumn]],
    edges: Mapping[str, TextColumn],
    ends: tuple[list[int], list[int]],
    about: Mapping[str, str],
) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    node_types = _common_types(nodes.values())
    node_keys = {name: f"n{number}" for number, name in enumerate(node_types)}
    edge_keys = {name: f"e{number}" for number, name in enumerate(edges)}
    graph_keys = {name: f"g{number}" for number, name in enumerate(about)}
    yield from _key_lines("node", node_keys, node_types)
    yield from _key_lines("edge", edge_keys, {name: column.type for name, column in edges.items()})
    yield from _key_lines("graph", graph_keys, dict.fromkeys(about, "string"))
    yield '<graph edgedefault="undirected">\n'
    for name, text in about.items():
        yield f'<data key="{graph_keys[name]}">{_xml_text(text)}</data>\n'
    quoted = {kind: list(map(quoteattr, part)) for kind, part in names.items()}
    for kind, columns in nodes.items():
        for name, *data in zip(quoted[kind], *_data(columns, node_keys), strict=True):
            yield f"<node id={name}>{''.join(data)}</node>\n"
    volunteers, items = (
        map(quoted[kind].__getitem__, codes) for kind, codes in zip(("volunteer", "item"), ends, strict=True)
    )
    for volunteer, item, *data in zip(volunteers, items, *_data(edges, edge_keys), strict=True):
        yield f"<edge source={volunteer} target={item}>{''.join(data)}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _common_types(tables: Iterable[Mapping[str, TextColumn]]) -> dict[str, str]:
    """Return the type of each attribute; text where volunteers and items have different ones."""
    types: dict[str, str] = {}
    for columns in tables:
        for name, column in columns.items():
            types[name] = column.type if types.get(name, column.type) == column.type else "string"
    return types


def _key_lines(owner: str, keys: Mapping[str, str], types: Mapping[str, str]) -> Iterator[str]:
    for name, key in keys.items():
        yield f'<key id="{key}" for="{owner}" attr.name={quoteattr(name)} attr.type="{types[name]}"/>\n'


def _data(columns: Mapping[str, TextColumn], keys: Mapping[str, str]) -> list[Iterator[str]]:
    """Return the elements of each column, one for each row; empty text where there is no value."""
    return [_elements(column, keys[name]) for name, column in columns.items()]


def _elements(column: TextColumn, key: str) -> Iterator[str]:
    begin, end = f'<data key="{key}">', "</data>"
    if column.type == "string":
        return ("" if text is None else f"{begin}{_xml_text(text)}{end}" for text in column.texts)
    return ("" if text is None else f"{begin}{text}{end}" for text in column.texts)


def _identity(kind: str, table: NodeTable) -> dict[str, TextColumn]:
    ids = table.ids.tolist()
    columns = {"kind": TextColumn("string", [kind] * len(ids)), "label": TextColumn("string", list(map(str, ids)))}
    if column_type(table.ids) == JSON:
        columns[ID_KEY] = TextColumn("string", column_texts(table.ids, JSON, owner=f"The ids of the {kind}s"))
    return columns


def _own_texts(attributes: Mapping[str, Array], owner: str) -> dict[str, TextColumn]:
    columns = {}
    for name, column in attributes.items():
        kind = column_type(column)
        texts = column_texts(column, kind, owner=f"The attribute {name!r} of the {owner}")
        columns[name] = TextColumn(_xml_type(kind), texts)
    return columns


def _xml_type(kind: str) -> str:
    """Return GraphML's name for the type of a column; what it has no type for is text."""
    if kind.startswith(("int", "uint")) and kind != "uint64":
        return "long"
    return "double" if kind.startswith("float") else "boolean" if kind == "bool" else "string"


def _responses(graph: CrowdGraph) -> dict[str, TextColumn]:
    responses = graph.responses
    texts = (*map(str, graph.labels), None)  # code -1, no answer, is the last
    types = set(map(type, graph.labels))
    label_type = "long" if types == {int} else "double" if types == {float} else "string"
    return {
        "label": TextColumn(label_type, [texts[code] for code in responses.label.tolist()]),
        "time": time_texts(responses.time, responses.clock),
        "position": TextColumn("long", list(map(str, range(len(responses))))),
    }


def time_texts(times: Array, clock: Clock) -> TextColumn:
    """Return times as numbers, or as ISO text, which ends in Z where the clock has a zone."""
    kind = str(times.dtype)
    texts = column_texts(times, kind, owner="The times")
    if clock.zone is not None:
        texts = [f"{text}Z" for text in texts]
    return TextColumn(_xml_type(kind), texts)


def _volunteer_texts(graph: CrowdGraph, columns: AnnotatedColumns) -> dict[str, TextColumn]:
    clock, about = graph.responses.clock, columns.volunteer
    flat: dict[str, TextColumn] = {}
    if "confusion" in about:
        cells = [f"confusion[{name},{label}]" for name in graph.classes for label in graph.labels]
        flat |= _number_texts(cells, [matrix.ravel() for matrix in about["confusion"]])
    if "participation" in about:
        width = max((len(shares) for shares in about["participation"] if shares is not None), default=0)
        flat |= _number_texts([f"participation[{k}]" for k in range(width)], about["participation"])
    if "community" in about:
        flat["community"] = TextColumn("long", list(map(str, about["community"])))
    for name in ("confusion_times", "participation_times"):
        if name in about:
            flat[name] = TextColumn("string", [json.dumps(time_texts(times, clock).texts) for times in about[name]])
    for name in ("confusion_history", "participation_history", "community_history"):
        if name in about:
            flat[name] = TextColumn("string", [json.dumps(values.tolist()) for values in about[name]])
    return flat


def _item_texts(graph: CrowdGraph, columns: AnnotatedColumns) -> dict[str, TextColumn]:
    flat: dict[str, TextColumn] = {}
    if "class_probs" in columns.item:
        flat |= _number_texts([f"p({name})" for name in graph.classes], columns.item["class_probs"])
    gold = graph.gold
    if (gold.codes >= 0).any():
        classes = (*map(str, graph.classes), None)
        flat["gold"] = TextColumn("string", [classes[code] for code in gold.codes.tolist()])
    if gold.is_soft.any():
        rows = [row if is_soft else None for row, is_soft in zip(gold.probs, gold.is_soft.tolist(), strict=True)]
        probs = _number_texts([f"gold({name})" for name in graph.classes], rows)
        if clashes := [name for name in probs if name in graph.items.attributes]:
            raise ColumnError(f"Files hold gold probabilities of items as {quote(clashes)}; rename these attributes.")
        flat |= probs
    return flat


def _response_texts(columns: AnnotatedColumns) -> dict[str, TextColumn]:
    flat: dict[str, TextColumn] = {}
    if "surprise" in columns.response:
        surprise = np.array(columns.response["surprise"], dtype=np.float64)
        flat["surprise"] = TextColumn("double", column_texts(surprise, "float64", owner="Surprise"))
    if "confusion" in columns.response:
        flat["confusion"] = TextColumn("string", [json.dumps(one.tolist()) for one in columns.response["confusion"]])
    return flat


def _number_texts(names: Sequence[str], rows: Sequence[Array | None]) -> dict[str, TextColumn]:
    """Return a column for each entry of the rows; nothing in rows that are None."""
    nothing = [None] * len(names)
    texts = [nothing if row is None else list(map(str, row.tolist())) for row in rows]
    return {name: TextColumn("double", [row[index] for row in texts]) for index, name in enumerate(names)}


# Reading


def read_graphml(path: str | PathLike[str], *, gold: Any = None, duplicates: Duplicates = "all") -> CrowdGraph:
    """Read a graph from a GraphML file.

    A file that `CrowdGraph.to_graphml` wrote comes back as the graph was, annotations included. If it was edited,
    annotations that do not match its nodes any more are left out, with a warning that names them.

    Parameters
    ----------
    path
        The file. In files of other programs nodes and edges need the attributes that `CrowdGraph.from_networkx` names:
        `kind` or `bipartite` of nodes, `label` of edges.
    gold, duplicates
        As in `CrowdGraph.from_networkx`.

    Raises
    ------
    InputError
        If the file is not GraphML, is cut short, or declares entities, which could expand without end.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "crowd.graphml"
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> graph.annotate(cg.IBCC().fit(graph)).to_graphml(path)
    >>> again = cg.read_graphml(path)
    >>> again.equals(graph), again.fit().model
    (True, 'ibcc')
    """
    if not is_file(path):
        raise InputError(f"{not_a_file(path)}; give the path of a GraphML file.")
    with paused_garbage_collection():
        parser = _GraphMLParser(fspath(path))
        parser.read()
        about = parser.graph
        record = read_record(about.get("crowdgraph"), about.get("crowdgraph_annotations"))
        return graph_from_bipartite(parser.source(), record, gold=gold, duplicates=duplicates)


class _Key(NamedTuple):
    name: str
    type: str


class _GraphMLParser(GraphParser):
    """Collect the nodes and edges of a GraphML file while expat reads it."""

    expected = EXPECTED

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.graph: dict[str, Any] = {}
        self._keys: dict[str, _Key] = {}
        self._defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        self._code_of: dict[str, int] = {}
        self._edges: list[dict[str, Any]] = []
        self._ends: list[tuple[str, str]] = []
        self._directed = False
        # The attributes that <data> belongs to, the key whose text is read, the text, and elements inside of it.
        self._target: dict[str, Any] = self.graph
        self._key: str | None = None
        self._text: list[str] = []
        self._ignored = 0
        self._has_graph = False

    def read(self) -> None:
        """Read the file."""
        self._parse()
        if MARK in self.graph:
            raise InputError(
                f"{self._path!r} is a network of volunteers, not a graph of responses.",
                hint=Hint(
                    "Read it with VolunteerNetwork.load.",
                    cli="Give the file of responses that the network was built from.",
                ),
            )
        self._check_nodes()

    def source(self) -> BipartiteGraph:
        """Return nodes and edges."""
        code_of = self._code_of
        unknown = {end for ends in self._ends for end in ends if end not in code_of}
        if unknown:
            raise InputError(f"{self._path!r} has edges to nodes that it does not have: {quote(sorted(unknown))}.")
        names: list[Hashable] = list(code_of)
        defaults = self._defaults
        return BipartiteGraph(
            names=names,
            nodes=[defaults["node"] | data for data in self._nodes] if defaults["node"] else self._nodes,
            ends=[(code_of[left], code_of[right]) for left, right in self._ends],
            edges=[defaults["edge"] | data for data in self._edges] if defaults["edge"] else self._edges,
            directed=self._directed,
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if self._ignored or (self._key is not None and tag != "default"):
            self._ignored += 1
        elif tag == "data":
            self._start_text(self._attribute("data", attributes, "key"))
        elif tag == "edge":
            self._add_edge(attributes)
        elif tag == "node":
            self._add_node(attributes)
        elif tag == "key":
            self._add_key(attributes)
        elif tag == "default":
            self._text = []
        elif tag == "graph":
            self._start_graph(attributes)
        elif not self._has_root:
            self._start_root(tag)
        elif tag == "hyperedge":
            raise InputError(f"{self._path!r} has a hyperedge; a response joins one volunteer and one item.")
        else:
            self._ignored = 1

    def _end(self, tag: str) -> None:
        if self._ignored:
            self._ignored -= 1
            return
        tag = tag.rpartition(":")[2]
        if tag == "data" and self._key is not None:
            key = self._keys[self._key]
            self._target[key.name] = self._value(key)
            self._key = None
        elif tag in ("node", "edge"):
            self._target = self.graph
        elif tag == "default" and self._key is not None:
            self._set_default(self._keys[self._key])
        elif tag == "key":
            self._key = None

    def _text_part(self, text: str) -> None:
        if self._key is not None and not self._ignored:
            self._text.append(text)

    def _start_text(self, key: str) -> None:
        if key not in self._keys:
            raise InputError(f"{self._path!r} has data of the key {key!r}, which it does not declare.")
        self._key, self._text = key, []

    def _start_root(self, tag: str) -> None:
        self._has_root = True
        if tag != "graphml":
            hint = " Read GEXF with crowdgraph.read_gexf." if tag == "gexf" else ""
            raise InputError(f"{self._path!r} is not GraphML: it begins with <{tag}>; {EXPECTED}.{hint}")

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if self._has_graph:
            raise InputError(f"{self._path!r} has several graphs, or graphs within nodes; give a file with one graph.")
        self._has_graph = True
        self._directed = attributes.get("edgedefault") == "directed"

    def _add_key(self, attributes: dict[str, str]) -> None:
        key = self._attribute("key", attributes, "id")
        kind = attributes.get("attr.type", "string")
        if kind != "boolean" and kind not in VALUES:
            raise InputError(f"{self._path!r} declares the type {kind!r}, which GraphML does not have.")
        self._keys[key] = _Key(attributes.get("attr.name", key), kind)
        self._owner, self._key, self._text = attributes.get("for", "all"), key, []

    def _set_default(self, key: _Key) -> None:
        for owner in ("node", "edge") if self._owner == "all" else (self._owner,):
            if owner in self._defaults:
                self._defaults[owner][key.name] = self._value(key)

    def _add_node(self, attributes: dict[str, str]) -> None:
        name = self._attribute("node", attributes, "id")
        if name in self._code_of:
            raise InputError(f"{self._path!r} has two nodes {name!r}; every node needs an id of its own.")
        self._code_of[name] = len(self._nodes)
        self._target = {}
        self._nodes.append(self._target)

    def _add_edge(self, attributes: dict[str, str]) -> None:
        ends = self._attribute("edge", attributes, "source"), self._attribute("edge", attributes, "target")
        self._target = {}
        self._ends.append(ends)
        self._edges.append(self._target)

    def _attribute(self, tag: str, attributes: dict[str, str], name: str) -> str:
        try:
            return attributes[name]
        except KeyError:
            raise InputError(f"{self._path!r} has a <{tag}> without {name}=; {EXPECTED}.") from None

    def _value(self, key: _Key) -> Any:
        text = "".join(self._text)
        try:
            return BOOLEANS[text.strip().lower()] if key.type == "boolean" else VALUES[key.type](text)
        except (KeyError, ValueError):
            raise InputError(
                f"{self._path!r} declares the attribute {key.name!r} to be of type {key.type}, and has {text!r:.60}."
            ) from None
