"""Bad tables, files and networks: tables of what is read, and the error and words that answer it; then any at all."""

import datetime as dt
import gzip
import json

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import network_of
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import read
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphError,
    DuplicateError,
    GoldError,
    IdError,
    InputError,
    LabelError,
    MissingValueError,
    ParameterError,
    StoreError,
    TimeError,
)

from_responses = cg.CrowdGraph.from_responses
GOOD = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": ["n", "y", "y"]}
ONE = {"volunteer": ["a"], "item": [1], "label": [1]}
AWARE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAN = float("nan")


def by_words(rows):
    """The rows of a table, each known by the words at its end."""
    return [pytest.param(*row, id=row[-1]) for row in rows]


# Tables

COLUMNS = [
    ({"volunteer": ["a", None, "a"]}, MissingValueError, r"Null volunteer in rows 1.*missing='drop'"),
    ({"item": [NAN, "x", None]}, MissingValueError, "item in rows 0, 2"),
    ({"label": ["n", "y", None]}, MissingValueError, "label in rows 2.*missing='keep'"),
    ({"label": [1, "1", 1]}, LabelError, r"mixes types: 1 in row 0 \(number\), '1' in row 1 \(str\)"),
    ({"label": [1, True, 0]}, IdError, "would become one"),
    ({"volunteer": [1, True, 2]}, IdError, r"row 1 has True \(bool\), an earlier row has 1 \(int\)"),
    ({"item": [1.0, 1, 2]}, IdError, "would become one"),
    ({"item": [["x"], ["x"], ["y"]]}, IdError, r"row 0 is \['x'\].*not hashable"),
    ({"item": pa.array([[1], [1], [2]])}, IdError, "cannot be ids"),
    ({"item": ["x", "x"]}, ColumnError, "differ in length"),
    ({"item": "x"}, ColumnError, "'item' must be a list"),
    ({"item": {"x", "y", "z"}}, ColumnError, "'item' must be a list"),
    ({"item": 5}, ColumnError, "'item' must be a list"),
    ({"item": np.zeros((3, 2))}, ColumnError, r"shape \(3, 2\)"),
    ({"item": np.zeros(3, dtype=complex)}, ColumnError, "complex"),
    ({"position": [1, 2, 3]}, ColumnError, "cannot be called 'position'"),
    ({"time": [1, 2, None]}, MissingValueError, "time in rows 2"),
    ({"time": [pd.Timestamp("2026-01-01"), pd.NaT, pd.NaT]}, MissingValueError, "time in rows 1, 2"),
    ({"time": [1.0, float("inf"), 2.0]}, TimeError, "infinite.*rows 1"),
    ({"time": ["2026-01-01", "soon", "2026-01-03"]}, TimeError, "'soon' in row 1"),
    ({"time": ["1", "foo", "3"]}, TimeError, "'foo' in row 1"),
    ({"time": ["2026-01-01", "2026-01-02T00:00Z", "2026-01-03"]}, TimeError, r"mix kinds.*in row 0.*in row 1"),
    ({"time": [AWARE, AWARE.replace(tzinfo=None), AWARE]}, TimeError, r"without zone\)\. Give all of them one form"),
    ({"time": [AWARE, 5, AWARE]}, TimeError, "mix kinds"),
    ({"time": [1, [2], 3]}, TimeError, r"row 1 is \[2\], a list"),
    ({"time": [True, False, True]}, TimeError, "row 0 is True"),
    ({"time": [2**70, 1, 2]}, TimeError, "64-bit"),
    ({"time": np.array([2**63, 1, 2], dtype=np.uint64)}, TimeError, "64-bit"),
    ({"time": pa.array([1, 2, 3], pa.duration("s"))}, TimeError, "duration"),
    ({"time": [dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), AWARE, AWARE]}, TimeError,
     "outside the years"),
    ({"time": ["0500-01-01T00:00:00.000000005Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]}, TimeError,
     "between the years 1678 and 2262"),
    ({"time": [np.datetime64(time) for time in ("0500-01-01", "2026-01-01T00:00:00.000000005", "2026")]}, TimeError,
     "nanoseconds must lie"),
]  # fmt: skip
TABLES = [
    ({}, ColumnError, "no columns"),
    ({"volunteer": [], "item": [], "label": []}, InputError, "no rows"),
    (pd.DataFrame(GOOD).iloc[:0], InputError, "no rows"),
    (pl.DataFrame(GOOD)[:0], InputError, "no rows"),
    ({"worker": ["a"], "item": ["x"], "label": ["y"]}, ColumnError,
     "no column 'volunteer' .*'worker', 'item', 'label'.*Did you mean volunteer='worker'"),
    ({"volunteer": ["a"], "task": ["x"], "label": ["y"]}, ColumnError,
     "no column 'item' .*'volunteer', 'task', 'label'.* item='task'"),
    ({"worker": ["a"], "task": ["x"], "answer": ["y"]}, ColumnError,
     "no column 'label' .*'worker', 'task', 'answer'.* label='answer'"),
    (pd.DataFrame([[1, 2, 3]], columns=["item", "item", "label"]), ColumnError, "same name: 'item'"),
    (pa.table([[1], [1]], names=["item", "item"]), ColumnError, "same name"),
    (pd.DataFrame([[1, 2, 3]]), ColumnError, "must be text; got 0, 1, 2"),
    ({**GOOD, 5: [1, 2, 3]}, ColumnError, "must be text"),
    ("responses.csv", InputError, "is a path"),
    (5, InputError, "from an int"),
    ([1, 2], InputError, "from a list"),
    (None, InputError, "from a NoneType"),
]  # fmt: skip
OPTIONS = [
    (GOOD, {"volunteer": "who"}, ColumnError,
     "no column 'who' for the volunteer; the table has 'volunteer', 'item', 'label'"),
    (GOOD, {"item": "volunteer"}, ColumnError, "'volunteer' is named for two things"),
    (GOOD, {"time": "when"}, ColumnError, "no column 'when' for the time"),
    (GOOD, {"volunteer": ["volunteer"]}, ParameterError, "named by text"),
    (GOOD, {"labels": ["n"]}, LabelError, r"1 label is not among 'n': 'y' \(first in row 1\)"),
    (GOOD, {"labels": [0, 1]}, LabelError, "They are of type str, those given are int"),
    (GOOD, {"labels": "ny"}, ParameterError, "several values"),
    (GOOD, {"labels": 5}, ParameterError, "several values"),
    (GOOD, {"classes": []}, ParameterError, "no classes"),
    (GOOD, {"classes": ["a", "a"]}, ParameterError, "repeat 'a'"),
    (GOOD, {"duplicates": "frist"}, ParameterError, "Did you mean 'first'"),
    (GOOD, {"missing": "ignore"}, ParameterError, "missing='ignore' is not a choice"),
    (GOOD, {"volunteers": {"name": ["a"]}}, ColumnError, "table of volunteers has no column 'volunteer'"),
    (GOOD, {"volunteers": {"volunteer": ["a", "b", "a"]}}, IdError, "repeat"),
    (GOOD, {"volunteers": {"volunteer": ["a", None]}}, MissingValueError, "null ids in rows 1"),
    (GOOD, {"items": {"item": ["x"], "size": [1]}}, IdError, "no row in the table of items, such as 'y'"),
    ({**GOOD, "who": ["a", "b", "c"]}, {"volunteer": "who"}, ColumnError,
     "'volunteer' has the name of a part of a response"),
    ({**GOOD, "item": ["x"] * 3}, {"duplicates": "error"}, DuplicateError,
     r"1 response repeats.*volunteer 'a' and item 'x'"),
    ({"worker": ["a"], "task": ["x"], "label": ["y"]}, {"volunteer": "user"}, ColumnError,
     "no column 'user' .*'worker', 'task', 'label'"),
    ({"worker": ["a"], "user": ["a"], "task": ["x"], "label": ["y"]}, {"volunteer": "user"}, ColumnError,
     "no column 'item' .*item='task'"),
    # Gold
    (GOOD, {"gold": {"x": "maybe"}, "classes": ["n", "y"]}, GoldError, "not among 'n', 'y': 'maybe'"),
    (GOOD, {"gold": pd.DataFrame({"item": ["x", "x"], "label": ["y", "n"]})}, GoldError,
     "contradicts itself for item 'x': 'y' and 'n'"),
    (GOOD, {"gold": {"x": {"n": 0.5, "y": 0.6}}}, GoldError, r"sum to one.*'x' with \[0.5, 0.6\]"),
    (GOOD, {"gold": {"x": {"n": -0.5, "y": 1.5}}}, GoldError, "must not be negative"),
    (GOOD, {"gold": {"x": {"n": NAN, "y": 1.0}}}, GoldError, "sum to one"),
    (GOOD, {"gold": {"x": {"n": 1.0, "y": NAN}}}, GoldError, "sum to one"),
    (GOOD, {"gold": {"x": {"n": "much", "y": 1}}}, GoldError, "must hold numbers"),
    (GOOD, {"gold": pd.DataFrame({"item": ["x"], "n": ["much"], "y": ["little"]})}, GoldError,
     "must hold probabilities"),
    (GOOD, {"gold": pd.DataFrame({"item": ["x"], "n": [None], "y": [1.0]})}, GoldError, "sum to one"),
    (GOOD, {"gold": {"x": "y", "y": 1}}, GoldError, "mixes types"),
    (GOOD, {"gold": pd.DataFrame({"name": ["x"], "label": ["y"]})}, ColumnError,
     "gold table has no column 'item'; it has 'name'"),
    (GOOD, {"gold": {"name": ["x"], "label": ["y"]}}, ColumnError, "no column 'item'"),
    (GOOD, {"gold": pd.DataFrame({"item": ["x"]})}, ColumnError, "no column 'label'"),
    (GOOD, {"gold": pd.DataFrame({"item": ["x", "y"], "truth": [1, 1]})}, ColumnError,
     "Rename the one with the classes to 'label'"),
    (GOOD, {"gold": pd.DataFrame({"item": [None], "label": ["y"]})}, GoldError, "names no item in rows 0"),
    (GOOD, {"gold": "gold.csv"}, InputError, "There is no file of gold 'gold.csv'"),
    (GOOD, {"gold": 5}, InputError, "from an int"),
    ({"volunteer": ["a", "b"], "item": [1, 1], "label": [0, 1]}, {"gold": {1: "1"}}, GoldError, "differ in type"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "options", "error", "words"),
    by_words(
        [
            *[({**GOOD, **changes}, {}, error, words) for changes, error, words in COLUMNS],
            *[(table, {}, error, words) for table, error, words in TABLES],
            *OPTIONS,
        ]
    ),
)
def test_bad_tables_are_refused(table, options, error, words):
    with pytest.raises(error, match=words):
        from_responses(table, **options)


def test_nulls_of_every_library_are_nulls():
    for null in (None, NAN, np.nan, pd.NA, pd.NaT, np.datetime64("NaT")):
        with pytest.raises(MissingValueError, match="rows 1"):
            from_responses({**GOOD, "volunteer": ["a", null, "a"]})
    frames = (
        pd.DataFrame({**GOOD, "item": [1, None, 3]}),
        pd.DataFrame({**GOOD, "item": pd.array([1, None, 3], dtype="Int64")}),
        pl.DataFrame({**GOOD, "item": ["x", None, "y"]}),
        pl.DataFrame({**GOOD, "item": ["x", None, "y"]}).with_columns(pl.col("item").cast(pl.Categorical)),
        pa.table({**GOOD, "item": ["x", None, "y"]}),
    )
    for frame in frames:
        with pytest.raises(MissingValueError, match="item in rows 1"):
            from_responses(frame)
        with pytest.warns(cg.errors.DroppedRowsWarning):
            assert len(from_responses(frame, missing="drop").responses) == 2


# Files

HEADER = "volunteer,item,label,time\n"
PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
ANSWER = json.dumps([{"task": "T0", "value": "Yes"}]).replace('"', '""')
SUPERNOVA = ("classification", "agent id", "asset id", "PTF type", "PTF class", "score")
SUPERNOVAE = [(11, "007", "x", "SN Ia", "", 3), (100, "7", "y", "AGN", "galaxy", 1)]


def supernovae(*rows, header=SUPERNOVA):
    return "".join(",".join(map(str, row)) + "\n" for row in (header, *rows))


def export(*rows):
    """A Zooniverse export of the time and the subject of each row, each answered by anna."""
    lines = [f'anna,1,{time},"{ANSWER}",{subject}\n' for time, subject in rows]
    return "user_name,workflow_id,created_at,annotations,subject_ids\n" + "".join(lines)


def read_task(path, **options):
    return cg.read_panoptes(path, **{"task": "T0", **options})


FILES = [
    (cg.read_csv, b"", {}, InputError, "is empty; give a CSV file"),
    (cg.read_csv, "volunteer,item,label\n", {}, InputError, "a header and no rows; give one row for each response"),
    (cg.read_csv, "user,item,label\na,x,y\n", {}, ColumnError, "Did you mean volunteer='user'"),
    (cg.read_csv, "volunteer,item,item\na,x,y\n", {}, ColumnError, "same name: 'item'"),
    (cg.read_csv, "volunteer,item,label\na,x\n", {}, InputError, "Expected 3 columns, got 2"),
    (cg.read_csv, "volunteer,item,label\na,x,yes\nb,x,\n", {}, MissingValueError,
     r"label in rows 1 \(counted from 0\)"),
    (cg.read_csv, "who,item,label\na,x,y\n", {"worker": "who"}, TypeError,
     r"read_csv\(\) has no option 'worker'\. Did you mean volunteer='who'\?"),
    (cg.read_csv, "volunteer,item,label\na,x,y\n", {"clases": ["y"]}, TypeError, "'clases'. Did you mean 'classes'?"),
    (cg.read_parquet, "", {"worker": "who"}, TypeError, r"read_parquet\(\) has no option 'worker'"),
    (cg.read_csv, b"volunteer,item,label\n\xff\xfe,x,y\n", {}, InputError, "encoding='latin-1'"),
    (cg.read_csv, "volunteer;item;label\na;x;y\n", {}, ColumnError, "use delimiter=';'"),
    (cg.read_csv, PICTURE, {}, InputError, "."),
    (cg.read_csv, HEADER + "a,x,y,soon\n", {}, TimeError, "'soon' in row 0"),
    (cg.read_csv, HEADER + "a,x,y,1\n", {"encoding": "klingon"}, InputError, "klingon"),
    *[(cg.read_csv, HEADER, {"delimiter": delimiter}, ParameterError, "single ASCII character")
      for delimiter in ("", ";;", "é")],
    (cg.read_galaxy_zoo_supernovae, supernovae((1, "a", "x", "", "", 2)), {}, LabelError,
     "1 scores are not among -1, 1, 3, such as '2' in row 0"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, (1, "a", "x", "", "", "yes")), {}, LabelError,
     "such as 'yes' in row 2. Correct the file"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, (1, "a", "x", "", "", "")), {}, MissingValueError,
     r"Null score in rows 2 \(counted from 0\)\. Correct the file"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, (1, "NULL", "", "", "", 3)), {}, MissingValueError,
     "Null agent id in rows 2; asset id in rows 2"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, ("soon", "a", "x", "", "", 3)), {}, TimeError,
     "1 classifications are not whole numbers, such as 'soon' in"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, ("1.5", "a", "x", "", "", 3)), {}, TimeError,
     "'1.5' in row 2; expected numbers that rise with time"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, (10**30, "a", "x", "", "", 3)), {}, TimeError,
     "does not fit into a 64-bit integer"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE, (200, "bert", "x", "AGN", "", 3)), {}, GoldError,
     "contradicts itself for item 'x': 'supernova' and 'not supernova'"),
    (cg.read_galaxy_zoo_supernovae, supernovae(), {}, InputError, "no rows"),
    (cg.read_galaxy_zoo_supernovae, b"", {}, InputError, "is empty; expected a row for each classification"),
    (cg.read_galaxy_zoo_supernovae, b"\n \n", {}, InputError, "is empty"),
    (cg.read_galaxy_zoo_supernovae, "a,b,c\n1,2,3\n", {}, ColumnError,
     "not a table of Galaxy Zoo Supernovae: it lacks 'classification', .*read_csv"),
    (cg.read_galaxy_zoo_supernovae, supernovae(header=SUPERNOVA[:-1]), {}, ColumnError,
     "it lacks 'score'; its first row is 'classification', 'agent id'"),
    (cg.read_galaxy_zoo_supernovae, supernovae(header=(*SUPERNOVA, "agent")), {}, ColumnError,
     "two columns for 'agent id': 'agent id' and 'agent'"),
    (cg.read_galaxy_zoo_supernovae, "1,a,x,3\n", {}, ColumnError,
     "has no header and 4 columns; expected the columns 'classification'.*delimiter="),
    (cg.read_galaxy_zoo_supernovae, "1|a|x|||3\n", {}, ColumnError, "lacks 'classification'"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE) + "1,a\n", {}, InputError, "Expected 6 columns, got 2"),
    (cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE).encode() + b"1,\xff\xfe,x,,,3\n", {}, InputError,
     "cannot be read as a table in UTF-8"),
    (cg.read_galaxy_zoo_supernovae, PICTURE, {}, InputError, "."),
    *[(cg.read_galaxy_zoo_supernovae, supernovae(*SUPERNOVAE), {"delimiter": delimiter}, ParameterError,
       "single ASCII character") for delimiter in ("", ";;", "é", '"', "\n")],
    (read_task, "x,y\na,b\n", {}, ColumnError, "not a Zooniverse classification export: it lacks 'user_name'"),
    (read_task, export(("2026-03-01", 1), ("soon", 1)), {}, TimeError, "'soon' in row 1"),
    (read_task, export(("2026-03-01", 1), ("2026-03-02", "")), {}, MissingValueError, "Null item in rows 1"),
    (read_task, export(("2026-03-01", 1)), {"anonymous": "hide"}, ParameterError, "not a choice"),
    (read_task, export(("2026-03-01", 1)), {"malformed": "drop"}, ParameterError, "not a choice"),
    (read, "a,b,c\n1,2,3\n", {}, InputError, "looks like the volunteer; it has 'a', 'b', 'c'"),
    (read, "volunteer,item,label\n", {}, InputError, "no rows"),
    (read, "volunteer,item,label\na,x\n", {}, InputError, "Expected 3 columns, got 2"),
    (read, "volunteer,item,label\nZoë,x,y\n".encode("latin-1"), {}, InputError, "encoding='latin-1'"),
    (read, b"", {}, InputError, "is empty; give a CSV file"),
    (read, bytes(range(256)) * 9, {}, InputError, "is not a text file"),
    (read, HEADER, {"delimiter": "ab"}, ParameterError, "delimiter='ab' must be a single ASCII character"),
    (read, HEADER + "a,x,y,1\n", {"columns": {"volunteer": "user"}}, ColumnError,
     "has no column 'user'; it has 'volunteer'"),
    (read, HEADER + "a,x,y,1\n", {"columns": {"colour": "x"}}, ParameterError, "columns= names 'colour'"),
    (read, HEADER + "a,x,y,1\n", {"kind": "xml"}, ParameterError, "kind='xml'"),
    (read, export(("2026-03-01", 1)), {"task": "T5"}, InputError,
     "No row answers the task 'T5'; the export asks T0"),
    (read, export(("2026-03-01", 1)), {"columns": {"item": "subject_ids"}}, ParameterError,
     "columns of a Zooniverse export are known"),
    (read, "volunteer,item,label\na,x,y\n".encode("utf-16-le"), {}, InputError,
     "text in UTF-16, as spreadsheets save it; use encoding='utf-16'"),
    *[(reader, "volunteer,item,label\na,x,y\n".encode("utf-16-le"), {"encoding": "utf-16"}, InputError,
       "cannot be read as a CSV file in utf-16") for reader in (read, cg.read_csv)],
]  # fmt: skip


@pytest.mark.parametrize(("reader", "content", "options", "error", "words"), by_words(FILES))
def test_bad_files_are_refused(write, reader, content, options, error, words):
    with pytest.raises(error, match=words):
        reader(write(content), **options)


def test_a_table_of_which_no_row_is_left_is_refused():
    table = {"volunteer": ["a"], "item": ["x"], "label": [None]}
    with pytest.warns(cg.errors.DroppedRowsWarning), pytest.raises(InputError, match="All rows of the table were left"):
        from_responses(table, missing="drop")


# Long enough that the header can be read before the cut.
CUT = gzip.compress(
    "".join([HEADER, *(f"v{n},i{n * 7919 % 1000},{n % 2},{n}\n" for n in range(9000))]).encode(), mtime=0
)[:9000]
CUT_SUPERNOVAE = gzip.compress(supernovae(*SUPERNOVAE * 1000).encode(), mtime=0)[:-40]


@pytest.mark.parametrize(
    ("reader", "name", "content", "words"),
    by_words([
        (cg.read_csv, "r.csv.gz", CUT, "cut short"),
        (cg.read_galaxy_zoo_supernovae, "r.csv.gz", CUT_SUPERNOVAE, "cut short"),
        (cg.read_galaxy_zoo_supernovae, "plain.csv.gz", supernovae(*SUPERNOVAE), "another kind"),
        (read, "r.csv.gz", CUT, "is cut short; copy or download it again"),
        (read, "early.csv.gz", gzip.compress(np.random.default_rng(0).bytes(9000).hex().encode(), mtime=0)[:3000],
         "cut short|looks like"),
        (read, "r.parquet", HEADER, "cannot be read as Parquet"),
        (read, "r.crowd", HEADER, r"is not a saved graph\. Read tables with cg\.read_csv"),
    ]),
)  # fmt: skip
def test_files_that_are_cut_or_of_another_kind_are_refused(write, reader, name, content, words):
    with pytest.raises(CrowdGraphError, match=words):
        reader(write(content, name))


@pytest.mark.parametrize(
    ("reader", "path", "words"),
    [
        *[(reader, path, "not a file") for reader in (cg.read_csv, cg.read_galaxy_zoo_supernovae)
          for path in ("", "nothing.csv", 5, None, "x" * 5000)],
        (cg.read_parquet, "nothing.parquet", "nothing.parquet"),
        (cg.read_parquet, 5, "5"),
        (cg.read_parquet, [], "."),
        (cg.read_parquet, ["nothing"], "nothing"),
        (cg.read_parquet, "", "no Parquet files"),
        (read, "nothing.csv", "There is no file"),
        (read, "", "is a directory without Parquet files"),
        (read, 5, "Expected the path of a file; got 5"),
    ],
)  # fmt: skip
def test_paths_that_are_no_files_are_refused(tmp_path, reader, path, words):
    inside = tmp_path / path if isinstance(path, str) else path
    with pytest.raises(InputError, match=words):
        reader(inside)


def test_parquet_files_that_do_not_fit_are_refused(tmp_path, columns):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ColumnError, match="no column 'colour'"):
        cg.read_parquet(path, columns=["colour"])
    (tmp_path / "cut.parquet").write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"cut\.parquet"):
        cg.read_parquet(tmp_path / "cut.parquet")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ColumnError, match="all files need the same"):
        cg.read_parquet([path, tmp_path / "other.parquet"])
    pq.write_table(pa.table([[1], [2]], names=["item", "item"]), tmp_path / "doubled.parquet")
    with pytest.raises(ColumnError, match="same name"):
        cg.read_parquet(tmp_path / "doubled.parquet")


@pytest.mark.parametrize("column", GOOD)
def test_text_that_is_no_text_in_parquet_is_refused(tmp_path, column):
    """Parquet carries bytes that claim to be text; they are not passed on."""
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"\xff\xfe", b"ok", b"ok"]).buffers())
    pq.write_table(pa.table({**GOOD, column: broken}), tmp_path / "r.parquet")
    with pytest.raises(CrowdGraphError, match=column):
        cg.read_parquet(tmp_path / "r.parquet")


# Networks


def bipartite(node=None, edge=None, **graph):
    """One response as a networkx graph, with further attributes."""
    network = nx.MultiGraph(**graph)
    network.add_node("anna", **{"kind": "volunteer", **(node or {})})
    network.add_node("x", kind="item")
    network.add_edges_from([("anna", "x", {"label": 1} if edge is None else edge)])
    return network


@pytest.mark.parametrize(
    ("network", "error", "words"),
    [
        (bipartite({"kind": "person"}), InputError, "Node 'anna' has kind='person'"),
        (bipartite({"kind": "item"}), InputError, "joins two items"),
        (bipartite(edge={}), InputError, "has no label"),
        (bipartite(edge={"label": 1, "volunteer": "eve"}), ColumnError, "edge attribute 'volunteer'"),
        (bipartite({"volunteer": "eve"}), ColumnError, "node attribute 'volunteer'"),
        # Attributes with the names of annotations would be dropped in silence.
        (bipartite({"confusion": 1}), ColumnError, "cannot be called"),
        (bipartite({"gold": "yes"}), ColumnError, "cannot be called"),
        (bipartite({"id": ["a"]}), IdError, "cannot be an id"),
        (bipartite(crowdgraph="yes"), InputError, "delete it"),
        (bipartite(crowdgraph={"classes": ["a"]}), InputError, "delete it"),
        ("graph", InputError, "Expected a networkx graph"),
    ],
)
def test_bad_networks_are_refused(network, error, words):
    with pytest.raises(error, match=words):
        cg.CrowdGraph.from_networkx(network)


@pytest.mark.parametrize(
    ("ids", "path", "error", "words"),
    [
        ([1, "1", 2], "x.gexf", IdError, "become the same text in a file: '1'. Rename them"),
        (["a", "b\x00", "c"], "x.graphml", IdError, r"'b\\x00' holds a character that XML files cannot carry"),
        (["a", "b", "c"], "x.csv", ParameterError, r"x.csv' must end in .graphml or .gexf"),
        (["a", "b", "c"], "gexf", ParameterError, "must end in .graphml or .gexf"),
        (["a", "b", "c"], "nowhere/x.gexf", StoreError, "Cannot write to"),
    ],
)
def test_networks_that_cannot_be_written_leave_no_file(tmp_path, ids, path, error, words):
    (tmp_path / "x.gexf").write_text("old")
    with pytest.raises(error, match=words):
        network_of(np.zeros((3, 3)), ids=ids).save(tmp_path / path)
    assert [file.name for file in tmp_path.iterdir()] == ["x.gexf"]
    assert (tmp_path / "x.gexf").read_text() == "old"


@pytest.mark.parametrize(
    ("columns", "write", "error", "words"),
    [
        ({**GOOD, "volunteer": [1, "1", 1]}, "to_graphml", IdError, "become the same text in a file: 'volunteer:1'"),
        ({**GOOD, "volunteer": ["a\x0b", "b", "c"]}, "to_gexf", IdError, "XML files cannot carry"),
    ],
)
def test_graphs_that_files_cannot_carry_are_refused(tmp_path, columns, write, error, words):
    with pytest.raises(error, match=words):
        getattr(from_responses(columns), write)(tmp_path / "a")


def test_what_frames_cannot_carry_is_named():
    graph = from_responses({**ONE, "volunteer": [("a", 1)]})
    assert graph.to_pandas()["volunteer"].tolist() == [("a", 1)]
    with pytest.raises(IdError, match="'volunteer' cannot become an Arrow column: it holds values of type tuple"):
        graph.to_arrow()
    with pytest.raises(ParameterError, match=r"'responces'.*Did you mean 'responses'"):
        graph.to_pandas(table="responces")
    soft = from_responses(ONE, gold={1: {"item": 0.5, "label": 0.5}})
    with pytest.raises(ColumnError, match=r"read it from graph.gold"):
        soft.to_pandas(table="gold")


# Broken at random: anything at all either makes a graph, or one of our errors says why not.

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.tuples(st.integers(), st.none()),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([pd.NA, pd.NaT, np.int8(3), np.float32(2.5), np.datetime64("2026"), object, 10**400]),
)
CELLS = st.lists(ANYTHING, min_size=3, max_size=3)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["kind", "id", "label", "time", "gold", "position", "volunteer", "extra"]),
    st.sampled_from(["volunteer", "item", "yes", "2026-01-01", 1, 2.5, None, True, NAN, (1, 2), [1], {"yes": 1.0}]),
    max_size=4,
)


def read_or_refused(reader, *args, **options):
    """The graph, or None where one of our errors says why there is none."""
    try:
        return reader(*args, **options)
    except CrowdGraphError:
        return None


@given(
    st.fixed_dictionaries(
        {},
        optional={"volunteer": CELLS, "item": CELLS, "label": CELLS, "time": CELLS, "extra": CELLS},
    ),
    st.sampled_from(["error", "drop", "keep"]),
    st.sampled_from(["all", "first", "last", "error"]),
    st.none() | st.dictionaries(st.sampled_from(["x", "y", "q"]), ANYTHING, max_size=2),
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_malformed_tables_never_surprise(changes, missing, duplicates, gold):
    table = {**GOOD, **changes}
    graph = read_or_refused(from_responses, table, missing=missing, duplicates=duplicates, gold=gold)
    if graph is not None:
        assert len(graph.responses) <= 3
        assert repr(graph)
        assert graph.to_networkx().number_of_edges() == len(graph.responses)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_types_are_no_classes():
    with pytest.raises(ParameterError, match=r"classes must be plain values .*; got <class 'object'>"):
        from_responses(GOOD, gold={"x": object})


@given(st.lists(st.sampled_from(["volunteer", "item", "label", "time", 5]), max_size=5), st.data())
def test_malformed_pandas_frames_never_surprise(names, data):
    rows = data.draw(st.lists(st.tuples(*[ANYTHING] * len(names)), max_size=4))
    read_or_refused(from_responses, pd.DataFrame(rows, columns=names))


@given(st.binary(max_size=60) | st.text('volunteeritmlab,;"\n\r\t 01', max_size=60).map(str.encode), st.booleans())
def test_malformed_files_never_surprise(tmp_path_factory, content, headed):
    path = tmp_path_factory.mktemp("bytes") / "responses.csv"
    path.write_bytes(HEADER.encode() * headed + content)
    graph = read_or_refused(cg.read_csv, path)
    assert graph is None or len(graph.responses) > 0
    read_or_refused(cg.read_panoptes, path, task="T0")
    read_or_refused(cg.read_parquet, path)
    read_or_refused(cg.load, path)


@given(
    st.lists(ATTRIBUTES, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), ATTRIBUTES), max_size=4),
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_malformed_networks_never_surprise(nodes, edges, kind):
    network = kind()
    for number, attributes in enumerate(nodes):
        network.add_nodes_from([(number, {"kind": "volunteer" if number % 2 else "item", **attributes})])
    for left, right, attributes in edges:
        if left < len(nodes) and right < len(nodes):
            network.add_edges_from([(left, right, {"label": "yes", **attributes})])
    graph = read_or_refused(cg.CrowdGraph.from_networkx, network)
    assert graph is None or len(graph.responses) == network.number_of_edges()
