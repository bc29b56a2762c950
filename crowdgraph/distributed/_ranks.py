"""The processes that torchrun started, as `crowdgraph.kernels.ranks.Ranks`: their sums by torch.distributed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from crowdgraph.core._arrays import Array
from crowdgraph.errors import CrowdGraphError, LostRankError

Value = TypeVar("Value")
# The environment variables by which torchrun names a process.
STARTED_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# After how many seconds without a word from a rank the others give up. A sweep takes seconds to minutes.
TIMEOUT = 600.0
# How long to wait for an answer about who reports a failure; whoever could answer may be what failed.
REPORT_TIMEOUT = timedelta(seconds=5)


class TorchRanks:
    """The processes of a group of torch.distributed, or one process by itself if there is no group.

    Sums are computed once and sent to everybody, so that they are the same to the last bit everywhere; every process
    then takes the same decisions.

    Parameters
    ----------
    store
        What the processes met at; it also says who of them reports a failure.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.size = dist.get_world_size() if dist.is_initialized() else 1

    def total(self, values: Tensor) -> Tensor:
        """See `Ranks`."""
        if self.size == 1:
            return values
        summed = values.clone(memory_format=torch.contiguous_format)
        self._together(lambda: dist.all_reduce(summed))
        return summed

    def total_array(self, values: Array) -> Array:
        """See `Ranks`."""
        return values if self.size == 1 else self.total(torch.from_numpy(np.array(values))).numpy()

    def largest(self, value: float) -> float:
        """See `Ranks`."""
        if self.size == 1:
            return value
        largest = torch.tensor([value], dtype=torch.float64)
        self._together(lambda: dist.all_reduce(largest, op=dist.ReduceOp.MAX))
        return float(largest)

    def sum_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """See `Ranks`."""
        if self.size > 1:
            for rank, rows in enumerate(shares):
                self._together(partial(dist.reduce, table[rows.start : rows.stop], dst=rank))

    def spread_rows(self, table: Tensor, shares: Sequence[range]) -> None:
        """See `Ranks`."""
        if self.size > 1:
            for rank, rows in enumerate(shares):
                self._together(partial(dist.broadcast, table[rows.start : rows.stop], src=rank))

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all processes, by rank."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            self._together(lambda: dist.all_gather_object(values, value))
        return values

    def from_first(self, value: Value) -> Value:
        """Return the value of rank 0, which alone has to compute it."""
        values = [value]
        if self.size > 1:
            self._together(lambda: dist.broadcast_object_list(values, src=0))
        return values[0]

    def from_first_tensor(self, values: Tensor) -> Tensor:
        """Overwrite a tensor by that of rank 0, and return it."""
        if self.size > 1:
            self._together(lambda: dist.broadcast(values, src=0))
        return values

    def hand_out(self, part_of: Callable[[int], Value] | None) -> Value:
        """Return this process's part of something that rank 0 has; the parts are made one after the other."""
        if self.rank == 0:
            assert part_of is not None  # noqa: S101 - rank 0 has it all
            for rank in range(1, self.size):
                self._together(partial(dist.send_object_list, [part_of(rank)], dst=rank))
            return part_of(0)
        parts: list[Any] = [None]
        self._together(lambda: dist.recv_object_list(parts, src=0))
        (part,) = parts
        return part  # type: ignore[no-any-return]

    def stack_on_first(self, rows: Tensor, bounds: Sequence[int]) -> Tensor:
        """Return the rows of all processes on rank 0, where those of a rank begin at its bound; elsewhere the own."""
        if self.rank:
            if len(rows):
                self._together(lambda: dist.send(rows, dst=0))
            return rows
        stacked = torch.empty((bounds[-1], rows.shape[1]), dtype=rows.dtype)
        stacked[: bounds[1]] = rows
        for rank in range(1, self.size):
            part = stacked[bounds[rank] : bounds[rank + 1]]
            if len(part):
                self._together(partial(dist.recv, part, src=rank))
        return stacked

    def reports(self) -> bool:
        """Return whether this process is the one that reports a failure: the first that asks."""
        if self._store is None:
            return True
        try:
            self._store.set_timeout(REPORT_TIMEOUT)
            return bool(self._store.add("failures", 1) == 1)
        except RuntimeError:
            return True

    def _together(self, communicate: Callable[[], object]) -> None:
        try:
            communicate()
        except RuntimeError as error:
            raise LostRankError(
                f"Rank {self.rank} of {self.size} lost the others: one of them ended or cannot be reached any more."
            ) from error


def on_first(ranks: TorchRanks, act: Callable[[], None]) -> None:
    """Let rank 0 do something; raise everywhere if that fails."""
    error = None
    if ranks.rank == 0:
        try:
            act()
        except CrowdGraphError as failure:
            error = failure
    error = ranks.from_first(error)
    if error is not None:
        raise error


@contextmanager
def joined(*, timeout: float) -> Iterator[TorchRanks]:
    """Let the processes that torchrun started, or a group that is there already, compute together.

    Without torchrun the process is alone.

    Parameters
    ----------
    timeout
        After how many seconds without a word from a process the others give up.
    """
    if dist.is_initialized() or any(name not in os.environ for name in STARTED_BY):
        yield TorchRanks()
        return
    limit = timedelta(seconds=timeout)
    try:
        store, rank, size = next(iter(rendezvous("env://", timeout=limit)))
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=PrefixStore("crowdgraph", store),
            rank=rank,
            world_size=size,
            timeout=limit,
        )
    except RuntimeError as error:
        raise LostRankError(f"The ranks did not meet within {timeout:,.0f} s: {error}.") from error
    yield TorchRanks(PrefixStore("failures", store))
    # After an error the others may be gone, and saying goodbye to them would wait for them.
    dist.destroy_process_group()
