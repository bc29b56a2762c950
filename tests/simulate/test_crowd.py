"""Simulated crowds are as ordered."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.simulate import Group, crowd
from crowdgraph.simulate.crowd import apportion_capped, draw_others

SHARP = Group(name="sharp", confusion=[[0.95, 0.05], [0.05, 0.95]], concentration=1e6)
BLUNT = Group(name="blunt", confusion=[[0.5, 0.5], [0.5, 0.5]], concentration=1e6)


@given(
    st.integers(1, 30),
    st.integers(2, 30),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["none", "ramp", "step", "learning"]),
    st.floats(0, 0.5),
    st.floats(0, 0.9),
    st.floats(0, 1),
)
def test_every_crowd_is_as_large_as_ordered(n_volunteers, n_items, seed, drift, duplicates, difficulty, gold):
    n_responses = n_volunteers * max(1, int(0.4 * n_items))
    graph, truth = crowd(
        n_volunteers=n_volunteers,
        n_items=n_items,
        n_responses=n_responses,
        groups=[SHARP, BLUNT],
        drift=drift,
        duplicates=duplicates,
        difficulty=difficulty,
        gold=gold,
        seed=seed,
    )
    assert (len(graph.volunteers), len(graph.items), len(graph.responses)) == (n_volunteers, n_items, n_responses)
    assert graph.volunteers.n_responses.min() >= 1
    assert truth.confusion.shape == (n_responses, 2, 2)
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1)
    assert ((truth.difficulty >= 0) & (truth.difficulty <= 1)).all()
    known = graph.gold.known
    assert (graph.gold.codes[known] == truth.classes[known]).all()


# What the code drew before crowds could change over time.
DRAWN = {
    (1, "none"): "fc84c70b39cf10f7",
    (1, "ramp"): "f5b9ff3520631719",
    (1, "step"): "55b1ca6651ceb6d7",
    (1, "learning"): "040acb34ed615477",
    (2, "none"): "86a74b23c8139784",
    (2, "ramp"): "9fc240553e6ce818",
    (2, "step"): "bd1a3cfe46ddce7e",
    (2, "learning"): "ce3d09d4f54387f3",
}


@pytest.mark.parametrize(("n_groups", "drift"), DRAWN)
def test_seeds_draw_what_they_always_drew(n_groups, drift):
    graph, truth = crowd(
        n_volunteers=20,
        n_items=100,
        n_responses=600,
        n_casual=5,
        groups=[SHARP, BLUNT][:n_groups],
        difficulty=0.2,
        n_communities=2,
        drift=drift,
        duplicates=0.1,
        gold=0.5,
        seed=7,
    )
    responses = graph.responses
    drawn = [responses.volunteer, responses.item, responses.label, responses.time, graph.gold.known]
    drawn += [truth.classes, truth.group, truth.community, truth.item_community]
    digest = hashlib.sha256(b"".join(np.asarray(column).astype("<i8").tobytes() for column in drawn))
    assert digest.hexdigest()[:16] == DRAWN[n_groups, drift]


def test_the_seed_decides():
    graph = crowd(seed=3).graph
    assert graph.equals(crowd(seed=3).graph)
    assert not graph.equals(crowd(seed=4).graph)
    assert not crowd().graph.equals(crowd().graph)


def test_labels_follow_the_true_confusion():
    """The share of each label among the responses to a class is the mean of the true confusion, to sampling error."""
    graph, truth = crowd(
        n_items=2000, n_responses=100_000, n_volunteers=100, groups=[SHARP, BLUNT], drift="ramp", seed=0
    )
    true_class = truth.classes[graph.responses.item]
    for j in range(2):
        rows = true_class == j
        expected = truth.confusion[rows, j].mean(axis=0)
        actual = np.bincount(graph.responses.label[rows], minlength=2) / rows.sum()
        assert np.abs(actual - expected).max() < 4 * np.sqrt(0.25 / rows.sum())


def test_shared_errors_keep_skills_and_make_groups_agree():
    def accuracy_and_agreement(share):
        group = Group(name="g", confusion=[[0.8, 0.2], [0.2, 0.8]], concentration=1e6)
        graph, truth = crowd(
            n_volunteers=40, n_items=2_000, n_responses=[1_000] * 40, groups=[group], shared_errors=share, seed=0
        )
        responses = graph.responses
        right = responses.label == truth.classes[responses.item]
        answers = np.bincount(responses.item, minlength=2_000)
        all_right = np.bincount(responses.item, weights=right, minlength=2_000)
        pairs = answers * (answers - 1)
        both = all_right * (all_right - 1) + (answers - all_right) * (answers - all_right - 1)
        return right.mean(), both.sum() / pairs.sum()

    (alone, agree_alone), (shared, agree_shared) = accuracy_and_agreement(0.0), accuracy_and_agreement(0.5)
    # Two who are right with .8 agree with .68; where they share a draw, always.
    assert alone == pytest.approx(0.8, abs=0.01)
    assert shared == pytest.approx(0.8, abs=0.02)
    assert agree_alone == pytest.approx(0.68, abs=0.01)
    assert agree_shared == pytest.approx(0.84, abs=0.02)


def test_crowds_without_shared_errors_stay_the_same():
    graph, truth = crowd(seed=0)
    assert np.isnan(truth.shared).all()
    assert graph.equals(crowd(seed=0, shared_errors=0.0).graph)


def test_difficulty_blurs_the_classes():
    easy, hard = (crowd(groups=[SHARP], difficulty=d, n_items=2000, n_responses=40_000, seed=0) for d in (0.0, 0.6))

    def right(simulated):
        return (simulated.graph.responses.label == simulated.truth.classes[simulated.graph.responses.item]).mean()

    assert right(easy) == pytest.approx(0.95, abs=0.01)
    assert right(hard) == pytest.approx(0.4 * 0.95 + 0.6 * 0.5, abs=0.02)


def test_drift_runs_where_it_should():
    def weights(drift):
        graph, truth = crowd(groups=[SHARP, BLUNT], drift=drift, n_volunteers=10, n_responses=2000, n_items=400, seed=0)
        rows = graph.responses.by_volunteer
        return [truth.confusion[rows.rows(code), 0, 0] for code in range(10)]

    assert all(np.ptp(path) == 0 for path in weights("none"))
    for path in weights("ramp"):
        np.testing.assert_allclose(np.diff(path), np.diff(path)[0], atol=1e-12)
        assert np.ptp(path) == pytest.approx(0.45, abs=0.01)
    for path in weights("step"):
        assert np.count_nonzero(np.diff(path)) == 1
    for path in weights("learning"):
        assert path[0] == pytest.approx(0.5)
    alone = crowd(groups=[SHARP], drift="ramp", n_volunteers=3, n_responses=300, seed=0)
    last = alone.truth.confusion[alone.graph.responses.by_volunteer.rows(0)[-1]]
    np.testing.assert_allclose(last[0], last[1])


def test_task_communities_share_items():
    graph, truth = crowd(n_communities=4, mixing=0.2, n_volunteers=40, n_items=800, n_responses=4000, seed=0)
    home = truth.community[graph.responses.volunteer] == truth.item_community[graph.responses.item]
    assert home.mean() == pytest.approx(0.8 + 0.2 / 4, abs=0.02)
    assert not graph.responses.is_repeat.any()
    assert np.bincount(truth.community).tolist() == [10] * 4


def test_groups_share_the_work():
    busy = Group(name="busy", confusion=np.eye(2), activity=9, share=1)
    idle = Group(name="idle", confusion=np.eye(2), activity=1, share=3)
    graph, truth = crowd(groups=[busy, idle], n_volunteers=400, n_items=5000, n_responses=40_000, seed=0)
    assert truth.group_names == ("busy", "idle")
    assert np.bincount(truth.group).tolist() == [100, 300]
    share = graph.volunteers.n_responses[truth.group == 0].sum() / 40_000
    assert share == pytest.approx(9 / 12, abs=0.05)


def test_counts_can_be_given():
    graph = crowd(n_volunteers=3, n_items=10, n_responses=[0, 2, 5], seed=0).graph
    assert graph.volunteers.n_responses.tolist() == [0, 2, 5]


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9), st.integers(1, 20), st.floats(0, 1))
def test_shares_are_capped_and_sum_up(weights, most, fill):
    total = int(fill * most * len(weights))
    shares = apportion_capped(np.array(weights), total, most)
    assert shares.sum() == total
    assert shares.max(initial=0) <= most
    assert shares.min(initial=0) >= 0


@given(st.sets(st.integers(0, 40), min_size=1), st.sets(st.integers(0, 40)), st.integers(0, 2**32 - 1), st.data())
def test_other_items_are_drawn_as_from_what_is_left(pool, taken, seed, data):
    pool, taken = np.sort(list(pool)), np.array(data.draw(st.permutations(list(taken))), dtype=np.int64)
    rest = np.setdiff1d(pool, taken)
    n = data.draw(st.integers(0, len(rest)))
    drawn = draw_others(pool, taken, n, np.random.default_rng(seed))
    np.testing.assert_array_equal(drawn, np.random.default_rng(seed).choice(rest, n, replace=False))


def test_casual_volunteers_look_in():
    counts = crowd(n_volunteers=50, n_casual=30, n_responses=2000, seed=0).graph.volunteers.n_responses
    assert np.count_nonzero(counts < 10) == 30
    assert counts.sum() == 2000


def test_repeats_are_as_many_as_ordered_and_spread_over_a_history():
    graph = crowd(duplicates=0.3, n_responses=10_000, n_items=1000, seed=0).graph
    assert graph.responses.is_repeat.mean() == pytest.approx(0.3, abs=0.02)
    position = np.concatenate([np.arange(n) / n for n in graph.volunteers.n_responses])
    repeat = graph.responses.is_repeat[graph.responses.by_volunteer.order]
    assert (position[repeat] < 0.5).mean() > 0.15
