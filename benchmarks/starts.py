"""Single starts of Bayesian NMF in small sparse networks: how many are right, the log posterior, steps and seconds.

``python benchmarks/starts.py before FOLDER`` compares with another version of the package, whose sources are there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import crowdgraph as cg
from crowdgraph.communities import agreement
from crowdgraph.communities._factoriser import Factoriser
from crowdgraph.communities._nmf_weights import prepare_weights
from crowdgraph.kernels.nmf import Prior

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from oracles.overlapping import dual_network

STRENGTHS = (75.0, 150.0)
MIXING = (0.1, 0.25, 0.35, 0.45)
# Volunteers, items and responses of crowds with three communities.
CROWDS = ((60, 600, 2_400), (90, 700, 2_700))
# A network is right with as many communities as planted, and at least this agreement.
RIGHT = 0.9


def networks() -> Iterator[tuple[str, cg.VolunteerNetwork, np.ndarray, int]]:
    """Yield networks with a name, their planted communities and a seed."""
    for n_volunteers, n_items, n_responses in CROWDS:
        for mixing in MIXING:
            for seed in range(20):
                sizes = {"n_volunteers": n_volunteers, "n_items": n_items, "n_responses": n_responses}
                crowd = cg.simulate.crowd(**sizes, n_communities=3, mixing=mixing, seed=seed)
                network = cg.networks.task_cooccurrence(crowd.graph)
                community = crowd.truth.community[crowd.graph.volunteers.codes(network.ids)]
                yield f"tasks of {n_volunteers}, mixing {mixing}", network, np.eye(3, dtype=bool)[community], seed
    for share in (0.1, 0.3, 0.5):
        for seed in range(4):
            dual = dual_network(dual=share, seed=seed)
            network = cg.VolunteerNetwork(ids=range(len(dual.member)), weights=dual.links, method="planted")
            yield f"{share:.0%} in two of 20 communities", network, dual.member, seed


def starts() -> list[dict[str, Any]]:
    """Return what single starts find, by the version of the package that is imported."""
    facts = []
    for name, network, member, seed in networks():
        linked = network.degree > 0
        part = network if linked.all() else network.subnetwork(network.ids[linked])
        for strength in STRENGTHS:
            weights = prepare_weights(part, sharpness=1.0, strength=strength).search
            factoriser = Factoriser(weights, Prior(5.0, 2.0), symmetric=True)
            generator = torch.Generator().manual_seed(seed)
            cpu = time.process_time()
            result = factoriser.search(min(60, len(part)), generator, tol=1e-3, max_iter=500)
            cpu = time.process_time() - cpu
            shares = factoriser.participation(result.factors)
            shares = shares[:, np.unique(shares.argmax(axis=1))]
            score = score_of(shares / shares.sum(axis=1, keepdims=True), member[linked])
            right = shares.shape[1] == member.shape[1] and score >= RIGHT
            found = {"right": right, "score": score, "k": shares.shape[1], "steps": result.n_steps, "cpu": cpu}
            facts.append({"name": f"{name}, strength {strength:g}", **found, "objective": result.objective})
    return facts


def score_of(shares: np.ndarray, member: np.ndarray) -> float:
    """Return the adjusted Rand index, or the overlapping NMI where somebody is in two communities."""
    if member.sum(axis=1).max() == 1:
        return agreement(shares.argmax(axis=1), member.argmax(axis=1)).ari
    found = cg.Communities(ids=range(len(shares)), participation=shares, modularity=0.0, method="one start")
    return agreement(found, member).overlapping_nmi


def main(before: str | None = None) -> None:
    sources = ({"before": before} if before else {}) | {"now": str(Path(__file__).parents[1])}
    versions = {}
    for version, folder in sources.items():
        command = [sys.executable, __file__, "starts"]
        run = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": folder}
        )
        versions[version] = json.loads(run.stdout.splitlines()[-1])
    print(
        "| network | version | right | ARI or overlapping NMI | communities | log posterior | steps | s (processors) |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name in [*dict.fromkeys(fact["name"] for fact in versions["now"]), "all"]:
        for version, facts in versions.items():
            some = [fact for fact in facts if name in (fact["name"], "all")]
            score, k, objective, steps, cpu = (
                np.mean([fact[key] for fact in some]) for key in ("score", "k", "objective", "steps", "cpu")
            )
            right = f"{sum(fact['right'] for fact in some)} of {len(some)}"
            print(
                f"| {name} | {version} | {right} | {score:.4f} | {k:.2f} | {objective:.1f} | {steps:.0f} | {cpu:.3f} |"
            )


if __name__ == "__main__":
    if sys.argv[1:] == ["starts"]:
        print(json.dumps(starts()))
    else:
        main(*sys.argv[2:3])
