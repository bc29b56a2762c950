"""Build networks of volunteers from networkx and igraph graphs, tables of links, and the files that `save` wrote."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from crowdgraph.core._arrays import Array, id_array, plain
from crowdgraph.core._text import quantity
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import CodedColumn, unique_ids
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import (
    AlignmentError,
    ColumnError,
    CrowdGraphWarning,
    DuplicateError,
    InputError,
    MissingValueError,
    check_choice,
    warn,
)
from crowdgraph.io._columns import COUNTED, Column, attribute_array, frame_columns
from crowdgraph.io._ids import encode
from crowdgraph.messages import quote, suggestion, with_article

if TYPE_CHECKING:
    import igraph

__all__ = ["network_from_frame", "network_from_igraph", "network_from_networkx"]

# How networks are called that do not say how they were built.
UNKNOWN_METHOD = "by hand"
# What other tools call the two ends of a link.
END_NAMES = (("volunteer", "neighbour"), ("source", "target"), ("from", "to"), ("node1", "node2"), ("u", "v"))
# Attributes of nodes that networks have themselves, or that repeat the id.
OWN_ATTRIBUTES = ("support", "strength", "label", "id", "name")
# The attribute of links that holds their p-values, and that of a graph that says that links were tested.
P_VALUE, TESTED = "p_value", "tested"
# Weights of the two directions that differ by no more than this share are the same.
MAX_ASYMMETRY = 1e-12


# networkx and igraph


def network_from_networkx(graph: nx.Graph, *, weight: str | None = "weight", method: str | None) -> VolunteerNetwork:
    """Build a network from a networkx graph of volunteers; see `VolunteerNetwork.from_networkx`."""
    if not isinstance(graph, nx.Graph):
        raise InputError(f"Expected a networkx graph; got {with_article(type(graph))}.")
    nodes = {name: nx.get_node_attributes(graph, name) for name in _names(data for _, data in graph.nodes(data=True))}
    _check_one_mode(nodes.get("kind", {}).values(), reader="CrowdGraph.from_networkx(graph)")
    code_of = {node: code for code, node in enumerate(graph)}
    edges = list(graph.edges(data=True))
    edge_names = _names(data for *_, data in edges)
    network = build_network(
        list(code_of),
        left=np.array([code_of[left] for left, _, _ in edges], dtype=np.int64),
        right=np.array([code_of[right] for _, right, _ in edges], dtype=np.int64),
        weights=_edge_weights([data.get(weight) for *_, data in edges], weight, edge_names),
        p_values=_edge_p_values([data.get(P_VALUE) for *_, data in edges], is_tested=bool(graph.graph.get(TESTED))),
        support=_support([nodes["support"].get(node) for node in graph]) if "support" in nodes else None,
        directed=graph.is_directed(),
        **_method_and_params(graph.graph, method),
    )
    report_left_out(nodes, edge_names, weight=weight)
    return network


def network_from_igraph(
    graph: igraph.Graph, *, volunteer: str | None, weight: str | None = "weight", method: str | None
) -> VolunteerNetwork:
    """Build a network from an igraph graph of volunteers; see `VolunteerNetwork.from_igraph`."""
    import igraph

    if not isinstance(graph, igraph.Graph):
        raise InputError(f"Expected an igraph graph; got {with_article(type(graph))}.")
    nodes = {name: graph.vs[name] for name in graph.vs.attributes()}
    _check_one_mode(nodes.get("kind", []), reader="CrowdGraph.from_igraph(graph)")
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    edge_names = graph.es.attributes()
    values = graph.es[weight] if weight in edge_names else [None] * len(ends)
    network = build_network(
        _vertex_ids(nodes, volunteer, n_vertices=graph.vcount()),
        left=ends[:, 0],
        right=ends[:, 1],
        weights=_edge_weights(values, weight, edge_names),
        p_values=_edge_p_values(graph.es[P_VALUE], is_tested=True) if P_VALUE in edge_names else None,
        support=_support(nodes["support"]) if "support" in nodes else None,
        directed=graph.is_directed(),
        **_method_and_params({name: graph[name] for name in graph.attributes()}, method),
    )
    report_left_out([name for name in nodes if name != volunteer], edge_names, weight=weight)
    return network


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _vertex_ids(attributes: Mapping[str, list[Any]], volunteer: str | None, *, n_vertices: int) -> list[Any]:
    if volunteer is not None and volunteer not in attributes:
        raise ColumnError(
            f"Vertices have no attribute {volunteer!r}; they have {quote(attributes) or 'none'}."
            f"{suggestion(volunteer, list(attributes))}"
        )
    name = volunteer or next((name for name in ("name", "id") if name in attributes), None)
    return list(range(n_vertices)) if name is None else attributes[name]


def _check_one_mode(kinds: Iterable[Any], *, reader: str) -> None:
    """Raise if a graph has volunteers and items, rather than volunteers only."""
    if "item" in kinds:
        raise InputError(
            f"The graph has nodes of kind='item': it holds volunteers, items and responses. Read it with {reader}, "
            "then build a network with networks.task_cooccurrence or networks.pi_similarity."
        )


def report_left_out(nodes: Iterable[str], edges: Iterable[str], *, weight: str | None) -> None:
    """Warn of attributes that a network cannot hold."""
    names = {
        "nodes": [name for name in nodes if name not in OWN_ATTRIBUTES],
        "edges": [name for name in edges if name not in (weight or "weight", P_VALUE, "id")],
    }
    parts = [f"{quote(left_out)} of {owner}" for owner, left_out in names.items() if left_out]
    if parts:
        hint = "Communities.from_labels brings communities in." if "community" in names["nodes"] else None
        warn(
            "A VolunteerNetwork holds ids, weights, p-values and support; left out are the attributes "
            f"{' and '.join(parts)}.",
            CrowdGraphWarning,
            hint=hint,
        )


def _edge_weights(values: list[Any], weight: str | None, names: list[str]) -> Array:
    """Return weights as numbers, 1 for edges that have none."""
    if weight not in (None, "weight", *names) and values:
        raise ColumnError(f"No edge has {weight!r}; edges have {quote(names) or 'no attributes'}.")
    numbers = [1.0 if value is None or weight is None else plain(value) for value in values]
    wrong = [value for value in numbers if not isinstance(value, int | float) or isinstance(value, bool)]
    if wrong:
        raise InputError(f"Weights must be numbers; got {quote(wrong, most=3)}. Convert them first.")
    try:
        return np.array(numbers, dtype=np.float64)
    except OverflowError as error:
        raise InputError(f"Weights must be numbers that fit in a float ({error}). Divide them all first.") from error


def _edge_p_values(values: list[Any], *, is_tested: bool) -> Array | None:
    """Return the p-values of edges; None if they were not tested."""
    lacking = sum(value is None for value in values)
    if lacking == len(values) and not (is_tested and not values):
        return None
    if lacking:
        raise InputError(f"{quantity(lacking, 'link')} of {len(values):,} lack {P_VALUE!r}; give it to all or to none.")
    return p_value_array(values)


def p_value_array(values: Iterable[Any]) -> Array:
    """Return p-values of links as numbers; raise `InputError` if they are not above 0 and at most 1."""
    numbers = [plain(value) for value in values]
    wrong = [
        value
        for value in numbers
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1
    ]
    if wrong:
        raise InputError(
            f"{P_VALUE!r} of links must be numbers above 0 and at most 1; got {quote(wrong, most=3)}. Correct them, or "
            "rename the attribute."
        )
    return np.array(numbers, dtype=np.float64)


def _support(values: list[Any]) -> list[Any]:
    lacking = sum(value is None for value in values)
    if lacking:
        raise InputError(f"{quantity(lacking, 'node')} of {len(values):,} lack 'support'; give it to all or to none.")
    return values


def _method_and_params(attributes: Mapping[str, Any], method: str | None) -> dict[str, Any]:
    """Return how a network was built, if the attributes of its graph say it."""
    stored = attributes.get("method")
    params = attributes.get("params", {})
    if isinstance(params, str):
        params = read_params(params)
    return {
        "method": method or (stored if isinstance(stored, str) and stored else UNKNOWN_METHOD),
        "params": params if isinstance(params, Mapping) else {},
    }


def params_text(params: Mapping[str, Any]) -> str:
    """Return settings as JSON; warn of those that would not come back the same."""
    plain_params = {name: plain(value) for name, value in params.items()}
    lost = [name for name, value in plain_params.items() if not _survives_json(value)]
    if lost:
        warn(f"The settings {quote(lost)} cannot be written as text and are left out.", CrowdGraphWarning)
    return json.dumps({name: value for name, value in plain_params.items() if name not in lost})


def _survives_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def read_params(text: str) -> dict[str, Any]:
    """Return the settings that `params_text` wrote; nothing if the text is something else."""
    try:
        params = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return params if isinstance(params, dict) else {}


# Tables


def network_from_frame(
    frame: Any,
    *,
    volunteer: str,
    neighbour: str,
    weight: str,
    volunteers: Iterable[Hashable] | None,
    duplicates: str,
    method: str,
) -> VolunteerNetwork:
    """Build a network from a table of links; see `VolunteerNetwork.from_frame`."""
    check_choice("duplicates", duplicates, ("error", "sum"))
    columns = frame_columns(frame)
    names = _end_columns(columns, volunteer, neighbour)
    ends = [_encode_end(columns[name], name) for name in names]
    ids = _first_appearance(*ends) if volunteers is None else unique_ids(volunteers, kind="volunteer").tolist()
    table = NodeTable("volunteer", id_array(ids))
    left, right = (_codes(end, table) for end in ends)
    if duplicates == "error":
        _check_pairs_differ(left, right, ids)
    return build_network(
        ids,
        left=left,
        right=right,
        weights=_weight_column(columns, weight, len(left)),
        p_values=p_value_array(attribute_array(columns[P_VALUE]).tolist()) if P_VALUE in columns else None,
        method=method,
    )


def _end_columns(columns: Mapping[str, Column], volunteer: str, neighbour: str) -> tuple[str, str]:
    """Return the columns of both ends: those named or, instead of the usual names, what other tools call them."""
    if (volunteer, neighbour) == END_NAMES[0]:
        by_lower = {name.lower(): name for name in columns}
        for first, second in END_NAMES:
            if first in by_lower and second in by_lower:
                return by_lower[first], by_lower[second]
    for role, name in (("volunteer", volunteer), ("neighbour", neighbour)):
        if name not in columns:
            raise ColumnError(
                f"The table has no column {name!r}; it has {quote(columns)}.{suggestion(name, list(columns))} Name the "
                f"column with {role}=."
            )
    return volunteer, neighbour


def _encode_end(column: Column, name: str) -> CodedColumn:
    coded = encode(column, what=name)
    null = np.flatnonzero(coded.codes < 0)
    if len(null):
        raise MissingValueError(f"Column {name!r} is null in rows {quote(null.tolist())}{COUNTED}.")
    return coded


def _first_appearance(left: CodedColumn, right: CodedColumn) -> list[Any]:
    """Return the ids in the order in which the rows name them."""
    both = np.column_stack([left.codes, right.codes + len(left.values)]).ravel()
    codes, first = np.unique(both, return_index=True)
    values = [*left.values.tolist(), *right.values.tolist()]
    return list(dict.fromkeys(values[code] for code in codes[np.argsort(first)]))


def _codes(end: CodedColumn, table: NodeTable) -> Array:
    values = end.values.tolist()
    used = np.unique(end.codes).tolist()
    unknown = [values[code] for code in used if values[code] not in table]
    if unknown:
        raise AlignmentError(
            f"The table links {quantity(len(unknown), 'volunteer')} who {'is' if len(unknown) == 1 else 'are'} not in "
            f"volunteers= ({quote(unknown, most=3)}). Name all volunteers, or leave out volunteers=."
        )
    code_of = np.full(len(values), -1)
    code_of[used] = table.codes([values[code] for code in used])
    return np.asarray(code_of[end.codes])


def _check_pairs_differ(left: Array, right: Array, ids: list[Any]) -> None:
    pairs = np.minimum(left, right) * len(ids) + np.maximum(left, right)
    _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
    repeated = first[counts > 1]
    if len(repeated):
        row = int(repeated.min())
        raise DuplicateError(
            f"{quantity(len(repeated), 'pair')} of volunteers {'is' if len(repeated) == 1 else 'are'} in several rows, "
            f"such as {ids[left[row]]!r} and {ids[right[row]]!r}. If the table lists each link from both ends, leave "
            "one of the two out; to add the weights up, pass duplicates='sum'."
        )


def _weight_column(columns: Mapping[str, Column], weight: str, n_rows: int) -> Array:
    if weight == "weight":
        weight = next((name for name in columns if name.lower() == "weight"), weight)
    if weight not in columns:
        if weight == "weight":
            return np.ones(n_rows)
        raise ColumnError(
            f"The table has no column {weight!r}; it has {quote(columns)}.{suggestion(weight, list(columns))}"
        )
    values = attribute_array(columns[weight])
    if values.dtype.kind not in "iuf":
        raise ColumnError(f"Column {weight!r} must hold numbers; it holds {quote(values.tolist(), most=3)}.")
    return values.astype(np.float64)


# All of them


def build_network(
    ids: list[Any],
    *,
    left: Array,
    right: Array,
    weights: Array,
    p_values: Array | None = None,
    directed: bool = False,
    method: str,
    params: Mapping[str, Any] | None = None,
    support: Any = None,
) -> VolunteerNetwork:
    """Return the network of links between two codes each; links between the same two volunteers add up."""
    from scipy.sparse import csr_array, triu

    _check_links(ids, left, right, weights)
    shape = (len(ids), len(ids))
    if directed:
        both = csr_array((weights, (left, right)), shape=shape)
        _check_symmetric(both)
        upper = csr_array(triu(both, k=1))
    else:
        upper = csr_array((weights, (np.minimum(left, right), np.maximum(left, right))), shape=shape)
    upper.eliminate_zeros()
    matrix = csr_array(upper + upper.T)
    if p_values is not None:
        p_values = _p_value_matrix(p_values, left, right, len(ids), directed=directed)
    # As the functions of `networks` do: similarities of all pairs are dense.
    is_dense = matrix.nnz > len(ids) * (len(ids) - 1) / 2
    return VolunteerNetwork(
        ids=id_array(ids),
        weights=matrix.toarray() if is_dense else matrix,
        method=method,
        params=params or {},
        support=support,
        p_values=p_values,
    )


def _p_value_matrix(p_values: Array, left: Array, right: Array, n_ids: int, *, directed: bool) -> Any:
    """Return the p-values of pairs as a symmetric array; None, with a warning, where pairs have several links."""
    from scipy.sparse import csr_array

    ends = (left, right) if directed else (np.concatenate([left, right]), np.concatenate([right, left]))
    values = p_values if directed else np.tile(p_values, 2)
    if len(np.unique(ends[0] * n_ids + ends[1])) < len(values):
        warn(
            f"Several links join the same two volunteers, so that their weights add up; {P_VALUE!r} is left out.",
            CrowdGraphWarning,
        )
        return None
    matrix = csr_array((values, ends), shape=(n_ids, n_ids))
    if (matrix != matrix.T).nnz:
        raise InputError(f"The graph is directed, and {P_VALUE!r} of the two directions differ; remove the attribute.")
    return matrix


def _check_links(ids: list[Any], left: Array, right: Array, weights: Array) -> None:
    """Raise if a link has no usable weight, or joins a volunteer to themselves."""
    signed = "A VolunteerNetwork has no signs: leave negative links out, or take their absolute values or ranks first."
    problems = (
        (~np.isfinite(weights), "weights that are not finite", "Correct or remove these links."),
        (weights < 0, "negative weights", signed),
        (left == right, "both ends at the same volunteer", "Remove such self-loops."),
    )
    for wrong, words, advice in problems:
        if wrong.any():
            link = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{quantity(int(wrong.sum()), 'link')} {'has' if wrong.sum() == 1 else 'have'} {words}, such as "
                f"{ids[left[link]]!r} - {ids[right[link]]!r} ({weights[link]:g}). {advice}"
            )


def _check_symmetric(weights: Any) -> None:
    gap = float(abs(weights - weights.T).max()) if weights.nnz else 0.0
    if gap > MAX_ASYMMETRY * float(weights.max() if weights.nnz else 0.0):
        raise InputError(
            "The graph is directed, and the weights of the two directions differ. Make it undirected first and decide "
            "how to combine them: with igraph, graph.as_undirected(combine_edges='sum'); with networkx, "
            "graph.to_undirected() takes the weight of one direction, and W = networkx.to_numpy_array(graph); "
            "VolunteerNetwork(ids=list(graph), weights=W + W.T, method=...) adds them up."
        )
