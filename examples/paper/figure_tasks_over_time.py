"""The figures of common task communities after 50,000, 200,000 and 493,048 observations."""

from functools import cache

import numpy as np
from entry import AUTHORS_PRIOR, listed, write_entry

import crowdgraph as cg

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


def means_over_time(track):
    """Return the mean confusion of each community at each snapshot, of shape (T, K, J, L); NaN where it has none."""
    return np.stack([track.mean_confusion(k) for k in range(track.n_communities_ever)], axis=1)


def distance_from_middle(means, sizes):
    """Return how far each community is from the mean of all members, for each class: half the sum of differences."""
    middle = np.average(means, axis=0, weights=sizes)
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
        "that persists, later communities are smaller and lie farther out, and modularity rises, from a lower start. "
        "Behaviour does not depend on the tasks in this crowd, so what lies farther out does so by chance, as the "
        "mean of fewer volunteers: that much of the paper's picture needs no bias by tasks to explain it.",
    )


def describe_core(track):
    """Return rows about the communities of the first snapshot, and those that came later."""
    means, sizes = means_over_time(track), track.sizes
    first, last = sizes[0] > 0, sizes[-1] > 0
    core, later = first & last, ~first & last
    moved = np.abs(means[-1, core] - means[0, core]).sum(axis=2).mean(axis=0) / 2
    distance = np.full((len(last), means.shape[2]), np.nan)
    distance[last] = distance_from_middle(means[-1, last], sizes[-1, last])
    rows = [
        ("communities of the first snapshot that persist", "a persistent core", f"{core.sum()} of {first.sum()}"),
        ("how far their means moved (not supernova, supernova)", "remain similar", pair(moved)),
        ("communities that came later", "more", f"{later.sum()}"),
        ("mean size of the core; of those that came later", "large; small", sizes_of(sizes[-1], core, later)),
    ]
    for name, which in {"the core": core, "those that came later": later}.items():
        paper = "similar" if which is core else "scattered"
        rows.append((f"distance of {name} from the middle", paper, pair(distance[which].mean(axis=0))))
    return rows


def pair(values):
    """Return the values of both classes as text."""
    return listed(f"{value:.3f}" for value in values)


def sizes_of(sizes, *groups):
    """Return the mean size of each group of communities as text."""
    return "; ".join(f"{sizes[group].mean():.0f}" for group in groups)


if __name__ == "__main__":
    main()
