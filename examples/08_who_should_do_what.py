"""# Who should do what next

Ask the right volunteers about the right items: how many responses does that save?
"""

# %% Simulate a crowd as hard as Galaxy Zoo Supernovae: 1,705 volunteers, 963 candidates, gold for a fifth of them.
from pathlib import Path

import crowdgraph as cg

crowd = cg.simulate.galaxy_zoo_supernovae_auc_table()
expert_items = crowd.graph.items.ids[::5]
# The prior of the paper's authors. Decisions are by probabilities that allow for dependence between answers.
ibcc = cg.IBCC(confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[10, 10])
model = cg.Calibrated(model=ibcc)

# %% One round: whose answer about which item is worth most? The audit log says why.
graph = crowd.graph.with_gold({item: crowd.graph.items[item].gold for item in expert_items}).first(5_000)
graph = graph.annotate(model.fit(graph))
objective = cg.allocation.Objective(learning=0.1, cost=0.01)
assignment = cg.allocation.GreedyValue().assign(graph, budget=10, objective=objective)
print(assignment)
print(assignment.to_frame(kind="text"))

# %% Simulate a campaign of each of four policies. More seeds would give bands.
policies = [
    cg.allocation.RandomPolicy(),
    cg.allocation.OldestFirst(),
    cg.allocation.MostUncertain(),
    cg.allocation.GreedyValue(),
]
campaigns = [
    cg.allocation.simulate_campaign(
        crowd, policy, budget=8_000, update_every=1_500, model=model, known_items=expert_items, seed=0
    )
    for policy in policies
]
for campaign in campaigns:
    print(campaign, f"95 % right after {campaign.spent_until(0.95):,.0f} responses; load Gini {campaign.gini:.2f}")

# %% Plot them.
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.campaign(campaigns).figure.savefig(out / "campaigns.png", dpi=150)
