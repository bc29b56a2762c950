"""Items of unequal difficulty and communities that err together: one step of expectation maximisation.

A *cell* is the set of answers that one community gave about one item.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import MIN_STATE, Step

__all__ = ["CautiousEM", "CautiousParameters", "CellLikelihoods", "cell_likelihoods"]


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
        independent.append(row.new_zeros(shape).index_add_(0, cell, blurred.log()))
        shared.append((high - low).clamp(min=0.0).log())
    return CellLikelihoods(torch.stack(independent, dim=2), torch.stack(shared, dim=2))


class CautiousParameters(NamedTuple):
    """The shares of items of each difficulty, (H,), and the chance that each community errs together, (G,)."""

    shares: Tensor
    chances: Tensor


class CautiousEM:
    r"""The map for `squarem` whose fixed points are the most probable shares and chances.

    The labels about item `i` have the likelihood

    .. math:: \sum_j p_{ij} \sum_h w_h \prod_g \big((1 - \rho_g) A_{ig}(j, h) + \rho_g D_{ig}(j, h)\big),

    where `A` and `D` are the two `CellLikelihoods`. The shares :math:`w` have a Dirichlet prior of concentration 2, as
    if an item of each difficulty had been seen, and the chances :math:`\rho` a Beta(1, 1 + `strength`) prior.

    Parameters
    ----------
    likelihoods
        The likelihoods of the answers, by cell.
    item, community
        The item and the community of each cell, of shape (C,); community -1 for cells in which nothing is shared.
    log_prior
        Logarithms of the class probabilities before any label, of shape (N, J).
    n_communities
        G.
    strength
        How many items each community is assumed to have answered independently beforehand.

    Attributes
    ----------
    probs
        The class probabilities at the last step, of shape (N, J).
    """

    def __init__(
        self,
        likelihoods: CellLikelihoods,
        *,
        item: Tensor,
        community: Tensor,
        log_prior: Tensor,
        n_communities: int,
        strength: float,
    ) -> None:
        self._likelihoods, self._item, self._log_prior, self._strength = likelihoods, item, log_prior, strength
        self._shared_cells = torch.nonzero(community >= 0).ravel()
        self._community = community[self._shared_cells]
        self._answered = torch.bincount(item, minlength=len(log_prior)) > 0
        self._n_cells = torch.bincount(self._community, minlength=n_communities).to(log_prior.dtype)
        self.probs = log_prior.exp()

    def start(self) -> Tensor:
        """Return a state with equally frequent difficulties and communities that err together one time in five."""
        shares, odds = self._log_prior.new_ones(self._n_difficulties), torch.full_like(self._n_cells, 0.25)
        return torch.cat([shares, odds])

    def parameters(self, state: Tensor) -> CautiousParameters:
        """Return the parameters that a state stands for: it holds shares, which need not sum to one, and odds."""
        shares, odds = state[: self._n_difficulties], state[self._n_difficulties :]
        return CautiousParameters(shares / shares.sum(), odds / (1 + odds))

    def __call__(self, state: Tensor) -> Step:
        """Take one step."""
        shares, chances = self.parameters(state)
        rates = chances[self._community, None, None]
        shared = self._likelihoods.shared[self._shared_cells] + rates.log()
        both = torch.logaddexp(self._likelihoods.independent[self._shared_cells] + (-rates).log1p(), shared)
        likelihood = self._likelihoods.independent.index_copy(0, self._shared_cells, both)
        joint = (self._log_prior[:, :, None] + shares.log()).index_add(0, self._item, likelihood)
        evidence = joint.logsumexp((1, 2), keepdim=True)
        weights = (joint - evidence).exp()
        probs = weights.sum(2)
        shared_prob = ((shared - both).exp() * weights[self._item[self._shared_cells]]).sum((1, 2))
        counts = torch.zeros_like(self._n_cells).index_add_(0, self._community, shared_prob)
        odds = counts / (self._n_cells - counts + self._strength)
        following = torch.cat([1 + weights[self._answered].sum((0, 1)), odds]).clamp(min=MIN_STATE)
        change = float((probs - self.probs).abs().max())
        self.probs = probs
        log_prior = shares.log().sum() + self._strength * (-chances).log1p().sum()
        return Step(following, float(evidence.sum() + log_prior), change)

    @property
    def _n_difficulties(self) -> int:
        return self._likelihoods.independent.shape[2]
