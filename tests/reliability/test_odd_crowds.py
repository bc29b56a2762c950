"""What odd crowds once broke stays mended, and the attack notices what is wrong."""

import numpy as np
import pytest
from odd_crowds import ODD_CROWDS
from reliability.odd_crowds import attempt, meet

import crowdgraph as cg
from crowdgraph.errors import ParameterError, ResultError


@pytest.mark.parametrize(
    ("crowd", "target"),
    [
        ("gold is nearly impossible", ("exports", "networkx")),
        ("gold is nearly impossible", ("exports", "GraphML")),
        ("the largest floats", ("evaluation", "data doctor")),
        ("the largest and the smallest integer", ("report", "page")),
    ],
)
def test_what_was_broken_stays_mended(crowd, target):
    built, outcome = meet(crowd, [target])
    assert not built.failure
    assert not outcome.refused
    assert outcome.failure == ""


def raised(error):
    def action():
        raise error

    return action


def halves(graph):
    """A network whose weights are not symmetric, which its class does not let through."""
    network = cg.networks.task_cooccurrence(graph, min_responses=1)
    object.__setattr__(network, "weights", np.triu(network.weights.toarray()))
    return network


@pytest.mark.parametrize(
    ("action", "failure", "refused"),
    [
        (lambda: None, "", False),
        (raised(ParameterError("no")), "", True),
        (raised(ResultError("no")), "ResultError: no", False),
        (raised(IndexError("3")), "IndexError: 3", False),
        (lambda: np.float64(1) / np.float64(0), "RuntimeWarning: divide by zero", False),
        (lambda: halves(ODD_CROWDS["a usual crowd"]()), "AssertionError: weights are not symmetric", False),
    ],
)
def test_failures_are_told_from_refusals(action, failure, refused):
    outcome, _ = attempt("any", ("models", "any"), action)
    assert outcome.failure.startswith(failure)
    assert bool(outcome.failure) is bool(failure)
    assert outcome.refused is refused
