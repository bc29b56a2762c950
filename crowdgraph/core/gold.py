"""Gold, the known true classes of items, certain or as probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, columns_equal, id_array, lock, read_only, same_values
from crowdgraph.core.result import CodedColumn, Columns, Tabular
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import ColumnError, GoldError, UnknownIdError
from crowdgraph.messages import quote

__all__ = ["Gold"]


@dataclass(frozen=True, eq=False, repr=False)
class Gold(ReadOnlyArrays, Tabular, Mapping[Hashable, "Hashable | dict[Hashable, float]"]):
    """Known classes by item: a mapping from item id to its class, or to a probability for each class.

    Attributes
    ----------
    items_table
        The graph's items.
    probs
        The known probability of each class, of shape (N, J): one-hot where the class is known for certain, NaN where
        nothing is known.
    classes
        The classes, J of them.
    n_unmatched
        The number of gold items that nobody answered, so that they are not in the graph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert"], "item": ["x", "y"], "label": ["yes", "no"]}, gold={"x": "yes"})
    >>> graph.gold["x"], len(graph.gold), "y" in graph.gold
    ('yes', 1, False)
    """

    items_table: NodeTable
    classes: tuple[Hashable, ...]
    probs: Array
    n_unmatched: int = 0

    def __post_init__(self) -> None:
        self._set(probs=read_only(self.probs, dtype=np.float64))
        expected = (len(self.items_table), len(self.classes))
        if self.probs.shape != expected:
            raise GoldError(f"Gold has shape {self.probs.shape}; expected {expected}, items by classes.")
        self._check_probabilities()

    @classmethod
    def unknown(cls, items: NodeTable, classes: tuple[Hashable, ...]) -> Gold:
        """Return gold that knows nothing."""
        return cls(items, classes, np.broadcast_to(lock(np.array(np.nan)), (len(items), len(classes))))

    @cached_property
    def known(self) -> Array:
        """Whether anything is known of each item, of shape (N,)."""
        return lock(np.asarray(~np.isnan(self.probs).all(axis=1)))

    @cached_property
    def codes(self) -> Array:
        """The code of each item's class where it is known for certain, -1 elsewhere, of shape (N,)."""
        probs = np.nan_to_num(self.probs)
        # Beside a probability of one there may be another, so small that their sum rounds to one.
        certain = self.known & (probs.max(axis=1) == 1.0) & (np.count_nonzero(probs, axis=1) == 1)
        return lock(np.where(certain, probs.argmax(axis=1), -1))

    @property
    def is_soft(self) -> Array:
        """Whether the gold of each item is a probability and not a certainty, of shape (N,)."""
        return self.known & (self.codes < 0)

    def __len__(self) -> int:
        return self._n_known

    @cached_property
    def _n_known(self) -> int:
        return int(np.count_nonzero(self.known))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.items_table.ids[self.known].tolist())

    def __getitem__(self, item: Hashable) -> Hashable | dict[Hashable, float]:
        code = self.items_table.code(item)
        if not self.known[code]:
            raise UnknownIdError(f"There is no gold for item {item!r}; gold covers {len(self):,} items.")
        if self.codes[code] >= 0:
            return self.classes[int(self.codes[code])]
        return dict(zip(self.classes, self.probs[code].tolist(), strict=True))

    def of_items(self, items: NodeTable, codes: Array) -> Gold:
        """Return the gold of some items, given as a table and as codes in this one's."""
        return Gold(items, self.classes, self.probs[codes], n_unmatched=self.n_unmatched)

    def where(self, mask: Array) -> Gold:
        """Return the gold of the items for which a mask of shape (N,) holds; nothing is known of the others."""
        probs = np.where(mask[:, None], self.probs, np.nan)
        return Gold(self.items_table, self.classes, probs, n_unmatched=self.n_unmatched)

    def _columns(self) -> Columns:
        """Return a row for each item with gold: its class or, if some gold is soft, the probability of every class."""
        items = self.items_table.ids[self.known]
        if not self.is_soft.any():
            return {"item": items, "label": CodedColumn(self.codes[self.known], id_array(self.classes))}
        clash = {"item", "label"} & set(map(str, self.classes))
        if clash:
            raise ColumnError(
                f"Soft gold cannot become a table with a column for each class, since a class is called "
                f"{clash.pop()!r}; read it from graph.gold."
            )
        probs = self.probs[self.known]
        return {"item": items, **{str(name): probs[:, code] for code, name in enumerate(self.classes)}}

    def equals(self, other: Gold) -> bool:
        """Return whether both say the same of the same classes."""
        return same_values(self.classes, other.classes) and columns_equal(self.probs, other.probs)

    def __repr__(self) -> str:
        soft = f", {np.count_nonzero(self.is_soft):,} of them as probabilities" if self.is_soft.any() else ""
        return f"Gold for {len(self):,} of {len(self.items_table):,} items{soft}"

    def _check_probabilities(self) -> None:
        rows = self.probs[self.known]
        bad = ~(np.isfinite(rows) & (rows >= 0)).all(axis=1) | ~np.isclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-6)
        if bad.any():
            item = self.items_table.ids[self.known][bad].tolist()[0]
            raise GoldError(
                f"Gold probabilities must not be negative and must sum to one over {quote(self.classes)}; "
                f"{np.count_nonzero(bad):,} items do not, such as {item!r} with {rows[bad][0].tolist()}. "
                "If they are weights, divide each row by its sum."
            )
