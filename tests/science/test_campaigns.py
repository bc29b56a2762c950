"""How many responses policies need: simulated crowds of mixed skill, and real crowds where present."""

import numpy as np
import pytest
from science.real import load

import crowdgraph as cg
from crowdgraph.allocation import GreedyInformation, MostUncertain, RandomPolicy, replay

pytestmark = pytest.mark.science

POLICIES = [RandomPolicy(), MostUncertain(), GreedyInformation()]


def mixed(seed):
    kinds = {"good": (0.3, 0.92), "fair": (0.4, 0.75), "poor": (0.3, 0.55)}
    groups = [
        cg.simulate.Group(name=name, share=share, confusion=[[right, 1 - right], [1 - right, right]])
        for name, (share, right) in kinds.items()
    ]
    return cg.simulate.crowd(n_volunteers=60, n_items=500, n_responses=6_000, groups=groups, seed=seed)


def test_simulated_crowds_of_mixed_skill():
    spent = {policy.name: [] for policy in POLICIES}
    for seed in range(20):
        crowd = mixed(seed)
        for policy in POLICIES:
            campaign = replay.simulate(crowd, policy, budget=6_000, update_every=200, seed=seed)
            spent[policy.name].append(campaign.spent_until(0.95))
    print("\n| policy | responses until 95 % are right, median | from | to | of random |\n|---|--:|--:|--:|--:|")
    for name, values in spent.items():
        share = np.median(np.array(values) / np.array(spent["random"]))
        print(f"| {name} | {np.median(values):,.0f} | {min(values):,.0f} | {max(values):,.0f} | {share:.2f} |")
    assert np.median(np.array(spent["greedy information"]) / np.array(spent["random"])) <= 0.55


@pytest.mark.parametrize("name", ["bluebird", "act_sp_amt", "cti_sentiment"])
@pytest.mark.filterwarnings("ignore")
def test_recorded_crowds(name):
    graph = load(name)
    spent = {policy.name: [] for policy in POLICIES}
    for seed in range(20):
        for policy in POLICIES:
            campaign = replay.offline(graph, policy, update_every=max(len(graph.items) // 2, 20), seed=seed)
            spent[policy.name].append(campaign.spent_until(0.99 * campaign.accuracy[-1]))
    print(f"\n{name}: responses until accuracy stays within 1 % of the final one ({campaign.accuracy[-1]:.3f})")
    print("| policy | median | from | to | of random |\n|---|--:|--:|--:|--:|")
    for policy, values in spent.items():
        share = np.median(values) / np.median(spent["random"])
        print(f"| {policy} | {np.median(values):,.0f} | {min(values):,.0f} | {max(values):,.0f} | {share:.2f} |")
