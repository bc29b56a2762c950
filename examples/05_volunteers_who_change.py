"""# Volunteers who change

People learn, tire and drift. DynIBCC follows them: a confusion matrix for every response, with its uncertainty.
"""

# %% Simulate sixty volunteers whose skill breaks down suddenly, each at another time; there is no gold.
from pathlib import Path

import numpy as np

import crowdgraph as cg

crowd = cg.simulate.crowd(n_volunteers=60, n_items=1_500, n_responses=[400] * 60, drift="step", gold=0, seed=0)
graph = crowd.graph

# %% How much do they change? DynIBCC chooses the noise scale that predicts answers best, 0 if nobody changes.
static, fit = cg.IBCC().fit(graph), cg.DynIBCC(noise_scale="auto").fit(graph, progress=True)
print(f"noise scale: {fit.diagnostics['noise_scale']:.2f}")

# %% To know when a volunteer was good helps to infer the classes of the items.
for one in (static, fit):
    right = np.mean(one.item_probs.argmax(axis=1) == crowd.truth.classes)
    print(f"{one.model:<8} is right about {right:.1%} of the items")

# %% Who changed when? Each volunteer's answers are tested, and at most a twentieth of the reports is false on average.
changes = fit.changes()
print(changes)
print(
    changes.to_frame()[["volunteer", "kind", "low", "time", "high", "before", "after"]].head(3).to_string(index=False)
)

# %% Plot the estimates beside the truth, with a line where the test sees the change.
volunteers = graph.volunteers.ids[:4].tolist()
ax = cg.plot.skill_over_time(fit.confusion, volunteers=volunteers, against="responses")
for code, line in enumerate(ax.get_lines()):
    truth = crowd.truth.confusion[graph.responses.volunteer == code][:, [0, 1], [0, 1]].mean(axis=1)
    ax.plot(np.arange(1, 401), truth, color=line.get_color(), linestyle=":")
    if change := changes.of(volunteers[code]):
        ax.axvline(change.n_before, color=line.get_color(), linewidth=0.8)
out = Path("demo")
out.mkdir(exist_ok=True)
ax.figure.savefig(out / "skill_over_time.png", dpi=150)
