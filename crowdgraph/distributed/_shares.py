"""What a rank reads of a store, as an ordinary graph: the responses about consecutive items, or of volunteers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from os import fspath
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdgraph.core._arrays import Array, id_array, lock, row_blocks
from crowdgraph.core._maps import release, scratch_array
from crowdgraph.core.clock import Clock
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.stored import StoredRows
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.io.columns import ResponseStore
from crowdgraph.messages import Hint


def shares(starts: Array, n_ranks: int, *, kind: str) -> list[range]:
    """Return the consecutive items, or volunteers, of each rank, with about as many responses each.

    Parameters
    ----------
    starts
        Where the responses of each begin, of shape (N + 1,).
    n_ranks
        The number of ranks.
    kind
        What they are, for the error if there are fewer of them than ranks.

    Examples
    --------
    >>> shares(np.array([0, 10, 11, 12, 20]), 2, kind="item")
    [range(0, 1), range(1, 4)]
    """
    n_nodes = len(starts) - 1
    if n_ranks > n_nodes:
        raise ParameterError(
            f"{n_ranks:,} ranks cannot share {n_nodes:,} {kind}s: each needs at least one.",
            hint=Hint(f"Start at most {n_nodes:,} processes.", cli=f"Use --nproc-per-node {n_nodes} or less."),
        )
    bounds = np.searchsorted(starts, np.arange(n_ranks + 1) * int(starts[-1]) / n_ranks)
    # At least one each, from the left and from the right.
    numbers = np.arange(n_ranks + 1)
    bounds = np.maximum.accumulate(bounds - numbers) + numbers
    bounds = np.minimum(bounds, n_nodes - n_ranks + numbers)
    bounds[0], bounds[-1] = 0, n_nodes
    return [range(int(first), int(last)) for first, last in pairwise(bounds)]


def item_share(store: ResponseStore, items: range, *, on_disk: bool) -> CrowdGraph:
    """Return the responses about consecutive items as a graph of these items and all volunteers.

    Responses stand item by item, and all of them have the same time, since nothing is read but what models without time
    need.

    Parameters
    ----------
    store
        The store.
    items
        The codes of the items.
    on_disk
        Whether what is as long as the responses lies in temporary files and not in memory.
    """
    columns = store.by_item
    begin, end = int(columns.starts[items.start]), int(columns.starts[items.stop])
    sizes = (("volunteer", 0, store.n_volunteers), ("label", store.lowest_label, len(store.labels)))
    for name, lowest, size in sizes:
        _check_codes(store, getattr(columns, name)[begin:end], name, lowest, size)
    starts = np.asarray(columns.starts[items.start : items.stop + 1]) - begin
    table = item_table(store, items)
    responses = ResponseTable.trusted(
        volunteer=columns.volunteer[begin:end],
        item=_owner_codes(starts, on_disk=on_disk),
        label=columns.label[begin:end],
        time=np.broadcast_to(lock(np.zeros((), dtype=np.int64)), (end - begin,)),
        clock=Clock("order"),
        attributes={},
        stored=StoredRows(store, 0, store.n_responses, items),
    )
    graph = object.__new__(CrowdGraph)
    gold = _gold(store, table, items)
    graph._fill(store.nodes("volunteer"), table, responses, store.classes, store.labels, gold, {})
    return graph


def volunteer_share(store: ResponseStore, volunteers: range, *, on_disk: bool) -> CrowdGraph:
    """Return the responses of consecutive volunteers as a graph of these volunteers and all items.

    Responses stand volunteer by volunteer, those of each in order of time. Items have their codes for ids, and no gold,
    since what all ranks hold would not fall with their number.

    Parameters
    ----------
    store
        The store.
    volunteers
        The codes of the volunteers.
    on_disk
        As for `item_share`.
    """
    columns = store.by_volunteer
    begin, end = int(columns.starts[volunteers.start]), int(columns.starts[volunteers.stop])
    for name, lowest, size in (("item", 0, store.n_items), ("label", store.lowest_label, len(store.labels))):
        _check_codes(store, getattr(columns, name)[begin:end], name, lowest, size)
    starts = np.asarray(columns.starts[volunteers.start : volunteers.stop + 1]) - begin
    items = NodeTable("item", lock(np.arange(store.n_items)))
    responses = ResponseTable.trusted(
        volunteer=_owner_codes(starts, on_disk=on_disk),
        item=columns.item[begin:end],
        label=columns.label[begin:end],
        time=columns.time[begin:end],
        clock=store.clock,
        attributes={},
        stored=StoredRows(store, 0, store.n_responses, volunteers=volunteers),
    )
    everybody = store.nodes("volunteer")
    own = everybody.take(np.arange(volunteers.start, volunteers.stop))
    graph = object.__new__(CrowdGraph)
    graph._fill(own, items, responses, store.classes, store.labels, Gold.unknown(items, store.classes), {})
    return graph


def item_table(store: ResponseStore, items: range) -> NodeTable:
    """Return the ids of consecutive items; only the parts of the file that have them are read."""
    with _readable(store, "items") as path, pq.ParquetFile(path) as file:
        column = file.schema_arrow.names[0]
        ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        begins = np.append(0, ends[:-1])
        groups = np.flatnonzero((ends > items.start) & (begins < items.stop)).tolist()
        ids = file.read_row_groups(groups, columns=[column])[column]
    ids = ids.slice(items.start - int(begins[groups[0]]), len(items))
    return NodeTable("item", ids.to_numpy() if pa.types.is_int64(ids.type) else id_array(ids.to_pylist()))


def _gold(store: ResponseStore, table: NodeTable, items: range) -> Gold:
    in_share = (pc.field("item") >= items.start) & (pc.field("item") < items.stop)
    with _readable(store, "gold") as path:
        known = pq.read_table(path, filters=in_share)
    if not known.num_rows:
        return Gold.unknown(table, store.classes)
    probs = np.full((len(table), len(store.classes)), np.nan)
    columns = [known[f"p{code}"].to_numpy() for code in range(len(store.classes))]
    probs[known["item"].to_numpy() - items.start] = np.column_stack(columns)
    return Gold(table, store.classes, probs)


def _owner_codes(starts: Array, *, on_disk: bool) -> Array:
    """Return the item, or volunteer, of each response, counted from the first one of the share."""
    shape = (int(starts[-1]),)
    codes = scratch_array(shape, np.int32) if on_disk else np.empty(shape, np.int32)
    for block in row_blocks(len(starts) - 1):
        begin, end = int(starts[block.start]), int(starts[block.stop])
        numbers = np.arange(block.start, block.stop, dtype=np.int32)
        codes[begin:end] = np.repeat(numbers, np.diff(starts[block.start : block.stop + 1]))
        release(codes, begin, end)
    return lock(codes)


@contextmanager
def _readable(store: ResponseStore, name: str) -> Iterator[Path]:
    """Yield the path of a table, and say which one it is if it cannot be read."""
    path = store.path / f"{name}.parquet"
    try:
        yield path
    except (OSError, ValueError, IndexError, pa.ArrowException) as error:
        raise StoreError(f"The table {path.name!r} of {fspath(store.path)!r} cannot be read: {error}.") from error


def _check_codes(store: ResponseStore, column: Array, name: str, lowest: int, size: int) -> None:
    # Compiled code does not look where codes point.
    for block in row_blocks(len(column)):
        codes = column[block]
        if len(codes) and not lowest <= codes.min() <= codes.max() < size:
            raise StoreError(
                f"{fspath(store.path)!r} is damaged: codes in {name!r} run from {codes.min()} to {codes.max()}; "
                f"expected {lowest} to {size - 1}."
            )
        release(column, block.start, block.stop)
