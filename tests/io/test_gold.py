"""Gold in all its forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crowdgraph as cg
from crowdgraph.errors import GoldWarning, UnknownIdError

RESPONSES = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": ["n", "y", "y"]}


def gold_of(gold):
    return cg.CrowdGraph.from_responses(RESPONSES, gold=gold).gold


@pytest.mark.parametrize(
    "gold",
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
def test_every_form_of_certain_gold_is_the_same(gold):
    known_gold = gold_of(gold)
    assert dict(known_gold) == {"x": "y"}
    assert known_gold.codes.tolist() == [1, -1]
    assert known_gold.known.tolist() == [True, False]
    assert not known_gold.is_soft.any()
    np.testing.assert_array_equal(known_gold.probs, [[0, 1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    "gold",
    [
        {"x": {"n": 0.25, "y": 0.75}, "y": "n"},
        {"item": ["x", "y"], "n": [0.25, 1.0], "y": [0.75, 0.0]},
        pd.DataFrame({"item": ["x", "y"], "y": [0.75, 0.0], "n": [0.25, 1.0]}),
    ],
)
def test_every_form_of_probable_gold_is_the_same(gold):
    known_gold = gold_of(gold)
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


def test_items_without_gold_are_named():
    with pytest.raises(UnknownIdError, match="no gold for item 'y'; gold covers 1 items"):
        gold_of({"x": "y"})["y"]
    assert gold_of({"x": "y"}).get("y") is None


def test_classes_that_are_partly_labels_are_warned_of():
    with pytest.warns(GoldWarning, match=r"not labels \('yy'\), so the classes are those of gold: 'y', 'yy'"):
        assert gold_of({"x": "y", "y": "yy"}).classes == ("y", "yy")


class CountedId:
    """An id that counts how often any of its kind is hashed."""

    n_hashed = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        CountedId.n_hashed += 1
        return hash(self.number)

    def __eq__(self, other):
        return self.number == other.number


def test_reading_gold_does_not_grow_with_the_square_of_the_items():
    def n_hashed(n):
        ids = [CountedId(number) for number in range(n)]
        responses = {"volunteer": ["a"] * n, "item": ids, "label": [0, 1] * (n // 2)}
        CountedId.n_hashed = 0
        graph = cg.CrowdGraph.from_responses(responses, gold={item: item.number % 2 for item in ids})
        assert len(graph.gold) == n
        return CountedId.n_hashed

    assert 0 < n_hashed(200) < 2.5 * n_hashed(100)


def test_gold_of_other_items_changes_nothing():
    with pytest.warns(GoldWarning, match=r"and no others, so there is no gold. Is it the gold of other items"):
        known_gold = gold_of({"q": "dust", "r": "star"})
    assert (known_gold.classes, known_gold.n_unmatched, len(known_gold)) == (("n", "y"), 2, 0)


def test_with_gold_finds_classes_as_from_responses_does():
    graph = cg.CrowdGraph.from_responses(RESPONSES)
    assert graph.with_gold({"x": "star", "y": "dust"}).classes == ("dust", "star")


def test_warnings_point_at_the_line_that_asked():
    with pytest.warns(GoldWarning) as caught:
        gold_of({"x": "y", "q": "y"})
    assert caught[0].filename == __file__


def test_gold_may_be_limited_to_some_items():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"] * 3, "item": [*"xyz"], "label": ["no", "yes", "no"]},
        gold={"x": "no", "y": {"no": 0.2, "yes": 0.8}},
    )
    subset = graph.gold.where(np.array([False, True, True]))
    assert dict(subset) == {"y": {"no": 0.2, "yes": 0.8}}
    assert len(graph.gold) == 2
