r"""Bayesian NMF as functions of tensors: the log posterior of non-negative factors of symmetric weights.

Weights :math:`X` are Poisson with means :math:`R = W H`, entries of column `k` of `W` and of row `k` of `H` are
half-normal with precision :math:`\beta_k`, which is Gamma distributed (Psorakis et al. 2011). The precisions take their
optimal value, so that the log posterior is a function of the factors alone. N is the number of volunteers, K that of
columns; `H` is passed as its transpose, of shape (N, K).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.tensors.devices import limits_of, total

__all__ = [
    "DenseWeights",
    "IndexedWeights",
    "Prior",
    "SparseWeights",
    "Weights",
    "column_sums",
    "nmf_objective",
    "paired_objective",
    "shrinkage",
    "symmetric_objective",
]


class Prior(NamedTuple):
    """The Gamma distribution of the precisions, by its shape and its rate."""

    shape: Tensor | float
    rate: Tensor | float


def nmf_objective(
    weights: Tensor,
    factors: Tensor,
    *,
    right: Tensor | None = None,
    shape: Tensor | float = 5.0,
    rate: Tensor | float = 2.0,
    diagonal: bool = False,
) -> Tensor:
    r"""Return the log posterior of factors, up to a constant of the weights and the prior, as a tensor.

    With one factor, whose transpose is the other, it is

    .. math:: \sum_{i<j} \big( X_{ij} \ln R_{ij} - R_{ij} \big)
              - \Big(\frac{N}{2} + a - 1\Big) \sum_k \ln\Big( \frac12 \sum_i w_{ik}^2 + b \Big), \quad R = W W^\top,

    and with two factors the first sum is over all :math:`i \neq j`, the last over the squares of both factors, and
    :math:`N/2` is `N`. The gradient with respect to the factors is that of the posterior at the best precisions.

    Parameters
    ----------
    weights
        Symmetric weights with zeros on the diagonal, of shape (N, N): dense, or sparse (CSR, or COO for devices without
        CSR), then without gradients of their own.
    factors
        `W`, of shape (N, K), all entries above zero.
    right
        The transpose of `H`, of shape (N, K); that of `W` if left out.
    shape, rate
        `a` and `b`, of the Gamma prior of the precisions.
    diagonal
        Whether the zeros on the diagonal count as observed, as in the published algorithm; this needs `right`.

    Examples
    --------
    >>> import torch
    >>> weights = torch.tensor([[0.0, 3.0, 0.0], [3.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> factors = torch.ones(3, 2, requires_grad=True)
    >>> objective = nmf_objective(weights, factors)
    >>> objective.backward()
    >>> with torch.no_grad():
    ...     bool(nmf_objective(weights, factors + 0.01 * factors.grad) > objective)
    True
    """
    pairs, prior = _pairs_of(weights), Prior(shape, rate)
    for name, factor in (("factors", factors), ("right", right)):
        if factor is not None and (factor.ndim != 2 or len(factor) != pairs.n or factor.shape != factors.shape):
            raise ParameterError(
                f"{name} must have the shape ({pairs.n}, K) for weights of shape ({pairs.n}, {pairs.n}); got "
                f"{tuple(factor.shape)}."
            )
    if right is not None:
        return paired_objective(pairs.logs(pairs.means(factors, right)), factors, right, prior, diagonal=diagonal)
    if diagonal:
        raise ParameterError("diagonal=True belongs to two factors, as published; give right=, or leave diagonal out.")
    logs = pairs.logs(pairs.means(factors, factors))
    return symmetric_objective(logs, column_sums(factors), column_sums(factors**2), pairs.n, prior)


class Weights(ABC):
    """A symmetric matrix with zeros on the diagonal, as factorisations see it.

    Attributes
    ----------
    n
        N.
    values
        The weights that are held, in any shape.
    """

    n: int
    values: Tensor

    @abstractmethod
    def means(self, left: Tensor, right: Tensor) -> Tensor:
        r"""Return :math:`R` = ``left @ right.T`` for the weights that are held, in the shape of `values`."""

    @abstractmethod
    def products(self, means: Tensor, right: Tensor) -> Tensor:
        r"""Return :math:`\sum_j (X_{ij} / R_{ij}) H_{kj}`, of shape (N, K)."""

    def logs(self, means: Tensor) -> Tensor:
        r"""Return :math:`\sum_{ij} X_{ij} \ln R_{ij}`."""
        return total(torch.xlogy(self.values, means))

    @cached_property
    def largest(self) -> float:
        """The largest weight."""
        return float(self.values.max())


class DenseWeights(Weights):
    """All entries, of shape (N, N)."""

    def __init__(self, values: Tensor) -> None:
        self.n, self.values = len(values), values

    def means(self, left: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        return left @ right.T

    def products(self, means: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        return (self.values / means) @ right


class SparseWeights(Weights):
    """The entries that are not zero, as a sparse CSR tensor."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix.detach()
        self.n, self.values = len(matrix), self._matrix.values()

    def means(self, left: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        means: Tensor = torch.sparse.sampled_addmm(self._matrix, left, right.T.contiguous(), beta=0.0).values()
        return means

    def products(self, means: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        starts, columns = self._matrix.crow_indices(), self._matrix.col_indices()
        ratios = torch.sparse_csr_tensor(
            starts, columns, self.values / means, self._matrix.shape, check_invariants=False
        )
        return ratios @ right


class IndexedWeights(Weights):
    """The entries that are not zero, each with its row and its column, for devices without CSR tensors."""

    def __init__(self, row: Tensor, column: Tensor, values: Tensor, n: int) -> None:
        self.n, self.values = n, values
        self._row, self._column = row, column

    def means(self, left: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        return (left[self._row] * right[self._column]).sum(1)

    def products(self, means: Tensor, right: Tensor) -> Tensor:
        """See `Weights`."""
        terms = (self.values / means)[:, None] * right[self._column]
        return torch.zeros_like(right).index_add(0, self._row, terms)


def _pairs_of(weights: Tensor) -> Weights:
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ParameterError(f"weights must have the shape (N, N); got {tuple(weights.shape)}.")
    if weights.layout == torch.strided:
        return DenseWeights(weights)
    if weights.layout == torch.sparse_csr:
        return SparseWeights(weights)
    if weights.layout == torch.sparse_coo:
        entries = weights.detach().coalesce()
        return IndexedWeights(entries.indices()[0], entries.indices()[1], entries.values(), len(weights))
    raise ParameterError(
        f"weights must be dense, or sparse as CSR or COO; got the layout {weights.layout}.",
        hint="Convert them with weights.to_sparse_csr().",
    )


def column_sums(values: Tensor) -> Tensor:
    """Return the sum of each column, added up in double precision where the device has it."""
    return values.sum(0, dtype=torch.float64 if limits_of(values.device).float64 else None)


def symmetric_objective(logs: Tensor, sums: Tensor, squares: Tensor, n: int, prior: Prior) -> Tensor:
    """Return the log posterior of one factor from the logs of `Weights`, and its column sums and sums of squares."""
    # Every pair occurs twice in the sums.
    return (logs - (sums**2 - squares).sum()) / 2 - shrinkage(squares, n / 2, prior)[1]


def paired_objective(logs: Tensor, left: Tensor, right: Tensor, prior: Prior, *, diagonal: bool) -> Tensor:
    """Return the log posterior of two factors from the logs of `Weights`."""
    means = (column_sums(left) * column_sums(right)).sum()
    if not diagonal:
        means = means - total(left * right)
    squares = column_sums(left**2) + column_sums(right**2)
    return logs - means - shrinkage(squares, len(left), prior)[1]


def shrinkage(squares: Tensor, half_count: float, prior: Prior) -> tuple[Tensor, Tensor]:
    """Return the optimal precision of each column, and what the prior takes from the log posterior with it.

    A column has twice `half_count` entries, and `squares` is the sum of their squares.
    """
    numerator = half_count + prior.shape - 1
    denominator = squares / 2 + prior.rate
    return numerator / denominator, numerator * denominator.log().sum()
