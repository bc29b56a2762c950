"""Tables that are never in memory become the store that an in-memory graph would be saved as."""

import datetime as dt
import os
import shutil
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import tables

import crowdgraph as cg
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphError,
    DroppedRowsWarning,
    DuplicateError,
    GoldError,
    GoldWarning,
    IdError,
    InputError,
    LabelError,
    MissingValueError,
    ParameterError,
    StoreError,
    TimeError,
)
from crowdgraph.io import _column_files, _conversion_order, _conversion_plan, _conversion_rows, _row_streams
from crowdgraph.io._id_coders import IntegerCoder, TextCoder

SMALL = {
    "volunteer": ["anna", "bert", "anna", "carl", "bert"],
    "item": [7, 7, 3, 3, 3],
    "label": ["yes", "no", "no", "yes", "no"],
    "time": [5, 1, 3, 3, 2],
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let a few rows be many: batches, blocks and ranges of two or three."""
    monkeypatch.setattr(_row_streams, "BATCH_ROWS", 3)
    monkeypatch.setattr(_column_files, "BLOCK_ROWS", 2)
    monkeypatch.setattr(_conversion_plan, "BUCKET_ROWS", 2)
    monkeypatch.setattr("crowdgraph.io.columns.os.fsync", lambda _: None)


def write(folder, columns, name="responses.parquet"):
    path = folder / name
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, row_group_size=4)
    return path


def build(folder, columns=SMALL, **options):
    return cg.build_store(write(folder, columns), folder / "store", **options)


def outcome(function):
    """The result, or the type of the error, with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except CrowdGraphError as error:
            result = type(error)
    return result, sorted({str(warning.category) for warning in caught})


@st.composite
def cases(draw):
    """A table with gaps and repeats, and options."""
    columns = draw(tables(id_kinds=("int", "str")))
    n_rows = len(columns["label"])
    for name in draw(st.lists(st.sampled_from(sorted(columns)), max_size=2)):
        columns[name] = [None if draw(st.integers(0, 5)) == 0 else value for value in columns[name]]
    if draw(st.booleans()):
        columns = {name: [values[row // 2] for row in range(n_rows)] for name, values in columns.items()}
    options = {
        "duplicates": draw(st.sampled_from(["all", "first", "last", "error"])),
        "missing": draw(st.sampled_from(["error", "drop", "keep"])),
    }
    items = [name for name in dict.fromkeys(columns["item"]) if name is not None]
    labels = [name for name in dict.fromkeys(columns["label"]) if name is not None]
    if labels and draw(st.booleans()):
        options["gold"] = {"item": items, "label": [draw(st.sampled_from([*labels, None])) for _ in items]}
    return columns, options


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(cases())
def test_the_same_store_as_in_memory(tmp_path_factory, case):
    columns, options = case
    folder = tmp_path_factory.mktemp("build")
    path = write(folder, columns)
    expected, graph_warnings = outcome(lambda: cg.read_parquet(path, **options))
    store, store_warnings = outcome(lambda: cg.build_store(path, folder / "store", **options))
    if isinstance(expected, type):
        assert store is expected
        assert not list(folder.glob("*store*")) + list(folder.glob(".store*"))
        return
    assert store_warnings == graph_warnings
    expected.save(folder / "saved", format="columns")
    assert store.graph().equals(expected)
    assert store.fingerprint == cg.open_store(folder / "saved").fingerprint
    assert store.manifest["source"]["rows"] == store.n_responses + store.manifest["source"]["skipped"]
    assert len(columns["label"]) == store.manifest["source"]["rows"]
    shutil.rmtree(folder)


def test_options_columns_and_several_files(tmp_path, monkeypatch):
    """Files in order are one table; columns have other names, times are left out, some columns are not kept."""
    table = pa.table({**SMALL, "score": [1, 2, 3, 4, 5], "note": ["a", None, "b", "a", None]})
    table = table.rename_columns(["worker", "task", "label", "time", "score", "note"])
    (tmp_path / "parts").mkdir()
    paths = [write(tmp_path / "parts", part, f"{name}.parquet") for name, part in (("b", table[2:]), ("a", table[:2]))]
    expected = cg.read_parquet(paths[::-1], labels=["no", "yes", "maybe"], classes=["star", "galaxy"])
    options = {"labels": ["no", "yes", "maybe"], "classes": ["star", "galaxy"]}
    assert cg.build_store(tmp_path / "parts", tmp_path / "directory", **options).graph().equals(expected)
    store = cg.build_store(paths[::-1], tmp_path / "files", attributes=["score"], time=None)
    assert store.clock.kind == "order"
    assert list(store.graph().responses.attributes) == ["score"]
    assert store.graph().responses.attributes["score"].tolist() == [1, 2, 3, 4, 5]


def test_arrow_types(tmp_path):
    """Codes of text, views of text, numbers that pandas made floats, and attributes that are not plain numbers."""
    # Arrow writes views of text to Parquet from version 21 on.
    view = pa.string_view() if int(pa.__version__.split(".")[0]) >= 21 else pa.large_string()
    table = pa.table(
        {
            "volunteer": pa.array(["b", "a", "b", "c", "a"], view),
            "item": pa.array([1.0, None, 2.0, 1.0, 7.0]),
            "label": pa.array([1.0, 2.0, 2.5, 1.0, 1.0]),
            "time": pa.array(["2026-01-03", "2026-01-01", "2026-01-02", "2026-01-02", None]).dictionary_encode(),
            "day": pa.array([1, 2, 3, 1, 2], pa.date32()),
            "moment": pa.array([1, 2, 3, 1, None], pa.timestamp("us", "Europe/Amsterdam")),
            "small": pa.array([1, 2, 3, None, 1], pa.int8()),
            "is_certain": pa.array([True, True, False, None, True]),
            "word": pa.array(["u", "v", None, "u", "w"]).dictionary_encode(),
        }
    )
    path = write(tmp_path, table)
    with pytest.warns(DroppedRowsWarning):
        expected = cg.read_parquet(path, missing="drop")
    expected.save(tmp_path / "saved", format="columns")
    with pytest.warns(DroppedRowsWarning, match="2 of 5 rows are left out"):
        store = cg.build_store(path, tmp_path / "store", missing="drop")
    assert store.graph().equals(expected)
    assert store.fingerprint == cg.open_store(tmp_path / "saved").fingerprint


IN_ORDER = {**SMALL, "time": [1, 2, 3, 4, 5]}


def test_rows_that_are_in_order_already(tmp_path):
    """Their files become those of the store as they are; labels get the codes of their natural order."""
    assert build(tmp_path, IN_ORDER).graph().equals(cg.CrowdGraph.from_responses(IN_ORDER))
    # The label that comes first in order is not in the first batch.
    later = {**IN_ORDER, "label": ["yes", "yes", "yes", "no", "yes"]}
    assert build(tmp_path, later, force=True).graph().equals(cg.CrowdGraph.from_responses(later))


def test_codes_of_whole_numbers_are_read(tmp_path):
    table = pa.table({**SMALL, "item": pa.array(SMALL["item"]).dictionary_encode()})
    assert build(tmp_path, table).graph().equals(cg.CrowdGraph.from_responses(SMALL))


def test_csv_files(tmp_path):
    table = pa.table({**SMALL, "item": ["007", "7", "x", "7", "x"], "time": ["2026-03-01", None, *["2026-02-01"] * 3]})
    pa_csv.write_csv(table, tmp_path / "x.csv")
    with pytest.warns(DroppedRowsWarning, match=r"1 of 5 rows are left out: null time in rows 1 \(counted from 0\)"):
        store = cg.build_store(tmp_path / "x.csv", tmp_path / "store", missing="drop", gold={"007": "no"})
    with pytest.warns(DroppedRowsWarning):
        assert store.graph().equals(cg.read_csv(tmp_path / "x.csv", missing="drop", gold={"007": "no"}))


def test_times_of_several_units_and_zones(tmp_path):
    """A batch of text may need nanoseconds that the others do not; with and without zone cannot be compared."""
    times = ["2026-03-02T00:00:00", "2026-03-01T00:00:00", "2026-03-01T00:00:00", "2026-01-01T00:00:00.000000001"]
    columns = {name: values[:4] for name, values in SMALL.items()} | {"time": times}
    assert build(tmp_path, columns).graph().equals(cg.CrowdGraph.from_responses(columns))
    columns["time"][3] = "2026-01-01T00:00:00+01:00"
    with pytest.raises(TimeError, match=r"that in row 3 is in UTC, those before are without a zone.*responses.parquet"):
        build(tmp_path, columns, force=True)
    columns["time"] = ["1500-01-01T00:00:00", *times[1:3], "2026-01-01T00:00:00.000000001"]
    with pytest.raises(TimeError, match="between the years 1678 and 2262"):
        build(tmp_path, columns, force=True)


def test_gold_is_looked_up_among_the_ids(tmp_path):
    with pytest.warns(GoldWarning, match="1 item that nobody answered"):
        store = build(tmp_path, gold={3: "yes", 8: "no", 7: {"yes": 0.25, "no": 0.75}})
    assert dict(store.graph().gold) == {3: "yes", 7: {"no": 0.75, "yes": 0.25}}
    (tmp_path / "gold.csv").write_text("item,label\n3,yes\n")
    assert dict(build(tmp_path, gold=tmp_path / "gold.csv", force=True).graph().gold) == {3: "yes"}
    with pytest.warns(GoldWarning, match="items by str, the responses by int"):
        build(tmp_path, gold={"3": "yes"}, force=True)
    # What was converted stays if only the gold is wrong.
    with pytest.raises(GoldError, match="contradicts itself"):
        cg.build_store(tmp_path / "responses.parquet", tmp_path / "x", gold={"item": [3, 3], "label": ["yes", "no"]})
    assert (tmp_path / ".x.part").is_dir()


@given(st.lists(st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)), max_size=30), st.integers(1, 2000))
def test_codes_of_integers(numbers, max_range):
    """Dense and hashed integers are coded by first appearance, in batches of any length."""
    coder = IntegerCoder("item", max_range)
    codes = np.concatenate([coder.code(pa.array(numbers[start : start + 7], pa.int64())) for start in range(0, 31, 7)])
    distinct = list(dict.fromkeys(numbers))
    assert codes.tolist() == [distinct.index(number) for number in numbers]
    assert coder.ids().to_pylist() == distinct


@given(st.lists(st.none() | st.text(max_size=20), max_size=40), st.booleans())
def test_codes_of_text(texts, as_dictionary):
    coder = TextCoder()
    batches = [pa.array(texts[start : start + 9], pa.string()) for start in range(0, 41, 9)]
    codes = [coder.code(batch.dictionary_encode() if as_dictionary else batch) for batch in batches]
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    expected = [-1 if text is None else distinct.index(text) for text in texts]
    assert np.concatenate(codes).tolist() == expected
    assert coder.ids().to_pylist() == distinct


def test_many_codes_of_text():
    """The tables grow."""
    texts = [f"{number * 7919 % 5000:04d}" * (1 + number % 3) for number in range(20_000)]
    coder = TextCoder()
    codes = coder.code(pa.array(texts))
    distinct = list(dict.fromkeys(texts))
    assert coder.ids().to_pylist() == distinct
    assert [distinct[code] for code in codes] == texts


@pytest.mark.parametrize("span", [1.5, 2**10, 2**20, 2**40])
def test_blocks_are_sorted_stably(span):
    """Short and long ranges of numbers, and fractions, in the order in which NumPy has them."""
    drawn = np.random.default_rng(0).random(300).round(1) * span
    keys = drawn - span / 3 if span < 2 else drawn.astype(np.int64) - int(span) // 3
    expected = np.argsort(keys, kind="stable")
    assert _column_files._order(keys).tolist() == expected.tolist()
    if keys.dtype.kind == "i":
        assert _column_files._order(keys.view("datetime64[us]")).tolist() == expected.tolist()


def test_columns_that_end_early_are_noticed(tmp_path):
    column = _column_files.ColumnFile.create(tmp_path / "item.npy", np.int32)
    column.append(np.arange(5))
    assert column.read(3, 5).tolist() == [3, 4]
    with pytest.raises(OSError, match=r"^item.npy ends before row 6$"):
        column.read(3, 6)


def test_what_nobody_waits_for_is_not_computed():
    """Threads compute a few values ahead; those that wait are given up when nobody asks for more."""
    computed = []

    def compute(number):
        computed.append(number)
        return number * 10

    values = _column_files.in_order(compute, range(1_000))
    assert [next(values), next(values)] == [0, 10]
    values.close()
    assert len(computed) <= 3 + _column_files.N_THREADS
    assert list(_column_files.in_order(compute, range(5))) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_frequent_times_have_ranges_of_their_own(kind):
    sample = np.array([*[5] * 50, *range(100)], dtype=kind)
    first_keys, is_constant = _column_files.key_ranges(sample, 10)
    assert len(is_constant) == len(first_keys) + 1
    (constant,) = np.flatnonzero(is_constant)
    assert first_keys[constant - 1] == 5
    assert np.array_equal(np.searchsorted(first_keys, [4, 5, 6], "right") == constant, [False, True, False])


@pytest.mark.parametrize("last", [2**63 - 1, np.finfo(float).max])
def test_the_last_of_all_times_may_be_frequent(last):
    first_keys, is_constant = _column_files.key_ranges(np.array([0, last, last]), 3)
    assert first_keys.tolist() == [last]
    assert not is_constant.any()


# Input that cannot be converted


BAD = {
    "a null id": ({"item": [7, 7, 3, None, 3]}, {}, MissingValueError, r"Null item in rows 3 (?!.*keep).*s.parquet"),
    "a null label": ({"label": ["a", "b", "a", None, "b"]}, {}, MissingValueError, "or missing='keep' for null labels"),
    "a label": (
        {},
        {"labels": ["yes"]},
        LabelError,
        r"'no' \(first in row 1\).*of '.*responses.parquet'",
    ),
    "a time": ({"time": ["2026-01-01"] * 4 + ["soon"]}, {}, TimeError, "'soon' in row 4"),
    "an infinite time": ({"time": [0.0, 1.0, 2.0, 3.0, np.inf]}, {}, TimeError, "infinite .rows 4."),
    "an id that is no id": ({"item": [1.0, 2.0, 3.0, 4.5, 1.0]}, {}, IdError, "The item in row 3 is 4.5"),
    "a large id": ({"item": pa.array([1, 2, 3, 2**63, 5], pa.uint64())}, {}, IdError, "row 3 is 9223372036854775808"),
    "a float beyond whole numbers": ({"item": [1.0, 2.0, 2.0**53, 4, 5]}, {}, IdError, "row 2 is 9007199254740992.0"),
    "only null ids": (
        {"item": pa.nulls(5), "label": ["a"] * 5},
        {"missing": "drop"},
        InputError,
        "All rows of the table were left out",
    ),
    "ids of another type": ({"item": [True, False, True, True, True]}, {}, IdError, "holds bool values"),
    "a nested column": ({"tags": [[1], [2], [], [3], []]}, {}, ColumnError, r"Choose others with attributes=\[...\]"),
    "a reserved name": ({"position": [1, 2, 3, 4, 5]}, {}, ColumnError, "cannot be called 'position'"),
    "repeats": ({"volunteer": ["anna"] * 5}, {"duplicates": "error"}, DuplicateError, "3 responses repeat"),
    "an attribute": ({}, {"attributes": ["score"]}, ColumnError, "no further column 'score'; there are none"),
    "gold": ({}, {"gold": {"thing": [1], "label": ["yes"]}}, ColumnError, "gold table has no column 'item'"),
    "a date as label": ({"label": [dt.date(2026, 1, 1)] * 5}, {}, LabelError, "a date, and a store of columns"),
    "memory": ({}, {"memory": "1MB"}, ParameterError, r"limit of 1.0 MB is too low.* needs .*Raise it to memory='\d"),
    "an amount": ({}, {"memory": "much"}, ParameterError, "not an amount of memory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_leaves_nothing_behind(tmp_path, case):
    columns, options, error, message = BAD[case]
    with pytest.raises(error, match=message):
        build(tmp_path, {**SMALL, **columns}, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["responses.parquet"]


def test_too_many_labels_are_no_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(_conversion_rows, "MAX_LABELS", 4)
    with pytest.raises(
        LabelError, match=r"more than 4 different labels, such as .*; is 'label' the column of labels\?"
    ):
        build(tmp_path, {**SMALL, "label": ["a", "b", "c", "d", "e"]})


def test_a_row_far_into_the_second_file_is_named(tmp_path):
    n_rows = 400
    labels = ["yes"] * n_rows
    labels[313] = "perhaps"
    columns = {"volunteer": ["x"] * n_rows, "item": range(n_rows), "label": labels, "time": range(n_rows)}
    paths = [write(tmp_path, SMALL, "a.parquet"), write(tmp_path, columns, "b.parquet")]
    with pytest.raises(LabelError, match=r"'perhaps' \(first in row 313\).*Rows are those of '.*b.parquet'"):
        cg.build_store(paths, tmp_path / "store", labels=["no", "yes"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_files_that_cannot_be_read(tmp_path):
    def fails(source, match, error=InputError):
        with pytest.raises(error, match=match):
            cg.build_store(source, tmp_path / "store")

    fails(tmp_path / "none.parquet", "There is no file")
    fails(tmp_path, "no Parquet files")
    fails(17, "Expected a path")
    os.mkfifo(tmp_path / "pipe.csv")
    fails(tmp_path / "pipe.csv", "a pipe or device; give files, which can be read again")
    (tmp_path / "x.csv").write_text("volunteer,item,label\n")
    fails(tmp_path / "x.csv", "a header and no rows")
    fails([tmp_path / "x.csv", write(tmp_path, SMALL)], "cannot be mixed")
    other = write(tmp_path, {**SMALL, "score": [1] * 5}, "other.parquet")
    fails([tmp_path / "responses.parquet", other], "all files need the same", ColumnError)
    text = write(tmp_path, {**SMALL, "item": ["x"] * 5}, "text.parquet")
    fails([tmp_path / "responses.parquet", text], "differ in the types of a column", ColumnError)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(write(tmp_path, SMALL).read_bytes()[:-20])
    fails(cut, "cannot be read as Parquet")


def test_text_can_be_of_known_encodings_only(tmp_path):
    (tmp_path / "x.csv").write_bytes("volunteer,item,label\nZoë,x,yes\n".encode("latin-1"))
    with pytest.raises(InputError, match="encoding='klingon' is not a known encoding"):
        cg.build_store(tmp_path / "x.csv", tmp_path / "store", encoding="klingon")
    store = cg.build_store(tmp_path / "x.csv", tmp_path / "store", encoding="latin-1")
    assert store.graph().volunteers.ids.tolist() == ["Zoë"]


def test_a_value_of_another_type_late_in_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(_row_streams, "CSV_BYTES", 64)
    rows = [f"anna,{number},yes,{number}" for number in range(20)]
    (tmp_path / "x.csv").write_text("\n".join(["volunteer,item,label,time", *rows, "anna,20,yes,soon"]))
    with pytest.raises(ColumnError, match=r"not of the type that its column has before.*'soon'.*as Parquet first"):
        cg.build_store(tmp_path / "x.csv", tmp_path / "store")
    assert not list(tmp_path.glob(".store*"))


def test_csv_files_that_cannot_be_read(tmp_path, monkeypatch):
    def fails(content, match):
        (tmp_path / "x.csv").write_bytes(content)
        with pytest.raises(InputError, match=rf"x.csv' {match}"):
            cg.build_store(tmp_path / "x.csv", tmp_path / "store")
        assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]

    monkeypatch.setattr(_row_streams, "CSV_BYTES", 64)
    rows = "".join(f"anna,{number},yes\n" for number in range(20)).encode()
    fails(b"", "is empty; give a CSV file with a header")
    fails("volunteer,ítem,label\n".encode("latin-1") + rows, "cannot be read as a CSV file in utf-8")
    fails(b"volunteer,item,label\n" + rows + b"bert,20\n", r"has a row that does not fit .* got 2 in line 22; correct")
    fails(b"volunteer,item,label\n" + rows + b"b\xe9rt,20,no\n", "cannot be read as a CSV file in utf-8")


def test_parquet_files_with_damaged_rows(tmp_path):
    path = write(tmp_path, {**SMALL, "item": ["x", "y", "z", "u", "v"]})
    content = bytearray(path.read_bytes())
    # The second group of rows; its pages begin behind those of the first.
    start = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"responses.parquet' cannot be read beyond row 3: .*[^.\n] ?\. Copy or"):
        cg.build_store(path, tmp_path / "store")
    assert [file.name for file in tmp_path.iterdir()] == ["responses.parquet"]


def test_too_many_ids_for_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(IntegerCoder, "n_bytes", property(lambda _: 10**10))
    with pytest.raises(ParameterError, match=r"the ids of the first 3 rows.* need 1\d\.\d GB.*memory='1\d\.\dGB'"):
        build(tmp_path)


def test_files_that_change_while_they_are_read(tmp_path, monkeypatch):
    path = write(tmp_path, SMALL)
    finish = _conversion_rows.ThreadPoolExecutor.__exit__

    def changing(*arguments):
        os.utime(path, (1, 1))
        return finish(*arguments)

    monkeypatch.setattr(_conversion_rows.ThreadPoolExecutor, "__exit__", changing)
    with pytest.raises(InputError, match="changed while it was read"):
        cg.build_store(path, tmp_path / "store")


# Interruptions


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "phase",
    [
        "_conversion_rows.RowReader.read",
        "_conversion_order.Ordering._written",
        "_conversion_order._Grouping.distribute",
        "columns.StoreWriter.finish",
    ],
)
def test_an_interrupted_conversion_goes_on(tmp_path, monkeypatch, phase):
    path = write(tmp_path, SMALL)
    expected = cg.build_store(path, tmp_path / "expected", duplicates="last").fingerprint
    with monkeypatch.context() as patch:
        patch.setattr(f"crowdgraph.io.{phase}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cg.build_store(path, tmp_path / "store", duplicates="last")
    assert not (tmp_path / "store").exists()
    was_read = (tmp_path / ".store.part/conversion.json").exists()
    assert was_read == (phase != "_conversion_rows.RowReader.read")
    if was_read:
        monkeypatch.setattr(_conversion_rows.RowReader, "read", interrupt)
    assert cg.build_store(path, tmp_path / "store", duplicates="last").fingerprint == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["expected", "responses.parquet", "store"]
    assert not (tmp_path / "store/conversion.json").exists()


@pytest.mark.parametrize("n_moved", [1, 3])
def test_a_conversion_that_was_interrupted_among_its_moves_goes_on(tmp_path, monkeypatch, n_moved):
    path = write(tmp_path, IN_ORDER)
    expected = cg.build_store(path, tmp_path / "expected").fingerprint
    moves = [_conversion_order._move] * n_moved + [interrupt]

    def move(source, target):
        moves.pop(0)(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(_conversion_order, "_move", move)
        with pytest.raises(KeyboardInterrupt):
            cg.build_store(path, tmp_path / "store")
    assert not moves
    assert cg.build_store(path, tmp_path / "store").fingerprint == expected


@pytest.mark.parametrize("change", ["files", "options"])
def test_another_conversion_begins_anew(tmp_path, monkeypatch, change):
    path = write(tmp_path, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr("crowdgraph.io.columns.StoreWriter.finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cg.build_store(path, tmp_path / "store")
    if change == "files":
        path = write(tmp_path, {name: values[:4] for name, values in SMALL.items()})
    options = {"duplicates": "first"} if change == "options" else {}
    store = cg.build_store(path, tmp_path / "store", **options)
    assert store.graph().equals(cg.read_parquet(path, **options))


def test_two_conversions_at_once(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / ".store.part").mkdir()
    descriptor = os.open(tmp_path / ".store.part", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(StoreError, match="Another process is writing"):
        build(tmp_path)
    os.close(descriptor)
    assert build(tmp_path).n_responses == 5


@pytest.mark.parametrize("complete", [[], ["read"]])
def test_a_full_disk(tmp_path, monkeypatch, complete):
    """Files have a limit of size, as if the disk were full; what was read stays."""
    resource = pytest.importorskip("resource")
    n_rows = 3_000
    columns = {name: range(n_rows) for name in ("volunteer", "item")}
    path = write(tmp_path, {**columns, "label": [1] * n_rows, "time": range(n_rows, 0, -1)})
    monkeypatch.setattr(_row_streams, "BATCH_ROWS", 1_000)
    monkeypatch.setattr(_column_files, "BLOCK_ROWS", 1_000)
    monkeypatch.setattr(_conversion_plan, "BUCKET_ROWS", 1_000)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    read = _conversion_rows.RowReader.read

    def then_full(self):
        facts = read(self)
        monkeypatch.setattr(_column_files, "reserve", full)
        return facts

    def full(*_):
        raise OSError(28, "No space left on device")

    if complete:
        monkeypatch.setattr(_conversion_rows.RowReader, "read", then_full)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, old[1]))
    try:
        with pytest.raises(
            StoreError, match=r"(File too large|No space left).*free\. Free some space.*it resumes"
        ) as caught:
            cg.build_store(path, tmp_path / "store")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert ("complete (read)" in str(caught.value)) == bool(complete)
    assert not (tmp_path / "store").exists()
    monkeypatch.setattr(_column_files, "reserve", lambda *_: None)
    assert cg.build_store(path, tmp_path / "store").graph().equals(cg.read_parquet(path))


def test_only_stores_are_replaced(tmp_path):
    path = write(tmp_path, SMALL)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/mine.txt").write_text("precious")
    for force in (False, True):
        with pytest.raises(StoreError, match="is there already" + (", and it is not a store" if force else "")):
            cg.build_store(path, tmp_path / "store", force=force)
    assert (tmp_path / "store/mine.txt").read_text() == "precious"
    first = cg.build_store(path, tmp_path / "other")
    with pytest.raises(StoreError, match="is there already"):
        cg.build_store(path, tmp_path / "other")
    second = cg.build_store(path, tmp_path / "other", duplicates="first", time=None, force=True)
    assert second.fingerprint != first.fingerprint
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "responses.parquet", "store"]
