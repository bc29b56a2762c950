"""The figure of changing membership: how single volunteers participate after each number of observations."""

from functools import partial

import numpy as np
from entry import write_entry

import crowdgraph as cg

kinds = cg.simulate.galaxy_zoo.GROUPS
crowd = cg.simulate.crowd(
    n_volunteers=200,
    n_items=1_500,
    n_responses=[250] * 200,
    classes=("not supernova", "supernova"),
    labels=(-1, 1, 3),
    groups=[cg.simulate.Group(name=kind.name, confusion=kind.confusion) for kind in kinds],
    drift="step",
    drifting=0.2,
    drift_at=0.5,
    stays="long",
    seed=0,
)
counts = [len(crowd.graph.responses) * part // 5 for part in range(1, 6)]
no, yes = crowd.graph.classes
track = cg.dynamics.over_time(
    crowd.graph,
    counts=counts,
    network=partial(cg.networks.pi_similarity, min_responses=10),
    model=cg.DynIBCC(confusion_prior=(4, 1), votes={-1: no, 1: yes, 3: yes}, noise_scale=3.0),
    seed=0,
    progress=True,
)
changed = crowd.graph.volunteers.ids[crowd.truth.other_group >= 0]
movers = np.unique([track.ids[move.volunteer] for move in track.moves()])
n_right = np.isin(movers, changed).sum()
examples = [*movers[:2], *np.setdiff1d(crowd.graph.volunteers.ids, changed)[:2]]
write_entry(
    "figure_membership",
    "Figure: changing membership",
    paper="Membership changes after significant changes of a volunteer's confusion; communities persist although "
    "members move between them.",
    rows=[
        ("communities at each number of observations", "3, 4, 5", ", ".join(map(str, track.n_communities))),
        (
            "volunteers who changed, and were detected",
            "",
            f"{len(changed)}, {n_right} ({len(movers) - n_right} others)",
        ),
        ("participation that stayed, at each step", "persist", ", ".join(f"{s:.2f}" for s in track.stability[1:])),
    ],
    pictures={
        "Two volunteers who moved, and two who stayed": cg.plot.participation(track, examples)[0],
        "Who went where": cg.plot.flow(track),
    },
    remark="This is a simulated crowd of 200 volunteers of the five groups, with 250 responses each; a fifth of them "
    "change into another group half way through.",
)
