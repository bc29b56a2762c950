"""Variational Bayes for DynIBCC: from class probabilities of the items to the confusion at every step, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numba import njit
from scipy.special import stdtr
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.dglm import Scan
from crowdgraph.kernels.dglm_compiled import shares_array
from crowdgraph.kernels.dynamic_bound import step_priors
from crowdgraph.kernels.fixed_point import min_state
from crowdgraph.kernels.special import digamma_and_log_gamma, trigamma
from crowdgraph.tensors.devices import most_precise, total
from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log
from crowdgraph.tensors.dynibcc import (
    LastStates,
    Stage,
    States,
    Steps,
    dirichlet_of_states,
    expected_score,
    predictive_score,
    step_feedback,
    step_logs,
)
from crowdgraph.tensors.ibcc import item_posteriors

__all__ = [
    "CompiledLikelihood",
    "DynamicVB",
    "ItemFeedback",
    "ItemSteps",
    "Likelihood",
    "NoiseChoice",
    "TensorLikelihood",
    "draw_volunteers",
    "shuffle_steps",
]

# Fewer steps than this are not worth a second thread.
MIN_STEPS_PER_THREAD = 20_000
# The range of the logarithm of the noise scale, which may also be zero.
LOG_NOISE_RANGE = (math.log(0.01), math.log(30.0))
# How many scales of this range are compared first; then parabolas through three logarithms at this distance, so many at
# most, lead to the best one, each by at most so many distances.
N_NOISE_SCALES = 6
NEAR, MAX_CLIMBS, MAX_SHIFT = 0.2, 6, 4.0
# What an item does to itself is anticipated to this extent, since it is estimated; only for items whose most probable
# class is this far from certain, which have changed by this share of the largest change, and until they have settled or
# a class probability has moved so far.
FEEDBACK_SHARE, MIN_DOUBT, MIN_SHARE_OF_CHANGE = 0.9, 1e-3, 0.01
MIN_MOVE, MAX_MOVE = 1e-12, 0.1
# Scales are compared on at most so many steps.
MAX_CHOICE_STEPS = 100_000
# Noise has to gain this many nats, and to predict answers better in their own order than in this many random ones.
MIN_NOISE_GAIN = 1.92
N_SHUFFLES = 19
# After so many random orders, fewer will do if another as good as the real one is this improbable.
MIN_SHUFFLES, CLEAR_LEVEL = 4, 1e-3


class ItemSteps(NamedTuple):
    """Steps grouped by item: item `i` was shown at the steps ``steps[starts[i]:starts[i + 1]]``."""

    starts: Tensor
    steps: Tensor


class Likelihood(Protocol):
    """The likelihood of the answers under Dirichlets at their steps, of shape (S, J, L)."""

    def logs(self, concentration: Tensor) -> Tensor:
        """Return the weighted expected log probability of each answer, by class, of shape (S, J).

        It is zero where an item was not answered.
        """
        ...

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Tensor | float:
        """Overwrite the class probabilities of the items, (N, J), unless fixed, and return the largest change."""
        ...

    def add_feedback(self, concentration: Tensor, position: Tensor, effects: Tensor) -> None:
        """Add by how much the log probabilities of some items rise by themselves to `effects`, of shape (n, J).

        It is the sum over an item's answers of the derivative of `logs` by the item's own probability of the class,
        which counts towards the confusion at that very answer. `position` says which row is the item's, (N,), and is
        -1 for items that are left out.
        """
        ...

    def add_to_items(self, logs: Tensor, log_weights: Tensor) -> None:
        """Add the logarithms of each item's answers to its log weights, of shape (N, J)."""
        ...

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """Return two sums of log probabilities with which the Dirichlets predict the answers (erratum 3).

        They are `crowdgraph.tensors.predictive_score` and `crowdgraph.tensors.expected_score`.
        """
        ...

    def with_steps(self, steps: Steps) -> Likelihood:
        """Return a copy for other steps; only `predictive` may be called on it."""
        ...


class TensorLikelihood:
    """The likelihood as tensor operations, on any device."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def logs(self, concentration: Tensor) -> Tensor:
        """See `Likelihood`."""
        return step_logs(self._steps, concentration)

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Tensor:
        """See `Likelihood`."""
        # eq:DynVB_lnqstar_ti, with several steps for repeated answers ("Duplicate Classifications").
        log_weights = class_logs.expand(len(probs), -1).index_add(0, self._steps.item.long(), logs)
        updated = item_posteriors(log_weights, _gold(probs, fixed))
        change = (updated - probs).abs().max()
        probs.copy_(updated)
        return change

    def add_feedback(self, concentration: Tensor, position: Tensor, effects: Tensor) -> None:
        """See `Likelihood`."""
        rows = position[self._steps.item.long()].long()
        chosen = rows >= 0
        effects.index_add_(0, rows[chosen], step_feedback(self._steps, concentration)[chosen])

    def add_to_items(self, logs: Tensor, log_weights: Tensor) -> None:
        """See `Likelihood`."""
        log_weights.index_add_(0, self._steps.item.long(), logs.to(log_weights.dtype))

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """See `Likelihood`."""
        left_out = predictive_score(self._steps, concentration, logs=logs, probs=probs, gold=_gold(probs, fixed))
        return float(left_out), float(expected_score(self._steps, concentration, probs=probs))

    def with_steps(self, steps: Steps) -> TensorLikelihood:
        """See `Likelihood`."""
        other = copy(self)
        other._steps = steps
        return other


def _gold(probs: Tensor, fixed: Tensor) -> Tensor:
    return torch.where(fixed[:, None], probs, torch.nan)


class CompiledLikelihood:
    """The likelihood on CPUs, compiled, in several threads.

    The logarithms are written to the same memory each time. Without `item_steps`, items cannot be updated: their log
    weights are added up.
    """

    def __init__(self, steps: Steps, item_steps: ItemSteps | None, *, n_classes: int) -> None:
        self._set(steps)
        if item_steps is not None:
            self._starts, self._steps = (part.numpy() for part in item_steps)
            at_most = len(self._bounds) - 1
            self._item_bounds = np.searchsorted(self._starts, chunk_bounds(len(self._steps), at_most=at_most))
            self._item_bounds[-1] = len(self._starts) - 1
        self._logs = np.empty((len(self._item), n_classes), self._weight.dtype)
        _compile_likelihood(self._item.dtype, self._label.dtype, self._weight.dtype)

    def logs(self, concentration: Tensor) -> Tensor:
        """See `Likelihood`."""
        table, bounds = concentration.numpy(), self._bounds
        in_parallel(
            lambda chunk: _expected_logs(
                bounds[chunk], bounds[chunk + 1], table, self._label, self._weight, self._shares, self._logs
            ),
            len(bounds) - 1,
        )
        return torch.from_numpy(self._logs)

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> float:
        """See `Likelihood`."""
        bounds, columns = self._item_bounds, (logs.numpy(), class_logs.numpy(), fixed.numpy(), probs.numpy())
        return max(
            in_parallel(
                lambda chunk: _update_items(bounds[chunk], bounds[chunk + 1], self._starts, self._steps, *columns),
                len(bounds) - 1,
            )
        )

    def add_feedback(self, concentration: Tensor, position: Tensor, effects: Tensor) -> None:
        """See `Likelihood`."""
        answers = self._item, self._label, self._weight, self._shares
        columns = (concentration.numpy(), *answers, position.numpy(), effects.numpy())
        bounds = chunk_bounds(len(effects), at_most=len(self._bounds) - 1)
        in_parallel(lambda chunk: _add_feedback(bounds[chunk], bounds[chunk + 1], *columns), len(bounds) - 1)

    def add_to_items(self, logs: Tensor, log_weights: Tensor) -> None:
        """See `Likelihood`."""
        table, sums = logs.numpy(), log_weights.numpy()
        # Every thread looks at all steps and adds to items of its own, so that sums do not depend on the threads.
        bounds = chunk_bounds(len(sums), at_most=len(self._bounds) - 1)
        in_parallel(
            lambda chunk: _add_to_items(bounds[chunk], bounds[chunk + 1], self._item, table, sums), len(bounds) - 1
        )

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """See `Likelihood`."""
        bounds, columns = self._bounds, (concentration.numpy(), logs.numpy(), probs.numpy(), fixed.numpy())
        left_out, expected = zip(
            *in_parallel(
                lambda chunk: _predictive(
                    bounds[chunk], bounds[chunk + 1], self._item, self._label, self._weight, self._shares, *columns
                ),
                len(bounds) - 1,
            ),
            strict=True,
        )
        return math.fsum(left_out), math.fsum(expected)

    def with_steps(self, steps: Steps) -> CompiledLikelihood:
        """See `Likelihood`."""
        other = copy(self)
        other._set(steps)
        return other

    def _set(self, steps: Steps) -> None:
        self._item, self._label, self._weight = (part.numpy() for part in (steps.item, steps.label, steps.weight))
        self._shares = shares_array(steps)
        self._bounds = chunk_bounds(len(self._item), at_most=len(self._item) // MIN_STEPS_PER_THREAD)


class DynamicVB:
    r"""Variational Bayes for DynIBCC: each call passes once over all steps and updates the class probabilities.

    There is no bound to raise (erratum 3). How good a noise scale is, is measured by how well it predicts the answers.

    Parameters
    ----------
    steps
        The volunteers' steps.
    scan, likelihood
        The two kernels for these steps: both compiled, or both made of tensor operations.
    class_prior
        Concentration of the classes, of shape (J,).
    probs, fixed
        Class probabilities of the items, of shape (N, J), overwritten unless fixed, of shape (N,).
    stage
        The Dirichlets from which the class probabilities are computed.

    Attributes
    ----------
    probs
        The current class probabilities.
    n_visited
        How many steps were scanned so far.
    """

    def __init__(
        self,
        steps: Steps,
        scan: Scan,
        likelihood: Likelihood,
        *,
        class_prior: Tensor,
        probs: Tensor,
        fixed: Tensor,
        stage: Stage,
    ) -> None:
        self.probs = probs
        self._steps = steps
        self._scan = scan
        self._likelihood = likelihood
        self._class_prior = class_prior
        self._fixed = fixed
        self._stage: Stage = stage
        self.n_visited = 0

    @property
    def classes(self) -> Tensor:
        """The concentration of the classes, of shape (J,): nu_j = nu_0j + N_j (below eq:qStar_P)."""
        return self._class_prior + self.probs.sum(0)

    def confusion(self, noise_scale: float) -> Tensor:
        """Return the Dirichlets at the steps, of shape (S, J, L)."""
        self.n_visited += len(self._steps.item)
        return self._scan(self.probs, noise_scale=noise_scale, stage=self._stage)

    @property
    def own_probs(self) -> Tensor:
        """The class probabilities that a pass updates here, a view of `probs`: all of them, unless others have some."""
        return self.probs

    def all_reduce(self, sums: Tensor) -> Tensor:
        """Return sums over own items, added up over all processes."""
        return sums

    def exchange(self) -> None:
        """Let all processes know the class probabilities that the others have updated."""

    def __call__(self, noise_scale: float, *, damping: float = 0.0, n_ahead: int = 0) -> float:
        """Pass once; return the change of the class probabilities before damping, the part of the change undone.

        Items go on to where their own answers would lead them in `n_ahead` further passes if nothing else changed. The
        fixed points are the same, and the change is that of the pass alone.
        """
        previous = self.probs.clone() if damping > 0 or n_ahead else self.probs
        confusion = self.confusion(noise_scale)
        logs = self._likelihood.logs(confusion)
        class_logs = expected_log(self.classes, axis=0)
        change = float(self._likelihood.update_items(logs, class_logs, self.probs, self._fixed))
        if damping > 0:
            self.probs.copy_(torch.lerp(previous, self.probs, 1 - damping))
        elif n_ahead:
            # The others are not led further, so that what they do to themselves need not be known.
            feedback = ItemFeedback.of(previous, self._fixed | ~_has_moved(self.probs, previous, change))
            self._likelihood.add_feedback(confusion, feedback.position, feedback.effects)
            feedback.lead(self.probs, previous, n_ahead=n_ahead, change=change)
        return change

    def confusion_and_last_states(self, noise_scale: float) -> tuple[Tensor, LastStates]:
        """Return what `confusion` does, and the filtered states of the volunteers after their last steps."""
        self.n_visited += len(self._steps.item)
        return self._scan.with_last_states(self.probs, noise_scale=noise_scale, stage=self._stage)

    def filter_new_steps(
        self, index: Tensor, starts: Tensor, initial: Tensor | LastStates, *, noise_scale: float
    ) -> None:
        """Update the items of some steps, which the class probabilities do not count yet, filtered from given states.

        Parameters
        ----------
        index, starts
            The indices of the steps, (n,), one volunteer after another, and where each volunteer's begin, (K + 1,).
        initial
            The states of the volunteers before these steps.
        noise_scale
            The factor of the process noise that answers cause.
        """
        steps = self._steps.at(index, starts)
        scan, item = self._scan.for_steps(steps, initial), steps.item.long()
        before = self.probs.clamp_min(min_state(self.probs.dtype)).log()
        # Once with the items as they were, and once as the new steps say.
        for _ in range(2):
            self.n_visited += len(item)
            logs = step_logs(steps, scan(self.probs, noise_scale=noise_scale, stage="filtered"))
            updated = torch.softmax(before.index_add(0, item, logs), 1)
            is_new = torch.zeros_like(self._fixed).index_fill_(0, item, True) & ~self._fixed  # noqa: FBT003
            self.probs.copy_(torch.where(is_new[:, None], updated, self.probs))

    def choose_noise(self, noise_scale: float, *, prior: Tensor, near: float | None = None) -> NoiseChoice:
        """Choose the noise scale that predicts the answers best, given the items as inferred with the current scale.

        It is zero unless another scale gains more than `MIN_NOISE_GAIN`. Of many answers a sample is predicted.

        Parameters
        ----------
        noise_scale
            The current scale.
        prior
            What volunteers start from, (1 or K, J, L). It should describe them well: noise also helps to forget a prior
            that does not.
        near
            The scale near which to look first.
        """
        part = self._choose_part(prior)
        score = part.scorer(self, self._logs_of(part, noise_scale))
        without_noise = score(0.0)
        log_scale, reached = _best_of_range(score) if near is None else (math.log(near), math.inf)
        if reached > without_noise:
            log_scale, reached = _climb(score, log_scale)
        scale = math.exp(log_scale)
        return NoiseChoice(scale if reached > without_noise + MIN_NOISE_GAIN else 0.0, scale)

    def confirm_noise(self, noise_scale: float, *, prior: Tensor) -> float:
        """Return the noise scale, refined on all answers, if their order carries information, and 0 otherwise."""
        if noise_scale == 0 or not self.order_is_informative(noise_scale, prior=prior):
            return 0.0
        if self._n_steps <= MAX_CHOICE_STEPS:
            return noise_scale
        return math.exp(_climb(self._scorer_of_all(noise_scale, prior), math.log(noise_scale))[0])

    def order_is_informative(self, noise_scale: float, *, prior: Tensor) -> bool:
        """Return whether answers are predicted better in their order than in `N_SHUFFLES` random ones.

        Each volunteer's answers are shuffled among themselves. Whatever else noise may be good for, such as leaving a
        prior that fits nobody, it is good for in any order. If the first random orders leave no doubt, no more are
        drawn: if Student's test says that a further one would be as good with a probability below `CLEAR_LEVEL`.
        """
        part = self._choose_part(prior)
        logs = self._logs_of(part, noise_scale)
        score = part.predictive(self, noise_scale, logs)
        shuffled: list[float] = []
        for seed in range(N_SHUFFLES):
            order = shuffle_steps(part.steps.starts, seed=seed)
            shuffled.append(part.reordered(order).predictive(self, noise_scale, logs[order]))
            if shuffled[-1] >= score:
                return False
            if len(shuffled) >= MIN_SHUFFLES and _surpassed_by_chance(score, shuffled) < CLEAR_LEVEL:
                return True
        return True

    @property
    def _n_steps(self) -> int:
        return len(self._steps.item)

    def _logs_of(self, part: _Part, noise_scale: float) -> Tensor:
        """Return what the answers of a part contribute to their items if they are inferred with a noise scale."""
        logs = self._likelihood.logs(self.confusion(noise_scale))
        return logs.clone() if part.chosen is None else logs[part.chosen]

    def _scorer_of_all(self, noise_scale: float, prior: Tensor) -> Callable[[float], float]:
        """Return how well noise scales predict all answers, given the items as inferred with one scale."""
        everything = _Part(None, self._steps, self._scan.with_steps(self._steps, prior), self._likelihood)
        return everything.scorer(self, self._logs_of(everything, noise_scale))

    def _choose_part(self, prior: Tensor) -> _Part:
        """Return what noise scales are compared on: all steps, or the first ones of a sample of volunteers."""
        if self._n_steps <= MAX_CHOICE_STEPS:
            return _Part(None, self._steps, self._scan.with_steps(self._steps, prior), self._likelihood)
        volunteers, index, steps = first_steps_of_some(self._steps, n_steps=MAX_CHOICE_STEPS)
        own = prior if len(prior) == 1 else prior[volunteers]
        return _Part(index, steps, self._scan.for_steps(steps, own), self._likelihood.with_steps(steps))

    def scores(self, noise_scale: float, confusion: Tensor) -> tuple[float, float]:
        r"""Return the log probability of the answers, each left out, and the score that replaces the paper's bound.

        `confusion` is what the method of this name returns for the scale; its memory may be overwritten.

        The second is :math:`\sum_{\text{answers}} \sum_j q_{ij} \ln p_{jl} + E[\ln p(t | \kappa)] + H[q(t)] -
        KL(q(\kappa) || p(\kappa))`. It is not a bound: none is proven (erratum 3).
        """
        logs = self._likelihood.logs(confusion)
        left_out, expected = self._predictive_scores(self._scan, self._likelihood, noise_scale, logs)
        return left_out, expected + self._class_terms()

    def published_bound(self, noise_scale: float, *, floor: float) -> float:
        r"""Return the lower bound that the paper prints, with state noise of at least `floor` (erratum 3).

        It is the sum of the terms of "Variational Lower Bound"; :math:`E[\ln q(\Pi)] - E[\ln p(\Pi)]` is the sum of
        a divergence for each step and class. It is not a bound.
        """
        return self._printed_terms(self._steps, self._scan, self._likelihood, noise_scale, floor) + self._class_terms()

    def _printed_terms(
        self, steps: Steps, scan: Scan, likelihood: Likelihood, noise_scale: float, floor: float
    ) -> float:
        """Return the part of the printed bound that is about some steps."""
        noise = scan.noise(self.probs, noise_scale=noise_scale)
        confusion = scan(self.probs, noise_scale=noise_scale, stage=self._stage)
        self.n_visited += len(steps.item)
        expected = total(self.probs[steps.item.long()] * likelihood.logs(confusion))
        # Priors are as sharp as the floor is low, and not every device has the precision that they need.
        prior = scan.prior
        if isinstance(prior, LastStates):
            prior = dirichlet_of_states(States(prior.mean, prior.covariance))
        confusion, prior, noise = (part.cpu().double() for part in (confusion, prior, noise))
        priors = step_priors(steps.starts.cpu(), prior, confusion, noise=noise.clamp(min=floor))
        return float(expected) - float(dirichlet_divergence(confusion, priors).sum())

    def _class_terms(self) -> float:
        """Return the part of a bound that is about classes: E[ln p(t | kappa)] + H[q(t)] - KL(q(kappa) || p(kappa))."""
        class_logs = expected_log(self.classes, axis=0)
        divergence = dirichlet_divergence(most_precise(self.classes), self._class_prior, axis=0)
        entropy = total(torch.special.entr(self.probs) + self.probs * class_logs)
        return float(entropy) - float(divergence)

    def _predictive_scores(
        self, scan: Scan, likelihood: Likelihood, noise_scale: float, logs: Tensor
    ) -> tuple[float, float]:
        predicted = scan(self.probs, noise_scale=noise_scale, stage="predicted")
        self.n_visited += len(predicted)
        return likelihood.predictive(predicted, logs, self.probs, self._fixed)


class ItemFeedback(NamedTuple):
    """By how much the log probabilities of undecided items rise by themselves.

    Attributes
    ----------
    items
        The codes of these items, of shape (n,).
    position
        The position of each item among them, of shape (N,); -1 for others.
    effects
        By how much the log probability of each class rises with the probability of the class, of shape (n, J).
    """

    items: Tensor
    position: Tensor
    effects: Tensor

    @classmethod
    def of(cls, probs: Tensor, fixed: Tensor) -> ItemFeedback:
        """Return the undecided items among all, without effects."""
        items = ((1 - probs.amax(1) > MIN_DOUBT) & ~fixed).nonzero()[:, 0]
        position = torch.full((len(probs),), -1, dtype=torch.int32, device=probs.device)
        position[items] = torch.arange(len(items), dtype=torch.int32, device=probs.device)
        return cls(items, position, probs.new_zeros(len(items), probs.shape[1]))

    def lead(self, probs: Tensor, previous: Tensor, *, n_ahead: int, change: float, first: int = 0) -> None:
        """Let items go on after a pass that has led from `previous` to `probs`, both from item `first` on, (n, J).

        These are the items that have changed by a noticeable share of the largest change.
        """
        own = (self.items >= first) & (self.items < first + len(probs))
        items = self.items[own] - first
        moved = _has_moved(probs[items], previous[items], change)
        items, effects = items[moved], FEEDBACK_SHARE * self.effects[own][moved]
        probs[items] = follow_feedback(probs[items], previous[items], effects, n_ahead)


def _has_moved(probs: Tensor, previous: Tensor, change: float) -> Tensor:
    """Return which items have changed by a noticeable share of the largest change, of shape (n,)."""
    return (probs - previous).abs().amax(1) > MIN_SHARE_OF_CHANGE * change


def follow_feedback(probs: Tensor, previous: Tensor, feedback: Tensor, n_passes: int) -> Tensor:
    """Return where items end whose class probabilities act upon themselves, all of shape (n, J).

    A pass has led from `previous` to `probs`. From then on each item is passed by itself: its log probabilities grow by
    `feedback` times the growth of its probabilities, as linear terms say, so that it goes where further passes would
    lead it if nothing else changed. It stops where it settles, and where a linear term would no longer do.
    """
    result, logs = probs.clone(), probs.clamp_min(min_state(probs.dtype)).log()
    rows = torch.arange(len(probs), device=probs.device)
    for _ in range(n_passes):
        if not len(rows):
            break
        current, start = result[rows], previous[rows]
        following = torch.softmax(logs[rows] + feedback[rows] * (current - start), 1)
        result[rows] = following
        settled = (following - current).abs().amax(1) <= MIN_MOVE
        rows = rows[~settled & ((following - start).abs().amax(1) < MAX_MOVE)]
    return result


class NoiseChoice(NamedTuple):
    """The noise scale that predicts answers best: zero where no scale gains enough; and the best one above zero."""

    scale: float
    best_above_zero: float


class _Part(NamedTuple):
    """Some of the steps, on which noise scales are compared; `chosen`, their indices, is None if it is all of them."""

    chosen: Tensor | None
    steps: Steps
    scan: Scan
    likelihood: Likelihood

    def predictive(self, vb: DynamicVB, noise_scale: float, logs: Tensor) -> float:
        """Return the log probability of the answers, each left out, given what each contributes to its item."""
        return vb._predictive_scores(self.scan, self.likelihood, noise_scale, logs)[0]

    def scorer(self, vb: DynamicVB, logs: Tensor) -> Callable[[float], float]:
        """Return how well noise scales predict the answers, given what each of them contributes to its item, (n, J)."""
        return lambda noise_scale: self.predictive(vb, noise_scale, logs)

    def reordered(self, order: Tensor) -> _Part:
        """Return the same steps in another order."""
        steps = self.steps.reordered(order)
        return _Part(None, steps, self.scan.with_steps(steps, self.scan.prior), self.likelihood.with_steps(steps))


def first_steps_of_some(steps: Steps, *, n_steps: int, seed: int = 0) -> tuple[Tensor, Tensor, Steps]:
    """Draw volunteers until their first steps, of which nobody has more than a 20th of the sample, are so many.

    What a filter predicts depends on no later step, so that it can leave these out. Return the volunteers, (n,), the
    indices of the steps, (m,), and the steps.
    """
    volunteers, lengths = draw_volunteers(steps.starts.diff().cpu(), n_steps=n_steps, seed=seed)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    within = torch.arange(int(starts[-1])) - starts[:-1].repeat_interleave(lengths)
    index = (steps.starts.cpu()[volunteers].repeat_interleave(lengths) + within).to(steps.item.device)
    return volunteers.to(index.device), index, steps.at(index, starts.to(index.device))


def draw_volunteers(counts: Tensor, *, n_steps: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return the volunteers that `first_steps_of_some` draws, and how many of their first steps, both of shape (n,).

    `counts` are the numbers of steps of all volunteers, of shape (K,).
    """
    counts = counts.clamp(max=max(n_steps // 20, 1))
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(counts)))
    n_volunteers = int((counts[order].cumsum(0) < n_steps).sum()) + 1
    volunteers = order[:n_volunteers].sort().values
    return volunteers, counts[volunteers]


def _best_of_range(score: Callable[[float], float]) -> tuple[float, float]:
    """Return the logarithm of a noise scale near the best one of the range, and at least its score."""
    logs = np.linspace(*LOG_NOISE_RANGE, N_NOISE_SCALES)
    scores = [score(math.exp(log_scale)) for log_scale in logs]
    best = int(np.argmax(scores))
    if not 0 < best < N_NOISE_SCALES - 1:
        return float(logs[best]), scores[best]
    shift, gain = _vertex(scores[best - 1 : best + 2])
    return float(logs[best] + shift * (logs[1] - logs[0])), scores[best] + gain


def _climb(score: Callable[[float], float], log_scale: float) -> tuple[float, float]:
    """Return the logarithm of the best noise scale near one, and its score, by parabolas through three scales each."""
    best = -math.inf
    for _ in range(MAX_CLIMBS):
        scores = [score(math.exp(log_scale + shift)) for shift in (-NEAR, 0.0, NEAR)]
        shift, gain = _vertex(scores)
        best = scores[1] + gain if abs(shift) <= 1 else max(scores)
        following = min(max(log_scale + NEAR * shift, LOG_NOISE_RANGE[0]), LOG_NOISE_RANGE[1])
        settled = abs(shift) <= 1 or following == log_scale
        log_scale = following
        if settled:
            break
    return log_scale, best


def _vertex(scores: Sequence[float]) -> tuple[float, float]:
    """Return where a parabola through three equidistant values has its top, from the middle on, and how much higher.

    The unit is the distance; it is at most `MAX_SHIFT`, in the direction of the higher end where there is no top.
    """
    below, here, above = scores
    bend, slope = 2 * here - below - above, (above - below) / 2
    if bend <= 0 or abs(slope) > MAX_SHIFT * bend:
        return math.copysign(MAX_SHIFT, slope), 0.0
    return slope / bend, slope**2 / (2 * bend)


def _surpassed_by_chance(score: float, others: list[float]) -> float:
    """Return the probability that a further draw is as high as `score` by Student's test, if draws are normal."""
    spread = float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / len(others))
    return float(stdtr(len(others) - 1, -(score - float(np.mean(others))) / spread)) if spread > 0 else 0.0


def shuffle_steps(starts: Tensor, *, seed: int) -> Tensor:
    """Return the indices of all steps, (S,), those of each volunteer in random order."""
    order = torch.arange(int(starts[-1]))
    _shuffle(starts.cpu().numpy(), np.random.default_rng(seed).random(len(order)), order.numpy())
    return order.to(starts.device)


@cache
def _compile_likelihood(item_type: np.dtype[Any], label_type: np.dtype[Any], precision: np.dtype[Any]) -> None:
    """Compile the likelihood, or load it from disk, by evaluating one step."""
    one, probs, fixed = np.ones(1, precision), np.full((1, 2), 0.5, precision), np.zeros(1, dtype=bool)
    item, label, table = np.zeros(1, dtype=item_type), np.zeros(1, dtype=label_type), np.ones((1, 2, 2), precision)
    with compile_notice("the likelihood of answers over time"):
        no_shares = np.empty((0, 2), precision)
        _expected_logs(0, 1, table, label, one, no_shares, probs.copy())
        _update_items(0, 1, np.array([0, 1]), np.zeros(1, dtype=np.int32), probs, probs[0], fixed, probs.copy())
        _add_feedback(0, 1, table, item, label, one, no_shares, np.zeros(1, np.int32), probs.copy())
        _add_to_items(0, 1, item, probs, probs.astype(np.float64))
        _predictive(0, 1, item, label, one, no_shares, table, probs, probs, fixed)


@njit(cache=True, nogil=True, error_model="numpy")
def _shuffle(starts: Any, uniforms: Any, order: Any) -> None:
    """Shuffle stretches of an array in place (Fisher and Yates) by draws from 0 to 1."""
    for k in range(len(starts) - 1):
        for last in range(starts[k + 1] - 1, starts[k], -1):
            other = starts[k] + int(uniforms[last] * (last - starts[k] + 1))
            order[last], order[other] = order[other], order[last]


@njit(cache=True, nogil=True, error_model="numpy")
def _is_soft(shares: Any, step: int, answer: int) -> bool:
    """Return whether an answer says more than one label; `shares` is empty where none does."""
    return len(shares) > 0 and answer >= 0 and shares[step, answer] < 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _expected_logs(first: int, last: int, table: Any, label: Any, weight: Any, shares: Any, logs: Any) -> None:
    """Fill in E[ln pi_tau] of each answer, below eq:DynVB_alpha; of a soft one the mean over its labels."""
    _, n_classes, n_labels = table.shape
    for step in range(first, last):
        answer = label[step]
        soft = _is_soft(shares, step, answer)
        for j in range(n_classes):
            if answer < 0:
                logs[step, j] = 0.0
                continue
            total = 0.0
            for m in range(n_labels):
                total += table[step, j, m]
            if soft:
                own_digamma = 0.0
                for m in range(n_labels):
                    label_digamma, _ = digamma_and_log_gamma(table[step, j, m])
                    own_digamma += shares[step, m] * label_digamma
            else:
                own_digamma, _ = digamma_and_log_gamma(table[step, j, answer])
            total_digamma, _ = digamma_and_log_gamma(total)
            logs[step, j] = weight[step] * (own_digamma - total_digamma)


@njit(cache=True, nogil=True, error_model="numpy")
def _update_items(
    first: int, last: int, starts: Any, steps: Any, logs: Any, class_logs: Any, fixed: Any, probs: Any
) -> float:
    """Update the class probabilities of some items: eq:DynVB_lnqstar_ti, with several steps for repeated answers."""
    n_classes = len(class_logs)
    weights = np.empty(n_classes)
    change = 0.0
    for item in range(first, last):
        if fixed[item]:
            continue
        weights[:] = class_logs
        for index in range(starts[item], starts[item + 1]):
            for j in range(n_classes):
                weights[j] += logs[steps[index], j]
        peak, norm = weights.max(), 0.0
        for j in range(n_classes):
            weights[j] = math.exp(weights[j] - peak)
            norm += weights[j]
        for j in range(n_classes):
            prob = weights[j] / norm
            change = max(change, abs(prob - probs[item, j]))
            probs[item, j] = prob
    return change


@njit(cache=True, nogil=True, error_model="numpy")
def _add_feedback(
    first: int, last: int, table: Any, item: Any, label: Any, weight: Any, shares: Any, position: Any, effects: Any
) -> None:
    """Add up `crowdgraph.tensors.dynibcc.step_feedback` for the items whose rows are from `first` to `last`."""
    _, n_classes, n_labels = table.shape
    for step in range(len(item)):
        row, answer = position[item[step]], label[step]
        if not first <= row < last or answer < 0:
            continue
        soft = _is_soft(shares, step, answer)
        for j in range(n_classes):
            total = 0.0
            for m in range(n_labels):
                total += table[step, j, m]
            own_trigamma = 0.0
            if soft:
                for m in range(n_labels):
                    own_trigamma += shares[step, m] * shares[step, m] * trigamma(table[step, j, m])
            else:
                own_trigamma = trigamma(table[step, j, answer])
            slope = own_trigamma - trigamma(total)
            effects[row, j] += weight[step] * weight[step] * slope


@njit(cache=True, nogil=True, error_model="numpy")
def _add_to_items(first: int, last: int, item: Any, logs: Any, log_weights: Any) -> None:
    """Add the logarithms of answers to the log weights of those of their items that are from `first` to `last`."""
    n_classes = logs.shape[1]
    for step in range(len(item)):
        target = item[step]
        if first <= target < last:
            for j in range(n_classes):
                log_weights[target, j] += logs[step, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _predictive(
    first: int,
    last: int,
    item: Any,
    label: Any,
    weight: Any,
    shares: Any,
    table: Any,
    logs: Any,
    probs: Any,
    fixed: Any,
) -> tuple[float, float]:
    """Return the two sums of `Likelihood.predictive` for some steps (erratum 3)."""
    _, n_classes, n_labels = table.shape
    rest = np.empty(n_classes)
    left_out, expected = 0.0, 0.0
    for step in range(first, last):
        answer = label[step]
        if answer < 0:
            continue
        soft = _is_soft(shares, step, answer)
        own = probs[item[step]]
        norm = 1.0
        if fixed[item[step]]:
            rest[:] = own
        else:
            peak = -np.inf
            for j in range(n_classes):
                rest[j] = math.log(own[j]) - logs[step, j]
                peak = max(peak, rest[j])
            norm = 0.0
            for j in range(n_classes):
                rest[j] = math.exp(rest[j] - peak)
                norm += rest[j]
        likelihood = 0.0
        for j in range(n_classes):
            total = 0.0
            for m in range(n_labels):
                total += table[step, j, m]
            if soft:
                log_chance = 0.0
                for m in range(n_labels):
                    if shares[step, m] > 0.0:
                        log_chance += shares[step, m] * math.log(table[step, j, m] / total)
                chance = math.exp(log_chance)
            else:
                chance = table[step, j, answer] / total
            likelihood += rest[j] / norm * chance
            expected += weight[step] * own[j] * math.log(chance)
        left_out += weight[step] * math.log(likelihood)
    return left_out, expected
