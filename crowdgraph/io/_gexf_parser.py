"""Collect the nodes and edges of a GEXF file."""

from __future__ import annotations

from typing import Any, NamedTuple

from crowdgraph.errors import InputError
from crowdgraph.io._bipartite import BipartiteGraph
from crowdgraph.io._graph_parser import GraphParser
from crowdgraph.messages import Hint, quote

# The processing instructions of our own files: what the graph is like, its annotations, and that it is a network.
RECORD, ANNOTATIONS, NETWORK = "crowdgraph", "crowdgraph-annotations", "crowdgraph-network"
# The id of an attribute begins so if its title is not its name.
ORIGINAL = "crowdgraph:"
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
# How the values of GEXF's types become Python's; those of other types stay text.
VALUES: dict[str, Any] = {"integer": int, "long": int, "short": int, "byte": int, "float": float, "double": float}
EXPECTED = "expected GEXF with a node for each volunteer and item, such as graph.to_gexf or networkx.write_gexf write"


class _Declared(NamedTuple):
    name: str
    type: str


class GexfParser(GraphParser):
    """Collect the nodes and edges of a GEXF file while expat reads it."""

    expected = EXPECTED

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.instructions: dict[str, str] = {}
        self._parts: dict[str, list[str]] = {}
        self._declared: dict[str, dict[str, _Declared]] = {"node": {}, "edge": {}}
        self._defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        self._code_of: dict[str, int] = {}
        self._edges: list[dict[str, Any]] = []
        self._structure: list[dict[str, str]] = []
        # What attvalues belong to, which may be nested nodes; the class and id of the attribute that is declared.
        self._open: list[tuple[str, dict[str, Any]]] = []
        self._class, self._attribute_id = "node", ""
        self._text: list[str] | None = None
        self._directed = self._has_graph = False
        self._time_format = "double"

    def read(self) -> None:
        """Read the file."""
        self._parse()
        self.instructions = {target: "".join(parts) for target, parts in self._parts.items()}
        if NETWORK in self.instructions:
            raise InputError(
                f"{self._path!r} is a network of volunteers, not a graph of responses.",
                hint=Hint(
                    "Read it with VolunteerNetwork.load, or networks over time with networkx.read_gexf.",
                    cli="Give the file of responses that the network was built from.",
                ),
            )
        self._check_nodes()

    def source(self) -> BipartiteGraph:
        """Return nodes and edges."""
        code_of, is_ours = self._code_of, RECORD in self.instructions
        ends = [(edge["source"], edge["target"]) for edge in self._structure]
        unknown = {end for pair in ends for end in pair if end not in code_of}
        if unknown:
            raise InputError(f"{self._path!r} has edges to nodes that it does not have: {quote(sorted(unknown))}.")
        complete = self._own_response if is_ours else self._foreign_response
        for data, structure in zip(self._edges, self._structure, strict=True):
            complete(data, structure)
        return BipartiteGraph(
            names=list(code_of),
            nodes=[self._defaults["node"] | data for data in self._nodes],
            ends=[(code_of[left], code_of[right]) for left, right in ends],
            edges=[self._defaults["edge"] | data for data in self._edges] if self._defaults["edge"] else self._edges,
            directed=self._directed,
        )

    def _own_response(self, data: dict[str, Any], structure: dict[str, str]) -> None:
        data["label"], data["time"] = structure.get("label"), structure.get("start")
        number = structure.get("id", "")
        if number.isdecimal():
            data["position"] = int(number)

    def _foreign_response(self, data: dict[str, Any], structure: dict[str, str]) -> None:
        if "label" in structure:
            data["label"] = structure["label"]
        if "start" in structure and "time" not in data:
            data["time"] = self._time(structure["start"])
        if "weight" in structure:
            data["weight"] = self._number(structure["weight"], "the weight of an edge")

    def _time(self, text: str) -> Any:
        if self._time_format.lower() in ("date", "datetime"):
            return text
        return self._number(text, "the start of an edge")

    def _number(self, text: str, what: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{self._path!r} has {text!r:.60} as {what}; expected a number.") from None

    def _instruction(self, target: str, text: str) -> None:
        self._parts.setdefault(target, []).append(text)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if tag == "attvalue":
            self._add_value(attributes)
        elif tag == "edge":
            self._add_edge(attributes)
        elif tag == "node":
            self._add_node(attributes)
        elif tag == "attribute":
            self._declare(attributes)
        elif tag == "attributes":
            self._class = self._required(tag, attributes, "class")
        elif tag == "default":
            self._text = []
        elif tag == "graph":
            self._start_graph(attributes)
        elif not self._has_root:
            self._start_root(tag)

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        if tag in ("node", "edge"):
            self._open.pop()
        elif tag == "default" and self._text is not None:
            declared = self._declared[self._class][self._attribute_id]
            self._defaults[self._class][declared.name] = self._value(declared, "".join(self._text))
            self._text = None

    def _text_part(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _start_root(self, tag: str) -> None:
        self._has_root = True
        if tag != "gexf":
            hint = " Read GraphML with crowdgraph.read_graphml." if tag == "graphml" else ""
            raise InputError(f"{self._path!r} is not GEXF: it begins with <{tag}>; {EXPECTED}.{hint}")

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if not self._has_root or self._has_graph:
            raise InputError(f"{self._path!r} has several graphs, or one outside of <gexf>; {EXPECTED}.")
        self._has_graph = True
        self._directed = attributes.get("defaultedgetype") == "directed"
        self._time_format = attributes.get("timeformat", attributes.get("timetype", "double"))

    def _declare(self, attributes: dict[str, str]) -> None:
        self._attribute_id = self._required("attribute", attributes, "id")
        if self._class not in self._declared:
            raise InputError(f"{self._path!r} has attributes of class {self._class!r}; expected 'node' or 'edge'.")
        name = attributes.get("title", self._attribute_id)
        if self._attribute_id.startswith(ORIGINAL):
            name = self._attribute_id.removeprefix(ORIGINAL)
        self._declared[self._class][self._attribute_id] = _Declared(name, attributes.get("type", "string"))

    def _add_node(self, attributes: dict[str, str]) -> None:
        name = self._required("node", attributes, "id")
        if name in self._code_of:
            raise InputError(f"{self._path!r} has two nodes {name!r}; every node needs an id of its own.")
        self._code_of[name] = len(self._nodes)
        self._nodes.append({})
        self._open.append(("node", self._nodes[-1]))

    def _add_edge(self, attributes: dict[str, str]) -> None:
        self._required("edge", attributes, "source")
        self._required("edge", attributes, "target")
        self._structure.append(attributes)
        self._edges.append({})
        self._open.append(("edge", self._edges[-1]))

    def _add_value(self, attributes: dict[str, str]) -> None:
        key = self._required("attvalue", attributes, "for")
        owner, data = self._open[-1] if self._open else ("node", {})
        declared = self._declared[owner].get(key)
        if declared is None:
            raise InputError(f"{self._path!r} has a value of the {owner} attribute {key!r}, which it does not declare.")
        data[declared.name] = self._value(declared, self._required("attvalue", attributes, "value"))

    def _required(self, tag: str, attributes: dict[str, str], name: str) -> str:
        try:
            return attributes[name]
        except KeyError:
            raise InputError(f"{self._path!r} has a <{tag}> without {name}=; {EXPECTED}.") from None

    def _value(self, declared: _Declared, text: str) -> Any:
        try:
            if declared.type == "boolean":
                return BOOLEANS[text.strip().lower()]
            return VALUES.get(declared.type, str)(text)
        except (KeyError, ValueError):
            raise InputError(
                f"{self._path!r} declares the attribute {declared.name!r} to be of type {declared.type}, and has "
                f"{text!r:.60}."
            ) from None
