"""The numbers behind the findings, against what loops, scipy and networkx say."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom
from strategies import answered_graphs

import crowdgraph as cg
from crowdgraph.core._text import join_names, percent, quantity
from crowdgraph.diagnosis._statistics import AnswerCodes, crowd_labels, first_answers, rater_agreement, upper_tail
from crowdgraph.diagnosis.bots import MIN_COMMON, RUN_LENGTH, _affordable, _fastest_runs, _similar_pairs
from crowdgraph.diagnosis.responses import check_duplicates
from crowdgraph.diagnosis.volunteers import check_anonymous, check_hardly_known, check_parts


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0, 1))
def test_upper_tail_is_that_of_the_binomial(successes, trials, chance):
    expected = 1.0 if successes == 0 else binom.sf(successes - 1, trials, chance)
    assert_allclose(upper_tail(successes, trials, chance), expected, atol=1e-12)


@given(answered_graphs())
def test_agreement_is_that_of_all_pairs(graph):
    answers = first_answers(graph)
    said = [answers.label[answers.item == item] for item in range(len(graph.items))]
    pairs = [one == other for labels in said for one, other in combinations(labels.tolist(), 2)]
    agreement = rater_agreement(answers, n_items=len(graph.items), n_labels=len(graph.labels))
    assert agreement.n_items == sum(len(labels) >= 2 for labels in said)
    if not pairs:
        assert np.isnan(agreement.kappa)
        return
    several = np.concatenate([labels for labels in said if len(labels) >= 2])
    chance = (np.unique(several, return_counts=True)[1] ** 2).sum() / len(several) ** 2
    assert_allclose([agreement.share, agreement.chance], [np.mean(pairs), chance])


def test_the_error_of_agreement_is_that_of_drawing_items_again():
    graph = cg.simulate.crowd(n_items=400, n_responses=3_000, seed=3).graph
    answers, rng = first_answers(graph), np.random.default_rng(0)
    counts = np.zeros((400, 2))
    np.add.at(counts, (answers.item, answers.label), 1)
    n = counts.sum(axis=1)
    alike, pairs = (counts * (counts - 1)).sum(axis=1), n * (n - 1)
    samples = rng.integers(0, 400, (2_000, 400))
    expected = (alike[samples].sum(axis=1) / pairs[samples].sum(axis=1)).std()
    assert_allclose(rater_agreement(answers, n_items=400, n_labels=2).error, expected, rtol=0.06)


def test_consensus_of_equals_is_the_vote():
    """With as many answers as this, the weighted vote is right at least as often as the plain one."""
    crowd = cg.simulate.crowd(
        n_volunteers=40,
        n_items=400,
        n_responses=4_000,
        groups=[
            cg.simulate.Group(name="good", confusion=[[0.97, 0.03], [0.03, 0.97]], share=0.2),
            cg.simulate.Group(name="poor", confusion=[[0.55, 0.45], [0.45, 0.55]], share=0.8),
        ],
        seed=0,
    )
    answers = first_answers(crowd.graph)
    labels = crowd_labels(answers, n_volunteers=40, n_items=400, n_labels=2)
    votes = np.zeros((400, 2))
    np.add.at(votes, (answers.item, answers.label), 1)
    weighted, plain = ((label == crowd.truth.classes).mean() for label in (labels.label, votes.argmax(axis=1)))
    assert weighted > plain + 0.05
    assert_allclose(labels.share, (votes[np.arange(400), labels.label] / votes.sum(axis=1)))


def test_consensus_of_what_nobody_answered():
    answers = AnswerCodes(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]))
    labels = crowd_labels(answers, n_volunteers=2, n_items=3, n_labels=2)
    assert labels.label.tolist() == [1, -1, -1]
    assert labels.share.tolist() == [1, 0, 0]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_pairs_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    answered = rng.random((5, 60)) < 0.8
    label = np.where(rng.random((5, 60)) < 0.04, 1, 0)
    label[:, :12] = 1
    usual = np.zeros(60, dtype=int)
    volunteer, item = np.nonzero(answered)
    n_pairs, pairs = _similar_pairs(AnswerCodes(volunteer, item, label[volunteer, item]), usual, 5, 2)
    expected, n_met = {}, 0
    for one, other in combinations(range(5), 2):
        both = answered[one] & answered[other]
        alike = both & (label[one] == label[other])
        against = (alike & (label[one] == 1)).sum()
        n_met += both.sum() >= MIN_COMMON
        if both.sum() >= MIN_COMMON and alike.sum() >= 0.95 * both.sum() and against >= 8:
            expected[one, other] = (both.sum(), alike.sum(), against)
    counts = zip(pairs.n_common, pairs.n_alike, pairs.n_departures, strict=True)
    assert dict(zip(zip(pairs.left, pairs.right, strict=True), counts, strict=True)) == expected
    assert n_pairs == n_met


@pytest.mark.parametrize("most", [0, 50, 400, 10**9])
def test_the_most_active_are_compared_as_far_as_affordable(monkeypatch, most):
    monkeypatch.setattr("crowdgraph.diagnosis.bots.MAX_MEETINGS", most)
    rng = np.random.default_rng(0)
    answered = rng.random((12, 10)) < 0.6
    volunteer, item = np.nonzero(answered)
    ordered = rng.permutation(12)
    sums = [(answered[ordered[:n]].sum(axis=0) ** 2).sum() for n in range(13)]
    n_expected = max(n for n in range(13) if sums[n] <= most)
    affordable = _affordable(AnswerCodes(volunteer, item, item), ordered, 12)
    assert affordable.tolist() == sorted(ordered[:n_expected])


@given(answered_graphs())
def test_parts_are_those_of_networkx(graph):
    links = nx.Graph([(("v", one.volunteer), ("i", one.item)) for one in graph.responses])
    parts = list(nx.connected_components(links))
    findings = check_parts(graph)
    if len(parts) == 1:
        assert not findings
        return
    assert findings[0].numbers["parts"] == len(parts)
    part = dict(zip(findings[0].ids.tolist(), findings[0].evidence["part"].tolist(), strict=True))
    inside = {name for name in dict.fromkeys(node[1] for node in links if node[0] == "v") if name not in part}
    groups = [{name for kind, name in nodes if kind == "v"} for nodes in parts]
    assert inside in groups
    assert sorted(map(sorted, groups)) == sorted(
        map(sorted, [inside, *({name for name in part if part[name] == k} for k in set(part.values()))])
    )


@given(st.integers(0, 10**6))
def test_repeats_are_those_of_a_loop(seed):
    rng = np.random.default_rng(seed)
    rows = {"volunteer": rng.integers(0, 3, 30), "item": rng.integers(0, 4, 30), "label": rng.integers(0, 2, 30)}
    graph = cg.CrowdGraph.from_responses(rows)
    last, same, repeats = {}, {}, {}
    for response in graph.responses:
        pair = (response.volunteer, response.item)
        if pair in last:
            repeats[response.volunteer] = repeats.get(response.volunteer, 0) + 1
            same[response.volunteer] = same.get(response.volunteer, 0) + (last[pair] == response.label)
        last[pair] = response.label
    (finding,) = [one for one in check_duplicates(graph) if one.name != "rows twice"]
    assert dict(zip(finding.ids.tolist(), finding.evidence["repeats"].tolist(), strict=True)) == repeats
    assert dict(zip(finding.ids.tolist(), finding.evidence["same"].tolist(), strict=True)) == same
    assert_allclose(finding.numbers["same"], sum(same.values()) / sum(repeats.values()))


def test_the_fastest_run():
    volunteer = np.repeat([0, 1, 2], [RUN_LENGTH - 1, RUN_LENGTH, RUN_LENGTH + 5])
    time = np.concatenate(
        [np.zeros(RUN_LENGTH - 1), np.arange(RUN_LENGTH) * 2.0, [0, 0, *np.arange(RUN_LENGTH + 3) * 0.5]]
    )
    fastest = _fastest_runs(volunteer, time, 4)
    assert_allclose(fastest, [np.inf, (RUN_LENGTH - 1) * 2.0, (RUN_LENGTH - 3) * 0.5, np.inf])


@pytest.mark.parametrize(
    ("volunteer", "name"),
    [
        ("", "shared id"),
        ("  ", "shared id"),
        ("ANONYMOUS", "shared id"),
        ("not-logged-in", "shared id"),
        ("nan", "shared id"),
        (-1, "shared id"),
        ("not-logged-in-4a5b6c", "visitors"),
        ("anonymous_17", "visitors"),
        ("guest-0a1b2c", "visitors"),
        ("131.211.4.17", "visitors"),
        ("131.211.4.xxx", "visitors"),
        ("2001:db8::1", "visitors"),
    ],
)
def test_ids_of_nobody(volunteer, name):
    graph = cg.CrowdGraph.from_responses({"volunteer": [volunteer], "item": ["x"], "label": ["yes"]})
    (finding,) = check_anonymous(graph)
    assert finding.name == name


@pytest.mark.parametrize(
    "volunteer", ["anna", "anonymous_whale_lover", "guesthouse", "nana", "1:2:3", "1.2.3", 0, 17, ("a", 1), "nobody2"]
)
def test_ids_of_people(volunteer):
    graph = cg.CrowdGraph.from_responses({"volunteer": [volunteer], "item": ["x"], "label": ["yes"]})
    assert not check_anonymous(graph)


def test_all_answers_weigh_against_the_prior():
    # What the crowd is like counts for eight answers at most: anna gives more, about five items.
    items = [f"item {n // 2}" for n in range(10)] + ["item 0"] * 2
    table = {"volunteer": ["anna"] * 10 + ["bert"] * 2, "item": items, "label": ["no", "yes"] * 6, "time": range(12)}
    finding = check_hardly_known(cg.CrowdGraph.from_responses(table, duplicates="all"))[0]
    assert finding.numbers["prior_weight"] == 8
    assert finding.ids.tolist() == ["bert"]
    assert finding.what.startswith("1 of 2 volunteers (50%), with 17% of the answers, gave fewer than 8 answers, ")


def test_words():
    assert [quantity(1, "class"), quantity(1_200, "class"), quantity(0, "item")] == [
        "1 class",
        "1,200 classes",
        "0 items",
    ]
    assert [percent(share) for share in (0, 0.0001, 0.034, 0.34, 0.955, 0.9999, 1)] == [
        "0%",
        "less than 0.1%",
        "3.4%",
        "34%",
        "95.5%",
        "more than 99.9%",
        "100%",
    ]
    assert join_names("abcde") == "a, b, c and 2 more"
