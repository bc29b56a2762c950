"""Who is available: records and forecasts against plain loops, known return rates, planted task communities."""

import datetime as dt
from math import lgamma

import numpy as np
import pytest
from builders import communities_of, crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.allocation.availability import (
    STEPS,
    Activity,
    Availability,
    ReturnModel,
    _average_shares,
    _fit_return_model,
    _past_horizon,
    _shrunken_shares,
    availability,
)


def graph_of(volunteer, time=None, item=None, label=None, **options):
    columns = {"volunteer": list(volunteer), "label": ["a"] * len(volunteer) if label is None else label}
    columns["item"] = ["x"] * len(volunteer) if item is None else item
    if time is not None:
        columns["time"] = time
    return cg.CrowdGraph.from_responses(columns, labels=["a", "b"], **options)


# Of each of some volunteers, how many steps ago they were active.
AGES = st.lists(st.lists(st.integers(0, 30), max_size=8, unique=True).map(sorted), min_size=1, max_size=4)


def activity_of(ages_of):
    volunteer = np.array([code for code, ages in enumerate(ages_of) for _ in ages], dtype=np.int64)
    age = np.array([age for ages in ages_of for age in ages], dtype=np.float64)
    return Activity(volunteer, age, np.array([max(ages, default=-1) for ages in ages_of], dtype=np.float64))


@given(AGES, st.integers(0, 12), st.sampled_from([0.5, 3.0, 20.0, np.inf]))
def test_records_are_those_of_a_loop(ages_of, back, half_life):
    active, absent = activity_of(ages_of).counts(back, half_life)
    for code, ages in enumerate(ages_of):
        after_the_first = range(back, max(ages, default=-1))
        weights = {age: 0.5 ** ((age - back) / half_life) for age in after_the_first}
        came = sum(weights[age] for age in weights if age in ages)
        assert_allclose([active[code], absent[code]], [came, sum(weights.values()) - came], atol=1e-9)


@pytest.mark.parametrize(("active", "absent"), [(0.0, 0.0), (2.5, 0.3), (0.0, 40.0)])
def test_forecasts_are_those_of_a_beta(active, absent):
    """The mean of (1 - r)^4 over a Beta, by its density."""
    from scipy.integrate import quad
    from scipy.stats import beta

    model = ReturnModel(mean=0.3, weight=2.0, half_life=1.0)
    share = beta(active + 0.6, absent + 1.4)
    expected = quad(lambda rate: share.pdf(rate) * (1 - rate) ** STEPS, 0, 1, points=[0.01])[0]
    assert_allclose(np.exp(model.log_absent(np.array([active]), np.array([absent]))), expected, rtol=1e-5)


def test_the_learned_model_forecasts_the_past_best():
    """Nothing on a grid beats what was learned, and the past was forecast only from what came before."""
    rng = np.random.default_rng(0)
    ages_of = [np.flatnonzero(rng.random(40) < rate).tolist() for rate in rng.beta(1, 4, 60)]
    learned = _fit_return_model(activity_of(ages_of), 8.0)

    def loss(mean, weight):
        total = -0.5 * np.log(mean * (1 - mean))
        for start in range(0, 4 * STEPS, STEPS):
            for ages in ages_of:
                stop = start + STEPS
                if max(ages, default=-1) < stop:
                    continue
                known = {age: 0.5 ** ((age - stop) / 8) for age in range(stop, max(ages))}
                a = weight * mean + sum(known[age] for age in known if age in ages)
                b = weight * (1 - mean) + sum(known[age] for age in known if age not in ages)
                absent = np.exp(lgamma(a + b) - lgamma(b) + lgamma(b + STEPS) - lgamma(a + b + STEPS))
                came = any(start <= age < stop for age in ages)
                total -= np.log(1 - absent if came else absent)
        return total

    assert_allclose(learned.loss, loss(learned.mean, learned.weight), rtol=1e-8)
    grid = [loss(mean, weight) for mean in np.linspace(0.02, 0.6, 8) for weight in (0.3, 1, 3, 10, 30)]
    assert learned.loss <= min(grid) + 1e-4
    assert learned.loss >= min(grid) - 3


def test_a_past_forecast_knows_only_those_seen_by_then():
    activity = activity_of([[0, 1], [3], [4], [9, 5]])
    active, absent, came = _past_horizon(activity, 0, np.inf)
    # The first two were first seen within the horizon; of the others, steps after the first count.
    assert_array_equal(active, [0, 1])
    assert_array_equal(absent, [0, 4])
    assert_array_equal(came, [False, False])


def returning(seed, *, n=1_000, n_steps=64):
    """Volunteers who are active in each step with a rate of their own; also who is in the four steps after."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(1, 4, n)
    active = rng.random((n, n_steps + STEPS)) < rates[:, None]
    volunteer, time = np.nonzero(active[:, :n_steps])
    return graph_of(volunteer, time), active[np.unique(volunteer), n_steps:].any(axis=1)


@pytest.fixture(scope="module")
def returning_crowd():
    """A crowd, who comes back, and the forecast of that with a half-life that was learned."""
    graph, came = returning(1)
    return graph, came, availability(graph, horizon=STEPS, at=64)


@pytest.mark.parametrize("half_life", ["learned", 1_000.0])
def test_forecasts_are_calibrated(returning_crowd, half_life):
    graph, came, learned = returning_crowd
    forecast = learned if half_life == "learned" else availability(graph, horizon=STEPS, half_life=half_life, at=64)
    likely = forecast.active[np.argsort(graph.volunteers.ids)]
    for part in np.array_split(np.argsort(likely), 5):
        error = np.sqrt(likely[part].mean() * (1 - likely[part].mean()) / len(part))
        assert abs(likely[part].mean() - came[part].mean()) < 3.5 * error
    base = came.mean()
    assert ((likely - came) ** 2).mean() < 0.85 * base * (1 - base)


def test_stable_rates_are_not_forgotten(returning_crowd):
    _, _, learned = returning_crowd
    assert learned.half_life is None or learned.half_life >= 32


def test_recent_activity_counts_more():
    graph, _ = returning(3, n=300)
    rows = [(int(row.volunteer), row.time) for row in graph.responses]
    rows += [(1_000, time) for time in (0, 5, 6, 7)]
    rows += [(2_000, time) for time in (0, 61, 62, 63)]
    likely = availability(graph_of(*zip(*rows, strict=True)), horizon=STEPS, half_life=10.0, at=64)
    chance = dict(zip(likely.volunteers.tolist(), likely.active, strict=True))
    assert chance[2_000] > 2 * chance[1_000]


def test_a_burst_counts_once():
    once = availability(graph_of("aabb", [0, 9, 3, 12]), horizon=4, half_life=6.0, at=16)
    burst = availability(graph_of("aaaabb", [0, 9.0, 9.2, 9.4, 3, 12]), horizon=4, half_life=6.0, at=16)
    assert_allclose(once.active, burst.active, rtol=1e-9)


def test_at_and_views_do_not_see_the_future():
    simulated = crowd(n_volunteers=30, n_items=300, n_responses=900, n_communities=2, seed=3)
    graph, at, week = simulated.graph, "2026-02-15", dt.timedelta(days=7)
    groups = communities_of(simulated.truth.community, ids=graph.volunteers.ids)
    first, second = (availability(view, at=at, horizon=week, communities=groups) for view in (graph, graph.before(at)))
    assert_array_equal(first.chance(), second.chance())
    assert first.horizon == week
    # Where nothing is forgotten, so long a half-life is the same, and need not be learned again.
    half_life = first.half_life or dt.timedelta(days=100_000)
    later = availability(graph.before(at), at="2026-03-15", horizon=week, half_life=half_life)
    assert later.active.sum() < first.active.sum()


def test_clocks_of_all_kinds_agree():
    rng = np.random.default_rng(4)
    names = rng.integers(0, 8, 200)
    start = np.datetime64("2026-01-01", "s")
    days = [start + np.timedelta64(int(second), "s") for second in range(200)]
    options = [
        (None, 20, None),
        (list(range(200)), 20, 200),
        ([float(time) for time in range(200)], 20.0, 200.0),
        (days, np.timedelta64(20, "s"), start + np.timedelta64(200, "s")),
        (np.array(days).astype("datetime64[ns]"), dt.timedelta(seconds=20), None),
    ]
    forecasts = [
        availability(graph_of(names, time), horizon=horizon, half_life=2 * horizon, at=at)
        for time, horizon, at in options
    ]
    for other in forecasts[1:]:
        assert_allclose(other.active, forecasts[0].active, rtol=1e-6)
    assert forecasts[0].horizon == 20
    assert (forecasts[3].horizon, forecasts[3].half_life) == (dt.timedelta(seconds=20), dt.timedelta(seconds=40))
    assert_allclose(availability(graph_of(names), half_life=40).horizon, 19.9)


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_shares_are_most_likely(seed):
    """No weight on a grid makes the counts more likely than the one that was found."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, rng.choice([0.3, 3.0, 30.0])), 40)
    counts = np.array(
        [rng.multinomial(size, share) for size, share in zip(rng.integers(0, 12, 40), shares, strict=True)]
    )
    counts = counts.astype(float)
    average, shrunken = _average_shares(counts), _shrunken_shares(counts)
    known = counts.sum(axis=1) > 0
    # The weight, from a row whose share moved away from the average.
    row, kind = np.unravel_index(np.argmax(np.abs(counts - counts.sum(axis=1, keepdims=True) * average)), counts.shape)
    weight = (counts[row, kind] - shrunken[row, kind] * counts[row].sum()) / (shrunken[row, kind] - average[kind])

    def likelihood(weight):
        prior = [weight * share for share in average]
        return sum(
            lgamma(weight)
            - lgamma(weight + row.sum())
            + sum(lgamma(p + n) - lgamma(p) for p, n in zip(prior, row, strict=True))
            for row in counts[known]
        )

    assert_allclose(shrunken, (counts + weight * average) / (counts.sum(axis=1, keepdims=True) + weight), atol=1e-9)
    assert likelihood(weight) >= max(likelihood(other) for other in np.geomspace(0.02, 9_000, 25)) - 1e-3
    assert_allclose(shrunken.sum(axis=1), 1)


def test_who_rejects_finishes_less():
    rng = np.random.default_rng(5)
    names = np.repeat(["often", "never", "once"], [60, 60, 1])
    label = np.where(rng.random(121) < 0.5, None, "a")
    label[60:] = "a"
    shown = graph_of(names, label=label.tolist(), missing="keep", volunteers={"volunteer": ["new"]})
    likely = availability(shown, half_life=50)
    new, often, never, once = likely.finishes
    assert often < 0.6 < new < once < never < 1
    share = np.count_nonzero(label == "a") / 121
    assert_allclose(new, share, atol=0.01)
    assert_allclose(availability(graph_of(names), half_life=50).finishes, 1, atol=0.01)


@pytest.fixture(scope="module")
def planted_tasks():
    """A crowd of four task communities, and these."""
    simulated = crowd(n_volunteers=60, n_items=300, n_responses=2_400, n_communities=4, mixing=0.1, seed=6)
    return simulated, communities_of(simulated.truth.community, ids=simulated.graph.volunteers.ids)


def is_own(simulated):
    """Which items, (N, V), belong to each volunteer's community."""
    return simulated.truth.item_community[:, None] == simulated.truth.community


def with_communities(simulated, communities):
    """The forecast with a half-life that need not be learned."""
    return availability(simulated.graph, communities=communities, half_life=dt.timedelta(days=30))


def test_own_items_are_taken_more(planted_tasks):
    simulated, groups = planted_tasks
    likely = with_communities(simulated, groups)
    affinity, chance = likely.affinity(), likely.chance()
    own = is_own(simulated)
    assert affinity[own].mean() > 2.5 > 1 > 0.5 > affinity[~own].mean()
    ours, theirs = (np.where(part, chance, 0).sum(axis=0) / part.sum(axis=0) for part in (own, ~own))
    assert (ours > 2 * theirs).all()
    # What mixes to the average is the average item: weighted by how much each community answers, lifts are one.
    responses = simulated.graph.responses
    pairs = np.unique(np.stack([responses.volunteer, responses.item]), axis=1)
    base = (np.bincount(simulated.truth.community[pairs[0]], minlength=4) + 0.25) / (pairs.shape[1] + 1)
    assert_allclose(likely.lift @ base, 1, atol=1e-9)


def test_detected_communities_tell_the_same(planted_tasks):
    simulated, _ = planted_tasks
    groups = cg.Leiden().detect(cg.networks.task_cooccurrence(simulated.graph), seed=0)
    affinity = with_communities(simulated, groups).affinity()
    own = is_own(simulated)
    assert affinity[own].mean() > 4 * affinity[~own].mean()


def test_communities_that_do_not_matter_hardly_count(planted_tasks):
    simulated, groups = planted_tasks
    shuffled = np.random.default_rng(0).permutation(simulated.truth.community)
    likely = with_communities(simulated, communities_of(shuffled, ids=simulated.graph.volunteers.ids))
    own = with_communities(simulated, groups)
    assert np.abs(likely.lift - 1).mean() < 0.25 * np.abs(own.lift - 1).mean()


def test_what_nobody_knows_is_average():
    graph = graph_of("aabbc", item=list("xyxyz"), items={"item": ["w"]}, volunteers={"volunteer": ["n"]})
    groups = communities_of([[1, 0], [0.5, 0.5], [0, 0]], ids=["a", "b", "c"])
    likely = availability(graph, communities=groups, half_life=2)
    assert_allclose(likely.affinity(items=["w"]), 1)
    assert_allclose(likely.affinity(volunteers=["n", "c"]), 1)
    # Those who answered z belong to nothing.
    assert_allclose(likely.affinity(items=["z"]), 1)
    assert (likely.affinity(volunteers=["a"], items=["x", "y"]) != 1).all()
    assert_array_equal(availability(graph, half_life=2).affinity(), np.ones((4, 4)))


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_chances_are_products_between_zero_and_one(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 40))
    names, items = rng.integers(0, 6, size), rng.integers(0, 5, size)
    label = [["a", "b", None][code] for code in rng.integers(0, 3, size)]
    nodes = {"volunteers": {"volunteer": range(6)}, "items": {"item": range(5)}}
    graph = graph_of(names.tolist(), rng.gamma(1, 10, size).tolist(), items.tolist(), label, missing="keep", **nodes)
    groups = communities_of(rng.dirichlet(np.ones(3), 4), ids=range(4))
    likely = availability(graph, communities=groups, half_life=5.0)
    chance = likely.chance()
    assert chance.shape == (5, 6)
    assert ((chance >= 0) & (chance <= 1)).all()
    expected = likely.active * np.minimum(likely.affinity(), 1) * likely.finishes
    assert_allclose(chance, expected, atol=1e-12)
    assert_allclose(likely.chance([3, 0], [4]), chance[[4]][:, [3, 0]], rtol=1e-12)


@pytest.mark.parametrize("view", [lambda g: g.first(0), lambda g: g.first(1), lambda g: g.before(-5)])
def test_nearly_empty_graphs_have_a_forecast(view):
    graph = view(graph_of("ab", [3, 3]))
    likely = availability(graph)
    assert ((likely.active > 0) & (likely.active < 1)).all()
    assert likely.active[0] == likely.active[1]
    assert likely.chance().shape == (1, 2)
    nobody = graph_of([], volunteers={"volunteer": []}, items={"item": []})
    none = availability(nobody, communities=communities_of(np.zeros((0, 2)), ids=[]))
    assert none.chance().shape == (0, 0)
    assert "0 volunteers" in repr(none)


def test_forecasts_become_text_and_frames():
    likely = Availability(
        volunteers=["a", "b"],
        items=["x"],
        active=[0.25, 0.5],
        finishes=[1, 1],
        participation=[[1.0], [0.0]],
        lift=[[2.0]],
        horizon=dt.timedelta(days=7),
    )
    assert repr(likely).startswith("Availability(0.8 of 2 volunteers expected within 7 days; 1 items, 1 task")
    assert likely.to_frame(kind="text").splitlines() == [
        "volunteer  active  finishes  community",
        "b             0.5         1         -1",
        "a            0.25         1          0",
    ]
    assert likely.to_frame().volunteer.tolist() == ["b", "a"]
    with pytest.raises(ValueError, match="read-only"):
        likely.active[0] = 1
