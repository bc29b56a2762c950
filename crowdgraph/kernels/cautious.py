"""Items of unequal difficulty and communities that err together: one step of expectation maximisation.

A *cell* is the set of answers that one community gave about one item. `TensorEM` takes a step with logarithms of
likelihoods, on any device; `CompiledEM` fuses it into one pass over items, in parallel, with the likelihoods
themselves, so that hardly a logarithm is taken. For a number of threads, sums are always added in the same order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from crowdgraph.kernels._runtime import chunk_bounds, compile_notice, in_parallel
from crowdgraph.kernels.fixed_point import Step, min_state, reachable_tolerance
from crowdgraph.tensors.devices import limits_of, total

__all__ = [
    "CautiousEM",
    "CautiousParameters",
    "CellLikelihoods",
    "CompiledEM",
    "ItemLikelihoods",
    "TensorEM",
    "cell_likelihoods",
    "compile_cautious",
    "item_likelihoods",
]

# Fewer items than this are not worth a second thread.
MIN_ITEMS_PER_THREAD = 2_000
# Where the likelihoods of an item sum to less, some may have vanished, and their logarithms are taken.
MIN_NORM = 1e-25


class CellLikelihoods(NamedTuple):
    """Log likelihoods of the answers in each cell, given class and difficulty, both of shape (C, J, H).

    Attributes
    ----------
    independent
        If everybody decides alone.
    shared
        If one draw decides for all of them.
    """

    independent: Tensor
    shared: Tensor


def cell_likelihoods(
    row: Tensor, start: Tensor, class_probs: Tensor, difficulty: Tensor, cell: Tensor, n_cells: int
) -> CellLikelihoods:
    """Return the likelihoods of the answers, gathered by cell.

    Parameters
    ----------
    row
        The probability of each answer given the class, of shape (R, J).
    start
        The probability of all labels before it, of shape (R, J): a draw between `start` and `start + row` gives the
        label.
    class_probs
        How often each class occurs, of shape (J,).
    difficulty
        Difficulties from 0 (confusion applies as it is) to 1 (labels carry no information), of shape (H,).
    cell, n_cells
        The cell of each answer, of shape (R,), and the number of cells.
    """
    shape = (n_cells, row.shape[1])
    index = cell[:, None].expand_as(row)
    independent, shared = [], []
    for share in difficulty.tolist():
        blurred, first = (values.lerp((values @ class_probs)[:, None], share) for values in (row, start))
        low = row.new_zeros(shape).scatter_reduce_(0, index, first, "amax")
        high = row.new_ones(shape).scatter_reduce_(0, index, first + blurred, "amin")
        blurred = blurred.clamp(min=torch.finfo(row.dtype).tiny)
        independent.append(row.new_zeros(shape).index_add_(0, cell, blurred.log()))
        shared.append((high - low).clamp(min=0.0).log())
    return CellLikelihoods(torch.stack(independent, dim=2), torch.stack(shared, dim=2))


class ItemLikelihoods(NamedTuple):
    """What steps need to know of the answers, by item; a cell in which nothing is shared is only in `base`.

    Attributes
    ----------
    base
        Log prior and log likelihoods of each item given class and difficulty, of shape (N, J, H), less those below.
    independent, shared
        Log likelihoods of the cells in which something may be shared, of shape (S, J, H), each less the larger of the
        two.
    item, community
        The item and the community of these cells, of shape (S,), in order of items.
    answered
        Which items have answers, of shape (N,).
    offset
        What was subtracted from all, so that the numbers are small, as one sum.
    """

    base: Tensor
    independent: Tensor
    shared: Tensor
    item: Tensor
    community: Tensor
    answered: Tensor
    offset: float

    def to(self, device: torch.device, dtype: torch.dtype) -> ItemLikelihoods:
        """Return the same on a device, in a precision."""
        return ItemLikelihoods(
            self.base.to(device, dtype),
            self.independent.to(device, dtype),
            self.shared.to(device, dtype),
            self.item.to(device),
            self.community.to(device),
            self.answered.to(device),
            self.offset,
        )


def item_likelihoods(
    likelihoods: CellLikelihoods, *, item: Tensor, community: Tensor, log_prior: Tensor
) -> ItemLikelihoods:
    """Gather the likelihoods of cells by item.

    Parameters
    ----------
    likelihoods
        The likelihoods of the answers, by cell.
    item, community
        The item and the community of each cell, of shape (C,); community -1 for cells in which nothing is shared.
    log_prior
        Logarithms of the class probabilities before any label, of shape (N, J).
    """
    cells = torch.nonzero(community >= 0).ravel()
    cells = cells[torch.argsort(item[cells], stable=True)]
    independent, shared = (part[cells] for part in likelihoods)
    larger = torch.maximum(independent, shared)
    constant = likelihoods.independent.index_copy(0, cells, larger)
    n_difficulties = independent.shape[2]
    base = log_prior[:, :, None].repeat(1, 1, n_difficulties).index_add_(0, item, constant)
    largest = base.amax((1, 2), keepdim=True)
    return ItemLikelihoods(
        base - largest,
        independent - larger,
        shared - larger,
        item[cells],
        community[cells],
        torch.bincount(item, minlength=len(log_prior)) > 0,
        float(largest.sum()),
    )


class CautiousParameters(NamedTuple):
    """The shares of items of each difficulty, (H,), and the chance that each community errs together, (G,)."""

    shares: Tensor
    chances: Tensor


class Expectations(NamedTuple):
    """The expected numbers of items of each difficulty, (H,), and of cells in which each community errs together, (G,).

    `evidence` is the sum over items of the log likelihood of their answers, and `change` the largest change of a class
    probability.
    """

    difficulties: Tensor
    errors: Tensor
    evidence: Tensor | float
    change: Tensor | float


class CautiousEM(ABC):
    r"""The map for `squarem` whose fixed points are the most probable shares and chances.

    The labels about item `i` have the likelihood

    .. math:: \sum_j p_{ij} \sum_h w_h \prod_g \big((1 - \rho_g) A_{ig}(j, h) + \rho_g D_{ig}(j, h)\big),

    where `A` and `D` are the two `CellLikelihoods`. The shares :math:`w` have a Dirichlet prior of concentration 2, as
    if an item of each difficulty had been seen, and the chances :math:`\rho` a Beta(1, 1 + `strength`) prior.

    Parameters
    ----------
    likelihoods
        The likelihoods of the answers, by item.
    n_communities
        G.
    strength
        How many items each community is assumed to have answered independently beforehand.

    Attributes
    ----------
    probs
        The class probabilities at the last step, of shape (N, J).
    """

    probs: Tensor

    def __init__(self, likelihoods: ItemLikelihoods, *, n_communities: int, strength: float) -> None:
        self._likelihoods, self._strength = likelihoods, strength
        self._n_cells = torch.bincount(likelihoods.community, minlength=n_communities).to(self._state_type)

    def start(self) -> Tensor:
        """Return a state with equally frequent difficulties and communities that err together one time in five."""
        return torch.cat([self._n_cells.new_ones(self._n_difficulties), torch.full_like(self._n_cells, 0.25)])

    def parameters(self, state: Tensor) -> CautiousParameters:
        """Return the parameters that a state stands for: it holds shares, which need not sum to one, and odds."""
        shares, odds = state[: self._n_difficulties], state[self._n_difficulties :]
        return CautiousParameters(shares / shares.sum(), odds / (1 + odds))

    def reachable(self, tol: float) -> float:
        """Return a tolerance, or the lowest at which rounding does not keep class probabilities changing."""
        return reachable_tolerance(tol, self._state_type)

    def __call__(self, state: Tensor) -> Step:
        """Take one step."""
        shares, chances = self.parameters(state)
        expected = self._expect(shares, chances)
        odds = expected.errors / (self._n_cells - expected.errors + self._strength)
        following = torch.cat([1 + expected.difficulties, odds]).clamp(min=min_state(state.dtype))
        log_prior = total(shares.log()) + self._strength * total((-chances).log1p())
        return Step(following, expected.evidence + self._likelihoods.offset + log_prior, expected.change)

    @abstractmethod
    def _expect(self, shares: Tensor, chances: Tensor) -> Expectations:
        """Return what is expected with these parameters, and keep the class probabilities in `probs`."""

    @property
    def _state_type(self) -> torch.dtype:
        return self._likelihoods.base.dtype

    @property
    def _n_difficulties(self) -> int:
        return self._likelihoods.base.shape[2]


class TensorEM(CautiousEM):
    """The map as tensor operations; see `CautiousEM`."""

    def __init__(self, likelihoods: ItemLikelihoods, *, n_communities: int, strength: float) -> None:
        super().__init__(likelihoods, n_communities=n_communities, strength=strength)
        self.probs = torch.zeros_like(likelihoods.base[:, :, 0])

    def _expect(self, shares: Tensor, chances: Tensor) -> Expectations:
        base, independent, shared, item, community, answered, _ = self._likelihoods
        rates = chances[community, None, None]
        shared = shared + rates.log()
        both = torch.logaddexp(independent + (-rates).log1p(), shared)
        joint = (base + shares.log()).index_add(0, item, both)
        evidence = joint.logsumexp((1, 2), keepdim=True)
        weights = (joint - evidence).exp()
        probs = weights.sum(2)
        change = (probs - self.probs).abs().max()
        self.probs = probs
        wide = torch.float64 if limits_of(base.device).float64 else base.dtype
        errors = ((shared - both).exp() * weights[item]).sum((1, 2))
        return Expectations(
            (weights * answered[:, None, None]).sum((0, 1), dtype=wide).to(base.dtype),
            self._n_cells.to(wide).new_zeros(len(chances)).index_add(0, community, errors.to(wide)).to(base.dtype),
            total(evidence),
            change,
        )


class CompiledEM(CautiousEM):
    """The map on CPUs, compiled and fused; see `CautiousEM`.

    With single precision likelihoods take half the memory. Everything computed from them is in double precision.
    """

    def __init__(self, likelihoods: ItemLikelihoods, *, n_communities: int, strength: float) -> None:
        super().__init__(likelihoods, n_communities=n_communities, strength=strength)
        base, independent, shared, item, community, answered, _ = likelihoods
        n_items = len(base)
        self.probs = torch.zeros(base.shape[:2], dtype=torch.float64)
        starts = torch.cat([item.new_zeros(1), torch.bincount(item, minlength=n_items).cumsum(0)])
        tables = (part.flatten(1) for part in (base, base.exp(), independent.exp(), shared.exp()))
        self._arrays = tuple(part.contiguous().numpy() for part in (*tables, starts, community, answered))
        self._bounds = chunk_bounds(n_items, at_most=n_items // MIN_ITEMS_PER_THREAD)
        compile_cautious(self._arrays[0].dtype)

    def _expect(self, shares: Tensor, chances: Tensor) -> Expectations:
        n_chunks = len(self._bounds) - 1
        n_classes = self.probs.shape[1]
        counts, errors = np.zeros((n_chunks, n_classes * len(shares))), np.zeros((n_chunks, len(chances)))
        tiled, rates, probs = np.tile(shares.numpy(), n_classes), chances.numpy(), self.probs.numpy()

        def expect_chunk(chunk: int) -> tuple[float, float]:
            bounds = self._bounds[chunk], self._bounds[chunk + 1]
            arguments: list[Any] = [*bounds, *self._arrays, tiled, rates, probs, counts[chunk], errors[chunk]]
            evidence, change = _expect_items(*arguments)
            return evidence, change

        evidence, changes = zip(*in_parallel(expect_chunk, n_chunks), strict=True)
        difficulties = counts.sum(0).reshape(n_classes, -1).sum(0)
        return Expectations(
            torch.from_numpy(difficulties), torch.from_numpy(errors.sum(0)), math.fsum(evidence), max(changes)
        )

    @property
    def _state_type(self) -> torch.dtype:
        return torch.float64


# Sums may be added in another order than written, always the same, so that processors take several at once.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _expect_items(
    first: int,
    last: int,
    base: Any,
    likelihood: Any,
    independent: Any,
    shared: Any,
    starts: Any,
    community: Any,
    answered: Any,
    shares: Any,
    rates: Any,
    probs: Any,
    counts: Any,
    errors: Any,
) -> tuple[float, float]:
    """Fill in the class probabilities of a range of items, and add what is expected of them."""
    n_classes, width = probs.shape[1], base.shape[1]
    n_difficulties = width // n_classes
    weights = np.empty(width)
    evidence, change = 0.0, 0.0
    for item in range(first, last):
        for m in range(width):
            weights[m] = likelihood[item, m] * shares[m]
        for cell in range(starts[item], starts[item + 1]):
            rate = rates[community[cell]]
            for m in range(width):
                weights[m] *= (1 - rate) * independent[cell, m] + rate * shared[cell, m]
        norm = 0.0
        for m in range(width):
            norm += weights[m]
        if not norm > MIN_NORM:
            largest, norm = _weights_by_logarithms(
                item, base, independent, shared, starts, community, shares, rates, weights
            )
            evidence += largest
        evidence += math.log(norm)
        for m in range(width):
            weights[m] /= norm
        for j in range(n_classes):
            prob = 0.0
            for h in range(n_difficulties):
                prob += weights[j * n_difficulties + h]
            change = max(change, abs(prob - probs[item, j]))
            probs[item, j] = prob
        if answered[item]:
            for m in range(width):
                counts[m] += weights[m]
        for cell in range(starts[item], starts[item + 1]):
            rate, together = rates[community[cell]], 0.0
            for m in range(width):
                drawn = rate * shared[cell, m]
                together += weights[m] * drawn / ((1 - rate) * independent[cell, m] + drawn)
            errors[community[cell]] += together
    return evidence, change


@njit(cache=True, nogil=True, error_model="numpy")
def _weights_by_logarithms(
    item: int,
    base: Any,
    independent: Any,
    shared: Any,
    starts: Any,
    community: Any,
    shares: Any,
    rates: Any,
    weights: Any,
) -> tuple[float, float]:
    """Fill in the weights of an item less the largest, and return the logarithm of that and their sum."""
    largest, norm = -np.inf, 0.0
    for m in range(len(weights)):
        joint = base[item, m] + math.log(shares[m])
        for cell in range(starts[item], starts[item + 1]):
            rate = rates[community[cell]]
            joint += math.log((1 - rate) * independent[cell, m] + rate * shared[cell, m])
        weights[m] = joint
        largest = max(largest, joint)
    for m in range(len(weights)):
        weights[m] = math.exp(weights[m] - largest)
        norm += weights[m]
    return largest, norm


@cache
def compile_cautious(precision: np.dtype[Any]) -> None:
    """Compile the step, or load it from disk, by taking it for one item without answers."""
    table, one = np.ones((1, 1), precision), np.ones(1)
    codes, answered = np.zeros(2, np.int64), np.zeros(1, bool)
    with compile_notice("the steps of Cautious"):
        _expect_items(
            0, 1, table, table, table, table, codes, codes, answered, one, one, np.ones((1, 1)), one.copy(), one.copy()
        )
