"""PyTorch tensors out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from crowdgraph.core.clock import UNITS
from crowdgraph.core.graph import CrowdGraph

__all__ = ["ResponseTensors", "graph_to_torch"]


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
