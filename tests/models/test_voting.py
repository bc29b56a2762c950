"""The four baselines on cases worked out by hand."""

import numpy as np
import pytest
from builders import crowd
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg

VOTES = {-1: "no", 1: "yes", 3: "yes"}


@pytest.fixture(scope="module")
def graph():
    """Three volunteers; x and y have gold. Anna errs once, bert twice, cleo never."""
    rows = [
        ("anna", "x", 3),
        ("bert", "x", -1),
        ("cleo", "x", 1),
        ("anna", "y", 1),
        ("bert", "y", 3),
        ("cleo", "y", -1),
        ("anna", "z", -1),
        ("bert", "z", -1),
        ("cleo", "z", 3),
    ]
    columns = dict(zip(("volunteer", "item", "label"), map(list, zip(*rows, strict=True)), strict=True))
    return cg.CrowdGraph.from_responses(
        columns, labels=[-1, 1, 3], gold={"x": "yes", "y": "no"}, classes=["no", "yes"], items={"item": [*"xyz", "w"]}
    )


def test_a_majority_vote_counts_votes(graph):
    fit = cg.MajorityVote(votes=VOTES).fit(graph)
    assert np.allclose(fit.item_probs[:, 1], [2 / 3, 2 / 3, 1 / 3, 1 / 2])
    assert fit.predict() == {"x": "yes", "y": "yes", "z": "no", "w": "no"}
    winner = cg.MajorityVote(votes=VOTES, output="winner").fit(graph)
    assert np.array_equal(winner.item_probs[:, 1], [1, 1, 0, 0.5])


def test_a_weighted_majority_takes_weight_for_mistakes(graph):
    fit = cg.WeightedMajority(votes=VOTES, factor=0.5).fit(graph)
    assert np.allclose(fit.diagnostics["weights"], [0.5, 0.25, 1.0])
    assert np.allclose(fit.item_probs[:, 1], [1.5 / 1.75, 0.75 / 1.75, 1 / 1.75, 0.5])


def test_mean_scores_lie_between_the_lowest_and_the_highest(graph):
    fit = cg.MeanScore().fit(graph)
    assert np.allclose(fit.item_probs[:, 1], [(1 + 1) / 4, (1 + 1) / 4, (1 / 3 + 1) / 4, 0.5])
    given_scores = cg.MeanScore(scores={-1: 0.0, 1: 1.0, 3: 1.0}).fit(graph)
    assert np.allclose(given_scores.item_probs[:, 1], [2 / 3, 2 / 3, 1 / 3, 0.5])
    turned = cg.MeanScore(positive="no").fit(graph)
    assert np.allclose(turned.item_probs[:, ::-1], fit.item_probs)


def test_text_that_spells_numbers_is_a_score():
    """As it comes from a CSV file."""
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["-1", "3"]}, classes=["no", "yes"]
    )
    assert np.allclose(cg.MeanScore().fit(graph).item_probs, 0.5)


def test_a_weighted_sum_weighs_scores(graph):
    fit = cg.WeightedSum(votes=VOTES, factor=0.5).fit(graph)
    means = [(0.5 * 3 - 0.25 + 1) / 1.75, (0.5 + 0.75 - 1) / 1.75, (-0.5 - 0.25 + 3) / 1.75]
    assert np.allclose(fit.item_probs[:3, 1], (np.array(means) + 1) / 4)


def test_a_label_may_vote_for_nobody(graph):
    fit = cg.MajorityVote(votes={-1: "no", 1: None, 3: "yes"}).fit(graph)
    assert np.allclose(fit.item_probs[:, 1], [1 / 2, 1 / 2, 1 / 3, 1 / 2])


def test_weights_that_would_vanish_still_decide():
    """A thousand mistakes leave a weight below the smallest float; among such volunteers the better one still wins."""
    n = 2_000
    columns = {
        "volunteer": ["bad"] * n + ["worse"] * (n + 1) + ["bad", "worse"],
        "item": [*range(n), *range(n + 1), "q", "q"],
        "label": ["no"] * (2 * n + 1) + ["yes", "no"],
    }
    graph = cg.CrowdGraph.from_responses(columns, gold=dict.fromkeys(range(n + 1), "yes"))
    fit = cg.WeightedMajority(factor=0.5).fit(graph)
    assert np.allclose(fit.item_probs[-1], [1 / 3, 2 / 3])


def test_an_abstainer_does_not_outweigh_the_others():
    """Anna is never wrong but abstains; what is left of bert's weight decides."""
    items = [f"g{number}" for number in range(300)]
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": ["anna"] * 300 + ["bert"] * 300 + ["anna", "bert"],
            "item": [*items, *items, "x", "x"],
            "label": ["yes"] * 300 + ["no"] * 300 + ["unsure", "yes"],
        },
        classes=["no", "yes"],
        gold=dict.fromkeys(items, "yes"),
    )
    model = cg.WeightedMajority(votes={"no": "no", "yes": "yes", "unsure": None}, factor=0.05)
    assert np.array_equal(model.fit(graph).item_probs[-1], [0, 1])


def test_equal_weights_tie_in_any_order():
    """Weights .9, .9, .81 and .53 on both sides, added in different orders."""
    rng = np.random.default_rng(0)
    mistakes = [1, 1, 2, 6]
    teaching = [(f"{side}{k}", f"t{side}{k}-{m}", "no") for side in "ab" for k in range(4) for m in range(mistakes[k])]
    rows = [(f"{side}{k}", "q", "no" if side == "a" else "yes") for side in "ab" for k in range(4)]
    for _ in range(10):
        order = rng.permutation(len(rows))
        columns = zip(*teaching, *(rows[index] for index in order), strict=True)
        graph = cg.CrowdGraph.from_responses(
            dict(zip(("volunteer", "item", "label"), map(list, columns), strict=True)),
            gold={item: "yes" for _, item, _ in teaching},
        )
        fit = cg.WeightedMajority(output="winner").fit(graph)
        assert np.array_equal(fit.item_probs[graph.items.table.code("q")], [0.5, 0.5])


@given(st.integers(0, 1000))
def test_weights_without_mistakes_are_a_plain_vote(seed):
    graph = crowd(n_volunteers=5, n_items=20, n_responses=50, gold=0, seed=seed).graph
    majority = cg.MajorityVote().fit(graph)
    certain = (graph.items.n_responses > 0) & (majority.item_probs.max(axis=1) == 1)
    unanimous = {item: majority.predict()[item] for item in graph.items.ids[certain].tolist()}
    if unanimous:
        weighted = cg.WeightedMajority().fit(graph.with_gold(unanimous))
        assert np.allclose(weighted.item_probs, majority.item_probs)


def test_gold_does_not_change_votes(graph):
    without = graph.with_gold(None, classes=graph.classes)
    for model in (cg.MajorityVote(votes=VOTES), cg.MeanScore()):
        assert np.array_equal(model.fit(graph).item_probs, model.fit(without).item_probs)


def test_unanswered_responses_are_no_votes():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "x"], "label": ["yes", None, "no"]}, missing="keep"
    )
    assert np.allclose(cg.MajorityVote().fit(graph).item_probs, 0.5)
