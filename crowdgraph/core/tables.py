"""Tables of aligned read-only columns, validated on construction: nodes of one kind, and responses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crowdgraph.core._arrays import (
    Array,
    FrozenMapping,
    ReadOnlyArrays,
    attribute_columns,
    attributes_equal,
    columns_equal,
    has_repeats,
    id_array,
    lock,
    read_only,
)
from crowdgraph.core.clock import Clock
from crowdgraph.core.stored import StoredAttributes, StoredRows
from crowdgraph.errors import ColumnError, IdError, UnknownIdError
from crowdgraph.messages import quote, suggestion

__all__ = ["NodeKind", "NodeTable", "ResponseTable"]

NodeKind = Literal["volunteer", "item"]

# Names that attributes cannot have, since exported nodes and responses have attributes of these names already.
NODE_NAMES = (
    "volunteer",
    "item",
    "kind",
    "id",
    "bipartite",
    "label",
    "gold",
    "confusion",
    "participation",
    "class_probs",
)
RESPONSE_NAMES = ("volunteer", "item", "label", "time", "position")


@dataclass(frozen=True, eq=False)
class NodeTable(ReadOnlyArrays):
    """The volunteers or the items: their ids and attributes, in the order of their codes.

    Parameters
    ----------
    kind
        ``"volunteer"`` or ``"item"``.
    ids
        Distinct hashable ids; the code of a node is its index here.
    attributes
        Columns with one value for each node.
    """

    kind: NodeKind
    ids: Array
    attributes: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._set(ids=id_array(self.ids))
        columns = attribute_columns(
            self.attributes, length=len(self.ids), owner=f"the {self.kind}s", reserved=NODE_NAMES
        )
        self._set(attributes=columns)
        # The look-up table of integers is built only when it is needed.
        if has_repeats(self.ids) if self.ids.dtype == np.int64 else len(self._code_of) < len(self.ids):
            repeated = [node_id for code, node_id in enumerate(self.ids.tolist()) if self._code_of[node_id] != code]
            raise IdError(f"{len(repeated):,} {self.kind} ids repeat ({quote(repeated)}); each node needs its own id.")

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, Hashable) and node_id in self._code_of

    @cached_property
    def _code_of(self) -> dict[Hashable, int]:
        return {node_id: code for code, node_id in enumerate(self.ids.tolist())}

    def code(self, node_id: Hashable) -> int:
        """Return the code of one id."""
        try:
            return self._code_of[node_id]
        except (KeyError, TypeError):
            raise UnknownIdError(
                f"There is no {self.kind} {node_id!r} among {len(self):,}.{self._advice(node_id)}"
            ) from None

    def codes(self, node_ids: Iterable[Hashable]) -> Array:
        """Return the codes of several ids."""
        if isinstance(node_ids, str) or not isinstance(node_ids, Iterable):
            raise IdError(f"Expected several {self.kind} ids, got the single value {node_ids!r}; write [{node_ids!r}].")
        ids = node_ids.tolist() if isinstance(node_ids, np.ndarray) else list(node_ids)
        return np.array([self.code(node_id) for node_id in ids], dtype=np.int64)

    def known_codes(self, node_ids: Array) -> Array:
        """Return the codes of ids of which some may be unknown; these get -1."""
        code_of = self._code_of.get
        return np.array([code_of(node_id, -1) for node_id in node_ids.tolist()], dtype=np.int64)

    def shared_ids(self, other: NodeTable) -> frozenset[Hashable]:
        """Return the ids that both tables have."""
        return frozenset(self._code_of.keys() & other._code_of.keys())

    def take(self, codes: Array) -> NodeTable:
        """Return the table of some nodes."""
        return NodeTable(self.kind, self.ids[codes], {name: column[codes] for name, column in self.attributes.items()})

    def equals(self, other: NodeTable) -> bool:
        """Return whether both tables hold the same ids and attributes, in the same order."""
        return columns_equal(self.ids, other.ids) and attributes_equal(self.attributes, other.attributes)

    def _advice(self, wrong: Hashable) -> str:
        if len(self) == 0:
            return ""
        kinds = {type(node_id).__name__ for node_id in self.ids[:1000].tolist()}
        if type(wrong).__name__ not in kinds:
            return f" Ids here are of type {' or '.join(sorted(kinds))}, such as {quote(self.ids[:1].tolist())}."
        return suggestion(wrong, self.ids[:10_000].tolist())


@dataclass(frozen=True, eq=False)
class ResponseTable(ReadOnlyArrays):
    """Who said what about which item and when: one row for each response, sorted by time.

    Parameters
    ----------
    volunteer, item
        Codes of the nodes.
    label
        Codes of the labels; -1 where an item was shown but not answered.
    time
        Sorted times: integers, floats or datetimes, as `clock` says.
    clock
        What the times are.
    attributes
        Columns with one value for each response.
    stored
        Where the columns lie on disk, if they are the maps of a store; `slice` keeps it.
    """

    volunteer: Array
    item: Array
    label: Array
    time: Array
    clock: Clock
    attributes: Mapping[str, Array] = field(default_factory=dict)
    stored: StoredRows | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("volunteer", "item", "label", "time"):
            column = read_only(getattr(self, name))
            if column.shape != np.shape(self.volunteer) or column.ndim != 1:
                raise ColumnError(
                    f"Column {name!r} has shape {column.shape}; expected ({len(self.volunteer):,},) like the others."
                )
            self._set(**{name: column})
        for name in ("volunteer", "item", "label"):
            if getattr(self, name).dtype.kind != "i":
                raise ColumnError(f"Column {name!r} is of {getattr(self, name).dtype}; expected integer codes.")
        self.clock.check(self.time)
        columns = attribute_columns(self.attributes, length=len(self), owner="the responses", reserved=RESPONSE_NAMES)
        self._set(attributes=columns)

    @classmethod
    def trusted(cls, *, attributes: Mapping[str, Array], **fields: Any) -> ResponseTable:
        """Return a table of read-only columns that were checked already, which are not read again."""
        table = object.__new__(cls)
        columns = attributes if isinstance(attributes, StoredAttributes) else FrozenMapping(attributes)
        table._set(attributes=columns, **fields)
        return table

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Rows of a store are mapped again by whoever gets them, not copied.
        return super().__reduce_ex__(protocol) if self.stored is None else (StoredRows.table, (self.stored,))

    def __len__(self) -> int:
        return len(self.volunteer)

    def slice(self, start: int, stop: int) -> ResponseTable:
        """Return consecutive responses, which share memory with this table."""
        part = self._rows(slice(start, stop))
        if self.stored is not None:
            part._set(stored=self.stored.slice(start, stop))
        return part

    def take(self, rows: Array) -> ResponseTable:
        """Return some responses; `rows` must increase, so that times stay sorted."""
        return self._rows(rows)

    def equals(self, other: ResponseTable) -> bool:
        """Return whether both tables hold the same responses in the same order."""
        names = ("volunteer", "item", "label", "time")
        return (
            self.clock == other.clock
            and all(columns_equal(getattr(self, name), getattr(other, name)) for name in names)
            and attributes_equal(self.attributes, other.attributes)
        )

    def _rows(self, rows: Any) -> ResponseTable:
        """Return rows of this table, which is valid already, so nothing is checked again."""
        columns = {name: lock(getattr(self, name)[rows]) for name in ("volunteer", "item", "label", "time")}
        attributes = (
            self.attributes.take(rows)
            if isinstance(self.attributes, StoredAttributes)
            else {name: lock(column[rows]) for name, column in self.attributes.items()}
        )
        return ResponseTable.trusted(**columns, clock=self.clock, attributes=attributes, stored=None)
