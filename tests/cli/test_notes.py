"""Nothing is left out without a word: options that do not apply, gold that is not written, notes of the reader."""

import json
import sys

import pytest
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli import app

ROWS = "".join(f"v{n % 7},i{n * 31 % 50},{'yes' if n % 3 else 'no'}\n" for n in range(90))


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def responses(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("worker,task,label\n" + ROWS)
    return path


def gold(folder, *rows):
    path = folder / "g.csv"
    path.write_text("\n".join(["task,label", *rows]) + "\n")
    return path


@pytest.mark.parametrize("option", ["volunteers", "items", "responses", "gold", "communities"])
def test_a_look_alike_refuses_what_it_cannot_follow(tmp_path, option):
    done = run("simulate", tmp_path / "gz", "--galaxy-zoo", f"--{option}", 1)
    assert done.exit_code == 1
    assert f"--{option} does not go with --galaxy-zoo" in done.stderr
    assert not (tmp_path / "gz").exists()


def test_converting_says_what_a_table_has_no_place_for(responses, tmp_path):
    graph = cg.read_csv(responses).with_gold({"i0": "yes", "i1": "no"})
    graph.annotate(cg.MajorityVote().fit(graph)).save(tmp_path / "g.crowd")
    done = run("convert", tmp_path / "g.crowd", tmp_path / "m.csv")
    assert done.exit_code == 0
    assert "m.csv holds responses only, without the gold of 2 items (write it with --gold-out FILE)" in done.stderr
    assert "the results majority_vote" in done.stderr
    with_gold = run("convert", tmp_path / "g.crowd", tmp_path / "n.csv", "--gold-out", tmp_path / "n_gold.csv")
    assert "the gold" not in with_gold.stderr
    assert "responses only" not in run("convert", tmp_path / "g.crowd", tmp_path / "o.crowd").stderr
    assert "responses only" not in run("convert", responses, tmp_path / "p.parquet").stderr


def test_gold_without_rows_is_told(responses, tmp_path):
    done = run("inspect", responses, "--gold", gold(tmp_path))
    assert done.exit_code == 0
    assert "The gold file 'g.csv' names no class of any item, so there is no gold" in done.stderr


@pytest.mark.parametrize("saved", [False, True])
def test_gold_of_other_items_is_an_error(responses, tmp_path, saved):
    known, source = gold(tmp_path, "x1,yes", "x2,no"), responses
    if saved:
        source = tmp_path / "r.crowd"
        cg.read_csv(responses).save(source)
        known.write_text(known.read_text().replace("task", "item"))
    done = run("analyse", source, "--gold", known, "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "None of the 2 items" in done.stderr
    assert "('x1', 'x2', ...)" in done.stderr
    assert "('i0', 'i31', 'i12', ...)" in done.stderr
    assert "Give the gold of these items" in done.stderr
    assert not (tmp_path / "out").exists()


def test_notes_of_the_reader_reach_the_record_and_the_page(responses, tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules["crowdgraph.analysis.output"], "draw_figures", lambda results, folder: folder.mkdir()
    )
    known = gold(tmp_path, "i0,yes", "i1,no", "strange,no")
    done = run("analyse", responses, "--gold", known, "--out", tmp_path / "out", "--model", "ibcc", "--json")
    assert done.exit_code == 0
    told = ("worker for the volunteer", "Gold names 1 items that nobody answered")
    for words in told:
        assert any(words in sentence for sentence in json.loads((tmp_path / "out" / "run.json").read_text())["notes"])
        assert any(words in sentence for sentence in json.loads(done.stdout)["notes"])
        assert words in (tmp_path / "out" / "report.html").read_text()
        assert done.stderr.count(words) == 1


def test_inspect_tells_that_labels_are_not_classes(responses, tmp_path):
    known = gold(tmp_path, *(f"i{n * 31 % 50},{'good' if n % 3 else 'bad'}" for n in range(45)))
    done = run("inspect", responses, "--gold", known)
    assert "Labels are not the classes; by" in done.stderr
    assert "yes for good" in done.stderr
    lost = run("inspect", responses, "--gold", gold(tmp_path, "i0,good", "i31,bad", "i12,worse"))
    assert "gold does not show which class each of them votes for; say it with --vote LABEL=CLASS" in lost.stderr
