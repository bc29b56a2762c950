"""Read soft answers: a confidence beside each label, or probabilities of the labels, plain or as logarithms."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdgraph.core._arrays import Array, is_null, lock
from crowdgraph.core.soft_answers import SUM_TOLERANCE, check_label_probs, is_label_column, label_column
from crowdgraph.errors import ColumnError, LabelError, ParameterError
from crowdgraph.io._columns import COUNTED, Column, python_values
from crowdgraph.io._ids import encode_labels, natural_order
from crowdgraph.messages import Hint, argument, quote

PREFIX = label_column("")[:-1]


@dataclass(frozen=True)
class SoftColumns:
    """Which columns of a table say how probable labels are.

    Attributes
    ----------
    option
        The option that names them: ``"probability"`` or ``"log_probability"``; empty where their names told.
    single
        The column with a confidence, or with all probabilities of an answer; None if each label has its own.
    by_label
        The column of each label.
    """

    option: str
    single: str | None
    by_label: Mapping[Hashable, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.by_label.values(), *(() if self.single is None else (self.single,)))

    def read(
        self, columns: Mapping[str, Column], label: str | None, labels: tuple[Hashable, ...] | None
    ) -> tuple[Array, tuple[Hashable, ...], dict[str, Array]]:
        """Return the code of each row's label, -1 for null, the labels, and the attributes that hold the probabilities.

        Parameters
        ----------
        columns
            The columns of the table.
        label
            The column of labels, if there is one.
        labels
            What volunteers can say; if left out, the labels that occur or have probabilities, sorted.
        """
        said = None if label is None else columns[label]
        names = () if said is None else encode_labels(said, labels=labels)[1]
        if self.single is None:
            return self._read_by_label(columns, said, names, labels)
        values = _numbers(columns[self.single])
        if values is not None:
            return self._read_confidence(self._as_probs(values), said, names)
        rows = _distributions(columns[self.single], self.single)
        keys = dict.fromkeys(key for row in rows if row is not None for key in row)
        names, of_key = _all_labels(keys, names, labels)
        probs = np.full((len(rows), len(names)), np.nan)
        for number, row in enumerate(rows):
            if row is not None:
                probs[number] = 0.0
                for key, value in row.items():
                    probs[number, of_key[key]] = float(self._as_probs(np.array(value)))
        return self._finish(probs, said, names)

    def _read_by_label(
        self,
        columns: Mapping[str, Column],
        said: Column | None,
        names: tuple[Hashable, ...],
        labels: tuple[Hashable, ...] | None,
    ) -> tuple[Array, tuple[Hashable, ...], dict[str, Array]]:
        names, of_key = _all_labels(self.by_label, names, labels)
        n_rows = len(columns[self.names[0]])
        probs = np.full((n_rows, len(names)), np.nan)
        for key, name in self.by_label.items():
            values = _numbers(columns[name])
            if values is None:
                raise ColumnError(f"The column {name!r} must hold numbers, the probabilities of the label {key!r}.")
            probs[:, of_key[key]] = self._as_probs(values)
        is_soft = ~np.isnan(probs).all(axis=1)
        if not self.option:
            # Tables of graphs to which responses were added have nulls for labels that had no column.
            probs[is_soft] = np.nan_to_num(probs[is_soft], nan=0.0)
        others = [code for code in range(len(names)) if code not in of_key.values()]
        if others:
            rest = 1 - probs[is_soft].sum(axis=1, where=~np.isin(np.arange(len(names)), others))
            probs[np.ix_(is_soft, others)] = (np.maximum(rest, 0.0) / len(others))[:, None]
        return self._finish(probs, said, names)

    def _read_confidence(
        self, values: Array, said: Column | None, names: tuple[Hashable, ...]
    ) -> tuple[Array, tuple[Hashable, ...], dict[str, Array]]:
        if said is None:
            raise ColumnError(
                f"The column {self.single!r} says how sure answers are, but there is no column of labels.",
                hint=Hint(
                    f"Name that with label='...', or say whose probability it is: {self.option}={{label: column}}.",
                    cli="Name that with --label, or say whose probability it is: --probability LABEL=COLUMN.",
                ),
            )
        codes: NDArray[np.int32] = encode_labels(said, labels=names)[0].astype(np.int32)
        is_soft = ~np.isnan(values) & (codes >= 0)
        low = is_soft & (values < (1 - SUM_TOLERANCE) / len(names))
        if low.any():
            row = int(np.argmax(low))
            raise ColumnError(
                f"A confidence belongs to the label beside it, so with {len(names)} labels it is at least "
                f"{1 / len(names):.3g}; {np.count_nonzero(low):,} are lower, such as {values[row]:g} in row {row}"
                f"{COUNTED}.",
                hint=Hint(
                    f"If the column holds the probability of one label, say which: {self.option}={{label: "
                    f"{self.single!r}}}.",
                    cli=f"If the column holds the probability of one label, say which: --probability "
                    f"LABEL={self.single}.",
                ),
            )
        probs = np.full((len(codes), len(names)), np.nan)
        rows = np.flatnonzero(is_soft)
        probs[rows] = ((1 - values[rows]) / max(len(names) - 1, 1))[:, None]
        probs[rows, codes[rows]] = values[rows]
        return self._finish(probs, said, names)

    def _as_probs(self, values: Array) -> Array:
        if self.option != "log_probability":
            return values
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(values))

    def _finish(
        self, probs: Array, said: Column | None, names: tuple[Hashable, ...]
    ) -> tuple[Array, tuple[Hashable, ...], dict[str, Array]]:
        """Check the probabilities, (R, L), and add the labels of answers that have none; NaN rows are certain."""
        rows = np.flatnonzero(~np.isnan(probs).all(axis=1))
        checked = check_label_probs(probs[rows], rows, counted=COUNTED)
        codes = np.full(len(probs), -1, dtype=np.int16 if len(names) < 2**15 else np.int32)
        if said is not None:
            codes = encode_labels(said, labels=names)[0].copy()
        most = checked.argmax(axis=1)
        own: NDArray[np.int32] = codes[rows].astype(np.int32)
        unlike = (own >= 0) & (checked[np.arange(len(rows)), own] < checked.max(axis=1) - SUM_TOLERANCE)
        if unlike.any():
            first = int(np.argmax(unlike))
            raise ColumnError(
                f"{np.count_nonzero(unlike):,} labels are not the most probable ones of their answers, such as "
                f"{names[own[first]]!r} in row {rows[first]}{COUNTED}, where {names[most[first]]!r} is more probable.",
                hint=Hint(
                    "Correct the table, or leave the column of labels out: they follow from the probabilities.",
                    cli="Correct the table, or leave the column of labels out of it: they follow from the "
                    "probabilities.",
                ),
            )
        codes[rows] = np.where(own >= 0, own, most)
        return codes, names, {label_column(name): lock(probs[:, code].copy()) for code, name in enumerate(names)}


def soft_columns(columns: Iterable[str], *, probability: Any, log_probability: Any) -> SoftColumns | None:
    """Return which columns say how probable labels are; None if none does."""
    available = list(columns)
    if probability is not None and log_probability is not None:
        raise ParameterError(
            "probability= and log_probability= are both given; name the columns of one of both.",
        )
    option = "probability" if log_probability is None else "log_probability"
    named = probability if log_probability is None else log_probability
    if named is None:
        own: dict[Hashable, str] = {name[len(PREFIX) : -1]: name for name in available if is_label_column(name)}
        return SoftColumns("", None, own) if own else None
    if isinstance(named, str):
        soft = SoftColumns(option, named, {})
    elif isinstance(named, Mapping):
        soft = SoftColumns(option, None, dict(named))
    elif isinstance(named, Sequence):
        soft = SoftColumns(
            option, None, {name[len(PREFIX) : -1] if is_label_column(name) else name: name for name in named}
        )
    else:
        raise ParameterError(
            f"{option}= takes the name of a column, a list of them, or a mapping from labels to them; got {named!r}."
        )
    if not soft.names or not all(isinstance(name, str) for name in soft.names):
        raise ParameterError(f"{option}= must name columns by text; got {named!r}.")
    absent = [name for name in soft.names if name not in available]
    if absent:
        raise ColumnError(
            f"There is no column {absent[0]!r}, which "
            + argument(option, absent[0])
            + f" names; the table has {quote(available, most=12)}."
        )
    return soft


def _numbers(column: Column) -> Array | None:
    """Return a column of numbers, NaN for null; None if it holds something else."""
    values = column if isinstance(column, list) else None
    if values is None:
        assert not isinstance(column, list)  # noqa: S101 - for mypy
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or _is_decimal(column.type)):
            return None
        values = column.to_pylist() if _is_decimal(column.type) else None
        if values is None:
            return np.array(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if not all(
        is_null(value) or isinstance(value, int | float | np.number) or hasattr(value, "as_tuple") for value in values
    ):
        return None
    return np.array([np.nan if is_null(value) else float(value) for value in values], dtype=np.float64)


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def _distributions(column: Column, name: str) -> list[dict[Any, float] | None]:
    """Return the probabilities of each row by label, from JSON objects or mappings; None for null."""
    values = column if isinstance(column, list) else python_values(column)
    return [_distribution(value, name, row) for row, value in enumerate(values)]


def _distribution(value: Any, name: str, row: int) -> dict[Any, float] | None:
    if value is None or (not isinstance(value, Mapping | list | str) and is_null(value)):
        return None
    parsed = value
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
    if isinstance(parsed, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in parsed):
        parsed = dict(parsed)  # Arrow's maps
    is_distribution = isinstance(parsed, Mapping) and all(
        number is None or (isinstance(number, int | float | np.number) and not isinstance(number, bool))
        for number in parsed.values()
    )
    if not is_distribution:
        raise ColumnError(
            f"Column {name!r} must hold a number or an object from labels to probabilities, such as "
            f'{{"yes": 0.9, "no": 0.1}}; row {row}{COUNTED} has {str(value)[:60]!r}.'
        )
    # Arrow's structs have all fields in each row.
    return {key: float(number) for key, number in parsed.items() if number is not None}


def _all_labels(
    keys: Iterable[Hashable], names: tuple[Hashable, ...], labels: tuple[Hashable, ...] | None
) -> tuple[tuple[Hashable, ...], dict[Hashable, int]]:
    """Return all labels, and the code of the label that each key stands for: the same one, or one with that text."""
    known: Callable[[Hashable], Hashable] = {str(name): name for name in (labels or names)}.get  # type: ignore[assignment]
    kinds = {type(name) for name in labels or names}
    label_of = {key: _typed(key, kinds) if (same := known(str(key))) is None else same for key in keys}
    if labels is not None and (unknown := [key for key in label_of.values() if key not in labels]):
        raise LabelError(
            f"There are probabilities of {quote(unknown)}, which are not among the labels {quote(labels)}.",
            hint=Hint("Add them to labels=[...], or leave these probabilities out.", cli="Name only those."),
        )
    every = labels if labels is not None else natural_order(dict.fromkeys([*names, *label_of.values()]))
    return every, {key: every.index(label) for key, label in label_of.items()}


def _typed(key: Hashable, kinds: set[type]) -> Hashable:
    """Return the number that a text spells, if the labels are numbers of one type; names of columns are text."""
    for kind in (int, float):
        if isinstance(key, str) and kinds == {kind}:
            try:
                return kind(key)
            except ValueError:
                return key
    return key
