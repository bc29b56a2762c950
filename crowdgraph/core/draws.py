"""Random numbers for packages that have one source of them for all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["drawing"]

_ONE_AT_A_TIME = Lock()


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
