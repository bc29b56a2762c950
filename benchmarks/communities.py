"""Compare one start of Bayesian NMF with igraph's Leiden: seconds, communities, memory, and the cost of a step.

``python benchmarks/communities.py before FOLDER`` runs only the comparison with Leiden, by turns with the Bayesian NMF
of another version of the package, whose sources are in the folder.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import igraph
import numpy as np
import torch
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.communities._factoriser import Factoriser
from crowdgraph.communities.quality import modularity
from crowdgraph.kernels.nmf import Prior

Facts = dict[str, Any]


class Kind(NamedTuple):
    """How links are drawn: between any two volunteers with probability `mixing`, otherwise within a community."""

    n_communities: int
    mixing: float
    # The exponent of a Pareto distribution of activity, with exponential weights; None for equal activity and weights.
    tail: float | None = None


class Links(NamedTuple):
    """Each linked pair once, with its weight, and the community of each volunteer."""

    left: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    community: np.ndarray


KINDS = {
    "30 communities, 40 % of links at random": Kind(30, 0.4),
    "30 communities, 70 % at random, uneven activity and weights": Kind(30, 0.7, tail=2.0),
    "no communities": Kind(1, 1.0),
}
EASY, HARD, NONE = KINDS
# The numbers of volunteers and links, the kinds of networks, and the number of repeats.
SIZES = {"a": (10_000, 500_000, (EASY, HARD, NONE), 3), "b": (100_000, 5_000_000, (EASY, HARD), 1)}
# A single start, without null networks or a search for settings.
ONE_START = {"restarts": 1, "nulls": 0, "strength": 150.0}


def main() -> None:
    beside_leiden()
    dense()
    linearity()


def beside_leiden(before: str | None = None) -> None:
    print("One start to convergence beside Leiden, until nothing changes or for two iterations (its default).")
    print("Ratios of seconds, and in brackets of the processors' seconds: ours has as many threads as there are")
    print(
        "processors, Leiden has one. Found: communities, modularity, and the adjusted Rand index with those planted.\n"
    )
    names = {"nmf": "NMF", "before": "NMF before", "until": "Leiden", "two": "two iterations"}
    contenders = {"nmf": ["nmf"], "before": ["nmf"], "until": ["leiden", "-1"], "two": ["leiden", "2"]}
    if before is None:
        del names["before"], contenders["before"]
    ours = [name for name in ("before", "nmf") if name in names]
    head = [f"{names[name]} / {names[peer]}" for peer in ("until", "two") for name in ours]
    head += ["volunteers, links", "network", *(f"{name}: s" for name in names.values())]
    head += [f"{name} found" for name in names.values()]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    memory = []
    for n_volunteers, n_links, kinds, repeats in SIZES.values():
        for name in kinds:
            with TemporaryDirectory() as folder:
                path = Path(folder) / "links.npz"
                np.savez(path, **planted(KINDS[name], n_volunteers, n_links)._asdict())
                commands = {key: [*what, str(path)] for key, what in contenders.items()}
                facts = run_in_turn(commands, repeats=repeats, sources={"before": before} if before else {})
            cells = [ratio(facts[key], facts[peer]) for peer in ("until", "two") for key in ours]
            size = f"{n_volunteers:,}, {n_links:,}"
            cells += [size, name, *(f"{fact['seconds']:.2f}" for fact in facts.values())]
            cells += [fact["found"] for fact in facts.values()]
            print("| " + " | ".join(cells) + " |", flush=True)
            memory.append((size, name, facts["nmf"]))
    print("\nMemory of the process of NMF, in GiB.\n")
    print("| volunteers, links | network | the network alone | before the start | peak |\n|---|---|--:|--:|--:|")
    for size, name, fact in memory:
        sizes = " | ".join(f"{fact[key] / 2**30:.2f}" for key in ("network", "before", "peak"))
        print(f"| {size} | {name} | {sizes} |", flush=True)


def ratio(ours: Facts, peer: Facts) -> str:
    """Return how many times as long ours took, and in brackets how many times as much of the processors."""
    return f"{ours['seconds'] / peer['seconds']:.2f} ({ours['cpu'] / peer['cpu']:.2f})"


def dense() -> None:
    print("\n| pi-similarity of 1,705 volunteers | detection | seconds | found |\n|---|---|--:|---|")
    for crowd in CROWDS:
        for name, repeats in {"one start": 3, "default": 1}.items():
            fact = run_in_turn({name: ["dense", crowd, name]}, repeats=repeats)[name]
            print(f"| {crowd} | {name} | {fact['seconds']:.2f} | {fact['found']} |", flush=True)


def linearity() -> None:
    """Print the nanoseconds per link in a step with 30 columns, if volunteers grow with links and if they do not."""
    from models import time_in_turn

    sizes = (100_000, 500_000, 2_000_000, 5_000_000)
    print("\n| links | a step, volunteers a 50th | ns per link | a step, 100,000 volunteers | ns per link |")
    print("|--:|--:|--:|--:|--:|")
    for n_links in sizes:
        both = {name: planted(KINDS[EASY], n, n_links) for name, n in {"fewer": n_links // 50, "all": 100_000}.items()}
        seconds = time_in_turn({name: our_step(links, n_columns=30) for name, links in both.items()}, repeats=5)
        cells = " | ".join(f"{value:.4f} s | {value / n_links * 1e9:.0f}" for value in seconds.values())
        print(f"| {n_links:,} | {cells} |", flush=True)


def planted(kind: Kind, n_volunteers: int, n_links: int, *, seed: int = 0) -> Links:
    """Return random links between volunteers, each once, with the planted community of each volunteer."""
    rng = np.random.default_rng(seed)
    activity = np.ones(n_volunteers) if kind.tail is None else rng.pareto(kind.tail, n_volunteers) + 1
    # Volunteers are sorted by community, so that a community is an interval of cumulative activity.
    community = np.sort(rng.integers(kind.n_communities, size=n_volunteers))
    ends = np.cumsum(activity)
    borders = np.append(0.0, ends)[np.searchsorted(community, np.arange(kind.n_communities + 1))]
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < n_links:
        left = np.searchsorted(ends, rng.random(n_links) * ends[-1])
        inside = rng.random(n_links) >= kind.mixing
        low = np.where(inside, borders[community[left]], 0.0)
        high = np.where(inside, borders[community[left] + 1], ends[-1])
        right = np.searchsorted(ends, rng.uniform(low, high))
        apart = left != right
        pairs = np.minimum(left, right)[apart] * n_volunteers + np.maximum(left, right)[apart]
        keys = np.unique(np.append(keys, pairs))
    keys = rng.choice(keys, n_links, replace=False)
    names = rng.permutation(n_volunteers).astype(np.int32)
    weight = np.ones(n_links) if kind.tail is None else rng.exponential(size=n_links)
    return Links(names[keys // n_volunteers], names[keys % n_volunteers], weight, community[np.argsort(names)])


def network_of(links: Links) -> cg.VolunteerNetwork:
    n = len(links.community)
    half = csr_array((links.weight, (links.left, links.right)), shape=(n, n))
    return cg.VolunteerNetwork(ids=range(n), weights=half + half.T, method="planted")


def our_step(links: Links, *, n_columns: int) -> Callable[[], Any]:
    """Return one step from random factors."""
    factoriser = Factoriser(csr_array(network_of(links).weights), Prior(5.0, 2.0), device="cpu", symmetric=True)
    step = factoriser._step()
    generator = torch.Generator().manual_seed(0)
    state = 0.1 + torch.rand(len(links.community), n_columns, generator=generator, dtype=torch.float64)
    return lambda: step(state)


def run_in_turn(
    contenders: dict[str, list[str]], *, repeats: int, sources: dict[str, str] | None = None
) -> dict[str, Facts]:
    """Run contenders by turns in processes of their own; return the median seconds, and the rest of the first seed.

    Contenders that `sources` names import the package from there.
    """
    reports: dict[str, list[Facts]] = {name: [] for name in contenders}
    for seed in range(repeats):
        for name, arguments in contenders.items():
            command = [sys.executable, __file__, *arguments, str(seed)]
            elsewhere = {"PYTHONPATH": sources[name]} if sources and name in sources else {}
            process = subprocess.run(
                command, capture_output=True, text=True, check=True, env={**os.environ, **elsewhere}
            )
            reports[name].append(json.loads(process.stdout.splitlines()[-1]))
    return {
        name: {**facts[0], **{key: statistics.median(fact[key] for fact in facts) for key in ("seconds", "cpu")}}
        for name, facts in reports.items()
    }


def read(path: str) -> Links:
    with np.load(path) as arrays:
        return Links(**arrays)


def nmf(path: str, seed: str) -> Facts:
    """Run one start of Bayesian NMF in a network."""
    warm_up()
    links = read(path)
    network, truth = network_of(links), links.community
    del links  # the network's source must not count as memory
    weights = network.weights
    size = weights.data.nbytes + weights.indices.nbytes + weights.indptr.nbytes
    groups, facts = watch(lambda: cg.BayesianNMF(**ONE_START, sharpness=1.0).detect(network, seed=int(seed)))
    return {**facts, "network": size, "found": summary(network, groups.assignment, truth)}


def leiden(n_iterations: str, path: str, seed: str) -> Facts:
    """Run igraph's Leiden in the same network; the time to build its graph does not count."""
    links = read(path)
    graph = igraph.Graph(n=len(links.community), edges=np.column_stack([links.left, links.right]))
    weights = None if (links.weight == 1).all() else links.weight.tolist()
    settings = {"objective_function": "modularity", "weights": weights, "n_iterations": int(n_iterations)}
    random.seed(int(seed))  # igraph uses Python's random numbers
    groups, facts = watch(lambda: graph.community_leiden(**settings))
    return {**facts, "found": summary(network_of(links), np.array(groups.membership), links.community)}


DENSE = {"one start": cg.BayesianNMF(restarts=1, nulls=0, sharpness=12.0), "default": cg.BayesianNMF()}


def fifty_answers() -> cg.simulate.SimulatedCrowd:
    """Simulate the five groups of the paper's crowd, equally large, with 50 answers per volunteer."""
    groups = [replace(group, share=1.0, activity=1.0, concentration=20.0) for group in cg.simulate.galaxy_zoo.GROUPS]
    return cg.simulate.crowd(
        n_volunteers=1_705,
        n_items=2_000,
        n_responses=[50] * 1_705,
        classes=("not supernova", "supernova"),
        labels=(-1, 1, 3),
        groups=groups,
        gold=0.2,
        seed=0,
    )


CROWDS = {
    "five groups of one size, 50 answers each": fifty_answers,
    "look-alike of the paper's crowd, most with few answers": cg.simulate.galaxy_zoo_supernovae_auc_table,
}


def dense_network(crowd_name: str, name: str, seed: str) -> Facts:
    """Detect communities of behaviour in a crowd with five groups."""
    warm_up()
    crowd = CROWDS[crowd_name]()
    prior = {"confusion_prior": [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], "class_prior": [100, 10]}
    network = cg.networks.pi_similarity(crowd.graph, fit=cg.IBCC(**prior).fit(crowd.graph))
    groups, facts = watch(lambda: DENSE[name].detect(network, seed=int(seed)))
    return {**facts, "found": summary(network, groups.assignment, crowd.truth.group)}


def warm_up() -> None:
    """Compile the detector, or load it from the cache, for sparse and dense networks."""
    network = network_of(planted(Kind(2, 0.1), 60, 500))
    similar = cg.VolunteerNetwork(ids=network.ids, weights=1 - np.eye(len(network)), method="alike")
    for one in (network, similar):
        cg.BayesianNMF(**ONE_START, sharpness=1.0).detect(one, seed=0)


def watch(run: Callable[[], Any]) -> tuple[Any, Facts]:
    """Return the result, seconds, seconds of the processors, and the memory of this process before and at its peak."""
    gc.collect()
    # Reset the peak, so that building the network does not count.
    Path("/proc/self/clear_refs").write_text("5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start, cpu = time.perf_counter(), time.process_time()
        result = run()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return result, {"seconds": seconds, "cpu": cpu, "before": before, "peak": peak, "warnings": len(caught)}


def summary(network: cg.VolunteerNetwork, assignment: np.ndarray, truth: np.ndarray) -> str:
    """Return the number of communities, their modularity, and their ARI with those planted."""
    ari = f", {cg.communities.agreement(assignment, truth).ari:.2f}" if truth.any() else ""
    return f"{len(np.unique(assignment))}, {modularity(network, assignment):.3f}{ari}"


CONTENDERS = {"nmf": nmf, "leiden": leiden, "dense": dense_network}

if __name__ == "__main__":
    if sys.argv[1:2] == ["before"]:
        beside_leiden(sys.argv[2])
    elif len(sys.argv) > 1:
        print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:])))
    else:
        main()
