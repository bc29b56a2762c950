"""The demonstration behind `make demo`: the embedded Galaxy Zoo Supernovae crowd, its story and its pictures."""

# %% The crowd, and what is true of it.
from pathlib import Path

import numpy as np

import crowdgraph as cg

graph, truth = cg.simulate.galaxy_zoo_supernovae()
out = Path("demo")
out.mkdir(exist_ok=True)

# %% Its story.
print("A simulated look-alike of the Galaxy Zoo Supernovae crowd:\n")
print(graph)
share = np.bincount(truth.group[graph.responses.volunteer]) / len(graph.responses)
print("\nBehaviour groups (the simulator knows; models will have to find out):")
for code, name in enumerate(truth.group_names):
    print(f"  {name:<14} {np.count_nonzero(truth.group == code):>4} volunteers, {share[code]:.0%} of all responses")

# %% What could be known over time.
print("\nWhat could be known:")
for view in graph.snapshots(counts=[3_000, 12_000, len(graph.responses)]):
    n_seen = [np.count_nonzero(nodes.n_responses) for nodes in (view.volunteers, view.items)]
    print(f"  after {len(view.responses):>6,} responses: {n_seen[0]:,} volunteers, {n_seen[1]:,} items")

# %% Two pictures and the graph itself.
cg.plot.activity(graph).figure.savefig(out / "activity.png", dpi=150)
cg.plot.responses_over_time(graph).figure.savefig(out / "responses_over_time.png", dpi=150)
graph.save(out / "supernovae.crowd")
print("\nWritten:")
for path in ("activity.png", "responses_over_time.png", "supernovae.crowd"):
    print(f"  {(out / path).resolve()}")
