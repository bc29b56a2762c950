"""Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import InputError
from crowdgraph.io import parquet


@given(graphs(id_kinds=("int", "str", "date")))
def test_nothing_is_lost_through_parquet(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("parquet")
    for name in ("responses", "gold", "volunteers"):
        pq.write_table(graph.to_arrow(table=name), folder / f"{name}.parquet", row_group_size=3)
    restored = cg.read_parquet(
        folder / "responses.parquet",
        gold=folder / "gold.parquet",
        classes=graph.classes,
        labels=graph.labels,
        volunteers=graph.to_arrow(table="volunteers"),
        items=graph.to_arrow(table="items"),
    )
    assert restored.equals(graph)


def test_columns_stored_as_codes_are_read_as_codes(tmp_path):
    """Text that repeats is read without hashing every row; row groups with other dictionaries still agree."""
    names = [f"volunteer-{code % 7 if code < 5000 else 3 + code % 9}" for code in range(10_000)]
    table = pa.table({"volunteer": names, "item": [f"i{code}" for code in range(10_000)], "label": ["a", "b"] * 5000})
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=1000)
    assert cg.read_parquet(tmp_path / "r.parquet").equals(cg.CrowdGraph.from_responses(table))


def test_several_files_and_directories_are_one_table(tmp_path, columns):
    table = pa.table(columns)
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    pq.write_table(table.slice(3), paths[0])
    pq.write_table(table.slice(0, 3), paths[1])
    expected = cg.CrowdGraph.from_responses(columns)
    assert cg.read_parquet(paths[::-1]).equals(expected)
    assert cg.read_parquet(str(tmp_path)).equals(expected)


def test_only_chosen_columns_are_read(tmp_path, columns):
    pq.write_table(pa.table({**columns, "extra": range(6)}), tmp_path / "r.parquet")
    assert "extra" in cg.read_parquet(tmp_path / "r.parquet").responses.attributes
    graph = cg.read_parquet(tmp_path / "r.parquet", columns=["volunteer", "item", "label"])
    assert not graph.responses.attributes
    assert graph.responses.clock.kind == "order"


def test_columns_of_unequal_length_are_damage(tmp_path, monkeypatch):
    path = tmp_path / "responses.parquet"
    columns = {"volunteer": ["a", "b"], "item": [1, 1], "label": ["x", "y"], "note": ["p", "q"]}
    pq.write_table(pa.table(columns), path)
    read = parquet._read
    monkeypatch.setattr(parquet, "_read", lambda *file, **how: read(*file, **how)[: 0 if file[1] == "note" else 2])
    with pytest.raises(InputError, match=r"Column 'note' of .* has 0 values for 2 rows: the file is damaged"):
        cg.read_parquet(path, columns=["note", "volunteer", "item", "label"])
