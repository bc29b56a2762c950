"""Crowds to start with: simulated ones, Dawid and Skene's table, and readers of well-known public sets."""

from collections.abc import Sequence

from crowdgraph.datasets.registry import Dataset, list, load  # noqa: A004 - called as datasets.list()

__all__ = ["Dataset", "list", "load"]


def __dir__() -> Sequence[str]:
    return __all__
