"""The prior that a crowd sets itself, and confusion whose intervals allow for unknown classes and learned centres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from crowdgraph.core._arrays import Array, row_blocks
from crowdgraph.core._maps import release
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.confusion import ConfusionTrack, correct_labels
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.soft_answers import answer_parts
from crowdgraph.kernels.crowd_prior import (
    MAX_MISSING,
    CrowdWeights,
    answer_effects,
    class_variance,
    honest_totals,
    known_variance,
    learn_crowd_weights,
    one_coin_rows,
    widened_totals,
)
from crowdgraph.models.label_votes import Votes, vote_mask


class LearnedPrior(NamedTuple):
    """A prior learned from a crowd.

    Attributes
    ----------
    own
        The concentration of each volunteer's rows, around their own one-coin matrix, of shape (K, J, L).
    newcomers
        The prior of somebody about whom nothing is known, and of the classes.
    weights
        What the crowd says about its volunteers.
    """

    own: Array
    newcomers: CrowdPrior
    weights: CrowdWeights


class Sums(Protocol):
    """Sums over all answers of a crowd, by volunteer."""

    def expected_counts(self, item_probs: Array) -> Array:
        """Count how often volunteers are expected to have given each label to items of each class, (K, J, L)."""
        ...

    def class_variance(self, item_probs: Array, effect: Array) -> Array:
        """Return by how much sums of effects, (1 or K, J, L), vary because classes are unknown, of shape (K,)."""
        ...


class GraphSums:
    """Sums over the answers of a graph in memory."""

    def __init__(self, graph: CrowdGraph) -> None:
        self._graph = graph

    def expected_counts(self, item_probs: Array) -> Array:
        """See `Sums`."""
        return expected_counts(self._graph, item_probs)

    def class_variance(self, item_probs: Array, effect: Array) -> Array:
        """See `Sums`."""
        return _class_variance(self._graph, item_probs, effect)


def learn_prior(
    graph: CrowdGraph,
    item_probs: Array,
    *,
    votes: Votes | None,
    class_concentration: Array,
    weights: CrowdWeights | None = None,
    counts: Array | None = None,
    sums: Sums | None = None,
    earlier: CrowdWeights | None = None,
) -> LearnedPrior:
    """Learn a prior from the answers of a crowd and class probabilities of the items, of shape (N, J).

    With `weights` only the volunteers' own accuracies are learned. The expected `counts` of the probabilities,
    (K, J, L), are computed if left out. `sums` adds up the answers; in memory if left out. `earlier` weights, learned
    from fewer answers, make it faster.
    """
    sums = sums or GraphSums(graph)
    is_correct = vote_mask(graph, votes)
    counts = sums.expected_counts(item_probs) if counts is None else counts
    if weights is None:
        noise = sums.class_variance(item_probs, is_correct[None].astype(float))
        near = None if earlier is None else earlier.row_weight
        weights = learn_crowd_weights(counts, is_correct, noise, near=near)
    use = counts.sum(axis=(0, 1))
    own = weights.row_weight * one_coin_rows(counts, is_correct, weights, label_use=use)
    typical = one_coin_rows(np.zeros((1, *is_correct.shape)), is_correct, weights, label_use=use)[0]
    newcomers = CrowdPrior(
        ids=np.zeros(0, dtype=graph.volunteers.ids.dtype),
        confusion=np.zeros((0, *is_correct.shape)),
        shared=weights.total * typical,
        class_concentration=class_concentration,
        classes=graph.classes,
        labels=graph.labels,
    )
    return LearnedPrior(own, newcomers, weights)


def posterior_mean(
    graph: CrowdGraph, counts: Array, weights: CrowdWeights, *, votes: Votes | None, label_use: Array
) -> Array:
    """Return the expected confusion of volunteers with some counts of answers, both of shape (n, J, L)."""
    centres = one_coin_rows(counts, vote_mask(graph, votes), weights, label_use=label_use)
    posterior = weights.row_weight * centres + counts
    return np.asarray(posterior / posterior.sum(axis=2, keepdims=True))


def honest_concentration(
    graph: CrowdGraph,
    prior: Array,
    item_probs: Array,
    *,
    is_correct: Array,
    class_probs: Array,
    learned: LearnedPrior | None = None,
    other_accuracy: Array | None = None,
    counts: Array | None = None,
    sums: Sums | None = None,
) -> Array:
    """Return the posterior of every volunteer's confusion, (K, J, L), wide enough for its intervals to hold.

    Parameters
    ----------
    graph
        The graph.
    prior
        The prior concentration, of shape (1 or K, J, L).
    item_probs, class_probs
        The class probabilities of the items, of shape (N, J), and the proportion of each class, of shape (J,).
    is_correct
        Whether a label is correct for a class, of shape (J, L).
    learned
        What was learned from the crowd, if the centres of `prior` were.
    other_accuracy
        The accuracies that the volunteers have under another assumption, of shape (K,), which may hold as well: it is
        taken to be two standard deviations away.
    counts
        The expected counts of the class probabilities, of shape (K, J, L); computed if left out.
    sums
        Adds up the answers; in memory if left out.
    """
    sums = sums or GraphSums(graph)
    counts = sums.expected_counts(item_probs) if counts is None else counts
    rows, totals = _rows_and_totals(prior + counts)
    honest = honest_totals(
        rows,
        totals,
        is_correct,
        class_probs,
        weights=None if learned is None else learned.weights,
        variance_of=lambda effect: sums.class_variance(item_probs, effect),
        doubt=0.0 if other_accuracy is None else (_accuracy(rows, is_correct, class_probs) - other_accuracy) ** 2 / 4,
    )
    posterior = rows * honest[:, :, None]
    if learned is not None:
        # Of somebody without answers nothing is known but the crowd.
        posterior[counts.sum(axis=(1, 2)) == 0] = learned.newcomers.shared
    return np.asarray(posterior)


def widen_steps(
    graph: CrowdGraph,
    concentration: Array,
    starts: Array,
    fit: ModelFit,
    prior: CrowdPrior,
    *,
    sums: Sums | None = None,
) -> None:
    """Widen confusion over time, in place, given the classes of a calibrated fit, so that its intervals hold.

    As for confusion that does not change, unknown classes cost information; and where the correlation of answers is
    assumed, volunteers may as well be as independent answers would have them.

    Parameters
    ----------
    graph
        The graph.
    concentration, starts
        One Dirichlet for each step, of shape (S, J, L), and where each volunteer's steps begin, of shape (K + 1,).
    fit
        The fit that the classes come from.
    prior
        The prior of the volunteers.
    sums
        Adds up the answers; in memory if left out.
    """
    sums = sums or GraphSums(graph)
    is_correct, class_probs = _mask_of(graph, fit, prior), fit.class_probs
    start = prior.of_all(graph.volunteers.ids.tolist())
    rows, totals = _rows_and_totals(start + sums.expected_counts(fit.item_probs))
    right, known = known_variance(rows, totals, is_correct, class_probs)
    effect = answer_effects(right, totals, is_correct, class_probs)
    missing = np.minimum(sums.class_variance(fit.item_probs, effect) / known, MAX_MISSING)
    doubt = np.zeros(len(known))
    if fit.dependence is not None and fit.dependence.source == "assumed":
        others, _ = _rows_and_totals(start + sums.expected_counts(fit.probs_before_discount(graph)))
        doubt = (right @ class_probs - _accuracy(others, is_correct, class_probs)) ** 2 / 4
    for block in row_blocks(len(concentration)):
        owner = np.searchsorted(starts, np.arange(block.start, block.stop), side="right") - 1
        step_rows, step_totals = _rows_and_totals(concentration[block])
        _, step_known = known_variance(step_rows, step_totals, is_correct, class_probs)
        honest = widened_totals(step_totals, 1 / (1 - missing[owner]) + doubt[owner] / step_known)
        concentration[block] = step_rows * honest[:, :, None]
        release(concentration, block.start, block.stop)


def _rows_and_totals(concentration: Array) -> tuple[Array, Array]:
    """Return the means and the concentrations of Dirichlet rows."""
    totals = concentration.sum(axis=2)
    return concentration / totals[:, :, None], totals


def _mask_of(graph: CrowdGraph, fit: ModelFit, prior: CrowdPrior) -> Array:
    """Return which labels are correct for each class, (J, L): as the fit's votes, names or the prior say."""
    if fit.correct_labels is not None or set(graph.labels) <= set(graph.classes):
        return vote_mask(graph, fit.params.get("votes"))
    return np.asarray(prior.shared == prior.shared.max(axis=1, keepdims=True))


def weights_to_facts(weights: CrowdWeights) -> dict[str, float]:
    """Return the weights as a fit's diagnostics hold them."""
    return {
        "accuracy": weights.accuracy,
        "accuracy_weight": weights.accuracy_weight,
        "row_weight": weights.row_weight,
    }


def weights_of(fit: ModelFit) -> CrowdWeights | None:
    """Return the weights with which a fit's prior was learned from the crowd; None if it was not."""
    facts: Mapping[str, Any] | None = fit.diagnostics.get("crowd_prior")
    return None if facts is None else CrowdWeights(**{name: float(value) for name, value in facts.items()})


def correct_mask(fit: ModelFit, track: ConfusionTrack) -> Array:
    """Return which labels are correct for each class, of shape (J, L), as a fit's settings say.

    Where they do not, and labels are not classes, it is the label that the crowd gives most to items of the class.
    """
    correct = fit.correct_labels
    if correct is not None or set(fit.classes) <= set(track.labels):
        return correct_labels(fit.classes, track.labels, correct)
    typical = track.latest().mean.mean(axis=0)
    return np.asarray(typical == typical.max(axis=1, keepdims=True))


def _accuracy(rows: Array, is_correct: Array, class_probs: Array) -> Array:
    """Return the expected share of correct labels of each volunteer, of shape (K,)."""
    return np.asarray((rows * is_correct).sum(axis=2) @ class_probs)


def _class_variance(graph: CrowdGraph, item_probs: Array, effect: Array) -> Array:
    parts = answer_parts(graph)
    return class_variance(
        parts.volunteer,
        parts.item,
        parts.label,
        item_probs,
        effect,
        n_volunteers=len(graph.volunteers),
        share=parts.share,
    )
