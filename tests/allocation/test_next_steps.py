"""What next: questions with honest expectations, and a sentence wherever something cannot be said."""

import numpy as np
import pytest
from builders import crowd, graph_of
from numpy.testing import assert_allclose
from science.continuation import with_answers

import crowdgraph as cg
from crowdgraph.allocation import forecast_settled, next_steps
from crowdgraph.allocation._continuation import Reader
from crowdgraph.kernels.item_kinds import DIFFICULTIES, blurred_rows, learn_item_kinds

SURE = cg.simulate.Group(name="sure", confusion=[[0.96, 0.03, 0.01], [0.02, 0.4, 0.58]])


@pytest.fixture(scope="module")
def graph():
    graph = crowd(0.9, 0.7, n_volunteers=30, n_items=200, n_responses=1_000, gold=0.5).graph
    return graph.annotate(cg.Calibrated().fit(graph))


@pytest.fixture(scope="module")
def steps(graph):
    return next_steps(graph, seed=0)


def test_there_are_thirty_questions_about_open_items_to_several_volunteers(graph, steps):
    assert len(steps) == len(steps.to_frame()) == 30
    assert np.unique(steps.volunteers, return_counts=True)[1].max() <= 3
    probs = graph.fit().item_probs[graph.items.codes(steps.items.tolist())]
    assert probs.max() < 0.9
    assert not any(graph.has_edge(*pair) for pair in zip(steps.volunteers.tolist(), steps.items.tolist(), strict=True))


def test_the_expected_certainty_is_that_of_all_answers(graph, steps):
    fit = graph.fit()
    for row in range(5):
        probs = fit.item_probs[graph.items.table.code(steps.items[row])]
        rows = fit.confusion.latest().mean[graph.volunteers.table.code(steps.volunteers[row])]
        n = graph.answers.n_by_item[graph.items.table.code(steps.items[row])]
        counts_as = fit.dependence.next_answer(n)
        after, entropy = 0.0, 0.0
        for label in range(len(graph.labels)):
            joint = probs * rows[:, label]
            after += joint.max()
            entropy -= (joint * np.log(joint / joint.sum())).sum()
        before = -(probs * np.log(probs)).sum()
        assert_allclose(steps.expected[row], (1 - counts_as) * probs.max() + counts_as * after)
        assert_allclose(steps.removed[row], counts_as * (before - entropy) / before)


def test_the_parts_have_words(steps):
    assert len(steps.forecast.sentences) == 3
    assert steps.thanks[0].share == max(one.share for one in steps.thanks)
    assert "NextSteps: 30 questions" in repr(steps)


def test_without_gold_nobody_checked():
    graph = crowd(0.9, gold=0.0).graph
    steps = next_steps(graph.annotate(cg.IBCC().fit(graph)), seed=0)
    assert steps.retirable.guarantee is None
    assert "nobody checked" in steps.retirable.words


def test_a_guarantee_where_gold_allows():
    graph = crowd(0.98, n_volunteers=20, n_items=200, n_responses=2_000, gold=0.8).graph
    steps = next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    assert steps.retirable.guarantee.bound <= 0.05
    assert 0 < len(steps.retirable.items) <= 40


@pytest.mark.parametrize("prior", ["crowd", "gold", (4, 1), [[2, 1, 1], [1, 1, 2]]])
def test_the_guarantee_has_the_votes_and_the_prior_of_the_fit(prior):
    """Labels are not classes here, so that a model without either could not be fitted."""
    no, yes = classes = ("no", "yes")
    graph = crowd(0.95, classes=classes, labels=(-1, 1, 3), groups=[SURE], n_responses=2_000, gold=0.8).graph
    votes = None if isinstance(prior, list) else {-1: no, 1: yes, 3: yes}
    fit = cg.IBCC(votes=votes, confusion_prior=prior).fit(graph)
    assert next_steps(graph.annotate(fit), seed=0).retirable.guarantee.bound <= 0.05


def test_a_model_without_confusion():
    graph = crowd(0.9).graph
    steps = next_steps(graph.annotate(cg.MajorityVote().fit(graph)))
    assert set(steps.reasons) == {"questions", "forecast", "retirable", "learners"}
    assert "majority" in steps.reasons["questions"]
    assert not steps.by_information
    assert steps.thanks


def test_nobody_left_to_ask():
    graph = graph_of(["anna"] * 5, list("abcde"), [0, 1, 0, 1, 0])
    steps = next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    assert not len(steps)
    assert steps.reasons["questions"].startswith("Nobody can be asked")
    assert "others would have to be asked" in steps.forecast.sentences[0]


def test_a_fit_is_needed(graph):
    with pytest.raises(cg.errors.NotAnnotatedError):
        next_steps(graph.replace())


def test_a_forecast_repeats_and_orders_its_targets(graph):
    one, other = (forecast_settled(graph, seed=3, n_draws=10) for _ in range(2))
    assert_allclose(one.median, other.median)
    assert (np.diff(one.low) >= 0).all()
    done = forecast_settled(graph, targets=(0.01,), n_draws=2, seed=0)
    assert done.sentences == ["1% of the items are settled already."]


def test_kinds_of_items_are_found_again():
    rng = np.random.default_rng(0)
    n_items, n_volunteers = 400, 40
    classes, hard = rng.integers(2, size=n_items), rng.random(n_items) < 0.4
    item, volunteer = np.divmod(np.arange(n_items * n_volunteers), n_volunteers)
    rows = blurred_rows(np.array([[[0.9, 0.1], [0.1, 0.9]]]), hard[item][:, None, None].astype(float))
    label = (rng.random(len(item)) > rows[np.arange(len(item)), classes[item], 0]).astype(int)
    kinds = learn_item_kinds(
        volunteer,
        item,
        label,
        prior=np.tile([[2.0, 1.0], [1.0, 2.0]], (n_volunteers, 1, 1)),
        start=np.full((n_items, 2, 1), 0.5),
        known=np.full((n_items, 2), np.nan),
    )
    difficulty = kinds.probs.sum(axis=1) @ DIFFICULTIES
    assert difficulty[hard].mean() > 0.8 > 0.2 > difficulty[~hard].mean()
    assert (kinds.probs.sum(axis=2).argmax(axis=1) == classes)[~hard].all()


def test_kinds_of_items_are_those_written_out():
    """One iteration from a given start, item by item and answer by answer."""
    rng = np.random.default_rng(1)
    n_items, n_volunteers, n_classes, n_labels = 5, 3, 2, 3
    pairs = [(i, v) for i in range(n_items) for v in range(n_volunteers) if rng.random() < 0.8]
    item, volunteer = np.array(pairs).T
    label = rng.integers(n_labels, size=len(item))
    prior = rng.uniform(0.5, 3, (n_volunteers, n_classes, n_labels))
    start = rng.dirichlet(np.ones(n_classes * len(DIFFICULTIES)), n_items).reshape(n_items, n_classes, -1)
    known = np.full((n_items, n_classes), np.nan)
    known[0] = [0.2, 0.8]
    weights = rng.uniform(0.5, 2, n_items)
    kinds = learn_item_kinds(
        volunteer, item, label, prior=prior, start=start, known=known, weights=weights, n_iterations=1
    )

    concentration = prior.copy()
    for i, v, label_given in zip(item, volunteer, label, strict=True):
        for j in range(n_classes):
            concentration[v, j, label_given] += weights[i] * start[i, j].sum()
    assert_allclose(kinds.concentration, concentration, atol=1e-12)
    mean = concentration / concentration.sum(axis=2, keepdims=True)
    in_all = sum(weights[i] * start[i] for i in range(n_items))
    class_share, difficulty_share = in_all.sum(axis=1) + 1, in_all.sum(axis=0) + 1
    for i in range(n_items):
        joint = np.zeros((n_classes, len(DIFFICULTIES)))
        for j in range(n_classes):
            for d, difficulty in enumerate(DIFFICULTIES):
                joint[j, d] = class_share[j] / class_share.sum() * difficulty_share[d] / difficulty_share.sum()
                for v, label_given in zip(volunteer[item == i], label[item == i], strict=True):
                    anyhow = sum(mean[v, k, label_given] for k in range(n_classes)) / n_classes
                    joint[j, d] *= (1 - difficulty) * mean[v, j, label_given] + difficulty * anyhow
        if not np.isnan(known[i, 0]):
            joint *= (known[i] / joint.sum(axis=1))[:, None]
        assert_allclose(kinds.probs[i], joint / joint.sum(), atol=1e-12)


def test_a_continuation_starts_where_the_fit_is_and_moves_as_a_new_fit_does(graph):
    """The reader of further answers agrees with the fit before any, and nearly with a new fit after some."""
    fit, items = graph.fit(), np.flatnonzero(~graph.gold.known)
    reader = Reader(graph, fit, items)
    assert_allclose(reader.certainty(), fit.item_probs[items].max(axis=1), atol=1e-6)
    rng = np.random.default_rng(0)
    answers = graph.answers
    strangers = [np.setdiff1d(np.arange(30), answers.volunteer[answers.item == item]) for item in items]
    volunteer, label = np.array([rng.choice(codes) for codes in strangers]), rng.integers(2, size=len(items))
    reader.add(np.arange(len(items)), volunteer, label)
    reader.learn()
    columns = (answers.volunteer, volunteer), (answers.item, items), (answers.label, label)
    longer = with_answers(graph, np.stack([np.concatenate(both) for both in columns], axis=1))
    again = cg.Calibrated(rho=fit.dependence.rho).fit(longer)
    assert np.abs(reader.certainty() - again.item_probs[items].max(axis=1)).mean() < 0.02


def test_many_answers_that_count_for_few_stay_settled():
    """Undoing the discount of many answers leads to probabilities beyond 1e-9, which must not be cut there."""
    graph = crowd(0.95, n_volunteers=60, n_items=100, n_responses=3_000, gold=0.0).graph
    fit = cg.Calibrated(rho=0.5).fit(graph)
    reader = Reader(graph, fit, np.arange(100))
    assert_allclose(reader.certainty(), fit.item_probs.max(axis=1), atol=1e-9)
    assert (fit.item_probs.max(axis=1) >= 0.9).all()
    forecast = forecast_settled(graph, fit=fit, n_draws=2, seed=0)
    assert forecast.sentences == [f"{share}% of the items are settled already." for share in (90, 95, 99)]


def test_further_answers_about_a_sample_of_items_count_for_all():
    graph = crowd(0.8, n_volunteers=30, n_items=100, n_responses=600, gold=0.0).graph
    fit = cg.Calibrated().fit(graph)
    added = {}
    for share in (1.0, 0.25):
        reader = Reader(graph, fit, np.arange(40), share=share)
        before = reader._concentration.sum()
        strangers = [
            np.setdiff1d(np.arange(30), graph.answers.volunteer[graph.answers.item == item])[0] for item in range(40)
        ]
        reader.add(np.arange(40), np.array(strangers), np.zeros(40, dtype=int))
        reader.learn()
        added[share] = reader._concentration.sum() - before
    assert_allclose([added[1.0], added[0.25]], [40, 160])


def test_what_can_be_retired_is_by_the_model_of_the_guarantee_and_nobody_is_asked_about_it():
    graph = crowd(0.9, n_volunteers=40, n_items=300, n_responses=2_000, gold=0.4).graph
    for model in (cg.Calibrated(rho=0.0), cg.DawidSkene()):
        fit = model.fit(graph)
        steps = next_steps(graph.annotate(fit), seed=0)
        rule = cg.allocation.calibrated_retirement(graph, cg.Calibrated(), error=0.05, updates=1, seed=0)
        expected = rule.retired_items(graph, cg.Calibrated().fit(graph, seed=0).item_probs)
        assert steps.retirable.guarantee.bound <= 0.05
        assert steps.retirable.items.tolist() == expected.tolist()
        assert not set(steps.items.tolist()) & set(expected.tolist())


def test_without_gold_the_forecast_says_what_gold_would_show():
    graph = crowd(0.8, n_volunteers=9, n_items=60, n_responses=300, gold=0.0).graph
    forecast = forecast_settled(graph, fit=cg.IBCC().fit(graph), n_draws=5, seed=0)
    assert forecast.is_assumed
    assert "true classes of ten such items" in forecast.advice
    assert forecast.advice in repr(forecast)
    assert forecast.n_settled == (cg.Calibrated().fit(graph).item_probs.max(axis=1) >= 0.9).sum()


def test_no_more_answers_are_forecast_than_can_be_given():
    graph = crowd(0.99, n_volunteers=1, n_items=60, n_responses=30, gold=0.5).graph
    fit = cg.Calibrated(rho=0.0).fit(graph)
    forecast = forecast_settled(graph, fit=fit, seed=0)
    n_open = forecast.n_items - forecast.n_settled
    finite = np.isfinite(forecast.high)
    assert (forecast.high[finite] <= n_open).all()
    assert (forecast.low >= np.ceil(forecast.targets * forecast.n_items) - forecast.n_settled).all()


def test_shares_are_a_list(graph):
    with pytest.raises(cg.errors.ParameterError, match=r"targets=0.9 must be a list of shares"):
        forecast_settled(graph, targets=0.9)


def test_whoever_has_answered_all_open_items_is_not_asked():
    graph = graph_of(
        ["anna"] * 6 + ["bert", "cleo"] * 2, [*"abcdef", "a", "b", "c", "d"], [0, 1, 0, 1, 0, 1, 0, 1, 1, 0]
    )
    steps = next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    assert set(steps.volunteers.tolist()) == {"bert", "cleo"}


def test_the_obstacle_is_named_once():
    graph = crowd(0.7, n_volunteers=3, n_items=40, n_responses=60, gold=0.0).graph
    first, *others = forecast_settled(graph, fit=cg.Calibrated().fit(graph), n_draws=5, seed=0).sentences
    assert "others would have to be asked" in first
    assert all(sentence.endswith("% of the items.") for sentence in others)
