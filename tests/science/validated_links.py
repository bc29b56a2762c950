"""Tables of validated links: crowds without task structure, planted task communities, and the time for the look-alike.

Run ``python -m science.validated_links`` in the folder ``tests``, or ``make check-science``.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.networks import task_cooccurrence

SEEDS = range(20)
LEVELS = (0.01, 0.05)
METHODS = ("configuration", "hypergeometric")
SIZES = {"n_volunteers": 300, "n_items": 2_000, "n_responses": 20_000}


def graph_of(volunteer, item):
    answers = {"volunteer": volunteer, "item": item, "label": np.zeros(len(item), int)}
    return cg.CrowdGraph.from_responses(answers, labels=[0, 1])


def even_items(seed):
    """Volunteers with heavy tails draw from all items, each as likely."""
    return cg.simulate.crowd(**SIZES, seed=seed).graph


def popular_items(seed):
    """Volunteers with heavy tails draw from all items, popular ones more often (Zipf's law)."""
    rng = np.random.default_rng(seed)
    popularity = (1 + rng.permutation(2_000)) ** -0.8
    counts = np.minimum(10 + 20 * rng.pareto(1.2, 300), 1_000).astype(int)
    draws = [rng.choice(2_000, count, replace=False, p=popularity / popularity.sum()) for count in counts]
    return graph_of(np.repeat(np.arange(300), counts), np.concatenate(draws))


def queue(seed):
    """Every item gets ten answers by volunteers drawn by their activity, then retires; nobody is ever away."""
    rng = np.random.default_rng(seed)
    activity = np.minimum(rng.pareto(1.2, 300) + 0.2, 20)
    draws = [rng.choice(300, 10, replace=False, p=activity / activity.sum()) for _ in range(2_000)]
    return graph_of(np.concatenate(draws), np.repeat(np.arange(2_000), 10))


CHANCE = {"items as likely": even_items, "popular items": popular_items, "queue, ten answers each": queue}


class Validated(NamedTuple):
    """The links of a crowd, and the share of them that a method validates."""

    n_links: int
    shares: dict


def chance_table(name):
    """For each seed, the share of links that are validated by method and level, in a crowd without task structure."""
    results = []
    for seed in SEEDS:
        network = task_cooccurrence(CHANCE[name](seed))
        shares = {
            (method, level): network.backbone(level=level, method=method).n_edges / network.n_edges
            for method in METHODS
            for level in LEVELS
        }
        results.append(Validated(network.n_edges, shares))
    return results


def print_chance(name, results):
    for method in METHODS:
        cells = []
        for level in LEVELS:
            shares = [one.shares[method, level] for one in results]
            cells.append(f"{np.mean(shares):.3%} ({max(shares):.3%})")
        print(f"| {name} | {np.mean([one.n_links for one in results]):,.0f} | {method} | {' | '.join(cells)} |")


def planted_row(seed, *, n_communities, mixing, level=0.01):
    """The share of validated links inside planted communities, that of all links, and of inner links validated."""
    graph, truth = cg.simulate.crowd(**SIZES, n_communities=n_communities, mixing=mixing, seed=seed)
    network = task_cooccurrence(graph)
    community = truth.community[graph.volunteers.codes(network.ids)]
    left, right, _ = network.pairs()
    backbone = network.backbone(level=level)
    kept = np.asarray(csr_array(backbone.weights).toarray()[left, right] > 0)
    inside = community[left] == community[right]
    return {
        "links": len(left),
        "inside": inside.mean(),
        "validated": kept.sum(),
        "validated inside": inside[kept].mean() if kept.any() else np.nan,
        "inner links validated": kept[inside].mean(),
    }


def look_alike():
    """The seconds to build the network of the full look-alike, and to validate it, after compilation."""
    graph = cg.simulate.galaxy_zoo_supernovae_full().graph
    task_cooccurrence(even_items(0), validate=0.01).backbone(method="hypergeometric")
    network = task_cooccurrence(graph)
    rows = {}
    for method in METHODS:
        start = time.perf_counter()
        backbone = network.backbone(method=method)
        rows[method] = time.perf_counter() - start, backbone
    return network, rows


def print_planted(n_communities, mixing, rows):
    mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
    least = min(row["validated inside"] for row in rows)
    print(
        f"| {n_communities} | {mixing} | {mean['links']:,.0f} | {mean['inside']:.0%} | {mean['validated']:,.0f} | "
        f"{mean['validated inside']:.2%} ({least:.2%}) | {mean['inner links validated']:.0%} |"
    )


PLANTED = ((4, 0.1), (4, 0.3), (10, 0.1), (10, 0.3))


def main():
    print("\nShare of links validated without task structure: mean (largest) of 20 crowds\n")
    print("| crowd | links | method | at 1 % | at 5 % |\n|---|---|---|---|---|")
    for name in CHANCE:
        print_chance(name, chance_table(name))
    print("\nPlanted task communities, validated at 1 %: mean (smallest) of 20 crowds\n")
    print("| communities | mixing | links | inside | validated | of these inside | of inner links validated |")
    print("|---|---|---|---|---|---|---|")
    for n_communities, mixing in PLANTED:
        rows = [planted_row(seed, n_communities=n_communities, mixing=mixing) for seed in SEEDS]
        print_planted(n_communities, mixing, rows)
    network, rows = look_alike()
    print(f"\nFull look-alike: {network}")
    for method, (seconds, backbone) in rows.items():
        print(f"{method}: {seconds:.2f} s, {backbone}")


if __name__ == "__main__":
    main()
