"""# Communities over time

How do communities form, who joins them later, and who moves from one to another?
"""

# %% Simulate 200 volunteers of five kinds. Two kinds arrive late, and a tenth of all change on the way.
from pathlib import Path

import crowdgraph as cg

arrivals = {"optimists": 0.3, "reasonable": 0.6}
kinds = [
    cg.simulate.Group(name=kind.name, confusion=kind.confusion, arrives=arrivals.get(kind.name, 0.0))
    for kind in cg.simulate.galaxy_zoo.GROUPS
]
crowd = cg.simulate.crowd(
    n_volunteers=200,
    n_items=1_000,
    n_responses=[150] * 200,
    classes=("not supernova", "supernova"),
    labels=(-1, 1, 3),
    groups=kinds,
    drift="step",
    drifting=0.1,
    drift_at=0.75,
    stays="long",
    seed=0,
)
graph = crowd.graph
no, yes = graph.classes

# %% Follow them: each snapshot is what could be known then. Changes are sudden, so let the model forget fast.
track = cg.dynamics.over_time(
    graph,
    counts=[10_000, 20_000, 30_000],
    model=cg.DynIBCC(votes={-1: no, 1: yes, 3: yes}, noise_scale=3.0),
    seed=0,
    progress=True,
)
print(track)
print(track.events_to_frame(kind="text"))

# %% Who moved?
moved = {track.ids[move.volunteer] for move in track.moves()}
changed = set(graph.volunteers.ids[crowd.truth.other_group >= 0])
print(f"{len(moved)} moved, {len(changed & moved)} of the {len(changed)} who changed")
print(track.moves_to_frame(kind="text"))

# %% Annotate the graph with the track, and plot it.
graph = graph.annotate(track)
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.flow(track).figure.savefig(out / "flow.png", dpi=150)
