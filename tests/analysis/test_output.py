"""Results as files: what they hold, and that they appear together or not at all."""

import csv
import errno
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

import crowdgraph as cg
from crowdgraph.analysis import analyse, write_results
from crowdgraph.analysis.output import all_communities, atomic_directory, check_directory, confusion_table
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.messages import wording
from crowdgraph.report._results import GraphResults

OUTPUT = "crowdgraph.analysis.output"
FILES = {"report.html", "items.csv", "volunteers.csv", "communities.csv", "confusion.parquet", "network.graphml"}


@pytest.fixture(scope="module")
def analysis():
    graph = cg.simulate.crowd(n_volunteers=20, n_items=40, n_responses=400, gold=0.5, seed=0).graph
    return analyse(graph, detector=cg.Leiden(), snapshots=2)


@pytest.fixture(scope="module")
def results(analysis, tmp_path_factory):
    source = {"files": ["responses.csv"]}
    return write_results(analysis, tmp_path_factory.mktemp("out") / "results", command="crowdgraph x", source=source)


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_all_files_are_there(results):
    assert {path.name for path in results.iterdir()} == FILES | {"figures", "graph.crowd", "run.json"}
    names = {path.name for path in (results / "figures").iterdir()}
    kinds = ("activity", "responses_over_time", "network_pi_similarity", "communities_over_time", "skill_over_time")
    assert {f"{name}.{kind}" for name in kinds for kind in ("svg", "png")} <= names
    record = json.loads((results / "run.json").read_text())
    written = {path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file()}
    assert set(record["files"]) == written


def test_items_are_those_of_the_fit(results, analysis):
    graph = analysis.graph
    found = rows(results / "items.csv")
    assert [row["item"] for row in found] == graph.items.ids.tolist()
    assert [row["class"] for row in found] == list(graph.fit().predict().values())
    assert np.allclose([float(row["p(yes)"]) for row in found], graph.item_probs()[:, 1])
    assert {row["item"]: row["gold"] for row in found if row["gold"]} == dict(graph.gold)
    assert [int(row["responses"]) for row in found] == graph.items.n_responses.tolist()


def test_volunteers_have_skill_and_communities(results, analysis):
    graph = analysis.graph
    found = rows(results / "volunteers.csv")
    fit = graph.fit()
    accuracy = fit.confusion.latest().accuracy(fit.class_probs)
    assert np.allclose([float(row["accuracy"]) for row in found], accuracy)
    groups = graph.communities()
    expected = dict(zip(groups.ids.tolist(), groups.assignment.tolist(), strict=True))
    assert {row["volunteer"]: int(row["community"]) for row in found if row["community"] != "-1"} == expected
    outside = [row for row in found if row["community"] == "-1"]
    assert len(outside) == len(graph.volunteers) - len(expected)
    assert all(row["community_participation"] == "" for row in outside)


def test_the_other_tables(results, analysis):
    graph = analysis.graph
    kinds = [row["kind"] for row in rows(results / "communities.csv")]
    assert kinds.count("alike") == len(graph.communities("communities"))
    assert kinds.count("same items") == len(graph.communities("task communities"))
    assert pq.read_table(results / "confusion.parquet").num_rows == 400 * 4
    network = nx.read_graphml(results / "network.graphml")
    assert len(network) == len(graph.network("pi_similarity"))
    assert all("community" in data for _, data in network.nodes(data=True))


def test_the_graph_and_the_record(results, analysis):
    graph = cg.load(results / "graph.crowd")
    assert graph.equals(analysis.graph)
    assert list(graph.annotations) == list(analysis.graph.annotations)
    record = json.loads((results / "run.json").read_text())
    assert record["parameters"] == dict(analysis.parameters)
    assert record["timings"] == dict(analysis.timings)
    assert record["command"] == "crowdgraph x"
    assert record["source"] == {"files": ["responses.csv"]}
    assert record["versions"]["crowdgraph"] == cg.__version__
    assert record["findings"]["findings"]
    assert "crowdgraph x" in (results / "report.html").read_text()


def test_the_same_run_gives_the_same_bytes(results, analysis, tmp_path):
    again = analyse(analysis.graph, detector=cg.Leiden(), snapshots=2)
    write_results(again, tmp_path / "again")
    for name in ("items.csv", "volunteers.csv", "communities.csv", "network.graphml", "figures/activity.svg"):
        assert (tmp_path / "again" / name).read_bytes() == (results / name).read_bytes(), name


def test_what_was_not_found_has_no_file(tmp_path):
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["x"], "label": ["yes"]})
    write_results(analyse(graph), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "items.csv", "volunteers.csv", "graph.crowd", "run.json", "figures"}


def test_a_network_of_tasks_where_nothing_else_is_known(tmp_path):
    graph = cg.simulate.crowd(n_volunteers=6, n_items=40, n_responses=120, seed=0).graph
    write_results(analyse(graph, model="majority_vote", detector=cg.Leiden()), tmp_path / "out")
    assert len(nx.read_graphml(tmp_path / "out" / "network.graphml")) > 2


def test_a_page_speaks_as_its_reader_does(tmp_path):
    graph = cg.simulate.crowd(n_volunteers=4, n_items=30, n_responses=60, gold=0.0, seed=0).graph
    found = analyse(graph, model="majority_vote", min_responses=50)
    page = write_results(found, tmp_path / "results", interface="cli") / "report.html"
    text = page.read_text(encoding="utf-8")
    told = json.loads(re.search(r'type="application/json">(.*?)</script>', text, flags=re.DOTALL)[1])
    assert told["volunteers"]["missing"] == f"This was skipped. {found.skipped['pi_similarity']}"
    advice = [one["advice"] for one in told["doctor"]["findings"] if one["name"] == "ruled by the prior"]
    assert "leave them out of networks with --min-responses;" in advice[0]
    shown, reason = dict(dict(told["provenance"]["run"])["skipped"]), found.skipped["task_cooccurrence"]
    assert shown["task_cooccurrence"] == wording(reason, "cli") != reason
    missing = [section["missing"] for section in told.values() if isinstance(section, dict) and "missing" in section]
    assert missing
    assert not [words for words in missing if "graph." in words]


def test_votes_tell_what_is_right(tmp_path):
    graph = cg.simulate.crowd(
        n_volunteers=5, n_items=30, n_responses=100, classes=("no", "yes"), labels=("u", "v"), seed=0
    ).graph
    found = analyse(graph, model="dynibcc", votes={"u": "no", "v": "yes"}, detector=cg.Leiden(), snapshots=0)
    write_results(found, tmp_path / "out")
    assert all(float(row["accuracy"]) > 0 for row in rows(tmp_path / "out" / "volunteers.csv"))
    assert (tmp_path / "out" / "figures" / "skill_over_time.png").is_file()


def test_too_many_matrices_leave_the_latest(analysis, monkeypatch):
    track = analysis.graph.confusion()
    monkeypatch.setattr(sys.modules[OUTPUT], "MAX_CONFUSION_ROWS", 100)
    table = confusion_table(track)
    assert table.num_rows == 20 * 4
    assert np.allclose(table["mean"].to_numpy(), track.latest().mean.ravel())


@pytest.mark.parametrize("step", ["_write_tables", "_write_network", "draw_figures", "_write_report", "write_record"])
def test_a_failure_leaves_nothing(analysis, tmp_path, monkeypatch, step):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    # Pictures take longest.
    monkeypatch.setattr(sys.modules[OUTPUT], "draw_figures", lambda results, folder: folder.mkdir())
    monkeypatch.setattr(sys.modules[OUTPUT], step, full)
    with pytest.raises(StoreError, match=r"could not be written to .*No space left on device\. None were kept"):
        write_results(analysis, tmp_path / "new" / "out")
    assert list(tmp_path.iterdir()) == []


def folder_with(path, content="old"):
    with atomic_directory(path) as part:
        (part / "a.txt").write_text(content)
        (part / "run.json").write_text(json.dumps({"files": ["a.txt", "run.json"]}))


def test_a_failure_leaves_the_old_results(tmp_path):
    folder_with(tmp_path / "out")
    with pytest.raises(StoreError, match="Is a directory"), atomic_directory(tmp_path / "out", force=True) as part:
        part.write_text("new")
    assert (tmp_path / "out" / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_old_results_come_back_if_new_ones_cannot_take_their_place(tmp_path, monkeypatch):
    folder_with(tmp_path / "out")
    rename = Path.rename

    def failing(self, target):
        if self.name.endswith(".part"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(StoreError, match="Input/output error"), atomic_directory(tmp_path / "out", force=True) as part:
        (part / "a.txt").write_text("new")
    assert (tmp_path / "out" / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_old_results_are_replaced_when_asked(tmp_path):
    folder_with(tmp_path / "out")
    with atomic_directory(tmp_path / "out", force=True) as part:
        (part / "b.txt").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_directory_is_as_good_as_none(tmp_path):
    (tmp_path / "out").mkdir()
    folder_with(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").is_file()


def test_places_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file; name a directory"):
        check_directory(tmp_path / "file")
    with pytest.raises(StoreError, match="since 'file' is a file; name a directory elsewhere"):
        check_directory(tmp_path / "file" / "below")
    folder_with(tmp_path / "out")
    with pytest.raises(StoreError, match="not empty; name another directory, or use force"):
        check_directory(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"also holds 'notes\.txt', which would be lost"):
        check_directory(tmp_path / "out", force=True)
    with pytest.raises(StoreError, match="does not hold results of crowdgraph"):
        check_directory(tmp_path, force=True)
    monkeypatch.setattr("os.access", lambda *args: False)
    with pytest.raises(StoreError, match="You may not write to"):
        check_directory(tmp_path / "new")


def test_bad_input(analysis, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[OUTPUT], "draw_figures", lambda results, folder: folder.mkdir())
    with pytest.raises(ParameterError, match="Results are written of an Analysis; got a CrowdGraph"):
        write_results(analysis.graph, tmp_path / "out")
    strange = replace(analysis, parameters={"chance": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_results(strange, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_known_of_those_in_no_community_is_empty():
    graph = cg.simulate.crowd(n_volunteers=4, n_responses=100, seed=0).graph
    groups = cg.Communities(
        ids=graph.volunteers.ids,
        method="by hand",
        modularity=0.1,
        participation=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
    )
    found = all_communities(GraphResults(graph.annotate(groups, name="communities")))
    last = found.to_pylist()[-1]
    assert last["community"] == -1
    assert last["share"] is None
    assert last["mixed"] is None
    assert found["share"][0].as_py() == pytest.approx(2 / 3, abs=1e-3)
