"""# Communities of volunteers

Who behaves alike, who works on the same items, and does one explain the other?
"""

# %% Simulate 200 volunteers of five kinds, who work on four parts of the project and give 60 answers each.
from dataclasses import replace
from pathlib import Path

import crowdgraph as cg

kinds = [replace(kind, share=1.0, activity=1.0) for kind in cg.simulate.galaxy_zoo.GROUPS]
crowd = cg.simulate.crowd(
    n_volunteers=200,
    n_items=800,
    n_responses=[60] * 200,
    classes=("not supernova", "supernova"),
    labels=(-1, 1, 3),
    groups=kinds,
    n_communities=4,
    seed=0,
)
no, yes = crowd.graph.classes
graph = crowd.graph.annotate(cg.IBCC(votes={-1: no, 1: yes, 3: yes}).fit(crowd.graph))

# %% Who behaves alike? Communities overlap, their number is inferred, and evidence says whether there are any.
alike = cg.networks.pi_similarity(graph)
alike_groups = cg.BayesianNMF().detect(alike, seed=0, progress=True)
print(alike_groups.evidence)
print(alike_groups.describe(kind="text"))
print(cg.communities.agreement(alike_groups.assignment, crowd.truth.group))

# %% Who works on the same items?
together = cg.networks.task_cooccurrence(graph)
task_groups = cg.BayesianNMF().detect(together, seed=0)
print(task_groups, task_groups.evidence)

# %% Do shared items explain shared behaviour? Here they do not: kinds and parts were drawn independently.
print(cg.communities.compare_networks(alike_groups, task_groups, seed=0).verdict)

# %% How certain is it? Draw confusion from its posterior, build the network and detect communities, again and again.
consensus = cg.communities.consensus(alike, draws=3, seed=0)
print(f"{(consensus.stability > 0.9).mean():.0%} of the volunteers nearly always stay in their community")

# %% Plot it, and save a file for Gephi.
out = Path("demo")
out.mkdir(exist_ok=True)
alike.save(out / "alike.graphml", communities=alike_groups)
ax = cg.plot.network(alike, alike_groups)
ax.figure.savefig(out / "communities.png", dpi=150)
