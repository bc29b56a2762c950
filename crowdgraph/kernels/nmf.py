r"""Non-negative factors of a symmetric matrix with shrinkage priors, as in Psorakis et al. (2011).

Weights are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are half-normal with
precision :math:`\beta_k`, which is Gamma distributed; what is on the diagonal is not observed. Precisions are worked
out (they have their best value in every step), so that a state is the factors alone. Columns that explain nothing
shrink to zero.

Steps take the exact minimum of a bound that touches the negative log posterior, which therefore never rises; the
published one divides where it should take a root, and may.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.iterate import Step

__all__ = [
    "DenseWeights",
    "Prior",
    "Quotients",
    "SparseWeights",
    "Weights",
    "highest_factor",
    "paired",
    "published",
    "relevance",
    "symmetric",
]

# Factors below this, and above `Weights.highest`, are taken for it, so that products of them neither vanish nor
# overflow.
LEAST = 1e-12
# Steps make this of nothing, so that volunteers without weights have shares, too.
NOTHING = 1e-300


class Prior(NamedTuple):
    """The Gamma distribution of the precisions, by its shape and its rate."""

    shape: float
    rate: float


class Quotients(NamedTuple):
    r"""Sums over all pairs, for weights `X` and their means :math:`R`, the diagonal left out.

    Products are :math:`\sum_j (X_{ij} / R_{ij}) H_{kj}`, of shape (N, K); logs is
    :math:`\sum_{ij} X_{ij} \ln R_{ij}`.
    """

    products: Tensor
    logs: float


class Weights(ABC):
    """A symmetric matrix with zeros on the diagonal, as factorisations see it."""

    n: int
    largest: float

    @abstractmethod
    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """The sums for means ``left @ right.T``; both factors are of shape (N, K), and may be the same tensor."""

    @property
    def highest(self) -> float:
        """See `highest_factor`."""
        return highest_factor(self.largest)


def highest_factor(largest: float) -> float:
    """No factor is above this: so far above what the weights ask for that only a leap could get there.

    Even the hub of a star has but the root of its strength times the root of its weights.
    """
    return float(1e4 * largest**0.5)


class DenseWeights(Weights):
    """All entries, of shape (N, N)."""

    def __init__(self, values: Tensor) -> None:
        self.n, self.largest = len(values), float(values.max())
        self._values = values

    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """See `Weights`."""
        means = left @ right.T
        return Quotients((self._values / means) @ right, float(torch.xlogy(self._values, means).sum()))


class SparseWeights(Weights):
    """The entries that are not zero, as a sparse CSR tensor."""

    def __init__(self, values: Tensor) -> None:
        self.n, self.largest = len(values), float(values.values().max())
        self._values = values

    def quotients(self, left: Tensor, right: Tensor) -> Quotients:
        """See `Weights`."""
        values = self._values
        means = torch.sparse.sampled_addmm(values, left, right.T.contiguous(), beta=0.0).values()
        ratios = torch.sparse_csr_tensor(
            values.crow_indices(), values.col_indices(), values.values() / means, values.shape, check_invariants=False
        )
        return Quotients(ratios @ right, float(torch.xlogy(values.values(), means).sum()))


def symmetric(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step with `H` the transpose of `W`; the state is `W`, of shape (N, K)."""
    factors = _bounded(state, weights)
    found = weights.quotients(factors, factors)
    sums, squares = factors.sum(0), (factors**2).sum(0)
    precision, penalty = _shrinkage(squares, weights.n / 2, prior)
    # Every pair stands twice in the sums.
    objective = -float((sums**2 - squares).sum()) / 2 + found.logs / 2 - penalty
    following = torch.sqrt(factors * found.products / ((sums - factors) / factors + precision))
    following = following.clamp(NOTHING, weights.highest)
    return Step(following, objective, _moved(state, following))


def paired(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step with `H` of its own; the state is `W` above the transpose of `H`, of shape (2 N, K)."""
    left, right = _bounded(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=False)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = _rooted(right * weights.quotients(right, left).products, left.sum(0) - left, precision)
    right = _bounded(new_right, weights)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_left = _rooted(left * weights.quotients(left, right).products, right.sum(0) - right, precision)
    following = torch.cat([new_left, new_right]).clamp(NOTHING, weights.highest)
    return Step(following, objective, _moved(_both(state), _both(following)))


def published(weights: Weights, state: Tensor, prior: Prior) -> Step:
    """One step as printed: `H`, then `W`, then the precisions, each divided by its gradient; zeros on the diagonal.

    The objective is the log posterior, which may fall.
    """
    left, right = _bounded(state, weights).tensor_split(2)
    objective = _paired_objective(weights, left, right, prior, diagonal=True)
    precision, _ = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    new_right = right / (left.sum(0) + precision * right) * weights.quotients(right, left).products
    right = _bounded(new_right, weights)
    new_left = left / (right.sum(0) + precision * left) * weights.quotients(left, right).products
    following = torch.cat([new_left, new_right]).clamp(NOTHING, weights.highest)
    return Step(following, objective, _moved(_both(state), _both(following)))


def relevance(squares: Tensor, half_count: float, prior: Prior) -> Tensor:
    """The variance that the best precision leaves to each column, of shape (K,), by the sums of squares in them."""
    return 1 / _shrinkage(squares, half_count, prior)[0]


def _bounded(factors: Tensor, weights: Weights) -> Tensor:
    return factors.clamp(LEAST, weights.highest)


def _both(state: Tensor) -> Tensor:
    """How much volunteers take part as the one and as the other end of pairs."""
    left, right = state.tensor_split(2)
    return left + right


def _paired_objective(weights: Weights, left: Tensor, right: Tensor, prior: Prior, *, diagonal: bool) -> float:
    means = left.sum(0) * right.sum(0) - (0 if diagonal else (left * right).sum(0))
    _, penalty = _shrinkage((left**2).sum(0) + (right**2).sum(0), weights.n, prior)
    return -float(means.sum()) + weights.quotients(left, right).logs - penalty


def _shrinkage(squares: Tensor, half_count: float, prior: Prior) -> tuple[Tensor, float]:
    """The best precision of each column, and what the prior takes from the log posterior with it.

    There are twice `half_count` entries in a column.
    """
    above = half_count + prior.shape - 1
    below = squares / 2 + prior.rate
    return above / below, float(above * below.log().sum())


def _rooted(numerator: Tensor, sums: Tensor, precision: Tensor) -> Tensor:
    """Where the bound is least: the positive root of precision x^2 + sums x = numerator."""
    return 2 * numerator / (sums + torch.sqrt(sums**2 + 4 * precision * numerator))


def _moved(before: Tensor, after: Tensor) -> float:
    """How much participations changed: half the sum of the changes of a row, on average."""
    change = before / before.sum(1, keepdim=True) - after / after.sum(1, keepdim=True)
    return float(change.abs().sum(1).mean() / 2)
