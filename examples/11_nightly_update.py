"""# New responses every night

Update a fit as responses arrive: the answers of a fit from scratch, for less work.
"""

# %% Simulate a crowd; its last tenth arrives in ten nights.
from pathlib import Path

import matplotlib.pyplot as plt

import crowdgraph as cg

table = cg.simulate.crowd(n_volunteers=200, n_items=2_000, n_responses=20_000, seed=0).graph.to_pandas()
model = cg.IBCC()
graph = cg.CrowdGraph.from_responses(table[:18_000])
fit = model.fit(graph)

# %% Each night: extend the graph, update the fit, and compare with a fit from scratch.
nights, changed = {"update": [], "fit from scratch": []}, []
for start in range(18_000, 20_000, 200):
    graph = graph.extend(table[start : start + 200])
    updated = model.update(fit, graph)
    before, after = fit.predict(), updated.predict()
    changed.append(sum(before[item] != after[item] for item in before))
    nights["update"].append(updated.diagnostics["visited"] / graph.n_responses)
    nights["fit from scratch"].append(model.fit(graph).diagnostics["visited"] / graph.n_responses)
    fit = updated
print(fit)
print("Items with another answer, night by night:", changed)

# %% A stream that is never stored comes close.
stream = cg.StreamingIBCC(classes=graph.classes)
for start in range(0, 20_000, 1_000):
    stream.update(table[start : start + 1_000])
print(stream, "class proportions", stream.class_probs.round(2), "of IBCC", fit.class_probs.round(2))

# %% Plot how often the responses were visited.
axes = plt.figure(figsize=(7, 4), layout="constrained").gca()
for name, visits in nights.items():
    axes.plot(range(1, 11), visits, marker="o", label=name)
axes.set(xlabel="night", ylabel="visits of each response", ylim=(0, None))
axes.legend()
Path("demo").mkdir(exist_ok=True)
axes.figure.savefig(Path("demo") / "nightly_update.png", dpi=150)
