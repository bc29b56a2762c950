"""Real crowds through the command line, where they are on this machine: sensible results, in time and memory."""

import csv
import json
import resource
import time

import pytest
from cli.commands import run_as_process
from science.real import DATA

import crowdgraph as cg

pytestmark = pytest.mark.science


def analyse(name, out):
    """Analyse a real crowd in a process of its own; return the record, and how many seconds it took."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip("the real crowds are not on this machine")
    gold = ["--gold", folder / "gold.csv"] if (folder / "gold.csv").is_file() else []
    start = time.perf_counter()
    process = run_as_process("analyse", next(folder.glob("responses.csv*")), *gold, "--out", out)
    assert process.returncode == 0, process.stderr
    return json.loads((out / "run.json").read_text()), time.perf_counter() - start


@pytest.mark.parametrize(
    ("name", "at_least"), [("snapshots_at_sea_q1", None), ("predictionbook", 0.55), ("medrel_treat_l3", 0.7)]
)
def test_a_real_crowd(tmp_path, name, at_least):
    """Every step is done; the best third of the volunteers, by a file, are better than chance where gold is."""
    record, seconds = analyse(name, tmp_path / "out")
    print(f"{name}: {seconds:.0f} s")
    assert record["skipped"] == {}
    graph = cg.load(tmp_path / "out" / "graph.crowd")
    with (tmp_path / "out" / "volunteers.csv").open() as file:
        people = sorted(csv.DictReader(file), key=lambda row: -float(row["accuracy"]))
    assert len(people) == len(graph.volunteers)
    if at_least is not None:
        votes = graph.fit().params["votes"]
        best = {row["volunteer"] for row in people[: len(people) // 3]}
        answers = [(votes[one.label], graph.items[one.item].gold) for one in graph.responses if one.volunteer in best]
        judged = [vote == truth for vote, truth in answers if truth is not None and vote is not None]
        assert sum(judged) / len(judged) > at_least


def test_a_million_responses_in_four_gigabytes(tmp_path):
    record, seconds = analyse("opendomain_rel_multi", tmp_path / "out")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"1.2 million responses: {seconds:.0f} s, {peak:.1f} GB")
    assert peak < 4
    assert record["skipped"] == {}
