"""Search for the best factors: start from seeds, prune columns that explain nothing, and merge columns that are alike.

An additional column costs the posterior the same whether it explains much or little, so that the best number of columns
is well defined; but steps alone hardly ever give up a column that shares its volunteers with another. Merges are
therefore tried, and accepted if the posterior is higher after as many steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from crowdgraph.kernels.fixed_point import Step, Trace, squarem

__all__ = ["SearchResult", "search", "seeded_start"]

# Steps between two checks of which columns explain something.
STEPS_PER_PHASE = 12
# Columns with a smaller sum of squares are pruned; one with a single member has about that of the largest weight.
MIN_COLUMN_SQUARES = 0.1
# Columns whose cosine is larger than this may be the same.
MIN_MERGE_COSINE = 0.2
# How many pairs of columns are tried at the end.
MAX_FINAL_MERGES = 3
# The share that volunteers start with in all columns other than those of the nearest seeds, together.
BACKGROUND_SHARE = 0.05


class SearchResult(NamedTuple):
    """The best factors, of shape (M, K), with their log posterior.

    A search has converged where steps have, and merging no two columns is better.
    """

    factors: Tensor
    objective: float
    change: float
    n_steps: int
    converged: bool


def seeded_start(
    row: Callable[[int], Tensor],
    product: Callable[[Tensor], Tensor],
    strength: Tensor,
    k: int,
    generator: torch.Generator,
) -> Tensor:
    """Return initial participations, (N, K), in the neighbourhoods of `k` volunteers far from each other.

    Rows sum to one, and `BACKGROUND_SHARE` is added. Volunteers without weights are equally near to all.

    Parameters
    ----------
    row
        Returns the weights of one volunteer, of shape (N,).
    product
        Returns the weights times a vector.
    strength
        The sum of each volunteer's weights, of shape (N,); not all zero.
    k
        The number of seeds.
    generator
        The source of random numbers.
    """
    reached, linked = torch.zeros_like(strength), strength > 0
    strength = strength.where(linked, 1.0)
    columns = []
    for _ in range(k):
        chances = linked * (0.01 + reached / reached.mean().clamp(min=1e-300)) ** -2
        seed = int(torch.multinomial(chances.float().cpu(), 1, generator=generator))
        links = row(seed).clone()
        links[seed] = links.max()
        # The share of everybody's weights that leads to the seed's neighbours.
        nearness = product(links / strength) / strength
        columns.append(nearness / nearness.max())
        reached += nearness / nearness.sum()
    shares = torch.stack(columns, dim=1) ** 2
    return shares / shares.sum(1, keepdim=True).clamp(min=1e-300) + BACKGROUND_SHARE / k


def search(
    step: Callable[[Tensor], Step],
    start: Tensor,
    *,
    tol: float,
    max_iter: int,
    weighted: bool = False,
    on_step: Callable[[Step], object] = lambda _: None,
) -> SearchResult:
    """Improve factors from a start, of shape (M, K), until they converge and merging no two columns is better.

    Parameters
    ----------
    step
        Takes one step of the factors.
    start
        The first factors, all positive.
    tol
        The change of a step at which an iteration has converged.
    max_iter
        How many steps to take; the last checks of columns may take some more.
    weighted
        Whether changes count in proportion to the factors for the length of extrapolations; see `squarem`.
    on_step
        Called with every step, for progress bars.
    """
    n_steps = 0

    def run_phase(factors: Tensor, *, goal: float = -math.inf) -> Trace:
        nonlocal n_steps

        def give_up(objectives: list[float]) -> bool:
            return _is_out_of_reach(goal, objectives)

        trace = squarem(
            step,
            factors,
            max_iter=STEPS_PER_PHASE,
            tol=tol,
            accelerate=True,
            weighted=weighted,
            give_up=give_up,
            on_step=on_step,
        )
        n_steps += trace.n_steps
        return trace

    best = run_phase(start)
    merge_many, ended = True, False
    while n_steps < max_iter and not ended:
        factors = _prune(best.state)
        if not (best.converged and factors.shape == best.state.shape):
            best = run_phase(factors)
        settled = best.converged and _prune(best.state).shape == factors.shape
        proposals = _mutual_pairs(factors) if merge_many else []
        if settled:
            proposals += _closest_pairs(factors)
        accepted = None
        for pairs in proposals:
            merged = run_phase(_merge(factors, pairs), goal=best.objectives[-1])
            if merged.objectives[-1] > best.objectives[-1]:
                accepted = merged
                break
        if accepted is not None:
            best = accepted
        elif settled:
            ended = True
        else:
            merge_many = merge_many and not proposals
    return SearchResult(best.state, best.objectives[-1], best.change, n_steps, ended)


def _is_out_of_reach(goal: float, objectives: list[float]) -> bool:
    """Return whether an objective would miss the goal within a phase even if it rose twice as fast as just now."""
    if len(objectives) < 3:
        return False
    return objectives[-1] + 2 * (STEPS_PER_PHASE - len(objectives)) * (objectives[-1] - objectives[-2]) < goal


def _prune(factors: Tensor) -> Tensor:
    """Return the columns that explain something, or the largest column if none does."""
    squares = (factors**2).sum(0)
    return factors[:, squares >= min(MIN_COLUMN_SQUARES, float(squares.max()))]


def _cosines(factors: Tensor) -> Tensor:
    """Return the cosines of the angles between columns, of shape (K, K), with zeros on the diagonal."""
    directions = factors / (factors**2).sum(0).sqrt()
    return (directions.T @ directions).fill_diagonal_(0.0)


def _mutual_pairs(factors: Tensor) -> list[list[tuple[int, int]]]:
    """Propose to merge at once all pairs of columns that are each other's closest, if there are at least two."""
    cosines = _cosines(factors)
    closest = cosines.argmax(1).tolist() if len(cosines) > 1 else []
    pairs = [
        (first, second)
        for first, second in enumerate(closest)
        if first < second and closest[second] == first and cosines[first, second] > MIN_MERGE_COSINE
    ]
    return [pairs] if len(pairs) > 1 else []


def _closest_pairs(factors: Tensor) -> list[list[tuple[int, int]]]:
    """Propose to merge the closest pairs of columns, one at a time."""
    k = factors.shape[1]
    if k < 2:
        return []
    first, second = torch.triu_indices(k, k, 1)
    order = torch.argsort(_cosines(factors)[first, second], descending=True)[:MAX_FINAL_MERGES]
    return [[(int(first[index]), int(second[index]))] for index in order]


def _merge(factors: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """Return the factors with the second column of each pair merged into the first."""
    merged = factors.clone()
    for first, second in pairs:
        # As if each volunteer had belonged to one of them: half of the pairs in both had weights.
        merged[:, first] = (factors[:, first] + factors[:, second]) * 0.75
    removed = {second for _, second in pairs}
    return merged[:, [column for column in range(factors.shape[1]) if column not in removed]].contiguous()
