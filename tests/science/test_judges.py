"""Panels of LLM judges with planted dependence: which pairs err together, and the effective number of votes."""

import warnings

import numpy as np
import pytest
from judges import PAIRS, draw_judges, judged, names, true_votes

import crowdgraph as cg

pytestmark = pytest.mark.science

N_SEEDS = 20
# The share of prompts with gold, and the model for the others.
ROWS = [(1.0, cg.MajorityVote()), *((gold, cg.Calibrated()) for gold in (0.25, 0.1, 0.05, 0.0)), (0.0, cg.IBCC())]


def study(gold, model, pairs):
    """For each seed: are all pairs found, how many false ones, estimated by true votes, does the interval hold them."""
    rows = []
    for seed in range(N_SEEDS):
        classes, labels = draw_judges(seed, pairs=pairs)
        n_gold = round(gold * len(classes))
        chosen = np.random.default_rng([seed, 2]).choice(len(classes), n_gold, replace=False)
        graph = judged(labels, classes, gold=chosen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cg.errors.CrowdGraphWarning)
            fit = model.fit(graph)
        hits = {frozenset(pair) for pair in cg.networks.error_pairs(graph, fit=fit).pairs}
        votes = cg.evaluation.effective_votes(graph, fit=fit, n_resamples=200)
        # That of the same judges on 100 times as many prompts.
        truth = true_votes(*draw_judges(seed, n=200_000, pairs=pairs)[::-1])
        rows.append(
            (
                names(pairs) <= hits,
                len(hits - names(pairs)),
                votes.value / truth,
                votes.low < truth < votes.high,
            )
        )
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("pairs", [PAIRS, ()], ids=["two pairs", "no pairs"])
def test_planted_judges(pairs):
    print(f"\n{len(pairs)} planted pairs, 9 judges, 2,000 prompts of which 12 % are hard, {N_SEEDS} seeds")
    print("| gold | model | all pairs found | seeds with a false pair | votes / truth: mean (range) | interval holds |")
    print("|--:|---|--:|--:|--:|--:|")
    results = {}
    for gold, model in ROWS:
        rows = study(gold, model, pairs)
        found, false, ratio, held = rows.T
        results[gold, model.name] = rows
        print(
            f"| {gold:.0%} | {model.name} | {found.sum():.0f} | {np.count_nonzero(false)} | {ratio.mean():.2f} "
            f"({ratio.min():.2f} to {ratio.max():.2f}) | {held.sum():.0f} |"
        )
    found, false, ratio, _ = results[1.0, "majority_vote"].T
    assert found.all()
    # Each panel has a false pair with a probability of 5 % at most; of twenty, four or more do with 1.6 %.
    assert np.count_nonzero(false) <= 3
    assert np.abs(ratio - 1).max() < 0.15
