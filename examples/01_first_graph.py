"""# A first graph

Build a crowd graph from a table, look at it, go back in time, and take it elsewhere.
"""

# %% A table with one row per response becomes a graph.
from pathlib import Path

import crowdgraph as cg

responses = {
    "volunteer": ["anna", "bert", "anna", "cleo", "bert", "cleo"],
    "item": ["whale-1", "whale-1", "whale-2", "whale-2", "whale-3", "whale-1"],
    "label": ["whale", "whale", "boat", "whale", "boat", "boat"],
    "time": ["2026-03-01", "2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"],
}
graph = cg.CrowdGraph.from_responses(responses, gold={"whale-1": "whale"})
print(graph)

# %% Look up volunteers, items and responses by name.
anna = graph.volunteers["anna"]
print(anna, [response.item for response in anna.responses])
print(graph.items["whale-1"].gold)

# %% What could be known before a moment? The view has the same volunteers and items, and copies no memory.
print(graph.before("2026-03-03"))

# %% Convert it to pandas, polars, Arrow, networkx, igraph or torch, and back without loss.
network = graph.to_networkx()
print(network)
print(cg.CrowdGraph.from_networkx(network).equals(graph))

# %% Simulate a crowd whose truth is known, to try things out; save it, load it and plot it.
crowd = cg.simulate.galaxy_zoo_supernovae()
out = Path("demo")
out.mkdir(exist_ok=True)
crowd.graph.save(out / "supernovae.crowd")
supernovae = cg.load(out / "supernovae.crowd")
axes = cg.plot.activity(supernovae)
axes.figure.savefig(out / "first_graph.png", dpi=150)
