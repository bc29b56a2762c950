"""How often communities differ with the order of volunteers: random networks of a few to some dozens of volunteers.

Run ``python -m science.order_of_volunteers`` in the folder ``tests`` (some minutes); ``--networks 200`` is quicker.
"""

import argparse
import warnings

import numpy as np
from reliability.random_crowds import random_communities
from science.scoring import table
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphWarning

NETWORKS = {
    "alike": lambda graph: cg.networks.pi_similarity(graph, min_responses=1),
    "together": lambda graph: cg.networks.task_cooccurrence(graph, min_responses=1),
    "err together": lambda graph: cg.networks.error_correlation(graph, min_responses=1, min_common=1),
}
DETECTORS = {
    "Leiden": cg.Leiden(),
    "NMF": cg.BayesianNMF(nulls=0, restarts=2),
    "NMF, compared with nulls": cg.BayesianNMF(restarts=2),
}
# Divisions of a lower adjusted Rand index are clearly others.
CLEARLY = 0.8


def agreement(detector, network, rng):
    """The adjusted Rand index of the communities in two orders of the volunteers."""
    other = network.subnetwork(rng.permutation(network.ids).tolist())
    mine, theirs = (detector.detect(one, seed=0) for one in (network, other))
    return adjusted_rand_score(mine.assignment, theirs.assignment[theirs.table.codes(mine.ids)])


def random_networks(name, count):
    """Yield networks that have links, each with the random numbers that go on from it."""
    seed = 0
    while count:
        rng = np.random.default_rng(seed)
        graph = random_communities(rng).graph()
        network = NETWORKS[name](graph.annotate(cg.IBCC(tol=1e-9).fit(graph)))
        if network.n_edges:
            count -= 1
            yield network, rng
        seed += 1


def main():
    """Print how many communities differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=2_000)
    parser.add_argument("--detectors", nargs="+", default=list(DETECTORS))
    options = parser.parse_args()
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        for network_name in NETWORKS:
            for name in options.detectors:
                pairs = random_networks(network_name, options.networks)
                agreements = np.array([agreement(DETECTORS[name], *pair) for pair in pairs])
                rows[f"{network_name}, {name}"] = {
                    "other communities": int((agreements < 1).sum()),
                    "clearly others": int((agreements < CLEARLY).sum()),
                }
    print(table(rows, list(next(iter(rows.values()))), title=f"{options.networks} networks each"))


if __name__ == "__main__":
    main()
