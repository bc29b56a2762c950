"""The figure of common task communities: a triangle of the mean confusion of each."""

import numpy as np
from entry import listed, write_entry
from figure_tasks_over_time import distance_from_middle, follow, means_over_time

import crowdgraph as cg


def main():
    """Print what is found, and write it with the triangles for the page."""
    track = follow()
    groups = track[-1]
    has_members = groups.sizes > 0
    sizes = groups.sizes[has_members]
    distance = distance_from_middle(means_over_time(track)[-1, has_members], sizes)
    trend = [np.corrcoef(sizes, distance[:, j])[0, 1] for j in (0, 1)]
    write_entry(
        "figure_task_communities",
        "Figure: common task communities",
        paper="Communities of volunteers who worked on the same objects; means differ more for supernovae, of which "
        "there are fewer, and smaller communities have more unusual means.",
        rows=[
            ("volunteers with ten answers or more", "2,131", f"{len(groups.ids):,}"),
            ("communities", "32", f"{len(sizes)}"),
            ("modularity", "0.75", f"{groups.modularity:.3f}"),
            ("sizes", "", listed(sorted(sizes, reverse=True))),
            ("agreement of restarts (adjusted Rand index)", "", f"{groups.evidence.agreement:.2f}"),
            ("mean distance from the middle, not supernova", "less", f"{distance[:, 0].mean():.3f}"),
            ("mean distance from the middle, supernova", "more", f"{distance[:, 1].mean():.3f}"),
            ("correlation of size and distance, both classes", "smaller: farther", listed(f"{r:.2f}" for r in trend)),
        ],
        pictures={"Mean confusion of each community": cg.plot.community_ternary(groups, zoom=True)[0]},
        remark="The communities are not planted: items come from a queue, and whoever was there at the same time "
        "answered the same ones. There are fewer than the paper's 32, and restarts of the detector agree only in "
        "part, so that the number varies with the seed. The simulated crowd is divided by time alone; the real one "
        "may have been divided by preference, too. Behaviour was drawn independently of tasks, so here means differ "
        "by chance.",
    )


if __name__ == "__main__":
    main()
