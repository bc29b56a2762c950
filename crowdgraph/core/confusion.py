"""Confusion matrices as Dirichlet distributions: of one volunteer or all, at one time or over time.

Axes are always (..., true class, label) and rows sum to one in the mean. Every type here offers the same three
read-outs: `mean`, `interval` and `accuracy`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, lock, read_only, value_tuple
from crowdgraph.core.clock import Clock, Moment, is_finite
from crowdgraph.core.confusion_changes import ConfusionChange, EntryChange, confusion_changes, entry_changes
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
    to_frame,
    unique_ids,
)
from crowdgraph.errors import AlignmentError, ParameterError, ResultError, check_choice, quote

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["ConfusionHistory", "ConfusionMatrix", "ConfusionSnapshot", "ConfusionTrack", "Correct", "Inference"]

Inference = Literal["static", "filtered", "smoothed"]
Correct = Mapping[Hashable, Hashable | Collection[Hashable]]


class DirichletRows(ReadOnlyArrays, Tabular):
    """Read-outs shared by everything that holds Dirichlet concentrations of shape (..., J, L)."""

    concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]

    @cached_property
    def mean(self) -> Array:
        """The expected confusion, of shape (..., J, L); rows sum to one."""
        return lock(self.concentration / self.concentration.sum(axis=-1, keepdims=True))

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The lower and upper end of the central interval of every entry, each of shape (..., J, L).

        Entries of a Dirichlet row are Beta distributed, so the ends are Beta quantiles.
        """
        from scipy.special import betaincinv

        tails = _tails(level)
        rest = self.concentration.sum(axis=-1, keepdims=True) - self.concentration
        # A row of one label is certain: its Beta has no second parameter.
        rest = np.maximum(rest, np.finfo(float).tiny)
        low, high = (betaincinv(self.concentration, rest, tail) for tail in tails)
        return lock(low), lock(high)

    def accuracy(self, class_probs: ArrayLike | None = None, *, correct: Correct | None = None) -> Array:
        """The expected share of correct labels, of shape (...).

        Parameters
        ----------
        class_probs
            How often each class occurs, of shape (J,); equally often if left out.
        correct
            For each class, the label (or labels) that count as correct. Needed only where a class is not itself a
            label, for instance ``{"supernova": [1, 3], "not supernova": [-1]}``.
        """
        return np.asarray(self._right(correct) @ self._class_weights(class_probs))

    def accuracy_interval(
        self, level: float = 0.9, *, class_probs: ArrayLike | None = None, correct: Correct | None = None
    ) -> tuple[Array, Array]:
        """The lower and upper end of the central interval of `accuracy`, each of shape (...).

        The share of correct labels is a mean of Beta distributed shares, one for each class; the interval is that of
        the Beta distribution with its mean and variance.
        """
        from scipy.special import betaincinv

        tails = _tails(level)
        right, weights = self._right(correct), self._class_weights(class_probs)
        total = self.concentration.sum(axis=-1)
        mean = (right @ weights).clip(1e-9, 1 - 1e-9)
        variance = np.maximum((right * (1 - right) / (total + 1)) @ weights**2, 1e-18)
        weight = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
        low, high = (np.asarray(betaincinv(weight * mean, weight * (1 - mean), tail)) for tail in tails)
        return lock(low), lock(high)

    def _columns(self) -> Columns:
        """One row for each volunteer, step, class and label: the mean and the concentration."""
        concentration = self._held()
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

    def _held(self) -> Array:
        """Return the concentrations of the table; those of a static track hold from the start."""
        return self.concentration

    def _step_columns(self, cells: int) -> Columns:  # noqa: ARG002 - for those that override it
        """Return the columns that say whose matrix it is and when, each value repeated for the cells of a matrix."""
        return {}

    def _right(self, correct: Correct | None) -> Array:
        """The expected share of correct labels for items of each class, of shape (..., J)."""
        return np.asarray((self.mean * correct_labels(self.classes, self.labels, correct)).sum(axis=-1))

    def _class_weights(self, class_probs: ArrayLike | None) -> Array:
        """How often each class occurs; equally often if nothing is said."""
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
    """The probabilities below the two ends of a central interval."""
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.9.")
    return (1 - level) / 2, (1 + level) / 2


def correct_labels(classes: tuple[Hashable, ...], labels: tuple[Hashable, ...], correct: Correct | None) -> Array:
    """A (J, L) mask of the labels that are correct for each class."""
    answers: Correct = {name: name for name in classes} if correct is None else correct
    hits = np.zeros((len(classes), len(labels)), dtype=bool)
    for row, name in enumerate(classes):
        if name not in answers:
            raise ParameterError(
                f"correct= does not name the class {name!r}; name a label for each of {quote(classes)}."
            )
        answer = answers[name]
        several = isinstance(answer, Collection) and not isinstance(answer, str | bytes | tuple)
        for label in answer if several else (answer,):  # type: ignore[union-attr]
            if label not in labels:
                raise ParameterError(
                    f"{label!r} is not a label, so it cannot be the correct answer for class {name!r}; the labels are "
                    f"{quote(labels)}. Say which labels are correct with correct={{class: label, ...}}."
                )
            hits[row, labels.index(label)] = True
    return hits


@dataclass(frozen=True, eq=False, kw_only=True)
class ConfusionMatrix(DirichletRows):
    """One confusion matrix: `concentration` of shape (J, L)."""

    concentration: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        self._set_rows(self.concentration, lead=())

    def __repr__(self) -> str:
        rows = [
            f"  {name!s:<16} " + "  ".join(f"{label}: {p:.2f}" for label, p in zip(self.labels, row, strict=True))
            for name, row in zip(self.classes, self.mean, strict=True)
        ]
        return "\n".join(["ConfusionMatrix (rows: true class, entries: probability of a label)", *rows])


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
        """The confusion matrix of one volunteer."""
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
        Whose history this is.
    times
        When the responses were given, of shape (T,).
    concentration
        The Dirichlet after each response, of shape (T, J, L).
    initial
        The Dirichlet before the first, of shape (J, L). For a static model it holds at all times and T is 0.
    clock
        What the times are.
    inference
        As for `ConfusionTrack`.
    """

    volunteer: Hashable
    times: Array
    concentration: Array
    initial: Array
    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    clock: Clock
    inference: Inference = field(default="smoothed")

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", read_only(self.times))
        self.clock.check(self.times)
        self._set_rows(self.concentration, lead=(len(self.times),))
        shape = (len(self.classes), len(self.labels))
        object.__setattr__(self, "initial", positive_array("initial", self.initial, shape=shape))

    def __len__(self) -> int:
        return len(self.times)

    def _held(self) -> Array:
        return self.initial if self.inference == "static" else self.concentration

    def _step_columns(self, cells: int) -> Columns:
        return {} if self.inference == "static" else {"time": TimeColumn(np.repeat(self.times, cells), self.clock)}

    def at(self, moment: Moment) -> ConfusionMatrix:
        """What we now believe about the volunteer at a moment: the state after the last response until then."""
        # A static model has no steps, and no times to compare with.
        return self._matrix(self.clock.count_until(self.times, moment, inclusive=True) if len(self) else 0)

    def latest(self) -> ConfusionMatrix:
        """The confusion after the last response."""
        return self._matrix(len(self))

    def changes(self, level: float = 0.95, *, min_size: float = 0.0) -> tuple[ConfusionChange, ...]:
        r"""Where a row moved beyond what its uncertainty explains, sorted by time.

        The mean of an entry moved from step :math:`s` to step :math:`t` if

        .. math:: |m_t - m_s| > z \sqrt{v_s + v_t},

        where :math:`m` and :math:`v` are its mean and variance and :math:`z` is the normal quantile of `level`, on two
        sides. What `level` leaves is divided among the pairs of independent states, so that a long history of nothing
        is not full of changes; there are as many such states as one over the row's total sums to over the steps. A move
        goes on until one back is beyond the uncertainty: a slow drift is one change, a jump is one whose `start` and
        `stop` are close together, there and back are two. Labels of a row move together; of moves that overlap in time
        only the one that is largest relative to its uncertainty is told.

        It is cautious: smoothed states are more alike than independent ones, so that few changes are told which are
        none, and slow or small ones are missed. A static history has no changes; a filtered one is refused, since what
        is learned of a volunteer would look like a change of theirs.

        Parameters
        ----------
        level
            How sure to be that an entry which never moved is not told.
        min_size
            Leave out moves that changed the probability by less.

        Examples
        --------
        >>> import numpy as np
        >>> yes = np.repeat([0.2, 0.8], 50)
        >>> row = 100 * np.column_stack([1 - yes, yes])
        >>> history = ConfusionHistory(
        ...     volunteer="anna", times=np.arange(100), concentration=np.stack([row * 0 + 50, row], axis=1),
        ...     initial=np.ones((2, 2)), classes=("no", "yes"), labels=("no", "yes"), clock=Clock("number"))
        >>> for change in history.changes():
        ...     print(change.true_class, change.label, change.start, change.stop, round(change.size, 2))
        yes yes 49 50 0.6
        """
        return confusion_changes(self, level=level, min_size=min_size)

    def _matrix(self, n_steps: int) -> ConfusionMatrix:
        concentration = self.concentration[n_steps - 1] if n_steps else self.initial
        return ConfusionMatrix(concentration=concentration, classes=self.classes, labels=self.labels)

    def __repr__(self) -> str:
        return f"ConfusionHistory of {self.volunteer!r}: {len(self):,} steps\n{self.latest()!r}"


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
        The Dirichlet before the first step, of shape (K, J, L), or (J, L) for all alike.
    inference
        ``"static"``, ``"filtered"`` (from the volunteer's past only) or ``"smoothed"`` (from past and future).

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
        """The track of a model whose confusion does not change: one Dirichlet for each volunteer, (K, J, L)."""
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
        """The history of one volunteer."""
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
            inference=self.inference,
        )

    def at(self, moment: Moment) -> ConfusionSnapshot:
        """What we now believe about all volunteers at a moment: the state after the last response until then."""
        if self.inference == "static":
            return self.latest()
        reached = np.concatenate([[0], np.cumsum(self.clock.reached(self.times, moment))])
        return self._snapshot(reached[self.starts[1:]] - reached[self.starts[:-1]])

    def latest(self) -> ConfusionSnapshot:
        """The confusion of all volunteers after their last response."""
        return self._snapshot(np.diff(self.starts))

    def at_responses(self, graph: CrowdGraph) -> Array:
        """The concentration that each response of the graph was given with, of shape (R, J, L)."""
        self.check_matches(graph)
        if self.inference == "static":
            return np.asarray(self.initial[graph.responses.volunteer])
        found = np.empty_like(self.concentration)
        found[graph.responses.by_volunteer.order] = self.concentration
        return found

    def changes_to_frame(self, level: float = 0.95, *, min_size: float = 0.0, kind: str = "pandas") -> Any:
        """One row for each change of each volunteer, the largest first; see `ConfusionHistory.changes`.

        `kind` is ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading.
        """
        return to_frame(self._change_columns(level, min_size), kind=kind)

    def _change_columns(self, level: float, min_size: float) -> Columns:
        legs = [
            (code, leg)
            for code, volunteer in enumerate(self.ids.tolist())
            for leg in entry_changes(self.of(volunteer), level=level, min_size=min_size)
        ]
        legs.sort(key=lambda owned: -abs(owned[1].size))
        owner = np.array([code for code, _ in legs], dtype=np.int64)
        codes = {
            name: np.array([getattr(leg, name) for _, leg in legs], dtype=np.int64) for name in EntryChange._fields[:5]
        }
        steps = {"start": "start", "stop": "stop", "time": "half"}
        return {
            "volunteer": CodedColumn(owner, self.ids),
            "class": CodedColumn(codes["row"], id_array(self.classes)),
            "label": CodedColumn(codes["column"], id_array(self.labels)),
            **{
                name: TimeColumn(self.times[self.starts[owner] + codes[step]], self.clock)
                for name, step in steps.items()
            },
            "size": np.array([leg.size for _, leg in legs]),
        }

    def _held(self) -> Array:
        return self.initial if self.inference == "static" else self.concentration

    def _step_columns(self, cells: int) -> Columns:
        if self.inference == "static":
            return {"volunteer": CodedColumn(np.repeat(np.arange(len(self)), cells), self.ids)}
        owner = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return {
            "volunteer": CodedColumn(np.repeat(owner, cells), self.ids),
            "time": TimeColumn(np.repeat(self.times, cells), self.clock),
        }

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless the track was made for the graph's volunteers, classes, labels and responses."""
        self.check_nodes(graph)
        if self.inference == "static":
            return
        if self.clock != graph.responses.clock:
            raise AlignmentError(f"The confusion track's times are {self.clock}, the graph's {graph.responses.clock}.")
        if len(self.times) != len(graph.responses):
            raise AlignmentError(
                f"The confusion track has {len(self.times):,} steps, the graph {len(graph.responses):,} responses; "
                "a track has a step for each response. Was it made from a view? Then annotate the view."
            )

    def check_nodes(self, graph: CrowdGraph) -> None:
        """Raise unless the track was made for the graph's volunteers, classes and labels."""
        check_ids_match("The confusion track", self.ids, graph.volunteers.table)
        check_values_match("The confusion track", "classes", self.classes, graph.classes)
        check_values_match("The confusion track", "labels", self.labels, graph.labels)

    def _snapshot(self, n_steps: Array) -> ConfusionSnapshot:
        """The state of each volunteer after some of their steps."""
        begun = n_steps > 0
        concentration = np.array(self.initial)
        concentration[begun] = self.concentration[(self.starts[:-1] + n_steps - 1)[begun]]
        return ConfusionSnapshot(ids=self.ids, concentration=concentration, classes=self.classes, labels=self.labels)

    def _check_steps(self) -> None:
        expected = (len(self.ids) + 1,)
        if self.starts.shape != expected or self.starts.dtype.kind != "i":
            raise ResultError(
                f"starts has shape {self.starts.shape} of {self.starts.dtype}; expected {expected} integers, one more "
                "than volunteers."
            )
        if self.starts[0] != 0 or self.starts[-1] != len(self.times) or (np.diff(self.starts) < 0).any():
            raise ResultError(f"starts must rise from 0 to the number of steps ({len(self.times):,}).")
        if self.inference == "static" and len(self.times):
            raise ResultError("A static track has no steps; put each volunteer's posterior into `initial`.")
        if not is_finite(self.times):
            raise ResultError("The times of a volunteer's steps must be finite.")
        falls = np.flatnonzero(self.times[1:] < self.times[:-1]) + 1
        if np.setdiff1d(falls, self.starts).size:
            raise ResultError("The times of a volunteer's steps must not fall.")

    def __repr__(self) -> str:
        return (
            f"ConfusionTrack({len(self):,} volunteers, {len(self.times):,} steps, {self.inference}, "
            f"{len(self.classes)} classes x {len(self.labels)} labels)"
        )
