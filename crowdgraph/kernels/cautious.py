"""Items of unequal difficulty and communities that err together: one step of expectation maximisation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import MIN_STATE, Step

__all__ = ["CautiousEM", "CautiousParameters", "CellLikelihoods", "cell_likelihoods"]


class CellLikelihoods(NamedTuple):
    """Log likelihoods of what a community said of an item, given class and difficulty, both of shape (C, J, H).

    Attributes
    ----------
    alone
        If everybody decides alone.
    drawn
        If one draw decides for all of them.
    """

    alone: Tensor
    drawn: Tensor


def cell_likelihoods(
    row: Tensor, start: Tensor, class_probs: Tensor, difficulty: Tensor, cell: Tensor, n_cells: int
) -> CellLikelihoods:
    """Gather answers by cell, the answers of one community about one item.

    Parameters
    ----------
    row
        The probability of each answer given the class, of shape (R, J).
    start
        That of all labels before it, of shape (R, J): a draw between `start` and `start + row` gives the label.
    class_probs
        How often each class occurs, of shape (J,).
    difficulty
        Difficulties from 0 (as the confusion says) to 1 (labels tell nothing), of shape (H,).
    cell, n_cells
        The cell of each answer, of shape (R,), and how many there are.
    """
    shape = (n_cells, row.shape[1])
    places = cell[:, None].expand_as(row)
    alone, drawn = [], []
    for share in difficulty.tolist():
        blurred, first = (values.lerp((values @ class_probs)[:, None], share) for values in (row, start))
        low = row.new_zeros(shape).scatter_reduce_(0, places, first, "amax")
        high = row.new_ones(shape).scatter_reduce_(0, places, first + blurred, "amin")
        alone.append(row.new_zeros(shape).index_add_(0, cell, blurred.log()))
        drawn.append((high - low).clamp(min=0.0).log())
    return CellLikelihoods(torch.stack(alone, dim=2), torch.stack(drawn, dim=2))


class CautiousParameters(NamedTuple):
    """How many items are of each difficulty, as shares (H,), and the chances of communities to err together, (G,)."""

    shares: Tensor
    chances: Tensor


class CautiousEM:
    r"""The map whose fixed points are the most probable shares and chances, for `crowdgraph.kernels.iterate.squarem`.

    The labels about item `i` have the likelihood

    .. math:: \sum_j p_{ij} \sum_h w_h \prod_g \big((1 - \rho_g) A_{ig}(j, h) + \rho_g D_{ig}(j, h)\big),

    the shares :math:`w` a Dirichlet prior of concentration 2, as if an item of each difficulty had been seen, and the
    chances :math:`\rho` a Beta(1, 1 + `strength`) prior.

    Parameters
    ----------
    told
        What was said, by cell.
    item, community
        The item and the community of each cell, of shape (C,); -1 for cells in which nothing is shared.
    log_prior
        Logarithms of the class probabilities before any label, of shape (N, J).
    n_communities
        G.
    strength
        How many items each community is taken to have answered alone beforehand.

    Attributes
    ----------
    probs
        The class probabilities at the last step, of shape (N, J).
    """

    def __init__(
        self,
        told: CellLikelihoods,
        *,
        item: Tensor,
        community: Tensor,
        log_prior: Tensor,
        n_communities: int,
        strength: float,
    ) -> None:
        self._told, self._item, self._log_prior, self._strength = told, item, log_prior, strength
        self._shared = torch.nonzero(community >= 0).ravel()
        self._community = community[self._shared]
        self._answered = torch.bincount(item, minlength=len(log_prior)) > 0
        self._n_cells = torch.bincount(self._community, minlength=n_communities).to(log_prior.dtype)
        self.probs = log_prior.exp()

    def start(self) -> Tensor:
        """The state in which all difficulties are as frequent, and communities err together one time in five."""
        shares, odds = self._log_prior.new_ones(self._told.alone.shape[2]), torch.full_like(self._n_cells, 0.25)
        return torch.cat([shares, odds])

    def read(self, state: Tensor) -> CautiousParameters:
        """What a state stands for: it holds shares, which need not sum to one, and odds."""
        n_shares = self._told.alone.shape[2]
        shares, odds = state[:n_shares], state[n_shares:]
        return CautiousParameters(shares / shares.sum(), odds / (1 + odds))

    def __call__(self, state: Tensor) -> Step:
        """One step."""
        shares, chances = self.read(state)
        rates = chances[self._community, None, None]
        drawn = self._told.drawn[self._shared] + rates.log()
        both = torch.logaddexp(self._told.alone[self._shared] + (-rates).log1p(), drawn)
        likelihood = self._told.alone.index_copy(0, self._shared, both)
        joint = (self._log_prior[:, :, None] + shares.log()).index_add(0, self._item, likelihood)
        evidence = joint.logsumexp((1, 2), keepdim=True)
        weights = (joint - evidence).exp()
        probs = weights.sum(2)
        together = ((drawn - both).exp() * weights[self._item[self._shared]]).sum((1, 2))
        counts = torch.zeros_like(self._n_cells).index_add_(0, self._community, together)
        odds = counts / (self._n_cells - counts + self._strength)
        following = torch.cat([1 + weights[self._answered].sum((0, 1)), odds]).clamp(min=MIN_STATE)
        change = float((probs - self.probs).abs().max())
        self.probs = probs
        log_prior = shares.log().sum() + self._strength * (-chances).log1p().sum()
        return Step(following, float(evidence.sum() + log_prior), change)
