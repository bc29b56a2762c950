"""The paper's table of methods, on the look-alike of its crowd: ``make check-science`` prints it."""

import time

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import crowdgraph as cg
from crowdgraph.evaluation import cross_validate

# The priors that the paper's authors used for Galaxy Zoo Supernovae.
AUTHORS = {"confusion_prior": [[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], "class_prior": [100, 10]}
PAPER = {"mean_score": 0.754, "weighted_sum": 0.772, "majority_vote": 0.781, "weighted_majority": 0.738, "ibcc": 0.984}
SEEDS = range(6)


def models(graph):
    no, yes = graph.classes
    votes = {-1: no, 1: yes, 3: yes}
    return {
        "mean_score": cg.MeanScore(),
        "weighted_sum": cg.WeightedSum(votes=votes),
        "majority_vote": cg.MajorityVote(votes=votes, output="winner"),
        "weighted_majority": cg.WeightedMajority(votes=votes, output="winner"),
        "majority_vote, shares": cg.MajorityVote(votes=votes),
        "weighted_majority, shares": cg.WeightedMajority(votes=votes),
        "dawid_skene": cg.DawidSkene(votes=votes),
        "ibcc": cg.IBCC(**AUTHORS),
        "ibcc, votes": cg.IBCC(votes=votes),
        "ibcc, learned prior": cg.IBCC(votes=votes, learn_prior=True),
        "dynibcc": cg.DynIBCC(**AUTHORS),
        "dynibcc, auto": cg.DynIBCC(**AUTHORS, noise_scale="auto"),
        "dynibcc, votes": cg.DynIBCC(votes=votes),
        "dynibcc, votes, auto": cg.DynIBCC(votes=votes, noise_scale="auto"),
    }


@pytest.mark.science
def test_the_papers_table():
    areas = {}
    seconds = {}
    for seed in SEEDS:
        graph = cg.simulate.galaxy_zoo_supernovae(seed=seed).graph
        result = cross_validate(graph, models(graph), seed=seed)
        for name, area, took in zip(result.models, result.mean("auc"), result.mean("seconds"), strict=True):
            areas.setdefault(name, []).append(area)
            seconds.setdefault(name, []).append(took)
    mean = {name: float(np.mean(values)) for name, values in areas.items()}
    print("\n| method | AUC, mean of crowds | from | to | paper | seconds a fit |\n|---|--:|--:|--:|--:|--:|")
    for name, values in areas.items():
        paper = f"{PAPER[name]:.3f}" if name in PAPER else ""
        print(
            f"| {name} | {mean[name]:.3f} | {min(values):.3f} | {max(values):.3f} | {paper} "
            f"| {np.mean(seconds[name]):.4f} |"
        )
    assert mean["ibcc"] >= 0.95
    assert mean["ibcc"] >= max(mean[name] for name in PAPER if name != "ibcc") + 0.15
    # Shares of votes rank better than winners do; IBCC with the usual prior is that far ahead of them, too.
    baselines = [name for name in mean if name.startswith(("mean", "weighted", "majority"))]
    assert mean["ibcc, votes"] >= max(mean[name] for name in baselines) + 0.15


@pytest.mark.science
@pytest.mark.filterwarnings("ignore:GibbsIBCC did not settle")
def test_gibbs_beside_variational_bayes():
    """One fold of one crowd; the paper reports 349 s for Gibbs sampling and 13 s for variational Bayes."""
    crowd = cg.simulate.galaxy_zoo_supernovae(seed=0)
    graph = crowd.graph
    hidden = np.arange(len(graph.items)) % 5 == 0
    rest = graph.replace(gold=graph.gold.where(~hidden))
    no, yes = graph.classes
    settings = {"votes": {-1: no, 1: yes, 3: yes}}
    found = {}
    print("\n| method | AUC | seconds | settled | R-hat |\n|---|--:|--:|---|--:|")
    for model in (cg.IBCC(**settings), cg.GibbsIBCC(**settings), cg.IBCC(**AUTHORS), cg.GibbsIBCC(**AUTHORS)):
        model.warm_up(rest)
        start = time.perf_counter()
        fit = model.fit(rest, seed=0)
        took = time.perf_counter() - start
        area = roc_auc_score(crowd.truth.classes[hidden], fit.item_probs[hidden, 1])
        r_hat = f"{max(fit.diagnostics['r_hat'].values()):.4f}" if "r_hat" in fit.diagnostics else ""
        which = "votes" if model.votes else "authors' prior"
        print(f"| {model.name}, {which} | {area:.3f} | {took:.2f} | {fit.converged} | {r_hat} |")
        found[model.name, which] = area
    for which in ("votes", "authors' prior"):
        assert found["gibbs_ibcc", which] > found["ibcc", which] - 0.01
