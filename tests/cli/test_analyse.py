"""``crowdgraph analyse`` and ``demo``: what is written, what is printed, and what is replaced."""

import json
import shlex
import shutil
import sys

from cli.commands import run
from results import same_graph

import crowdgraph as cg
from crowdgraph.cli._output import command_line


def record(out):
    return json.loads((out / "run.json").read_text())


def test_all_results_are_written_and_summed_up(analysed, crowd):
    out, result = analysed
    assert f"Open {out / 'report.html'}" in result.stdout
    assert "12 volunteers, 30 items, 200 responses" in result.stdout
    source = record(out)["source"]
    assert source["columns"] == {"volunteer": "volunteer", "item": "item", "label": "label", "time": "time"}
    assert source["files"]["gold"]["name"] == "gold.csv"
    assert len(source["files"]["gold"]["sha256"]) == 64
    assert record(out)["parameters"]["min_responses"] == 5
    assert cg.load(out / "graph.crowd").equals(cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv"))


def test_the_same_command_gives_the_same_items(analysed, crowd, tmp_path):
    out, _ = analysed
    options = ("--gold", crowd / "gold.csv", "--snapshots", 0, "--min-responses", 5, "--json")
    summary = json.loads(run("analyse", crowd / "responses.csv", *options, "--out", tmp_path / "again").stdout)
    assert summary["responses"] == 200
    assert summary["out"] == str(tmp_path / "again")
    for name in ("items.csv", "volunteers.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_a_run_is_repeated_from_its_record(crowd, tmp_path, monkeypatch):
    """The recorded command, where its files are, writes the same tables, byte for byte, and the same graph."""
    monkeypatch.chdir(crowd)
    typed = (
        "analyse",
        "responses.csv",
        "--gold",
        "gold.csv",
        "--snapshots",
        "1",
        "--min-responses",
        "5",
        "--seed",
        "3",
    )
    first, again = tmp_path / "first", tmp_path / "again"
    monkeypatch.setattr(sys, "argv", ["crowdgraph", *typed])
    assert run(*typed, "--out", first).exit_code == 0
    (command,) = record(first)["commands"]
    program, *repeated = shlex.split(command)
    assert program == "crowdgraph"
    assert run(*repeated, "--out", again).exit_code == 0
    tables = [path.name for path in first.iterdir() if path.suffix in (".csv", ".parquet", ".graphml")]
    assert {"items.csv", "volunteers.csv", "confusion.parquet", "network.graphml"} <= set(tables)
    assert all((again / name).read_bytes() == (first / name).read_bytes() for name in tables)
    assert same_graph(cg.load(again / "graph.crowd"), cg.load(first / "graph.crowd"))
    assert record(again)["parameters"] == record(first)["parameters"]


def test_results_are_replaced_only_when_asked(analysed, crowd, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(analysed[0], out)
    refused = run("analyse", crowd / "responses.csv", "--out", out)
    assert refused.exit_code == 1
    assert "is there already and not empty; name another directory, or use --force" in refused.stderr
    (out / "mine.txt").write_text("x")
    assert "would be lost" in run("analyse", crowd / "responses.csv", "--out", out, "--force").stderr
    (out / "mine.txt").unlink()
    # No volunteer has as many answers, so that nothing is detected.
    options = ("--snapshots", 0, "--model", "ibcc", "--min-responses", 100, "--force")
    assert run("analyse", crowd / "responses.csv", "--out", out, *options).exit_code == 0
    assert "IBCC(" in record(out)["parameters"]["model"]


def test_guessed_columns_and_skipped_steps_are_printed(tmp_path):
    path = tmp_path / "answers.tsv"
    path.write_text("worker\ttask\tanswer\nanna\tx\tyes\nbert\tx\tno\ncleo\ty\tno\n")
    result = run("analyse", path, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "worker for the volunteer, task for the item, answer for the label" in result.stderr
    assert "Skipped pi_similarity, task_cooccurrence, communities: No volunteer has 10 answers or more" in result.stdout
    assert "There are no times" in result.stdout


def test_notes_of_the_reader_reach_the_record_and_the_page(tmp_path):
    responses, gold, out = tmp_path / "r.csv", tmp_path / "g.csv", tmp_path / "out"
    responses.write_text("worker,task,label\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2}\n" for n in range(90)))
    gold.write_text("task,label\ni0,1\ni1,0\nstrange,0\n")
    options = ("--model", "ibcc", "--min-responses", 50, "--json")
    result = run("analyse", responses, "--gold", gold, "--out", out, *options)
    assert result.exit_code == 0
    for words in ("worker for the volunteer", "Gold names 1 item that nobody answered"):
        assert any(words in sentence for sentence in record(out)["notes"])
        assert any(words in sentence for sentence in json.loads(result.stdout)["notes"])
        assert words in (out / "report.html").read_text()
        assert result.stderr.count(words) == 1


def test_the_cautious_model_is_known(crowd, tmp_path):
    options = ("--model", "cautious", "--snapshots", 0, "--min-responses", 100, "--out", tmp_path / "out")
    assert run("analyse", crowd / "responses.csv", "--gold", crowd / "gold.csv", *options).exit_code == 0
    assert "Cautious(" in record(tmp_path / "out")["parameters"]["model"]
    assert "cautious" in run("analyse", "--help").output


def test_the_demo_is_of_the_embedded_crowd(tmp_path, monkeypatch):
    small = cg.simulate.crowd(
        n_volunteers=6,
        n_items=30,
        n_responses=60,
        classes=("not supernova", "supernova"),
        labels=(-1, 1, 3),
        groups=[cg.simulate.galaxy_zoo.GROUPS[0]],
        seed=0,
    )
    monkeypatch.setattr(cg.simulate, "galaxy_zoo_supernovae", lambda **_: small)
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert "Galaxy Zoo" in (tmp_path / "demo" / "report.html").read_text()


def test_absolute_paths_are_not_recorded(monkeypatch):
    typed = ["x", "analyse", "/home/me/r.csv", "--gold=/home/me/gold.csv", "--vote", "a=b", "--out", "../results"]
    monkeypatch.setattr(sys, "argv", typed)
    assert command_line() == "crowdgraph analyse r.csv --gold=gold.csv --vote a=b --out ../results"


def test_the_default_model_and_the_prior_are_recorded(analysed, crowd, tmp_path):
    assert record(analysed[0])["parameters"]["model"].startswith("Calibrated(model=IBCC(confusion_prior='crowd'")
    options = ("--snapshots", 0, "--min-responses", 100, "--gold", crowd / "gold.csv")
    for prior, recorded in (("crowd", "'crowd'"), ("gold", "'gold'"), ("4,1", "(4.0, 1.0)")):
        out = tmp_path / prior
        assert run("analyse", crowd / "responses.csv", "--out", out, "--prior", prior, *options).exit_code == 0
        assert f"IBCC(confusion_prior={recorded}" in record(out)["parameters"]["model"]
