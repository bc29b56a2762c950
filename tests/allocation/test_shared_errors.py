"""Errors that members of a community share: found where they are planted, and judged by enough gold."""

import numpy as np
import pytest
from builders import communities_of, crowd, planted, skills
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import shared_errors


def annotated(graph):
    return graph.annotate(cg.IBCC().fit(graph))


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_planted_shared_errors_are_found(share):
    groups = [
        cg.simulate.Group(name=group.name, confusion=group.confusion, concentration=1e4) for group in skills(0.9, 0.7)
    ]
    simulated = crowd(n_volunteers=40, n_items=3_000, n_responses=40_000, groups=groups, shared_errors=share)
    estimate = shared_errors(annotated(simulated.graph), planted(simulated))
    # Three standard errors: the draws of 3,000 items, of which 10 % or 30 % are wrong.
    assert_allclose(estimate.chance, share, atol=0.06)
    assert f"from {estimate.n_pairs.sum():,} pairs" in repr(estimate)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_shared_draws_are_found_where_they_make_people_agree_less(share):
    """Rows that overlap little: by one draw these two agree less often than alone."""
    rng = np.random.default_rng(0)
    rows = np.array([[0.49, 0.49, 0.02], [0.02, 0.49, 0.49]])
    answers = {"volunteer": [], "item": [], "label": []}
    for item in range(2_000):
        draws = np.full(2, rng.random()) if rng.random() < share else rng.random(2)
        for volunteer, draw in enumerate(draws.tolist()):
            answers["volunteer"].append(volunteer)
            answers["item"].append(item)
            answers["label"].append(int((draw >= rows[volunteer].cumsum()[:-1]).sum()))
    gold = {item: item % 2 for item in range(2_000)}
    graph = cg.CrowdGraph.from_responses(answers, gold=gold, labels=range(3), classes=range(2))
    graph = graph.annotate(cg.IBCC(confusion_prior=np.ones((2, 3))).fit(graph))
    both = communities_of([0, 0], ids=graph.volunteers.ids)
    # Agreement is 0.26 alone and 0.06 by one draw, and known to 0.01: three standard errors are 0.15.
    assert_allclose(shared_errors(graph, both).chance, share, atol=0.15)


def test_one_pair_is_no_proof():
    rows = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["y", "y"]}
    graph = cg.CrowdGraph.from_responses(rows, gold={"x": "y"}, classes=["n", "y"], labels=["n", "y"])
    assert shared_errors(annotated(graph), communities_of([0, 0], ids=["a", "b"])).chance[0] < 0.2


@pytest.fixture(scope="module")
def half_shared():
    """A crowd in which half of the errors are shared, all items with gold; and its groups."""
    simulated = crowd(n_volunteers=20, n_items=300, n_responses=4_500, shared_errors=0.5)
    return simulated, planted(simulated)


def test_enough_gold_decides_alone(half_shared):
    simulated, groups = half_shared
    gold = dict(list(simulated.graph.gold.items())[::2])
    graph = simulated.graph.with_gold(gold)
    part = graph.subgraph(items=list(gold))
    expected = shared_errors(annotated(part), groups)
    assert shared_errors(annotated(graph), groups).n_pairs.tolist() == expected.n_pairs.tolist()


def test_a_little_gold_does_not_silence_the_rest(half_shared):
    simulated, groups = half_shared
    complete, truth = simulated.graph, simulated.truth.classes
    bare = complete.with_gold({})
    one = complete.with_gold({complete.items.ids[0]: complete.classes[truth[0]]})
    estimates = [shared_errors(annotated(graph), groups) for graph in (bare, one, complete)]
    chances, n_pairs = ([getattr(estimate, name)[0] for estimate in estimates] for name in ("chance", "n_pairs"))
    # A single item with gold is too little to judge by.
    assert n_pairs[0] == n_pairs[1]
    assert chances[0] == pytest.approx(chances[1], abs=0.02)
    assert chances[2] == pytest.approx(0.5, abs=0.12)
    assert chances[2] > chances[0]
