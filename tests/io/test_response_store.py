"""Stores of columns: a graph of maps is an ordinary graph, and damage is found."""

import json
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphWarning, IdError, StoreError
from crowdgraph.io._files import file_digest
from crowdgraph.io.any_file import read
from crowdgraph.io.columns import STORE, is_store


@pytest.fixture(scope="module")
def graph():
    crowd = cg.simulate.crowd(n_volunteers=12, n_items=40, n_responses=300, gold=0.2, seed=0).graph
    table = crowd.to_arrow()
    notes = [None if row % 7 == 0 else f"note {row % 5}" for row in range(len(table))]
    table = table.append_column("note", [notes]).append_column("seconds", [[row * 0.5 for row in range(len(table))]])
    return cg.CrowdGraph.from_responses(table, gold=dict(crowd.gold), classes=crowd.classes)


@pytest.fixture(scope="module")
def saved(graph, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "crowd.store"
    graph.save(path, format="columns")
    return path


@pytest.fixture
def store(saved, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(saved, tmp_path / "copy.store")


def is_mapped(column):
    while isinstance(column, np.ndarray) and column.base is not None:
        column = column.base
    return not isinstance(column, np.ndarray)


def test_a_stored_graph_is_an_ordinary_graph(graph, saved):
    stored = cg.load(saved)
    assert stored.equals(graph)
    assert is_mapped(stored.responses.item)
    middle = graph.responses.time[150]
    for name, moments in (("before", [middle]), ("first", [100]), ("window", [graph.responses.time[50], middle])):
        view, expected = (getattr(one, name)(*moments) for one in (stored, graph))
        assert view.equals(expected)
        assert is_mapped(view.responses.item)
    assert stored.responses.attributes["note"].tolist() == graph.responses.attributes["note"].tolist()
    assert stored.with_gold({graph.items.ids[0]: graph.classes[0]}).gold.known.sum() == 1
    for part in ("answers", "degree"):
        assert str(getattr(stored, part)) == str(getattr(graph, part))
    assert stored.answers.n_repeats == graph.answers.n_repeats
    assert np.array_equal(stored.answers.n_by_item, graph.answers.n_by_item)


def test_results_are_the_same(graph, saved):
    stored = cg.load(saved)
    fits = [cg.IBCC().fit(one) for one in (graph, stored)]
    assert np.array_equal(fits[0].item_probs, fits[1].item_probs)
    networks = [cg.networks.task_cooccurrence(one) for one in (graph, stored)]
    assert (networks[0].weights != networks[1].weights).nnz == 0
    assert list(stored.annotate(fits[1]).annotations) == ["ibcc"]


def column_is_mapped(graph):
    return is_mapped(graph.responses.item), graph.n_responses, graph.responses.attributes["note"].tolist()[:3]


def test_other_processes_get_maps(graph, saved, store):
    stored = cg.load(saved)
    data = pickle.dumps(stored.before(graph.responses.time[150]))
    assert len(data) < 40_000
    assert pickle.loads(data).equals(graph.before(graph.responses.time[150]))  # noqa: S301
    assert column_is_mapped(pickle.loads(data))[0]  # noqa: S301
    data = pickle.dumps(cg.load(store))
    shutil.rmtree(store)
    graph.first(100).save(store, format="columns")
    with pytest.raises(StoreError, match="another store than when it was opened"):
        pickle.loads(data)  # noqa: S301


def test_any_file(saved, graph, store):
    assert is_store(saved)
    reading = read(saved)
    assert (reading.kind, reading.graph.equals(graph)) == ("store", True)
    with pytest.raises(cg.errors.ParameterError, match="store of columns has no columns to name"):
        read(saved, columns={"item": "task"})


def test_attributes_of_several_types_are_refused(graph, tmp_path):
    table = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": [0, 1], "mixed": [1, "one"]}
    with pytest.raises(StoreError, match=r"'mixed' cannot be kept.*int and str"):
        cg.CrowdGraph.from_responses(table).save(tmp_path / "x", format="columns")
    assert not list(tmp_path.iterdir())


def test_a_graph_without_responses_comes_back(graph, tmp_path):
    graph.first(0).save(tmp_path / "x", format="columns")
    assert cg.load(tmp_path / "x").equals(graph.first(0))


def test_attributes_of_volunteers_and_items_come_back(tmp_path):
    columns = {"volunteer": ["a", "b"], "item": [1, 2], "label": [0, 1]}
    volunteers = {"volunteer": ["a", "b"], "age": [30, 40], "since": np.array(["2026", "NaT"], "datetime64[s]")}
    graph = cg.CrowdGraph.from_responses(columns, volunteers=volunteers, items={"item": [2, 1], "name": ["M 31", None]})
    graph.save(tmp_path / "x", format="columns")
    assert cg.load(tmp_path / "x").equals(graph)


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"label": [("a", 1), ("b", 2)]}, StoreError, r"\('a', 1\) cannot be kept in a store of columns"),
        ({"volunteer": ["a", 1]}, IdError, "volunteer id 1 is neither text nor a whole number like the others"),
    ],
)
def test_what_a_store_cannot_hold_is_named(tmp_path, columns, error, words):
    table = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": [0, 1], **columns}
    with pytest.raises(error, match=rf"{words}.*save the graph as one file: graph.save\('name.crowd'\)"):
        cg.CrowdGraph.from_responses(table).save(tmp_path / "x", format="columns")
    assert not list(tmp_path.iterdir())


def test_a_store_cannot_be_in_a_file(graph, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match=r"Cannot write to '.*notes': Not a directory\. Name a directory elsewhere"):
        graph.save(tmp_path / "notes/x.store", format="columns")


def test_annotations_that_are_left_out_are_named(graph, tmp_path):
    annotated = graph.annotate(cg.MajorityVote().fit(graph)).annotate(cg.MajorityVote().fit(graph), name="mine")
    with pytest.warns(CrowdGraphWarning, match=r"no annotations, so it is without 'majority_vote', 'mine'. Keep them"):
        annotated.save(tmp_path / "x", format="columns")
    assert not cg.load(tmp_path / "x").annotations


def test_what_is_left_of_an_earlier_writer_is_removed(graph, tmp_path):
    (tmp_path / ".x.part").mkdir()
    (tmp_path / ".x.part/other.npy").write_text("")
    graph.save(tmp_path / "x", format="columns")
    assert not (tmp_path / "x/other.npy").exists()
    with pytest.raises(StoreError, match="is there already"):
        graph.save(tmp_path / "x", format="columns")


# Damage


def change(store, **facts):
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**manifest, **facts}))


def damage(store, name, values):
    np.save(store / f"{name}.npy", values)


def accept(store, *files):
    """Let the manifest say that damaged files are as they should be."""
    manifest = json.loads((store / "manifest.json").read_text())
    facts = {name: {"bytes": (store / name).stat().st_size, "checksum": file_digest(store / name)} for name in files}
    change(store, files={**manifest["files"], **facts})


def test_tables_of_a_damaged_store(store):
    opened = cg.open_store(store)
    gold = pq.read_table(store / "gold.parquet").to_pydict()
    pq.write_table(pa.table({**gold, "item": [40, *gold["item"][1:]]}), store / "gold.parquet")
    accept(store, "gold.parquet")
    with pytest.raises(StoreError, match="its gold names items that do not exist"):
        opened.graph()
    (store / "gold.parquet").write_bytes(b"PAR1" * 100)
    accept(store, "gold.parquet")
    with pytest.raises(StoreError, match=r"The table 'gold.parquet' of '.*copy.store' cannot be read: [^\n]*[^.]\.$"):
        cg.open_store(store).graph()
    times = np.load(store / "responses/time.npy")
    damage(store, "responses/time", times.reshape(-1, 2))
    accept(store, "responses/time.npy")
    with pytest.raises(StoreError, match=r"'responses/time' of .* has shape \(150, 2\); expected \(300,\)"):
        cg.open_store(store).graph()


def test_a_store_that_was_replaced_is_not_taken_for_the_one_that_was_sent(graph, store):
    sent = pickle.dumps(cg.open_store(store))
    assert pickle.loads(sent).n_responses == 300  # noqa: S301 - our own bytes
    shutil.rmtree(store)
    graph.first(100).save(store, format="columns")
    with pytest.raises(StoreError, match="is another store than when it was opened first; replace no store that is in"):
        pickle.loads(sent)  # noqa: S301


def test_a_folder_whose_record_is_damaged_has_no_files_of_ours(store):
    assert "manifest.json" in STORE.files(store)
    for content in ("{", "[]", "{}", json.dumps({"format": "another", "files": ["mine.txt"]})):
        (store / "manifest.json").write_text(content)
        assert STORE.files(store) == set()


def test_damaged_stores(store, saved, tmp_path):
    def fails(match, **options):
        with pytest.raises(StoreError, match=match):
            cg.open_store(store, **options).graph()
        shutil.rmtree(store)
        shutil.copytree(saved, store)

    change(store, version=2)
    fails("is a store of version 2, written by crowdgraph .*reads version 1. Convert the responses again")
    change(store, format="something")
    fails("of another format")
    (store / "manifest.json").write_text("{")
    fails("cannot be read: .* If it is cut short, convert the responses again")
    (store / "manifest.json").unlink()
    fails("has no manifest.json")
    (store / "manifest.json").write_text('{"format": "crowdgraph columns", "version": 1}')
    fails("is damaged: it lacks 'classes'")
    (store / "by_item/row.npy").unlink()
    fails("lacks its file 'by_item/row.npy'")
    file = store / "responses/item.npy"
    file.write_bytes(file.read_bytes()[:-4])
    fails(r"has 1,324 bytes; expected 1,328. It is cut short")
    items = np.load(file)
    damage(store, "responses/item", items[::-1].copy())
    fails("another checksum", verify=True)
    damage(store, "responses/item", items + 100)
    fails("codes in 'item' run from")
    damage(store, "responses/time", np.load(store / "responses/time.npy")[::-1].copy())
    fails("its times are not sorted")
    damage(store, "responses/item", items.view(np.int16)[:600].reshape(300, 2)[:, 0].copy().repeat(2).view(np.int32))
    cg.open_store(store)
    damage(store, "by_item/starts", np.zeros(41, np.int64))
    with pytest.raises(StoreError, match="do not follow each other"):
        _ = cg.open_store(store).by_item


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("sizes", {"volunteers": -1}),
        ("sizes", [1]),
        ("classes", [["a"]]),
        ("labels", "ab"),
        ("clock", {"kind": "number", "zone": None, "hand": 1}),
        ("attributes", {"note": "../../elsewhere"}),
        ("files", {"/etc/passwd": {"bytes": 1, "checksum": ""}}),
    ],
)
def test_manifests_that_nobody_wrote_are_refused(store, part, value):
    change(store, **{part: value})
    with pytest.raises(StoreError, match=rf"manifest.json of .* is damaged: its .*{part}"):
        cg.open_store(store)


def first_is(value):
    def changed(column):
        column[0] = value
        return column

    return changed


@pytest.mark.parametrize(
    ("name", "changed", "match"),
    [
        ("by_item/volunteer", first_is(12), "codes in 'by_item/volunteer' run from 0 to 12; expected 0 to 11"),
        ("by_item/label", first_is(-2), "codes in 'by_item/label' run from -2"),
        ("by_item/row", first_is(10**6), "codes in 'by_item/row' run from . to 1000000"),
        ("by_item/row", lambda row: np.append(row[1:2], row[1:]), "'by_item/row' has some responses twice"),
        ("by_item/volunteer", lambda column: column.view(np.float32), "is of float32: it is damaged"),
        ("by_item/volunteer", lambda column: column.astype(">i4"), "is of >i4: it is damaged"),
        ("by_item/volunteer", lambda column: column.reshape(-1, 1), r"has shape \(\d+, 1\); expected \("),
    ],
)
def test_orders_by_item_that_cannot_be_are_refused(store, name, changed, match):
    column = changed(np.load(store / f"{name}.npy"))
    damage(store, name, column)
    graph = cg.open_store(store).graph()
    with pytest.raises(StoreError, match=match):
        # Half of the responses, for which their rows count.
        cg.MajorityVote().fit(graph.first(150), memory="2GB")


def test_a_fit_over_time_refuses_responses_that_come_twice(store):
    row = np.load(store / "by_volunteer/row.npy")
    damage(store, "by_volunteer/row", np.append(row[1:2], row[1:]))
    with pytest.raises(StoreError, match="'by_volunteer/row' has some responses twice"):
        cg.DynIBCC().fit(cg.open_store(store).graph().first(150), memory="2GB")


@pytest.mark.parametrize("name", ["by_item/label", "by_volunteer/time", "by_item/row"])
def test_verified_stores_say_the_same_in_each_order(store, name):
    column = np.load(store / f"{name}.npy")
    damage(store, name, column[::-1].copy())
    accept(store, f"{name}.npy")
    cg.open_store(store)
    with pytest.raises(StoreError, match=f"'{name.split('/')[0]}' has other responses than 'responses'"):
        cg.open_store(store, verify=True)


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match=r"There is no store '.*nowhere': no such directory can be seen from here"):
        cg.open_store(tmp_path / "nowhere")


def test_a_disk_that_fills_while_a_graph_is_saved(graph, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("crowdgraph.io.columns.reserve", full)
    with pytest.raises(StoreError, match=r"could not be written: No space left on device.*free some space"):
        graph.save(tmp_path / "crowd.store", format="columns")
    assert not list(tmp_path.iterdir())


def test_changes_while_a_store_is_open(store):
    opened = cg.open_store(store, verify=True)
    opened.check_unchanged()
    damage(store, "responses/item", np.load(store / "responses/item.npy"))
    with pytest.raises(StoreError, match=r"'responses/item.npy' of .* changed while it was read"):
        opened.check_unchanged()
