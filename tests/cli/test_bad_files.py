"""Files that cannot be read: one sentence with what is wrong, where, and what to do; nothing is half-written."""

import gzip
import os

import pytest
from cli.commands import assert_one_sentence, run

ROWS = "".join(f"v{n % 7},i{n * 31 % 50},{n % 2}\n" for n in range(90))
GOOD = "volunteer,item,label\n" + ROWS
TIMED = "volunteer,item,label,time\n" + "".join(f"v{n % 7},i{n * 31 % 50},{n % 2},2026-03-01\n" for n in range(90))
GERMAN_DATES = TIMED.replace("2026-03-01", "13/02/2026")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        # Not a table at all
        ("empty.csv", "", "is empty"),
        ("blank.csv", "\n\n\n", "blank.csv' is empty; give a CSV file with a header"),
        ("binary.csv", bytes(range(256)) * 40, "is not a text file"),
        ("bytes.parquet", bytes(range(256)) * 40, ". Copy or download it again; if it is of another kind"),
        ("cut.csv.gz", gzip.compress(GOOD.encode() * 50, mtime=0)[:-99], "is cut short"),
        ("plain.csv.gz", GOOD, "is not compressed, though its name says so; rename it without .gz"),
        ("utf16.csv", GOOD.encode("utf-16"), "is text in UTF-16, as spreadsheets save it; use --encoding utf-16"),
        ("le.csv", GOOD.encode("utf-16-le"), "use --encoding utf-16"),
        # Headers
        ("columns.csv", "a,b\n1,2\n", "No column of "),
        ("headless.csv", ROWS, "already a response, add a header line above it, such as: volunteer,item,label"),
        ("header.csv", "volunteer,item,label\n", "header.csv' has a header and no rows; give a file with a row"),
        ("excel.csv", "sep=,\n" + GOOD, "begins with the line 'sep=,', which only spreadsheets know; delete"),
        # Rows
        ("long.csv", GOOD + "\nv1,i1,1,1\n", "Expected 3 columns, got 4 in line 93; correct that line"),
        ("gap.csv", GOOD + "v1,,1\nv1,i2,\n", "item in lines 92; label in lines 93. Correct the table"),
        ("gaps.csv", "volunteer,item,label\na,x,\n", "--missing drop"),
        ("date.csv", GERMAN_DATES, "in line 2; expected ISO times"),
        ("date.csv", GERMAN_DATES, "Or leave the times out: --no-time."),
        ("late.csv", TIMED + "\nv1,i1,1,soon\n", "'soon' in line 93"),
    ],
    # The content would be too long for the name of a test.
    ids=lambda value: "" if isinstance(value, bytes) or "\n" in value else None,
)
def test_what_to_do_about_a_bad_file(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert_one_sentence(run("inspect", path), sentence)


@pytest.mark.parametrize("command", ["analyse", "inspect", "evaluate", "allocate", "convert"])
def test_every_command_ends_before_anything_is_written(tmp_path, command):
    empty, folder = tmp_path / "empty.csv", tmp_path / "folder"
    empty.touch()
    folder.mkdir()
    options = {"analyse": ("--out", tmp_path / "out"), "convert": (tmp_path / "out.csv",)}.get(command, ())
    assert_one_sentence(run(command, empty, *options), "is empty")
    assert_one_sentence(run(command, folder, *options), "is a directory")
    assert {entry.name for entry in tmp_path.iterdir()} == {"empty.csv", "folder"}


def test_the_advice_helps(tmp_path):
    path, gold = tmp_path / "r.csv", tmp_path / "g.csv"
    path.write_bytes(GOOD.encode("utf-16"))
    assert run("inspect", path, "--encoding", "utf-16").exit_code == 0
    path.write_text(GERMAN_DATES)
    assert run("inspect", path, "--no-time").exit_code == 0
    gold.write_text("item,label\ni1,1\n,1\n")
    assert_one_sentence(run("inspect", path, "--no-time", "--gold", gold), "names no item in lines 3")


def test_rows_that_are_left_out_are_named_by_their_lines(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD + "v1,i2,\n")
    assert "1 of 91 rows are left out: null label in lines 92." in run("inspect", path, "--missing", "drop").stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(GOOD)
    path.chmod(0)
    assert_one_sentence(run("inspect", path), "Permission denied")
