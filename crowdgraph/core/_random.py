"""Random seeds: one from another, and a seed for igraph's own generator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

# igraph has one random generator for all threads.
_IGRAPH_LOCK = Lock()


def child_seed(rng: np.random.Generator) -> int:
    """Draw a seed for another random generator."""
    return int(rng.integers(2**31))


@contextmanager
def igraph_seed(seed: int | None) -> Iterator[None]:
    """Let igraph draw from a random generator of its own, seeded with `seed`; afterwards from Python's again.

    Examples
    --------
    >>> import igraph
    >>> with igraph_seed(0):
    ...     first = igraph.Graph.Erdos_Renyi(n=9, m=9).get_edgelist()
    >>> with igraph_seed(0):
    ...     print(igraph.Graph.Erdos_Renyi(n=9, m=9).get_edgelist() == first)
    True
    """
    import igraph

    with _IGRAPH_LOCK:
        igraph.set_random_number_generator(random.Random(seed))  # noqa: S311 - not for secrets
        try:
            yield
        finally:
            igraph.set_random_number_generator(random)
