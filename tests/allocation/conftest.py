"""Crowds that tests of allocation read."""

import numpy as np
import pytest
from builders import communities_of, crowd, fitted, planted

import crowdgraph as cg


@pytest.fixture(scope="session")
def graph():
    """A fitted graph of good and poor volunteers, 20 in all, where every other one is in the same community."""
    graph = fitted(0.95, 0.6, n_volunteers=20, n_items=60, n_responses=500, gold=0.3)
    return graph.annotate(communities_of(np.arange(20) % 2, ids=graph.volunteers.ids))


@pytest.fixture(scope="session")
def erring_together():
    """A crowd of good and poor volunteers who share errors within their groups, with a fit; and these groups."""
    simulated = crowd(0.9, 0.7, n_volunteers=40, n_items=400, n_responses=6_000, shared_errors=0.4, gold=0.5)
    annotated = simulated.graph.annotate(cg.IBCC().fit(simulated.graph))
    return cg.simulate.SimulatedCrowd(annotated, simulated.truth), planted(simulated)


@pytest.fixture(scope="session")
def three_skills():
    """A crowd of good, fair and poor volunteers, as campaigns ask them; all items have gold."""
    return crowd(0.92, 0.75, 0.55, n_volunteers=20, n_items=100, n_responses=1_000)
