"""The calibration of a fitted model against gold."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._text import p_value_text, quantity
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning
from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.scores import calibration_error, item_log_losses, reliability_bins
from crowdgraph.messages import Message

if TYPE_CHECKING:
    from crowdgraph.models.base import Model

__all__ = ["SURE_PROBABILITY", "Calibration", "Unmeasured", "calibration"]

N_BINS = 10
# A model is sure of an item if its most probable class is at least this probable.
SURE_PROBABILITY = 0.9
# Gold is hidden in this many folds, each of which is a fit, for graphs of at most this many responses.
N_FOLDS = 3
MAX_RESPONSES_TO_REFIT = 200_000
# Bootstraps and draws by chance, the ends of intervals, and the p-value from which on the stated probabilities hold.
N_DRAWS = 500
TAILS = np.array([0.05, 0.95])
MIN_P_VALUE = 0.05
NO_GOLD = (
    "The stated probabilities were not checked: no gold. Give the true classes of some items that have answers to have "
    "them checked."
)
CROSS_VALIDATION_HINT = Message(
    "crowdgraph evaluate, or cg.evaluation.cross_validate, hides gold in turns and measures it.",
    cli="crowdgraph evaluate hides gold in turns and measures it.",
)


class Calibration(NamedTuple):
    """How often the most probable class of gold items is right, by how probable the model says it is.

    Attributes
    ----------
    gold
        Why the gold did not help the model: ``"unused"`` if the model did not follow it, ``"left out"`` if every item's
        own gold was taken out of the confusion matrices again, ``"hidden"`` if the model was fitted again without it.
    stated, observed, n_items
        For each bin the mean probability of the most probable class, the share of items for which it is right, and
        the number of items.
    accuracy
        The share of items whose most probable class is right.
    n_sure, sure_accuracy
        The number of items whose most probable class has a probability of 0.9 or more, and the share of these for which
        it is right (NaN if there are none).
    error, error_interval
        The mean difference between stated and observed shares, and the interval in which 90 % of bootstraps over items
        lie.
    log_loss, log_loss_interval
        The mean log loss, and its interval likewise.
    bias
        The share of items whose most probable class is right, minus the mean of what is stated: negative if the model
        is surer than it should be.
    p_value
        How often a model whose stated probabilities hold would show so large an `error` by chance.
    """

    gold: Literal["unused", "left out", "hidden"]
    stated: Array
    observed: Array
    n_items: Array
    accuracy: float
    n_sure: int
    sure_accuracy: float
    error: float
    error_interval: tuple[float, float]
    log_loss: float
    log_loss_interval: tuple[float, float]
    bias: float
    p_value: float

    @property
    def holds(self) -> bool:
        """Whether stated and observed shares differ by no more than chance explains (a p-value of 0.05 or more)."""
        return self.p_value >= MIN_P_VALUE

    @property
    def sure_interval(self) -> tuple[float, float]:
        """The interval that holds `sure_accuracy` with a probability of 90 %, by Jeffreys' prior; NaN without items."""
        from scipy.special import betaincinv

        if not self.n_sure:
            return float("nan"), float("nan")
        n_right = round(self.n_sure * self.sure_accuracy)
        low, high = betaincinv(n_right + 0.5, self.n_sure - n_right + 0.5, TAILS)
        return float(low) if n_right else 0.0, float(high) if n_right < self.n_sure else 1.0

    @property
    def verdict(self) -> str:
        """A sentence on whether the stated probabilities hold."""
        if not self.n_sure:
            words = f"The model is at least {SURE_PROBABILITY:.0%} sure of no gold item."
        else:
            low, high = self.sure_interval
            words = (
                f"Of {quantity(self.n_sure, 'gold item')} that the model is at least {SURE_PROBABILITY:.0%} sure of, "
                f"{round(self.n_sure * self.sure_accuracy):,} are right: {self.sure_accuracy:.0%} (90% interval "
                f"{low:.0%} to {high:.0%})."
            )
        if self.holds:
            return f"{words} Gold does not contradict the stated probabilities (p = {self.p_value:.2f})."
        direction = "surer" if self.bias < 0 else "less sure"
        return f"{words} Over all gold items the model is {direction} than it should be ({p_value_text(self.p_value)})."


class Unmeasured(NamedTuple):
    """The reason why the calibration was not measured."""

    reason: str


def calibration(graph: CrowdGraph, fit: ModelFit, *, model: Model | None = None) -> Calibration | Unmeasured:
    """Compare the class probabilities of a fit with gold, without letting the gold help the model.

    A model that was given the gold repeats it. If its confusion matrices do not change over time, every item's gold is
    taken out of them again. Otherwise the model must be fitted again while gold is hidden, in three folds.

    Parameters
    ----------
    graph
        The graph that was fitted, with gold.
    fit
        The fit.
    model
        The model to fit again where that is needed; without it nothing is fitted, and the reason is returned instead.

    Returns
    -------
    Calibration or Unmeasured
        The calibration; or the reason why it was not measured, such as that there is no gold.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(gold=0.5, seed=0).graph
    >>> measured = calibration(graph, cg.IBCC().fit(graph))
    >>> measured.gold, measured.accuracy > 0.8
    ('left out', True)
    """
    gold = graph.gold
    items = np.flatnonzero((gold.codes >= 0) & (graph.items.n_responses > 0))
    if not len(items):
        return Unmeasured(NO_GOLD)
    truth, probs = gold.codes[items], fit.item_probs[items]
    if not np.allclose(probs, gold.probs[items], atol=1e-6):
        return _against(truth, probs, "unused")
    # Those of models of difficulties or with classifiers, and calibrated ones, do not follow from the answers alone.
    is_product = not {"difficulties", "classifier"} & set(fit.diagnostics) and fit.dependence is None
    if fit.confusion is not None and fit.confusion.inference == "static" and is_product:
        return _against(truth, probs_without_own_gold(graph, fit, fit.confusion)[items], "left out")
    return _while_hidden(graph, model)


def _against(truth: Array, probs: Array, gold: Literal["unused", "left out", "hidden"]) -> Calibration:
    """Compare class probabilities, of shape (N, J), with the true classes."""
    stated, observed, n_items = reliability_bins(truth, probs, n_bins=N_BINS)
    right, sure = probs.argmax(axis=1) == truth, probs.max(axis=1) >= SURE_PROBABILITY
    losses = item_log_losses(truth, probs)
    error = calibration_error(truth, probs, n_bins=N_BINS)
    errors, mean_losses, chance_errors = _resampled(right, probs.max(axis=1), losses)
    return Calibration(
        gold=gold,
        stated=stated,
        observed=observed,
        n_items=n_items,
        accuracy=float(right.mean()),
        n_sure=int(sure.sum()),
        sure_accuracy=_share(float(right[sure].sum()), float(sure.sum())),
        error=error,
        error_interval=_interval(errors),
        log_loss=float(losses.mean()),
        log_loss_interval=_interval(mean_losses),
        bias=float((right - probs.max(axis=1)).mean()),
        p_value=float((1 + np.count_nonzero(chance_errors >= error - 1e-12)) / (1 + N_DRAWS)),
    )


def _resampled(right: Array, stated: Array, losses: Array) -> tuple[Array, Array, Array]:
    """Return calibration errors and log losses of bootstraps over items, and errors of a model that is calibrated."""
    rng, n = np.random.default_rng(0), len(right)
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    bins = np.clip(np.searchsorted(edges, stated, side="right") - 1, 0, N_BINS - 1)
    errors, mean_losses, chance_errors = np.empty(N_DRAWS), np.empty(N_DRAWS), np.empty(N_DRAWS)
    for draw in range(N_DRAWS):
        rows = rng.integers(n, size=n)
        errors[draw] = _bin_gap(bins[rows], (right - stated)[rows])
        mean_losses[draw] = losses[rows].mean()
        chance_errors[draw] = _bin_gap(bins, (rng.random(n) < stated) - stated)
    return errors, mean_losses, chance_errors


def _bin_gap(bins: Array, gaps: Array) -> float:
    """Return the sum over bins of the absolute sums of gaps, for each item."""
    return float(np.abs(np.bincount(bins, gaps, minlength=N_BINS)).sum() / len(gaps))


def _interval(draws: Array) -> tuple[float, float]:
    low, high = np.quantile(draws, TAILS)
    return float(low), float(high)


def _while_hidden(graph: CrowdGraph, model: Model | None) -> Calibration | Unmeasured:
    """Fit the model again while gold is hidden, and compare its class probabilities of the hidden items with gold.

    Matrices that change over time have followed the gold from answer to answer, and it cannot be taken out again.
    """
    if model is None:
        return _unmeasured(
            "The model repeats the gold, so it must be fitted again while gold is hidden, which was not done"
            + Message(": crowdgraph.analysis.analyse(graph) does it. ", cli=". ")
            + CROSS_VALIDATION_HINT
        )
    if len(graph.responses) > MAX_RESPONSES_TO_REFIT:
        return _unmeasured(
            f"The model repeats the gold; with over {MAX_RESPONSES_TO_REFIT:,} responses new fits take long. "
            + CROSS_VALIDATION_HINT
        )
    with warnings.catch_warnings():
        # The fit itself has warned already.
        warnings.simplefilter("ignore", CrowdGraphWarning)
        try:
            held_out = cross_validate(graph, model, folds=N_FOLDS, seed=0)
        except CrowdGraphError as error:
            return _unmeasured("The model repeats the gold, and hiding it does not work here. " + error.message)
    answered = graph.items.n_responses[graph.items.codes(held_out.items.tolist())] > 0
    return _against(held_out.truth[answered], held_out.item_probs[0][answered], "hidden")


def _unmeasured(reason: str) -> Unmeasured:
    return Unmeasured("Accuracy was not measured. " + reason)


def probs_without_own_gold(graph: CrowdGraph, fit: ModelFit, track: ConfusionTrack) -> Array:
    """Return the class probabilities of each item given its answers but not its own gold, of shape (N, J).

    The confusion matrices, which do not change over time, have counted the answers about items with gold; each item's
    own answers are taken out again. The effect of an item's gold on other items stays.
    """
    from crowdgraph.kernels.discount import discounted_probs
    from crowdgraph.models.calibrated import evidence_without_own_answers

    evidence = evidence_without_own_answers(fit, track, graph)
    if evidence is None:
        return fit.item_probs
    return discounted_probs(evidence, graph.answers.n_by_item, fit.class_probs, 0.0)


def _share(part: float, total: float) -> float:
    return float(part / total) if total else float("nan")
