"""Tables of answers as graphs, and arrays as tables by task, worker and label."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ColumnError, InputError, MissingValueError
from crowdgraph.io._columns import COUNTED, import_optional
from crowdgraph.messages import quote, with_article

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("task", "worker", "label")


class MissingColumnError(ColumnError, KeyError):
    """A column is missing: a `KeyError`, as in crowd-kit."""


class Answers:
    """A table of answers as a graph, and the way back from arrays to tables by task, worker and label."""

    def __init__(self, data: Any, true_labels: Any, columns: Sequence[str] = ROLES) -> None:
        self._pandas = import_optional("pandas")
        self._data = checked_answers(data, columns)
        self.graph = None if self._data.empty else CrowdGraph.from_responses(self._data)
        if self.graph is not None and true_labels is not None:
            gold = known_labels(true_labels)
            unseen = [name for name in gold.unique().tolist() if name not in self.graph.labels]
            self.graph = self.graph.with_gold(gold.to_dict(), classes=[*self.graph.labels, *unseen])

    @property
    def correct(self) -> Array:
        """Which labels are right for which classes, of shape (J, L)."""
        if self.graph is None:
            return np.ones((1, 1), dtype=bool)
        return np.array([[name == label for label in self.graph.labels] for name in self.graph.classes])

    def by_task(self, probs: Array) -> pd.DataFrame:
        """Return values of shape (N, J) as a table with a row for each task."""
        if self.graph is None:
            return self._pandas.DataFrame()
        return self._pandas.DataFrame(
            probs, index=self._index(self.graph.items.ids, "task"), columns=self._labels(self.graph.classes)
        )

    def by_class(self, values: Array) -> pd.Series[float]:
        """Return values of shape (J,) as a series named ``prior``."""
        if self.graph is None:
            return self._pandas.Series(dtype=float, name="prior")
        return self._pandas.Series(values, index=self._labels(self.graph.classes), name="prior")

    def by_worker(self, values: Array) -> pd.Series[float]:
        """Return values of shape (K,) as a series named ``skill``."""
        if self.graph is None:
            return self._pandas.Series(dtype=float, name="skill")
        return self._pandas.Series(values, index=self._index(self.graph.volunteers.ids, "worker"), name="skill")

    def by_worker_and_label(self, confusion: Array) -> pd.DataFrame:
        """Return confusion, (K, J, L), as crowd-kit has it: (worker, label) in rows, true labels in columns."""
        if self.graph is None:
            return self._pandas.DataFrame()
        workers, labels = self._index(self.graph.volunteers.ids, "worker"), self._labels(self.graph.labels)
        values = confusion.swapaxes(1, 2).reshape(len(workers) * len(labels), -1)
        index = self._pandas.MultiIndex.from_product([workers, labels])
        return self._pandas.DataFrame(values, index=index, columns=self._labels(self.graph.classes).rename(None))

    def known_errors(self, table: Any, graph: CrowdGraph) -> Array:
        """Return a table like ``errors_`` as an array of shape (K, J, L); NaN for workers and labels that it lacks."""
        pandas = self._pandas
        lacking = (
            [] if not isinstance(table, pandas.DataFrame) else [c for c in graph.classes if c not in table.columns]
        )
        if not isinstance(table, pandas.DataFrame) or list(table.index.names) != ["worker", "label"] or lacking:
            raise InputError(
                "initial_error= takes a table like errors_: its index is (worker, label), and it has a column for each "
                f"of {quote(graph.classes)}; got "
                + (f"a table without {quote(lacking)}." if lacking else f"{with_article(type(table))}, or other names.")
            )
        index = pandas.MultiIndex.from_product([graph.volunteers.ids.tolist(), list(graph.labels)])
        values = table[list(graph.classes)].reindex(index).to_numpy(dtype=float)
        if (values < 0).any() or np.isinf(values).any():
            raise InputError("initial_error= must hold finite numbers of at least 0; correct the table.")
        known: Array = values.reshape(len(graph.volunteers), len(graph.labels), -1).swapaxes(1, 2)
        return known

    def _labels(self, names: tuple[Any, ...]) -> pd.Index:
        return self._index(names, "label")

    def _index(self, values: Any, column: str) -> pd.Index:
        """Return values as an index of the type of a column; of Python's type if a known label does not fit it."""
        values = list(values)
        with suppress(TypeError, ValueError):
            index = self._pandas.Index(values, dtype=self._data[column].dtype, name=column)
            if not index.hasnans:
                return index
        return self._pandas.Index(values, name=column)


def checked_answers(data: Any, columns: Sequence[str] = ROLES) -> pd.DataFrame:
    """Return the columns of a table that an aggregator reads; raise unless they are there and without null."""
    pandas = import_optional("pandas")
    if not isinstance(data, pandas.DataFrame):
        raise InputError(
            f"An aggregator takes a pandas table with the columns {quote(ROLES)}; got {with_article(type(data))}.",
            hint="For other tables use cg.CrowdGraph.from_responses.",
        )
    lacking = [name for name in ROLES if name not in data.columns]
    if lacking:
        raise MissingColumnError(
            f"The table has no column {lacking[0]!r}; it has {quote(data.columns.tolist(), most=12)}, and needs "
            f"{quote(ROLES)}.",
            hint="Rename its columns with data.rename(columns={...}).",
        )
    data = data[[name for name in columns if name in data.columns]]
    null_rows = np.flatnonzero(data.isna().to_numpy().any(axis=1))
    if len(null_rows):
        raise MissingValueError(
            f"{len(null_rows):,} rows lack a task, worker, label or time (rows {quote(null_rows.tolist())}{COUNTED}).",
            hint="Leave them out with data.dropna(subset=['task', 'worker', 'label']).",
        )
    return data


def known_labels(true_labels: Any, *, several: bool = False) -> pd.Series[Any]:
    """Return known labels; raise unless they are a series with one for each task, or `several`."""
    check_by_id("true_labels", true_labels, of="task", several=several)
    return true_labels.dropna()


def check_by_id(name: str, series: Any, *, of: str, several: bool = False) -> None:
    """Raise unless an argument is a series with an entry for each task, or worker."""
    if not isinstance(series, import_optional("pandas").Series):
        raise InputError(f"{name}= takes a pandas series by {of}; got {with_article(type(series))}.")
    repeated = series.index[series.index.duplicated()]
    if len(repeated) and not several:
        raise InputError(f"{name}= has several entries for the {of} {repeated[0]!r}; give one for each.")
