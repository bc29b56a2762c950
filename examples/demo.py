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
print("\nBehaviour groups (the simulator knows; models have to find out):")
for code, name in enumerate(truth.group_names):
    print(f"  {name:<14} {np.count_nonzero(truth.group == code):>4} volunteers, {share[code]:.0%} of all responses")

# %% What could be known over time.
print("\nWhat could be known:")
for view in graph.snapshots(counts=[3_000, 12_000, len(graph.responses)]):
    n_seen = [np.count_nonzero(nodes.n_responses) for nodes in (view.volunteers, view.items)]
    print(f"  after {len(view.responses):>6,} responses: {n_seen[0]:,} volunteers, {n_seen[1]:,} items")

# %% Who tells the classes best? A fifth of the gold is hidden at a time.
no, yes = graph.classes
votes = {-1: no, 1: yes, 3: yes}
models = {
    "mean score": cg.MeanScore(),
    "majority": cg.MajorityVote(votes=votes),
    "weighted majority": cg.WeightedMajority(votes=votes),
    "IBCC": cg.IBCC(votes=votes),
}
comparison = cg.evaluation.cross_validate(graph, models, progress=True)
print(f"\n{comparison}")

# %% IBCC, here with the prior of the paper's authors, knows everybody's confusion matrix; the graph carries it.
model = cg.IBCC(confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[100, 10])
graph = graph.annotate(model.fit(graph))
skill = graph.confusion().latest().accuracy(correct={no: [-1], yes: [1, 3]})
busy = graph.volunteers.n_responses >= 50
print(f"\nOf {busy.sum()} volunteers with 50 responses or more, {(skill[busy] > 0.8).sum()} are right 4 times of 5.")

# %% Which kinds of volunteers are there? Communities of those who behave alike, of whom at least ten answers are known.
alike = cg.networks.pi_similarity(graph, min_responses=10)
groups = cg.BayesianNMF().detect(alike, seed=0, progress=True)
print(f"\n{groups.evidence}\n{groups.describe(kind='text')}")

# %% Pictures and the graph itself.
cg.plot.network(alike, groups).figure.savefig(out / "alike.png", dpi=150)
cg.plot.roc(comparison).figure.savefig(out / "roc.png", dpi=150)
cg.plot.activity(graph).figure.savefig(out / "activity.png", dpi=150)
cg.plot.responses_over_time(graph).figure.savefig(out / "responses_over_time.png", dpi=150)
graph.annotate(groups).save(out / "supernovae.crowd")
print("\nWritten:")
for path in ("roc.png", "alike.png", "activity.png", "responses_over_time.png", "supernovae.crowd"):
    print(f"  {(out / path).resolve()}")
