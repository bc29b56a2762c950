"""Cross validation: hide some gold, fit models to the rest, and score what they say of the hidden items."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, FrozenMapping, ReadOnlyArrays, object_array, read_only, value_tuple
from crowdgraph.core._parameters import check_integer
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._text import quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, probability_array, real_array, to_frame, unique_ids
from crowdgraph.errors import CrowdGraphWarning, GoldError, ParameterError, ResultError, check_choice
from crowdgraph.evaluation.scores import (
    FALSE_POSITIVE_RATE,
    accuracy,
    aucs_by_class,
    brier_score,
    calibration_error,
    log_loss,
    nan_mean,
    nan_std,
    reliability_bins,
    roc_curves_by_class,
)
from crowdgraph.messages import Hint, argument, quote, suggestion, with_article
from crowdgraph.models.base import Model

__all__ = ["SCORES", "CrossValidation", "ReliabilityCurve", "RocCurve", "cross_validate"]

# The scores of every model; the AUC of each class comes on top of these.
SCORES = ("auc", "accuracy", "log_loss", "brier", "calibration_error", "seconds")
# How many classes the printed table lists.
MAX_CLASSES_SHOWN = 8


class RocCurve(NamedTuple):
    """The share of items of a class that are found, against the share of others taken for it; averaged over folds.

    Attributes
    ----------
    positive
        The class that is to be found; None for the mean over classes.
    false_positive_rate, true_positive_rate, spread
        The points of the curve, and the standard deviation of the true positive rate over folds, each of shape (G,).
    auc
        The area under the curve.
    """

    positive: Hashable | None
    false_positive_rate: Array
    true_positive_rate: Array
    spread: Array
    auc: float

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """Return a row for each point; `kind` is ``"pandas"``, ``"polars"``, ``"arrow"`` or ``"text"``."""
        return to_frame(_array_columns(self), kind=kind)


class ReliabilityCurve(NamedTuple):
    """How often the most probable class is the true one, against the probability that was stated for it.

    Attributes
    ----------
    stated, observed, n_items
        For each bin of stated probabilities that holds items: their mean, the share of items that they are right about,
        and the number of items.
    calibration_error
        The expected calibration error.
    """

    stated: Array
    observed: Array
    n_items: Array
    calibration_error: float

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """Return a row for each bin; `kind` is ``"pandas"``, ``"polars"``, ``"arrow"`` or ``"text"``."""
        return to_frame(_array_columns(self), kind=kind)


def _array_columns(curve: RocCurve | ReliabilityCurve) -> Columns:
    """Return the arrays of a curve by name, with a row for each point."""
    return {name: column for name, column in curve._asdict().items() if isinstance(column, np.ndarray)}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CrossValidation(ReadOnlyArrays, Tabular):
    """How well models classify items whose gold was hidden from them, as `crowdgraph.evaluation.cross_validate` finds.

    As a table: a row for each model with the mean of every score over folds, and its standard deviation as ``spread
    of``. Printed: the same in short.

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
        The class probabilities of each item while its gold was hidden, from each model, of shape (M, N, J).
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
        How many of the items nobody answered; all that models know of these is their prior.

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
            "n_items": _bin_counts(self.n_items, shape=(n_models, n_bins), total=len(items)),
            **{name: _array_with_nan(name, getattr(self, name), shape=shape) for name, shape in shapes.items()},
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.folds.max(initial=-1)) + 1

    def mean(self, score: str) -> Array:
        """Return the mean of a score over the folds in which it is defined, for each model, of shape (M,)."""
        return nan_mean(self._score(score), axis=1)

    def spread(self, score: str) -> Array:
        """Return the standard deviation of a score over those folds, of shape (M,); NaN for fewer than two."""
        return nan_std(self._score(score), axis=1)

    def roc(self, model: str, *, positive: Hashable | None = None) -> RocCurve:
        """Return the ROC curve of a model, averaged over folds.

        At each false positive rate, the true positive rates of all folds are averaged. The curve begins at the origin
        and rises there to the rate that is reached without a false positive.

        Parameters
        ----------
        model
            The model's name.
        positive
            The class that is to be found. If left out: the last of two classes; of more, the mean over the classes.
        """
        index = self._model_index(model)
        rates = self.true_positive_rate[index]
        if positive is None and len(self.classes) == 2:
            positive = self.classes[1]
        if positive is None:
            curves, score = nan_mean(rates, axis=1), "auc"
        else:
            curves, score = rates[:, self._class_code(positive)], f"auc({positive})"
        if np.isnan(curves).all():
            raise ParameterError(
                f"No fold holds both items of {'a class' if positive is None else repr(positive)} and others, so there "
                "is no ROC curve.",
                hint="Use fewer folds, or add gold.",
            )
        mean, spread = nan_mean(curves, axis=0), nan_std(curves, axis=0)
        return RocCurve(positive, self.false_positive_rate, mean, spread, float(self.mean(score)[index]))

    def reliability(self, model: str) -> ReliabilityCurve:
        """Return how often a model's most probable class is the true one, against its probability.

        The curve is over the items of all folds; the calibration error is that of the table, the mean over folds.

        Parameters
        ----------
        model
            The model's name.
        """
        index = self._model_index(model)
        full = self.n_items[index] > 0
        error = float(self.mean("calibration_error")[index])
        return ReliabilityCurve(self.stated[index, full], self.observed[index, full], self.n_items[index, full], error)

    def _columns(self) -> Columns:
        columns = {"model": object_array(self.models)}
        for score in self.scores:
            columns |= {score: self.mean(score), f"spread of {score}": self.spread(score)}
        return columns

    def __repr__(self) -> str:
        unanswered = f" ({self.n_unanswered:,} of them unanswered)" if self.n_unanswered else ""
        counts = np.bincount(self.truth, minlength=len(self.classes))
        classes = [f"{name} {count:,}" for name, count in zip(self.classes, counts, strict=True)]
        more = f" and {len(classes) - MAX_CLASSES_SHOWN:,} more" if len(classes) > MAX_CLASSES_SHOWN else ""
        columns = [["model", *self.models], *(self._printed_column(score) for score in SCORES)]
        widths = [max(map(len, column)) for column in columns]
        rows = zip(*columns, strict=True)
        lines = ["   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(
            [
                f"CrossValidation: {self.n_folds} folds of {quantity(len(self.items), 'gold item')}{unanswered}",
                "  mean ± standard deviation over folds",
                f"  classes: {', '.join(classes[:MAX_CLASSES_SHOWN])}{more}",
                *(f"  {line}".rstrip() for line in lines),
            ]
        )

    def _printed_column(self, score: str) -> list[str]:
        """Return a column of the printed table."""
        pairs = zip(self.mean(score), self.spread(score), strict=True)
        return [score, *(f"{mean:.3f} ± {spread:.3f}" for mean, spread in pairs)]

    def _score(self, score: str) -> Array:
        check_choice("score", score, tuple(self.scores))
        return self.scores[score]

    def _model_index(self, model: str) -> int:
        check_choice("model", model, self.models)
        return self.models.index(model)

    def _class_code(self, positive: Hashable) -> int:
        if positive not in self.classes:
            raise ParameterError(
                f"positive={positive!r} is not a class; the classes are {quote(self.classes)}."
                f"{suggestion(positive, self.classes)}"
            )
        return self.classes.index(positive)


def _codes(name: str, values: ArrayLike, *, length: int, size: int) -> Array:
    """Return a read-only column of numbers from 0 up to `size`."""
    codes = read_only(values, dtype=np.int64)
    if codes.shape != (length,):
        raise ResultError(f"{name} has shape {codes.shape}; expected ({length},), one for each item.")
    if length and not 0 <= codes.min() <= codes.max() < size:
        raise ResultError(f"{name} runs from {codes.min()} to {codes.max()}; expected 0 to {size - 1}.")
    return codes


def _array_with_nan(name: str, values: ArrayLike, *, shape: tuple[int, ...]) -> Array:
    """Return a read-only float64 array in which NaN stands for what is not defined."""
    array = read_only(values, dtype=np.float64)
    if array.shape != shape:
        raise ResultError(f"{name} has shape {array.shape}; expected {shape}.")
    return array


def _bin_counts(values: ArrayLike, *, shape: tuple[int, ...], total: int) -> Array:
    """Return the number of items in each bin, which add up to all items for each model."""
    counts = read_only(values, dtype=np.int64)
    if counts.shape != shape or (counts < 0).any() or (counts.sum(axis=1) != total).any():
        raise ResultError(f"n_items must count the {total:,} items for each model, in shape {shape}; got {counts}.")
    return counts


def _score_table(scores: Mapping[str, ArrayLike], classes: tuple[Hashable, ...], *, shape: tuple[int, int]) -> Any:
    """Return the scores by name, with the AUC of each class after that of all."""
    names = ["auc", *(f"auc({name})" for name in classes), *SCORES[1:]]
    if set(names) != set(scores):
        raise ResultError(f"The scores are {quote(scores, most=20)}; expected {quote(names, most=20)}.")
    return FrozenMapping({name: _array_with_nan(name, scores[name], shape=shape) for name in names})


class HiddenGold(NamedTuple):
    """The gold that is hidden in turn: codes of the items, their classes and their folds, each of shape (N,)."""

    items: Array
    truth: Array
    folds: Array


def cross_validate(
    graph: CrowdGraph,
    models: Model | Sequence[Model] | Mapping[str, Model],
    *,
    folds: int = 5,
    n_bins: int = 10,
    seed: int | None = 0,
    progress: bool = False,
) -> CrossValidation:
    """Compare models on gold items whose gold was hidden from them.

    Gold items are split into folds class by class, so that every fold has its share of each. The gold of one fold at a
    time is hidden, every model is fitted to all responses and the rest of the gold, and its class probabilities of the
    hidden items are scored; all models see the same folds. A class with fewer gold items than folds has no AUC in the
    folds without it, and is averaged over the others.

    Only items whose class is certain are hidden and scored; gold that is a probability always stays visible. Gold items
    that nobody answered are scored like others; the result counts them. A prior that was learned from the same gold,
    such as an earlier fit, has seen what is hidden; ``confusion_prior="gold"`` is learned anew in each fold.

    Parameters
    ----------
    graph
        A graph with gold of at least two classes; it stays as it is.
    models
        A model, several, or a mapping from names to models. Several models go by their own names, such as ``"ibcc"``.
    folds
        How many folds; at most as many as there are gold items.
    n_bins
        Into how many bins of equal width stated probabilities are put for the calibration error and the reliability
        curve.
    seed
        The seed of the folds and of the models: the same seed gives the same result. None draws a new one.
    progress
        Whether to show a progress bar.

    Returns
    -------
    CrossValidation
        Scores with mean and spread over folds, averaged ROC curves and reliability curves. Warnings of the fits are
        shown once for each model.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(seed=0).graph
    >>> result = cross_validate(graph, {"votes": cg.MajorityVote(), "ibcc": cg.IBCC()}, folds=4)
    >>> result.scores["auc"].shape
    (2, 4)
    >>> votes, ibcc = result.mean("log_loss")
    >>> bool(ibcc < votes)
    True
    >>> result.to_frame()["model"].tolist()
    ['votes', 'ibcc']
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"Models are compared on a CrowdGraph; got {with_article(type(graph))}.")
    models_by_name = _by_name(models)
    check_integer("folds", folds, minimum=2)
    check_integer("n_bins", n_bins)
    hidden = _split_gold(graph, folds, seed)
    probs = np.zeros((len(models_by_name), len(hidden.items), len(graph.classes)))
    seconds = np.zeros((len(models_by_name), folds))
    with progress_bar("cross validation", visible=progress, total=seconds.size, unit="fits") as bar:
        for index, (name, model) in enumerate(models_by_name.items()):
            with _warnings_once(name):
                probs[index], seconds[index] = _predict_hidden(graph, model, hidden, seed, bar.update)
    return CrossValidation(
        models=tuple(models_by_name),
        classes=graph.classes,
        items=graph.items.ids[hidden.items],
        truth=hidden.truth,
        folds=hidden.folds,
        item_probs=probs,
        scores={**_scores(hidden, probs, graph.classes, n_bins), "seconds": seconds},
        n_unanswered=int(np.count_nonzero(graph.answers.n_by_item[hidden.items] == 0)),
        **_curves(hidden, probs, n_bins),
    )


def _by_name(models: Any) -> dict[str, Model]:
    """Return the models by name."""
    if isinstance(models, Mapping):
        models_by_name = dict(models)
    else:
        several = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        _check_models(several)
        names = [model.name for model in several]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ParameterError(
                f"Several models are called {repeated[0]!r}.",
                hint="Name them with a mapping, such as models={'first': ..., 'second': ...}.",
            )
        models_by_name = dict(zip(names, several, strict=True))
    if not models_by_name:
        raise ParameterError("There are no models to compare.", hint="Give at least one, such as models=[IBCC()].")
    _check_models(models_by_name.values())
    no_text = [name for name in models_by_name if not isinstance(name, str)]
    if no_text:
        raise ParameterError(f"Names of models must be text; got {quote(no_text)}.")
    return models_by_name


def _check_models(models: Any) -> None:
    for model in models:
        if isinstance(model, type):
            raise ParameterError(
                f"models= takes models with their settings; got the class, so write {model.__name__}()."
            )
        if not isinstance(model, Model):
            raise ParameterError(
                f"models= takes a model, several, or a mapping from names to models; got {with_article(type(model))}."
            )


def _split_gold(graph: CrowdGraph, n_folds: int, seed: int | None) -> HiddenGold:
    """Split the gold items into folds, class by class: the folds' numbers of a class differ by at most one item."""
    items = np.flatnonzero(graph.gold.codes >= 0)
    truth = graph.gold.codes[items]
    if not len(items):
        got = f"only probabilities, for {len(graph.gold):,} items" if len(graph.gold) else "none"
        raise GoldError(
            f"Cross validation hides gold whose class is certain; the graph has {got}.",
            hint=Hint("Add some with graph.with_gold({item: class, ...}).", cli="Add some with --gold FILE."),
        )
    if len(np.unique(truth)) < 2:
        raise GoldError(
            f"Gold covers the class {graph.classes[truth[0]]!r} only ({len(items):,} items), so it cannot show whether "
            "models distinguish classes.",
            hint="Add gold of another class.",
        )
    if len(items) < n_folds:
        raise ParameterError(
            argument("folds", n_folds)
            + f" is too many: only {len(items):,} items have gold that is certain, and every fold needs one.",
            hint=Hint(
                f"Use folds={len(items)} or fewer, or add gold.", cli=f"Use --folds {len(items)} or fewer, or add gold."
            ),
        )
    order = np.random.default_rng(seed).permutation(len(items))
    order = order[np.argsort(truth[order], kind="stable")]
    folds = np.empty(len(items), dtype=np.int64)
    folds[order] = np.arange(len(items)) % n_folds
    return HiddenGold(items, truth, folds)


def _predict_hidden(
    graph: CrowdGraph, model: Model, hidden: HiddenGold, seed: int | None, tick: Callable[[], Any]
) -> tuple[Array, Array]:
    """Return a model's probabilities of each item while its gold is hidden, (N, J), and the seconds of each fit."""
    probs, seconds = np.zeros((len(hidden.items), len(graph.classes))), []
    model.warm_up(graph)
    for fold in range(hidden.folds.max() + 1):
        in_fold = hidden.folds == fold
        visible = np.ones(len(graph.items), dtype=bool)
        visible[hidden.items[in_fold]] = False
        # A new graph for every model: what a graph computes once and keeps would favour the models that come later.
        view = graph.replace(gold=graph.gold.where(visible))
        start = time.perf_counter()
        fit = model.fit(view, seed=seed)
        seconds.append(time.perf_counter() - start)
        probs[in_fold] = fit.item_probs[hidden.items[in_fold]]
        tick()
    return probs, np.array(seconds)


@contextmanager
def _warnings_once(name: str) -> Iterator[None]:
    """Hold warnings back and issue each kind once afterwards, naming the model; errors name it as well."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except Exception as error:
        error.add_note(f"This happened in the cross validation of the model {name!r}.")
        raise
    by_line: dict[Any, list[warnings.WarningMessage]] = {}
    for warning in caught:
        by_line.setdefault((warning.category, warning.filename, warning.lineno), []).append(warning)
    for (category, filename, line), alike in by_line.items():
        first = alike[0].message
        text = first.message if isinstance(first, CrowdGraphWarning) else str(first)
        times = f", {len(alike):,} times" if len(alike) > 1 else ""
        warnings.warn_explicit(text + f" (In the cross validation of {name!r}{times}.)", category, filename, line)


def _scores(hidden: HiddenGold, probs: Array, classes: tuple[Any, ...], n_bins: int) -> dict[str, Array]:
    """Return every score but the seconds of each model and fold, each of shape (M, F)."""
    areas = _by_fold(hidden, probs, aucs_by_class)
    measures: dict[str, Callable[[Array, Array], float]] = {
        "accuracy": accuracy,
        "log_loss": log_loss,
        "brier": brier_score,
        "calibration_error": partial(calibration_error, n_bins=n_bins),
    }
    return {
        "auc": nan_mean(areas, axis=2),
        **{f"auc({name})": areas[:, :, code] for code, name in enumerate(classes)},
        **{name: _by_fold(hidden, probs, measures[name]) for name in SCORES if name in measures},
    }


def _by_fold(hidden: HiddenGold, probs: Array, measure: Callable[[Array, Array], Any]) -> Array:
    """Return a measure of truth and probabilities for each model and fold."""
    folds = [hidden.folds == fold for fold in range(hidden.folds.max() + 1)]
    return np.array([[measure(hidden.truth[fold], stated[fold]) for fold in folds] for stated in probs])


def _curves(hidden: HiddenGold, probs: Array, n_bins: int) -> dict[str, Array]:
    """Return the ROC curves of each model, fold and class, and the reliability of each model over all folds."""
    bins = [reliability_bins(hidden.truth, model_probs, n_bins=n_bins) for model_probs in probs]
    stated, observed, n_items = zip(*bins, strict=True)
    return {
        "false_positive_rate": FALSE_POSITIVE_RATE,
        "true_positive_rate": _by_fold(hidden, probs, roc_curves_by_class),
        "stated": np.array(stated),
        "observed": np.array(observed),
        "n_items": np.array(n_items),
    }
