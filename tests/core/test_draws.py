"""igraph draws from a source of its own, and from Python's afterwards."""

import random

import igraph
import pytest

from crowdgraph.core._random import igraph_seed


def some_edges():
    return igraph.Graph.Erdos_Renyi(n=40, m=60).get_edgelist()


def test_a_seed_gives_the_same_draws():
    found = []
    for seed in (0, 0, 1):
        with igraph_seed(seed):
            found.append(some_edges())
    assert found[0] == found[1] != found[2]


def test_pythons_source_is_neither_used_nor_lost():
    state = random.getstate()
    with igraph_seed(0):
        some_edges()
    assert random.getstate() == state
    with pytest.raises(ZeroDivisionError), igraph_seed(0):
        1 / 0  # noqa: B018
    random.seed(5)
    expected = some_edges()
    random.seed(5)
    assert some_edges() == expected
    assert random.getstate() != state
    random.setstate(state)
    # The lock was given back, too.
    with igraph_seed(None):
        assert some_edges() != expected
