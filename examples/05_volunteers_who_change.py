"""# Volunteers who change

People learn, tire and drift. DynIBCC follows them: a confusion matrix for every response, with its uncertainty.
"""

# %% Sixty volunteers whose skill breaks down suddenly, each at another time; nothing is known of the items.
from pathlib import Path

import numpy as np

import crowdgraph as cg

crowd = cg.simulate.crowd(n_volunteers=60, n_items=1_500, n_responses=[400] * 60, drift="step", gold=0, seed=0)
graph = crowd.graph

# %% How much do they change? The noise scale that foretells answers best says so; it is 0 for a crowd that stays.
static, fit = cg.IBCC().fit(graph), cg.DynIBCC(noise_scale="auto").fit(graph, progress=True)
print(f"noise scale: {fit.diagnostics['noise_scale']:.2f}")

# %% Knowing when a volunteer was good helps to find the classes of the items.
for found in (static, fit):
    right = np.mean(found.item_probs.argmax(axis=1) == crowd.truth.classes)
    print(f"{found.model:<8} is right about {right:.1%} of the items")

# %% Who changed when? Where a row moved beyond what its uncertainty explains.
changes = fit.confusion.changes_to_frame()
print(f"{changes['volunteer'].nunique()} of {len(graph.volunteers)} volunteers changed beyond doubt; the most of them:")
print(changes.drop(columns=["start", "stop"]).head(3).to_string(index=False))

# %% Beside the truth.
chosen = graph.volunteers.ids[:4].tolist()
ax = cg.plot.skill_over_time(fit.confusion, volunteers=chosen, against="responses")
for code, line in enumerate(ax.get_lines()):
    truth = crowd.truth.confusion[graph.responses.volunteer == code][:, [0, 1], [0, 1]].mean(axis=1)
    ax.plot(np.arange(1, 401), truth, color=line.get_color(), linestyle=":")
out = Path("demo")
out.mkdir(exist_ok=True)
ax.figure.savefig(out / "skill_over_time.png", dpi=150)
