"""An analysis that tests read, and results without figures."""

import pytest
from builders import crowd

import crowdgraph as cg
from crowdgraph.analysis import analyse


@pytest.fixture(scope="session")
def small_crowd():
    """Thirty-six volunteers, of whom four gave a few answers only, and gold for half of the items."""
    return crowd(n_volunteers=36, n_casual=4, n_items=40, n_responses=640, gold=0.5).graph


@pytest.fixture(scope="session")
def analysis(small_crowd):
    """The analysis of that crowd by DynIBCC, with a detector that does not examine its communities, which is slow."""
    return analyse(small_crowd, model="dynibcc", detector=cg.Leiden(), snapshots=2, seed=3)


@pytest.fixture
def without_figures(monkeypatch):
    """Write results without their figures, which take longest."""
    monkeypatch.setattr("crowdgraph.analysis.output.draw_figures", lambda results, folder: folder.mkdir())
