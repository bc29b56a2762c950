"""# Communities of volunteers

Who behaves alike, who works on the same things, and does one explain the other?
"""

# %% Three hundred volunteers of five kinds, who work in four corners of the project, 60 answers each.
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

# %% Who behaves alike? Communities overlap, their number is found, and evidence tells whether there are any at all.
alike = cg.networks.pi_similarity(graph)
kinds_found = cg.BayesianNMF().detect(alike, seed=0, progress=True)
print(kinds_found.evidence)
print(kinds_found.describe(kind="text"))
print(cg.communities.agreement(kinds_found.assignment, crowd.truth.group))

# %% Who works on the same things?
together = cg.networks.task_cooccurrence(graph)
corners = cg.BayesianNMF().detect(together, seed=0)
print(corners, corners.evidence)

# %% Does shared exposure explain shared behaviour? Here it does not: kinds and corners were drawn independently.
print(cg.communities.compare_networks(kinds_found, corners, seed=0).verdict)

# %% How sure is it? Confusion drawn anew from its posterior, the network made again, communities found again.
sure = cg.communities.consensus(alike, draws=3, seed=0)
print(f"{(sure.stability > 0.9).mean():.0%} of the volunteers stay in their community nearly always")

# %% A picture, and a file for Gephi.
out = Path("demo")
out.mkdir(exist_ok=True)
alike.save(out / "alike.graphml", communities=kinds_found)
ax = cg.plot.network(alike, kinds_found)
ax.figure.savefig(out / "communities.png", dpi=150)
