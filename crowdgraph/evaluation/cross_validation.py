"""Cross validation: hide some gold, fit, and see what models say of the items it was hidden from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.evaluation import SCORES, CrossValidation, defined_mean
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.progress import progress_bar
from crowdgraph.core.settings import check_integer
from crowdgraph.errors import GoldError, ParameterError, quote
from crowdgraph.evaluation.curves import (
    FALSE_POSITIVE_RATE,
    calibration_error,
    class_aucs,
    class_roc_curves,
    reliability,
)
from crowdgraph.models.base import Model

__all__ = ["cross_validate"]


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
    model.prepare(graph)
    for fold in range(hidden.folds.max() + 1):
        here = hidden.folds == fold
        kept = np.ones(len(graph.items), dtype=bool)
        kept[hidden.items[here]] = False
        # A new graph for every model: what a graph works out once and keeps would favour the models that come later.
        rest = graph._with(gold=graph.gold.where(kept))
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
    areas = _by_fold(hidden, probs, class_aucs)
    measures: dict[str, Callable[[Array, Array], float]] = {
        "accuracy": lambda truth, stated: float((stated.argmax(axis=1) == truth).mean()),
        "log_loss": _log_loss,
        "brier": _brier,
        "calibration_error": lambda truth, stated: calibration_error(truth, stated, n_bins=n_bins),
    }
    return {
        "auc": defined_mean(areas, axis=2),
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
        "true_positive_rate": _by_fold(hidden, probs, class_roc_curves),
        "stated": np.array(stated),
        "observed": np.array(observed),
        "n_items": np.array(n_items),
    }


def _n_unanswered(graph: CrowdGraph, items: Array) -> int:
    answers = graph.responses.item[graph.responses.label >= 0]
    n_answers: Array = np.bincount(answers, minlength=len(graph.items))
    return int(np.count_nonzero(n_answers[items] == 0))
