"""Networks of volunteers as GraphML and GEXF, for Gephi and others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from os import PathLike, fspath
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, IdError, ParameterError, quote
from crowdgraph.io.files import replacing

__all__ = ["check_distinct", "check_xml", "save_network", "volunteer_attributes"]

# Characters that XML has no way to write.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What both formats call a value's type.
TYPES = {str: "string", int: "long", float: "double"}


def check_xml(value: object) -> None:
    """Raise if a value is text that XML files cannot carry."""
    if isinstance(value, str) and NOT_XML.search(value):
        raise IdError(f"{value!r} holds a character that XML files cannot carry; rename it, or use graph.save(path).")


def check_distinct(names: list[str]) -> None:
    """Raise if ids have become the same text."""
    if len(set(names)) < len(names):
        twice = sorted(text for text, count in Counter(names).items() if count > 1)
        raise IdError(f"Ids that differ become the same text in a file: {quote(twice)}. Rename them first.")


def volunteer_attributes(network: VolunteerNetwork, communities: Communities | None) -> dict[str, list[Any]]:
    """What is known of each volunteer, by name: plain numbers in the network's order."""
    found: dict[str, list[Any]] = {"strength": network.strength.tolist()}
    if network.support is not None:
        found["support"] = network.support.tolist()
    if communities is None:
        return found
    if not isinstance(communities, Communities):
        raise ParameterError(
            f"communities= takes Communities, found by a detector; got a {type(communities).__name__}."
        )
    strangers = [name for name in network.ids.tolist() if name not in communities.table]
    if strangers:
        raise AlignmentError(
            f"The communities lack {len(strangers):,} of the network's volunteers ({quote(strangers, most=3)}). Detect "
            "them in this network, or take network.subnetwork(communities.ids)."
        )
    codes = communities.table.codes(network.ids)
    found["community"] = communities.assignment[codes].tolist()
    shares = communities.participation[codes]
    return found | {f"participation_{k}": shares[:, k].tolist() for k in range(len(communities))}


def save_network(
    network: VolunteerNetwork, path: str | PathLike[str], *, communities: Communities | None = None
) -> None:
    """Write GraphML or GEXF; see `VolunteerNetwork.save`."""
    kinds = {".graphml": _graphml, ".gexf": _gexf}
    suffix = next((suffix for suffix in kinds if fspath(path).lower().endswith(suffix)), None)
    if suffix is None:
        raise ParameterError(f"{fspath(path)!r} must end in .graphml or .gexf, which says what to write.")
    names = [str(name) for name in network.ids.tolist()]
    check_distinct(names)
    for text in (*names, network.method):
        check_xml(text)
    attributes = {"label": names, **volunteer_attributes(network, communities)}
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.writelines(kinds[suffix](network, names, attributes))


def _graphml(network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]]) -> Iterator[str]:
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, values in attributes.items():
        yield f'<key id="{name}" for="node" attr.name="{name}" attr.type="{_type(values)}"/>\n'
    yield '<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
    yield '<key id="method" for="graph" attr.name="method" attr.type="string"/>\n'
    yield f'<graph edgedefault="undirected">\n<data key="method">{_text(network.method)}</data>\n'
    columns = [[f'<data key="{name}">{_text(value)}</data>' for value in column] for name, column in attributes.items()]
    quoted = [quoteattr(name) for name in names]
    for name, *about in zip(quoted, *columns, strict=True):
        yield f"<node id={name}>{''.join(about)}</node>\n"
    for left, right, weight in zip(*map(np.ndarray.tolist, network.edges()), strict=True):
        yield f'<edge source={quoted[left]} target={quoted[right]}><data key="weight">{weight}</data></edge>\n'
    yield "</graph>\n</graphml>\n"


def _gexf(network: VolunteerNetwork, names: list[str], attributes: Mapping[str, list[Any]]) -> Iterator[str]:
    # The version that both networkx and all Gephis read.
    yield '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
    yield f"<meta><description>{_text(network.method)}</description></meta>\n"
    yield '<graph defaultedgetype="undirected" mode="static">\n<attributes class="node" mode="static">\n'
    # A node's label is part of the format.
    own = {name: values for name, values in attributes.items() if name != "label"}
    for name, values in own.items():
        yield f'<attribute id="{name}" title="{name}" type="{_type(values)}"/>\n'
    yield "</attributes>\n<nodes>\n"
    columns = [[f'<attvalue for="{name}" value="{value}"/>' for value in column] for name, column in own.items()]
    quoted = [quoteattr(name) for name in names]
    for name, *about in zip(quoted, *columns, strict=True):
        yield f"<node id={name} label={name}><attvalues>{''.join(about)}</attvalues></node>\n"
    yield "</nodes>\n<edges>\n"
    edges = zip(*map(np.ndarray.tolist, network.edges()), strict=True)
    for number, (left, right, weight) in enumerate(edges):
        yield f'<edge id="{number}" source={quoted[left]} target={quoted[right]} weight="{weight}"/>\n'
    yield "</edges>\n</graph>\n</gexf>\n"


def _type(values: list[Any]) -> str:
    return TYPES[type(values[0])] if values else "string"


def _text(value: object) -> str:
    # A bare carriage return would be read as a line feed.
    return escape(str(value), {"\r": "&#13;"})
