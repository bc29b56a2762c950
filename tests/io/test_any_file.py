"""Files whose kind, delimiter and columns are guessed."""

import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import read
from crowdgraph.errors import ColumnError, InputError, ParameterError

ROWS = [("anna", "x", "yes", "2026-03-01"), ("bert", "x", "no", "2026-03-02"), ("anna", "y", "no", "2026-03-03")]


def lines(header, mark=","):
    return "\n".join([mark.join(header), *(mark.join(row[: len(header)]) for row in ROWS)]) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="responses.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def expected():
    columns = dict(zip(("volunteer", "item", "label", "time"), zip(*ROWS, strict=True), strict=True))
    return cg.CrowdGraph.from_responses({name: list(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    "header",
    [
        ("volunteer", "item", "label", "time"),
        ("worker", "task", "label", "timestamp"),
        ("user_name", "subject_id", "answer", "created_at"),
        ("Annotator", "Image", "Response", "Date"),
        ("agent", "object", "vote", "submitted_at"),
    ],
)
def test_columns_are_guessed_and_said(write, expected, header):
    reading = read(write(lines(header)))
    assert reading.graph.equals(expected)
    assert tuple(reading.columns.values()) == header
    assert bool(reading.notes) == (header[0] != "volunteer")
    if reading.notes:
        assert f"{header[0]} for the volunteer" in reading.notes[0]


@given(st.sampled_from(",;\t|"), st.booleans(), st.booleans())
def test_delimiters_and_compression(tmp_path_factory, mark, packed, marked):
    folder = tmp_path_factory.mktemp("files")
    content = ("\ufeff" if marked else "") + lines(("volunteer", "item", "label", "time"), mark)
    path = folder / ("r.csv.gz" if packed else "r.csv")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert len(read(path).graph.responses) == 3


def test_named_columns_win(write, expected):
    path = write(lines(("label", "volunteer", "item", "time")))
    columns = {"volunteer": "label", "item": "volunteer", "label": "item"}
    assert read(path, columns=columns).graph.equals(expected)


def test_the_surest_name_is_taken(write):
    path = write("user_id,user_name,item,label\n1,anna,x,yes\n")
    reading = read(path)
    assert reading.columns["volunteer"] == "user_name"
    assert reading.graph.responses.table.attributes["user_id"].tolist() == [1]


@pytest.mark.parametrize("header", ["item,label", "task,truth", "subject_id;gold"])
def test_gold_has_names_of_its_own(write, header):
    mark = ";" if ";" in header else ","
    gold = write(f"{header}\nx{mark}yes\n", "gold.csv")
    reading = read(write(lines(("worker", "task", "answer"))), gold=gold)
    assert dict(reading.graph.gold) == {"x": "yes"}


def test_soft_gold(write):
    gold = write("item,no,yes\nx,0.25,0.75\n", "gold.csv")
    reading = read(write(lines(("volunteer", "item", "label"))), gold=gold)
    assert reading.graph.gold.probs[0].tolist() == [0.25, 0.75]


def test_ids_stay_text(write):
    gold = write("task,class\n007,1\n", "gold.csv")
    reading = read(write("worker,task,label\n01,007,1\n1,7,0\n"), gold=gold)
    assert list(reading.graph.volunteers) == ["01", "1"]
    assert dict(reading.graph.gold) == {"007": "1"}


def test_parquet_and_saved_graphs(tmp_path, write, expected):
    columns = dict(zip(("worker", "task", "label", "time"), map(list, zip(*ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    pq.write_table(pa.table({"task": ["x"], "label": ["yes"]}), tmp_path / "g.parquet")
    reading = read(tmp_path / "r.parquet", gold=tmp_path / "g.parquet")
    assert reading.kind == "parquet"
    assert reading.graph.with_gold(None).equals(expected)
    assert dict(reading.graph.gold) == {"x": "yes"}
    expected.save(tmp_path / "g.crowd")
    saved = read(tmp_path / "g.crowd", gold=write("item,label\ny,no\n", "gold.csv"))
    assert saved.kind == "crowd"
    assert dict(saved.graph.gold) == {"y": "no"}
    assert read(tmp_path / "g.crowd", classes=["maybe", "no", "yes"]).graph.classes == ("maybe", "no", "yes")


def test_an_export_is_known_by_its_columns(write):
    answers = json.dumps([{"task": "T0", "value": "whale"}]).replace('"', '""')
    path = write(f'user_name,created_at,annotations,subject_ids\nanna,2026-03-01 10:00:00 UTC,"{answers}",17\n')
    reading = read(path, gold=write("subject_id,truth\n17,whale\n", "gold.csv"))
    assert reading.kind == "panoptes"
    assert dict(reading.graph.gold) == {"17": "whale"}
    assert "T0" in reading.notes[0]
    with pytest.raises(InputError, match="No row answers the task 'T5'; the export asks 'T0'"):
        read(path, task="T5")
    with pytest.raises(ParameterError, match="columns of a Zooniverse export are known"):
        read(path, columns={"item": "subject_ids"})


def test_rows_with_gaps(write):
    path = write("volunteer,item,label\na,x,yes\nb,x,\n")
    reading = read(path, missing="drop")
    assert len(reading.graph.responses) == 1
    assert "1 of 2 rows are left out" in reading.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty; give a CSV file"),
        ("binary.csv", bytes(range(256)) * 9, "is not a text file"),
        (
            "cut.csv.gz",
            gzip.compress(np.random.default_rng(0).bytes(9000).hex().encode(), mtime=0)[:3000],
            "cut short|looks like",
        ),
        ("columns.csv", b"a,b,c\n1,2,3\n", "looks like the volunteer; it has 'a', 'b', 'c'"),
        ("header.csv", b"volunteer,item,label\n", "no rows"),
        ("short.csv", b"volunteer,item,label\na,x\n", "Expected 3 columns, got 2"),
        ("bad.parquet", b"volunteer,item,label\n", "cannot be read as Parquet"),
        ("bad.crowd", b"volunteer,item,label\n", "is not a saved graph"),
        ("latin.csv", "volunteer,item,label\nZoë,x,y\n".encode("latin-1"), "encoding='latin-1'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_bad_files(write, name, content, message):
    with pytest.raises(cg.errors.CrowdGraphError, match=message):
        read(write(content, name))


def test_delimiters_and_encodings_that_do_not_fit(write):
    path = write(lines(("volunteer", "item", "label")))
    with pytest.raises(ParameterError, match="delimiter='ab' must be a single ASCII character"):
        read(path, delimiter="ab")
    no_mark = write("volunteer,item,label\na,x,y\n".encode("utf-16-le"), "no_mark.csv")
    with pytest.raises(InputError, match="text in UTF-16, as spreadsheets save it; use encoding='utf-16'"):
        read(no_mark)
    for reader in (read, cg.read_csv):
        with pytest.raises(InputError, match="cannot be read as a CSV file in utf-16"):
            reader(no_mark, encoding="utf-16")


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("volunteer,item,label\na,,y\nb,x,\n", {}, "item in lines 2; label in lines 3. .* use --missing drop"),
        ("volunteer,item,label,time\na,x,y,soon\n", {}, "'soon' in line 2; .* Or leave the times out: --no-time."),
        ("who,item,label\na,x,y\n", {}, "Name it with --volunteer COLUMN."),
        ("volunteer,item,label\na,x,y\n", {"kind": "xml"}, "--format xml is not a choice"),
        ("volunteer,item,label\na,x,y\n", {"encoding": "klingon"}, "--encoding klingon is not a known encoding"),
        ("volunteer,item,label\na,x,y\na,x,y\n", {"duplicates": "error"}, "Use --duplicates first, last or all."),
    ],
)  # fmt: skip
def test_messages_are_worded_for_the_command_line(write, content, options, words):
    with pytest.raises(cg.errors.CrowdGraphError) as caught:
        read(write(content), **options)
    assert re.search(words, caught.value.message.wording("cli"))


def test_a_cut_file_is_called_so(write):
    """Enough of it is there to read the header."""
    content = "volunteer,item,label\n" + "".join(f"v{n},i{n * 7919 % 1000},{n % 2}\n" for n in range(9000))
    with pytest.raises(InputError, match="is cut short; copy or download it again"):
        read(write(gzip.compress(content.encode())[:9000], "r.csv.gz"))


def test_no_file(tmp_path, write):
    with pytest.raises(InputError, match="There is no file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="is a directory without Parquet files"):
        read(tmp_path)
    with pytest.raises(InputError, match="There is no file"):
        read(write(lines(("volunteer", "item", "label"))), gold=tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="Expected the path of a file; got 5"):
        read(5)


def test_no_permission(write, monkeypatch):
    path = write(lines(("volunteer", "item", "label")))

    def refused(*args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(InputError, match="cannot be read: Permission denied; check the path and its permissions"):
        read(path)


def test_names_that_are_no_columns(write):
    path = write(lines(("volunteer", "item", "label")))
    with pytest.raises(ColumnError, match="has no column 'user'; it has 'volunteer'"):
        read(path, columns={"volunteer": "user"})
    with pytest.raises(ParameterError, match="columns= names 'colour'"):
        read(path, columns={"colour": "x"})
    with pytest.raises(ColumnError, match="no column for the item among 'a', 'b'"):
        read(path, gold=write("a,b\n1,2\n", "gold.csv"))
    with pytest.raises(ParameterError, match="kind='xml'"):
        read(path, kind="xml")
    saved = path.with_name("g.crowd")
    read(path).graph.save(saved)
    with pytest.raises(ParameterError, match="no columns to name"):
        read(saved, columns={"item": "item"})


def test_directories_of_results_and_reports(write, tmp_path, expected):
    page = write("<html>", "report.html")
    with pytest.raises(InputError, match=r"is a report, .* give the responses, or a saved graph\.crowd"):
        read(page)
    expected.save(tmp_path / "graph.crowd")
    with pytest.raises(InputError, match=r"is a report, .*graph\.crowd' beside it"):
        read(page)
    reading = read(tmp_path)
    assert reading.graph.equals(expected)
    assert reading.kind == "crowd"
    assert "graph.crowd' is read" in reading.notes[0]


def test_classes_that_differ_in_case_are_said(write):
    path = write(lines(("volunteer", "item", "label")))
    reading = read(path, gold=write("item,label\nx,Yes\ny,NO\n", "gold.csv"))
    assert "differ only in case; a typo? " in reading.notes[-1]
    assert "'Yes' and 'yes'" in reading.notes[-1]
    other = read(path, gold=write("item,label\nx,good\ny,bad\n", "gold.csv"))
    assert not any("case" in note for note in other.notes)
