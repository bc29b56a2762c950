"""Planted groups are found, as many as there are, and none where there are none: one default detector for all.

Run with ``make check-science``; it prints the tables that the documentation shows.
"""

import dataclasses

import numpy as np
import pytest
from builders import CLASSES, FIVE, LABELS, ONE, SEVEN, SKEWED, THREE, behaving, separation
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg

pytestmark = pytest.mark.science

# The confusion prior of the paper's authors.
PRIOR, CLASS_PRIOR = [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], [100, 10]
SEEDS = 10


def told(name, group, found):
    """A line of a table: how many groups each seed found, how right they are, and how sure."""
    numbers = [len(one) for one in found]
    rights = [adjusted_rand_score(planted, one.assignment) for planted, one in zip(group, found, strict=True)]
    agreement = [one.evidence.agreement for one in found]
    print(
        f"| {name} | {', '.join(map(str, numbers))} | {min(rights):.3f} to {max(rights):.3f} | "
        f"{min(agreement):.2f} to {max(agreement):.2f} |"
    )
    return np.array(numbers), np.array(rights)


def header(title):
    print(
        f"\n{title}\n\n| crowd | groups found, seed by seed | adjusted Rand index | agreement of restarts |"
        "\n|---|---|---|---|"
    )


@pytest.mark.parametrize(
    ("name", "behaviours", "shares", "least"),
    [
        ("five equal groups", FIVE, None, 10),
        ("five groups of 55/20/12/8/5 %", FIVE, SKEWED, 10),
        ("three groups", THREE, None, 8),
        ("seven groups", SEVEN, None, 8),
    ],
)
def test_planted_behaviour(name, behaviours, shares, least):
    """1,705 volunteers with known confusion, drawn around their groups with concentration 20."""
    crowds = [behaving(behaviours, n=1705, concentration=20, shares=shares, seed=seed) for seed in range(SEEDS)]
    found = [cg.BayesianNMF().detect(network, seed=seed) for seed, (network, _) in enumerate(crowds)]
    header(f"{name}; closest two {separation(behaviours):.2f} apart (Hellinger)")
    numbers, rights = told(name, [group for _, group in crowds], found)
    right = numbers == len(behaviours)
    assert right.sum() >= least
    assert (rights[right] >= 0.95).all()


@pytest.mark.parametrize("concentration", [5, 20, 100])
def test_no_structure(concentration):
    """1,705 volunteers whose confusion comes from one Dirichlet for each class."""
    crowds = [behaving(ONE, n=1705, concentration=concentration, seed=seed) for seed in range(SEEDS)]
    found = [cg.BayesianNMF().detect(network, seed=seed) for seed, (network, _) in enumerate(crowds)]
    header(f"no groups, concentration {concentration}")
    numbers, _ = told(f"concentration {concentration}", [group for _, group in crowds], found)
    assert (numbers == 1).sum() >= 9


def test_behaviour_inferred_from_fifty_labels():
    """The same five groups, of whom IBCC knows nothing but 50 answers each, and no gold."""
    groups = [
        dataclasses.replace(group, share=1.0, activity=1.0, concentration=20.0)
        for group in cg.simulate.galaxy_zoo.GROUPS
    ]
    planted, found = [], []
    for seed in range(SEEDS):
        graph, truth = cg.simulate.crowd(
            n_volunteers=1705,
            n_items=4_000,
            n_responses=[50] * 1705,
            classes=CLASSES,
            labels=LABELS,
            groups=groups,
            gold=0.0,
            seed=seed,
        )
        graph = graph.annotate(cg.IBCC(confusion_prior=PRIOR, class_prior=CLASS_PRIOR).fit(graph))
        planted.append(truth.group)
        found.append(cg.BayesianNMF().detect(cg.networks.pi_similarity(graph), seed=seed))
    header("five groups, inferred by IBCC from 50 answers each")
    numbers, rights = told("IBCC, 50 answers each", planted, found)
    print(found[0].describe(kind="text"))
    assert (numbers == 5).all()
    assert (rights >= 0.8).all()


def test_the_look_alike_of_galaxy_zoo():
    """Of volunteers with ten answers or more, four groups: 34 of 385 are reasonable or extremists, told as one."""
    planted, found = [], []
    for seed in range(5):
        graph, truth = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=seed)
        graph = graph.annotate(cg.IBCC(confusion_prior=PRIOR, class_prior=CLASS_PRIOR).fit(graph))
        network = cg.networks.pi_similarity(graph, min_responses=10)
        planted.append(truth.group[graph.volunteers.table.codes(network.ids)])
        found.append(cg.BayesianNMF().detect(network, seed=seed))
    header("Galaxy Zoo Supernovae look-alike, at least ten answers")
    numbers, rights = told("look-alike", planted, found)
    print(found[0].describe(kind="text"))
    assert (numbers >= 4).all()
    assert (rights >= 0.8).all()


def planted_tasks(seed):
    """Return as many responses as in the paper's full crowd, by volunteers and items in 32 task communities."""
    return cg.simulate.crowd(
        n_volunteers=2_131 + 4_000,
        n_items=44_263,
        n_responses=493_048,
        n_casual=4_000,
        classes=cg.simulate.galaxy_zoo.CLASSES,
        labels=cg.simulate.galaxy_zoo.LABELS,
        groups=cg.simulate.galaxy_zoo.GROUPS,
        n_communities=32,
        mixing=0.12,
        seed=seed,
    )


def test_task_communities_of_a_crowd_of_the_papers_size():
    planted, found, modularities = [], [], []
    for seed in range(3):
        graph, truth = planted_tasks(seed)
        network = cg.networks.task_cooccurrence(graph)
        planted.append(truth.community[graph.volunteers.table.codes(network.ids)])
        found.append(cg.BayesianNMF().detect(network, seed=seed))
        modularities.append((found[-1].modularity, cg.Leiden().detect(network, seed=seed).modularity))
    header("32 task communities")
    numbers, rights = told("32 planted", planted, found)
    print("modularity and Leiden's:", ", ".join(f"{own:.4f} and {peer:.4f}" for own, peer in modularities))
    assert ((numbers >= 30) & (numbers <= 34)).all()
    assert (rights >= 0.9).all()
    assert all(own >= peer - 0.01 for own, peer in modularities)
