"""Text that no file can hold, half characters and bytes that are not UTF-8, is refused wherever it comes in."""

import json
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import crowdgraph as cg
from crowdgraph.errors import ColumnError, CrowdGraphError, IdError, InputError, ParameterError, TimeError
from crowdgraph.io._cells import write_csv

# Half of an emoji, as text that was cut in the middle has it, and a checksum.
HALF, BYTES = "x\ud83d", b"\xff\x00"
TABLE = {
    "volunteer": ["anna", "bert", "anna", "bert"],
    "item": ["x", "x", "y", "y"],
    "label": ["no", "yes", "yes", "no"],
}
NO_TEXT = "is no text that a file can hold"


def with_value(column, value):
    return {
        **TABLE,
        column: [TABLE[column][0], *[value if name == TABLE[column][1] else name for name in TABLE[column]][1:]],
    }


@pytest.mark.parametrize("column", TABLE)
@pytest.mark.parametrize("value", [HALF, BYTES, ("a", HALF), frozenset([BYTES])])
def test_ids_and_labels_are_refused_with_their_row(column, value):
    with pytest.raises(IdError, match=rf"The {column} in row \d is .*{NO_TEXT}") as caught:
        cg.CrowdGraph.from_responses(with_value(column, value))
    assert repr(value)[:20] in str(caught.value)
    # Whoever prints the error can.
    str(caught.value).encode()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", BYTES, b"a", BYTES]),
        pa.array([b"a", BYTES, b"a", BYTES]).dictionary_encode(),
        pa.array([b"ab", BYTES, b"ab", BYTES], pa.binary(2)),
        pd.Series(["a", HALF, "a", HALF], dtype=object),
        np.array(["a", HALF, "a", HALF], dtype=object),
    ],
)
def test_columns_of_any_library_are_refused_with_the_first_row(column):
    with pytest.raises(IdError, match=f"The volunteer in row 1 is .*{NO_TEXT}"):
        cg.CrowdGraph.from_responses({**TABLE, "volunteer": column})


def test_arrays_of_text_that_numpy_cannot_read_are_refused():
    with pytest.raises(ColumnError, match="Column 'volunteer' of <U2 cannot be read"):
        cg.CrowdGraph.from_responses({**TABLE, "volunteer": np.array(["a", HALF, "a", HALF])})


@pytest.mark.parametrize("column", ["volunteer", "note"])
def test_what_arrow_takes_for_text_is_refused(column):
    offsets = pa.py_buffer(np.arange(5, dtype=np.int32))
    lies = pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"\xff" * 4)])
    with pytest.raises(InputError, match="holds bytes that are not UTF-8"):
        cg.CrowdGraph.from_responses({**TABLE, column: lies})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"classes": ["no", "yes", HALF]}, ParameterError),
        ({"labels": ["no", "yes", BYTES]}, ParameterError),
        ({"gold": {"x": HALF}}, IdError),
        ({"gold": {HALF: "yes"}}, IdError),
        ({"volunteers": {"volunteer": ["anna", "bert", HALF]}}, IdError),
        ({"volunteers": {"volunteer": ["anna", "bert"], "team": ["a", HALF]}}, ColumnError),
        ({"items": {"item": ["x", "y"], HALF: [1, 2]}}, ColumnError),
    ],
)
def test_options_are_refused(options, error):
    with pytest.raises(error, match=NO_TEXT):
        cg.CrowdGraph.from_responses(TABLE, **options)


@pytest.mark.parametrize(
    ("columns", "error"),
    [({"note": [HALF] * 4}, ColumnError), ({HALF: [1] * 4}, ColumnError), ({"time": [HALF] * 4}, TimeError)],
)
def test_further_columns_are_refused(columns, error):
    with pytest.raises(error, match=NO_TEXT):
        cg.CrowdGraph.from_responses({**TABLE, **columns})


def test_responses_that_are_added_are_refused():
    with pytest.raises(IdError, match=f"The volunteer in row 1 is .*{NO_TEXT}"):
        cg.CrowdGraph.from_responses(TABLE).extend(with_value("volunteer", HALF))


@pytest.mark.parametrize(
    "make",
    [
        lambda: cg.VolunteerNetwork(ids=["a", HALF], weights=np.array([[0.0, 1], [1, 0]]), method="m"),
        lambda: cg.Communities.from_labels({"a": 0, HALF: 1}),
        lambda: cg.simulate.crowd(classes=["a", HALF]),
        lambda: cg.StreamingIBCC(classes=["a", HALF]),
    ],
)
def test_whatever_has_ids_or_classes_refuses_them(make):
    with pytest.raises(CrowdGraphError, match=NO_TEXT):
        make()


def test_a_graph_of_networkx_is_refused():
    network = cg.CrowdGraph.from_responses(TABLE).to_networkx()
    network.add_node(HALF, kind="volunteer")
    with pytest.raises(IdError, match=NO_TEXT):
        cg.CrowdGraph.from_networkx(network)


@pytest.mark.parametrize("place", ["volunteers", "labels", "note"])
def test_saved_graphs_are_refused(tmp_path, place):
    graph = cg.CrowdGraph.from_responses({**TABLE, "note": [("a",), "b", "c", "d"]})
    graph.save(tmp_path / "graph.crowd")
    with zipfile.ZipFile(tmp_path / "graph.crowd") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = {"volunteers": "anna", "labels": "yes", "note": "d"}[place]
    manifest = json.dumps(json.loads(parts["manifest.json"])).replace(f'"{text}"', json.dumps(HALF))
    assert json.dumps(HALF) in manifest
    with zipfile.ZipFile(tmp_path / "graph.crowd", "w") as archive:
        for name, content in {**parts, "manifest.json": manifest}.items():
            archive.writestr(name, content)
    with pytest.raises(CrowdGraphError, match=NO_TEXT):
        cg.load(tmp_path / "graph.crowd")


def test_bytes_that_are_text_are_ids_and_other_text_is_none_of_it():
    table = {**TABLE, "volunteer": [b"anna", "Zoë".encode(), b"anna", b"anna"], "item": ["😀", "\ufffd", "x", "x"]}
    graph = cg.CrowdGraph.from_responses({**table, "picture": [BYTES] * 4})
    assert graph.volunteers.ids.tolist() == [b"anna", "Zoë".encode()]
    assert graph.items.ids.tolist() == ["😀", "\ufffd", "x"]
    assert graph.to_pandas()["picture"].tolist() == [BYTES] * 4


def test_attributes_of_other_bytes_are_not_written_as_text(tmp_path):
    table = cg.CrowdGraph.from_responses({**TABLE, "picture": [BYTES] * 4}).to_arrow()
    with pytest.raises(ColumnError, match="Column 'picture' holds bytes that are not UTF-8"):
        write_csv(table, tmp_path / "table.csv")
    assert write_csv(table.drop_columns("picture"), tmp_path / "table.csv") is None
    assert cg.read_csv(tmp_path / "table.csv").n_responses == 4
