"""IBCC of streams: one batch is one sweep of IBCC, many passes end near its fixed point, and nobody is forgotten."""

import numpy as np
import pytest
import torch

import crowdgraph as cg
from crowdgraph import errors
from crowdgraph.tensors.dirichlet import expected_log
from crowdgraph.tensors.ibcc import item_log_weights, item_posteriors, sufficient_counts

PRIOR = np.array([[4.0, 1.0], [1.0, 4.0]])


@pytest.fixture(scope="module")
def graph():
    return cg.simulate.crowd(n_volunteers=30, n_items=200, n_responses=2_400, classes=(0, 1), gold=0.1, seed=3).graph


def item_batches(graph, n, *, seed):
    """The graph's rows in batches, each with all answers of some random items."""
    table, batch_of = graph.to_pandas(), np.random.default_rng(seed).integers(0, n, len(graph.items))
    codes = graph.items.codes(table["item"])
    return [table[batch_of[codes] == number] for number in range(n)]


def gold_of(graph, batch):
    return {item: graph.gold[item] for item in batch["item"].unique() if item in graph.gold}


def test_one_batch_is_one_sweep_of_ibcc(graph):
    stream = cg.StreamingIBCC(classes=graph.classes, sweeps=1)
    stream.update(graph)
    tensors = graph.to_torch()
    prior = torch.tensor(PRIOR).expand(len(graph.volunteers), 2, 2)
    logs = item_log_weights(tensors.answers, expected_log(prior), class_logs=expected_log(torch.ones(2).double()))
    probs = item_posteriors(logs, tensors.gold)
    expected = (prior + sufficient_counts(tensors.answers, probs)).numpy()
    np.testing.assert_allclose(stream.confusion.latest().concentration, expected, rtol=1e-12)
    np.testing.assert_allclose(stream.as_prior().class_concentration, (1 + probs.sum(0)).numpy(), rtol=1e-12)


def test_sweeps_of_one_batch_are_those_of_ibcc(graph):
    stream = cg.StreamingIBCC(classes=graph.classes, sweeps=200)
    fit = stream.update(graph)
    expected = cg.IBCC(confusion_prior=(4, 1), tol=1e-10).fit(graph)
    np.testing.assert_allclose(fit.item_probs, expected.item_probs, atol=1e-6)
    np.testing.assert_allclose(fit.class_probs, expected.class_probs, atol=1e-6)


def test_many_passes_end_where_ibcc_ends(graph):
    stream = cg.StreamingIBCC(classes=graph.classes, sweeps=1, forgetting_rate=0.9, delay=1)
    for epoch in range(40):
        for batch in item_batches(graph, 4, seed=epoch):
            stream.update(batch, gold=gold_of(graph, batch), again=epoch > 0)
    expected = cg.IBCC(confusion_prior=(4, 1), tol=1e-8).fit(graph)
    probs = stream.classify(graph, again=True).item_probs
    assert np.abs(stream.class_probs - expected.class_probs).max() < 0.01
    means = expected.confusion.latest().mean
    codes = [list(stream.confusion.ids).index(volunteer) for volunteer in graph.volunteers.ids]
    assert np.abs(stream.confusion.latest().mean[codes] - means).max() < 0.03
    assert (stream.confusion.latest().concentration.sum() - 30 * 10) == pytest.approx(2_400)
    assert np.abs(probs - expected.item_probs).max() < 0.1


def test_one_pass_is_close(graph):
    stream = cg.StreamingIBCC(classes=graph.classes)
    for start in range(0, 2_400, 300):
        stream.update(graph.to_arrow().slice(start, 300))
    expected = cg.IBCC().fit(graph.with_gold(None))
    agree = stream.classify(graph.with_gold(None), again=True).item_probs.argmax(axis=1) == expected.item_probs.argmax(
        axis=1
    )
    assert agree.mean() > 0.97
    assert repr(stream) == "StreamingIBCC(8 batches, 2,400 answers of 30 volunteers about 200 items)"


def test_who_is_absent_keeps_their_counts():
    stream = cg.StreamingIBCC(classes=["no", "yes"])
    stream.update({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["no", "yes"]}, gold={"x": "no"})
    before = stream.confusion.of("anna").latest().concentration
    stream.update({"volunteer": ["bert", "cleo"], "item": ["y", "y"], "label": ["yes", "yes"]})
    np.testing.assert_array_equal(stream.confusion.of("anna").latest().concentration, before)
    np.testing.assert_allclose(before, [[5, 1], [1, 4]])
    assert stream.confusion.ids.tolist() == ["anna", "bert", "cleo"]


def test_evidence_about_an_item_adds_up():
    """With rate 1 and answers in several batches, an item ends as if its answers had come together."""
    answers = {"volunteer": ["anna", "bert", "cleo"], "item": ["x"] * 3, "label": ["yes"] * 3}
    together = cg.StreamingIBCC(classes=["no", "yes"]).classify(answers)
    stream = cg.StreamingIBCC(classes=["no", "yes"])
    for row in range(2):
        stream.update({name: column[row : row + 1] for name, column in answers.items()})
    last = stream.classify({name: column[2:] for name, column in answers.items()})
    assert last.item_probs[0, 1] > 0.8
    assert last.item_probs[0, 1] > together.item_probs[0, 1] - 0.1
    forgetful = cg.StreamingIBCC(classes=["no", "yes"], max_items=0)
    for row in range(2):
        forgetful.update({name: column[row : row + 1] for name, column in answers.items()})
    assert forgetful.classify({**answers, "item": ["x", "y", "y"]}).item_probs[0, 1] < last.item_probs[0, 1]


def test_rate_one_counts_every_answer_once():
    """Gold makes the counts known: with rate 1 and no delay, batches of any size add up."""
    rng = np.random.default_rng(0)
    item, label = rng.integers(0, 2, 100), rng.integers(0, 2, 100)
    stream, first = cg.StreamingIBCC(classes=[0, 1], forgetting_rate=1), 0
    for size in (1, 30, 5, 64):
        rows = slice(first, first + size)
        names = [f"{row}-{item[row]}" for row in range(first, first + size)]
        gold = {name: int(name[-1]) for name in names}
        stream.update({"volunteer": ["anna"] * size, "item": names, "label": label[rows]}, gold=gold)
        first += size
    counts = np.zeros((2, 2))
    np.add.at(counts, (item, label), 1)
    np.testing.assert_allclose(stream.confusion.of("anna").latest().concentration, PRIOR + counts, rtol=1e-9)


def test_a_stream_goes_on_from_a_fit_and_a_fit_from_a_stream(graph):
    fit = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    stream = cg.StreamingIBCC(classes=graph.classes, confusion_prior=fit.as_prior())
    probs = stream.classify(graph).item_probs
    np.testing.assert_allclose(probs, fit.item_probs, atol=1e-3)
    again = cg.IBCC(confusion_prior=stream.as_prior()).fit(graph)
    assert again.converged


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": ["a"]}, "nothing to tell apart"),
        ({"classes": "ab"}, "must be several values"),
        ({"classes": ["a", "b"], "forgetting_rate": 0.5}, "must be above 0.5 and at most 1"),
        ({"classes": ["a", "b"], "delay": -1}, "at least 0"),
        ({"classes": ["a", "b"], "confusion_prior": "crowd"}, "a stream has not seen it yet"),
        ({"classes": ["a", "b"], "labels": ["x", "y"]}, "Say which class a label votes for"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(errors.ParameterError, match=message):
        cg.StreamingIBCC(**settings)


def test_bad_batches_change_nothing(graph):
    stream = cg.StreamingIBCC(classes=graph.classes)
    stream.update(graph)
    before = stream.confusion.latest().concentration.copy()
    with pytest.raises(errors.LabelError, match="not among"):
        stream.update({"volunteer": ["v"], "item": ["i"], "label": [7]})
    with pytest.raises(errors.AlignmentError, match="The batch has the classes"):
        stream.update(cg.simulate.crowd(seed=0).graph)
    with pytest.raises(errors.InputError, match="no answers"):
        stream.update(graph.first(0))
    np.testing.assert_array_equal(stream.confusion.latest().concentration, before)
