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


TIMED = "volunteer,item,label,time\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2},2026-03-01\n" for n in range(90))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("utf16.csv", GOOD.encode("utf-16"), "is text in UTF-16, as spreadsheets save it; use --encoding utf-16"),
        ("le.csv", GOOD.encode("utf-16-le"), "use --encoding utf-16"),
        ("plain.csv.gz", GOOD.encode(), "is not compressed, though its name says so; rename it without .gz"),
        ("long.csv", (GOOD + "\nv1,i1,1,1\n").encode(), "Expected 3 columns, got 4 in line 93; correct that line"),
        ("date.csv", TIMED.replace("2026-03-01", "13/02/2026").encode(), "in line 2; expected ISO times"),
        ("date.csv", TIMED.replace("2026-03-01", "13/02/2026").encode(), "Or leave the times out: --no-time."),
        ("late.csv", (TIMED + "\nv1,i1,1,soon\n").encode(), "'soon' in line 93"),
        ("gap.csv", (GOOD + "v1,,1\nv1,i2,\n").encode(), "item in lines 92; label in lines 93. Correct the table"),
        ("headless.csv", GOOD.split("\n", 1)[1].encode(), "add a header line above, such as: volunteer,item,label"),
        ("blank.csv", b"\n\n\n", "blank.csv' is empty; give a CSV file with a header"),
        (
            "header.csv",
            GOOD[: GOOD.index("\n") + 1].encode(),
            "header.csv' has a header and no rows; give a file with a row",
        ),
        ("excel.csv", b"sep=,\n" + GOOD.encode(), "begins with the line 'sep=,', which only spreadsheets know; delete"),
        ("bytes.parquet", bytes(range(256)) * 40, ". Copy or download it again; if it is of another kind"),
    ],
)
def test_what_to_do_about_bad_files(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    done = run("inspect", path)
    is_one_sentence(done, words)
    assert ".." not in done.stderr.replace("...", "")


def test_advice_that_helps(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(GOOD.encode("utf-16"))
    assert run("inspect", path, "--encoding", "utf-16").exit_code == 0
    is_one_sentence(
        run("inspect", path, "--encoding", "klingon"), "--encoding klingon is not a known encoding; use one"
    )
    path.write_text(TIMED.replace("2026-03-01", "13/02/2026"))
    for option in (("--no-time",), ("--time", "")):
        assert run("convert", path, tmp_path / "o.csv", *option, "--force").exit_code == 0
        assert (tmp_path / "o.csv").read_text().startswith('"volunteer","item","label"\n')
    is_one_sentence(run("inspect", path, "--no-time", "--time", "time"), "give one of both")
    gold = tmp_path / "g.csv"
    gold.write_text("item,label\ni1,1\n,1\n")
    is_one_sentence(run("inspect", path, "--no-time", "--gold", gold), "names no item in lines 3")


def test_rows_that_are_left_out_are_told_by_their_lines(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD + "v1,i2,\n")
    assert "1 of 91 rows are left out: null label in lines 92." in run("inspect", path, "--missing", "drop").stderr


def test_parquet_without_times(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(TIMED)
    assert run("convert", path, tmp_path / "r.parquet").exit_code == 0
    assert run("convert", tmp_path / "r.parquet", tmp_path / "o.csv", "--no-time").exit_code == 0
    assert "time" not in (tmp_path / "o.csv").read_text()


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
    assert "could not be written to" in done.stderr
    assert "File too large. None were kept; free some space, or write elsewhere." in done.stderr
    assert ".part" not in done.stderr
    assert "Traceback" not in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.csv"]


def test_an_interrupt(monkeypatch, tmp_path):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("crowdgraph.io.any_file.read", interrupted)
    is_one_sentence(run("inspect", tmp_path / "r.csv"), "Interrupted", code=130)


def test_too_little_memory(monkeypatch, tmp_path):
    def hungry(*args, **options):
        raise MemoryError

    monkeypatch.setattr("crowdgraph.io.any_file.read", hungry)
    is_one_sentence(run("inspect", tmp_path / "r.csv"), "not enough memory")
