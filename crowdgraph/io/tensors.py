"""Convert graphs, fits, tracks and networks to PyTorch tensors, and draws from the posterior to ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from crowdgraph.core._arrays import Array, object_array, to_list
from crowdgraph.core._parameters import check_non_negative
from crowdgraph.core.clock import ticks, ticks_per_second
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import NotAnnotatedError, ParameterError
from crowdgraph.io._columns import import_optional

if TYPE_CHECKING:
    from torch import Tensor

    from crowdgraph.tensors import AnswerMatrix, Steps
    from crowdgraph.tensors._options import TensorOptions

__all__ = [
    "ConfusionTensors",
    "FitTensors",
    "ResponseTensors",
    "fit_to_arviz",
    "fit_to_torch",
    "graph_to_torch",
    "network_to_torch",
    "track_to_torch",
]

# Not "label": ArviZ uses that name for a dimension of its own in tables.
LABEL_DIMENSION = "response_label"
DIMENSIONS = {"class_probs": ["class"], "item_class": ["item"], "confusion": ["volunteer", "class", LABEL_DIMENSION]}
# Columns of times, which stay in double precision where the device has it: single precision cannot tell the minutes of
# a date.
TIMES = ("time", "times")


class TensorGroup:
    """Mixin for frozen dataclasses of tensors on one device, the real ones of one precision.

    They are copies: changing them changes nothing else.
    """

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Return the tensors on another device, or in another precision; what is left out stays.

        Parameters
        ----------
        device
            Such as ``"cuda"``; or the torch type alone.
        dtype
            ``"float64"``, ``"float32"`` or the torch type.
        """
        import torch

        from crowdgraph.tensors._options import tensor_options

        if isinstance(device, torch.dtype):
            device, dtype = None, device
        options = tensor_options(self.device if device is None else device, self.dtype if dtype is None else dtype)
        moved = {name: _moved(name, tensor, options) for name, tensor in self._tensors().items()}
        return replace(self, **moved)  # type: ignore[type-var]

    @property
    def device(self) -> Any:
        """Where the tensors are."""
        return self._real.device

    @property
    def dtype(self) -> Any:
        """The type of the tensors that hold real numbers, other than times."""
        return self._real.dtype

    @property
    def _real(self) -> Tensor:
        return next(
            tensor for name, tensor in self._tensors().items() if tensor.is_floating_point() and name not in TIMES
        )

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        import torch

        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self._tensors().items())
        return f"{type(self).__name__}({shapes}; {_precision(self)})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ResponseTensors(TensorGroup):
    """The responses and the gold of a graph as tensors; `CrowdGraph.to_torch` returns it.

    Attributes
    ----------
    volunteer, item, label
        Codes, int64, of shape (R,), in order of time; a label of -1 is an item that was shown but not answered.
    time
        int64 or float64, of shape (R,); datetimes as seconds since 1970 (UTC, where they have a zone). On devices
        without double precision float64 becomes float32, which cannot tell the minutes of a date: use `elapsed`.
    elapsed
        The time since the volunteer's previous response, 0 for the first, of shape (R,).
    gold
        The known class probabilities, of shape (N, J); NaN where nothing is known.
    n_volunteers, n_labels
        K and L.
    label_probs
        The probability of each label, of shape (R, L), where some answers are soft; None otherwise.
    """

    volunteer: Tensor
    item: Tensor
    label: Tensor
    time: Tensor
    elapsed: Tensor
    gold: Tensor
    n_volunteers: int
    n_labels: int
    label_probs: Tensor | None = None

    @property
    def n_items(self) -> int:
        """The number of items, N."""
        return int(self.gold.shape[0])

    @property
    def n_classes(self) -> int:
        """The number of classes, J."""
        return int(self.gold.shape[1])

    def __len__(self) -> int:
        return len(self.volunteer)

    @cached_property
    def answers(self) -> AnswerMatrix:
        """The responses that have a label, as `crowdgraph.tensors` takes them: soft ones with each of their labels."""
        from crowdgraph.tensors import AnswerMatrix

        columns, weight = (self.volunteer, self.item, self.label), None
        if self.label_probs is not None:
            row, label = self.label_probs.nonzero(as_tuple=True)
            columns, weight = (self.volunteer[row], self.item[row], label), self.label_probs[row, label]
        return AnswerMatrix(
            *columns,
            weight=weight,
            n_volunteers=self.n_volunteers,
            n_items=self.n_items,
            n_labels=self.n_labels,
        )

    def steps(self, drift: float = 0.0) -> Steps:
        """Return the responses as steps, which the filter and the smoother of DynIBCC take.

        Volunteers follow one another, each in order of time; responses without an answer are steps, too. Every answer
        has the weight 1.

        Parameters
        ----------
        drift
            The variance that log odds gain per second, or per unit where times are numbers, without any answer.
        """
        import torch

        from crowdgraph.tensors.dynibcc import MAX_DRIFT, Steps

        check_non_negative("drift", drift)
        order = torch.argsort(self.volunteer, stable=True)
        counts = torch.bincount(self.volunteer, minlength=self.n_volunteers)
        return Steps(
            starts=torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            item=self.item[order],
            label=self.label[order],
            weight=torch.ones_like(self.elapsed),
            drift=(self.elapsed[order] * drift).clamp(max=MAX_DRIFT),
            shares=None if self.label_probs is None else self.label_probs[order],
        )

    def __repr__(self) -> str:
        return (
            f"ResponseTensors({len(self):,} responses of {self.n_volunteers:,} volunteers about {self.n_items:,} "
            f"items, {self.n_classes:,} classes, {self.n_labels:,} labels; {_precision(self)})"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FitTensors(TensorGroup):
    """What a model inferred, as tensors; `ModelFit.to_torch` returns it. None is what the model does not have.

    Attributes
    ----------
    item_probs, class_probs
        The probabilities of the classes for each item, of shape (N, J), and their proportions, of shape (J,).
    classes
        The concentration of the classes, of shape (J,).
    confusion
        The concentration of each volunteer's confusion after their last response, of shape (K, J, L).
    confusion_prior
        The concentration of the prior of confusion, (1, J, L) if all volunteers share it, else (K, J, L).
    class_prior
        The concentration of the prior of the classes, of shape (J,).
    """

    item_probs: Tensor
    class_probs: Tensor
    classes: Tensor | None = None
    confusion: Tensor | None = None
    confusion_prior: Tensor | None = None
    class_prior: Tensor | None = None

    @property
    def mean_confusion(self) -> Tensor | None:
        """The expected confusion of each volunteer, with rows that sum to one, of shape (K, J, L)."""
        return None if self.confusion is None else self.confusion / self.confusion.sum(-1, keepdim=True)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ConfusionTensors(TensorGroup):
    """Confusion over time as tensors; `ConfusionTrack.to_torch` returns it.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, int64, of shape (K + 1,).
    times, concentration
        The time and the Dirichlets of each step, of shapes (S,) and (S, J, L); times are as in `ResponseTensors`.
    initial
        The Dirichlets before the first step, of shape (K, J, L); of a static model, those that always hold.
    """

    starts: Tensor
    times: Tensor
    concentration: Tensor
    initial: Tensor


def graph_to_torch(graph: CrowdGraph, *, device: Any = None, dtype: Any = "float64") -> ResponseTensors:
    """Copy the columns of a graph to tensors; see `CrowdGraph.to_torch`."""
    responses, label_probs = graph.responses, graph.label_probs
    soft = {} if label_probs is None else {"label_probs": label_probs}
    return ResponseTensors(
        **_copies(
            device,
            dtype,
            volunteer=responses.volunteer,
            item=responses.item,
            label=responses.label,
            time=_numbers(responses.time),
            elapsed=_elapsed(graph),
            gold=graph.gold.probs,
            **soft,
        ),
        n_volunteers=len(graph.volunteers),
        n_labels=len(graph.labels),
    )


def fit_to_torch(fit: ModelFit, *, device: Any = None, dtype: Any = "float64") -> FitTensors:
    """Copy what a model inferred to tensors; see `ModelFit.to_torch`."""
    prior, track = fit.prior, fit.confusion
    arrays = {
        "item_probs": fit.item_probs,
        "class_probs": fit.class_probs,
        "classes": fit.class_concentration,
        "confusion": None if track is None else track.latest().concentration,
        "class_prior": None if prior is None else prior.class_concentration,
    }
    if prior is not None:
        arrays["confusion_prior"] = (
            prior.shared[None] if track is None or not len(prior.ids) else prior.of_all(track.ids.tolist())
        )
    return FitTensors(**_copies(device, dtype, **{name: array for name, array in arrays.items() if array is not None}))


def track_to_torch(track: ConfusionTrack, *, device: Any = None, dtype: Any = "float64") -> ConfusionTensors:
    """Copy confusion over time to tensors; see `ConfusionTrack.to_torch`."""
    return ConfusionTensors(
        **_copies(
            device,
            dtype,
            starts=track.starts,
            times=_numbers(track.times),
            concentration=track.concentration,
            initial=track.initial,
        )
    )


def network_to_torch(
    network: VolunteerNetwork, *, dense: bool | None = None, device: Any = None, dtype: Any = "float64"
) -> Tensor:
    """Copy the weights of a network to a tensor; see `VolunteerNetwork.to_torch`."""
    import torch

    from crowdgraph.tensors._options import tensor_options
    from crowdgraph.tensors.devices import limits_of

    options, weights = tensor_options(device, dtype), network.weights
    if dense is None:
        dense = isinstance(weights, np.ndarray)
    if dense:
        array = weights if isinstance(weights, np.ndarray) else weights.toarray()
        return torch.tensor(array, dtype=options.dtype, device=options.device)
    if not limits_of(options.device).sparse:
        raise ParameterError(
            f"device={device!r} has no sparse matrices (CSR).",
            hint="Use dense=True there, or VolunteerNetwork.to_pyg, which lists the links.",
        )
    starts, columns, values = _sparse_parts(weights)
    with warnings.catch_warnings():
        # torch warns once that sparse tensors may change; our tests cover what is used of them.
        warnings.filterwarnings("ignore", message="Sparse")
        return torch.sparse_csr_tensor(
            torch.tensor(starts, dtype=torch.int64),
            torch.tensor(columns, dtype=torch.int64),
            torch.tensor(values, dtype=options.dtype),
            weights.shape,
            check_invariants=False,
        ).to(options.device)


def _sparse_parts(weights: Any) -> tuple[Array, Array, Array]:
    """Return where the rows of weights start, the columns of the weights and their values."""
    from scipy.sparse import csr_array

    matrix = csr_array(weights)
    return matrix.indptr, matrix.indices, matrix.data


def _copies(device: Any, dtype: Any, **arrays: Array) -> dict[str, Tensor]:
    """Return arrays as new tensors: codes as int64, real numbers in the precision asked for."""
    import torch

    from crowdgraph.tensors._options import tensor_options

    options = tensor_options(device, dtype)
    # Integers are codes, or times.
    kinds = {name: torch.float64 if array.dtype.kind == "f" else torch.int64 for name, array in arrays.items()}
    copies = {name: torch.tensor(array, dtype=kinds[name]) for name, array in arrays.items()}
    return {name: _moved(name, tensor, options) for name, tensor in copies.items()}


def _moved(name: str, tensor: Tensor, options: TensorOptions) -> Tensor:
    """Return a tensor on a device; real numbers in a precision, but times in double precision where there is one."""
    import torch

    from crowdgraph.tensors.devices import limits_of

    if not tensor.is_floating_point():
        return tensor.to(options.device)
    exact = name in TIMES and limits_of(options.device).float64
    return tensor.to(options.device, torch.float64 if exact else options.dtype)


def _numbers(times: Array) -> Array:
    """Return times as numbers, datetimes as seconds since 1970."""
    return ticks(times) / ticks_per_second(times) if times.dtype.kind == "M" else times


def _elapsed(graph: CrowdGraph) -> Array:
    """Return the time since the volunteer's previous response, 0 for the first; datetimes give seconds."""
    times = graph.responses.time
    order, starts = graph.responses.by_volunteer
    tick_counts = ticks(times)[order].astype(np.float64)
    with np.errstate(over="ignore"):
        gaps = np.diff(tick_counts, prepend=tick_counts[:1])
    gaps[starts[:-1][np.diff(starts) > 0]] = 0
    elapsed = np.empty(len(times))
    # No more than single precision can hold.
    elapsed[order] = np.minimum(gaps / ticks_per_second(times), np.finfo(np.float32).max)
    return elapsed


def _precision(tensors: TensorGroup) -> str:
    return f"{str(tensors.dtype).removeprefix('torch.')}, {tensors.device}"


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
