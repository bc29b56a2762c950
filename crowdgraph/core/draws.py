"""Random numbers: seeds for what draws by itself, and for packages that have one source of them for all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

__all__ = ["drawing", "drawn_seed"]

_ONE_AT_A_TIME = Lock()


def drawn_seed(rng: np.random.Generator) -> int:
    """A seed for what draws from a source of its own."""
    return int(rng.integers(2**31))


@contextmanager
def drawing(seed: int | None) -> Iterator[None]:
    """Let igraph draw from a source of its own, begun with `seed`; afterwards from Python's again.

    Examples
    --------
    >>> import igraph
    >>> with drawing(0):
    ...     first = igraph.Graph.Erdos_Renyi(n=9, m=9).get_edgelist()
    >>> with drawing(0):
    ...     print(igraph.Graph.Erdos_Renyi(n=9, m=9).get_edgelist() == first)
    True
    """
    import igraph

    with _ONE_AT_A_TIME:
        igraph.set_random_number_generator(random.Random(seed))  # noqa: S311 - not for secrets
        try:
            yield
        finally:
            igraph.set_random_number_generator(random)
