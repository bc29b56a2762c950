"""The command as a whole: help, version, colours, and how it ends when it is interrupted or lacks memory or disk."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
import torch
from cli.commands import COMMANDS, assert_one_sentence, run, run_as_process
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli import app
from crowdgraph.cli.app import Ended, _lacks_memory


def test_help_names_all_commands_with_examples():
    overview = run("--help").output
    for command in COMMANDS:
        assert command in overview
        assert f"crowdgraph {command}" in run(command, "--help").output


def test_help_loads_nothing_heavy_and_is_plain_when_piped():
    code = (
        "import sys\nfrom crowdgraph.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'torch', 'numba', 'sklearn', 'scipy', 'matplotlib', 'pyarrow', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: " in process.stdout
    assert process.stdout.endswith("\n[]\n")
    assert "\x1b[" not in process.stdout


def test_the_documentation_names_options_that_exist():
    """Every command line in the documentation has options that the command's help names."""
    page = (Path(__file__).parents[2] / "docs" / "cli.rst").read_text()
    lines = [line.split() for line in page.splitlines() if line.startswith("   crowdgraph ")]
    assert {line[1] for line in lines} == set(COMMANDS)
    helps = {command: run(command, "--help", terminal_width=200).output for command in COMMANDS}
    for _, command, *words in lines:
        options = [word.split("=")[0] for word in words if word.startswith("--")]
        assert all(f"{option} " in helps[command] for option in options), (command, words)


def test_version():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"crowdgraph {cg.__version__}\n")


def test_colours_are_for_terminals_and_left_out_when_asked(crowd):
    as_terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": None}
    coloured = run("inspect", crowd / "responses.csv", env=as_terminal, color=True).stdout
    assert "\x1b[33m" in coloured
    plain = run("inspect", crowd / "responses.csv", env={**as_terminal, "NO_COLOR": "1"}, color=True).stdout
    assert "\x1b[3" not in plain
    piped = {"FORCE_COLOR": None, "NO_COLOR": None}
    assert "\x1b[" not in run("inspect", crowd / "responses.csv", env=piped, color=True).stdout


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (Ended(signal.SIGTERM), 143, "Ended by SIGTERM"),
        (Ended(signal.SIGHUP), 129, "Ended by SIGHUP"),
        (MemoryError(), 1, "not enough memory"),
        (np._core._exceptions._ArrayMemoryError((9,), np.dtype(float)), 1, "not enough memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), 1, "not enough memory"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), 1, "not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "not enough memory"),
    ],
    ids=repr,
)
def test_signals_and_too_little_memory_are_one_sentence(error, code, sentence, monkeypatch, tmp_path):
    def read(*args, **options):
        raise error

    monkeypatch.setattr("crowdgraph.io.any_file.read", read)
    assert_one_sentence(run("inspect", tmp_path / "r.csv"), sentence, code=code)


def test_other_errors_of_libraries_are_not_taken_for_too_little_memory(monkeypatch, tmp_path):
    def read(*args, **options):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("crowdgraph.io.any_file.read", read)
    assert isinstance(run("inspect", tmp_path / "r.csv").exception, RuntimeError)


def test_torch_says_that_it_lacks_memory_in_words_that_we_know():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50, dtype=torch.float64)
    assert _lacks_memory(caught.value)


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_no_error(crowd):
    """The reader of the output reads nothing; shells show 141 for that."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        process = run_as_process("inspect", crowd / "responses.csv", capture_output=False, stdout=output, stderr=PIPE)
    assert (process.returncode, process.stderr) == (141, "")


@pytest.mark.slow
def test_terminals_without_some_characters_show_escapes(tmp_path):
    plain = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "NO_COLOR": "1"}
    (odd := tmp_path / "odd.csv").write_text(
        "volunteer,item,label\nZo\xeb,x,\u2191\nb,x,no\nb,\u2191,no\n", encoding="utf-8"
    )
    process = run_as_process("inspect", odd, env=plain)
    assert (process.returncode, process.stderr) == (0, "")
    assert "classes     no, \\u2191" in process.stdout
    command = ["allocate", str(odd), "--budget", "1", "--capacity", "2", "--model", "ibcc", "--json"]
    machine = CliRunner(charset="ascii").invoke(app, command)
    assert machine.exit_code == 0, machine.output
    assert {row["item"] for row in json.loads(machine.stdout_bytes.decode("ascii"))["questions"]} == {"\u2191"}


@pytest.mark.slow
def test_a_command_that_is_asked_to_end_cleans_up(tmp_path):
    """The signal comes while results are being written, and everything unfinished goes."""
    code = (
        "import os, signal\n"
        "import crowdgraph.io._cells as cells\n"
        "write = cells.write_csv\n"
        "def signalled(*args, **options):\n"
        "    write(*args, **options)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "cells.write_csv = signalled\n"
        "from crowdgraph.cli import main\n"
        "main()\n"
    )
    sizes = ("--volunteers", "5", "--items", "5", "--responses", "9")
    command = [sys.executable, "-c", code, "simulate", str(tmp_path / "out"), *sizes]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (143, "Error: Ended by SIGTERM.\n")
    assert list(tmp_path.iterdir()) == []


HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e"


def test_terminals_obey_no_names(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(
        f"volunteer,item,label\n{HOSTILE}v,{HOSTILE}i,{HOSTILE}l\nb,{HOSTILE}i,no\nb,y,no\n", encoding="utf-8"
    )
    for command in (
        ["inspect", path],
        ["allocate", path, "--budget", 2, "--model", "ibcc"],
        ["allocate", path, "--budget", 2, "--model", "ibcc", "--json"],
        ["inspect", path, "--volunteer", HOSTILE],
    ):
        result = run(*command)
        printed = result.stdout + result.stderr
        assert not set(HOSTILE) & set(printed) - set("]0;pwned[2J31m"), command
        assert printed.count("pwned") > 0, command
        if "--json" in command:
            assert json.loads(result.stdout)["questions"][0]["volunteer"] == f"{HOSTILE}v"


def test_quiet_shows_no_progress(crowd, monkeypatch):
    monkeypatch.setattr("crowdgraph.core._progress.LOG_SECONDS", 0)
    assert "Diagnosis: 1 of" in run("inspect", crowd / "responses.csv").stderr
    assert "Diagnosis" not in run("inspect", crowd / "responses.csv", "--quiet").stderr
    with_progress = set(COMMANDS) - {"simulate"}
    assert {
        command for command in COMMANDS if "--quiet" in run(command, "--help", terminal_width=200).output
    } == with_progress


@pytest.mark.slow
def test_a_disk_that_fills_up_leaves_nothing(tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the middle, for real."""
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2}\n" for n in range(90)))
    # This model needs no compiled code, which would be cut off as well.
    process = run_as_process(
        *("analyse", path, "--model", "ibcc", "--min-responses", "50", "--out", tmp_path / "out"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
        # Compiled modules would be cut off, too, and break whatever imports them next.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].startswith("Error: ")
    assert "could not be written to" in process.stderr
    assert "File too large. None were kept; free some space, or write elsewhere." in process.stderr
    assert ".part" not in process.stderr
    assert "Traceback" not in process.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.csv"]
