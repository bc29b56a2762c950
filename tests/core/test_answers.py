"""The responses that are answers."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import answered_graphs

import crowdgraph as cg
from crowdgraph.core.answers import expected_counts


@pytest.fixture
def shown():
    """A graph in which two of six items were shown but not answered, and one was answered twice."""
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": ["anna", "bert", "anna", "cleo", "anna", "bert"],
            "item": ["x", "x", "x", "y", "z", "y"],
            "label": ["no", None, "yes", "no", None, "yes"],
        },
        missing="keep",
    )


def test_answers_leave_out_what_was_only_shown(shown):
    answers = shown.answers
    assert len(answers) == 4
    assert not answers.are_all_responses
    assert answers.rows.tolist() == [0, 2, 3, 5]
    assert answers.volunteer.tolist() == [0, 0, 2, 1]
    assert answers.item.tolist() == [0, 0, 1, 1]
    assert answers.label.tolist() == [0, 1, 0, 1]
    assert answers.time.tolist() == [0, 2, 3, 5]
    assert answers.n_by_volunteer.tolist() == [2, 1, 1]
    assert answers.n_by_item.tolist() == [2, 2, 0]
    assert answers.of_responses(np.arange(6) * 10).tolist() == [0, 20, 30, 50]
    assert repr(answers) == "Answers: 4 of 6 responses"


def test_answers_are_gathered_by_node(shown):
    assert [shown.answers.by_item.rows(code).tolist() for code in range(3)] == [[0, 1], [2, 3], []]
    order, starts = shown.answers.by_volunteer
    assert order.tolist() == [0, 1, 3, 2]
    assert starts.tolist() == [0, 2, 3, 4]


def test_first_and_last_answers_of_a_pair(shown):
    assert shown.answers.first.rows.tolist() == [0, 3, 5]
    assert shown.answers.last.rows.tolist() == [2, 3, 5]
    assert shown.answers.last.n_by_item.tolist() == [1, 2, 0]
    assert shown.answers.first.first.rows.tolist() == [0, 3, 5]
    assert shown.answers.is_repeat.tolist() == [False, True, False, False]
    assert shown.answers.n_repeats == 1
    assert shown.responses.is_repeat.tolist() == [False, False, True, False, False, False]
    assert shown.volunteers["anna"].responses.is_repeat.tolist() == [False, True, False]


def test_columns_are_shared_where_every_response_is_an_answer(graph):
    answers = graph.answers
    assert answers.are_all_responses
    assert graph.answers is answers
    assert answers.label is graph.responses.label
    assert answers.of_responses(graph.responses.time) is graph.responses.time
    assert graph.responses.by_item is answers.by_item
    assert answers.where(np.ones(len(answers), dtype=bool)).are_all_responses


def test_answers_are_read_only_after_copying_too(shown):
    for answers in (shown.answers, pickle.loads(pickle.dumps(shown.answers)), copy.deepcopy(shown.answers)):  # noqa: S301
        for column in (answers.rows, answers.item, answers.first.label, answers.n_by_item):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1


def test_a_graph_without_responses_has_no_answers(graph):
    answers = graph.first(0).answers
    assert len(answers) == len(answers.first) == len(answers.last) == 0
    assert answers.n_by_item.tolist() == [0, 0, 0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(["no", "yes", None])), min_size=1).filter(
        lambda rows: any(label for _, _, label in rows)
    )
)
def test_first_and_last_are_those_of_a_plain_loop(rows):
    volunteer, item, label = zip(*rows, strict=True)
    frame = {"volunteer": volunteer, "item": item, "label": list(label)}
    answers = cg.CrowdGraph.from_responses(frame, missing="keep").answers
    first, last = {}, {}
    for row, (who, what, said) in enumerate(rows):
        if said is not None:
            first.setdefault((who, what), row)
            last[who, what] = row
    assert answers.first.rows.tolist() == sorted(first.values())
    assert answers.last.rows.tolist() == sorted(last.values())


@given(answered_graphs(), st.integers(0, 10**6))
def test_expected_counts_are_those_of_a_plain_loop(graph, seed):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(len(graph.classes)), len(graph.items))
    mask = rng.random(len(graph.answers)) < 0.5
    for answers in (None, graph.answers, graph.answers.where(mask)):
        chosen = graph.answers if answers is None else answers
        expected = np.zeros((len(graph.volunteers), len(graph.classes), len(graph.labels)))
        for who, what, said in zip(chosen.volunteer, chosen.item, chosen.label, strict=True):
            for j in range(len(graph.classes)):
                expected[who, j, said] += probs[what, j]
        counts = expected_counts(graph, probs, answers=answers)
        np.testing.assert_allclose(counts, expected, atol=1e-12)
        np.testing.assert_allclose(counts.sum(), len(chosen))


def test_expected_counts_with_many_volunteers_do_not_overflow():
    """Codes are kept in small types; a volunteer times the number of labels would not fit."""
    n = 200
    table = {"volunteer": list(range(n)), "item": [0] * n, "label": [0, 1] * (n // 2)}
    graph = cg.CrowdGraph.from_responses(table)
    counts = expected_counts(graph, np.array([[0.25, 0.75]]))
    np.testing.assert_allclose(counts[np.arange(n), :, np.arange(n) % 2], np.tile([0.25, 0.75], (n, 1)))
    assert counts.sum() == n


def test_expected_counts_leave_out_what_was_only_shown(shown):
    counts = expected_counts(shown, np.full((3, 2), 0.5))
    assert counts.sum(axis=(1, 2)).tolist() == [2, 1, 1]
