"""Counterfactuals: what would have come out, compared with doing it by hand."""

import numpy as np
import pytest
from builders import crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.allocation.counterfactual import counterfactual
from crowdgraph.allocation.retirement import Retirement, update_ends


@pytest.fixture(scope="module")
def graph():
    """The responses of good, fair and poor volunteers; three items in ten have gold."""
    return crowd(0.9, 0.75, 0.55, n_volunteers=20, n_responses=1_000, gold=0.3, seed=3).graph


def rebuilt(graph, selected):
    """The graph of some responses, built anew; the nodes of the old one stay."""
    rows = [response for response, is_selected in zip(graph.responses, selected, strict=True) if is_selected]
    return cg.CrowdGraph.from_responses(
        {name: [getattr(row, name) for row in rows] for name in ("volunteer", "item", "label", "time")},
        gold=dict(graph.gold),
        classes=graph.classes,
        labels=graph.labels,
        volunteers={"volunteer": graph.volunteers.ids.tolist()},
        items={"item": graph.items.ids.tolist()},
    )


def test_without_volunteers_is_the_fit_of_the_other_answers(graph):
    graph = graph.first(400)
    absent = graph.volunteers.ids[[3, 7, 11]].tolist()
    result = counterfactual(graph, without=absent, seed=0)
    selected = [response.volunteer not in absent for response in graph.responses]
    by_hand = cg.Calibrated().fit(rebuilt(graph, selected))
    assert_allclose(result.other.item_probs, by_hand.item_probs, atol=1e-3)
    assert_allclose(result.fit.item_probs, cg.Calibrated().fit(graph).item_probs, atol=1e-6)
    assert result.n_left_out == selected.count(False)
    assert result.n_responses == 400
    was, would_be = result.fit.predict(), result.other.predict()
    assert result.changed.tolist() == [item for item in was if was[item] != would_be[item]]
    assert len(result.changed) > 0
    assert len(result.retired) == 0
    assert np.isnan(result.accuracy).all()
    assert repr(result).startswith(f"Counterfactual without 3 volunteers: {result.n_left_out:,} of 400 responses left")
    assert "accuracy" not in repr(result)


def taken(graph, rows):
    """The graph with some of its responses."""
    return graph.replace(responses=graph.responses.table.take(np.flatnonzero(rows)))


def test_who_never_answered_changes_nothing(graph):
    graph = taken(graph, graph.responses.volunteer != 0)
    result = counterfactual(graph, without=graph.volunteers.ids[:1])
    assert result.n_left_out == 0
    assert_allclose(result.fit.item_probs, result.other.item_probs, atol=1e-4)
    assert len(result.changed) == 0


def test_one_volunteer_is_as_influence_tells(graph):
    someone = graph.volunteers.ids[4]
    result = counterfactual(graph, without=[someone])
    influence = cg.Calibrated().fit(graph).influence(volunteer=someone)
    assert_allclose(result.item_change, -influence.item_change, atol=1e-9)
    assert result.changed.tolist() == influence.flipped


@pytest.mark.parametrize("hide_gold", [True, False])
def test_retirement_is_as_in_a_slow_loop(graph, hide_gold):
    rule = Retirement(threshold=0.97)
    result = counterfactual(graph, retirement=rule, updates=4, hide_gold=hide_gold, seed=0)
    seen = graph.with_gold(None, classes=graph.classes) if hide_gold else graph
    rows = [response.item for response in graph.responses]
    answered, probs, when, fit, start = [False] * len(rows), {}, {}, None, 0
    for update, end in enumerate(update_ends(graph, 4), start=1):
        for index in range(start, end):
            answered[index] = rows[index] not in when
        start = end
        fit = cg.Calibrated().fit(rebuilt(seen, answered), start=fit)
        for item, row in zip(graph.items.ids.tolist(), fit.item_probs.tolist(), strict=True):
            asked = any(was_answered and rows[index] == item for index, was_answered in enumerate(answered))
            if item not in when:
                probs[item] = row
                if max(row) >= 0.97 and asked and item not in seen.gold:
                    when[item] = update
    assert result.n_left_out == answered.count(False) > 50
    assert result.retired_at.tolist() == [when.get(item, 0) for item in graph.items.ids.tolist()]
    assert result.retired.tolist() == [item for item in graph.items.ids.tolist() if item in when]
    assert_allclose(result.other.item_probs, [probs[item] for item in graph.items.ids.tolist()], atol=1e-9)
    if hide_gold:
        for fit, accuracy in zip((result.fit, result.other), result.accuracy, strict=True):
            predicted = fit.predict()
            assert accuracy == np.mean([predicted[item] == name for item, name in graph.gold.items()])
        assert f"among {len(graph.gold)} with hidden gold" in repr(result)
    else:
        assert not set(result.retired.tolist()) & set(graph.gold)


def test_a_rule_that_retires_nothing_changes_nothing(graph):
    result = counterfactual(graph, retirement=Retirement(threshold=1.0), updates=3, hide_gold=True, seed=0)
    assert result.n_left_out == 0
    assert len(result.retired) == len(result.changed) == 0
    assert_array_equal(result.fit.item_probs, result.other.item_probs)
    assert result.accuracy[0] == result.accuracy[1] > 0.8
    assert_allclose(
        result.fit.item_probs, cg.Calibrated().fit(graph.with_gold(None, classes=graph.classes)).item_probs, atol=1e-3
    )


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 100), st.floats(0.6, 0.999), st.integers(1, 6))
def test_lower_thresholds_save_more_at_the_first_update_and_what_is_saved_adds_up(seed, threshold, updates):
    graph = crowd(0.9, 0.75, 0.55, n_volunteers=20, n_items=40, n_responses=300, gold=0.3, seed=seed).graph
    low, high = (
        counterfactual(graph, retirement=Retirement(threshold=value), updates=updates, seed=0)
        for value in (threshold - 0.1, threshold)
    )
    assert set(graph.items.ids[high.retired_at == 1]) <= set(graph.items.ids[low.retired_at == 1])
    ends = update_ends(graph, updates)
    for result in (low, high):
        later = sum(
            result.retired_at[item] > 0 and row >= ends[result.retired_at[item] - 1]
            for row, item in enumerate(graph.responses.item.tolist())
        )
        assert result.n_left_out == later


def test_items_are_not_retired_before_they_are_answered():
    # Nearly all gold says no, so that an item of which nothing is known is probably a no.
    graph = crowd(0.9, 0.75, 0.55, n_volunteers=20, class_probs=[0.97, 0.03], gold=0.5, seed=5).graph
    graph = taken(graph, graph.responses.item >= 10)
    result = counterfactual(graph, retirement=Retirement(threshold=0.6), updates=2)
    assert result.fit.item_probs[:10].max(axis=1).min() > 0.6
    assert result.retired_at[:10].max() == 0
    assert result.retired_at[10:].max() > 0


def test_other_models_and_seeds_are_used(graph):
    someone = graph.volunteers.ids[:2]
    votes = counterfactual(graph, without=someone, model=cg.MajorityVote())
    assert votes.fit.model == votes.other.model == "majority_vote"
    selected = [response.volunteer not in set(someone.tolist()) for response in graph.responses]
    assert_allclose(votes.other.item_probs, cg.MajorityVote().fit(rebuilt(graph, selected)).item_probs)
    sampler = cg.GibbsIBCC(stop_change=0.1, burn_in=50, r_hat=1.2)
    sampled = [counterfactual(graph, without=someone, model=sampler, seed=seed).other.item_probs for seed in (1, 1, 2)]
    assert_array_equal(sampled[0], sampled[1])
    assert (sampled[0] != sampled[2]).any()


def test_frames_have_the_items_that_change_most_first(graph):
    result = counterfactual(graph, retirement=Retirement(threshold=0.9), updates=3)
    frame = result.to_frame()
    names = ["item", "class", "instead", "change of p(no)", "change of p(yes)", "retired_at"]
    assert frame.columns.tolist() == names
    codes = graph.items.codes(frame["item"].tolist())
    assert sorted(codes) == list(range(100))
    assert_array_equal(frame["change of p(yes)"], (result.other.item_probs - result.fit.item_probs)[codes, 1])
    assert (np.diff(frame["change of p(yes)"].abs()) <= 1e-9).all()
    assert frame["retired_at"].tolist() == result.retired_at[codes].tolist()
    assert dict(zip(frame["item"], frame["class"], strict=True)) == result.fit.predict()
    assert dict(zip(frame["item"], frame["instead"], strict=True)) == result.other.predict()
    with pytest.raises(ValueError, match="read-only"):
        result.retired_at[0] = 3
