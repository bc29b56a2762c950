"""Read the GraphML and GEXF files of networks that `VolunteerNetwork.save` wrote."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

import numpy as np

from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import CrowdGraphError, InputError
from crowdgraph.io._files import is_file, parse_xml
from crowdgraph.io.networks import P_VALUE, build_network, p_value_array, report_left_out
from crowdgraph.messages import quote

# How the files say what they are, and the settings of the network.
MARK = "volunteer_network"


def read_network(path: str | PathLike[str]) -> VolunteerNetwork:
    """Read a network from a file; see `VolunteerNetwork.load`."""
    readers = {".graphml": _GraphMLReader, ".gexf": _GEXFReader}
    name = fspath(path)
    kind = next((suffix for suffix in readers if name.lower().endswith(suffix)), None)
    if kind is None:
        raise InputError(f"{name!r} must end in .graphml or .gexf, as the files that network.save(path) writes.")
    if not is_file(path):
        raise InputError(f"{name!r} does not exist or is not a file; give the path that network.save(path) wrote.")
    reader = readers[kind]()
    try:
        with Path(path).open("rb") as file:
            reader.read(file)
        return reader.network()
    except expat.ExpatError as error:
        raise InputError(
            f"{name!r} is damaged or incomplete: {error}. Write it again with network.save(path)."
        ) from error
    except (LookupError, TypeError, ValueError) as error:
        why = error if isinstance(error, CrowdGraphError) else f"{error}; network.save(path) never writes that."
        raise InputError(f"{name!r} cannot be read: {why}") from error


class _NetworkReader:
    """Gathers nodes, links and settings from the events of a parser; formats differ in where these are."""

    root: str

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.attributes: list[str] = []
        self.nodes: list[str] = []
        self.support: list[float] = []
        self.left: list[str] = []
        self.right: list[str] = []
        self.weights: list[float] = []
        self.p_values: list[float] = []
        self.is_tested = False
        self._depth = 0
        self._text: list[str] = []

    def read(self, file: BinaryIO) -> None:
        """Parse a file."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        # Entities are declared in a DTD only, so that none can be expanded.
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parse_xml(parser, file)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if self._depth == 0 and tag != self.root:
            raise InputError(f"it begins with <{tag[:40]}>; expected <{self.root}>.")
        self._depth += 1
        self._text.clear()
        self.start(tag, attributes)

    def _end(self, name: str) -> None:
        self.end(name.rpartition(" ")[2], "".join(self._text))

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take what the attributes of an element say."""
        if tag == "node":
            self.nodes.append(attributes["id"])
        elif tag == "edge":
            self.left.append(attributes["source"])
            self.right.append(attributes["target"])

    def end(self, tag: str, text: str) -> None:
        """Take what the text of an element says."""

    def network(self) -> VolunteerNetwork:
        """Return the network, once all of the file was read."""
        settings = _read_settings(self.settings.get(MARK))
        code_of = {name: code for code, name in enumerate(self.nodes)}
        unknown = [name for name in (*self.left, *self.right) if name not in code_of]
        if unknown or len(self.weights) != len(self.left):
            raise InputError(
                f"links name unknown nodes ({quote(unknown, most=3)})." if unknown else "some links have no weight."
            )
        if self.is_tested and len(self.p_values) != len(self.left):
            raise InputError("some links have no p-value.")
        if len(self.support) not in (0, len(self.nodes)):
            raise InputError("some nodes have support, and others have none.")
        report_left_out(self.attributes, (), weight=None)
        return build_network(
            [int(name) for name in self.nodes] if settings["ids"] == "integers" else self.nodes,
            left=np.array([code_of[name] for name in self.left], dtype=np.int64),
            right=np.array([code_of[name] for name in self.right], dtype=np.int64),
            weights=np.array(self.weights, dtype=np.float64),
            p_values=p_value_array(self.p_values) if self.is_tested else None,
            method=self.settings["method"],
            params=settings["params"],
            support=self.support if "support" in self.attributes else None,
        )


class _GraphMLReader(_NetworkReader):
    root = "graphml"

    def __init__(self) -> None:
        super().__init__()
        self._owner = "graph"
        self._key = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        if tag in ("graph", "node", "edge"):
            self._owner = tag
        elif tag == "data":
            self._key = attributes["key"]
        elif tag == "key" and attributes["for"] == "node":
            self.attributes.append(attributes["id"])
        elif tag == "key" and attributes["id"] == P_VALUE:
            self.is_tested = True

    def end(self, tag: str, text: str) -> None:
        if tag != "data":
            return
        if self._owner == "graph":
            self.settings[self._key] = text
        elif (self._owner, self._key) == ("node", "support"):
            self.support.append(float(text))
        elif (self._owner, self._key) == ("edge", "weight"):
            self.weights.append(float(text))
        elif (self._owner, self._key) == ("edge", P_VALUE):
            self.p_values.append(float(text))


class _GEXFReader(_NetworkReader):
    root = "gexf"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        if tag == "attribute" and attributes["id"] == P_VALUE:
            self.is_tested = True
        elif tag == "attribute":
            self.attributes.append(attributes["id"])
        elif tag == "attvalue" and attributes["for"] == P_VALUE:
            self.p_values.append(float(attributes["value"]))
        elif tag == "attvalue" and attributes["for"] == "support":
            self.support.append(float(attributes["value"]))
        elif tag == "edge" and "weight" in attributes:
            self.weights.append(float(attributes["weight"]))

    def end(self, tag: str, text: str) -> None:
        names = {"keywords": MARK, "description": "method"}
        if tag in names:
            self.settings[names[tag]] = text


def _refuse_doctype(*_: Any) -> None:
    raise InputError("it declares a document type, which may define entities that expand without end; remove it.")


def _read_settings(text: str | None) -> dict[str, Any]:
    """Return the kind of ids and the settings with which a network was built."""
    try:
        settings = json.loads(text or "")
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict) or settings.keys() != {"ids", "params"}:
        raise InputError(
            "it was not written by network.save(path), or by another program since. Read it with networkx.read_graphml "
            "or networkx.read_gexf, then VolunteerNetwork.from_networkx(graph)."
        )
    return settings
