"""Bad input of an analysis and of writing its results: what is given, and the error and words that answer it."""

import json
from dataclasses import replace

import pytest

from crowdgraph.analysis import analyse, write_results
from crowdgraph.analysis.output import check_directory
from crowdgraph.errors import ParameterError, StoreError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"graph": []}, "An analysis is of a CrowdGraph; got a list"),
        ({"model": 5}, "name of one, such as 'ibcc'"),
        ({"model": "nix"}, "is not a choice"),
        ({"detector": "leiden"}, "detector= takes a detector"),
        ({"votes": {"no": "no"}}, "votes= misses 'yes'"),
        ({"snapshots": -1}, "snapshots=-1"),
        ({"min_responses": 0}, "min_responses=0"),
        ({"max_volunteers": 1}, "max_volunteers=1"),
        ({"validate": 1.0}, "validate=1.0 must be a number above 0 and below 1"),
        ({"seed": "x"}, "seed='x'"),
        ({"progress": 1}, "progress=1"),
    ],
)
def test_bad_settings(options, words, small_crowd):
    with pytest.raises(ParameterError, match=words):
        analyse(**{"graph": small_crowd, **options})


def test_what_cannot_be_written_leaves_nothing(analysis, tmp_path, without_figures):
    strange = replace(analysis, parameters={"chance": float("nan")})
    for value, error, words in [
        (analysis.graph, ParameterError, "Results are written of an Analysis; got a CrowdGraph"),
        (strange, ValueError, "not JSON compliant"),
    ]:
        with pytest.raises(error, match=words):
            write_results(value, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    """A folder with a file, and with two folders of results, to one of which somebody added a file."""
    (tmp_path / "file").write_text("x")
    for name in ("results", "extended"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"files": ["run.json"]}))
    (tmp_path / "extended" / "notes.txt").write_text("mine")
    return tmp_path


@pytest.mark.parametrize(
    ("directory", "force", "words"),
    [
        ("file", False, "is a file; name a directory"),
        ("file/below", False, "since 'file' is a file; name a directory elsewhere"),
        ("results", False, "not empty; name another directory, or use force"),
        ("extended", True, r"also holds 'notes\.txt', which would be lost"),
        (".", True, "does not hold results of crowdgraph"),
    ],
)
def test_directories_that_cannot_be_written_to(directory, force, words, folder):
    with pytest.raises(StoreError, match=words):
        check_directory(folder / directory, force=force)


def test_a_directory_that_may_not_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *args: False)
    with pytest.raises(StoreError, match="You may not write to"):
        check_directory(tmp_path / "new")
