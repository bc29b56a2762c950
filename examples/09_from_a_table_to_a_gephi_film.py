"""# From a table to a film in Gephi

Who works with whom, which groups do they form, and how do both change? A table of responses becomes a network over
time, a picture, and a file that the timeline of Gephi plays.
"""

# %% Take a table with a row for each response. This one is simulated: three teams, joined late by eager volunteers.
from functools import partial
from pathlib import Path

import networkx as nx

import crowdgraph as cg

kinds = [
    cg.simulate.Group(name="careful", confusion=[[0.9, 0.1], [0.1, 0.9]]),
    cg.simulate.Group(name="eager", confusion=[[0.3, 0.7], [0.02, 0.98]], arrives=0.4),
]
crowd = cg.simulate.crowd(n_volunteers=90, n_items=600, n_responses=9_000, groups=kinds, n_communities=3, seed=0)
table, gold = crowd.graph.to_pandas(), crowd.graph.to_pandas(table="gold")[["item", "label"]].head(100)
print(table.head(3))

# %% Build the graph, and ask it what you would ask networkx.
graph = cg.CrowdGraph.from_responses(table, gold=gold)
print(graph, graph.degree["volunteer-07"], graph.volunteers["volunteer-07"].coworkers().top(3), sep="\n")

# %% Infer the classes of the items, and how good everybody was at every response.
fit = cg.IBCC().fit(graph).calibrated()
skill = cg.DynIBCC(update_classes=False).fit(graph, start=fit)
graph = graph.annotate(skill)

# %% Link volunteers who behave alike, and volunteers who share items. Are there communities, and are they the same?
alike, together = cg.networks.pi_similarity(graph), cg.networks.task_cooccurrence(graph)
behaviour, teams = (cg.BayesianNMF().detect(network, seed=0) for network in (alike, together))
print(behaviour, behaviour.evidence.verdict, teams, teams.evidence.verdict, sep="\n")
print(f"adjusted Rand index {cg.communities.agreement(behaviour, teams).ari:.2f}")

# %% Follow the teams. Detect communities in all links, and draw only links that chance does not explain.
validated = partial(cg.networks.task_cooccurrence, validate=0.01)
networks = cg.dynamics.networks_over_time(graph, every="15D", network=validated)
track = cg.dynamics.over_time(graph, counts=networks.counts, network=cg.networks.task_cooccurrence, model=None, seed=0)
print(networks.measures(kind="text"), track, sep="\n")

# %% Draw a panel for each snapshot, and write the film: links, communities and skill as they change.
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.network_over_time(networks, track)[0].figure.savefig(out / "network_over_time.png", dpi=150)
networks.save(out / "film.gexf", communities=track, confusion=skill)
print(nx.read_gexf(out / "film.gexf"))
