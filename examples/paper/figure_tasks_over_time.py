"""The figures of common task communities after 50,000, 200,000 and 493,048 observations."""

from functools import cache

import numpy as np
from entry import AUTHORS_PRIOR, listed, write_entry

import crowdgraph as cg

# How members count in the mean of a community; the paper's is the first.
WEIGHTS = {"by participation": False, "by answers, too": True}
COUNTS, PAPER = [50_000, 200_000, 493_048], ["0.67", "0.69", "0.75"]


@cache
def follow():
    """Follow the task communities of the full crowd; the figure of the last of them uses the same."""
    return cg.dynamics.over_time(
        cg.simulate.galaxy_zoo_supernovae_full().graph,
        counts=COUNTS,
        network=cg.networks.task_cooccurrence,
        model=cg.DynIBCC(**AUTHORS_PRIOR),
        restarts=1,
        compare_starts=False,
        seed=0,
        progress=True,
    )


def distances(communities, *, by_responses):
    """Return how far each community's mean is from the middle, of shape (K, J): half the sum of differences.

    Members count by participation, as in the paper, or by their number of answers as well; NaN for empty communities.
    """
    means, sizes = communities.mean_confusion(by_responses=by_responses), communities.sizes
    middle = np.average(means[sizes > 0], axis=0, weights=sizes[sizes > 0])
    return np.abs(means - middle).sum(axis=2) / 2


def main():
    """Print what is found, and write it with the triangles for the page."""
    track = follow()
    rows = [
        (f"modularity after {count:,}", published, f"{modularity:.3f}")
        for count, published, modularity in zip(COUNTS, PAPER, track.modularity, strict=True)
    ]
    for index, count in enumerate(COUNTS):
        sizes = sorted((int(size) for size in track.sizes[index] if size), reverse=True)
        published = "32, 2,131" if index == len(COUNTS) - 1 else ""
        rows.append((f"communities, volunteers after {count:,}", published, f"{len(sizes)}, {sum(sizes):,}"))
        rows.append(("their sizes", "", listed(sizes)))
    write_entry(
        "figure_tasks_over_time",
        "Figures: common task communities as observations come in",
        paper="A persistent core of large communities whose means remain similar; scattered small communities appear "
        "after 200,000 and at 493,048 observations. Modularity rises.",
        rows=rows + describe_core(track),
        pictures={
            "Means of the communities after each number of observations": cg.plot.community_ternary_over_time(
                track, zoom=True
            )[0],
            "Modularity and number of communities": cg.plot.modularity(track),
        },
        remark="No community is planted here: they arise from who was there when. As in the paper there is a core "
        "that persists, later communities are smaller, and modularity rises, from a lower start. Pairs of numbers are "
        "for what is no supernova and for supernovae. If members count by participation alone, as in the paper, later "
        "communities lie farther out only for supernovae: those with few answers, who are the majority, look like the "
        "prior. The pictures weight members by their answers, too, and then later communities lie farther out for "
        "both. Behaviour does not depend on the tasks in this crowd, so they do so by chance, as means of fewer "
        "people: the paper's scattered communities need no bias by tasks to explain them.",
    )


def describe_core(track):
    """Return rows about the communities of the first snapshot, and those that came later."""
    sizes = track.sizes
    first, last = sizes[0] > 0, sizes[-1] > 0
    core, later = first & last, ~first & last
    rows = [
        ("communities of the first snapshot that persist", "a persistent core", f"{core.sum()} of {first.sum()}"),
        ("communities that came later", "more", f"{later.sum()}"),
        ("mean size of the core; of those that came later", "large; small", sizes_of(sizes[-1], core, later)),
    ]
    for weights, by_responses in WEIGHTS.items():
        earliest, latest = (track[index].mean_confusion(by_responses=by_responses) for index in (0, -1))
        moved = np.abs(latest - earliest)[core].sum(axis=2).mean(axis=0) / 2
        distance = distances(track[-1], by_responses=by_responses)
        rows += [
            (f"how far means of the core moved, {weights}", "remain similar", pair(moved)),
            (f"distance of the core from the middle, {weights}", "", pair(distance[core].mean(axis=0))),
            (f"distance of those that came later, {weights}", "scattered", pair(distance[later].mean(axis=0))),
        ]
    return rows


def pair(values):
    """Return the values of both classes as text."""
    return listed(f"{value:.3f}" for value in values)


def sizes_of(sizes, *groups):
    """Return the mean size of each group of communities as text."""
    return "; ".join(f"{sizes[group].mean():.0f}" for group in groups)


if __name__ == "__main__":
    main()
