"""Confusion matrices as Dirichlet distributions: of one volunteer or all, at one time or over time.

Axes are always (..., true class, label), and the rows of the mean sum to one. Every type here offers `mean`, `interval`
and `accuracy`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, lock, read_only, row_blocks, value_tuple
from crowdgraph.core._maps import release
from crowdgraph.core.clock import Clock, Moment, is_finite
from crowdgraph.core.result import (
    CodedColumn,
    Columns,
    Result,
    Tabular,
    TimeColumn,
    VolunteerIndexed,
    check_ids_match,
    check_values_match,
    positive_array,
    probability_array,
    unique_ids,
)
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError, ResultError, check_choice
from crowdgraph.messages import quote

if TYPE_CHECKING:
    from crowdgraph.core.changes import Changes, ChangeSource, VolunteerChange
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.io.tensors import ConfusionTensors

__all__ = ["ConfusionHistory", "ConfusionMatrix", "ConfusionSnapshot", "ConfusionTrack"]

Inference = Literal["static", "filtered", "smoothed"]
Correct = Mapping[Hashable, Hashable | Collection[Hashable]]


class DirichletRows(ReadOnlyArrays, Tabular):
    """Mixin for results that hold Dirichlet concentrations of shape (..., J, L).

    `to_frame` has a row for each volunteer, step, class and label: the mean and the concentration. There is no column
    for the volunteer or the step where there is only one; a static track has no times. A step has its time and the
    number of responses of the whole crowd by then, if it is known.
    """

    concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]

    @cached_property
    def mean(self) -> Array:
        """The expected confusion, of shape (..., J, L); rows sum to one."""
        return lock(self.concentration / self.concentration.sum(axis=-1, keepdims=True))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper end of the central interval of every entry, each of shape (..., J, L).

        Entries of a Dirichlet row are Beta distributed, so the ends are Beta quantiles.
        """
        from scipy.special import betaincinv

        tails = _tails(level)
        others = self.concentration.sum(axis=-1, keepdims=True) - self.concentration
        # A row of one label is certain: its Beta has no second parameter.
        others = np.maximum(others, np.finfo(float).tiny)
        low, high = (betaincinv(self.concentration, others, tail) for tail in tails)
        return lock(low), lock(high)

    def accuracy(self, class_probs: ArrayLike | None = None, *, correct: Correct | None = None) -> Array:
        """Return the expected share of correct labels, of shape (...); of a single matrix, a number.

        Parameters
        ----------
        class_probs
            The proportion of each class, of shape (J,); equal proportions if left out.
        correct
            For each class, the label (or labels) that count as correct. Needed only if a class is not itself a label,
            for instance ``{"supernova": [1, 3], "not supernova": [-1]}``.
        """
        accuracy: Array = self._correct_shares(correct) @ self._class_weights(class_probs)
        return accuracy

    def accuracy_interval(
        self, level: float = 0.9, *, class_probs: ArrayLike | None = None, correct: Correct | None = None
    ) -> tuple[Array, Array]:
        """Return the lower and upper end of the central interval of `accuracy`, each of shape (...).

        The share of correct labels is a mean of Beta distributed shares, one for each class; the interval is that of
        the Beta distribution with the same mean and variance.
        """
        from scipy.special import betaincinv

        tails = _tails(level)
        shares, weights = self._correct_shares(correct), self._class_weights(class_probs)
        total = self.concentration.sum(axis=-1)
        mean = (shares @ weights).clip(1e-9, 1 - 1e-9)
        variance = np.maximum((shares * (1 - shares) / (total + 1)) @ weights**2, 1e-18)
        concentration = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
        low, high = (np.asarray(betaincinv(concentration * mean, concentration * (1 - mean), tail)) for tail in tails)
        return lock(low), lock(high)

    def _columns(self) -> Columns:
        concentration = self._table_concentration()
        mean = concentration / concentration.sum(axis=-1, keepdims=True)
        n_classes, n_labels = concentration.shape[-2:]
        n_steps, cells = concentration[..., 0, 0].size, n_classes * n_labels
        return {
            **self._step_columns(cells),
            "class": CodedColumn(np.tile(np.repeat(np.arange(n_classes), n_labels), n_steps), id_array(self.classes)),
            "label": CodedColumn(np.tile(np.arange(n_labels), n_steps * n_classes), id_array(self.labels)),
            "mean": mean.ravel(),
            "concentration": concentration.ravel(),
        }

    def _table_concentration(self) -> Array:
        """Return the concentrations of the table; those of a static track are its initial ones."""
        return self.concentration

    def _step_columns(self, cells: int) -> Columns:  # noqa: ARG002 - for those that override it
        """Return the columns that say whose matrix it is and when, each value repeated for the cells of a matrix."""
        return {}

    def _correct_shares(self, correct: Correct | None) -> Array:
        """Return the expected share of correct labels for items of each class, of shape (..., J)."""
        return np.asarray((self.mean * correct_labels(self.classes, self.labels, correct)).sum(axis=-1))

    def _class_weights(self, class_probs: ArrayLike | None) -> Array:
        """Return the proportion of each class; equal proportions if left out."""
        n_classes = len(self.classes)
        shares = np.full(n_classes, 1 / n_classes) if class_probs is None else class_probs
        return probability_array("class_probs", shares, shape=(n_classes,))

    def _set_rows(self, concentration: ArrayLike, *, lead: tuple[int | None, ...]) -> None:
        """Check and store classes, labels and concentrations of shape (*lead, J, L)."""
        for name in ("classes", "labels"):
            object.__setattr__(self, name, value_tuple(getattr(self, name), what=name))
        shape = (*lead, len(self.classes), len(self.labels))
        object.__setattr__(self, "concentration", positive_array("concentration", concentration, shape=shape))


def _tails(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of a central interval."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.9.")
    return (1 - level) / 2, (1 + level) / 2


def correct_labels(classes: tuple[Hashable, ...], labels: tuple[Hashable, ...], correct: Correct | None) -> Array:
    """Return a (J, L) mask of the labels that are correct for each class."""
    by_class: Correct = {name: name for name in classes} if correct is None else correct
    mask = np.zeros((len(classes), len(labels)), dtype=bool)
    for row, name in enumerate(classes):
        if name not in by_class:
            raise ParameterError(
                f"correct= does not name the class {name!r}; name a label for each of {quote(classes)}."
            )
        answer = by_class[name]
        several = isinstance(answer, Collection) and not isinstance(answer, str | bytes | tuple)
        for label in answer if several else (answer,):  # type: ignore[union-attr]
            if label not in labels:
                raise ParameterError(
                    f"{label!r} is not a label, so it cannot be the correct answer for class {name!r}; the labels are "
                    f"{quote(labels)}. Say which labels are correct with correct={{class: label, ...}}."
                )
            mask[row, labels.index(label)] = True
    return mask


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionMatrix(DirichletRows):
    """One confusion matrix: `concentration` of shape (J, L)."""

    concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        self._set_rows(self.concentration, lead=())

    def accuracy(  # type: ignore[override]  # one matrix has one accuracy
        self, class_probs: ArrayLike | None = None, *, correct: Correct | None = None
    ) -> float:
        """Return the expected share of correct labels; parameters are those of `ConfusionSnapshot.accuracy`."""
        return float(super().accuracy(class_probs, correct=correct))

    def accuracy_interval(  # type: ignore[override]
        self, level: float = 0.9, *, class_probs: ArrayLike | None = None, correct: Correct | None = None
    ) -> tuple[float, float]:
        """Return the lower and upper end of the central interval of `accuracy`."""
        low, high = super().accuracy_interval(level, class_probs=class_probs, correct=correct)
        return float(low), float(high)

    def __repr__(self) -> str:
        rows = [
            f"  {name!s:<16} " + "  ".join(f"{label}: {p:.2f}" for label, p in zip(self.labels, row, strict=True))
            for name, row in zip(self.classes, self.mean, strict=True)
        ]
        return "\n".join(["ConfusionMatrix (rows: true class, entries: probability of a label)", *rows])

    def _repr_html_(self) -> str:
        from crowdgraph.core._html import confusion_html

        return confusion_html(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionSnapshot(DirichletRows, VolunteerIndexed):
    """The confusion of all volunteers at one time: `concentration` of shape (K, J, L)."""

    ids: Array
    concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", unique_ids(self.ids, kind="volunteer"))
        self._set_rows(self.concentration, lead=(len(self.ids),))

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, volunteer: Hashable) -> ConfusionMatrix:
        """Return the confusion matrix of one volunteer."""
        code = self.table.code(volunteer)
        return ConfusionMatrix(concentration=self.concentration[code], classes=self.classes, labels=self.labels)

    def _step_columns(self, cells: int) -> Columns:
        return {"volunteer": CodedColumn(np.repeat(np.arange(len(self)), cells), self.ids)}

    def __repr__(self) -> str:
        return f"ConfusionSnapshot({len(self):,} volunteers, {len(self.classes)} classes x {len(self.labels)} labels)"


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionHistory(DirichletRows):
    """The confusion of one volunteer after each of their responses.

    Attributes
    ----------
    volunteer
        The volunteer.
    times
        The times of the responses, of shape (T,).
    concentration
        The Dirichlet after each response, of shape (T, J, L).
    initial
        The Dirichlet before the first response, of shape (J, L). For a static model it holds at all times and T is 0.
    clock
        The kind of times.
    observations
        How many responses the whole crowd had given by the time of each response, itself included, of shape (T,): the
        paper's global number of observations. None if it is not known, as where a history was built by hand.
    inference, source
        As for `ConfusionTrack`.
    """

    volunteer: Hashable
    times: Array
    concentration: Array
    initial: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    clock: Clock
    observations: Array | None = field(default=None, repr=False)
    inference: Inference = field(default="smoothed")
    source: ChangeSource | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._set(times=read_only(self.times))
        self.clock.check(self.times)
        self._set_rows(self.concentration, lead=(len(self.times),))
        shape = (len(self.classes), len(self.labels))
        self._set(initial=positive_array("initial", self.initial, shape=shape))
        if self.observations is not None:
            self._set(observations=read_only(self.observations))
            self._check_observations(self.observations)

    def __len__(self) -> int:
        return len(self.times)

    def _table_concentration(self) -> Array:
        return self.initial if self.inference == "static" else self.concentration

    def _step_columns(self, cells: int) -> Columns:
        if self.inference == "static":
            return {}
        counts = {} if self.observations is None else {"observations": np.repeat(self.observations, cells)}
        return {"time": TimeColumn(np.repeat(self.times, cells), self.clock), **counts}

    def _check_observations(self, counts: Array) -> None:
        expected = self.times.shape
        if counts.shape != expected or counts.dtype.kind != "i":
            raise ResultError(
                f"observations has shape {counts.shape} of {counts.dtype}; expected {expected} integers, one for each "
                "response."
            )
        if (np.diff(counts) < 0).any() or (counts <= np.arange(len(counts))).any():
            raise ResultError(
                "observations must not fall, and count the volunteer's own responses: 1 at least at the first, 2 at "
                "the second, and so on. Take the history from a track with track.of(volunteer), which counts them."
            )

    def at(self, moment: Moment) -> ConfusionMatrix:
        """Return what we now believe about the volunteer at a moment: the state after the last response until then."""
        # A static model has no steps, and no times to compare with.
        return self._matrix(self.clock.count_until(self.times, moment, inclusive=True) if len(self) else 0)

    def latest(self) -> ConfusionMatrix:
        """Return the confusion after the last response."""
        return self._matrix(len(self))

    def changes(
        self,
        *,
        false_discovery_rate: float = 0.05,
        min_answers: int = 8,
        seed: int | None = 0,
        correct: Correct | None = None,
    ) -> tuple[VolunteerChange, ...]:
        """Return the volunteer's change if there is evidence for one, among those of all volunteers.

        It is that of `crowdgraph.ModelFit.changes`, where the parameters are described. The whole crowd is tested, so
        that the false-discovery rate holds for all histories together; further histories of the same fit cost nothing.
        """
        changes = _require_source(self.source).changes(
            false_discovery_rate=false_discovery_rate, min_answers=min_answers, seed=seed, correct=correct
        )
        change = changes.of(self.volunteer)
        return () if change is None else (change,)

    def _matrix(self, n_steps: int) -> ConfusionMatrix:
        concentration = self.concentration[n_steps - 1] if n_steps else self.initial
        return ConfusionMatrix(concentration=concentration, classes=self.classes, labels=self.labels)

    def __repr__(self) -> str:
        return f"ConfusionHistory of {self.volunteer!r}: {len(self):,} steps\n{self.latest()!r}"

    def _repr_html_(self) -> str:
        from crowdgraph.core._html import confusion_history_html

        return confusion_history_html(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionTrack(DirichletRows, VolunteerIndexed, Result):
    """The confusion of all volunteers after each of their responses, aligned to the responses.

    The steps of volunteer `k` are rows ``starts[k]:starts[k + 1]``. A static model has no steps: its posterior is
    `initial` and holds at all times.

    Attributes
    ----------
    ids
        The volunteers, of shape (K,).
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    times, concentration
        One time and one Dirichlet for each step, of shapes (S,) and (S, J, L).
    initial
        The Dirichlet before the first step, of shape (K, J, L), or (J, L) if it is the same for all.
    inference
        ``"static"``, ``"filtered"`` (from the volunteer's past only) or ``"smoothed"`` (from past and future).
    source
        What changes are computed from; a fit sets it. It is not saved with a graph.

    Examples
    --------
    >>> import numpy as np
    >>> track = ConfusionTrack.static(
    ...     ids=["anna", "bert"], concentration=np.array([[[8.0, 2], [1, 9]], [[5, 5], [5, 5]]]),
    ...     classes=("no", "yes"), labels=("no", "yes"))
    >>> track.of("anna").latest().mean
    array([[0.8, 0.2],
           [0.1, 0.9]])
    >>> track.latest().accuracy()
    array([0.85, 0.5 ])
    """

    ids: Array
    starts: Array
    times: Array
    concentration: Array
    initial: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    clock: Clock
    inference: Inference = field(default="smoothed")
    source: ChangeSource | None = field(default=None, repr=False, metadata={"saved": False})

    def __post_init__(self) -> None:
        check_choice("inference", self.inference, ("static", "filtered", "smoothed"))
        self._set(
            ids=unique_ids(self.ids, kind="volunteer"),
            starts=read_only(self.starts),
            times=read_only(self.times),
        )
        self.clock.check_kind(self.times)
        self._check_steps()
        self._set_rows(self.concentration, lead=(len(self.times),))
        shape = (len(self.ids), len(self.classes), len(self.labels))
        initial = np.asarray(self.initial, dtype=np.float64)
        if initial.ndim == 2:
            positive_array("initial", initial, shape=shape[1:])
            self._set(initial=np.broadcast_to(lock(initial.copy()), shape))
        else:
            self._set(initial=positive_array("initial", initial, shape=shape))

    @classmethod
    def static(
        cls, *, ids: Any, concentration: ArrayLike, classes: tuple[Hashable, ...], labels: tuple[Hashable, ...]
    ) -> ConfusionTrack:
        """Return the track of a model whose confusion does not change: one Dirichlet for each volunteer, (K, J, L)."""
        shape = (0, len(classes), len(labels))
        return cls(
            ids=ids,
            starts=np.zeros(len(ids) + 1, dtype=np.int64),
            times=np.zeros(0, dtype=np.int64),
            concentration=np.zeros(shape),
            initial=np.asarray(concentration, dtype=np.float64),
            classes=classes,
            labels=labels,
            clock=Clock("order"),
            inference="static",
        )

    @property
    def name(self) -> str:
        """``"confusion"``."""
        return "confusion"

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, volunteer: Hashable) -> ConfusionHistory:
        """Return the history of one volunteer."""
        code = self.table.code(volunteer)
        steps = slice(self.starts[code], self.starts[code + 1])
        return ConfusionHistory(
            volunteer=volunteer,
            times=self.times[steps],
            concentration=self.concentration[steps],
            initial=self.initial[code],
            classes=self.classes,
            labels=self.labels,
            clock=self.clock,
            observations=self.observations[steps],
            inference=self.inference,
            source=self.source,
        )

    @cached_property
    def observations(self) -> Array:
        """How many responses the whole crowd had given by the time of each step, itself included, of shape (S,).

        This is the paper's global number of observations. Responses of equal times count for each other; those that
        the model did not see, such as later ones than those of a view, do not count.
        """
        return lock(np.searchsorted(np.sort(self.times, kind="stable"), self.times, side="right"))

    def at(self, moment: Moment) -> ConfusionSnapshot:
        """Return what we now believe about all volunteers at a moment: the state after the last response until then."""
        return self._reached(moment, inclusive=True)

    def before(self, moment: Moment) -> ConfusionSnapshot:
        """Return what we now believe about all volunteers just before a moment; otherwise as `at`."""
        return self._reached(moment, inclusive=False)

    def _reached(self, moment: Moment, *, inclusive: bool) -> ConfusionSnapshot:
        if self.inference == "static":
            return self.latest()
        reached = np.concatenate([[0], np.cumsum(self.clock.reached(self.times, moment, inclusive=inclusive))])
        return self._snapshot(reached[self.starts[1:]] - reached[self.starts[:-1]])

    def latest(self) -> ConfusionSnapshot:
        """Return the confusion of all volunteers after their last response."""
        return self._snapshot(np.diff(self.starts))

    def at_responses(self, graph: CrowdGraph) -> Array:
        """Return the concentration of the volunteer at each response of the graph, of shape (R, J, L)."""
        self.check_matches(graph)
        if self.inference == "static":
            return np.asarray(self.initial[graph.responses.volunteer])
        concentration = np.empty_like(self.concentration)
        concentration[graph.responses.by_volunteer.order] = self.concentration
        return concentration

    def to_torch(self, *, device: Any = None, dtype: Any = "float64") -> ConfusionTensors:
        """Return copies of `starts`, `times`, `concentration` and `initial` as tensors.

        Times are as in `CrowdGraph.to_torch`. `crowdgraph.tensors` takes Dirichlets of this shape.

        Parameters
        ----------
        device, dtype
            As in `CrowdGraph.to_torch`.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=300, seed=0).graph
        >>> cg.DynIBCC().fit(graph).confusion.to_torch()
        ConfusionTensors(starts (21,), times (300,), concentration (300, 2, 2), initial (20, 2, 2); float64, cpu)
        """
        from crowdgraph.io.tensors import track_to_torch

        return track_to_torch(self, device=device, dtype=dtype)

    def with_source(self, source: ChangeSource) -> ConfusionTrack:
        """Return the same track, which also knows what changes are computed from."""
        track = copy(self)
        track._set(source=source)
        return track

    def changes(
        self,
        *,
        false_discovery_rate: float = 0.05,
        min_answers: int = 8,
        seed: int | None = 0,
        correct: Correct | None = None,
    ) -> Changes:
        """Return the volunteers who changed, the clearest first: those of `crowdgraph.ModelFit.changes`."""
        return _require_source(self.source).changes(
            false_discovery_rate=false_discovery_rate, min_answers=min_answers, seed=seed, correct=correct
        )

    def changes_to_frame(
        self,
        *,
        false_discovery_rate: float = 0.05,
        min_answers: int = 8,
        seed: int | None = 0,
        correct: Correct | None = None,
        kind: str = "pandas",
    ) -> Any:
        """Return `changes` as a table, a row for each volunteer who changed, the clearest first.

        Parameters
        ----------
        false_discovery_rate, min_answers, seed, correct
            As for `crowdgraph.ModelFit.changes`.
        kind
            As for `to_frame`.
        """
        changes = self.changes(
            false_discovery_rate=false_discovery_rate, min_answers=min_answers, seed=seed, correct=correct
        )
        return changes.to_frame(kind=kind)

    def _table_concentration(self) -> Array:
        return self.initial if self.inference == "static" else self.concentration

    def _step_columns(self, cells: int) -> Columns:
        if self.inference == "static":
            return {"volunteer": CodedColumn(np.repeat(np.arange(len(self)), cells), self.ids)}
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return {
            "volunteer": CodedColumn(np.repeat(owner, cells), self.ids),
            "time": TimeColumn(np.repeat(self.times, cells), self.clock),
            "observations": np.repeat(self.observations, cells),
        }

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless the track belongs to the graph's volunteers, classes, labels and responses."""
        self.check_nodes(graph)
        self.check_responses(graph)

    def check_nodes(self, graph: CrowdGraph) -> None:
        """Raise unless the track belongs to the graph's volunteers, classes and labels."""
        check_ids_match("The confusion track", self.ids, graph.volunteers.table)
        check_values_match("The confusion track", "classes", self.classes, graph.classes)
        check_values_match("The confusion track", "labels", self.labels, graph.labels)

    def check_responses(self, graph: CrowdGraph) -> None:
        """Raise unless the steps of the track are as many as the graph's responses, on the same clock."""
        if self.inference == "static":
            return
        if self.clock != graph.responses.clock:
            raise AlignmentError(
                f"The confusion track's times are {self.clock}, the graph's {graph.responses.clock}. Fit the model to "
                "this graph."
            )
        if len(self.times) != len(graph.responses):
            raise AlignmentError(
                f"The confusion track has {len(self.times):,} steps, the graph {len(graph.responses):,} responses; "
                "a track has a step for each response. If it was fitted to a view, annotate the view."
            )

    def _snapshot(self, n_steps: Array) -> ConfusionSnapshot:
        """Return the state of each volunteer after so many of their steps."""
        has_steps = n_steps > 0
        concentration = np.array(self.initial)
        concentration[has_steps] = self.concentration[(self.starts[:-1] + n_steps - 1)[has_steps]]
        return ConfusionSnapshot(ids=self.ids, concentration=concentration, classes=self.classes, labels=self.labels)

    def _check_steps(self) -> None:
        expected = (len(self.ids) + 1,)
        if self.starts.shape != expected or self.starts.dtype.kind != "i":
            raise ResultError(
                f"starts has shape {self.starts.shape} of {self.starts.dtype}; expected {expected} integers, one more "
                "than volunteers."
            )
        # Of a short type, differences could overflow.
        self._set(starts=read_only(self.starts, dtype=np.int64))
        if self.starts[0] != 0 or self.starts[-1] != len(self.times) or (np.diff(self.starts) < 0).any():
            raise ResultError(f"starts must rise from 0 to the number of steps ({len(self.times):,}).")
        if self.inference == "static" and len(self.times):
            raise ResultError("A static track has no steps; put each volunteer's posterior into `initial`.")
        for block in row_blocks(len(self.times)):
            # With the last of the block before, so that no step between two blocks is missed.
            first = max(block.start - 1, 0)
            times = self.times[first : block.stop]
            if not is_finite(times):
                raise ResultError("The times of a volunteer's steps must be finite.")
            falls = np.flatnonzero(times[1:] < times[:-1]) + first + 1
            if len(falls) and np.setdiff1d(falls, self.starts).size:
                raise ResultError("The times of a volunteer's steps must not fall.")
            release(self.times, block.start, block.stop)

    def __repr__(self) -> str:
        return (
            f"ConfusionTrack({len(self):,} volunteers, {len(self.times):,} steps, {self.inference}, "
            f"{len(self.classes)} classes x {len(self.labels)} labels)"
        )


def _require_source(source: ChangeSource | None) -> ChangeSource:
    """Return what changes are computed from, or raise if it is not known."""
    if source is None:
        raise NotAnnotatedError(
            "These confusion matrices do not know the answers that they come from (they were loaded from a file or "
            "built by hand), and changes are computed from answers.",
            hint="Call fit.changes(graph) on the fit, or fit the model again.",
        )
    return source
