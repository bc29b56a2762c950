"""The figure of common task communities: a triangle of the mean confusion of each."""

import numpy as np
from entry import listed, write_entry
from figure_tasks_over_time import WEIGHTS, distances, follow, pair

import crowdgraph as cg


def main():
    """Print what is found, and write it with the triangles for the page."""
    groups = follow()[-1]
    sizes = groups.sizes[groups.sizes > 0]
    rows = [
        ("volunteers with ten answers or more", "2,131", f"{len(groups.ids):,}"),
        ("communities", "32", f"{len(sizes)}"),
        ("modularity", "0.75", f"{groups.modularity:.3f}"),
        ("sizes", "", listed(sorted(sizes, reverse=True))),
        ("agreement of restarts (adjusted Rand index)", "", f"{groups.evidence.agreement:.2f}"),
    ]
    for weights, by_responses in WEIGHTS.items():
        distance = distances(groups, by_responses=by_responses)[groups.sizes > 0]
        trend = [np.corrcoef(sizes, distance[:, j])[0, 1] for j in (0, 1)]
        rows += [
            (f"mean distance from the middle, {weights}", "less, more", pair(distance.mean(axis=0))),
            (f"correlation of size and distance, {weights}", "small ones: farther", listed(f"{r:.2f}" for r in trend)),
        ]
    write_entry(
        "figure_task_communities",
        "Figure: common task communities",
        paper="Communities of volunteers who worked on the same objects; means differ more for supernovae, of which "
        "there are fewer, and smaller communities have more unusual means.",
        rows=rows,
        pictures={
            "Mean confusion of each community, by participation": cg.plot.community_ternary(groups, zoom=True)[0]
        },
        remark="The communities are not planted: items come from a queue, and whoever was there at the same time "
        "answered the same ones. There are fewer than the paper's 32, and restarts of the detector agree only in "
        "part, so that the number varies with the seed. The simulated crowd is divided by time alone; the real one "
        "may have been divided by preference, too. Behaviour was drawn independently of tasks, so means differ by "
        "chance. Pairs of numbers are for what is no supernova and for supernovae: these differ less where members "
        "count by participation alone, since most have seen so few supernovae that the prior dominates, and more "
        "where answers count, too.",
    )


if __name__ == "__main__":
    main()
