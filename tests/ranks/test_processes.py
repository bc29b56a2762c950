"""Two real processes on this machine: the same answers as one, errors that both see, and the loss of one of them."""

import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from builders import crowd
from ranks import group_of_two
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli._last_word import ERROR_FILE
from crowdgraph.cli.distributed import app

ITEMS_OF_GOLD = 30


def read(path):
    return pickle.loads(path.read_bytes())  # noqa: S301 - our own process wrote it


def crowds():
    two = crowd(0.9, 0.7, 0.4, gold=0.0).graph
    # Gold of the first items only, so that one of the ranks has none.
    known = {item: "yes" if code % 2 else "no" for code, item in enumerate(two.items.ids[:ITEMS_OF_GOLD].tolist())}
    three = crowd(classes=("a", "b", "c"), gold=0.0).graph
    soft = {item: {"a": 0.7, "b": 0.2, "c": 0.1} for item in three.items.ids[:20].tolist()}
    names = {"yes": "likely", "no": "no"}
    labels = [names[two.labels[code]] if row % 5 else "perhaps" for row, code in enumerate(two.responses.label)]
    ids = (two.volunteers.ids[two.responses.volunteer], two.items.ids[two.responses.item])
    other = cg.CrowdGraph.from_responses(
        {"volunteer": ids[0], "item": ids[1], "label": labels}, classes=["no", "yes"], gold={}
    )
    one = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["no", "yes"]})
    return {
        "two classes": two.with_gold(known),
        "soft gold": three.with_gold(soft),
        "other labels": other,
        "one item": one,
    }


@pytest.fixture(scope="module")
def graphs():
    return crowds()


@pytest.fixture(scope="module")
def network():
    groups = cg.simulate.crowd(n_volunteers=30, n_responses=1_000, n_communities=3, mixing=0.05, seed=0)
    return cg.networks.task_cooccurrence(groups.graph)


@pytest.fixture(scope="module")
def folder(graphs, network, tmp_path_factory):
    """Where two processes have left what they computed, and how they ended."""
    folder = tmp_path_factory.mktemp("group")
    for name, graph in graphs.items():
        graph.save(folder / f"{name}.store", format="columns")
    (folder / "network").write_bytes(pickle.dumps(network))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, group_of_two.__file__, folder],
            env={**os.environ, **meeting, **threads, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [1, -signal.SIGKILL], "\n".join(errors)
    return folder


@pytest.fixture(scope="module")
def answers(folder):
    return [read(folder / f"answers {rank}") for rank in range(2)]


def test_sums_are_the_same_bits_everywhere(answers):
    expected = sum(np.random.default_rng(rank).random(1000) for rank in range(2))
    for own in answers:
        (first, second), largest = own["sums"]
        assert first == second == expected.tobytes()
        assert (largest, own["total"]) == (1.0, 3)


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, models in group_of_two.FITS.items() for number in range(len(models))]
)
def test_two_ranks_give_the_answer_of_one(name, number, graphs, folder, answers):
    expected = group_of_two.FITS[name][number].fit(graphs[name])
    graph = cg.load(folder / f"{name} {number}")
    fit = graph.fit()
    assert graph.equals(graphs[name].annotate(fit))
    assert np.allclose(fit.item_probs, expected.item_probs, rtol=0, atol=1e-9)
    ours, theirs = (part.confusion.latest().concentration for part in (fit, expected))
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert np.allclose(fit.bound, expected.bound, rtol=1e-12)
    assert fit.n_iter == expected.n_iter
    assert sum(own[name, number] for own in answers) == graph.n_items


def test_ranks_stream_within_a_limit_of_memory(graphs, answers):
    streamed = np.concatenate([own["streamed"] for own in answers])
    assert np.allclose(streamed, cg.IBCC().fit(graphs["two classes"]).item_probs, rtol=0, atol=1e-9)


def test_two_ranks_find_the_communities_of_one(network, answers):
    expected = group_of_two.DETECTOR.detect(network, seed=1)
    assert expected.participation.shape[1] > 1
    for own in answers:
        assert np.array_equal(own["communities"], expected.participation)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("other stores", "opened stores of different crowds: rank 0 differs from rank 1"),
        ("versions", "run different versions of crowdgraph: rank 0 differs from rank 1 (1.0 and 1.1)"),
        ("items", "2 ranks cannot share 1 items: each needs at least one. Use --nproc-per-node 1 or less."),
        ("no network", "The network is None; rank 0 needs one"),
        ("no store", "There is no store '"),
        ("no store", "nowhere.store': no such directory can be seen from here."),
    ],
)
def test_all_ranks_see_what_is_wrong(case, message, answers):
    for own in answers:
        assert message in own[case][1]


def test_a_lost_rank_ends_the_others_and_the_fit_can_be_resumed(graphs, folder):
    (kind, message), reports_first, reports_again = read(folder / "lost")
    assert kind == "LostRankError"
    assert f"checkpoint '{folder / 'fit.checkpoint'}' with the same command and --resume" in message
    assert (reports_first, reports_again) == (True, False)
    model, store = cg.IBCC(), folder / "two classes.store"
    resumed = cg.distributed.fit(model, store, checkpoint=folder / "fit.checkpoint", resume=True)
    expected = model.fit(graphs["two classes"])
    assert resumed.n_iter == expected.n_iter
    assert np.allclose(resumed.item_probs, expected.item_probs, rtol=0, atol=1e-9)


# What torchrun says last


@pytest.mark.slow
def test_a_killed_process_has_left_word_of_how_to_go_on(graphs, folder):
    checkpoint = folder / "killed.checkpoint"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [Path(__file__).with_name("slow_ranks.py"), "fit", folder / "two classes.store"]
    launch = subprocess.Popen(
        [sys.executable, *launcher, *command, "--checkpoint", checkpoint, "--every", "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not checkpoint.exists() and launch.poll() is None:
        time.sleep(0.02)
    children = Path(f"/proc/{launch.pid}/task/{launch.pid}/children").read_text().split()
    ranks = [int(one) for one in children if b"slow_ranks" in Path(f"/proc/{one}/cmdline").read_bytes()]
    os.kill(ranks[1], signal.SIGKILL)
    errors = launch.communicate(timeout=240)[1]
    cause = " ".join(errors[errors.rindex("Root Cause") :].split())
    assert re.search(r"traceback : Rank \d was killed, perhaps for lack of memory. Repeat the same command with", cause)
    assert f"it goes on from the checkpoint '{checkpoint}' if that is there" in cause


@pytest.fixture
def left(monkeypatch, tmp_path):
    """What torchrun would read, if anything, after a command ended."""
    monkeypatch.setenv(ERROR_FILE, str(tmp_path / "error.json"))

    def read_as_torchrun_does():
        failure = ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file=str(tmp_path / "error.json"))
        return failure.message["message"] if isinstance(failure.message, dict) else None

    return read_as_torchrun_does


def test_an_error_is_the_last_word(left, folder, tmp_path):
    run = CliRunner().invoke(app, ["fit", str(tmp_path / "nowhere.store")])
    assert run.exit_code == 1
    assert left() == " ".join(run.stderr.split()).removeprefix("Error: ")


def test_a_process_that_succeeds_leaves_no_word(left, graphs, tmp_path):
    graphs["one item"].save(tmp_path / "crowd.store", format="columns")
    options = ["--out", str(tmp_path / "results")]
    assert CliRunner().invoke(app, ["fit", str(tmp_path / "crowd.store"), *options]).exit_code == 0
    assert left() is None


def test_what_nobody_foresaw_is_left_to_python(left, graphs, tmp_path, monkeypatch):
    def fail(*_, **__):
        assert left().startswith("Rank 0 was killed, perhaps for lack of memory. Repeat the same command")
        raise ZeroDivisionError

    graphs["one item"].save(tmp_path / "crowd.store", format="columns")
    monkeypatch.setattr("crowdgraph.distributed.fitting.fit", fail)
    assert isinstance(CliRunner().invoke(app, ["fit", str(tmp_path / "crowd.store")]).exception, ZeroDivisionError)
    assert left() is None
