"""Cross validation: hide some gold, fit, and see what models say of the items it was hidden from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, FrozenMapping, ReadOnlyArrays, object_array, read_only, value_tuple
from crowdgraph.core._parameters import check_integer, progress_bar
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, probability_array, real_array, to_frame, unique_ids
from crowdgraph.errors import GoldError, ParameterError, ResultError, check_choice, quote, suggestion
from crowdgraph.evaluation.scores import (
    FALSE_POSITIVE_RATE,
    aucs_by_class,
    calibration_error,
    reliability,
    roc_curves_by_class,
)
from crowdgraph.models.base import Model

__all__ = [
    "SCORES",
    "CrossValidation",
    "ReliabilityCurve",
    "RocCurve",
    "cross_validate",
    "nan_mean",
    "nan_std",
]

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
class CrossValidation(ReadOnlyArrays, Tabular):
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
        return nan_mean(self._score(score), axis=1)

    def spread(self, score: str) -> Array:
        """The standard deviation of a score over those folds, for each model, of shape (M,); NaN for fewer than two."""
        return nan_std(self._score(score), axis=1)

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
            curves, score = nan_mean(rates, axis=1), "auc"
        else:
            curves, score = rates[:, self._class_code(positive)], f"auc({positive})"
        if np.isnan(curves).all():
            raise ParameterError(
                f"No fold holds both items of {'a class' if positive is None else repr(positive)} and others, so there "
                "is no ROC curve. Use fewer folds, or add gold."
            )
        mean, spread = nan_mean(curves, axis=0), nan_std(curves, axis=0)
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


def nan_mean(values: Array, *, axis: int) -> Array:
    """The mean of the values that are not NaN; NaN where all are."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.where(n_defined > 0, n_defined, np.nan))


def nan_std(values: Array, *, axis: int) -> Array:
    """The sample standard deviation of the values that are not NaN; NaN for fewer than two."""
    n_defined = np.count_nonzero(~np.isnan(values), axis=axis)
    gaps = values - np.expand_dims(nan_mean(values, axis=axis), axis)
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


class Hidden(NamedTuple):
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
    """Compare models by what they say of gold items whose gold was hidden from them.

    Gold items are dealt into folds, class by class, so that every fold has its share of each. The gold of one fold at a
    time is hidden, every model is fitted to all responses and the rest of the gold, and its class probabilities of the
    hidden items are scored; all models see the same folds. A class with fewer gold items than folds has no AUC in the
    folds without it, and is averaged over the others.

    Only items whose class is known for certain are hidden and scored; gold that is a probability always stays visible.
    Gold items that nobody answered are scored like others; the result tells how many there are. A prior that was
    learned from the same gold, such as an earlier fit, has seen what is hidden; ``confusion_prior="gold"`` is learned
    anew in each fold.

    Parameters
    ----------
    graph
        A graph with gold of at least two classes; it stays as it is.
    models
        A model, several, or a mapping from names to models. Several models go by their own names, such as ``"ibcc"``.
    folds
        How many folds; at most as many as there are gold items.
    n_bins
        Into how many bins of equal width stated probabilities are put for the calibration error and the curve of
        reliability.
    seed
        Of the folds, and handed to the models: the same seed gives the same result. None draws anew.
    progress
        Whether to show a progress bar.

    Returns
    -------
    CrossValidation
        Scores with mean and spread over folds, averaged ROC curves and curves of reliability. Warnings of the fits come
        once for each model.

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
        raise ParameterError(f"Cross validation is of a CrowdGraph; got a {type(graph).__name__}.")
    named = _named(models)
    check_integer("folds", folds, minimum=2)
    check_integer("n_bins", n_bins)
    hidden = _dealt(graph, folds, seed)
    probs = np.zeros((len(named), len(hidden.items), len(graph.classes)))
    seconds = np.zeros((len(named), folds))
    with progress_bar("cross validation", visible=progress, total=seconds.size, unit="fits") as bar:
        for place, (name, model) in enumerate(named.items()):
            with _told_once(name):
                probs[place], seconds[place] = _held_out(graph, model, hidden, seed, bar.update)
    return CrossValidation(
        models=tuple(named),
        classes=graph.classes,
        items=graph.items.ids[hidden.items],
        truth=hidden.truth,
        folds=hidden.folds,
        item_probs=probs,
        scores={**_scores(hidden, probs, graph.classes, n_bins), "seconds": seconds},
        n_unanswered=_n_unanswered(graph, hidden.items),
        **_curves(hidden, probs, n_bins),
    )


def _named(models: Any) -> dict[str, Model]:
    """The models by name."""
    if isinstance(models, Mapping):
        named = dict(models)
    else:
        listed = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        _check_models(listed)
        names = [model.name for model in listed]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise ParameterError(
                f"Several models are called {twice[0]!r}; name them with a mapping, such as "
                "models={'first': ..., 'second': ...}."
            )
        named = dict(zip(names, listed, strict=True))
    if not named:
        raise ParameterError("There are no models to compare; give at least one, such as models=[IBCC()].")
    _check_models(named.values())
    strange = [name for name in named if not isinstance(name, str)]
    if strange:
        raise ParameterError(f"Names of models must be text; got {quote(strange)}.")
    return named


def _check_models(models: Any) -> None:
    for model in models:
        if isinstance(model, type):
            raise ParameterError(
                f"models= takes models with their settings; got the class, so write {model.__name__}()."
            )
        if not isinstance(model, Model):
            raise ParameterError(
                f"models= takes a model, several, or a mapping from names to models; got a {type(model).__name__}."
            )


def _dealt(graph: CrowdGraph, n_folds: int, seed: int | None) -> Hidden:
    """The gold items, dealt into folds class by class: each fold's share of a class is even to one item."""
    items = np.flatnonzero(graph.gold.codes >= 0)
    truth = graph.gold.codes[items]
    if not len(items):
        got = f"only probabilities, for {len(graph.gold):,} items" if len(graph.gold) else "none"
        raise GoldError(
            f"Cross validation hides gold whose class is known for certain; the graph has {got}. Add some with "
            "graph.with_gold({item: class, ...})."
        )
    if len(np.unique(truth)) < 2:
        raise GoldError(
            f"Gold covers the class {graph.classes[truth[0]]!r} only ({len(items):,} items), so it cannot show whether "
            "models tell classes apart. Add gold of another class."
        )
    if len(items) < n_folds:
        raise ParameterError(
            f"folds={n_folds!r}, but only {len(items):,} items have gold that is certain, and every fold needs one. "
            f"Use folds={len(items)} or fewer, or add gold."
        )
    order = np.random.default_rng(seed).permutation(len(items))
    order = order[np.argsort(truth[order], kind="stable")]
    folds = np.empty(len(items), dtype=np.int64)
    folds[order] = np.arange(len(items)) % n_folds
    return Hidden(items, truth, folds)


def _held_out(
    graph: CrowdGraph, model: Model, hidden: Hidden, seed: int | None, tick: Callable[[], Any]
) -> tuple[Array, Array]:
    """What a model says of each item while its gold is hidden, of shape (N, J), and the seconds of each fit."""
    probs, seconds = np.zeros((len(hidden.items), len(graph.classes))), []
    model.warm_up(graph)
    for fold in range(hidden.folds.max() + 1):
        here = hidden.folds == fold
        kept = np.ones(len(graph.items), dtype=bool)
        kept[hidden.items[here]] = False
        # A new graph for every model: what a graph works out once and keeps would favour the models that come later.
        rest = graph.replace(gold=graph.gold.where(kept))
        start = time.perf_counter()
        fit = model.fit(rest, seed=seed)
        seconds.append(time.perf_counter() - start)
        probs[here] = fit.item_probs[hidden.items[here]]
        tick()
    return probs, np.array(seconds)


@contextmanager
def _told_once(name: str) -> Iterator[None]:
    """Hold warnings back and tell each kind once afterwards, naming the model; errors name it as well."""
    told: dict[Any, list[warnings.WarningMessage]] = {}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except Exception as error:
        error.add_note(f"This happened in the cross validation of the model {name!r}.")
        raise
    for warning in caught:
        told.setdefault((warning.category, warning.filename, warning.lineno), []).append(warning)
    for (category, filename, line), alike in told.items():
        times = f", {len(alike):,} times" if len(alike) > 1 else ""
        message = f"{alike[0].message} (In the cross validation of {name!r}{times}.)"
        warnings.warn_explicit(message, category, filename, line)


def _scores(hidden: Hidden, probs: Array, classes: tuple[Any, ...], n_bins: int) -> dict[str, Array]:
    """Every score of each model and fold, each of shape (M, F)."""
    areas = _by_fold(hidden, probs, aucs_by_class)
    measures: dict[str, Callable[[Array, Array], float]] = {
        "accuracy": lambda truth, stated: float((stated.argmax(axis=1) == truth).mean()),
        "log_loss": _log_loss,
        "brier": _brier,
        "calibration_error": lambda truth, stated: calibration_error(truth, stated, n_bins=n_bins),
    }
    return {
        "auc": nan_mean(areas, axis=2),
        **{f"auc({name})": areas[:, :, code] for code, name in enumerate(classes)},
        **{name: _by_fold(hidden, probs, measures[name]) for name in SCORES if name in measures},
    }


def _by_fold(hidden: Hidden, probs: Array, measure: Callable[[Array, Array], Any]) -> Array:
    """A measure of truth and probabilities, for each model and fold."""
    folds = [hidden.folds == fold for fold in range(hidden.folds.max() + 1)]
    return np.array([[measure(hidden.truth[here], stated[here]) for here in folds] for stated in probs])


def _log_loss(truth: Array, probs: Array) -> float:
    from sklearn.metrics import log_loss

    # Probabilities of single precision sum to one less exactly than scikit-learn wants.
    normal = probs / probs.sum(axis=1, keepdims=True)
    return float(log_loss(truth, normal, labels=np.arange(probs.shape[1])))


def _brier(truth: Array, probs: Array) -> float:
    return float(((probs - np.eye(probs.shape[1])[truth]) ** 2).sum(axis=1).mean())


def _curves(hidden: Hidden, probs: Array, n_bins: int) -> dict[str, Array]:
    """ROC curves of each model, fold and class, and the reliability of each model over all folds."""
    stated, observed, n_items = zip(*(reliability(hidden.truth, said, n_bins=n_bins) for said in probs), strict=True)
    return {
        "false_positive_rate": FALSE_POSITIVE_RATE,
        "true_positive_rate": _by_fold(hidden, probs, roc_curves_by_class),
        "stated": np.array(stated),
        "observed": np.array(observed),
        "n_items": np.array(n_items),
    }


def _n_unanswered(graph: CrowdGraph, items: Array) -> int:
    answers = graph.responses.item[graph.responses.label >= 0]
    n_answers: Array = np.bincount(answers, minlength=len(graph.items))
    return int(np.count_nonzero(n_answers[items] == 0))
