"""Excel workbooks: what is written is read as it was, and no text becomes a formula."""

import datetime as dt
import sys

import pyarrow as pa
import pytest
from cli.commands import figures_left_out, run

import crowdgraph as cg
from crowdgraph.analysis import read
from crowdgraph.errors import InputError, MissingPackageError, StoreError
from crowdgraph.io.excel import excel_columns, write_excel


@pytest.fixture
def openpyxl():
    return pytest.importorskip("openpyxl")


def test_without_openpyxl_an_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "r.xlsx").write_bytes(b"")
    (tmp_path / "r.csv").write_text("volunteer,item,label\na,x,y\n")
    assert (
        "pip install crowdgraph[excel]" in run("analyse", tmp_path / "r.csv", "--excel", "--out", tmp_path / "o").stderr
    )
    assert not (tmp_path / "o").exists()
    for call in (lambda: excel_columns(tmp_path / "r.xlsx"), lambda: write_excel({}, tmp_path / "w.xlsx")):
        with pytest.raises(MissingPackageError, match=r"pip install crowdgraph\[excel\]"):
            call()
    assert not (tmp_path / "w.xlsx").exists()


def test_a_workbook_is_read_like_a_table(tmp_path, openpyxl):
    book = openpyxl.Workbook()
    for row in (
        ["volunteer", "item", "label", "time", None],
        [7, "x", "yes", dt.datetime(2026, 3, 1, 10)],
        ["anna", 4.0, "no", dt.datetime(2026, 3, 2)],
        [None, None, None, None],
    ):
        book.active.append(row)
    book.save(tmp_path / "r.xlsx")
    gold = openpyxl.Workbook()
    for row in (["item", "label"], [4, "no"]):
        gold.active.append(row)
    gold.save(tmp_path / "gold.xlsx")
    reading = read(tmp_path / "r.xlsx", gold=tmp_path / "gold.xlsx")
    assert reading.kind == "excel"
    expected = {"volunteer": ["7", "anna"], "item": ["x", "4"], "label": ["yes", "no"]}
    expected["time"] = ["2026-03-01T10:00:00", "2026-03-02T00:00:00"]
    rows = [(one.volunteer, one.item, one.label) for one in reading.graph.responses]
    assert rows == [(one.volunteer, one.item, one.label) for one in cg.CrowdGraph.from_responses(expected).responses]
    assert dict(reading.graph.gold) == {"4": "no"}
    result = run("convert", tmp_path / "r.xlsx", tmp_path / "out.xlsx")
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "out.xlsx").graph.responses[1].volunteer == "anna"


def test_text_stays_text(tmp_path, openpyxl):
    names = ["=1+1", "@cmd", "-x", "+3", "plain", "a\x07b", "'=1"]
    write_excel({"volunteers": pa.table({"volunteer": names, "n": [*range(7)]})}, tmp_path / "v.xlsx")
    cells = [row[0] for row in openpyxl.load_workbook(tmp_path / "v.xlsx").active.iter_rows(min_row=2)]
    assert all(cell.data_type != "f" for cell in cells)
    assert [cell.value for cell in cells] == [*names[:5], "a\\x07b", "'=1"]
    assert cells[0].quotePrefix
    assert excel_columns(tmp_path / "v.xlsx")["n"] == [*range(7)]


def test_an_analysis_is_written_as_a_workbook(tmp_path, openpyxl):
    rows = [(f"v{n % 7}", f"i{n * 31 % 50}", "yes" if n % 3 else "no") for n in range(90)]
    lines = ["volunteer,item,label", *(",".join(row) for row in rows)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    with figures_left_out():
        out = ("--out", tmp_path / "out", "--snapshots", 0, "--model", "ibcc", "--quiet")
        result = run("analyse", tmp_path / "r.csv", "--excel", *out)
    assert result.exit_code == 0, result.output
    book = openpyxl.load_workbook(tmp_path / "out" / "tables.xlsx")
    assert book.sheetnames[:2] == ["items", "volunteers"]
    items = [row[0].value for row in book["items"].iter_rows(min_row=2)]
    assert sorted(items) == sorted(cg.load(tmp_path / "out" / "graph.crowd").items)


def test_bad_workbooks_are_refused(tmp_path, openpyxl, monkeypatch):
    (tmp_path / "text.xlsx").write_text("volunteer,item,label\na,x,y\n")
    with pytest.raises(InputError, match="cannot be read as an Excel workbook"):
        read(tmp_path / "text.xlsx")
    openpyxl.Workbook().save(tmp_path / "empty.xlsx")
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path / "empty.xlsx")
    write_excel({"t": pa.table({"volunteer": ["a"] * 9, "item": ["x"] * 9, "label": ["y"] * 9})}, tmp_path / "r.xlsx")
    monkeypatch.setenv("CROWDGRAPH_MAX_UNPACKED", "1KB")
    with pytest.raises(InputError, match="CROWDGRAPH_MAX_UNPACKED"):
        read(tmp_path / "r.xlsx")
    monkeypatch.setattr("crowdgraph.io.excel.MAX_ROWS", 5)
    with pytest.raises(StoreError, match=r"A sheet holds 4 rows, and the t are 9"):
        write_excel({"t": pa.table({"a": [1] * 9})}, tmp_path / "big.xlsx")
