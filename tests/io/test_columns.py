"""Names of columns: tables with those of crowd-kit, `worker` and `task`, are read as they are."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import ColumnError

OURS = {"volunteer": ["007", "7", "007"], "item": ["1", "1", "2"], "label": ["yes", "no", "no"], "score": [1, 2, 3]}
THEIRS = {{"volunteer": "worker", "item": "task"}.get(name, name): column for name, column in OURS.items()}
GRAPH = cg.CrowdGraph.from_responses(OURS)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_with_their_names(kind):
    assert cg.CrowdGraph.from_responses(kind(THEIRS)).equals(GRAPH)


def test_files_with_their_names(tmp_path):
    pd.DataFrame(THEIRS).to_csv(tmp_path / "x.csv", index=False)
    pq.write_table(pa.table(THEIRS), tmp_path / "x.parquet")
    # Ids stay text: worker 007 is not worker 7.
    assert cg.read_csv(tmp_path / "x.csv").equals(GRAPH)
    assert cg.read_parquet(tmp_path / "x.parquet").equals(GRAPH)


def test_gold_and_node_tables_are_named_as_the_responses(tmp_path):
    known_gold = {"1": "yes"}
    expected = cg.CrowdGraph.from_responses(OURS, gold=known_gold, items={"item": ["2", "1"], "size": [5, 6]})
    series = pd.Series(["yes"], index=pd.Index(["1"], name="task"), name="true_label")
    for gold in (series, {"task": ["1"], "label": ["yes"]}):
        graph = cg.CrowdGraph.from_responses(THEIRS, gold=gold, items={"task": ["2", "1"], "size": [5, 6]})
        assert graph.equals(expected)
    pd.DataFrame(THEIRS).to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "gold.csv").write_text("task,label\n1,yes\n")
    assert dict(cg.read_csv(tmp_path / "x.csv", gold=tmp_path / "gold.csv").gold) == known_gold


def test_our_names_come_first():
    both = {**OURS, "worker": ["x", "y", "z"], "task": ["T0", "T0", "T1"]}
    graph = cg.CrowdGraph.from_responses(both)
    assert graph.volunteers.ids.tolist() == ["007", "7"]
    assert graph.responses.attributes["task"].tolist() == ["T0", "T0", "T1"]


def test_a_further_column_of_a_csv_file_is_read_as_what_it_looks_like(tmp_path):
    (tmp_path / "x.csv").write_text("volunteer,item,label,task\nanna,x,yes,3\n")
    assert cg.read_csv(tmp_path / "x.csv").responses.attributes["task"].tolist() == [3]


@given(st.sets(st.sampled_from(["volunteer", "item", "worker", "task"])))
def test_theirs_only_if_both_are_there_and_none_of_ours(names):
    table = {name: [f"a {name}"] for name in (*names, "label")}
    theirs = {"worker", "task"} <= names and not {"volunteer", "item"} & names
    if not theirs and not {"volunteer", "item"} <= names:
        with pytest.raises(ColumnError, match="no column"):
            cg.CrowdGraph.from_responses(table)
    else:
        graph = cg.CrowdGraph.from_responses(table)
        volunteer, item = ("worker", "task") if theirs else ("volunteer", "item")
        assert [*graph.volunteers, *graph.items] == [f"a {volunteer}", f"a {item}"]
