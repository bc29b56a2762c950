"""The command as a whole: help, version, colours, and how it ends when it is interrupted or lacks memory or disk."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import COMMANDS, assert_one_sentence, run, run_as_process

import crowdgraph as cg


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
    ("error", "code", "sentence"), [(KeyboardInterrupt, 130, "Interrupted"), (MemoryError, 1, "not enough memory")]
)
def test_interrupts_and_too_little_memory_are_one_sentence(error, code, sentence, monkeypatch, tmp_path):
    def read(*args, **options):
        raise error

    monkeypatch.setattr("crowdgraph.io.any_file.read", read)
    assert_one_sentence(run("inspect", tmp_path / "r.csv"), sentence, code=code)


def test_a_pipe_that_closes_early_is_no_error(monkeypatch, tmp_path):
    def read(*args, **options):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("crowdgraph.io.any_file.read", read)
    result = run("inspect", tmp_path / "r.csv")
    assert (result.exit_code, result.output) == (1, "")


@pytest.mark.slow
def test_a_disk_that_fills_up_leaves_nothing(tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the middle, for real."""
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2}\n" for n in range(90)))
    # This model needs no compiled code, which would be cut off as well.
    process = run_as_process(
        *("analyse", path, "--model", "majority_vote", "--min-responses", "50", "--out", tmp_path / "out"),
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
