"""# Combine the crowd

What is the true class of each item, how sure are we, and how good is each volunteer?
"""

# %% Simulate a crowd like Galaxy Zoo Supernovae: labels are -1, 1 and 3, classes are supernova or not.
from pathlib import Path

import crowdgraph as cg

graph = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=0).graph
no, yes = graph.classes
votes = {-1: no, 1: yes, 3: yes}
print(graph)

# %% Pretend that a third of the gold is all we have. IBCC learns every volunteer's confusion matrix, and the classes.
# Answers about one item depend on each other, so IBCC is too sure; calibrated() allows for that, as gold shows.
known = list(graph.gold)[::3]
sparse = graph.with_gold({item: graph.gold[item] for item in known}, classes=graph.classes)
fit = cg.IBCC(votes=votes).fit(sparse).calibrated()
print(fit, fit.dependence.words)
sparse = sparse.annotate(fit)
right = sum(fit.predict()[item] == graph.gold[item] for item in graph.gold if item not in sparse.gold)
print(f"{right} of {len(graph.gold) - len(known)} items without gold are classified right")

# %% Who is good, and how sure are we of it?
print(fit.volunteers_to_frame().head(3))

# %% How good is the busiest volunteer, and which classes would change without them?
busiest = graph.volunteers.ids[graph.volunteers.n_responses.argmax()]
print(sparse.volunteers[busiest].confusion.latest())
print(fit.influence(volunteer=busiest))

# %% What would they say about an item they have not seen? And which items are the least certain?
unseen = next(iter(fit.predict_responses(sparse, volunteers=[busiest])["item"]))
print(fit.predict_response(busiest, unseen))
print(fit.to_frame().assign(sure=fit.item_probs.max(axis=1)).nsmallest(3, "sure"))

# %% Start autumn from what was learned until summer.
summer = cg.IBCC(votes=votes).fit(graph.before("2010-08-01"))
autumn = cg.IBCC(confusion_prior=summer.as_prior(strength=0.8)).fit(graph.window("2010-08-01", None))
print(autumn, autumn.prior)

# %% Is it worth it? Hide a fifth of the gold at a time, and see which model recovers it.
models = {
    "mean score": cg.MeanScore(),
    "majority": cg.MajorityVote(votes=votes),
    "weighted majority": cg.WeightedMajority(votes=votes),
    "Dawid-Skene": cg.DawidSkene(votes=votes),
    "IBCC": cg.IBCC(votes=votes),
    "IBCC, calibrated": cg.Calibrated(model=cg.IBCC(votes=votes)),
}
comparison = cg.evaluation.cross_validate(graph, models)
print(comparison)
out = Path("demo")
out.mkdir(exist_ok=True)
cg.plot.roc(comparison).figure.savefig(out / "roc.png", dpi=150)
cg.plot.reliability(comparison).figure.savefig(out / "reliability.png", dpi=150)
