"""Draws from the posterior for ArviZ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

from crowdgraph.core._arrays import Array, object_array, to_list
from crowdgraph.core.clock import UNITS
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import NotAnnotatedError
from crowdgraph.io._columns import import_optional

__all__ = ["ResponseTensors", "fit_to_arviz", "graph_to_torch"]


class ResponseTensors(NamedTuple):
    """A graph's columns as tensors of their own; changing them leaves the graph as it is.

    Attributes
    ----------
    volunteer, item, label
        Codes, int64, of shape (R,); a label of -1 is an item that was shown but not answered.
    time
        int64 or float64, of shape (R,); datetimes as float64 seconds since 1970 (UTC, where they have a zone).
    gold
        float64, of shape (N, J); NaN where nothing is known.
    """

    volunteer: torch.Tensor
    item: torch.Tensor
    label: torch.Tensor
    time: torch.Tensor
    gold: torch.Tensor


def graph_to_torch(graph: CrowdGraph, *, device: Any = None) -> ResponseTensors:
    """The columns as tensors; see `CrowdGraph.to_torch`."""
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


# Not "label": ArviZ gives that name to a dimension of its own when it makes tables.
LABEL = "response_label"
DIMS = {"class_probs": ["class"], "item_class": ["item"], "confusion": ["volunteer", "class", LABEL]}


def fit_to_arviz(fit: ModelFit) -> Any:
    """The draws of a fit as a tree of xarray datasets; see `ModelFit.to_arviz`."""
    draws = fit.draws
    if draws is None:
        raise NotAnnotatedError(f"The model {fit.model!r} draws nothing from the posterior; fit GibbsIBCC().")
    posterior = {"class_probs": draws.class_probs, "item_class": draws.item_classes}
    if len(draws.volunteers):
        posterior["confusion"] = draws.confusion
    return import_optional("arviz_base").from_dict(
        {"posterior": posterior, "sample_stats": {"lp": draws.log_joint}},
        dims={name: DIMS[name] for name in posterior},
        coords={
            "draw": np.arange(draws.first, draws.first + len(draws)),
            "class": _coordinate(draws.classes),
            LABEL: _coordinate(draws.labels),
            "item": _coordinate(to_list(draws.items)),
            "volunteer": _coordinate(to_list(draws.volunteers)),
        },
    )


def _coordinate(values: Iterable[Hashable]) -> Array:
    """Numbers and text as they are; anything else as text, since xarray would take tuples for several levels."""
    return object_array(value if isinstance(value, str | int | float) else str(value) for value in values)
