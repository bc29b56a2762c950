"""Small changes to valid files: each takes something valid, and returns it as it may be after an accident or an attack.

Those that know how a file is built change a field, a node, an element or a member, so that what is around it stays
valid and readers come far; `damaged` knows nothing, and changes bytes.
"""

import base64
import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Choice = TypeVar("Choice")

# What readers may take for something else than text, and what they may not expect.
TOKENS = (
    *("", " ", "-", "nan", "NULL", "None", "inf", "-inf", "true", "False", "0x10", "1_000", "+1", "-0", "1e5"),
    *("1e309", "1e-400", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400),
    *("1677-09-21T00:12:43", "2262-04-11T23:47:17", "9999-12-31T23:59:59", "0001-01-01", "0000-00-00", "10000-01-01"),
    *("-0001-01-01T00:00:00", "2026-02-30", "2026-03-01T25:00:00", "2026-03-01T12:00:00+99:99", "12:00"),
    *("2026-03-01T12:00:60Z", "2026-03-01T12:00:00.123456789Z", "2026-03-01 12:00:00 UTC"),
    *("=cmd|' /C calc'!A0", "../../etc/passwd", "\x1b]0;title\x07", "\u202e", "\x00", "\x1a", "\u2028", "\x85", "😀"),
    *("volunteer", "item", "label", "time", "worker", "task", "sep=;", "{", "[[[[", "null", "{}", "\\u0000", "\\"),
    *("volunteer:volunteer-1", "item:item-1", "http://www.example.org/", "&amp;", "&undefined;", "]]>", "x" * 5_000),
)
BYTES = tuple(
    [token.encode() for token in TOKENS]
    + [b"\xff\xfe", b"\xef\xbb\xbf", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\r", b"\r\n", b"\n", b'"', b"'"]
    + [b",", b";", b"\t", b"|", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\x93NUMPY", b"\x0c", b"\x0b"]
)
# Of which kinds the values of saved graphs are, and what is none of them.
JSON_VALUES = (
    *(None, True, False, 0, -1, 1, 2, -0.5, 1e308, 10**30, 500_000_000, "", "x", "order", "number", "filtered"),
    *([], {}, [[]], {"tuple": []}, {"list": [1, 2]}, {"ids": "volunteers"}, {"ids": "items"}, {"ids": "nobody"}),
    *({"array": "arrays/0.npy"}, {"array": "manifest.json"}, {"array": "../../etc/passwd"}, {"objects": [1, "a"]}),
    *({"float": "nan"}, {"float": "inf"}, {"float": "0x1p+9999"}, {"float": "0x1.8p+1"}, {"decimal": "1e999999999"}),
    *({"datetime64": [2**63 - 1, "Y"]}, {"timedelta": [10**9, 0, 0]}, {"datetime": ["2020-01-01", 0, "Not/AZone"]}),
    *({"datetime": ["2020-01-01", 0, "../../etc/passwd"]}, {"bytes": "zz"}, {"dict": [[{"list": []}, 1]]}),
    *({"result": "Clock", "fields": {"kind": "number", "zone": None}}, {"result": "ModelFit", "fields": {}}),
    {"csr": {"data": {"list": [1]}, "indices": {"list": [10**9]}, "indptr": {"list": [0, 1]}}, "shape": [1, 1]},
    {"frozenset": [{"list": []}]},
)
NUMBERS = (0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 500_000_000, 2**62, -(2**63))
FRACTIONS = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1e308, float("nan"), float("inf"), float("-inf"))
TYPES = ("int8", "uint8", "int32", "int64", "uint64", "float32", "float64", "bool", "U3", "S3", "M8[ns]", "complex64")
# Of how many changes an input consists.
N_CHANGES = (1, 1, 1, 2, 3, 6)
TAG = re.compile(r"(<[^>]*>)")
ATTRIBUTE = re.compile(r'"[^"]*"')
BASE64 = re.compile(r"[A-Za-z0-9+/]{120,}={0,2}")
SETTINGS = re.compile(r"\{.*\}")


def pick(rng: np.random.Generator, choices: Sequence[Choice]) -> Choice:
    """Return one of several."""
    return choices[int(rng.integers(len(choices)))]


# Bytes


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes of which some were changed, lost, repeated or added."""
    for _ in range(pick(rng, N_CHANGES)):
        begin = int(rng.integers(len(content) + 1))
        end = min(begin + int(rng.integers(1, 40)), len(content))
        before, part, after = content[:begin], content[begin:end], content[end:]
        part = pick(
            rng,
            (
                lambda part: bytes([part[0] ^ 1 << int(rng.integers(8))]) + part[1:] if part else part,
                lambda part: rng.bytes(len(part)),
                lambda part: b"",
                lambda part: pick(rng, BYTES),
                lambda part: pick(rng, BYTES) + part,
                lambda part: part * int(rng.integers(2, 5)),
            ),
        )(part)
        content = before + part + (b"" if rng.random() < 0.05 else after)
    return content


# Tables


def changed_table(text: str, rng: np.random.Generator, *, delimiter: str = ",") -> bytes:
    """Return a table as text with other fields, rows, columns, line ends or encodings."""
    if rng.random() < 0.3:
        return damaged(text.encode(), rng)
    rows = [line.split(delimiter) for line in text.splitlines()]
    for _ in range(pick(rng, N_CHANGES)):
        pick(rng, (_change_field, _change_field, _change_field, _change_row, _change_column))(rows, rng)
    end = pick(rng, ("\n", "\n", "\n", "\r\n", "\r"))
    changed = end.join(delimiter.join(row) for row in rows) + pick(rng, (end, ""))
    encoding = pick(rng, ("utf-8",) * 12 + ("utf-8-sig", "utf-16", "utf-16-le", "latin-1"))
    return changed.encode(encoding, errors="replace")


def _change_field(rows: list[list[str]], rng: np.random.Generator) -> None:
    if rows and (row := pick(rng, rows)):
        field = pick(rng, TOKENS)
        row[int(rng.integers(len(row)))] = f'"{field}"' if rng.random() < 0.2 else field


def _change_row(rows: list[list[str]], rng: np.random.Generator) -> None:
    if rows:
        row = rows.pop(int(rng.integers(len(rows))))
        copies = pick(rng, ([], [row, row], [row[:-1]], [[*row, pick(rng, TOKENS)]], [row[::-1]]))
        at = int(rng.integers(len(rows) + 1))
        rows[at:at] = map(list, copies)


def _change_column(rows: list[list[str]], rng: np.random.Generator) -> None:
    if rows and rows[0]:
        at, token = int(rng.integers(len(rows[0]))), pick(rng, TOKENS)
        drop, renamed = rng.random() < 0.3, rng.random() < 0.3
        for number, row in enumerate(rows):
            if at < len(row):
                row[at : at + 1] = [] if drop else [row[at], row[at]] if renamed else [token if number else row[at]]


# JSON


def changed_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Return JSON in which nodes are missing, doubled or something else."""
    if rng.random() < 0.1:
        return damaged(content, rng)
    try:
        tree = [json.loads(content)]
    except (ValueError, RecursionError):
        return damaged(content, rng)
    for _ in range(pick(rng, N_CHANGES)):
        nodes = list(_nodes(tree))
        container, key = pick(rng, nodes)
        container[key] = _changed_value(container[key], rng)
        if len(nodes) > 1 and rng.random() < 0.1:
            del container[key]
            tree = tree or [None]
    return json.dumps(tree[0]).encode()


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all places of values: a container, and the key or position in it."""
    for key in range(len(tree)) if isinstance(tree, list) else tree:
        yield tree, key
        if isinstance(tree[key], list | dict):
            yield from _nodes(tree[key])


def _changed_value(value: Any, rng: np.random.Generator) -> Any:
    if rng.random() < 0.5:
        return json.loads(json.dumps(pick(rng, JSON_VALUES)))
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return pick(rng, (value + 1, value - 1, -value, value * 10**6, float(value), *NUMBERS))
    if isinstance(value, str):
        return pick(rng, (value + "x", value[:-1], value.upper(), *TOKENS))
    if isinstance(value, list):
        return pick(rng, (value[::-1], value[1:], value + value, value[:1] * len(value)))
    if isinstance(value, float):
        return pick(rng, (*FRACTIONS, int(value) if np.isfinite(value) else 0))
    return {**value, pick(rng, ("result", "csr", "array", "ids", "unknown")): pick(rng, JSON_VALUES)}


# Arrays and tables in columns


def changed_array(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a NumPy file with other values, another shape or type, or another header."""
    if rng.random() < 0.15:
        return damaged(content[:128], rng) + content[128:]
    array = np.lib.format.read_array(io.BytesIO(content)).copy()
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda array: _with_element(array, rng),
        lambda array: _with_element(array, rng),
        lambda array: _with_element(array, rng),
        lambda array: array[::-1],
        lambda array: array[:-1],
        lambda array: np.concatenate([array, array]),
        lambda array: array.reshape(-1),
        lambda array: array[None],
        lambda array: np.asarray(array).astype(pick(rng, TYPES)),
        np.zeros_like,
        np.asfortranarray,
    )
    changed = array
    with np.errstate(all="ignore"):
        for _ in range(pick(rng, N_CHANGES)):
            changed = pick(rng, changes)(changed) if changed.ndim else changed
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(changed), allow_pickle=False)
    return file.getvalue()


def _with_element(array: Any, rng: np.random.Generator) -> Any:
    if array.size:
        array = array.copy()
        value = pick(rng, FRACTIONS) if array.dtype.kind in "fc" else pick(rng, NUMBERS)
        if array.dtype.kind in "iub":
            value = np.array(value).astype(array.dtype)[()]
        array.reshape(-1)[int(rng.integers(array.size))] = value
    return array


def changed_parquet(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a Parquet file with other columns, or with damage where its structure is described."""
    if rng.random() < 0.4:
        at = max(len(content) - 600, 0) if rng.random() < 0.7 else 0
        return content[:at] + damaged(content[at:], rng)
    table = pq.read_table(io.BytesIO(content))
    for _ in range(pick(rng, N_CHANGES)):
        table = _changed_columns(table, rng)
    file = io.BytesIO()
    pq.write_table(table, file, compression=pick(rng, ("none", "snappy", "zstd", "gzip")))
    return file.getvalue()


def _changed_columns(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    if not table.num_columns:
        return table
    at = int(rng.integers(table.num_columns))
    name = table.column_names[at]
    case = int(rng.integers(10))
    if case == 0:
        return table.remove_column(at)
    if case == 1:
        return table.append_column(pick(rng, ("time", "label", "extra", name)), table[at])
    if case == 2:
        return table.rename_columns([pick(rng, TOKENS) if one == name else one for one in table.column_names])
    if case == 3:
        return table.slice(0, int(rng.integers(table.num_rows + 1)))
    return table.set_column(at, name, odd_column(table.num_rows, rng))


def odd_column(n_rows: int, rng: np.random.Generator) -> pa.Array:
    """Return a column of any type that Parquet can hold."""
    kind = pick(
        rng,
        (
            *(
                pa.int8(),
                pa.int32(),
                pa.uint64(),
                pa.float32(),
                pa.float64(),
                pa.bool_(),
                pa.string(),
                pa.large_string(),
            ),
            *(pa.binary(), pa.date32(), pa.time64("us"), pa.duration("ms"), pa.null(), pa.decimal128(5, 2)),
            *(pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "+05:30"), pa.timestamp("ms", "Not/A")),
            *(pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.dictionary(pa.int32(), pa.string())),
        ),
    )
    values = {
        pa.types.is_integer: (0, 1, 2, 100),
        pa.types.is_floating: FRACTIONS,
        pa.types.is_boolean: (True, False),
        pa.types.is_binary: (b"x", b"\xff"),
        pa.types.is_date: (0, 2**31 - 1, -(2**31)),
        pa.types.is_temporal: (0, 1, 10**6),
        pa.types.is_decimal: (1, 2),
        pa.types.is_list: ([1], []),
        pa.types.is_struct: ({"a": 1},),
    }
    options = next((options for is_kind, options in values.items() if is_kind(kind)), ("anna", "x", *TOKENS))
    column = [None if kind == pa.null() or rng.random() < 0.05 else pick(rng, options) for _ in range(n_rows)]
    return pa.array(column, kind)


# Files of several parts


def changed_part(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """Return a part of a graph, which is changed as its name suggests."""
    changes = {"json": changed_json, "npy": changed_array, "parquet": changed_parquet, "zip": changed_archive}
    try:
        return changes.get(name.rpartition(".")[2], damaged)(content, rng)
    except Exception:
        return damaged(content, rng)


def changed_parts(parts: dict[str, bytes], rng: np.random.Generator) -> dict[str, bytes]:
    """Return files or members of which one or two are changed, missing or others."""
    parts = dict(parts)
    for _ in range(pick(rng, (1, 1, 1, 2))):
        names = sorted(parts)
        name = "manifest.json" if "manifest.json" in parts and rng.random() < 0.4 else pick(rng, names)
        case = rng.random()
        if case < 0.9:
            parts[name] = changed_part(name, parts[name], rng)
        elif case < 0.95:
            parts[name] = parts[pick(rng, names)]
        elif len(parts) > 1:
            del parts[name]
    return parts


def changed_archive(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a zip file with a changed member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = changed_parts({name: archive.read(name) for name in archive.namelist()}, rng)
    if rng.random() < 0.02:
        members["../../../outside"] = b"x"
    return archive_of(members, pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def archive_of(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


# XML


def changed_xml(text: str, rng: np.random.Generator) -> bytes:
    """Return XML in which elements, attributes or texts are missing, doubled or others."""
    case = rng.random()
    if case < 0.15:
        return damaged(text.encode(), rng)
    if case < 0.4 and (packed := BASE64.search(text)):
        archive = changed_archive(base64.b64decode(packed[0]), rng)
        return (text[: packed.start()] + base64.b64encode(archive).decode() + text[packed.end() :]).encode()
    if case < 0.55 and (settings := SETTINGS.search(text)):
        changed = changed_json(html.unescape(settings[0]).encode(), rng).decode(errors="replace")
        return (text[: settings.start()] + html.escape(changed) + text[settings.end() :]).encode()
    parts = TAG.split(text)
    for _ in range(pick(rng, N_CHANGES)):
        _change_element(parts, rng)
    return "".join(parts).encode()


def _change_element(parts: list[str], rng: np.random.Generator) -> None:
    # Parts alternate between texts and tags.
    at = 2 * int(rng.integers(len(parts) // 2)) + 1
    attributes = list(ATTRIBUTE.finditer(parts[at]))
    case = int(rng.integers(6))
    if case <= 2 and attributes:
        value = pick(rng, attributes)
        parts[at] = parts[at][: value.start()] + f'"{html.escape(pick(rng, TOKENS))}"' + parts[at][value.end() :]
    elif case == 3:
        parts[at + 1] = html.escape(pick(rng, TOKENS))
    elif case == 4:
        parts[at] = pick(rng, parts[1::2])
    else:
        parts[at : at + 2] = [] if rng.random() < 0.5 else parts[at : at + 2] * 2
