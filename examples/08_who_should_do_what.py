"""# Who should do what next

Ask the right volunteers about the right items: how many responses does that save?
"""

# %% The kinds of volunteers of Galaxy Zoo Supernovae, who can be asked about any of 300 candidates.
from pathlib import Path

import crowdgraph as cg

crowd = cg.simulate.crowd(
    n_volunteers=100,
    n_items=300,
    n_responses=[60] * 100,
    classes=("not supernova", "supernova"),
    labels=(-1, 1, 3),
    groups=cg.simulate.galaxy_zoo.GROUPS,
    gold=0.2,
    seed=0,
)
# The prior of the paper's authors.
model = cg.IBCC(confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[10, 10])
# A fifth of the items is known from experts.
known = crowd.graph.items.ids[crowd.graph.gold.known]

# %% One round: who would tell most about what? The audit log says why.
graph = crowd.graph.first(1_500)
graph = graph.annotate(model.fit(graph))
chosen = cg.allocation.GreedyInformation().assign(graph, budget=10)
print(chosen)
print(chosen.to_frame(kind="text"))

# %% Whole campaigns on the simulated crowd, as four policies would lead them. More seeds would make bands.
policies = [
    cg.allocation.RandomPolicy(),
    cg.allocation.OldestFirst(),
    cg.allocation.MostUncertain(),
    cg.allocation.GreedyInformation(),
]
campaigns = [
    cg.allocation.replay.simulate(crowd, policy, budget=3_000, update_every=300, model=model, known=known, seed=0)
    for policy in policies
]
for one in campaigns:
    print(one, f"95 % right after {one.spent_until(0.95):,.0f} responses; load Gini {one.gini:.2f}")

# %% A picture.
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.campaign(campaigns).figure.savefig(out / "campaigns.png", dpi=150)
