"""Time one round of each policy as volunteers and items grow, beside random allocation."""

from __future__ import annotations

from time import perf_counter

import crowdgraph as cg
from crowdgraph.allocation import CommunitiesFirst, GreedyValue, MostUncertain, OptimalMatching, Policy, RandomPolicy

SIZES = [(250, 1_250), (500, 2_500), (1_000, 5_000), (2_000, 10_000)]
# Exact, and slow beyond this many volunteers.
MAX_MATCHED_VOLUNTEERS = 500


def annotated(n_volunteers: int, n_items: int) -> cg.CrowdGraph:
    """Return a crowd with a fit and planted communities."""
    graph, truth = cg.simulate.crowd(
        n_volunteers=n_volunteers,
        n_items=n_items,
        n_responses=30 * n_volunteers,
        classes=("not supernova", "supernova"),
        labels=(-1, 1, 3),
        groups=cg.simulate.galaxy_zoo.GROUPS,
        gold=0.1,
        seed=0,
    )
    model = cg.IBCC(confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[10, 10])
    graph = graph.annotate(model.fit(graph))
    planted = [[float(code == group) for code in range(len(truth.group_names))] for group in truth.group]
    return graph.annotate(
        cg.Communities(ids=graph.volunteers.ids, participation=planted, modularity=0.0, method="planted")
    )


def seconds(policy: Policy, graph: cg.CrowdGraph) -> float:
    """Return how long one question for every volunteer takes, the best of three."""
    times = []
    for _ in range(3):
        start = perf_counter()
        policy.assign(graph, budget=len(graph.volunteers), seed=0)
        times.append(perf_counter() - start)
    return min(times)


def main() -> None:
    policies: dict[str, Policy] = {
        "random": RandomPolicy(),
        "most uncertain": MostUncertain(),
        "greedy value (default)": GreedyValue(),
        "greedy value, any number an item": GreedyValue(per_item=None),
        "communities first": CommunitiesFirst(),
        "optimal matching": OptimalMatching(),
    }
    print("One question for every volunteer, seconds (times those of random allocation).\n")
    print("| policy | " + " | ".join(f"{v:,} x {n:,}" for v, n in SIZES) + " |\n|---" + "|--:" * len(SIZES) + "|")
    graphs = [annotated(*size) for size in SIZES]
    base = [seconds(policies["random"], graph) for graph in graphs]
    for name, policy in policies.items():
        cells = []
        for graph, baseline in zip(graphs, base, strict=True):
            if isinstance(policy, OptimalMatching) and len(graph.volunteers) > MAX_MATCHED_VOLUNTEERS:
                cells.append("not tried")
                continue
            time = seconds(policy, graph)
            cells.append(f"{time:.2f} ({time / baseline:.1f})")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
