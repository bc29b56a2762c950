"""The same analysis for a real crowd: forecasters who call events likely, unsure or unlikely, over fourteen years.

``python examples/paper/forecasters.py RESPONSES GOLD FOLDER`` with two CSV files (volunteer, item, label, time; item,
label), such as you can make from the public forecasts of PredictionBook: unlikely up to 1/3, likely from 2/3.
"""

import sys
from functools import partial
from pathlib import Path

import crowdgraph as cg

if len(sys.argv) != 4:
    sys.exit(__doc__)
responses, gold, out = (Path(argument) for argument in sys.argv[1:])
out.mkdir(parents=True, exist_ok=True)
graph = cg.read_csv(responses, gold=gold, classes=["no", "yes"], labels=["unlikely", "unsure", "likely"])
print(graph)
track = cg.dynamics.over_time(
    graph,
    times=[f"{year}-01-01" for year in range(2010, 2023, 2)],
    network=partial(cg.networks.pi_similarity, min_responses=20),
    model=cg.DynIBCC(confusion_prior=(4, 1), votes={"unlikely": "no", "unsure": None, "likely": "yes"}),
    seed=0,
    progress=True,
)
print(track)
for index, snapshot in enumerate(track):
    evidence = snapshot.evidence
    print(
        f"{track.counts[index]:>7,} responses, {len(snapshot.ids):>4} forecasters, sizes {snapshot.sizes}: {evidence}"
    )
print(track[-1].describe(kind="text"))
print(track.events_to_frame(kind="text"))
print(f"stability {track.stability.round(2)}, confidence {track.confidence.round(2).tolist()}")
print(track.moves_to_frame(kind="text"))
pictures = {
    "forecasters-means": cg.plot.community_means_over_time(track)[0],
    "forecasters-flow": cg.plot.flow(track),
    "forecasters-ternary": cg.plot.community_ternary_over_time(track, paths=True)[0],
}
for name, ax in pictures.items():
    ax.figure.savefig(out / f"{name}.png", dpi=110, bbox_inches="tight")
