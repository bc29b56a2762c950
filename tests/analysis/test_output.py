"""An analysis as files: what they hold, and that they appear together or not at all."""

import csv
import errno
import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from builders import communities_of, crowd
from report.pages import page_data

import crowdgraph as cg
from crowdgraph.analysis import analyse, write_results
from crowdgraph.analysis.output import atomic_directory
from crowdgraph.errors import LeftOutFigureWarning, StoreError
from crowdgraph.messages import wording

FILES = {"report.html", "items.csv", "volunteers.csv", "communities.csv", "confusion.parquet", "network.graphml"}
FILES |= {"next_questions.csv"}


@pytest.fixture(scope="session")
def results(analysis, tmp_path_factory):
    source = {"files": ["responses.csv"]}
    return write_results(analysis, tmp_path_factory.mktemp("out") / "results", command="crowdgraph x", source=source)


def read_rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_files_are_there_and_recorded(results):
    assert {path.name for path in results.iterdir()} == FILES | {"figures", "graph.crowd", "run.json"}
    names = {path.name for path in (results / "figures").iterdir()}
    kinds = ("activity", "responses_over_time", "network_pi_similarity", "communities_over_time", "skill_over_time")
    assert {f"{name}.{kind}" for name in kinds for kind in ("svg", "png")} <= names
    record = json.loads((results / "run.json").read_text())
    written = {path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file()}
    assert set(record["files"]) == written


def test_items_are_those_of_the_fit(results, analysis):
    graph, rows = analysis.graph, read_rows(results / "items.csv")
    assert [row["item"] for row in rows] == graph.items.ids.tolist()
    assert [row["class"] for row in rows] == list(graph.fit().predict().values())
    assert np.allclose([float(row["p(yes)"]) for row in rows], graph.item_probs()[:, 1])
    assert {row["item"]: row["gold"] for row in rows if row["gold"]} == dict(graph.gold)
    assert [int(row["responses"]) for row in rows] == graph.items.n_responses.tolist()


def test_volunteers_have_skill_and_communities(results, analysis):
    graph, rows = analysis.graph, read_rows(results / "volunteers.csv")
    fit, communities = graph.fit(), graph.communities()
    accuracy = fit.confusion.latest().accuracy(fit.class_probs)
    assert np.allclose([float(row["accuracy"]) for row in rows], accuracy)
    expected = dict(zip(communities.ids.tolist(), communities.assignment.tolist(), strict=True))
    assert {row["volunteer"]: int(row["community"]) for row in rows if row["community"] != "-1"} == expected
    outside = [row for row in rows if row["community"] == "-1"]
    assert len(outside) == len(graph.volunteers) - len(expected) > 0
    assert all(row["community_participation"] == "" for row in outside)


def test_communities_confusion_and_network_are_those_of_the_analysis(results, analysis):
    graph = analysis.graph
    kinds = [row["kind"] for row in read_rows(results / "communities.csv")]
    assert kinds.count("alike") == len(graph.communities("communities"))
    assert kinds.count("same items") == len(graph.communities("task communities"))
    assert pq.read_table(results / "confusion.parquet").num_rows == 640 * 4
    network = nx.read_graphml(results / "network.graphml")
    assert len(network) == len(graph.network("pi_similarity"))
    assert all("community" in data for _, data in network.nodes(data=True))


def test_the_graph_and_the_record_hold_all_of_the_analysis(results, analysis):
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


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(results, analysis, tmp_path):
    again = analyse(analysis.graph, model="dynibcc", detector=cg.Leiden(), snapshots=2, seed=3)
    write_results(again, tmp_path / "again")
    for name in ("items.csv", "volunteers.csv", "communities.csv", "network.graphml", "figures/activity.svg"):
        assert (tmp_path / "again" / name).read_bytes() == (results / name).read_bytes(), name


def test_what_was_skipped_has_no_file(tmp_path):
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["x"], "label": ["yes"]})
    write_results(analyse(graph), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "items.csv", "volunteers.csv", "graph.crowd", "run.json", "figures"}


def test_who_changed_is_a_file(analysis, tmp_path, without_figures):
    """The changes of the analysis, all of them; the crowd has none, so that they are those of another rate."""
    assert not len(analysis.changes)
    changes = analysis.graph.fit().changes(false_discovery_rate=0.99, min_answers=2)
    assert len(changes) > 0
    write_results(replace(analysis, changes=changes), tmp_path / "out")
    rows = read_rows(tmp_path / "out" / "changes.csv")
    assert [row["volunteer"] for row in rows] == [change.volunteer for change in changes]
    assert np.allclose([float(row["before"]) for row in rows], [change.before for change in changes])


def test_without_confusion_matrices_the_network_is_that_of_tasks(small_crowd, tmp_path, without_figures):
    analysis = analyse(small_crowd, model="majority_vote", detector=cg.Leiden())
    write_results(analysis, tmp_path / "out")
    network = nx.read_graphml(tmp_path / "out" / "network.graphml")
    assert set(network) == set(analysis.graph.network("task_cooccurrence").ids)


def test_advice_on_the_page_is_in_the_words_of_the_interface(tmp_path, without_figures):
    graph = crowd(n_volunteers=4, n_items=30, n_responses=20, gold=0.0).graph
    analysis = analyse(graph, model="majority_vote", min_responses=50)
    data = page_data(write_results(analysis, tmp_path / "results", interface="cli") / "report.html")
    assert data["volunteers"]["missing"] == f"This was skipped. {analysis.skipped['pi_similarity']}"
    advice = {finding["name"]: finding["advice"] for finding in data["doctor"]["findings"]}
    assert "leave them out of networks with --min-responses." in advice["hardly known volunteers"]
    skipped, reason = dict(dict(data["provenance"]["run"])["skipped"]), analysis.skipped["task_cooccurrence"]
    assert skipped["task_cooccurrence"] == wording(reason, "cli") != reason
    missing = [section["missing"] for section in data.values() if isinstance(section, dict) and "missing" in section]
    assert missing
    assert not [words for words in missing if "graph." in words]


@pytest.mark.slow
def test_by_votes_it_is_known_which_labels_are_right(tmp_path):
    graph = crowd(n_volunteers=5, n_items=30, n_responses=100, labels=("u", "v")).graph
    # No volunteer has as many answers, so that there are few figures.
    votes = {"u": "no", "v": "yes"}
    write_results(analyse(graph, model="dynibcc", votes=votes, min_responses=50), tmp_path / "out")
    assert all(float(row["accuracy"]) > 0 for row in read_rows(tmp_path / "out" / "volunteers.csv"))
    assert (tmp_path / "out" / "figures" / "skill_over_time.png").is_file()


def test_of_too_many_confusion_matrices_the_latest_are_written(analysis, tmp_path, monkeypatch, without_figures):
    monkeypatch.setattr("crowdgraph.analysis.output.MAX_CONFUSION_ROWS", 100)
    write_results(analysis, tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "confusion.parquet")
    assert table.num_rows == 36 * 4
    assert np.allclose(table["mean"].to_numpy(), analysis.graph.confusion().latest().mean.ravel())


@pytest.mark.parametrize(
    "writer",
    [
        "pyarrow.csv.write_csv",
        "pyarrow.parquet.write_table",
        "crowdgraph.VolunteerNetwork.save",
        "matplotlib.figure.Figure.savefig",
        "crowdgraph.CrowdGraph.save",
        "crowdgraph.report.write",
        "crowdgraph.analysis.output.write_record",
    ],
)
def test_a_failure_leaves_nothing(analysis, tmp_path, monkeypatch, writer):
    def fail(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    if "savefig" not in writer:
        monkeypatch.setattr("crowdgraph.analysis.output.draw_figures", lambda results, folder: folder.mkdir())
    monkeypatch.setattr(writer, fail)
    with pytest.raises(StoreError, match=r"could not be written to .*No space left on device\. None were kept"):
        write_results(analysis, tmp_path / "new" / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_cannot_be_drawn_is_left_out_and_said_so(tmp_path, monkeypatch):
    """Without it everything is written; the warning, the report and the record say why."""

    def fail(graph):
        raise ValueError("Unknown symbol: \\x, found '\\'\n  on a second line")

    monkeypatch.setattr("crowdgraph.plot.activity", fail)
    graph = crowd(n_volunteers=4, n_items=10, n_responses=20).graph
    with pytest.warns(LeftOutFigureWarning, match=r"^The figure 'activity' was left out.* ValueError: .*found '.'\.$"):
        write_results(analyse(graph, model="majority_vote", min_responses=50), tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "items.csv", "graph.crowd"}
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert not [name for name in record["files"] if "activity" in name]
    assert "figures/responses_over_time.svg" in record["files"]
    assert [note for note in record["notes"] if note.startswith("The figure 'activity' was left out")]
    assert "The figure 'activity' was left out" in str(page_data(tmp_path / "out/report.html")["provenance"])


def test_times_without_an_axis_leave_out_the_figures_over_time(tmp_path):
    times = [1e308, 1.2e308, 1.5e308, 1.7e308]
    columns = {"volunteer": list("abab"), "item": list("xxyy"), "label": list("uvuu"), "time": times}
    analysis = analyse(cg.CrowdGraph.from_responses(columns), model="majority_vote")
    with pytest.warns(LeftOutFigureWarning, match="an axis has numbers up to 1e\\+300"):
        write_results(analysis, tmp_path / "out")
    assert (tmp_path / "out/figures/activity.png").exists()


# Directories


def write_old(path):
    """Write a directory of results with one file."""
    with atomic_directory(path) as part:
        (part / "a.txt").write_text("old")
        (part / "run.json").write_text(json.dumps({"files": ["a.txt", "run.json"]}))


def test_a_failure_leaves_the_old_results(tmp_path):
    write_old(tmp_path / "out")
    with pytest.raises(StoreError, match="Is a directory"), atomic_directory(tmp_path / "out", force=True) as part:
        part.write_text("new")
    assert (tmp_path / "out" / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_old_results_are_replaced_when_asked(tmp_path):
    write_old(tmp_path / "out")
    with atomic_directory(tmp_path / "out", force=True) as part:
        (part / "b.txt").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_directory_is_as_good_as_none(tmp_path):
    (tmp_path / "out").mkdir()
    write_old(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").is_file()


def test_what_is_not_known_of_those_in_no_community_is_empty(analysis, tmp_path, without_figures):
    """The last volunteer is in no community, which has a row without a share."""
    graph = analysis.graph
    codes = np.append(np.arange(35) % 2, -1)
    grouped = graph.annotate(communities_of(codes, ids=graph.volunteers.ids, modularity=0.1), name="communities")
    write_results(replace(analysis, graph=grouped), tmp_path / "out")
    rows = [row for row in read_rows(tmp_path / "out" / "communities.csv") if row["kind"] == "alike"]
    assert [row["community"] for row in rows] == ["0", "1", "-1"]
    assert (rows[-1]["share"], rows[-1]["mixed"]) == ("", "")
    assert float(rows[0]["share"]) == pytest.approx(18 / 35, abs=1e-3)
