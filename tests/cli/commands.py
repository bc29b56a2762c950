"""Running commands of the command line, in this process or in one of their own."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from crowdgraph.cli import app

COMMANDS = ("demo", "analyse", "update", "inspect", "evaluate", "allocate", "simulate", "convert")


def run(*args, **options):
    """Run a command in this process; the result has its exit code, and what it printed on either stream."""
    return CliRunner().invoke(app, [str(arg) for arg in args], **options)


def run_as_process(*args, **options):
    """Run a command by the real entry point, as a shell does."""
    command = [sys.executable, "-c", "from crowdgraph.cli import main; main()", *map(str, args)]
    return subprocess.run(command, check=False, text=True, **{"capture_output": True, **options})


def assert_one_sentence(result, sentence, *, code=1):
    """Check that a command failed with one line on the error stream that has the sentence, and printed nothing else."""
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert ".." not in result.stderr.replace("...", "").replace("../", "")
    assert result.stdout == ""


@contextmanager
def figures_left_out():
    """Write results without their figures, which take longest and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdgraph.analysis.output.draw_figures", lambda results, folder: folder.mkdir())
        yield
