"""One pass of DynIBCC: from class probabilities of the items to the confusion at every step, and back."""

from __future__ import annotations

import math
from copy import copy
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numba import njit
from scipy.optimize import minimize_scalar
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.dglm import Scan, Stage, Steps
from crowdgraph.kernels.dirichlet import expected_log, log_normaliser
from crowdgraph.kernels.special import digamma_and_log_gamma

__all__ = ["CompiledLikelihood", "DynamicVB", "ItemSteps", "Likelihood", "TensorLikelihood"]

# Fewer steps than this are not worth a second thread.
LEAST_STEPS = 20_000
# The logarithms of the noise scales to choose from, beside zero.
NOISES = (math.log(0.01), math.log(30.0))
# Noise has to gain so many nats, and to foretell answers better in their order than in so many others.
WORTH = 1.92
N_SHUFFLES = 19


class ItemSteps(NamedTuple):
    """Steps gathered by item: item `i` was met at the steps ``steps[starts[i]:starts[i + 1]]``."""

    starts: Tensor
    steps: Tensor


class Likelihood(Protocol):
    """What is read out of the Dirichlets at the steps, of shape (S, J, L), for the answers that were given there."""

    def logs(self, concentration: Tensor) -> Tensor:
        """The weighted expected logarithm of the probability of each answer, by class, of shape (S, J).

        It is zero where an item was not answered.
        """
        ...

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> float:
        """Overwrite the class probabilities of the items, (N, J), where they are not fixed; tell the largest change."""
        ...

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        r"""How well the Dirichlets tell the answers beforehand: two weighted sums of log probabilities.

        The first is :math:`\sum \ln \sum_j \tilde q_{ij} p_{jl}` over the answers, where :math:`\tilde q_i` are the
        item's class probabilities without what this very answer told about it, `logs`; the second is
        :math:`\sum \sum_j q_{ij} \ln p_{jl}`. Both with :math:`p_{jl} = \alpha_{jl} / \sum_m \alpha_{jm}`.
        """
        ...

    def with_steps(self, steps: Steps) -> Likelihood:
        """The same reader of steps in another order, for `predictive` alone."""
        ...


class TensorLikelihood:
    """Reading by tensor operations, on any device."""

    def __init__(self, steps: Steps, gathered: ItemSteps) -> None:
        self._set(steps)
        self._n_items = len(gathered.starts) - 1

    def logs(self, concentration: Tensor) -> Tensor:
        """See `Likelihood`."""
        logs = torch.digamma(self._own(concentration)) - torch.digamma(concentration.sum(-1))
        return self._weight[:, None] * logs

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> float:
        """See `Likelihood`."""
        weights = class_logs.expand(self._n_items, -1).index_add(0, self._item, logs)
        found = torch.where(fixed[:, None], probs, torch.softmax(weights, dim=1))
        change = float((found - probs).abs().max())
        probs.copy_(found)
        return change

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """See `Likelihood`."""
        share = self._own(concentration) / concentration.sum(-1)
        own = probs[self._item]
        rest = torch.softmax(own.log() - logs, dim=1)
        rest = torch.where(fixed[self._item][:, None], own, rest)
        left_out = self._weight * (rest * share).sum(1).log()
        expected = self._weight * (own * share.log()).sum(1)
        return float(left_out.sum()), float(expected.sum())

    def with_steps(self, steps: Steps) -> TensorLikelihood:
        """See `Likelihood`."""
        other = copy(self)
        other._set(steps)
        return other

    def _set(self, steps: Steps) -> None:
        answered = steps.label >= 0
        self._item = steps.item.long()
        self._label = steps.label.long().clamp(min=0)
        self._weight = torch.where(answered, steps.weight, 0.0)

    def _own(self, concentration: Tensor) -> Tensor:
        """The entries of the labels that were given, of shape (S, J)."""
        places = self._label[:, None, None].expand(-1, concentration.shape[1], 1)
        return concentration.gather(2, places)[..., 0]


class CompiledLikelihood:
    """Reading on CPUs, compiled, in several threads.

    What it finds is written to the same memory each time.
    """

    def __init__(self, steps: Steps, gathered: ItemSteps, *, n_classes: int) -> None:
        self._set(steps)
        self._starts, self._steps = (part.numpy() for part in gathered)
        self._edges = chunk_bounds(len(self._item), at_most=len(self._item) // LEAST_STEPS)
        self._item_edges = np.searchsorted(self._starts, chunk_bounds(len(self._steps), at_most=len(self._edges) - 1))
        self._item_edges[-1] = len(self._starts) - 1
        self._logs = np.empty((len(self._item), n_classes))
        _compile_likelihood(self._item.dtype, self._label.dtype, self._steps.dtype)

    def logs(self, concentration: Tensor) -> Tensor:
        """See `Likelihood`."""
        table, at = concentration.numpy(), self._edges
        in_parallel(
            lambda part: _own_logs(at[part], at[part + 1], table, self._label, self._weight, self._logs), len(at) - 1
        )
        return torch.from_numpy(self._logs)

    def update_items(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> float:
        """See `Likelihood`."""
        at, columns = self._item_edges, (logs.numpy(), class_logs.numpy(), fixed.numpy(), probs.numpy())
        return max(
            in_parallel(
                lambda part: _combined(at[part], at[part + 1], self._starts, self._steps, *columns), len(at) - 1
            )
        )

    def predictive(self, concentration: Tensor, logs: Tensor, probs: Tensor, fixed: Tensor) -> tuple[float, float]:
        """See `Likelihood`."""
        at, columns = self._edges, (concentration.numpy(), logs.numpy(), probs.numpy(), fixed.numpy())
        left_out, expected = zip(
            *in_parallel(
                lambda part: _predictive(at[part], at[part + 1], self._item, self._label, self._weight, *columns),
                len(at) - 1,
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


class DynamicVB:
    r"""Passes of variational Bayes over all steps, until the class probabilities settle.

    There is no bound to climb. What tells how good a noise is, is how well answers are foretold.

    Parameters
    ----------
    steps
        What volunteers met and said.
    scan, reader
        The two kernels for these steps: both compiled, or both of tensors.
    class_prior
        Concentration of the classes, of shape (J,).
    probs, fixed
        Class probabilities of the items, of shape (N, J), overwritten where they are not fixed, of shape (N,).
    stage
        Which Dirichlets the class probabilities are worked out from.
    """

    def __init__(
        self,
        steps: Steps,
        scan: Scan,
        reader: Likelihood,
        *,
        class_prior: Tensor,
        probs: Tensor,
        fixed: Tensor,
        stage: Stage,
    ) -> None:
        self.probs = probs
        self._steps = steps
        self._scan = scan
        self._reader = reader
        self._class_prior = class_prior
        self._fixed = fixed
        self._stage: Stage = stage

    @property
    def classes(self) -> Tensor:
        """The concentration of the classes, of shape (J,)."""
        return self._class_prior + self.probs.sum(0)

    def confusion(self, noise_scale: float) -> Tensor:
        """The Dirichlets at the steps, of shape (S, J, L)."""
        return self._scan(self.probs, noise_scale=noise_scale, stage=self._stage)

    def __call__(self, noise_scale: float, *, pace: float = 1.0) -> float:
        """One pass; how much the class probabilities changed, of which a part `pace` is kept."""
        before = self.probs.clone() if pace < 1 else self.probs
        logs = self._reader.logs(self.confusion(noise_scale))
        change = self._reader.update_items(logs, expected_log(self.classes, axis=0), self.probs, self._fixed)
        if pace < 1:
            self.probs.copy_(torch.lerp(before, self.probs, pace))
        return change

    def choose_noise(self, noise_scale: float, *, prior: Tensor) -> float:
        """The noise scale that foretells the answers best, given what a certain one says of items and answers.

        It is zero unless another gains more than `WORTH`. Volunteers start from `prior`, (1 or K, J, L), which should
        be what they are like: noise helps to forget one that is not.
        """
        logs = self._reader.logs(self.confusion(noise_scale))
        scan = self._scan.with_steps(self._steps, prior)

        def loss(log_scale: float) -> float:
            return -self._predictive_scores(scan, self._reader, math.exp(log_scale), logs)[0]

        best = minimize_scalar(loss, bounds=NOISES, method="bounded", options={"xatol": 0.02})
        still = self._predictive_scores(scan, self._reader, 0.0, logs)[0]
        return math.exp(best.x) if -best.fun > still + WORTH else 0.0

    def order_is_informative(self, noise_scale: float, *, prior: Tensor) -> bool:
        """Whether the answers are foretold better in their order than in `N_SHUFFLES` others of each volunteer's own.

        Whatever else noise may be good for, such as leaving a prior that fits nobody, it is good for in any order.
        """
        logs = self._reader.logs(self.confusion(noise_scale)).clone()
        scan = self._scan.with_steps(self._steps, prior)
        reached = self._predictive_scores(scan, self._reader, noise_scale, logs)[0]
        for seed in range(N_SHUFFLES):
            order = shuffle_steps(self._steps.starts, seed=seed)
            steps = self._steps.reordered(order)
            found = self._predictive_scores(
                scan.with_steps(steps, prior), self._reader.with_steps(steps), noise_scale, logs[order]
            )[0]
            if found >= reached:
                return False
        return True

    def scores(self, noise_scale: float) -> tuple[float, float]:
        r"""The log probability of the answers, each left out, and the score of the paper's bound as we mend it.

        The second is :math:`\sum_{\text{answers}} \sum_j q_{ij} \ln p_{jl} + E[\ln p(t | \kappa)] + H[q(t)] -
        KL(q(\kappa) || p(\kappa))`. It is not a bound: none is proven.
        """
        logs = self._reader.logs(self.confusion(noise_scale))
        left_out, expected = self._predictive_scores(self._scan, self._reader, noise_scale, logs)
        classes, class_logs = self.classes, expected_log(self.classes, axis=0)
        divergence = (
            log_normaliser(self._class_prior, axis=0)
            - log_normaliser(classes, axis=0)
            + ((classes - self._class_prior) * class_logs).sum()
        )
        entropy = torch.special.entr(self.probs).sum() + (self.probs * class_logs).sum()
        return left_out, expected + float(entropy - divergence)

    def _predictive_scores(
        self, scan: Scan, reader: Likelihood, noise_scale: float, logs: Tensor
    ) -> tuple[float, float]:
        predicted = scan(self.probs, noise_scale=noise_scale, stage="predicted")
        return reader.predictive(predicted, logs, self.probs, self._fixed)


def shuffle_steps(starts: Tensor, *, seed: int) -> Tensor:
    """The places of all steps, (S,), those of each volunteer in random order."""
    order = torch.arange(int(starts[-1]))
    _shuffle(starts.cpu().numpy(), np.random.default_rng(seed).random(len(order)), order.numpy())
    return order.to(starts.device)


@cache
def _compile_likelihood(item_type: np.dtype[Any], label_type: np.dtype[Any], step_type: np.dtype[Any]) -> None:
    """Compile the reading, or load it from the disk, by reading one step."""
    one, probs, fixed = np.ones(1), np.full((1, 2), 0.5), np.zeros(1, dtype=bool)
    item, label, table = np.zeros(1, dtype=item_type), np.zeros(1, dtype=label_type), np.ones((1, 2, 2))
    with compile_notice("the reading of confusion"):
        _own_logs(0, 1, table, label, one, probs.copy())
        _combined(0, 1, np.array([0, 1]), np.zeros(1, dtype=step_type), probs, probs[0], fixed, probs.copy())
        _predictive(0, 1, item, label, one, table, probs, probs, fixed)


@njit(cache=True, nogil=True, error_model="numpy")
def _shuffle(starts: Any, draws: Any, order: Any) -> None:
    """Shuffle stretches of an array in place, as Fisher and Yates do, by draws from 0 to 1."""
    for k in range(len(starts) - 1):
        for last in range(starts[k + 1] - 1, starts[k], -1):
            other = starts[k] + int(draws[last] * (last - starts[k] + 1))
            order[last], order[other] = order[other], order[last]


@njit(cache=True, nogil=True, error_model="numpy")
def _own_logs(first: int, last: int, table: Any, label: Any, weight: Any, logs: Any) -> None:
    _, n_classes, n_labels = table.shape
    for step in range(first, last):
        given = label[step]
        for j in range(n_classes):
            if given < 0:
                logs[step, j] = 0.0
                continue
            total = 0.0
            for m in range(n_labels):
                total += table[step, j, m]
            own, _ = digamma_and_log_gamma(table[step, j, given])
            all_labels, _ = digamma_and_log_gamma(total)
            logs[step, j] = weight[step] * (own - all_labels)


@njit(cache=True, nogil=True, error_model="numpy")
def _combined(
    first: int, last: int, starts: Any, steps: Any, logs: Any, class_logs: Any, fixed: Any, probs: Any
) -> float:
    n_classes = len(class_logs)
    weights = np.empty(n_classes)
    change = 0.0
    for item in range(first, last):
        if fixed[item]:
            continue
        weights[:] = class_logs
        for place in range(starts[item], starts[item + 1]):
            for j in range(n_classes):
                weights[j] += logs[steps[place], j]
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
def _predictive(
    first: int, last: int, item: Any, label: Any, weight: Any, table: Any, logs: Any, probs: Any, fixed: Any
) -> tuple[float, float]:
    _, n_classes, n_labels = table.shape
    rest = np.empty(n_classes)
    left_out, expected = 0.0, 0.0
    for step in range(first, last):
        given = label[step]
        if given < 0:
            continue
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
            share = table[step, j, given] / total
            likelihood += rest[j] / norm * share
            expected += weight[step] * own[j] * math.log(share)
        left_out += weight[step] * math.log(likelihood)
    return left_out, expected
