"""Ranks that are threads of one process: as cheap as functions, and in step like processes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import torch


class ThreadRanks:
    """One of several threads that compute together; see `crowdgraph.kernels.ranks.Ranks`."""

    def __init__(self, rank, size, barrier, values):
        self.rank, self.size = rank, size
        self._barrier, self._values = barrier, values

    def gather(self, value):
        self._values[self.rank] = value
        self._barrier.wait()
        values = list(self._values)
        self._barrier.wait()
        return values

    def from_first(self, value):
        return self.gather(value)[0]

    def from_first_tensor(self, values):
        return values.copy_(self.gather(values.clone())[0])

    def hand_out(self, part_of):
        return self.gather(part_of and [part_of(rank) for rank in range(self.size)])[0][self.rank]

    def stack_on_first(self, rows, bounds):
        stacked = torch.cat(self.gather(rows))
        assert not bounds or len(stacked) == bounds[-1]
        return rows if self.rank else stacked

    def total(self, values):
        return torch.stack(self.gather(values.clone())).sum(0)

    def total_array(self, values):
        return np.sum(self.gather(np.array(values)), axis=0)

    def largest(self, value):
        return max(self.gather(value))

    def sum_rows(self, table, shares):
        own = shares[self.rank]
        table[own.start : own.stop] = self.total(table)[own.start : own.stop]

    def spread_rows(self, table, shares):
        tables = self.gather(table.clone())
        for rows, other in zip(shares, tables, strict=True):
            table[rows.start : rows.stop] = other[rows.start : rows.stop]


def run_together(act, n_ranks):
    """Return what a function of the ranks returns on each of them."""
    barrier, values = Barrier(n_ranks, timeout=30), [None] * n_ranks

    def run(rank):
        try:
            return act(ThreadRanks(rank, n_ranks, barrier, values))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(n_ranks) as pool:
        return list(pool.map(run, range(n_ranks)))
