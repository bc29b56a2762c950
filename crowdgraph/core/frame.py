"""Tables for other libraries: every result says its columns, and one method makes a frame of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from crowdgraph.core.clock import Clock
from crowdgraph.core.columns import Array

__all__ = ["Coded", "Columns", "Tabular", "Timed", "to_frame"]


class Coded(NamedTuple):
    """A column as codes into its distinct values; -1 is null."""

    codes: Array
    values: Array

    def decoded(self) -> Array:
        """Return the values themselves, None for null."""
        if (self.codes >= 0).all():
            return self.values[self.codes]
        values = self.values.astype(object)
        return np.append(values, [None])[self.codes]


class Timed(NamedTuple):
    """A column of times and what they are."""

    times: Array
    clock: Clock


# The columns of a table by name, all of one length.
Columns: TypeAlias = Mapping[str, Array | Coded | Timed]


class Tabular:
    """What can become a table: it says its columns, and `to_frame` does the rest."""

    def _columns(self) -> Columns:
        """Return the columns of the table by name."""
        raise NotImplementedError

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """Return a table.

        Parameters
        ----------
        kind
            ``"pandas"``, ``"polars"``, ``"arrow"``, or ``"text"`` for reading.
        """
        return to_frame(self._columns(), kind=kind)


def to_frame(columns: Columns, *, kind: str) -> Any:
    """Return columns as a pandas, polars or pyarrow table, or as text for reading."""
    from crowdgraph.io.columns import native_frame

    return native_frame(columns, kind=kind)
