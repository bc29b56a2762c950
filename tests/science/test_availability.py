"""Who comes back: forecasts of the last quarter of real crowds, where present, beside the base rate and habit."""

import numpy as np
import pytest
from science.real import load
from scipy.stats import mannwhitneyu

from crowdgraph.allocation.availability import availability

pytestmark = pytest.mark.science


def auc(came, likely):
    return mannwhitneyu(likely[came], likely[~came]).statistic / (came.sum() * (~came).sum())


def quarters(graph):
    """The moments at which the last two quarters of the time begin, and how long a quarter is."""
    times = graph.responses.time
    length = (times[-1] - times[0]) // 4
    return times[0] + 2 * length, times[0] + 3 * length, length


@pytest.mark.parametrize("name", ["predictionbook", "snapshots_at_sea_q1"])
def test_who_comes_back_in_the_last_quarter(name):
    graph = load(name)
    before, now, quarter = quarters(graph)
    known = graph.before(now).volunteers.n_responses > 0
    came = (graph.window(now, now + quarter).volunteers.n_responses > 0)[known]
    lately = (graph.window(before, now).volunteers.n_responses > 0)[known].astype(float)
    forecasts = {
        "forecast": availability(graph, at=now, horizon=quarter).active[known],
        "active in the quarter before": lately,
        "as many as came": np.full(len(came), came.mean()),
    }
    print(f"\n{name}: {came.sum():,} of {len(came):,} volunteers come back")
    print("| | expected | Brier | AUC |\n|---|--:|--:|--:|")
    brier = {}
    for way, likely in forecasts.items():
        brier[way] = ((likely - came) ** 2).mean()
        print(f"| {way} | {likely.sum():,.0f} | {brier[way]:.4f} | {auc(came, likely):.3f} |")
    # The base rate is that of the quarter itself, which nobody could know.
    assert brier["forecast"] < 0.95 * brier["as many as came"]
    assert auc(came, forecasts["forecast"]) > auc(came, lately)
