"""Files whose kind, delimiter and columns are guessed."""

import gzip
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import read
from crowdgraph.errors import ColumnError, InputError, ParameterError, TimeError
from crowdgraph.io.any_file import convert

ROWS = [("anna", "x", "yes", "2026-03-01"), ("bert", "x", "no", "2026-03-02"), ("anna", "y", "no", "2026-03-03")]


def lines(header, mark=","):
    return "\n".join([mark.join(header), *(mark.join(row[: len(header)]) for row in ROWS)]) + "\n"


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
def test_columns_are_guessed_and_named(write, expected, header):
    reading = read(write(lines(header)))
    assert reading.graph.equals(expected)
    assert tuple(reading.columns.values()) == header
    assert bool(reading.notes) == (header[0] != "volunteer")
    if reading.notes:
        assert f"{header[0]} for the volunteer" in reading.notes[0]


@given(st.sampled_from(",;\t|"), st.booleans(), st.booleans())
def test_delimiters_and_compression_are_recognised(tmp_path_factory, mark, packed, marked):
    folder = tmp_path_factory.mktemp("files")
    content = ("\ufeff" if marked else "") + lines(("volunteer", "item", "label", "time"), mark)
    path = folder / ("r.csv.gz" if packed else "r.csv")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert len(read(path).graph.responses) == 3


def test_named_columns_come_before_guesses(write, expected):
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


def test_gold_may_be_probabilities(write):
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


def test_rows_with_gaps_are_left_out_and_counted(write):
    path = write("volunteer,item,label\na,x,yes\nb,x,\n")
    reading = read(path, missing="drop")
    assert len(reading.graph.responses) == 1
    assert "1 of 2 rows are left out" in reading.notes[0]


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


def test_gold_that_cannot_be_read_is_named(tmp_path, write):
    path = write(lines(("volunteer", "item", "label")))
    with pytest.raises(InputError, match="There is no file"):
        read(path, gold=tmp_path / "nothing.csv")
    with pytest.raises(ColumnError, match="no column for the item among 'a', 'b'"):
        read(path, gold=write("a,b\n1,2\n", "gold.csv"))


def test_saved_graphs_have_no_columns_to_name(tmp_path, expected):
    expected.save(tmp_path / "g.crowd")
    with pytest.raises(ParameterError, match="no columns to name"):
        read(tmp_path / "g.crowd", columns={"item": "item"})


def test_files_that_may_not_be_read_are_named(write, monkeypatch):
    path = write(lines(("volunteer", "item", "label")))

    def refused(*args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(InputError, match="cannot be read: Permission denied; check the path and its permissions"):
        read(path)


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


def test_classes_that_differ_only_in_case_are_noted(write):
    path = write(lines(("volunteer", "item", "label")))
    reading = read(path, gold=write("item,label\nx,Yes\ny,NO\n", "gold.csv"))
    assert "differ only in case; a typo? " in reading.notes[-1]
    assert "'Yes' and 'yes'" in reading.notes[-1]
    other = read(path, gold=write("item,label\nx,good\ny,bad\n", "gold.csv"))
    assert not any("case" in note for note in other.notes)


def test_files_that_hold_a_graph_extend_another(tmp_path, expected):
    expected.first(2).save(tmp_path / "new.crowd")
    older = cg.CrowdGraph.from_responses(
        {"volunteer": ["zoe"], "item": ["x"], "label": ["yes"], "time": ["2026-02-01"]}, labels=["no", "yes"]
    )
    assert read(tmp_path / "new.crowd", extend=older).graph.n_responses == 3


def test_an_export_has_no_columns_to_name(write):
    path = write("user_name,created_at,annotations,subject_ids\nanna,2026-03-01 10:00:00 UTC,[],17\n")
    with pytest.raises(ParameterError, match="The columns of a Zooniverse export are known; leave out their names"):
        read(path, columns={"item": "subject_ids"})


def test_the_way_around_times_of_parquet_files_is_named(tmp_path):
    columns = {"volunteer": ["a"], "item": ["x"], "label": ["y"], "time": ["soon"]}
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    for reading in (read, lambda path: convert([path], tmp_path / "store")):
        with pytest.raises(TimeError, match=r"'soon' in row 0.* Or leave the times out: "):
            reading(tmp_path / "r.parquet")
