"""The forecast of when items settle holds what it promises on crowds that really go on."""

import pytest
from science.continuation import go_on, simulated

import crowdgraph as cg
from crowdgraph.allocation import forecast_settled

pytestmark = pytest.mark.science

TARGETS = (0.9, 0.95)
N_BEFORE = 1_200
# The method was developed on crowds 0 to 9 and 100 to 109.
SEEDS = range(200, 210)


def test_the_true_number_of_answers_lies_within_the_interval():
    within = dict.fromkeys(TARGETS, 0)
    print("\n| crowd | target | settled now | forecast | 90 % from | to | truth |\n|--:|--:|--:|--:|--:|--:|--:|")
    for seed in SEEDS:
        crowd = simulated(seed)
        graph = crowd.graph.first(N_BEFORE)
        forecast = forecast_settled(graph, fit=cg.Calibrated().fit(graph), targets=TARGETS, seed=seed)
        truth = go_on(crowd, graph, targets=TARGETS, seed=seed)
        bounds = zip(TARGETS, forecast.median, forecast.low, forecast.high, truth, strict=True)
        for target, median, low, high, needed in bounds:
            within[target] += low <= needed <= high
            now = f"{forecast.n_settled} of {forecast.n_items}"
            print(f"| {seed} | {target} | {now} | {median:.0f} | {low:.0f} | {high:.0f} | {needed:.0f} |")
    print(f"within the interval, of {len(SEEDS)}: {within}")
    assert min(within.values()) >= 8
