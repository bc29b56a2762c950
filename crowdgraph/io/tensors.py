"""Convert graphs to PyTorch tensors, and draws from the posterior to ArviZ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, object_array, to_list
from crowdgraph.core.clock import UNITS
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import NotAnnotatedError
from crowdgraph.io._columns import import_optional

if TYPE_CHECKING:
    import torch

__all__ = ["ResponseTensors", "fit_to_arviz", "graph_to_torch"]

# Not "label": ArviZ uses that name for a dimension of its own in tables.
LABEL_DIMENSION = "response_label"
DIMENSIONS = {"class_probs": ["class"], "item_class": ["item"], "confusion": ["volunteer", "class", LABEL_DIMENSION]}


class ResponseTensors(NamedTuple):
    """Copies of a graph's columns as tensors; changing them leaves the graph unchanged.

    Attributes
    ----------
    volunteer, item, label
        Codes, int64, of shape (R,); a label of -1 is an item that was quote but not answered.
    time
        int64 or float64, of shape (R,); datetimes as float64 seconds since 1970 (UTC, where they have a zone).
    gold
        float64, of shape (N, J); NaN where the class is unknown.
    """

    volunteer: torch.Tensor
    item: torch.Tensor
    label: torch.Tensor
    time: torch.Tensor
    gold: torch.Tensor


def graph_to_torch(graph: CrowdGraph, *, device: Any = None) -> ResponseTensors:
    """Copy the columns of a graph to tensors; see `CrowdGraph.to_torch`."""
    import torch

    responses = graph.responses
    time = responses.time
    if time.dtype.kind == "M":
        time = time.view(np.int64) / UNITS[np.datetime_data(time.dtype)[0]]
    return ResponseTensors(
        volunteer=torch.tensor(responses.volunteer, dtype=torch.int64, device=device),
        item=torch.tensor(responses.item, dtype=torch.int64, device=device),
        label=torch.tensor(responses.label, dtype=torch.int64, device=device),
        time=torch.tensor(time, device=device),
        gold=torch.tensor(graph.gold.probs, device=device),
    )


def fit_to_arviz(fit: ModelFit) -> Any:
    """Return the draws of a fit as a tree of xarray datasets; see `ModelFit.to_arviz`."""
    draws = fit.draws
    if draws is None:
        raise NotAnnotatedError(f"The model {fit.model!r} draws nothing from the posterior; fit GibbsIBCC().")
    posterior = {"class_probs": draws.class_probs, "item_class": draws.item_classes}
    if len(draws.volunteers):
        posterior["confusion"] = draws.confusion
    return import_optional("arviz_base").from_dict(
        {"posterior": posterior, "sample_stats": {"lp": draws.log_joint}},
        dims={name: DIMENSIONS[name] for name in posterior},
        coords={
            "draw": np.arange(draws.first, draws.first + len(draws)),
            "class": _coordinate(draws.classes),
            LABEL_DIMENSION: _coordinate(draws.labels),
            "item": _coordinate(to_list(draws.items)),
            "volunteer": _coordinate(to_list(draws.volunteers)),
        },
    )


def _coordinate(values: Iterable[Hashable]) -> Array:
    """Return numbers and text as they are, anything else as text: xarray would split tuples into several levels."""
    return object_array(value if isinstance(value, str | int | float) else str(value) for value in values)
