"""The figure of changing membership: how the volunteers of the traces participate after each number of observations."""

from functools import partial

import numpy as np
from entry import AUTHORS_PRIOR, busiest, listed, write_entry

import crowdgraph as cg

# At 13,500 the volunteer who changes and returns is away; the other numbers are spread over the crowd's duration.
COUNTS = [3_000, 6_000, 9_000, 12_000, 13_500, 16_000, 20_000, 26_558]
STORIES = {
    "learning": "learns",
    "ramp": "drifts",
    "visit": "changes and returns",
    "step": "changes and stays",
    "none": "is steady",
}


def main():
    """Print who moved, and write it with the bars for the page."""
    graph, truth = crowd = cg.simulate.galaxy_zoo_supernovae()
    track = cg.dynamics.over_time(
        graph,
        counts=COUNTS,
        network=partial(cg.networks.pi_similarity, min_responses=10),
        model=cg.DynIBCC(**AUTHORS_PRIOR, noise_scale="auto"),
        seed=0,
        progress=True,
    )
    volunteers = {busiest(crowd, drift): text for drift, text in STORIES.items()}
    rows = [
        (f"{volunteer}, who {text}: main community", "", main_communities(track, volunteer))
        for volunteer, text in volunteers.items()
    ]
    movers = np.unique([track.ids[move.volunteer] for move in track.moves()])
    n_changed = np.count_nonzero(truth.drift[graph.volunteers.codes(movers)] != "none")
    rows += [
        ("communities at each number of observations", "3, 4, 5", listed(track.n_communities)),
        ("volunteers who moved; how many of them change", "", f"{len(movers)}; {n_changed}"),
        ("participation that stayed, at each step", "persist", listed(f"{share:.2f}" for share in track.stability[1:])),
    ]
    write_entry(
        "figure_membership",
        "Figure: changing membership",
        paper="Membership of the same four volunteers changes after significant changes of their confusion; "
        "communities persist although members move between them.",
        rows=rows,
        pictures={
            "The volunteers of the traces, after each number of observations": cg.plot.participation(
                track, list(volunteers)
            )[0],
            "Who went where": cg.plot.flow(track),
        },
        remark="Communities are numbered as they appear, from 0. A dash stands for fewer than ten answers so far. "
        "Each snapshot is what could be known then, so a move is seen once enough answers show it; a volunteer who "
        "has left keeps the last behaviour.",
    )


def main_communities(track, volunteer):
    """Return the number of the volunteer's main community and the participation in it, at each snapshot."""
    return listed(f"{shares.argmax()} ({shares.max():.2f})" if shares.any() else "-" for shares in track.of(volunteer))


if __name__ == "__main__":
    main()
