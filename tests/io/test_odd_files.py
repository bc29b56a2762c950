"""What the fuzz of readers brought to light: files that are nearly valid are refused in our words."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdgraph as cg
from crowdgraph.analysis.update import read_results
from crowdgraph.errors import ColumnError, InputError, ParameterError, StoreError


@pytest.fixture
def store(graph, tmp_path):
    graph.save(tmp_path / "crowd.store", format="columns")
    return tmp_path / "crowd.store"


def manifest_of(store, **changes):
    """Change the manifest of a store, which names the sizes that its files have."""
    manifest = json.loads((store / "manifest.json").read_text()) | changes
    for name in manifest["files"]:
        manifest["files"][name]["bytes"] = (store / name).stat().st_size
    (store / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "column",
    [pa.array([2**31 - 1, 0], pa.date32()), pa.array([0, 1], pa.timestamp("ms", "Not/A_Zone"))],
    ids=["a date far from ours", "an unknown zone"],
)
@pytest.mark.parametrize("name", ["volunteer", "extra"])
def test_values_that_python_cannot_hold(column, name, tmp_path):
    table = {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["yes", "no"]}
    pq.write_table(pa.table({**table, name: column}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="has values that Python cannot hold"):
        cg.read_parquet(tmp_path / "x.parquet")


def test_a_column_that_is_there_twice_is_not_converted(tmp_path):
    columns = [pa.array(["a"])] * 4
    pq.write_table(pa.table(columns, names=["volunteer", "item", "label", "label"]), tmp_path / "x.parquet")
    with pytest.raises(ColumnError, match="has columns of the same name: 'label'"):
        cg.build_store(tmp_path / "x.parquet", tmp_path / "x.store")


def test_a_crowd_without_classes_is_not_converted(tmp_path):
    (tmp_path / "x.csv").write_text("volunteer,item,label\nanna,x,\n")
    with pytest.raises((InputError, ParameterError), match="There are no classes"):
        cg.build_store(tmp_path / "x.csv", tmp_path / "x.store", missing="keep")
    assert not (tmp_path / "x.store").exists()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"computed": np.zeros(2)}, "delete it"),
        ({"settings": {"version": 1, "clock": {}, "classes": [{"float": "0x1p+9999"}]}}, "are damaged"),
    ],
)
def test_settings_of_other_kinds(record, message, graph):
    network = graph.to_networkx()
    network.graph["crowdgraph"] = {**network.graph["crowdgraph"], **record}
    with pytest.raises(InputError, match=message):
        cg.CrowdGraph.from_networkx(network)


def test_attributes_with_nan_inside_are_equal_to_themselves(columns, tmp_path):
    graph = cg.CrowdGraph.from_responses({**columns, "place": [(1, float("nan"))] * 6})
    graph.save(tmp_path / "x.crowd")
    assert cg.load(tmp_path / "x.crowd").equals(graph)
    assert not cg.CrowdGraph.from_responses({**columns, "place": [(1, 2.0)] * 6}).equals(graph)


def test_a_store_with_fewer_volunteers_than_it_says(store):
    table = pq.read_table(store / "volunteers.parquet")
    pq.write_table(table.slice(0, 2), store / "volunteers.parquet")
    manifest_of(store)
    for read in (cg.load, lambda path: cg.distributed.fit(cg.IBCC(), path)):
        with pytest.raises(StoreError, match="it has 2 volunteers; expected 3"):
            read(store)


def test_a_response_that_is_no_answer_among_what_are_all_answers(store):
    """Compiled code would write beside its tables."""
    for order in ("responses", "by_item"):
        labels = np.load(store / order / "label.npy", mmap_mode="r+")
        labels[2] = -1
    for read in (cg.load, lambda path: cg.distributed.fit(cg.IBCC(), path)):
        with pytest.raises(StoreError, match="codes in 'label' run from -1 to 1; expected 0 to 1"):
            read(store)


def test_a_header_that_is_no_python(store):
    path = store / "responses" / "label.npy"
    path.write_bytes(path.read_bytes().replace(b"(6,)", b"(6,("))
    with pytest.raises(StoreError, match=r"'responses/label' .* cannot be read"):
        cg.load(store)


def test_a_manifest_of_another_build(store):
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**manifest, "files": dict.fromkeys(manifest["files"])}))
    for read in (cg.load, cg.open_store):
        with pytest.raises(StoreError, match="is damaged: its parts do not fit together"):
            read(store)


def test_a_record_of_another_build(graph, tmp_path):
    graph.save(tmp_path / "graph.crowd")
    (tmp_path / "run.json").write_text(json.dumps({"settings": ["ibcc"], "source": {}, "commands": []}))
    with pytest.raises(StoreError, match="is damaged: its parts do not fit together"):
        read_results(tmp_path)
