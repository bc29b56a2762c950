"""Random confusion, communities, networks and tracks to draw."""

import numpy as np
from builders import communities_of, mirrored, network_of

import crowdgraph as cg

CLASSES, LABELS = ("not supernova", "supernova"), (-1, 1, 3)


def random_snapshot(n_volunteers, classes=CLASSES, labels=LABELS, seed=0):
    """Draw confusion of volunteers v0, v1, ..."""
    rng = np.random.default_rng(seed)
    return cg.ConfusionSnapshot(
        ids=[f"v{k}" for k in range(n_volunteers)],
        concentration=rng.gamma(1.0, size=(n_volunteers, len(classes), len(labels))) + 0.1,
        classes=tuple(classes),
        labels=tuple(labels),
    )


def random_communities(n_volunteers, n_communities, *, seed=0, **options):
    """Draw soft communities of volunteers, of whom the last belongs to none."""
    shares = np.random.default_rng(seed).dirichlet(np.full(n_communities, 0.4), size=n_volunteers)
    shares[-1] = 0
    return communities_of(shares, **options)


def random_weights(n_volunteers, *, density=0.3, seed=0):
    """Draw symmetric weights of which a share is not zero."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 1, (n_volunteers, n_volunteers))
    return mirrored(weights * (rng.uniform(size=weights.shape) < density))


def planted_network(n_groups, size):
    """Build a network with strong links inside groups, weak ones between them, and communities that are the groups."""
    group = np.repeat(np.arange(n_groups), size)
    weights = np.where(group[:, None] == group, 1.0, 0.01) * (random_weights(len(group), density=1.0) > 0)
    return network_of(weights, sparse=True), communities_of(group)


def random_track(assignment, *, width=None, kind="datetime", classes=CLASSES, labels=LABELS, confused=True, seed=0):
    """A track in which volunteers are mainly in these communities, of shape (T, V); -1 for nobody's."""
    assignment = np.asarray(assignment)
    rng = np.random.default_rng(seed)
    n_snapshots, n_volunteers = assignment.shape
    width = width or assignment.max(initial=0) + 1
    ids = np.array([f"v{k}" for k in range(n_volunteers)], dtype=object)
    snapshots = []
    for row in assignment:
        here = np.flatnonzero(row >= 0)
        lived = np.isin(np.arange(width), row)
        shares = rng.uniform(size=(len(here), width)) * lived
        shares *= 0.4 / shares.sum(axis=1, keepdims=True)
        shares[np.arange(len(here)), row[here]] += 0.6
        confusion = cg.ConfusionSnapshot(
            ids=ids[here],
            concentration=rng.gamma(1.0, size=(len(here), len(classes), len(labels))) + 0.1,
            classes=tuple(classes),
            labels=tuple(labels),
        )
        snapshots.append(
            cg.Communities(
                ids=ids[here],
                participation=shares,
                modularity=rng.uniform(0, 0.5),
                method="by hand",
                confusion=confusion if confused and len(here) else None,
            )
        )
    counts = 1000 * np.arange(1, n_snapshots + 1)
    days = np.datetime64("2010-04-09", "s") + 30 * np.arange(n_snapshots) * np.timedelta64(86_400, "s")
    return cg.CommunityTrack(
        ids=ids,
        times={"datetime": days, "number": np.arange(n_snapshots), "order": counts}[kind],
        counts=counts,
        snapshots=snapshots,
        clock=cg.Clock(kind),
        method="pi communities",
    )


def moving_track(n_snapshots, n_volunteers, n_communities, *, seed=0, empty=(), **options):
    """A track in which some stay, some move, some come late and some leave."""
    rng = np.random.default_rng(seed)
    assignment = np.tile(rng.integers(0, n_communities, n_volunteers), (n_snapshots, 1))
    change = rng.uniform(size=assignment.shape)
    assignment = np.where(change < 0.3, rng.integers(-1, n_communities, assignment.shape), assignment)
    assignment[:, 0] = 0
    assignment[list(empty)] = -1
    return random_track(assignment, width=n_communities, seed=seed, **options)


# An empty snapshot in the middle, one community, one snapshot, 40 communities.
TRACKS = {
    "usual": moving_track(4, 60, 5),
    "empty": moving_track(4, 40, 3, empty=[1]),
    "empty first": moving_track(3, 40, 3, empty=[0], kind="number"),
    "one community": moving_track(3, 10, 1, kind="order"),
    "one snapshot": moving_track(1, 30, 3),
    "one volunteer": random_track([[0], [0]]),
    "forty": moving_track(3, 300, 40),
    "without the last": moving_track(3, 50, 4, seed=3),
}
