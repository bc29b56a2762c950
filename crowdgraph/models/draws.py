"""The draws of several chains, put together; those that are kept of everything take bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crowdgraph.core.columns import Array, sealed
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.posterior_draws import PosteriorDraws
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.kernels.gibbs import Draws
    from crowdgraph.models.tensors import AnswerTensors

__all__ = ["check_memory", "let_go", "posterior_draws", "together"]

# How many bytes the draws that are kept of everything may take.
MOST_KEPT = 10**9


def check_memory(n_kept: int, n_chains: int, n_items: int, shape: tuple[int, int, int]) -> None:
    """Raise if the draws that are to be kept, with confusion tables of the given shape, would take too much memory."""
    each = n_chains * (2 * n_items + 4 * int(np.prod(shape)))
    if n_kept * each > MOST_KEPT:
        raise ParameterError(
            f"keep_draws={n_kept} of {n_chains} chains would take {n_kept * each / 1e9:.1f} GB; at most "
            f"{MOST_KEPT / 1e9:g} are allowed. Use keep_draws={MOST_KEPT // each} or less for this graph, or fewer "
            "chains."
        )


def together(blocks: list[list[Draws]], what: str) -> Array:
    """Draws of all chains, of shape (chains, draws, ...)."""
    chains = zip(*blocks, strict=True)
    return np.stack([np.concatenate([getattr(draws, what) for draws in chain]) for chain in chains])


def let_go(blocks: list[list[Draws]], n_kept: int) -> None:
    """Forget what was kept of the first draws as soon as later ones suffice."""
    n_later = 0
    for block in reversed(blocks):
        if n_later >= n_kept:
            for draws in block:
                draws.classes, draws.confusion = draws.classes[:0].copy(), draws.confusion[:0].copy()
        n_later += len(block[0].log_joint)


def posterior_draws(
    graph: CrowdGraph, tensors: AnswerTensors, blocks: list[list[Draws]], *, watched: Array, n_kept: int
) -> PosteriorDraws:
    """The last `n_kept` draws of everything or, if that is 0, all draws of what was watched."""
    log_joint = together(blocks, "log_joint")
    n_chains, n_drawn = log_joint.shape
    n_last = min(n_kept, n_drawn) if n_kept else n_drawn
    if n_kept:
        full = [block for block in blocks if len(block[0].classes)]
        order = np.argsort(tensors.volunteers)
        items, volunteers = np.arange(len(graph.items)), tensors.volunteers[order]
        item_classes = together(full, "classes")[:, -n_last:]
        confusion = together(full, "confusion")[:, -n_last:, order].swapaxes(-1, -2)
    else:
        items, volunteers, item_classes = watched, np.zeros(0, dtype=np.int64), together(blocks, "watched")
        confusion = np.zeros((n_chains, n_drawn, 0, len(graph.classes), len(graph.labels)), dtype=np.float32)
    return PosteriorDraws(
        classes=graph.classes,
        labels=graph.labels,
        class_probs=together(blocks, "class_probs")[:, -n_last:],
        log_joint=log_joint[:, -n_last:],
        items=graph.items.ids[items],
        item_classes=sealed(item_classes),
        volunteers=graph.volunteers.ids[volunteers],
        confusion=sealed(confusion),
        first=n_drawn - n_last,
    )
