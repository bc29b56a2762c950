"""Crowds that change over time change as ordered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.simulate import Group, crowd

DAY = 86_400
START = np.datetime64("2026-01-01", "s")
SHARP = [[0.95, 0.05], [0.05, 0.95]]
BLUNT = [[0.5, 0.5], [0.5, 0.5]]
TWISTED = [[0.1, 0.9], [0.8, 0.2]]


def groups(*arrives, concentration=1e6):
    """One group for each time of arrival, alike within and different between them."""
    behaviours = (SHARP, BLUNT, TWISTED)[: len(arrives)]
    return [
        Group(name=f"group {code}", confusion=confusion, arrives=when, concentration=concentration)
        for code, (confusion, when) in enumerate(zip(behaviours, arrives, strict=True))
    ]


def shares(graph, days):
    """The time of each response as a share of the project's duration."""
    return (graph.responses.time - START).astype(float) / (days * DAY)


def paths(simulated, values):
    """The values at the responses of each volunteer, in order."""
    rows = simulated.graph.responses.by_volunteer
    return [values[rows.rows(code)] for code in range(len(simulated.graph.volunteers))]


@given(
    n_volunteers=st.integers(1, 25),
    n_items=st.integers(2, 30),
    arrives=st.lists(st.floats(0, 0.9, exclude_max=True), min_size=1, max_size=3),
    drift=st.sampled_from(["none", "ramp", "step", "visit", "learning"]),
    drifting=st.floats(0, 1),
    moment=st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    stays=st.sampled_from([None, "long"]),
    days=st.floats(0.5, 1000),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_changing_crowd_is_as_ordered(n_volunteers, n_items, arrives, drift, drifting, moment, stays, days, seed):
    n_responses = n_volunteers * max(1, int(0.4 * n_items))
    behaviours = groups(*arrives)
    graph, truth = crowd(
        n_volunteers=n_volunteers,
        n_items=n_items,
        n_responses=n_responses,
        groups=behaviours,
        drift=drift,
        drifting=drifting,
        drift_at=moment if drift == "step" else None,
        stays=stays,
        days=days,
        seed=seed,
    )
    responses = graph.responses
    assert (len(graph.volunteers), len(graph.items), len(responses)) == (n_volunteers, n_items, n_responses)
    assert graph.volunteers.n_responses.min() >= 1
    assert not responses.is_repeat.any()
    assert (np.diff(responses.time) >= np.timedelta64(0, "s")).all()
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1)

    # Times: nobody before their group, nobody after the end.
    group = truth.group[responses.volunteer]
    seconds = (responses.time - START).astype(float)
    assert (seconds >= np.floor(np.array(arrives)[group] * days * DAY)).all()
    assert (seconds <= days * DAY).all()

    # Who drifts, and where to.
    into_groups = drift in ("ramp", "step", "visit") and len(behaviours) > 1
    moved = truth.other_group >= 0
    assert np.count_nonzero(moved) == (round(drifting * n_volunteers) if into_groups else 0)
    assert (truth.other_group[moved] != truth.group[moved]).all()
    assert truth.other_group.max() < len(behaviours)

    # Whose behaviour each response follows: one's own, or the other one's (which may be that of nobody).
    assert truth.acting.shape == (n_responses,)
    own = truth.acting == group
    assert (own | (truth.acting == truth.other_group[responses.volunteer])).all()
    if drift in ("none", "learning"):
        assert own.all()
    typical = np.array([behaviour.confusion for behaviour in behaviours])
    if drift in ("none", "step", "visit"):
        named = truth.acting >= 0
        np.testing.assert_allclose(truth.confusion[named], typical[truth.acting[named]], atol=0.02)


def test_groups_arrive_when_they_should():
    simulated = crowd(groups=groups(0, 0.5, 0.8), n_volunteers=300, n_responses=6000, days=100, seed=0)
    graph, truth = simulated
    when = shares(graph, 100)
    group = truth.group[graph.responses.volunteer]
    for code, opens in enumerate((0, 0.5, 0.8)):
        assert opens <= when[group == code].min() < opens + 0.05 * (1 - opens)
    # They spread over the time that is left as others do over all of it.
    first_of_each = np.array([path[0] for path in paths(simulated, when)])
    for code, opens in enumerate((0, 0.5, 0.8)):
        share = (first_of_each[truth.group == code] - opens) / (1 - opens)
        assert share.mean() == pytest.approx(0.44, abs=0.06)


def test_those_who_stay_long_answer_until_the_end():
    simulated = crowd(
        groups=groups(0, 0.6), stays="long", n_volunteers=40, n_items=1000, n_responses=[400] * 40, days=100, seed=0
    )
    for path, code in zip(paths(simulated, shares(simulated.graph, 100)), simulated.truth.group, strict=True):
        opens = (0, 0.6)[code]
        length = 1 - opens
        # 400 uniform draws: the first and last lie within 4 % of the ends, and their distribution is nearly straight.
        assert opens <= path[0] <= opens + 0.14 * length
        assert path[-1] >= 1 - 0.04 * length
        even = path[0] + (path[-1] - path[0]) * np.linspace(0, 1, 400)
        assert np.abs(path - even).max() < 0.12 * length


def test_visitors_return():
    simulated = crowd(groups=groups(0, 0, 0), drift="visit", n_volunteers=30, n_responses=[91] * 30, seed=0)
    truth = simulated.truth
    for code, (acting, confusion) in enumerate(
        zip(paths(simulated, truth.acting), paths(simulated, truth.confusion), strict=True)
    ):
        expected = np.repeat([truth.group[code], truth.other_group[code], truth.group[code]], [30, 30, 31])
        assert acting.tolist() == expected.tolist()
        np.testing.assert_array_equal(confusion[:30], np.broadcast_to(confusion[0], (30, 2, 2)))
        np.testing.assert_array_equal(confusion[60:], np.broadcast_to(confusion[0], (31, 2, 2)))
        assert np.abs(confusion[45] - confusion[0]).max() > 0.3


def test_a_ramp_acts_as_the_nearer_group():
    simulated = crowd(groups=groups(0, 0), drift="ramp", n_volunteers=10, n_responses=[101] * 10, seed=0)
    truth = simulated.truth
    for code, acting in enumerate(paths(simulated, truth.acting)):
        assert acting.tolist() == [truth.group[code]] * 51 + [truth.other_group[code]] * 50


def test_one_group_alone_drifts_into_nobody():
    simulated = crowd(groups=groups(0), drift="step", drifting=0.5, n_volunteers=20, n_responses=[50] * 20, seed=0)
    truth = simulated.truth
    assert (truth.other_group == -1).all()
    changed = [(acting == -1).any() for acting in paths(simulated, truth.acting)]
    assert sum(changed) == 10
    blind = truth.confusion[truth.acting == -1]
    np.testing.assert_allclose(blind[:, 0], blind[:, 1])


@pytest.mark.parametrize("drift", ["ramp", "step", "visit", "learning"])
def test_just_the_drifting_drift(drift):
    options = {"groups": groups(0, 0), "drift": drift, "n_volunteers": 37, "n_responses": [30] * 37, "seed": 5}
    simulated = crowd(**options, drifting=0.3)
    moves = [np.ptp(path, axis=0).max() > 1e-9 for path in paths(simulated, simulated.truth.confusion)]
    assert sum(moves) == round(0.3 * 37)
    if drift != "learning":
        assert (simulated.truth.other_group >= 0).tolist() == moves
    # Those who drift do so as they would among others, and fewer of them are some of more.
    everyone = crowd(**options)
    more = crowd(**options, drifting=0.6)
    for here, there, more_there, move in zip(
        *(paths(s, s.truth.confusion) for s in (simulated, everyone, more)), moves, strict=True
    ):
        if move:
            np.testing.assert_array_equal(here, there)
            np.testing.assert_array_equal(here, more_there)
        else:
            np.testing.assert_array_equal(here, np.broadcast_to(here[0], here.shape))
    assert simulated.graph.responses.time.tolist() == everyone.graph.responses.time.tolist()
    assert simulated.graph.responses.item.tolist() == everyone.graph.responses.item.tolist()


def test_all_movers_change_at_one_moment():
    """Labels follow the own group before the moment and the other one after it, for movers and for them alone."""
    simulated = crowd(
        groups=groups(0, 0),
        drift="step",
        drifting=0.4,
        drift_at=0.6,
        stays="long",
        n_volunteers=100,
        n_items=2000,
        n_responses=[500] * 100,
        days=100,
        seed=0,
    )
    graph, truth = simulated
    after = shares(graph, 100) >= 0.6
    mover = truth.other_group[graph.responses.volunteer] >= 0
    group = truth.group[graph.responses.volunteer]
    assert np.count_nonzero(truth.other_group >= 0) == 40
    np.testing.assert_array_equal(
        truth.acting, np.where(mover & after, truth.other_group[graph.responses.volunteer], group)
    )
    right = graph.responses.label == truth.classes[graph.responses.item]
    for code, skill in enumerate((0.95, 0.5)):
        for moving in (False, True):
            for late in (False, True):
                rows = (group == code) & (mover == moving) & (after == late)
                expected = 0.95 + 0.5 - skill if moving and late else skill
                spread = np.sqrt(expected * (1 - expected) / rows.sum())
                assert right[rows].mean() == pytest.approx(expected, abs=4 * spread)
    # Some moved volunteers have all their responses on one side; those with both change exactly once.
    for acting, late in zip(paths(simulated, truth.acting), paths(simulated, after), strict=True):
        assert (np.diff(acting) != 0).sum() in (0, 1)
        assert 0 < late.sum() < 500


def test_a_change_can_come_before_and_after_a_volunteer():
    """Those who leave before the moment never change, those who come after it have changed already."""
    simulated = crowd(groups=groups(0, 0), drift="step", drift_at=0.5, n_volunteers=200, n_responses=4000, seed=0)
    truth = simulated.truth
    when = shares(simulated.graph, 90)
    seen = set()
    for code, (acting, moments) in enumerate(zip(paths(simulated, truth.acting), paths(simulated, when), strict=True)):
        if moments[-1] < 0.5:
            assert (acting == truth.group[code]).all()
            seen.add("before")
        elif moments[0] >= 0.5:
            assert (acting == truth.other_group[code]).all()
            seen.add("after")
    assert seen == {"before", "after"}
