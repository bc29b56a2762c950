"""The command line, as a user types it: what it says, what it writes, how it ends."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import crowdgraph as cg
import crowdgraph.analysis
import crowdgraph.diagnosis
from crowdgraph.cli import app
from crowdgraph.cli._output import command_line

COMMANDS = ("demo", "analyse", "inspect", "evaluate", "allocate", "simulate", "convert")


def run(*args, **options):
    return CliRunner().invoke(app, [str(arg) for arg in args], **options)


def in_a_process(*args, **environment):
    code = "from crowdgraph.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module", autouse=True)
def without_pictures():
    """Pictures take longest, and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["crowdgraph.analysis.output"], "draw_figures", lambda results, folder: folder.mkdir())
        yield


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowd") / "made"
    sizes = ("--volunteers", 12, "--items", 30, "--responses", 200, "--gold", 0.6)
    assert run("simulate", folder, *sizes, "--seed", 1).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def analysed(crowd, tmp_path_factory):
    out = tmp_path_factory.mktemp("analysed") / "out"
    options = ("--gold", crowd / "gold.csv", "--out", out, "--snapshots", 0, "--min-responses", 5)
    done = run("analyse", crowd / "responses.csv", *options)
    assert done.exit_code == 0, done.output
    return out, done


def test_help_tells_all_commands_with_examples():
    told = run("--help").output
    for command in COMMANDS:
        assert command in told
        assert f"crowdgraph {command}" in run(command, "--help").output


def test_help_is_fast_and_plain_when_piped():
    """Nothing heavy is loaded just to tell what there is."""
    code = (
        "import sys\nfrom crowdgraph.cli import app\n"
        "heavy = {'torch', 'numba', 'sklearn', 'scipy', 'matplotlib', 'pyarrow', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "\x1b[" not in in_a_process("--help").stdout


def test_the_documentation_names_options_that_exist():
    """Every command line in the documentation has options that the command's help tells."""
    page = (Path(__file__).parents[2] / "docs" / "cli.rst").read_text()
    lines = [line.split() for line in page.splitlines() if line.startswith("   crowdgraph ")]
    assert {line[1] for line in lines} == set(COMMANDS)
    for _, command, *words in lines:
        known = run(command, "--help", terminal_width=200).output
        assert all(f"{word.split('=')[0]} " in known for word in words if word.startswith("--")), (command, words)


def test_the_version():
    done = run("--version")
    assert (done.exit_code, done.output) == (0, f"crowdgraph {cg.__version__}\n")


def test_analyse_writes_all_and_says_so(analysed, crowd):
    out, done = analysed
    assert f"Open {out / 'report.html'}" in done.stdout
    assert "12 volunteers, 30 items, 200 responses" in done.stdout
    record = json.loads((out / "run.json").read_text())
    assert record["source"]["columns"] == {"volunteer": "volunteer", "item": "item", "label": "label", "time": "time"}
    assert record["source"]["files"]["gold"]["name"] == "gold.csv"
    assert len(record["source"]["files"]["gold"]["sha256"]) == 64
    assert record["parameters"]["min_responses"] == 5
    assert cg.load(out / "graph.crowd").equals(cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv"))


def test_the_same_command_gives_the_same_items(analysed, crowd, tmp_path):
    out, _ = analysed
    options = ("--gold", crowd / "gold.csv", "--snapshots", 0, "--min-responses", 5, "--json")
    done = run("analyse", crowd / "responses.csv", *options, "--out", tmp_path / "again")
    summary = json.loads(done.stdout)
    assert summary["responses"] == 200
    assert summary["out"] == str(tmp_path / "again")
    for name in ("items.csv", "volunteers.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_results_are_replaced_only_when_asked(analysed, crowd, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(analysed[0], out)
    refused = run("analyse", crowd / "responses.csv", "--out", out)
    assert refused.exit_code == 1
    assert "is there already and not empty; name another directory, or use --force" in refused.stderr
    (out / "mine.txt").write_text("x")
    assert "would be lost" in run("analyse", crowd / "responses.csv", "--out", out, "--force").stderr
    (out / "mine.txt").unlink()
    options = ("--snapshots", 0, "--model", "ibcc", "--force")
    assert run("analyse", crowd / "responses.csv", "--out", out, *options).exit_code == 0
    assert "IBCC(" in json.loads((out / "run.json").read_text())["parameters"]["model"]


def test_guessed_columns_and_skipped_steps_are_said(tmp_path):
    path = tmp_path / "answers.tsv"
    path.write_text("worker\ttask\tanswer\nanna\tx\tyes\nbert\tx\tno\ncleo\ty\tno\n")
    done = run("analyse", path, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "worker for the volunteer, task for the item, answer for the label" in done.stderr
    assert "Skipped pi_similarity, task_cooccurrence, communities: No volunteer has 10 answers or more" in done.stdout
    assert "IBCC is used instead of DynIBCC" in done.stderr


def test_the_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(
        cg.simulate,
        "galaxy_zoo_supernovae",
        lambda **_: cg.simulate.crowd(
            n_volunteers=6,
            n_items=30,
            n_responses=60,
            classes=("not supernova", "supernova"),
            labels=(-1, 1, 3),
            groups=[cg.simulate.galaxy_zoo.GROUPS[0]],
            seed=0,
        ),
    )
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 0, done.output
    assert "Galaxy Zoo" in (tmp_path / "demo" / "report.html").read_text()


def test_inspect(crowd):
    done = run("inspect", crowd / "responses.csv")
    assert done.exit_code == 0
    assert "switching: no gold" in done.stdout
    found = json.loads(run("inspect", crowd / "responses.csv", "--gold", crowd / "gold.csv", "--json").stdout)
    assert found["responses"] == 200
    assert "no gold" not in [finding["name"] for finding in found["findings"]]


def test_evaluate(crowd):
    options = ("--gold", crowd / "gold.csv", "--folds", 2, "--model", "majority_vote", "--model", "ibcc")
    done = run("evaluate", crowd / "responses.csv", *options)
    assert done.exit_code == 0
    assert "accuracy ↑" in done.stdout
    assert "log_loss ↓" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Most often right: ")
    found = json.loads(run("evaluate", crowd / "responses.csv", *options, "--json").stdout)
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    expected = cg.evaluation.cross_validate(graph, [cg.MajorityVote(), cg.IBCC()], folds=2)
    assert found["models"]["ibcc"]["accuracy"]["mean"] == pytest.approx(expected.mean("accuracy")[1])
    losses = expected.mean("log_loss")
    assert found["best"]["log_loss"]["model"] == expected.models[losses.argmin()]
    assert found["best"]["log_loss"]["ahead"] == pytest.approx(abs(losses[0] - losses[1]))
    assert found["best"]["log_loss"]["beyond_spread"] == (
        abs(losses[0] - losses[1]) > expected.spread("log_loss").max()
    )
    refused = run("evaluate", crowd / "responses.csv")
    assert refused.exit_code == 1
    assert "give a file of items and their classes with --gold" in refused.stderr


def test_the_cautious_model_is_known(crowd, tmp_path):
    source = (crowd / "responses.csv", "--gold", crowd / "gold.csv")
    done = run("evaluate", *source, "--model", "cautious", "--folds", 2, "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["models"]) == ["cautious"]
    options = ("--model", "cautious", "--snapshots", 0, "--min-responses", 5, "--out", tmp_path / "out")
    assert run("analyse", *source, *options).exit_code == 0
    assert "Cautious(" in json.loads((tmp_path / "out" / "run.json").read_text())["parameters"]["model"]
    assert "cautious" in run("analyse", "--help").output


def test_allocate(crowd, analysed, tmp_path):
    options = ("--gold", crowd / "gold.csv", "--budget", 5)
    found = json.loads(run("allocate", crowd / "responses.csv", *options, "--json").stdout)
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    fit = cg.IBCC().fit(graph)
    expected = cg.allocation.GreedyValue().assign(graph.annotate(fit), budget=5, seed=0)
    assert [(row["volunteer"], row["item"]) for row in found["questions"]] == list(expected)
    done = run("allocate", crowd / "responses.csv", *options, "--policy", "random", "--out", tmp_path / "next.csv")
    assert done.exit_code == 0
    assert len((tmp_path / "next.csv").read_text().splitlines()) == 6
    again = run("allocate", analysed[0] / "graph.crowd", "--budget", 2)
    assert "carries is used" in again.stderr
    explained, *table = again.stdout.splitlines()
    assert "gain: nats" in explained
    assert len(table) == 3
    sure = fit.item_probs.max(axis=1)[graph.items.codes([row["item"] for row in found["questions"]])]
    assert [row["why"] for row in found["questions"]] == [
        f"class {share:.0%} certain; worth most of the questions left" for share in sure
    ]
    folder = run("allocate", analysed[0], "--budget", 2)
    assert "graph.crowd' is read" in folder.stderr
    assert folder.stdout == again.stdout
    assert "is not a choice" in run("allocate", crowd / "responses.csv", "--policy", "best").stderr
    assert "must end in .csv" in run("allocate", crowd / "responses.csv", "--out", tmp_path / "x.txt").stderr


def test_simulated_crowds(crowd, tmp_path):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "truth.csv")
    known = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv").gold
    assert len(graph.gold) == len(graph.items)
    assert 0 < len(known) < len(graph.items)
    assert all(graph.gold[item] == known[item] for item in known)
    copy = tmp_path / "copy"
    shutil.copytree(crowd, copy)
    assert run("simulate", copy).exit_code == 1
    assert run("simulate", copy, "--force", "--galaxy-zoo").exit_code == 0
    assert len(cg.read_csv(copy / "responses.csv").responses) == 26_558
    bad = run("simulate", tmp_path / "x", "--drift", "sideways")
    assert bad.exit_code == 1
    assert "sideways" in bad.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".crowd"])
def test_convert_there_and_back(crowd, tmp_path, ending):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    target, gold = tmp_path / f"r{ending}", tmp_path / "g.parquet"
    done = run("convert", crowd / "responses.csv", target, "--gold", crowd / "gold.csv", "--gold-out", gold)
    assert done.exit_code == 0, done.output
    if ending == ".crowd":
        assert cg.load(target).equals(graph)
    else:
        assert run("convert", target, tmp_path / "back.crowd", "--gold", gold).exit_code == 0
        assert cg.load(tmp_path / "back.crowd").equals(graph)
    assert pq.read_table(gold).num_rows == len(graph.gold)
    assert "use --force" in run("convert", crowd / "responses.csv", target).stderr


@pytest.mark.parametrize("ending", [".graphml", ".gexf"])
def test_convert_to_networks(crowd, tmp_path, ending):
    assert run("convert", crowd / "responses.csv", tmp_path / f"n{ending}").exit_code == 0
    assert "volunteer:volunteer-00" in (tmp_path / f"n{ending}").read_text()


def test_inspect_speaks_of_options(crowd):
    told = run("inspect", crowd / "responses.csv").stdout
    assert "--gold FILE" in told
    assert "with_gold" not in told


def test_absolute_paths_are_not_recorded(monkeypatch):
    given = ["x", "analyse", "/home/me/r.csv", "--gold=/home/me/gold.csv", "--vote", "a=b", "--out", "../results"]
    monkeypatch.setattr(sys, "argv", given)
    assert command_line() == "crowdgraph analyse r.csv --gold=gold.csv --vote a=b --out ../results"


def test_simulated_crowds_have_gold_for_a_fifth(tmp_path):
    sizes = ("--volunteers", 5, "--items", 100, "--responses", 300)
    assert run("simulate", tmp_path / "made", *sizes).exit_code == 0
    assert 5 < len((tmp_path / "made" / "gold.csv").read_text().splitlines()) < 40


def test_no_colours_when_asked(crowd):
    plain = in_a_process("inspect", crowd / "responses.csv", NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b[31m" not in plain
    assert "\x1b[" not in in_a_process("inspect", crowd / "responses.csv").stdout
