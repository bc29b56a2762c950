"""What some items did to the communities."""

from functools import partial

import numpy as np
import pytest
from builders import crowd

import crowdgraph as cg
from crowdgraph.dynamics import influence
from crowdgraph.networks import task_cooccurrence

OPTIONS = {"network": partial(task_cooccurrence, min_responses=3), "detector": cg.Leiden(), "model": None, "seed": 0}


@pytest.fixture(scope="module")
def bridged():
    """Two groups of volunteers; five of the first answer few of their items and many further ones of the second."""
    rows = []
    rng = np.random.default_rng(0)
    for volunteer in range(30):
        home = volunteer % 2
        items = [f"{home}-{k}" for k in rng.choice(40, 15, replace=False)]
        if volunteer < 10 and home == 0:
            items = items[:5]
        if volunteer < 10 or home == 1:
            items += [f"1-extra-{k}" for k in rng.choice(30, 20, replace=False)]
        rows += [(volunteer, item, "x") for item in items]
    columns = dict(zip(("volunteer", "item", "label"), zip(*rows, strict=True), strict=True))
    return cg.CrowdGraph.from_responses(columns, classes=["x", "y"], labels=["x", "y"])


def test_items_that_bridge_groups_move_volunteers(bridged):
    extra = [name for name in bridged.items.ids if "extra" in name]
    result = influence(bridged, extra, controls=9, **OPTIONS)
    assert result.track.counts.tolist() == [len(bridged.responses) - result.n_responses, len(bridged.responses)]
    moved = set(result.track.moves_to_frame().volunteer)
    assert moved == {0, 2, 4, 6, 8}
    assert result.change == pytest.approx(5 / 30)
    assert len(result.controls) == 9
    assert result.controls.max() < result.change
    assert result.p_value == 0.1
    assert "16.7% of participation moved (p = 0.1 among other items)" in repr(result)


def test_the_graph_stays_and_without_controls_nothing_is_compared(bridged):
    before = len(bridged.responses)
    result = influence(bridged, bridged.items.ids[:3], **OPTIONS)
    assert np.isnan(result.p_value)
    assert len(bridged.responses) == before
    assert "among other items" not in repr(result)


def test_the_model_does_not_see_the_items():
    graph = crowd(n_volunteers=30, n_items=60, n_responses=900).graph
    batch = graph.items.ids[:20]
    model, detector = cg.IBCC(confusion_prior=(4, 1)), cg.BayesianNMF(restarts=1, nulls=0, sharpness=12.0)
    result = influence(graph, batch, model=model, detector=detector, seed=0)
    rest = graph.subgraph(items=graph.items.ids[20:])
    expected = model.fit(rest).confusion.latest()
    before = result.track[0].confusion
    np.testing.assert_allclose(before.mean, expected.mean[expected.table.codes(before.ids)], atol=1e-4)
