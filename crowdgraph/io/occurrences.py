"""Results as tables that biodiversity archives take (Camtrap DP, Darwin Core), and as JSON lines."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from crowdgraph.core._arrays import is_null
from crowdgraph.core.fit import ModelFit
from crowdgraph.errors import ColumnError, DroppedRowsWarning, IdError, InputError, ParameterError, TimeError, warn
from crowdgraph.io._cells import write_csv
from crowdgraph.io._columns import frame_columns, python_values
from crowdgraph.io._files import atomic_file
from crowdgraph.messages import quote

__all__ = ["write_camtrap_dp", "write_darwin_core", "write_json_lines"]

# https://camtrap-dp.tdwg.org/data/#observations, version 1.0
OBSERVATION_TYPES = ("animal", "human", "vehicle", "blank", "unknown", "unclassified")
ZONED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)")
# Numbers are written with this many digits.
DIGITS = 6


def write_camtrap_dp(
    fit: ModelFit,
    path: str | PathLike[str],
    *,
    items: Any,
    types: Mapping[Hashable, str] | None = None,
    names: Mapping[Hashable, str] | None = None,
) -> None:
    """Write the table of observations of a Camtrap DP; see `ModelFit.to_camtrap_dp`."""
    types, names = types or {}, names or {}
    _check_classes(fit, types=types, names=names)
    wrong = [kind for kind in types.values() if kind not in OBSERVATION_TYPES]
    if wrong:
        raise ParameterError(
            f"types= names {quote(wrong)}; an observation is one of {quote(OBSERVATION_TYPES, most=6)}."
        )
    columns = _aligned(fit, items, required=("deploymentID", "eventStart", "eventEnd"))
    best, probabilities = _best(fit)
    kinds = [types.get(name, "animal") for name in best]
    n_rows = len(best)
    table = {
        "observationID": list(map(str, fit.items.tolist())),
        "deploymentID": columns["deploymentID"],
        "mediaID": columns.get("mediaID", [None] * n_rows),
        "eventID": columns.get("eventID", [None] * n_rows),
        "eventStart": _zoned(fit, columns, "eventStart"),
        "eventEnd": _zoned(fit, columns, "eventEnd"),
        "observationLevel": [
            "media" if not is_null(one) else "event" for one in columns.get("mediaID", [None] * n_rows)
        ],
        "observationType": kinds,
        "scientificName": [
            names.get(name, str(name)) if kind == "animal" else None for name, kind in zip(best, kinds, strict=True)
        ],
        "classificationMethod": ["human"] * n_rows,
        "classifiedBy": _classifiers(fit),
        "classificationProbability": probabilities,
    }
    _write(table, path)


def write_darwin_core(
    fit: ModelFit,
    path: str | PathLike[str],
    *,
    items: Any,
    names: Mapping[Hashable, str | None] | None = None,
    basis: str = "HumanObservation",
) -> None:
    """Write a Darwin Core table of occurrences; see `ModelFit.to_darwin_core`."""
    names = names or {}
    _check_classes(fit, names=names)
    columns = _aligned(fit, items, required=("eventDate",))
    best, probabilities = _best(fit)
    present = [row for row, name in enumerate(best) if names.get(name, str(name)) is not None]
    if len(present) < len(best):
        absent = [str(name) for name in fit.classes if name in names and names[name] is None]
        warn(
            f"{len(best) - len(present):,} of {len(best):,} items are left out: they are {quote(absent)}, which names= "
            "says is no occurrence.",
            DroppedRowsWarning,
        )
    table: dict[str, list[Any]] = {
        "occurrenceID": list(map(str, fit.items.tolist())),
        "basisOfRecord": [basis] * len(best),
        "occurrenceStatus": ["present"] * len(best),
        "scientificName": [names.get(name, str(name)) for name in best],
        "identifiedBy": _classifiers(fit),
        "identificationRemarks": [f"probability {one:.3f}" for one in probabilities],
        # Darwin Core has no term for the probability (https://github.com/tdwg/dwc/issues/762).
        "dynamicProperties": [json.dumps({"classificationProbability": one}) for one in probabilities],
    }
    clash = [name for name in columns if name in table]
    if clash:
        raise ColumnError(f"items= has the column {clash[0]!r}, which is written from the fit; rename or drop it.")
    table |= {name: list(map(_text, values)) for name, values in columns.items()}
    _write({name: [values[row] for row in present] for name, values in table.items()}, path)


def write_json_lines(fit: ModelFit, path: str | PathLike[str]) -> None:
    """Write a line of JSON for each item; see `ModelFit.to_json_lines`."""
    odd = [item for item in [*fit.items.tolist(), *fit.classes] if not isinstance(item, str | int | float)]
    if odd:
        raise IdError(
            f"JSON has no {type(odd[0]).__name__}, such as {odd[0]!r}; use ids and classes of text or numbers."
        )
    keys = list(map(str, fit.classes))
    best, probabilities = _best(fit)
    with atomic_file(path) as part, part.open("w", encoding="utf-8") as file:
        for item, name, probability, row in zip(fit.items.tolist(), best, probabilities, fit.item_probs, strict=True):
            every = {key: round(float(one), DIGITS) for key, one in zip(keys, row, strict=True)}
            record = {"item": item, "class": name, "probability": probability, "probabilities": every}
            file.write(json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n")


def _best(fit: ModelFit) -> tuple[list[Hashable], list[float]]:
    """Return the most probable class of each item, and its probability."""
    codes = fit.item_probs.argmax(axis=1)
    probabilities = fit.item_probs.max(axis=1).round(DIGITS)
    return [fit.classes[code] for code in codes], probabilities.tolist()


def _classifiers(fit: ModelFit) -> list[str]:
    """Return in words who classified each item."""
    by = f"combined by crowdgraph's {fit.model}"
    if fit.source is None:
        return [f"volunteers, {by}"] * len(fit.items)
    return [f"{count:,} answers of volunteers, {by}" for count in fit.source.graph.answers.n_by_item.tolist()]


def _check_classes(fit: ModelFit, **mappings: Mapping[Hashable, Any]) -> None:
    """Raise if a mapping names what is not a class."""
    for name, mapping in mappings.items():
        unknown = [one for one in mapping if one not in fit.classes]
        if unknown:
            raise ParameterError(f"{name}= names {quote(unknown)}; the classes are {quote(fit.classes, most=20)}.")


def _aligned(fit: ModelFit, items: Any, *, required: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of a table of items in the order of a fit's items; raise unless it has them all."""
    columns = frame_columns(items)
    lacking = [name for name in ("item", *required) if name not in columns]
    if lacking:
        raise ColumnError(
            f"items= has no column {quote(lacking)}; it has {quote(columns, most=12)}, and needs "
            f"{quote(['item', *required])}."
        )
    values = {name: column if isinstance(column, list) else python_values(column) for name, column in columns.items()}
    ids = values.pop("item")
    rows = {item: row for row, item in enumerate(ids)}
    if len(rows) < len(ids):
        repeated = next(item for row, item in enumerate(ids) if rows[item] != row)
        raise IdError(f"items= has several rows for the item {repeated!r}; give one for each.")
    absent = [item for item in fit.items.tolist() if item not in rows]
    if absent:
        raise IdError(f"items= lacks {len(absent):,} items of the fit: {quote(absent)}; it has {quote(ids)}.")
    order = [rows[item] for item in fit.items.tolist()]
    for name in required:
        empty = [item for item, row in zip(fit.items.tolist(), order, strict=True) if is_null(values[name][row])]
        if empty:
            raise InputError(f"items= has no {name} for {quote(empty)}; complete the table.")
    return {name: [column[row] for row in order] for name, column in values.items()}


def _zoned(fit: ModelFit, columns: Mapping[str, list[Any]], name: str) -> list[str]:
    """Return times as text with a zone."""
    texts = list(map(_text, columns[name]))
    for item, text in zip(fit.items.tolist(), texts, strict=True):
        if not ZONED.fullmatch(str(text)):
            raise TimeError(
                f"items= has the {name} {text!r} for {item!r}; expected a time with its zone, such as "
                "2026-03-21T05:00:00Z."
            )
    return list(map(str, texts))


def _text(value: Any) -> str | None:
    """Return a value as text, times as ISO 8601; null as None."""
    if is_null(value):
        return None
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="seconds")
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _write(table: Mapping[str, list[Any]], path: str | PathLike[str]) -> None:
    """Write columns as CSV; numbers stay numbers, everything else is text."""
    columns = {
        name: pa.array(values, pa.float64()) if name == "classificationProbability" else _text_column(name, values)
        for name, values in table.items()
    }
    with atomic_file(path) as part:
        write_csv(pa.table(columns), fspath(part))


def _text_column(name: str, values: list[Any]) -> pa.Array:
    try:
        return pa.array(list(map(_text, values)), pa.string())
    except (pa.ArrowException, UnicodeError) as error:
        raise InputError(f"The column {name!r} cannot be written as text: {error}.") from error
