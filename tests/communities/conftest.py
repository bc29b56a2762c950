"""Networks with planted communities, and what Bayesian NMF detects in them."""

import pytest
from builders import FIVE, behaving, crowd

import crowdgraph as cg
from crowdgraph.kernels._runtime import single_threaded_torch


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Tensors this small are done before other threads have woken up."""
    with single_threaded_torch():
        yield


@pytest.fixture(scope="session")
def behaviour_network():
    """A network of similar behaviour, and the group of each volunteer."""
    return behaving(FIVE, n=120, concentration=20, seed=0)


@pytest.fixture(scope="session")
def task_network():
    """A network of shared items, and the community of each volunteer."""
    simulated = crowd(n_volunteers=80, n_items=600, n_responses=4_000, n_communities=4, mixing=0.2)
    network = cg.networks.task_cooccurrence(simulated.graph)
    return network, simulated.truth.community[simulated.graph.volunteers.codes(network.ids)]


@pytest.fixture(scope="session")
def task_communities(task_network):
    """What Bayesian NMF detects in the network of shared items."""
    network, _ = task_network
    with single_threaded_torch():
        return cg.BayesianNMF().detect(network, seed=0)
