"""Read-outs of communities: against sums written out, for all kinds of participations, and refused where unknown."""

from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, crowd, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student_t

import crowdgraph as cg
from crowdgraph.core.communities import COVER_THRESHOLD, largest_first
from crowdgraph.core.evidence import Evidence

# dora belongs to none; nobody is assigned to the last community.
SHARES = [[0.75, 0.25, 0.0], [0.15, 0.85, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 0.0]]
GROUPS = communities_of(SHARES, ids=["anna", "bert", "cleo", "dora"], modularity=0.2, method="m")
SNAPSHOT = cg.ConfusionSnapshot(
    ids=["cleo", "bert", "anna"],
    concentration=[[[1.0, 19], [1, 19]], [[2, 18], [2, 18]], [[18, 2], [1, 19]]],
    classes=("no", "yes"),
    labels=("no", "yes"),
)


@st.composite
def drawn_communities(draw):
    """Communities of few volunteers, some of whom belong to none, with hard and soft rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, k = draw(st.integers(0, 12)), draw(st.integers(0, 5))
    shares = np.zeros((n, k))
    if n and k:
        soft, hard = rng.dirichlet(np.full(k, 0.5), n), np.eye(k)[rng.integers(0, k, n)]
        kind = rng.integers(0, 3, n)[:, None]
        shares = np.where(kind == 0, 0, np.where(kind == 1, soft, hard))
    return communities_of(shares, support=rng.integers(0, 30, n))


@given(drawn_communities())
def test_readouts_are_what_their_definitions_say(groups):
    shares, n = groups.participation, len(groups.ids)
    for v in range(n):
        row = shares[v][shares[v] > 0]
        if not len(row):
            assert np.isnan(groups.entropy[v])
        elif len(groups) == 1:
            assert groups.entropy[v] == 0
        else:
            assert_allclose(groups.entropy[v], -sum(p * np.log(p) for p in row) / np.log(len(groups)), atol=1e-12)
    assert groups.unassigned == [groups.ids[v] for v in range(n) if shares[v].sum() == 0]
    for k in range(len(groups)):
        for j in range(len(groups)):
            assert_allclose(groups.overlap()[k, j], sum(shares[v, k] * shares[v, j] for v in range(n)), atol=1e-12)
    assert groups.overlap().shape == (len(groups), len(groups))
    assert_allclose(groups.overlap().sum(axis=1), shares.sum(axis=0), atol=1e-12)


@given(drawn_communities(), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_a_cover_holds_the_assigned_and_all_above_the_threshold(groups, threshold):
    cover = groups.cover(threshold=threshold)
    assert len(cover) == len(groups)
    for k, members in enumerate(cover):
        assert set(members) == {*groups.members(k), *groups.members(k, threshold=threshold)}
    assert set().union(*cover, groups.unassigned) == set(groups.ids)
    assert groups.cover() == groups.cover(threshold=COVER_THRESHOLD)


def test_the_order_is_by_size_then_participation_then_first_member():
    assert largest_first(np.array(SHARES)).tolist() == [1, 0, 2]
    assert GROUPS.order.tolist() == [1, 0, 2]
    assert largest_first(np.array([[1.0, 0.0], [0.45, 0.55], [0.45, 0.55]])).tolist() == [1, 0]
    tied = np.array([[0.0, 0.0, 1.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0]])
    assert largest_first(tied).tolist() == [1, 2, 0]
    assert largest_first(np.eye(3)[[2, 0, 1]]).tolist() == [2, 0, 1]
    assert largest_first(np.zeros((2, 0))).tolist() == []
    assert largest_first(np.zeros((0, 2))).tolist() == [0, 1]
    # Of two without any assigned volunteers, the one whose most central volunteer comes first.
    assert largest_first(np.array([[0.6, 0.0, 0.4], [0.6, 0.4, 0.0]])).tolist() == [0, 2, 1]


@given(drawn_communities(), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_communities_are_numbered(groups, random):
    shuffled = random.sample(range(len(groups)), len(groups))
    sizes = groups.sizes[groups.order]
    assert (np.diff(sizes) <= 0).all()
    assert sorted(groups.order.tolist()) == list(range(len(groups)))
    other = groups.participation[:, shuffled]
    assert_array_equal(other[:, largest_first(other)], groups.participation[:, groups.order])


def test_detectors_number_the_largest_first():
    graph = crowd(n_volunteers=40, n_items=400, n_responses=1_600, n_communities=4, mixing=0.1).graph
    detected = cg.Leiden().detect(cg.networks.task_cooccurrence(graph), seed=0)
    assert detected.order.tolist() == list(range(len(detected)))


def test_members_are_assigned_or_above_the_threshold():
    assert GROUPS.members(1) == ["bert", "cleo"]
    assert GROUPS.members(np.int64(1), threshold=0.25) == ["anna", "bert", "cleo"]
    assert GROUPS.members(2) == []
    assert GROUPS.members(0, threshold=1) == []
    assert GROUPS.centroids == ["anna", "bert", "cleo"]


def test_there_may_be_no_communities_at_all():
    nothing = communities_of(np.zeros((2, 0)), ids="ab", method="m")
    assert nothing.cover() == []
    assert nothing.unassigned == ["a", "b"]
    assert nothing.overlap().shape == (0, 0)
    assert np.isnan(nothing.entropy).all()
    assert repr(nothing) == "Communities(m: none; 2 unassigned; modularity 0.000)"
    assert nothing.describe().to_dict("list")["volunteers"] == [2]
    assert nothing.mean_confusion(SNAPSHOT).shape == (0, 2, 2)


def test_the_repr_tells_of_the_unassigned_and_of_doubt():
    doubt = Evidence(agreement=0.2, modularity=0.1, null_modularity=[0.2, 0.3], structured=False)
    sure = Evidence(agreement=1.0, modularity=0.5, null_modularity=[0.2, 0.3], structured=True)
    assert repr(GROUPS) == "Communities(m: 3 of sizes 1, 2, 0; 1 unassigned; modularity 0.200)"
    assert repr(replace(GROUPS, evidence=sure)) == repr(GROUPS)
    assert "modularity 0.200; no clear evidence for communities)" in repr(replace(GROUPS, evidence=doubt))
    everybody = communities_of([[1.0], [1.0]], ids="ab", method="m")
    assert repr(everybody) == "Communities(m: 1 of sizes 2; modularity 0.000)"


@pytest.mark.parametrize(
    ("modularity", "structured", "verdict"),
    [
        (0.5, True, "evidence for communities (p < 0.001)"),
        (0.12, False, "weak evidence for communities, not enough to call (p = 0.0"),
        (0.1, False, "no clear evidence for communities (p = 0.5"),
    ],
)
def test_evidence_that_does_not_suffice_is_no_evidence_against(modularity, structured, verdict):
    null = [0.09, 0.1, 0.1, 0.11, 0.1]
    evidence = Evidence(agreement=0.9, modularity=modularity, null_modularity=null, structured=structured)
    assert evidence.verdict.startswith(verdict)
    assert evidence.verdict in repr(evidence)
    few = replace(evidence, null_modularity=[0.1])
    assert "p =" not in few.verdict


def test_the_mean_confusion_is_that_of_the_snapshot_or_their_own():
    expected = np.empty((3, 2, 2))
    means = {name: SNAPSHOT.of(name).mean for name in ("anna", "bert", "cleo")}
    for k in range(3):
        weights = {name: share[k] for name, share in zip(("anna", "bert", "cleo"), SHARES, strict=False)}
        expected[k] = sum(weights[name] * means[name] for name in means) / sum(weights.values())
    assert_allclose(GROUPS.mean_confusion(SNAPSHOT), expected)
    assert_allclose(replace(GROUPS, confusion=SNAPSHOT).mean_confusion(), expected)
    other = replace(SNAPSHOT, concentration=np.ones((3, 2, 2)))
    assert_allclose(replace(GROUPS, confusion=SNAPSHOT).mean_confusion(other), 0.5)


def test_the_mean_confusion_may_be_weighted_by_responses():
    known = replace(GROUPS, confusion=SNAPSHOT, support=[100, 0, 300, 7])
    anna, cleo = SNAPSHOT.of("anna").mean, SNAPSHOT.of("cleo").mean
    assert_allclose(known.mean_confusion(by_responses=True)[1], (25 * anna + 180 * cleo) / 205)
    assert_allclose(known.mean_confusion(by_responses=True)[0], anna)
    silent = replace(known, support=[0, 0, 0, 7])
    assert np.isnan(silent.mean_confusion(by_responses=True)).all()
    assert silent.describe()["behaviour"].tolist() == ["nothing is known of it"] * 3 + ["belongs to none"]


def test_the_mean_confusion_of_nobody_is_unknown():
    nobodys = communities_of(np.zeros((2, 1)), ids="ab")
    assert np.isnan(nobodys.mean_confusion(SNAPSHOT)).all()


def test_the_description_has_a_row_for_each_community_and_one_for_the_rest():
    full = replace(GROUPS, confusion=SNAPSHOT, support=[40, 9, 10, 3])
    frame = full.describe().astype(object).where(lambda cells: cells.notna(), None)
    assert frame.columns.tolist() == [
        *("community", "volunteers", "share", "participation", "mixed", "centroid"),
        *("responses", "median_responses", "few_responses", "behaviour"),
    ]
    # In community 1, anna's 0.25 of 40 answers outweigh bert's 0.85 of 9 and cleo's 0.6 of 10: "yes" to 57 % of "no".
    doubtful = "mostly right about yes, undecided about no"
    assert frame.to_numpy().tolist() == [
        [0, 1, 0.333, 0.9, 0.51, "anna", 40, 40.0, 0, "mostly right"],
        [1, 2, 0.667, 1.7, 0.5, "bert", 19, 9.5, 1, doubtful],
        [2, 0, 0.0, 0.4, None, "cleo", 0, None, 0, 'says "yes" to nearly everything'],
        [-1, 1, None, 0.0, None, None, 3, 3.0, 1, "belongs to none"],
    ]


def test_the_description_leaves_out_what_is_unknown():
    plain = GROUPS.describe()
    assert plain.columns.tolist()[-1] == "centroid"
    described = GROUPS.describe(SNAPSHOT)
    assert described.columns.tolist()[-2:] == ["centroid", "behaviour"]
    assert described["behaviour"][1] == 'says "yes" to most things'
    assert replace(GROUPS, support=[1, 2, 3, 4]).describe().columns.tolist()[-1] == "few_responses"
    everybody = communities_of([[1.0], [1.0]], ids=[7, 8])
    assert everybody.describe().to_dict("records") == [
        {"community": 0, "volunteers": 2, "share": 1.0, "participation": 2.0, "mixed": 0.0, "centroid": 7}
    ]


@given(drawn_communities(), st.sampled_from(["pandas", "polars", "arrow"]))
@settings(max_examples=30, deadline=None)
def test_every_kind_of_table_has_a_row_for_each_community(groups, kind):
    table = groups.describe(kind=kind)
    column = table["volunteers"]
    sizes = column.to_pylist() if kind == "arrow" else list(column)
    assert sizes == [*groups.sizes.tolist(), *([len(groups.unassigned)] if groups.unassigned else [])]
    assert sum(sizes) == len(groups.ids)
    assert len(groups.describe(kind="text").splitlines()) == 1 + len(sizes)


def test_the_description_as_text():
    text = replace(GROUPS, support=[4_000, 1, 2, 3]).describe(SNAPSHOT, kind="text")
    assert text.splitlines()[1] == (
        "        0           1  0.333            0.9   0.51  anna          4,000             4,000              0  "
        "mostly right"
    )
    assert text.splitlines()[-1].startswith("       -1           1                     0")
    assert "nan" not in text


THREE = communities_of([[1, 0], [0.3, 0.7], [0, 0]], ids=["a", "b", "c"], modularity=0.2, method="m")


def test_what_communities_say():
    groups = THREE
    assert len(groups) == 2
    assert groups.assignment.tolist() == [0, 1, -1]
    assert groups.sizes.tolist() == [1, 1]
    assert groups.centroids == ["a", "b"]
    assert list(groups) == [["a"], ["b"]]
    assert groups.members(0, threshold=0.25) == ["a", "b"]
    assert groups.of("b").tolist() == [0.3, 0.7]
    assert groups.to_frame().to_dict("list")["community"] == [0, 1, -1]
    assert repr(groups) == "Communities(m: 2 of sizes 1, 1; 1 unassigned; modularity 0.200)"


def test_the_mean_confusion_is_weighted_by_participation():
    means = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.1, 0.9]]])
    snapshot = cg.ConfusionSnapshot(ids=["c", "b", "a"], concentration=10 * means, classes=("k",), labels=("k", "l"))
    got = THREE.mean_confusion(snapshot)
    np.testing.assert_allclose(got[0], (1.0 * means[2] + 0.3 * means[1]) / 1.3)
    np.testing.assert_allclose(got[1], means[1])
    empty = replace(THREE, participation=[[1, 0], [1, 0], [0, 0]])
    assert np.isnan(empty.mean_confusion(snapshot)[1]).all()
    assert not np.isnan(empty.mean_confusion(snapshot)[0]).any()
    assert empty.centroids == ["a", None]


def test_communities_are_laid_onto_a_graph(graph):
    membership = communities_of([[1.0, 0.0], [0.3, 0.7]], ids=["cleo", "anna"]).on(graph)
    assert membership.assignment.tolist() == [1, -1, 0]
    assert membership.participation.tolist() == [[0.3, 0.7], [0.0, 0.0], [1.0, 0.0]]


def test_communities_are_laid_onto_a_network_that_they_know():
    network = network_of([[0, 1], [1, 0]], ids=["b", "a"])
    assert THREE.on(network).assignment.tolist() == [1, 0]


# Evidence at the same mean weight


def evidence_of(modularity, nulls, mean_weight=None, null_mean_weight=None, **others):
    weights = {} if mean_weight is None else {"mean_weight": mean_weight, "null_mean_weight": null_mean_weight}
    return Evidence(agreement=0.9, modularity=modularity, null_modularity=nulls, structured=True, **weights, **others)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(9, 40), st.floats(-0.3, 0.3))
def test_the_p_value_at_the_same_mean_weight_is_that_of_a_prediction(seed, n, excess):
    import statistics

    rng = np.random.default_rng(seed)
    weights = rng.normal(0.4, 0.02, n)
    nulls = 0.3 - 1.5 * (weights - 0.4) + rng.normal(0, 0.02, n)
    own = float(rng.choice(weights))
    # Least squares by another library, and the variance of a prediction as textbooks have it.
    slope, intercept = statistics.linear_regression(weights.tolist(), nulls.tolist())
    residuals = nulls - intercept - slope * weights
    variance = (residuals @ residuals) / (n - 2)
    design = np.column_stack([np.ones(n), weights])
    leverage = np.array([1, own]) @ np.linalg.inv(design.T @ design) @ np.array([1, own])
    expected = intercept + slope * own
    statistic = (0.3 + excess - expected) / np.sqrt(max(variance, 0.005**2) * (1 + leverage))
    evidence = evidence_of(0.3 + excess, nulls, own, weights)
    assert_allclose(evidence.p_value, student_t.sf(statistic, n - 2), rtol=1e-6, atol=1e-12)


def test_the_line_is_not_followed_beyond_the_null_networks():
    rng = np.random.default_rng(0)
    weights = rng.normal(0.4, 0.02, 20)
    nulls = 0.3 - 1.5 * (weights - 0.4) + rng.normal(0, 0.02, 20)
    beyond, at_the_edge = (evidence_of(0.5, nulls, own, weights) for own in (9.0, weights.max()))
    assert beyond.p_value == at_the_edge.p_value


def test_equal_mean_weights_say_nothing():
    nulls = np.random.default_rng(0).normal(0.3, 0.02, 12)
    assert evidence_of(0.4, nulls, 1.0, np.ones(12)).p_value == evidence_of(0.4, nulls).p_value


def test_the_verdict_is_certain_far_from_the_limit_and_a_toss_at_it():
    nulls = np.random.default_rng(0).normal(0.3, 0.02, 30)
    at_limit = nulls.mean() + 2.5758293 * nulls.std(ddof=1)
    assert_allclose(evidence_of(at_limit, nulls).certainty, 0.5, atol=1e-6)
    assert evidence_of(0.6, nulls).certainty > 0.999
    assert evidence_of(0.2, nulls).certainty > 0.999
    assert np.isnan(evidence_of(0.6, nulls[:2]).certainty)


def test_certainty_is_how_often_other_null_networks_give_the_same_verdict():
    rng = np.random.default_rng(1)
    first = rng.normal(0.3, 0.02, 40)
    evidence = evidence_of(0.3 + 2.9 * 0.02, first)
    # With very many null networks the verdict is that of the true distance; here it is known to be 2.9 deviations.
    verdicts = [evidence_of(0.3 + 2.9 * 0.02, rng.normal(0.3, 0.02, 40)).p_value < 0.01 for _ in range(400)]
    assert 0.8 < np.mean(verdicts) < 0.99
    assert 0.8 < evidence.certainty < 0.999


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (1.0, "evidence against communities (p = 0.500): groups as different as these volunteers would have been seen"),
        (2 / 3, "no clear evidence for communities (p = 0.500): too few answers, or too little difference, to say"),
        (np.nan, "no clear evidence for communities (p = 0.500)"),
    ],
)
def test_evidence_against_is_only_said_where_communities_would_have_been_seen(power, words):
    evidence = Evidence(agreement=0.9, modularity=0.1, null_modularity=[0.1] * 9, structured=False, power=power)
    assert evidence.verdict == words


def test_communities_that_persist_say_so():
    words = evidence_of(0.12, [0.09, 0.1, 0.11], persists=True).verdict
    assert words.endswith("but they are those of the snapshot before")


def test_chance_is_seen_from_the_mean_weight_of_the_network():
    weights = np.linspace(0.3, 0.5, 11)
    nulls = 0.3 - 1.5 * (weights - 0.4)
    evidence = evidence_of(0.35, nulls, 0.35, weights)
    # All null networks lie on the line, which passes through 0.375 at this mean weight.
    assert_allclose(evidence.chance, 0.375)
    assert "by chance 0.375 to 0.375" in repr(evidence)
    assert_array_equal(evidence_of(0.35, nulls).chance, nulls)
    assert evidence_of(0.35, []).chance.size == 0


def test_null_weights_say_nothing_if_that_of_the_network_is_not_known():
    nulls = np.linspace(0.09, 0.11, 12)
    without = evidence_of(0.15, nulls)
    assert evidence_of(0.15, nulls, float("nan"), np.linspace(1, 2, 12)).p_value == without.p_value > 0
