"""Behaviour in words: the sentences a person would say, for any confusion matrix, whatever the labels are called."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.core.behaviour import behaviour
from crowdgraph.simulate.galaxy_zoo import CLASSES, GROUPS, LABELS

PETS = {"classes": ["cat", "dog"], "labels": ["cat", "dog"]}
ZOO = {"classes": ["cat", "dog", "wolf"], "labels": ["cat", "dog", "wolf", "unsure"]}


@st.composite
def matrices(draw):
    """Random rows, from sure to vague; labels that are the classes, include them or have nothing to do with them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_classes, n_labels = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    rows = rng.dirichlet(np.full(n_labels, draw(st.sampled_from([0.05, 0.5, 2, 50]))), n_classes)
    if draw(st.booleans()):
        rows = np.repeat(rows[:1], n_classes, axis=0)
    labels = [f"{'c' if draw(st.booleans()) else 'l'}{code}" for code in range(n_labels)]
    return rows, [f"c{code}" for code in range(n_classes)], labels


def test_the_groups_of_the_paper_have_the_words_of_the_paper():
    sentences = {group.name: behaviour(group.confusion, classes=CLASSES, labels=LABELS) for group in GROUPS}
    assert sentences == {
        "reasonable": "mostly says -1 to not supernova, 1 or 3 to supernova",
        "extremists": "mostly says -1 to not supernova, 3 to supernova",
        "pessimists": "says -1 to most things",
        "optimists": "says 1 or 3 to nearly everything",
        "non-committal": "says 1 to most things",
    }


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[0.95, 0.05], [0.05, 0.95]], "nearly always right"),
        ([[0.94, 0.06], [0.06, 0.94]], "mostly right"),
        ([[0.75, 0.25], [0.3, 0.7]], "mostly right"),
        ([[0.99, 0.01], [0.3, 0.7]], "nearly always right about cat, mostly right about dog"),
        ([[0.04, 0.96], [0.75, 0.25]], 'contrary: nearly always says "dog" to cat, mostly "cat" to dog'),
        ([[0.96, 0.04], [0.5, 0.5]], "nearly always right about cat, undecided about dog"),
        ([[0.96, 0.04], [0.96, 0.04]], 'says "cat" to nearly everything'),
        ([[0.95, 0.05], [0.7, 0.3]], 'says "cat" to most things'),
        ([[0.5, 0.5], [0.5, 0.5]], "guesses"),
        ([[0.55, 0.45], [0.45, 0.55]], "guesses"),
        ([[0.6, 0.4], [0.4, 0.6]], "little better than guessing"),
        ([[0.4, 0.6], [0.6, 0.4]], "worse than guessing"),
        ([[0.64, 0.36], [0.36, 0.64]], "little better than guessing"),
        ([[0.04, 0.96], [0.4, 0.6]], 'nearly always says "dog" to cat, undecided about dog'),
    ],
)
def test_there_is_a_sentence_for_two_classes(rows, sentence):
    assert behaviour(rows, **PETS) == sentence


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [[0.96, 0.04, 0, 0], [0.1, 0.6, 0.2, 0.1], [0.01, 0.96, 0.01, 0.02]],
            'nearly always right about cat, mostly right about dog, nearly always says "dog" to wolf',
        ),
        (
            [[0, 0, 0.04, 0.96], [0, 0, 0.04, 0.96], [0, 0, 0.96, 0.04]],
            'nearly always right about wolf, nearly always says "unsure" to cat and dog',
        ),
        ([[0, 0.48, 0.48, 0.04]] * 3, 'says "dog" or "wolf" to nearly everything'),
        ([[0.32, 0.32, 0.32, 0.04]] * 3, 'says "cat", "dog" or "wolf" to nearly everything'),
        ([[0.35, 0.35, 0.15, 0.15]] * 3, 'says "cat" or "dog" to most things'),
        ([[0.49, 0.17, 0.17, 0.17]] * 3, "guesses"),
        (
            [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]],
            'contrary: nearly always says "dog" to cat, "wolf" to dog, "cat" to wolf',
        ),
        (
            [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
            'nearly always says "dog" to cat, "unsure" to dog, "cat" to wolf',
        ),
    ],
)
def test_there_is_a_sentence_for_three_classes_and_a_further_label(rows, sentence):
    assert behaviour(rows, **ZOO) == sentence


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[0.40, 0.00, 0.60], [0.13, 0.42, 0.45], [0.49, 0.05, 0.46]], "close to guessing"),
        ([[0.30, 0.10, 0.60], [0.20, 0.35, 0.45], [0.55, 0.10, 0.35]], "close to guessing"),
        ([[0.30, 0.15, 0.55], [0.20, 0.30, 0.50], [0.55, 0.15, 0.30]], "worse than guessing"),
    ],
)
def test_worse_than_guessing_is_below_chance(rows, sentence):
    names = ["cat", "dog", "wolf"]
    assert behaviour(rows, classes=names, labels=names) == sentence


def test_right_and_wrong_in_turn_is_no_habit():
    rows = [[0.38, 0.60, 0.02], [0.01, 0.98, 0.01]]
    names = {"classes": ["no animal", "animal"], "labels": ["no animal", "animal", "unsure"]}
    assert behaviour(rows, **names) == "nearly always right about animal, undecided about no animal"


def test_many_classes_are_described_briefly():
    names = list("abcdefgh")
    assert behaviour(np.roll(np.eye(8), 1, axis=1), classes=names, labels=range(8)).endswith(
        ", something else to 4 more"
    )
    rows = np.eye(8)
    rows[0] = rows[7]
    sentence = 'nearly always right about b, c, d and 4 more, nearly always says "h" to a'
    assert behaviour(rows, classes=names, labels=names) == sentence


def test_neither_right_nor_wrong_where_classes_are_not_labels():
    assert behaviour([[0.4, 0.6], [0.6, 0.4]], classes=["a", "b"], labels=[0, 1]) == "close to guessing"
    assert behaviour([[0, 1], [1, 0]], classes=["a", "b"], labels=[0, 1]) == "nearly always says 1 to a, 0 to b"


@pytest.mark.slow
@given(matrices())
def test_there_are_words_for_everybody(case):
    rows, classes, labels = case
    sentence = behaviour(rows, classes=classes, labels=labels)
    assert re.fullmatch(r"[a-z].*[a-z0-9]", sentence)
    assert not re.search(r"None|nan|  |,,|\[|\]", sentence)
    if len(labels) == 1:
        assert sentence == f'says "{labels[0]}" to nearly everything'


@given(matrices(), st.randoms(use_true_random=False))
def test_permuting_labels_changes_at_most_the_order_of_words(case, random):
    rows, classes, labels = case
    order = random.sample(range(len(labels)), len(labels))
    sentences = [
        behaviour(rows, classes=classes, labels=labels),
        behaviour(rows[:, order], classes=classes, labels=[labels[code] for code in order]),
    ]
    assert sorted(re.findall(r"[\w:]+", sentences[0])) == sorted(re.findall(r"[\w:]+", sentences[1]))


@given(matrices())
def test_renaming_changes_the_names_only(case):
    rows, classes, labels = case
    renamed = behaviour(
        rows,
        classes=[f"<{name}>" for name in classes],
        labels=[f"<{name}>" for name in labels],
    )
    assert renamed.replace("<", "").replace(">", "") == behaviour(rows, classes=classes, labels=labels)


@given(matrices())
def test_what_is_said_to_everything_is_said_often(case):
    rows, classes, labels = case
    sentence = behaviour(rows, classes=classes, labels=labels)
    match = re.fullmatch(r"says (.*) to (nearly everything|most things)", sentence)
    if match:
        codes = [labels.index(name) for name in re.findall(r'"(\w+)"', match[1])]
        # Rows that are alike are judged by their mean, from which each is off by at most 0.15.
        assert rows[:, codes].sum(axis=1).min() >= (0.8 if match[2] == "nearly everything" else 0.5) - 0.15 - 1e-6
