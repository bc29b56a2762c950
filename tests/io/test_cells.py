"""Cells that spreadsheets would run as formulas: neutral in our files, and read as they were."""

import csv

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import analyse, write_results
from crowdgraph.errors import InputError
from crowdgraph.io._cells import write_csv

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-a", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1", "\uff1d1", "-"]
HARMLESS = ["-1", "+2.5", "-1e-5", "anna", "'t Hooft", "", "1-2", "a=b"]
cells = st.text(st.sampled_from("=+-@'\t\r1a.e"), max_size=4) | st.text(max_size=5).filter(
    lambda text: "\0" not in text
)


def written(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def columns(ids):
    return {"volunteer": ids, "item": ids[::-1], "label": ["u", *["v"] * (len(ids) - 1)], "note": ids}


def test_formulas_get_an_apostrophe_and_nothing_else_does(tmp_path):
    table = pa.table(
        {"id": FORMULAS + HARMLESS, "n": [-1.5] * 18, "coded": pa.array(FORMULAS + HARMLESS).dictionary_encode()}
    )
    write_csv(table, tmp_path / "x.csv")
    expected = [f"'{text}" for text in FORMULAS] + HARMLESS
    rows = written(tmp_path / "x.csv")
    assert [row["id"] for row in rows] == expected
    assert [row["coded"] for row in rows] == expected
    assert {row["n"] for row in rows} == {"-1.5"}
    write_csv(table, tmp_path / "raw.csv", raw_cells=True)
    assert [row["id"] for row in written(tmp_path / "raw.csv")] == FORMULAS + HARMLESS


@given(ids=st.lists(cells.filter(bool), min_size=1, max_size=8))
def test_any_text_comes_back(ids, tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "x.csv"
    write_csv(pa.table(columns(ids)), path)
    graph = cg.read_csv(path)
    assert [(row.volunteer, row.item) for row in graph.responses] == list(zip(ids, ids[::-1], strict=True))


def test_the_store_and_the_gold_have_the_names_as_they_were(tmp_path):
    ids = [text for text in FORMULAS if text.strip()]
    write_csv(pa.table(columns(ids)), tmp_path / "x.csv")
    write_csv(pa.table({"item": ids, "label": ["u"] * len(ids)}), tmp_path / "gold.csv")
    graph = cg.read_csv(tmp_path / "x.csv", gold=tmp_path / "gold.csv")
    assert set(graph.gold) == set(ids)
    store = cg.build_store(tmp_path / "x.csv", tmp_path / "x.store", gold=tmp_path / "gold.csv")
    assert store.graph().volunteers.ids.tolist() == ids
    assert set(store.graph().gold) == set(ids)


def test_names_of_other_programs_are_not_mixed_up(tmp_path):
    """In a file where formulas stand bare, an apostrophe belongs to the name of another volunteer."""
    path = tmp_path / "x.csv"
    path.write_text("volunteer,item,label\n-bob,x,u\n'-bob,x,v\n")
    assert cg.read_csv(path).volunteers.ids.tolist() == ["-bob", "'-bob"]
    with pytest.raises(InputError, match="begin like a formula, some of them behind an apostrophe"):
        cg.build_store(path, tmp_path / "x.store")


def test_results_are_neutral_unless_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdgraph.analysis.output.draw_figures", lambda results, folder: folder.mkdir())
    graph = cg.CrowdGraph.from_responses({"volunteer": ["=1+1", "b"], "item": ["@x", "y"], "label": ["u", "v"]})
    analysis = analyse(graph, model="majority_vote")
    for raw, mark in ((False, "'"), (True, "")):
        out = write_results(analysis, tmp_path / f"raw is {raw}", raw_cells=raw)
        assert {row["volunteer"] for row in written(out / "volunteers.csv")} == {f"{mark}=1+1", "b"}
        assert {row["item"] for row in written(out / "items.csv")} == {f"{mark}@x", "y"}
