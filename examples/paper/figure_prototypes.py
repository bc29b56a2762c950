"""The figure of prototypes: communities of volunteers who behave alike."""

from dataclasses import replace

import numpy as np
from entry import AUTHORS_PRIOR, write_entry
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg


def communities(crowd):
    """Return communities of volunteers with ten answers or more, their ARI with the groups, and the groups' sizes."""
    fit = cg.IBCC(**AUTHORS_PRIOR).fit(crowd.graph)
    network = cg.networks.pi_similarity(crowd.graph, fit=fit, min_responses=10)
    groups = cg.BayesianNMF().detect(network, seed=0, progress=True)
    group = crowd.truth.group[crowd.graph.volunteers.codes(groups.ids)]
    return groups, adjusted_rand_score(group, groups.assignment), np.bincount(group)


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
five, five_ari, _ = communities(even)
lookalike, lookalike_ari, planted = communities(cg.simulate.galaxy_zoo_supernovae())
group_sizes = ", ".join(f"{n} {name}" for n, name in zip(planted, even.truth.group_names, strict=True))
write_entry(
    "figure_prototypes",
    "Figure: prototypes of the communities of behaviour",
    paper="Five communities, of several hundred members each: reasonable, extremists, those who say -1 to nearly "
    "everything, those who nearly never do, and non-committal ones.",
    rows=[
        ("communities, groups with 50 answers each", "5", f"{len(five)} (ARI with the planted groups {five_ari:.2f})"),
        ("sizes", "hundreds each", ", ".join(map(str, five.sizes))),
        ("communities, look-alike of the paper's crowd", "5", f"{len(lookalike)} (ARI {lookalike_ari:.2f})"),
        ("its sizes", "hundreds each", ", ".join(map(str, lookalike.sizes))),
    ],
    pictures={
        "Five groups of one size, 50 answers each: the most central volunteers": cg.plot.prototypes(five)[0],
        "The look-alike, volunteers with ten answers or more": cg.plot.prototypes(lookalike)[0],
    },
    remark="With the paper's numbers of responses, the five groups cannot all be distinguished in the simulated crowd: "
    f"most of its volunteers gave fewer than ten answers, and of those with more there are {group_sizes}. Its rare "
    "reasonable volunteers and extremists appear as one community. Where all groups answer enough, all five are found.",
)
