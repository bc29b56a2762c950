"""``crowdgraph update``: results are renewed with new responses, and what changed is said."""

import json
import shutil
import sys

import numpy as np
import pytest
from cli.commands import assert_one_sentence, run

import crowdgraph as cg


@pytest.fixture(scope="module")
def night(crowd, tmp_path_factory):
    """Results of all but the last 20 responses, and files with those and with all responses."""
    folder = tmp_path_factory.mktemp("night")
    header, *lines = (crowd / "responses.csv").read_text().splitlines()
    for name, rows in (("old", lines[:180]), ("new", lines[180:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")
    options = ("--gold", crowd / "gold.csv", "--out", folder / "results", "--snapshots", 0, "--min-responses", 5)
    assert run("analyse", folder / "old.csv", *options, "--title", "Whales").exit_code == 0
    return folder


@pytest.fixture
def results(night, tmp_path):
    shutil.copytree(night / "results", tmp_path / "results")
    return tmp_path / "results"


def record(out):
    return json.loads((out / "run.json").read_text())


def test_results_are_renewed(night, results, crowd, monkeypatch):
    first = record(results)["commands"]
    monkeypatch.setattr(sys, "argv", ["crowdgraph", "update", "results", str(night / "new.csv")])
    done = run("update", results, night / "new.csv", "--gold", crowd / "gold.csv")
    assert done.exit_code == 0, done.output
    assert "The update added 20 responses" in done.stdout
    assert "another answer" in done.stdout
    graph = cg.load(results / "graph.crowd")
    whole = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    assert graph.n_responses == 200
    assert graph.responses.table.equals(whole.responses.table)
    cold = cg.Calibrated().fit(whole)
    np.testing.assert_allclose(graph.fit().item_probs, cold.item_probs, atol=1e-3)
    renewed = record(results)
    assert renewed["settings"]["title"] == "Whales"
    assert renewed["source"]["files"]["responses"]["name"] == "old.csv"
    assert [one["files"]["responses"]["name"] for one in renewed["source"]["updates"]] == ["new.csv"]
    page = (results / "report.html").read_text()
    assert "Whales" in page
    assert renewed["update"]["responses"] == 20
    # To repeat it takes the first command, too.
    assert len(first) == 1
    assert renewed["commands"] == [*first, "crowdgraph update results new.csv"]
    assert json.dumps(renewed["commands"][1]) in page
    sentences = done.stdout[done.stdout.index("The update added") :].splitlines()[:2]
    assert all(sentence in page for sentence in sentences)
    assert renewed["files"] == sorted(renewed["files"])
    # The same command once more, as of a job that is repeated, adds nothing.
    again = run("update", results, night / "new.csv", "--gold", crowd / "gold.csv")
    assert again.exit_code == 1
    assert "Error: 'new.csv' is part of these results already" in again.stderr
    assert record(results) == renewed


def test_the_summary_for_machines(night, results):
    late = night / "late.csv"
    header, first = (night / "old.csv").read_text().splitlines()[:2]
    time = first.split(",")[3]
    late.write_text(f"{header}\nnewcomer,new item,{first.split(',')[2]},{time}\n")
    done = run("update", results, late, "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)["update"]
    assert {**summary, "changed": 0} == {"volunteers": 1, "items": 1, "responses": 1, "late": 1, "changed": 0}
    assert "came late" in done.stderr


def test_what_cannot_be_renewed(night, results, tmp_path):
    assert_one_sentence(run("update", tmp_path / "nowhere", night / "new.csv"), "is not there; expected a directory")
    (tmp_path / "empty").mkdir()
    assert_one_sentence(run("update", tmp_path / "empty", night / "new.csv"), "has no complete run.json")
    before = (results / "run.json").read_bytes()
    (results / "mine.txt").write_text("x")
    assert_one_sentence(run("update", results, night / "new.csv"), "'mine.txt', which would be lost")
    (results / "mine.txt").unlink()
    header = "volunteer,item,label,time\n"
    (tmp_path / "maybe.csv").write_text(f"{header}a,b,maybe,2027-01-01\n")
    assert_one_sentence(run("update", results, tmp_path / "maybe.csv"), "analyse all responses anew")
    assert_one_sentence(
        run("update", results, night / "new.csv", "--no-time"), "the new responses have no times but the order"
    )
    assert_one_sentence(run("update", results, night / "new.csv", "--class", "a"), "--class names the classes")
    record_without = {**record(results), "settings": {}}
    assert (results / "run.json").read_bytes() == before
    (results / "run.json").write_text(json.dumps(record_without))
    assert_one_sentence(run("update", results, night / "new.csv"), "does not say with which options")


def test_a_fit_by_ranks_is_analysed_and_updated_and_not_made_again(night, tmp_path):
    graph = cg.read_csv(night / "old.csv")
    graph.save(tmp_path / "crowd.store", format="columns")
    model = cg.IBCC(confusion_prior=(3, 1), max_iter=700)
    cg.distributed.fit(model, tmp_path / "crowd.store", out=tmp_path / "fit")
    options = ("--out", tmp_path / "results", "--snapshots", 0, "--min-responses", 5)
    done = run("analyse", tmp_path / "fit", *options)
    assert done.exit_code == 0, done.output
    note = "No model is fitted: the fit of ibcc that comes with the responses is analysed."
    assert f"note: {note}" in done.stderr
    assert note in record(tmp_path / "results")["notes"]
    assert cg.load(tmp_path / "results").fit().params["max_iter"] == 700
    assert run("update", tmp_path / "results", night / "new.csv").exit_code == 0
    renewed = cg.load(tmp_path / "results")
    cold = cg.Calibrated(model=model).fit(renewed)
    np.testing.assert_allclose(renewed.fit().item_probs, cold.item_probs, atol=1e-3)


def test_a_fit_that_saw_other_gold_is_left_out_with_a_note(night, crowd, tmp_path):
    graph = cg.read_csv(night / "old.csv")
    graph.annotate(cg.IBCC().fit(graph)).save(tmp_path / "project.crowd")
    done = run("inspect", tmp_path / "project.crowd", "--gold", crowd / "gold.csv")
    assert done.exit_code == 0, done.output
    assert "note: The graph's results ('ibcc') saw other gold, and are left out." in done.stderr
