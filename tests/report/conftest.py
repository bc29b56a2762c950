"""Annotated graphs that tests of the report read, and the data of a page."""

import pytest
from builders import fitted
from report.pages import VOTES, annotated_graph

import crowdgraph as cg
from crowdgraph.report.write import payload


@pytest.fixture(scope="session")
def graph():
    """Sixty volunteers of five groups with three labels, and all results that a page can show."""
    return annotated_graph()


@pytest.fixture(scope="session")
def calibrated(graph):
    """The calibration of the latest fit, measured while gold is hidden."""
    return cg.evaluation.calibration(graph, graph.fit(), model=cg.DynIBCC(confusion_prior=(4, 1), votes=VOTES))


@pytest.fixture(scope="session")
def data(graph, calibrated):
    """The data of the page of that graph."""
    run = {"seed": 7, "seconds": {"fit": 0.5}, "commands": ["crowdgraph demo"]}
    return payload(graph, calibration=calibrated, run=run)


@pytest.fixture(scope="session")
def agreeing():
    """Twenty good volunteers who agree about 80 items without gold, with a fit."""
    return fitted(n_volunteers=20, n_items=80, n_responses=800, gold=0.0)


@pytest.fixture
def bare(columns):
    """Three volunteers and three items, and no results."""
    return cg.CrowdGraph.from_responses(columns)
