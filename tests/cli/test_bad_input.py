"""What users get wrong: one sentence, an exit code, no traceback, nothing half-written."""

import gzip
import os
import resource
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from crowdgraph.cli import app

GOOD = "volunteer,item,label\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2}\n" for n in range(90))


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def is_one_sentence(done, words, code=1):
    """It ended as it should, and said what is wrong in a line on the error stream."""
    assert done.exit_code == code, done.output
    assert words in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["analyse", "inspect", "evaluate", "allocate"])
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("columns.csv", b"a,b\n1,2\n", "No column of "),
        ("empty.csv", b"", "is empty"),
        ("cut.csv.gz", gzip.compress(GOOD.encode() * 50, mtime=0)[:-99], "is cut short"),
        ("binary.csv", bytes(range(256)) * 40, "is not a text file"),
        ("rows.csv", b"volunteer,item,label\n", "no rows"),
        ("gaps.csv", b"volunteer,item,label\na,x,\n", "--missing drop"),
        ("folder", None, "is a directory"),
    ],
)
def test_bad_files(tmp_path, command, name, content, words):
    path = tmp_path / "in" / name
    path.parent.mkdir()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    extra = ("--out", tmp_path / "out") if command == "analyse" else ()
    is_one_sentence(run(command, path, *extra), words)
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_a_missing_file(tmp_path):
    is_one_sentence(run("inspect", tmp_path / "nothing.csv"), "There is no file")
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    is_one_sentence(run("inspect", path, "--gold", tmp_path / "nothing.csv"), "There is no file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    path.chmod(0)
    is_one_sentence(run("inspect", path), "Permission denied")


def test_places_to_write_to(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    is_one_sentence(run("analyse", path, "--out", path), "is a file; name a directory")
    is_one_sentence(run("convert", path, tmp_path / "x.xlsx"), "must end in .csv")
    is_one_sentence(run("convert", path, tmp_path / "no" / "x.csv"), "make it first")
    is_one_sentence(run("allocate", path, "--out", path / "x"), "r.csv' is a file")
    is_one_sentence(run("analyse", path, "--out", path / "x"), "since 'r.csv' is a file")
    is_one_sentence(run("convert", path, path), "is there already")
    (tmp_path / "x.csv").mkdir()
    is_one_sentence(run("convert", path, tmp_path / "x.csv"), "is a directory")


def test_bad_choices(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    is_one_sentence(run("analyse", path, "--model", "dynibc"), "Did you mean 'dynibcc'?")
    is_one_sentence(run("analyse", path, "--vote", "yes", "--out", tmp_path / "o"), "write LABEL=CLASS")
    is_one_sentence(run("inspect", path, "--format", "xml"), "--format xml is not a choice")
    is_one_sentence(run("inspect", path, "--volunteer", "user"), "has no column 'user'")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("args", [("nix",), ("inspect", "--colour"), ("demo", "--seed", "x"), ("demo", "--seed", "-1")])
def test_usage(args):
    done = run(*args)
    assert done.exit_code == 2
    assert "Usage:" in done.stderr
    assert "Traceback" not in done.output


def test_a_disk_that_fills_up_leaves_nothing(tmp_path):
    """A limit on the size of files stands for a full disk: writing fails in the middle, for real."""
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    command = [sys.executable, "-c", "from crowdgraph.cli import main; main()"]
    done = subprocess.run(
        [*command, "analyse", path, "--out", tmp_path / "out", "--model", "ibcc", "--min-responses", "50"],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.csv"]


def test_an_interrupt(monkeypatch, tmp_path):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("crowdgraph.analysis.reading.read", interrupted)
    is_one_sentence(run("inspect", tmp_path / "r.csv"), "Interrupted", code=130)


def test_too_little_memory(monkeypatch, tmp_path):
    def hungry(*args, **options):
        raise MemoryError

    monkeypatch.setattr("crowdgraph.analysis.reading.read", hungry)
    is_one_sentence(run("inspect", tmp_path / "r.csv"), "not enough memory")
