"""The advice of the data doctor, as ``crowdgraph inspect`` words it: options and files, no calls of Python."""

import ast
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from builders import crowd
from cli.commands import run

import crowdgraph as cg

# Crowds with something for the doctor to find


def small(**options):
    return crowd(n_volunteers=6, n_items=20, n_responses=60, **options).graph


def columns(graph):
    frame = graph.to_pandas()
    return {name: frame[name].to_numpy().copy() for name in frame.columns}


@cache
def large(**options):
    return cg.simulate.crowd(n_volunteers=60, n_items=300, n_responses=4_000, stays="long", seed=0, **options).graph


def fast():
    graph = large()
    rows = columns(graph)
    name = graph.volunteers.ids[graph.volunteers.n_responses.argmax()]
    own = np.flatnonzero(rows["volunteer"] == name)
    rows["time"] = rows["time"].astype("datetime64[ms]")
    rows["time"][own] = rows["time"][own[0]] + np.arange(len(own)) * np.timedelta64(500, "ms")
    return cg.CrowdGraph.from_responses(rows, gold=dict(graph.gold))


def one_for_all():
    graph = large()
    rows = columns(graph)
    again = {name: np.append(column, column[::2]) for name, column in rows.items()}
    again["volunteer"][len(rows["item"]) :] = "busy"
    return cg.CrowdGraph.from_responses(again, gold=dict(graph.gold))


def rows_twice():
    rows = columns(large())
    return cg.CrowdGraph.from_responses({name: np.append(column, column[:900]) for name, column in rows.items()})


def inconsistent():
    rows = columns(large())
    again = {name: np.append(column, column[:900]) for name, column in rows.items()}
    again["label"][-900:] = np.random.default_rng(0).permutation(again["label"][-900:])
    again["time"][-900:] += np.timedelta64(1, "D")
    return cg.CrowdGraph.from_responses(again)


def pause():
    rows = columns(large())
    late = rows["time"] > np.median(rows["time"].astype("int64")).astype(rows["time"].dtype)
    rows["time"][late] += np.timedelta64(900, "D")
    return cg.CrowdGraph.from_responses(rows)


def stray():
    rows = columns(large())
    rows["time"][:2] = np.datetime64("1970-01-01")
    return cg.CrowdGraph.from_responses(rows)


def untimed():
    rows = columns(large())
    del rows["time"]
    return cg.CrowdGraph.from_responses(rows)


def lone_items():
    rows = columns(large())
    rows["item"] = np.array([f"item {n}" if n % 2 else name for n, name in enumerate(rows["item"])], dtype=object)
    return cg.CrowdGraph.from_responses(rows)


def unnamed():
    return cg.CrowdGraph.from_responses(columns(large()), classes=["whale", "ship"])


@pytest.mark.parametrize(
    ("make", "name", "advice"),
    [
        (fast, "fast answers", "leave their rows out of the file if"),
        (one_for_all, "very active volunteers", "Compare with and without them. Ask others"),
        (rows_twice, "rows twice", "--duplicates first"),
        (inconsistent, "repeated answers", "--duplicates last"),
        (lambda: small(gold=0), "hardly known volunteers", "--min-responses"),
        (lambda: large(gold=0), "no gold", "Add the classes of some items with --gold FILE"),
        (unnamed, "no gold", "or say what labels mean with --vote LABEL=CLASS"),
        (untimed, "no times", "name it: --time created_at"),
        (pause, "pauses", "Look at both sides on their own, as two files"),
        (stray, "stray times", "leave their rows out of the file if"),
        (lone_items, "items with one answer", "crowdgraph allocate"),
    ],
)
def test_advice_of_the_data_doctor(make, name, advice, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().save(tmp_path / "c.crowd")
    result = run("inspect", tmp_path / "c.crowd")
    assert result.exit_code == 0, result.output
    _, heading, below = result.stdout.partition(f": {name}\n")
    assert heading, result.stdout
    assert advice in " ".join(below.split("\n\n")[0].split())


CALL = re.compile(r"\w[(]|[a-z_]=|\bcg\.|\bgraph\.\w")


def texts(node):
    """The text of all string constants below a node of a syntax tree."""
    constants = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
    return " ".join(part.value for part in constants if isinstance(part.value, str))


def test_advice_for_the_command_line_names_no_calls():
    """Neither in the form of a hint for it nor in advice with a single form, unless it says that it is Python."""
    hints, advice = [], []
    for path in Path(cg.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Hint", "Message"):
                hints += [texts(keyword.value) for keyword in node.keywords if keyword.arg == "cli"]
            if isinstance(node, ast.keyword) and node.arg == "advice" and path.parent.name == "diagnosis":
                advice += [texts(node.value)] if "Hint(" not in ast.unparse(node.value) else []
    assert len(hints) > 40
    assert len(advice) > 5
    assert [text for text in hints + advice if CALL.search(text) and "in python" not in text.lower()] == []
