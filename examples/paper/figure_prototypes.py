"""The figure of prototypes: communities of volunteers who behave alike."""

from dataclasses import replace

import numpy as np
from entry import AUTHORS, leave
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg


def communities(crowd):
    """The fit, and the communities of volunteers with at least ten answers."""
    fit = cg.IBCC(**AUTHORS).fit(crowd.graph)
    network = cg.networks.pi_similarity(crowd.graph, fit=fit, min_responses=10)
    found = cg.BayesianNMF().detect(network, seed=0, progress=True)
    group = crowd.truth.group[crowd.graph.volunteers.codes(found.ids)]
    return found, adjusted_rand_score(group, found.assignment), np.bincount(group)


same = [replace(group, share=1.0, activity=1.0) for group in cg.simulate.galaxy_zoo.GROUPS]
even = cg.simulate.crowd(
    n_volunteers=1_705,
    n_items=2_000,
    n_responses=[50] * 1_705,
    classes=("not supernova", "supernova"),
    labels=(-1, 1, 3),
    groups=same,
    gold=0.5,
    seed=0,
)
five, right, _ = communities(even)
alike, partly, planted = communities(cg.simulate.galaxy_zoo_supernovae())
few = ", ".join(f"{n} {name}" for n, name in zip(planted, even.truth.group_names, strict=True))
leave(
    "figure_prototypes",
    "Figure: prototypes of the communities of behaviour",
    paper="Five communities, of several hundred members each: reasonable, extremists, those who say -1 to nearly "
    "everything, those who nearly never do, and non-committal ones.",
    rows=[
        ("communities, groups with 50 answers each", "5", f"{len(five)} (ARI with the planted groups {right:.2f})"),
        ("sizes", "hundreds each", ", ".join(map(str, five.sizes))),
        ("communities, look-alike of the paper's crowd", "5", f"{len(alike)} (ARI {partly:.2f})"),
        ("its sizes", "hundreds each", ", ".join(map(str, alike.sizes))),
    ],
    pictures={
        "Five groups of one size, 50 answers each: the most central volunteers": cg.plot.prototypes(five)[0],
        "The look-alike, volunteers with ten answers or more": cg.plot.prototypes(alike)[0],
    },
    remark="With the paper's numbers of responses the simulated crowd cannot tell all five: most of its volunteers "
    f"gave fewer than ten answers, and of those with more there are {few}. Its rare reasonable volunteers and "
    "extremists are told as one community. Where all groups answer enough, all five are found.",
)
