"""CrossValidation: how well models tell the class of items whose gold was hidden from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core.columns import Array, FrozenMapping, Sealed, object_array, read_only, value_tuple
from crowdgraph.core.result import Columns, Tabular, probability_array, real_array, to_frame, unique_ids
from crowdgraph.errors import ParameterError, ResultError, check_choice, quote, suggestion

__all__ = ["SCORES", "CrossValidation", "ReliabilityCurve", "RocCurve", "defined_mean", "defined_spread"]

# What is told of every model; the AUC of each class comes on top of these.
SCORES = ("auc", "accuracy", "log_loss", "brier", "calibration_error", "seconds")


def _array_columns(curve: NamedTuple) -> Columns:
    """Return the arrays of a curve by name, a row for each point."""
    return {name: column for name, column in curve._asdict().items() if isinstance(column, np.ndarray)}


class RocCurve(NamedTuple):
    """How many items of a class are found at the price of how many others, averaged over folds.

    `true_positive_rate` and its standard deviation `spread` belong to `false_positive_rate`; all are of shape (G,).
    `positive` is the class that is to be found, None for the mean over classes.
    """

    positive: Hashable | None
    false_positive_rate: Array
    true_positive_rate: Array
    spread: Array
    auc: float

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each point; `kind` is ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading."""
        return to_frame(_array_columns(self), kind=kind)


class ReliabilityCurve(NamedTuple):
    """How often the most probable class is the true one, against the probability that was stated for it.

    `stated`, `observed` and `n_items` have a value for each bin of stated probabilities that holds items.
    """

    stated: Array
    observed: Array
    n_items: Array
    calibration_error: float

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each bin; `kind` is ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading."""
        return to_frame(_array_columns(self), kind=kind)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CrossValidation(Sealed, Tabular):
    """How well models tell the class of items whose gold was hidden from them.

    `crowdgraph.evaluation.cross_validate` makes one. Print it for a table.

    Attributes
    ----------
    models
        Names of the models, M of them.
    classes
        The classes, J of them.
    items
        Ids of the gold items, of shape (N,).
    truth
        The code of each item's class, of shape (N,).
    folds
        The fold in which each item was hidden, of shape (N,): numbers from 0 to ``n_folds - 1``.
    item_probs
        What each model said of each item while its gold was hidden, of shape (M, N, J).
    scores
        For each score its value in each fold, of shape (M, ``n_folds``); NaN where it is not defined.

        - ``"auc(x)"``: the area under the ROC curve of class `x` against all others; it is not defined in folds
          without items of the class or without others.
        - ``"auc"``: its mean over the classes for which it is defined in the fold.
        - ``"accuracy"``: the share of items whose most probable class, the first of equals, is the true one.
        - ``"log_loss"``: the mean of minus the natural logarithm of the true class's probability. A probability of 0
          counts as 2.2e-16, so an item whose true class was ruled out costs 36.
        - ``"brier"``: the mean over items of the squared differences from the truth, summed over classes: from 0 to 2.
        - ``"calibration_error"``: the expected calibration error. Items are put into bins of equal width by the
          probability of their most probable class; it is the mean over items of the gap, in their bin, between that
          probability on average and the share of items whose class it is. By chance it is above 0 even where a model
          is calibrated, the more the smaller the folds: compare it between models, on the same folds.
        - ``"seconds"``: how long the fit took.
    false_positive_rate, true_positive_rate
        ROC curves on a common grid, of shape (G,), and of each model, fold and class, of shape (M, ``n_folds``, J, G);
        NaN where the AUC is not defined.
    stated, observed, n_items
        For each model and bin, over the items of all folds, each of shape (M, B): the mean probability of the most
        probable class, the share of items whose class it is (both NaN for empty bins), and the number of items.
    n_unanswered
        How many of the items nobody answered; all that models tell of these is their prior.

    Examples
    --------
    >>> from crowdgraph.evaluation import cross_validate
    >>> import crowdgraph as cg
    >>> result = cross_validate(cg.simulate.crowd(seed=0).graph, [cg.MajorityVote(), cg.IBCC()], folds=3)
    >>> result.models, result.n_folds
    (('majority_vote', 'ibcc'), 3)
    >>> bool((result.mean("accuracy") > 0.9).all())
    True
    """

    models: tuple[str, ...]
    classes: tuple[Hashable, ...]
    items: Array
    truth: Array
    folds: Array
    item_probs: Array
    scores: Mapping[str, Array]
    false_positive_rate: Array
    true_positive_rate: Array
    stated: Array
    observed: Array
    n_items: Array
    n_unanswered: int = 0

    def __post_init__(self) -> None:
        models, classes = tuple(self.models), value_tuple(self.classes, what="classes")
        items = unique_ids(self.items, kind="item")
        folds = _codes("folds", self.folds, length=len(items), size=len(items))
        grid = real_array("false_positive_rate", self.false_positive_rate, shape=(None,))
        n_models, n_folds, n_bins = len(models), int(folds.max(initial=-1)) + 1, np.shape(self.n_items)[-1]
        shapes = {
            "true_positive_rate": (n_models, n_folds, len(classes), len(grid)),
            "stated": (n_models, n_bins),
            "observed": (n_models, n_bins),
        }
        values = {
            "models": models,
            "classes": classes,
            "items": items,
            "truth": _codes("truth", self.truth, length=len(items), size=len(classes)),
            "folds": folds,
            "item_probs": probability_array("item_probs", self.item_probs, shape=(n_models, len(items), len(classes))),
            "scores": _score_table(self.scores, classes, shape=(n_models, n_folds)),
            "false_positive_rate": grid,
            "n_items": _counts(self.n_items, shape=(n_models, n_bins), total=len(items)),
            **{name: _with_gaps(name, getattr(self, name), shape=shape) for name, shape in shapes.items()},
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.folds.max(initial=-1)) + 1

    def mean(self, score: str) -> Array:
        """The mean of a score over the folds in which it is defined, for each model, of shape (M,)."""
        return defined_mean(self._score(score), axis=1)

    def spread(self, score: str) -> Array:
        """The standard deviation of a score over those folds, for each model, of shape (M,); NaN for fewer than two."""
        return defined_spread(self._score(score), axis=1)

    def roc(self, model: str, *, positive: Hashable | None = None) -> RocCurve:
        """The ROC curve of a model, averaged over folds.

        At each rate of false positives, the rates of true positives of all folds are averaged. The curve begins at the
        origin and rises there to what is found without a false positive.

        Parameters
        ----------
        model
            The model's name.
        positive
            The class that is to be found. If left out: the last of two classes; of more, the mean over the classes.
        """
        rates = self.true_positive_rate[self._place(model)]
        if positive is None and len(self.classes) == 2:
            positive = self.classes[1]
        if positive is None:
            curves, score = defined_mean(rates, axis=1), "auc"
        else:
            curves, score = rates[:, self._class_code(positive)], f"auc({positive})"
        if np.isnan(curves).all():
            raise ParameterError(
                f"No fold holds both items of {'a class' if positive is None else repr(positive)} and others, so there "
                "is no ROC curve. Use fewer folds, or add gold."
            )
        mean, spread = defined_mean(curves, axis=0), defined_spread(curves, axis=0)
        area = float(self.mean(score)[self._place(model)])
        return RocCurve(positive, self.false_positive_rate, mean, spread, area)

    def reliability(self, model: str) -> ReliabilityCurve:
        """How often a model's most probable class is the true one, against its probability, over all folds' items.

        The calibration error is that of the table, the mean over folds.

        Parameters
        ----------
        model
            The model's name.
        """
        place = self._place(model)
        full = self.n_items[place] > 0
        error = float(self.mean("calibration_error")[place])
        return ReliabilityCurve(self.stated[place, full], self.observed[place, full], self.n_items[place, full], error)

    def _columns(self) -> Columns:
        """One row for each model: the mean of every score over folds, and its standard deviation as ``spread of``."""
        columns = {"model": object_array(self.models)}
        for score in self.scores:
            columns |= {score: self.mean(score), f"spread of {score}": self.spread(score)}
        return columns

    def __repr__(self) -> str:
        unanswered = f" ({self.n_unanswered:,} of them unanswered)" if self.n_unanswered else ""
        counts = np.bincount(self.truth, minlength=len(self.classes))
        told = [f"{name} {count:,}" for name, count in zip(self.classes, counts, strict=True)]
        more = f" and {len(told) - 8:,} more" if len(told) > 8 else ""
        columns = [["model", *self.models], *(self._told(score) for score in SCORES)]
        widths = [max(map(len, column)) for column in columns]
        rows = zip(*columns, strict=True)
        lines = ["   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(
            [
                f"CrossValidation: {self.n_folds} folds of {len(self.items):,} gold items{unanswered}",
                "  mean ± standard deviation over folds",
                f"  classes: {', '.join(told[:8])}{more}",
                *(f"  {line}".rstrip() for line in lines),
            ]
        )

    def _told(self, score: str) -> list[str]:
        """A column of the printed table."""
        pairs = zip(self.mean(score), self.spread(score), strict=True)
        return [score, *(f"{mean:.3f} ± {spread:.3f}" for mean, spread in pairs)]

    def _score(self, score: str) -> Array:
        check_choice("score", score, tuple(self.scores))
        return self.scores[score]

    def _place(self, model: str) -> int:
        check_choice("model", model, self.models)
        return self.models.index(model)

    def _class_code(self, positive: Hashable) -> int:
        if positive not in self.classes:
            raise ParameterError(
                f"positive={positive!r} is no class; the classes are {quote(self.classes)}."
                f"{suggestion(positive, self.classes)}"
            )
        return self.classes.index(positive)


def defined_mean(values: Array, *, axis: int) -> Array:
    """The mean of the values that are not NaN; NaN where all are."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.where(n_defined > 0, n_defined, np.nan))


def defined_spread(values: Array, *, axis: int) -> Array:
    """The sample standard deviation of the values that are not NaN; NaN for fewer than two."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    gaps = values - np.expand_dims(defined_mean(values, axis=axis), axis)
    return np.asarray(np.sqrt(np.nansum(gaps**2, axis=axis) / np.where(n_defined > 1, n_defined - 1, np.nan)))


def _codes(name: str, values: ArrayLike, *, length: int, size: int) -> Array:
    """A read-only column of numbers from 0 up to `size`."""
    codes = read_only(values, dtype=np.int64)
    if codes.shape != (length,):
        raise ResultError(f"{name} has shape {codes.shape}; expected ({length},), one for each item.")
    if length and not 0 <= codes.min() <= codes.max() < size:
        raise ResultError(f"{name} runs from {codes.min()} to {codes.max()}; expected 0 to {size - 1}.")
    return codes


def _with_gaps(name: str, values: ArrayLike, *, shape: tuple[int, ...]) -> Array:
    """A read-only float64 array in which NaN stands for what is not defined."""
    array = read_only(values, dtype=np.float64)
    if array.shape != shape:
        raise ResultError(f"{name} has shape {array.shape}; expected {shape}.")
    return array


def _counts(values: ArrayLike, *, shape: tuple[int, ...], total: int) -> Array:
    """How many items are in each bin, all of them for each model."""
    counts = read_only(values, dtype=np.int64)
    if counts.shape != shape or (counts < 0).any() or (counts.sum(axis=1) != total).any():
        raise ResultError(f"n_items must count the {total:,} items for each model, in shape {shape}; got {counts}.")
    return counts


def _score_table(scores: Mapping[str, ArrayLike], classes: tuple[Hashable, ...], *, shape: tuple[int, int]) -> Any:
    """The scores by name, the AUC of each class after that of all."""
    names = ["auc", *(f"auc({name})" for name in classes), *SCORES[1:]]
    if set(names) != set(scores):
        raise ResultError(f"The scores are {quote(scores, most=20)}; expected {quote(names, most=20)}.")
    return FrozenMapping({name: _with_gaps(name, scores[name], shape=shape) for name in names})
