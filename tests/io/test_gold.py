"""Gold in all its forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdgraph as cg
from crowdgraph.errors import ColumnError, GoldError, GoldWarning, UnknownIdError
from crowdgraph.io import _gold as gold
from crowdgraph.io._ids import encode

RESPONSES = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": ["n", "y", "y"]}


def gold_of(gold_input, **options):
    return cg.CrowdGraph.from_responses(RESPONSES, gold=gold_input, **options).gold


@pytest.mark.parametrize(
    "gold_input",
    [
        {"x": "y"},
        {"x": "y", "y": None},
        {"x": {"y": 1.0}},
        {"item": ["x", "y"], "label": ["y", None]},
        {"item": ("x",), "label": ("y",)},
        pd.DataFrame({"item": ["x", "x"], "label": ["y", "y"]}),
        pl.DataFrame({"item": ["x"], "label": ["y"]}),
        pd.Series({"x": "y"}),
        pd.DataFrame({"item": ["x", "y"], "n": [0.0, None], "y": [1.0, None]}),
        cg.CrowdGraph.from_responses(RESPONSES, gold={"x": "y"}).gold,
    ],
)
def test_hard_gold(gold_input):
    known_gold = gold_of(gold_input)
    assert dict(known_gold) == {"x": "y"}
    assert known_gold.codes.tolist() == [1, -1]
    assert known_gold.known.tolist() == [True, False]
    assert not known_gold.is_soft.any()
    np.testing.assert_array_equal(known_gold.probs, [[0, 1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    "gold_input",
    [
        {"x": {"n": 0.25, "y": 0.75}, "y": "n"},
        {"item": ["x", "y"], "n": [0.25, 1.0], "y": [0.75, 0.0]},
        pd.DataFrame({"item": ["x", "y"], "y": [0.75, 0.0], "n": [0.25, 1.0]}),
    ],
)
def test_soft_gold(gold_input):
    known_gold = gold_of(gold_input)
    assert dict(known_gold) == {"x": {"n": 0.25, "y": 0.75}, "y": "n"}
    assert known_gold.codes.tolist() == [-1, 0]
    assert known_gold.is_soft.tolist() == [True, False]
    assert repr(known_gold) == "Gold for 2 of 2 items, 1 of them as probabilities"


def test_columns_of_probabilities_find_classes_that_are_numbers():
    responses = {"volunteer": ["a", "b"], "item": [1, 1], "label": [0, 1]}
    graph = cg.CrowdGraph.from_responses(responses, gold=pd.DataFrame({"item": [1], "0": [0.5], "1": [0.5]}))
    assert graph.classes == (0, 1)


def test_gold_for_items_that_nobody_answered_is_counted():
    with pytest.warns(GoldWarning, match=r"2 items that nobody answered \('q', 'r'\)"):
        known_gold = gold_of({"x": "y", "q": "y", "r": "n"})
    assert (len(known_gold), known_gold.n_unmatched) == (1, 2)
    with pytest.warns(GoldWarning, match="Gold names items by int, the responses by str"):
        assert gold_of({17: "y"}).n_unmatched == 1


@pytest.mark.parametrize(
    ("gold_input", "options", "error", "message"),
    [
        ({"x": "maybe"}, {"classes": ["n", "y"]}, GoldError, "not among 'n', 'y': 'maybe'"),
        (
            pd.DataFrame({"item": ["x", "x"], "label": ["y", "n"]}),
            {},
            GoldError,
            "contradicts itself for item 'x': 'y' and 'n'",
        ),
        ({"x": {"n": 0.5, "y": 0.6}}, {}, GoldError, r"sum to one.*'x' with \[0.5, 0.6\]"),
        ({"x": {"n": -0.5, "y": 1.5}}, {}, GoldError, "must not be negative"),
        ({"x": {"n": float("nan"), "y": 1.0}}, {}, GoldError, "sum to one"),
        ({"x": {"n": 1.0, "y": float("nan")}}, {}, GoldError, "sum to one"),
        ({"x": {"n": "much", "y": 1}}, {}, GoldError, "must hold numbers"),
        (pd.DataFrame({"item": ["x"], "n": ["much"], "y": ["little"]}), {}, GoldError, "must hold probabilities"),
        (pd.DataFrame({"item": ["x"], "n": [None], "y": [1.0]}), {}, GoldError, "sum to one"),
        ({"x": "y", "y": 1}, {}, GoldError, "mixes types"),
        (
            pd.DataFrame({"name": ["x"], "label": ["y"]}),
            {},
            ColumnError,
            "gold table has no column 'item'; it has 'name'",
        ),
        ({"name": ["x"], "label": ["y"]}, {}, ColumnError, "no column 'item'"),
        (pd.DataFrame({"item": ["x"]}), {}, ColumnError, "no column 'label'"),
        (pd.DataFrame({"item": [None], "label": ["y"]}), {}, GoldError, "names no item in rows 0"),
        ("gold.csv", {}, GoldError, "is a path"),
        (5, {}, cg.errors.InputError, "from a int"),
    ],
)
def test_bad_gold(gold_input, options, error, message):
    with pytest.raises(error, match=message):
        gold_of(gold_input, **options)


def test_unknown_gold_is_said():
    with pytest.raises(UnknownIdError, match="no gold for item 'y'; gold covers 1 items"):
        gold_of({"x": "y"})["y"]
    assert gold_of({"x": "y"}).get("y") is None


def test_classes_that_are_partly_labels_are_warned_of():
    with pytest.warns(GoldWarning, match=r"no labels \('yy'\), so the classes are those of gold: 'y', 'yy'"):
        assert gold_of({"x": "y", "y": "yy"}).classes == ("y", "yy")


def test_classes_that_differ_from_labels_by_type_alone_are_refused():
    with pytest.raises(GoldError, match="differ in type"):
        cg.CrowdGraph.from_responses({"volunteer": ["a", "b"], "item": [1, 1], "label": [0, 1]}, gold={1: "1"})


def test_gold_of_many_items_is_read_once(monkeypatch):
    """The work does not grow with the square of the items: ids are encoded once, not once for each row."""
    calls = []
    monkeypatch.setattr(gold, "encode", lambda column, what: calls.append(what) or encode(column, what=what))
    n = 500
    responses = {"volunteer": ["a"] * n, "item": list(range(n)), "label": [0, 1] * (n // 2)}
    graph = cg.CrowdGraph.from_responses(responses, gold={item: item % 2 for item in range(n)})
    assert len(graph.gold) == n
    assert calls == ["gold item"]


def test_gold_of_other_items_changes_nothing():
    with pytest.warns(GoldWarning, match=r"and no others, so there is no gold. Is it the gold of other items"):
        known_gold = gold_of({"q": "dust", "r": "star"})
    assert (known_gold.classes, known_gold.n_unmatched, len(known_gold)) == (("n", "y"), 2, 0)


def test_a_column_that_is_neither_labels_nor_probabilities_is_refused():
    with pytest.raises(ColumnError, match="Rename the one with the classes to 'label'"):
        gold_of(pd.DataFrame({"item": ["x", "y"], "truth": [1, 1]}))


def test_with_gold_finds_classes_as_from_responses_does():
    graph = cg.CrowdGraph.from_responses(RESPONSES)
    assert graph.with_gold({"x": "star", "y": "dust"}).classes == ("dust", "star")


def test_warnings_point_at_the_line_that_asked():
    with pytest.warns(GoldWarning) as caught:
        gold_of({"x": "y", "q": "y"})
    assert caught[0].filename == __file__


def test_gold_where():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"] * 3, "item": [*"xyz"], "label": ["no", "yes", "no"]},
        gold={"x": "no", "y": {"no": 0.2, "yes": 0.8}},
    )
    subset = graph.gold.where(np.array([False, True, True]))
    assert dict(subset) == {"y": {"no": 0.2, "yes": 0.8}}
    assert len(graph.gold) == 2
