"""EBCC and BWA against enumeration, against a special case and, where the sets are present, against their papers."""

from itertools import product

import numpy as np
import pytest
from oracles.aggregators import Answers, _bwa_class, bwa, bwa_log_density, design_effect, ebcc, smoothed_votes
from science.real import load
from scipy.special import gammaln

import crowdgraph as cg

# Accuracies that the authors print in the notebooks beside their code (github.com/yuan-li/truth-inference-at-scale).
PUBLISHED_BWA = {
    "act_cf_amt": 0.860, "act_ms": 0.7857, "act_sp_amt": 0.946, "act_zencrowd_all": 0.8348, "cti_product": 0.9194,
    "cti_sentiment": 0.956, "cti_face": 0.6182, "gal_adult2": 0.7417, "bluebird": 0.7593, "snow_rte": 0.9275,
    "fact_eval": 0.8872,
}  # fmt: skip
PUBLISHED_EBCC = {
    "act_cf_amt": 0.8567, "act_ms": 0.7871, "act_sp_amt": 0.944, "act_zencrowd_all": 0.8623, "cti_product": 0.9349,
    "cti_sentiment": 0.961, "cti_face": 0.6353, "gal_adult2": 0.7477, "bluebird": 0.8611, "snow_rte": 0.9313,
}  # fmt: skip


def small_crowd(seed=0, n_items=4, gold=None):
    rng = np.random.default_rng(seed)
    item, volunteer = (part.ravel() for part in np.meshgrid(np.arange(n_items), np.arange(3), indexing="ij"))
    gold = np.full(n_items, -1) if gold is None else np.array(gold)
    return Answers(item, volunteer, rng.integers(0, 2, len(item)), np.array([0, 1]), gold, 3, 2)


def log_dirichlet_multinomial(counts, prior):
    return (
        gammaln(prior.sum(-1)) - gammaln((prior + counts).sum(-1)) + (gammaln(prior + counts) - gammaln(prior)).sum(-1)
    )


def log_evidence(answers, *, n_groups, group_prior, class_prior):
    """The logarithm of the evidence of EBCC, by enumeration of all classes and subtypes."""
    n_items, n_classes = len(answers.gold), answers.n_classes
    confusion_prior = np.where(np.eye(n_classes) > 0, 4.0, 1.0)
    logs = []
    for classes in product(range(n_classes), repeat=n_items):
        if any(0 <= gold != code for gold, code in zip(answers.gold, classes, strict=True)):
            continue
        for groups in product(range(n_groups), repeat=n_items):
            kinds = np.zeros((n_classes, n_groups))
            np.add.at(kinds, (classes, groups), 1)
            said = np.zeros((answers.n_volunteers, n_groups, n_classes, n_classes))
            z, g = np.array(classes)[answers.item], np.array(groups)[answers.item]
            np.add.at(said, (answers.volunteer, g, z, answers.label), 1)
            logs.append(
                log_dirichlet_multinomial(kinds.sum(axis=1), np.full(n_classes, class_prior))
                + log_dirichlet_multinomial(kinds, np.full(n_groups, group_prior / n_groups)).sum()
                + log_dirichlet_multinomial(said, confusion_prior).sum()
            )
    return np.logaddexp.reduce(logs)


@pytest.mark.parametrize("gold", [None, [1, -1, 0, -1]])
def test_the_bound_of_ebcc_rises_to_just_below_the_enumerated_evidence(gold):
    answers = small_crowd(gold=gold)
    settings = {"n_groups": 2, "group_prior": 1.0, "class_prior": 2.0}
    evidence = log_evidence(answers, **settings)
    fit = ebcc(answers, restarts=3, tol=1e-8, **settings)
    assert (np.diff(fit.bounds) > -1e-9).all()
    assert evidence - 3 < fit.bounds[-1] < evidence
    if gold:
        assert (fit.probs[[0, 2], [1, 0]] == 1).all()


@pytest.mark.parametrize("gold", [0.0, 0.3])
def test_ebcc_with_one_subtype_is_ibcc(gold):
    graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=500, gold=gold, seed=1).graph
    fit = ebcc(Answers.of(graph), n_groups=1, class_prior=1.0, tol=1e-9, max_iter=5_000)
    ibcc = cg.IBCC(confusion_prior=(4, 1), class_prior=1, tol=1e-9).fit(graph)
    assert abs(fit.bounds[-1] - ibcc.bound[-1]) < 1e-5
    assert np.abs(fit.probs - ibcc.item_probs).max() < 1e-5


def test_bwa_is_a_mode_of_its_joint_density():
    rng = np.random.default_rng(0)
    item, volunteer = (part.ravel() for part in np.meshgrid(np.arange(12), np.arange(5), indexing="ij"))
    y = rng.integers(0, 2, len(item)).astype(float)
    z, v, mu, rate = _bwa_class(item, volunteer, y, np.full(12, np.nan), (12, 5), 2, 15.0, 1.0, 5_000, 1e-13)
    settings = {"item": item, "volunteer": volunteer, "y": y, "shape": 15.0, "rate": rate, "strength": 1.0}

    def density(point):
        return bwa_log_density(point[:12], point[12:17], point[17], **settings)

    mode = np.concatenate([z, v, [mu]])
    # Central differences, and a second derivative along each coordinate.
    step = 1e-4 * np.eye(18)
    up, down = (np.array([density(mode + sign * row) for row in step]) for sign in (1, -1))
    assert np.abs((up - down) / 2e-4).max() < 1e-4
    assert (up + down - 2 * density(mode) < 0).all()


def test_gold_stays_as_it_is():
    answers = small_crowd(gold=[1, -1, 0, -1])
    assert (bwa(answers)[[0, 2], [1, 0]] == 1).all()
    assert np.allclose(bwa(answers).sum(axis=1), 1)


def test_votes_and_design_effect_by_hand():
    table = {"volunteer": list("abc"), "item": list("xxx"), "label": ["yes", "yes", "no"]}
    answers = Answers.of(cg.CrowdGraph.from_responses(table))
    assert np.allclose(smoothed_votes(answers), [[2 / 5, 3 / 5]])
    rows = np.broadcast_to([[3.0, 1.0], [1.0, 3.0]], (3, 2, 2))
    # Three answers of correlation .5 count as 1.5: odds of 3 to the power of (2 - 1) / 2.
    odds = 3 ** (1 / 2)
    assert np.allclose(design_effect(answers, rows, [0.5, 0.5], rho=0.5), [[1 / (1 + odds), odds / (1 + odds)]])


def accuracy(probs, graph):
    """As the authors count it: of equally probable classes, each counts its share."""
    known = graph.gold.codes >= 0
    best = probs[known] == probs[known].max(axis=1, keepdims=True)
    return float((best / best.sum(axis=1, keepdims=True))[np.arange(known.sum()), graph.gold.codes[known]].mean())


@pytest.mark.science
def test_published_accuracy_of_bwa():
    ours = {}
    for name in PUBLISHED_BWA:
        graph = load(name)
        ours[name] = accuracy(bwa(Answers.of(graph.with_gold(None, classes=graph.classes))), graph)
    print("\nBWA: " + ", ".join(f"{name} {ours[name]:.4f} ({PUBLISHED_BWA[name]:.4f})" for name in ours))
    assert all(abs(ours[name] - PUBLISHED_BWA[name]) < 0.004 for name in ours)


@pytest.mark.science
def test_published_accuracy_of_ebcc():
    """The authors keep the best of forty random starts. The best mode of bluebird is found by one start of ten."""
    ours = {}
    for name in PUBLISHED_EBCC:
        graph = load(name)
        hidden = Answers.of(graph.with_gold(None, classes=graph.classes))
        ours[name] = accuracy(ebcc(hidden, restarts=100 if len(hidden.item) < 10_000 else 5).probs, graph)
    print("\nEBCC: " + ", ".join(f"{name} {ours[name]:.4f} ({PUBLISHED_EBCC[name]:.4f})" for name in ours))
    gaps = np.array([ours[name] - PUBLISHED_EBCC[name] for name in ours])
    assert np.abs(gaps).max() < 0.02
    assert abs(gaps.mean()) < 0.005
