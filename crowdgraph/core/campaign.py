"""Campaigns: what came out of asking volunteers as a policy decides, question by question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdgraph.core.columns import Array, Sealed, object_array, read_only
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ParameterError, ResultError

__all__ = ["FIGURES", "Campaign"]

# What is told at each update.
FIGURES = ("spent", "accuracy", "log_loss", "calibration", "cost", "n_retired", "retired_error", "seconds")


@dataclass(frozen=True, eq=False, kw_only=True)
class Campaign(Sealed, Tabular):
    """What was known after each update of a campaign, beside the truth.

    Attributes
    ----------
    policy
        What decided who is asked about what.
    spent
        How many responses there were at each update, of shape (T,).
    accuracy, log_loss
        The share of items whose most probable class is right, and the mean of minus the log probability of the right
        class, at each update, both of shape (T,).
    calibration
        The expected calibration error: how far stated certainty is from the share that is right, of shape (T,).
    cost
        What the responses so far cost, in units of payment and effort, of shape (T,).
    n_retired, retired_error
        How many items were retired, and the share of them whose settled class is wrong (NaN if none), of shape (T,).
    seconds
        How long each decision took, for all questions until the next update, of shape (T,).
    loads
        How many responses each volunteer gave, of shape (V,).
    retired_items
        The items that were retired in the end.
    """

    policy: str
    spent: Array
    accuracy: Array
    log_loss: Array
    calibration: Array
    cost: Array
    n_retired: Array
    retired_error: Array
    seconds: Array
    loads: Array
    retired_items: Array

    def __post_init__(self) -> None:
        for name in (*FIGURES, "loads", "retired_items"):
            whole = np.int64 if name in {"spent", "n_retired"} else None
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), dtype=whole)))
        lengths = {name: len(getattr(self, name)) for name in FIGURES}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A campaign needs as many figures as updates; got {lengths}.")
        if (np.diff(self.spent) < 0).any():
            raise ResultError("What was spent must not fall from one update to the next.")

    @property
    def gini(self) -> float:
        """How unequally responses are shared among the volunteers: 0 if all gave as many, near 1 if one gave all."""
        loads = np.sort(self.loads.astype(np.float64))
        if not loads.sum():
            return 0.0
        ranks = np.arange(1, len(loads) + 1)
        return float((2 * ranks - len(loads) - 1) @ loads / (len(loads) * loads.sum()))

    def spent_until(self, accuracy: float) -> float:
        """After how many responses accuracy has reached this, and keeps it until the end; infinity if it never does."""
        if not 0 <= accuracy <= 1:
            raise ParameterError(f"accuracy={accuracy!r} must be a share from 0 to 1.")
        below = np.flatnonzero(self.accuracy < accuracy)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.spent[first]) if first < len(self.spent) else float("inf")

    def _columns(self) -> Columns:
        """One row for each update."""
        return {
            "policy": object_array([self.policy] * len(self.spent)),
            **{name: getattr(self, name) for name in FIGURES},
        }

    def __repr__(self) -> str:
        if not len(self.spent):
            return f"Campaign({self.policy}: nothing was asked)"
        retired = f", {self.n_retired[-1]:,} items retired" if self.n_retired[-1] else ""
        return (
            f"Campaign({self.policy}: {self.spent[-1]:,} responses, accuracy {self.accuracy[-1]:.3f}, log loss "
            f"{self.log_loss[-1]:.3f}{retired})"
        )
