"""Convert graphs and networks of volunteers to PyTorch Geometric."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core.clock import Moment
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.io._annotated import annotation_or_none, latest_communities, latest_confusion
from crowdgraph.io._columns import import_optional
from crowdgraph.io._known import known_at
from crowdgraph.io.tensors import graph_to_torch

if TYPE_CHECKING:
    pass

__all__ = ["graph_to_pyg", "network_to_pyg"]


def graph_to_pyg(graph: CrowdGraph, *, at: Moment | None = None, dtype: Any = "float32") -> Any:
    """Return volunteers and items as nodes of two types, responses as edges; see `CrowdGraph.to_pyg`."""
    import torch

    data = _data_module().HeteroData()
    view, _ = known_at(graph, at)
    tensors = graph_to_torch(view, dtype=dtype)
    _fill_volunteers(data["volunteer"], view, tensors.dtype)
    _fill_items(data["item"], view, tensors.dtype)
    edges = data["volunteer", "answers", "item"]
    edges.edge_index = torch.stack([tensors.volunteer, tensors.item])
    edges.label = tensors.label
    edges.time = tensors.time.double()
    _add_attributes(edges, "edge_attr", view.responses.attributes, tensors.dtype)
    data.classes, data.labels = list(view.classes), list(view.labels)
    return data


def network_to_pyg(network: VolunteerNetwork, *, dtype: Any = "float32") -> Any:
    """Return volunteers as nodes, and links in both directions; see `VolunteerNetwork.to_pyg`."""
    import torch

    from crowdgraph.tensors._options import tensor_options

    precision = tensor_options(None, dtype).dtype
    left, right, weights = network.pairs()
    ends = np.concatenate([[left, right], [right, left]], axis=1)
    order = np.lexsort(ends[::-1])
    values = {"edge_weight": weights, **network.pair_attributes()}
    return _data_module().Data(
        edge_index=torch.tensor(ends[:, order], dtype=torch.int64),
        num_nodes=len(network),
        ids=network.ids.tolist(),
        **{name: torch.tensor(np.tile(column, 2)[order], dtype=precision) for name, column in values.items()},
    )


def _data_module() -> Any:
    """Import PyTorch Geometric's module of data, without the warnings of what it uses itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_optional("torch_geometric").data


def _fill_volunteers(store: Any, graph: CrowdGraph, dtype: Any) -> None:
    import torch

    store.num_nodes, store.ids = len(graph.volunteers), graph.volunteers.ids.tolist()
    _add_attributes(store, "x", graph.volunteers.attributes, dtype)
    if (confusion := latest_confusion(graph)) is not None:
        store.confusion = torch.tensor(confusion.mean, dtype=dtype)
    if (communities := latest_communities(graph)) is not None:
        codes = graph.volunteers.table.codes(communities.ids)
        store.participation = torch.zeros(store.num_nodes, len(communities), dtype=dtype)
        store.participation[codes] = torch.tensor(communities.participation, dtype=dtype)
        store.community = torch.full((store.num_nodes,), -1)
        store.community[codes] = torch.tensor(communities.assignment, dtype=torch.int64)


def _fill_items(store: Any, graph: CrowdGraph, dtype: Any) -> None:
    import torch

    store.num_nodes, store.ids = len(graph.items), graph.items.ids.tolist()
    _add_attributes(store, "x", graph.items.attributes, dtype)
    store.gold = torch.tensor(graph.gold.probs, dtype=dtype)
    store.gold_mask = torch.tensor(graph.gold.known)
    store.y = torch.tensor(graph.gold.codes, dtype=torch.int64)
    if (probs := annotation_or_none(graph.item_probs)) is not None:
        store.class_probs = torch.tensor(probs, dtype=dtype)


def _add_attributes(store: Any, name: str, attributes: Mapping[str, Array], dtype: Any) -> None:
    """Add the numeric attributes as one matrix, and the names of its columns."""
    import torch

    columns = {key: column for key, values in attributes.items() if (column := _numeric(values)) is not None}
    if columns:
        store[name] = torch.tensor(np.stack(list(columns.values()), axis=1), dtype=dtype)
        store[f"{name}_columns"] = list(columns)


def _numeric(values: Array) -> Array | None:
    """Return a column as real numbers, NaN for null; None if it holds anything but numbers and truth values."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    if values.dtype != object or not all(is_null(value) or isinstance(value, int | float) for value in values.tolist()):
        return None
    numbers = np.array([np.nan if is_null(value) else float(value) for value in values.tolist()])
    return None if np.isnan(numbers).all() else numbers
