"""Saving and loading."""

import datetime as dt
import json
import os
import stat
import zipfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from builders import communities_of, fitted, network_of
from hypothesis import given
from scipy.sparse import csr_array
from strategies import graphs

import crowdgraph as cg
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import IdError, StoreError
from crowdgraph.io import store

SAVED_BY_0_1_0 = Path(__file__).parent / "data" / "saved_by_0.1.0.crowd"


@pytest.mark.slow
@given(graphs())
def test_nothing_is_lost_in_a_file(tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("store") / "graph.crowd"
    for view in (graph, graph.first(0)):
        view.save(path)
        assert cg.load(path).equals(view)


def same(left, right):
    """Whether two results hold the same, field by field."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "__dataclass_fields__"):
        return all(same(getattr(left, name), getattr(right, name)) for name in left.__dataclass_fields__)
    if isinstance(left, csr_array):
        return np.array_equal(left.toarray(), right.toarray())
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@pytest.fixture
def annotated(graph, fit):
    """A graph with results of all stored types."""
    groups = communities_of([[1.0, 0.0], [0.5, 0.5]], ids=["bert", "anna"], modularity=0.25, params={"seed": 1})
    ids, weights = graph.volunteers.ids, [[0, 0.5, 0], [0.5, 0, 1], [0, 1, 0]]
    track = cg.CommunityTrack(
        ids=ids, times=[1, 9], counts=[1, 6], snapshots=(groups, groups), clock=cg.Clock("number"), method="t"
    )
    params = {"a": None, "b": (1, 2.5), "c": [True, "x"], "d": {"e": np.float32(0.5)}, "f": dt.date(2026, 1, 1)}
    for result in (
        fit,
        groups,
        track,
        fit.confusion,
        network_of(weights, ids=ids, method="dense", params=params),
        network_of(weights, ids=ids, method="sparse", sparse=True),
    ):
        graph = graph.annotate(result)
    return graph


def test_annotations_survive(annotated, tmp_path):
    annotated.save(tmp_path / "g")
    loaded = cg.load(tmp_path / "g")
    assert list(loaded.annotations) == list(annotated.annotations)
    for name, result in annotated.annotations.items():
        assert same(loaded.annotations[name], result), name
    assert loaded.fit().confusion.ids is loaded.volunteers.ids
    assert repr(loaded) == repr(annotated)


def test_files_of_the_first_version_load(tmp_path):
    """The file has results of all stored types, under the names that they had in version 0.1.0."""
    graph = cg.load(SAVED_BY_0_1_0)
    assert (len(graph.volunteers), len(graph.items), len(graph.responses), len(graph.gold)) == (8, 30, 60, 16)
    assert list(graph.annotations) == [
        "ibcc", "dynibcc", "gibbs_ibcc", "task_cooccurrence", "bayesian_nmf", "pi_similarity over time",
    ]  # fmt: skip
    graph.save(tmp_path / "again.crowd")
    with zipfile.ZipFile(SAVED_BY_0_1_0) as old, zipfile.ZipFile(tmp_path / "again.crowd") as new:
        assert new.namelist() == old.namelist()
        for name in old.namelist():
            # Parquet files also name the version of Arrow that wrote them.
            assert name.endswith(".parquet") or new.read(name) == old.read(name)


def test_odd_ids_and_attributes_survive(tmp_path):
    zoned = dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Amsterdam"))
    ids = [
        ("a", (1, None)),
        b"\x7f",
        2.5,
        frozenset({1, 2}),
        zoned,
        dt.date(2026, 1, 1),
        True,
        "\ufffd",
        2**80,
        "x\ny",
        dt.time(3),
        dt.timedelta(1, 2),
        Decimal("0.10"),
    ]
    n = len(ids)
    nodes = {"volunteer": ids, "same": ids, "maybe": [None, pd.NA, *range(n - 2)]}
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ids, "item": list(range(n)), "label": [0] * n, "blob": [{"k": [1]}] * n}, volunteers=nodes
    )
    graph.save(tmp_path / "g")
    loaded = cg.load(tmp_path / "g")
    assert loaded.equals(graph)
    assert str(loaded.volunteers.ids[4].tzinfo) == "Europe/Amsterdam"
    assert loaded.volunteers.ids[4].fold == 1


def test_nanoseconds_and_zones_survive(tmp_path):
    zoned = [dt.datetime(2026, 1, 1, hour, tzinfo=ZoneInfo("Europe/Amsterdam")) for hour in (1, 2)]
    for times in (np.array([5, 1], dtype="datetime64[ns]"), zoned, [1.5, 2.5]):
        graph = cg.CrowdGraph.from_responses({"volunteer": [1, 2], "item": [1, 1], "label": [0, 1], "time": times})
        graph.save(tmp_path / "g")
        assert cg.load(tmp_path / "g").equals(graph)


@pytest.mark.parametrize("value", [object(), pd.Timestamp("2026-01-01T00:00:00.000000001"), 1j])
def test_what_cannot_be_carried_is_named_and_nothing_is_written(tmp_path, graph, value):
    path = tmp_path / "g"
    graph.save(path)
    before = path.read_bytes()
    with pytest.raises(IdError, match="saved graph cannot carry"):
        cg.CrowdGraph.from_responses({"volunteer": [value], "item": [1], "label": [0]}).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_crash_leaves_the_old_file(tmp_path, graph, monkeypatch):
    path = tmp_path / "g"
    graph.save(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"No space left.*What was there is unchanged"):
        graph.first(1).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_graphs_are_saved_through_links_but_not_over_directories(tmp_path, graph):
    with pytest.raises(StoreError, match="is a directory"):
        graph.save(tmp_path)
    with pytest.raises(StoreError, match=r"Cannot write to .*Create the directory first"):
        graph.save(tmp_path / "no" / "such" / "folder")
    graph.save(tmp_path / ("n" * 240))
    (tmp_path / "link").symlink_to(tmp_path / "target")
    graph.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "target").chmod(0o600)
    graph.save(tmp_path / "link")
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600
    assert cg.load(tmp_path / "target").equals(graph)


def test_pipes_and_devices_are_not_replaced(tmp_path, graph):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (graph.save, graph.to_graphml, graph.to_gexf):
        with pytest.raises(StoreError, match="is a pipe, a device or a socket, which a file would replace"):
            write(pipe)
    assert pipe.is_fifo()
    with pytest.raises(StoreError, match="is a pipe, a device or a socket"):
        graph.save(os.devnull)
    assert not Path(os.devnull).is_file()


def test_saved_graphs_are_not_read_as_csv(tmp_path, graph):
    graph.save(tmp_path / "whales.crowd")
    with pytest.raises(
        cg.errors.InputError, match=r"is a saved graph, not a CSV file\. Open it with cg\.load"
    ) as raised:
        cg.read_csv(tmp_path / "whales.crowd")
    assert "--format crowd" in raised.value.message.wording("cli")


def test_damaged_and_foreign_files_are_refused(tmp_path, graph):
    path = tmp_path / "g"
    graph.save(path)
    saved = path.read_bytes()
    for content, message in (
        (saved[: len(saved) // 2], "cut short or damaged"),
        (b"", r"not a saved graph\. Read tables with cg\.read_csv"),
        (b"PNG", "not a saved"),
    ):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=message):
            cg.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(StoreError, match="no manifest"):
        cg.load(path)
    for missing in (tmp_path / "nothing", 5):
        with pytest.raises(StoreError, match="does not exist or is not a file; give the path that"):
            cg.load(missing)
    with pytest.raises(StoreError, match=r"is not a store: it has no manifest\.json"):
        cg.load(tmp_path)


def rewrite(path, change):
    """The same file with another manifest."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])
    parts["manifest.json"] = json.dumps(change(manifest) or manifest)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda manifest: manifest.update(version=store.VERSION + 1),
            r"format 2, this crowdgraph reads up to 1; upgrade",
        ),
        (lambda manifest: manifest.update(format="other"), "another format"),
        (lambda manifest: [1], "another format"),
        (lambda manifest: manifest.pop("labels"), "damaged"),
        (lambda manifest: manifest.update(labels={"tuple": ["no"]}), "do not fit together"),
        (lambda manifest: manifest.update(clock=None), "damaged"),
        (lambda manifest: manifest["gold"].update(items={"objects": [-1, 0]}), "damaged"),
    ],
)
def test_manifests_of_other_kinds_are_refused(tmp_path, graph, change, message):
    graph.save(tmp_path / "g")

    def changed(manifest):
        result = change(manifest)
        return result if isinstance(result, list) else None

    rewrite(tmp_path / "g", changed)
    with pytest.raises(StoreError, match=message):
        cg.load(tmp_path / "g")


def test_flipped_bytes_never_load_another_graph(tmp_path, annotated):
    path = tmp_path / "g"
    annotated.save(path)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for index in rng.integers(0, len(content), 200):
        broken = content.copy()
        broken[index] ^= 1 << rng.integers(8)
        path.write_bytes(broken)
        try:
            loaded = cg.load(path)
        except StoreError:
            continue
        assert loaded.equals(annotated)
        assert all(same(loaded.annotations[name], result) for name, result in annotated.annotations.items())


def test_nothing_is_pickled(tmp_path, annotated, monkeypatch):
    import pickle

    def refuse(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads"):
        monkeypatch.setattr(pickle, name, refuse)
    annotated.save(tmp_path / "g")
    cg.load(tmp_path / "g")


@pytest.mark.parametrize("votes", [None, {-1: "no", 1: None, 3: "yes"}], ids=["labels are classes", "votes"])
def test_a_calibrated_fit_and_its_dependence_survive(tmp_path, votes):
    rng = np.random.default_rng(0)
    table = {"volunteer": rng.integers(0, 8, 200), "item": rng.permutation(200) % 25}
    labels = ["no", "yes"] if votes is None else list(votes)
    table["label"] = [labels[code] for code in rng.integers(0, len(labels), 200)]
    gold = {item: ["no", "yes"][item % 2] for item in range(12)}
    graph = cg.CrowdGraph.from_responses(table, labels=labels, classes=["no", "yes"], gold=gold, duplicates="first")
    first = cg.IBCC(votes=votes).fit(graph)
    calibrated = first.calibrated()
    graph = graph.annotate(first).annotate(calibrated)
    graph.save(tmp_path / "g")
    loaded = cg.load(tmp_path / "g")
    again = loaded.annotations[calibrated.name]
    assert again.dependence == calibrated.dependence
    assert again.dependence.source == "gold"
    assert np.array_equal(again.item_probs, calibrated.item_probs)
    assert np.array_equal(again.confusion.latest().concentration, calibrated.confusion.latest().concentration)
    assert np.array_equal(again.effective_answers(loaded), calibrated.effective_answers())
    assert repr(again) == repr(calibrated)
    assert again.correct_labels == calibrated.correct_labels
    # The fit from which it was made can be calibrated as before: settings and learned weights survive, too.
    anew = loaded.annotations[first.name].calibrated(loaded)
    assert np.array_equal(anew.item_probs, calibrated.item_probs)
    assert np.array_equal(anew.confusion.latest().concentration, calibrated.confusion.latest().concentration)


@pytest.mark.parametrize("method", ["task_cooccurrence", "pi_similarity", "error_correlation"])
def test_a_network_knows_how_it_was_made_after_it_was_saved(tmp_path, method):
    """All are linked, so that only the model says whether the weights are similarities and what chance gives."""
    graph = fitted(0.9, 0.6, n_volunteers=8, n_items=40, n_responses=200)
    network = getattr(cg.networks, method)(graph)
    graph.annotate(network).save(tmp_path / "g")
    loaded = cg.load(tmp_path / "g").network(method)
    assert type(loaded.model) is type(network.model)
    for draw in ("null", "resampled"):
        one, other = (getattr(each, draw)(seed=1) for each in (network, loaded))
        assert np.array_equal(csr_array(one.weights).toarray(), csr_array(other.weights).toarray())
    detector = cg.BayesianNMF(restarts=2)
    one, other = (detector.detect(each, seed=0) for each in (network, loaded))
    assert np.array_equal(one.participation, other.participation)
    assert np.array_equal(one.evidence.null_modularity, other.evidence.null_modularity)
    assert len(one.evidence.null_modularity)


def test_the_model_of_somebody_else_is_not_saved(tmp_path, graph):
    class OwnModel(type(cg.networks.task_cooccurrence(graph, min_responses=0).model)):
        pass

    network = cg.networks.task_cooccurrence(graph, min_responses=0)
    model = OwnModel(**{field: getattr(network.model, field) for field in ("ids", "incidence", "prior")})
    graph.annotate(replace(network, model=model)).save(tmp_path / "g")
    assert cg.load(tmp_path / "g").network("task_cooccurrence").model is None


def with_attribute(values):
    """A graph of two responses with an attribute that no reader makes."""
    table = ResponseTable(
        np.array([0, 0]), np.array([0, 1]), np.array([0, 0]), np.array([1, 2]), cg.Clock("number"), {"box": values}
    )
    nodes = NodeTable("volunteer", ["a"]), NodeTable("item", ["x", "y"])
    return cg.CrowdGraph(*nodes, table, classes=["c"], labels=["l"])


def test_attributes_of_several_columns_survive(tmp_path):
    graph = with_attribute(np.arange(8.0).reshape(2, 4))
    graph.save(tmp_path / "x.crowd")
    assert cg.load(tmp_path / "x.crowd").equals(graph)
    with pytest.raises(IdError, match=r"An array of objects of shape \(2, 1\) cannot be saved; use numbers or a list"):
        with_attribute(np.array([["a"], [None]], dtype=object)).save(tmp_path / "y.crowd")
    assert [path.name for path in tmp_path.iterdir()] == ["x.crowd"]
