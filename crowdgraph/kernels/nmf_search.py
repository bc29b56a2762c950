"""Searching for the best factors: from seeds, with columns that are not needed pruned, and those that are alike merged.

A column more costs the posterior the same whether it explains much or little, so that the best number of columns is
well defined; but steps alone hardly ever give up a column that shares its volunteers with another. Merging them is
tried, and kept where the posterior is higher after as many steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import Step, Trace, squarem

__all__ = ["SearchResult", "search", "seeded_start"]

# Steps between two looks at which columns are needed.
PHASE = 12
# A column whose squares sum to less is pruned; one with a single member has about as much as the largest weight.
NEEDED = 0.1
# Columns that share more than this (the cosine of the angle between them) may be the same.
ALIKE = 0.2
# How many pairs of columns are tried at the end.
PAIRS = 3
# Volunteers join columns other than that of their seed from this share.
OPEN = 0.05


class SearchResult(NamedTuple):
    """The factors that were found, of shape (M, K), with their log posterior."""

    factors: Tensor
    objective: float
    change: float
    n_steps: int
    converged: bool


def seeded_start(
    row: Callable[[int], Tensor], product: Callable[[Tensor], Tensor], strength: Tensor, k: int, draw: torch.Generator
) -> Tensor:
    """Where to start: participations, of shape (N, K), in the neighbourhoods of `k` volunteers far from each other.

    Rows sum to one, and `OPEN` is added. Volunteers without weights are equally near to all.

    Parameters
    ----------
    row
        The weights of one volunteer, of shape (N,).
    product
        The weights times a vector.
    strength
        The sum of each volunteer's weights, of shape (N,); not all zero.
    k
        How many seeds.
    draw
        Where random numbers come from.
    """
    reached, linked = torch.zeros_like(strength), strength > 0
    strength = strength.where(linked, 1.0)
    columns = []
    for _ in range(k):
        chances = linked * (0.01 + reached / reached.mean().clamp(min=1e-300)) ** -2
        seed = int(torch.multinomial(chances.float().cpu(), 1, generator=draw))
        links = row(seed).clone()
        links[seed] = links.max()
        # The share of everybody's weights that leads to where the seed's lead.
        near = product(links / strength) / strength
        columns.append(near / near.max())
        reached += near / near.sum()
    shares = torch.stack(columns, dim=1) ** 2
    return shares / shares.sum(1, keepdim=True).clamp(min=1e-300) + OPEN / k


def search(
    step: Callable[[Tensor], Step],
    start: Tensor,
    *,
    tol: float,
    max_iter: int,
    on_step: Callable[[Step], object] = lambda _: None,
) -> SearchResult:
    """Climb from a start, of shape (M, K), until nothing changes and no two columns are better merged.

    Parameters
    ----------
    step
        One step of the factors.
    start
        The first factors, all positive.
    tol
        The change of a step at which a climb is over.
    max_iter
        How many steps to take; the last looks at columns may take some more.
    on_step
        Called with every step, for progress bars.
    """
    n_steps = 0

    def onward(factors: Tensor, *, goal: float = -math.inf) -> Trace:
        nonlocal n_steps

        def give_up(objectives: list[float]) -> bool:
            return _out_of_reach(goal, objectives)

        trace = squarem(step, factors, max_iter=PHASE, tol=tol, accelerate=True, give_up=give_up, on_step=on_step)
        n_steps += trace.n_steps
        return trace

    best = squarem(step, start, max_iter=PHASE, tol=0.0, accelerate=True, on_step=on_step)
    n_steps += best.n_steps
    many = True
    while n_steps < max_iter:
        factors = _needed(best.state)
        best = onward(factors)
        settled = best.converged and factors.shape == best.state.shape == _needed(best.state).shape
        proposals = _matched(factors) if many else []
        if settled:
            proposals += _closest(factors)
        merged = None
        for pairs in proposals:
            other = onward(_merged(factors, pairs), goal=best.objectives[-1])
            if other.objectives[-1] > best.objectives[-1]:
                merged = other
                break
        if merged is not None:
            best = merged
        elif settled:
            break
        else:
            many = many and not proposals
    return SearchResult(best.state, best.objectives[-1], best.change, n_steps, best.converged)


def _out_of_reach(goal: float, objectives: list[float]) -> bool:
    """Whether an objective will not reach the goal within a phase, even if it rises twice as fast as it just did."""
    if len(objectives) < 3:
        return False
    return objectives[-1] + 2 * (PHASE - len(objectives)) * (objectives[-1] - objectives[-2]) < goal


def _needed(factors: Tensor) -> Tensor:
    """The columns that explain something; the largest if none does."""
    squares = (factors**2).sum(0)
    return factors[:, squares >= min(NEEDED, float(squares.max()))]


def _overlaps(factors: Tensor) -> Tensor:
    """The cosines of the angles between columns, of shape (K, K), without the diagonal."""
    directions = factors / (factors**2).sum(0).sqrt()
    return (directions.T @ directions).fill_diagonal_(0.0)


def _matched(factors: Tensor) -> list[list[tuple[int, int]]]:
    """All pairs of columns that are most alike to each other, at once; none if fewer than two pairs are alike."""
    overlaps = _overlaps(factors)
    best = overlaps.argmax(1).tolist() if len(overlaps) > 1 else []
    pairs = [
        (first, second)
        for first, second in enumerate(best)
        if first < second and best[second] == first and overlaps[first, second] > ALIKE
    ]
    return [pairs] if len(pairs) > 1 else []


def _closest(factors: Tensor) -> list[list[tuple[int, int]]]:
    """The pairs of columns that are most alike, one at a time."""
    k = factors.shape[1]
    if k < 2:
        return []
    first, second = torch.triu_indices(k, k, 1)
    order = torch.argsort(_overlaps(factors)[first, second], descending=True)[:PAIRS]
    return [[(int(first[place]), int(second[place]))] for place in order]


def _merged(factors: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """The factors with the second column of each pair added to the first."""
    merged = factors.clone()
    for first, second in pairs:
        # As if each volunteer had belonged to one of them: half of the pairs in both had weights.
        merged[:, first] = (factors[:, first] + factors[:, second]) * 0.75
    gone = {second for _, second in pairs}
    return merged[:, [column for column in range(factors.shape[1]) if column not in gone]].contiguous()
