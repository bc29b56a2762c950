"""The queue hands out the oldest item that lacks answers, and volunteers come as people do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.simulate import Queue, crowd
from crowdgraph.simulate.queue import serve

DAY = 86_400


def naive(volunteers, rejected, moments, arrivals, answers):
    """Serve by the rule's own words: look through all items for each response; None if somebody has seen them all."""
    n_items = len(arrivals)
    lacking, seen, served = [answers] * n_items, {}, {}
    times = dict(enumerate(moments))
    while times:
        response = min(times, key=lambda number: (times[number], number))
        moment, mine = times[response], seen.setdefault(volunteers[response], set())
        unseen = [item for item in range(n_items) if arrivals[item] <= moment and item not in mine]
        if not unseen:
            later = [arrival for arrival in arrivals if arrival > moment]
            if not later:
                return None
            times[response] = min(later)
            continue
        unfinished = [item for item in unseen if lacking[item] > 0]
        item = unfinished[0] if unfinished else unseen[-1]
        mine.add(item)
        served[response] = item, moment
        del times[response]
        lacking[item] -= not rejected[response]
    return [served[response] for response in range(len(volunteers))]


@given(
    n_items=st.integers(1, 12),
    volunteers=st.lists(st.integers(0, 5), min_size=1, max_size=50),
    rejection=st.sampled_from([0.0, 0.3, 0.9]),
    extra=st.integers(0, 3),
    arriving=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_queue_serves_as_the_rule_says(n_items, volunteers, rejection, extra, arriving, seed):
    rng = np.random.default_rng(seed)
    moments = rng.random(len(volunteers))
    is_rejected = np.random.default_rng(1).random(len(volunteers)) < rejection
    answers = -(-int((~is_rejected).sum()) // n_items) + 1 + extra
    arrivals = np.sort(rng.random(n_items) * (rng.random(n_items) < 0.7)) if arriving else np.zeros(n_items)
    queue = Queue(answers=answers, rejection=rejection, arrivals=arrivals if arriving else None)
    expected = naive(volunteers, is_rejected.tolist(), moments.tolist(), arrivals.tolist(), answers)
    how = (queue, np.array(volunteers), moments, n_items, np.random.default_rng(1))
    if expected is None:
        with pytest.raises(ParameterError, match="runs dry"):
            serve(*how)
        return
    items, rejected, times = serve(*how)
    assert list(zip(items.tolist(), times.tolist(), strict=True)) == expected
    assert rejected.tolist() == is_rejected.tolist()


@given(
    n_volunteers=st.integers(1, 20),
    n_items=st.integers(5, 40),
    rejection=st.sampled_from([0.0, 0.2]),
    stays=st.sampled_from([None, "long"]),
    arrives=st.floats(0, 0.85),
    days=st.floats(0.5, 400),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_crowd_of_a_queue_is_as_ordered(n_volunteers, n_items, rejection, stays, arrives, days, seed):
    n_responses = n_volunteers * (n_items // 4)
    late = cg.simulate.Group(name="late", confusion=np.eye(2), arrives=arrives)
    graph, truth = crowd(
        n_volunteers=n_volunteers,
        n_items=n_items,
        n_responses=n_responses,
        groups=[late],
        queue=Queue(rejection=rejection),
        stays=stays,
        days=days,
        seed=seed,
    )
    responses = graph.responses
    assert len(responses) == n_responses
    assert not responses.is_repeat.any()
    seconds = (responses.time - np.datetime64("2026-01-01", "s")).astype(float)
    assert (seconds >= np.floor(arrives * days * DAY)).all()
    assert (seconds < days * DAY).all()
    assert (responses.label >= 0).all() or rejection
    assert truth.confusion.shape == (n_responses, 2, 2)


def test_an_item_is_not_answered_before_it_arrives():
    arrivals = np.maximum(np.linspace(-0.3, 0.5, 100), 0)
    queue = Queue(arrivals=arrivals, answers=60)
    graph = crowd(n_volunteers=200, n_items=100, n_responses=[10] * 200, queue=queue, days=100, seed=0).graph
    share = (graph.responses.time - np.datetime64("2026-01-01", "s")).astype(float) / (100 * DAY)
    # Times are whole seconds.
    assert (share >= arrivals[graph.responses.item] - 1 / (100 * DAY)).all()


def test_items_are_finished_in_the_order_of_their_arrival():
    graph = crowd(n_volunteers=400, n_items=200, n_responses=[8] * 400, queue=Queue(answers=20), seed=0).graph
    assert graph.items.n_responses.max() == 20
    last = np.array([graph.responses.by_item.rows(code)[-1] for code in range(150)])
    assert np.corrcoef(np.arange(150), last)[0, 1] > 0.99


def test_volunteers_wait_for_items_that_arrive_later():
    queue = Queue(answers=10, arrivals=np.linspace(0, 0.9, 1000))
    graph = crowd(n_volunteers=300, n_items=1000, n_responses=9000, queue=queue, seed=0).graph
    arrival = np.asarray(queue.arrivals)[graph.responses.item] * 90 * DAY
    seconds = (graph.responses.time - np.datetime64("2026-01-01", "s")).astype(float)
    assert (seconds >= np.floor(arrival)).all()
    assert np.count_nonzero(graph.items.n_responses) >= 900


def test_rejections_take_no_place_in_the_queue():
    graph = crowd(n_volunteers=100, n_items=100, n_responses=1000, queue=Queue(answers=8, rejection=0.5), seed=0).graph
    assert graph.answers.n_by_item.max() == 8
    unlimited = crowd(n_volunteers=50, n_items=200, n_responses=2000, queue=Queue(rejection=0.6), seed=0).graph
    assert np.median(unlimited.answers.n_by_item) == -(-len(unlimited.answers) // 200)


def test_the_share_of_rejections_is_as_ordered_and_items_wait_for_answers():
    graph = crowd(
        n_volunteers=100, n_items=200, n_responses=4000, queue=Queue(rejection=0.25, answers=25), seed=0
    ).graph
    assert np.mean(graph.responses.label < 0) == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 4000))
    n_answers = np.bincount(graph.answers.item)
    assert np.median(n_answers[:80]) == 25
    assert np.median(graph.items.n_responses[:80]) == pytest.approx(25 / 0.75, abs=2)


def test_people_come_in_sessions_and_those_who_answer_more_stay_longer():
    graph = crowd(n_volunteers=200, n_items=2000, n_responses=20_000, queue=Queue(session=10), days=100, seed=0).graph
    pauses, stays, counts = [], [], []
    for code in range(200):
        times = graph.responses.time[graph.responses.by_volunteer.rows(code)].astype(float)
        pauses.extend(np.diff(times))
        stays.append(np.ptp(times))
        counts.append(len(times))
    assert np.mean(np.array(pauses) > 3600) == pytest.approx(0.1, abs=0.02), "one session has ten answers"
    assert np.median(pauses) < 60
    counts, stays = np.array(counts), np.array(stays)
    few, many = np.quantile(counts, [0.25, 0.75])
    assert np.median(stays[counts >= many]) > 3 * np.median(stays[counts <= few])


def test_task_communities_arise_unplanted_and_modularity_rises():
    options = {"n_volunteers": 300, "n_items": 1000, "n_responses": 9000, "seed": 0}
    graph = crowd(**options, queue="oldest").graph
    random = crowd(**options).graph

    def modularity(graph):
        return cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0).modularity

    early, late = modularity(graph.first(1500)), modularity(graph)
    assert late > early + 0.1
    assert late > 0.5 > 0.3 > modularity(random)


def test_members_of_a_group_change_into_the_one_that_is_named():
    groups = [
        cg.simulate.Group(name="a", confusion=np.eye(2), changing={"step": 2, "learning": 1}, becomes="c"),
        cg.simulate.Group(name="b", confusion=1 - np.eye(2)),
        cg.simulate.Group(name="c", confusion=np.full((2, 2), 0.5)),
    ]
    graph, truth = crowd(n_volunteers=30, groups=groups, n_responses=2000, seed=0)
    members = np.flatnonzero(truth.group == 0)
    busiest = members[np.argsort(-graph.volunteers.n_responses[members], kind="stable")]
    assert truth.drift[busiest[:3]].tolist() == ["step", "step", "learning"]
    assert (truth.drift == "none").sum() == 27
    assert truth.other_group[busiest[:3]].tolist() == [2, 2, -1]
    changed = np.unique(graph.responses.volunteer[truth.acting == 2])
    assert set(changed) - set(np.flatnonzero(truth.group == 2)) == set(busiest[:2])
