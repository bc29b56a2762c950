"""The rule by which null networks are drawn until the verdict is clear, on modularities of a known distribution."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nct, norm

import crowdgraph as cg
from crowdgraph.communities.bayesian_nmf import FEW_NULLS, MAX_ROUNDS
from crowdgraph.core.evidence import MAX_P_VALUE, Evidence

SPREAD = 0.02


@dataclass(frozen=True)
class Modularity:
    """Stands for a network and for its prepared weights; null networks are normally distributed around 0.3."""

    value: float
    mean_weight: float = 0.5
    has_null: bool = True

    def null(self, *, seed):
        return Modularity(0.3 + SPREAD * np.random.default_rng(seed).standard_normal())

    def highest_modularity(self, seed):
        return self.value


def judge(z, seed):
    """The comparison of a network that lies `z` standard deviations above the mean of its null networks."""
    rng, network = np.random.default_rng(seed), Modularity(0.3 + SPREAD * z)
    return cg.BayesianNMF()._judge(network, network, lambda one: one, rng)


def n_nulls(comparison):
    return len(comparison.evidence_so_far.null_modularity)


@pytest.mark.parametrize(("z", "n_crowds"), [(40.0, 30), (10.0, 60), (0.0, 100)])
def test_the_verdict_is_that_of_many_null_networks(z, n_crowds):
    is_structured = norm.sf(z) < MAX_P_VALUE
    comparisons = [judge(z, seed) for seed in range(n_crowds)]
    assert all(one.is_positive == is_structured for one in comparisons)
    assert all(n_nulls(one) in (FEW_NULLS, *9 * np.arange(1, MAX_ROUNDS + 1)) for one in comparisons)


def test_few_null_networks_suffice_only_where_there_is_no_doubt():
    assert np.mean([n_nulls(judge(60.0, seed)) == FEW_NULLS for seed in range(30)]) > 0.8
    assert all(n_nulls(judge(z, seed)) > FEW_NULLS for z in (0.0, 3.0) for seed in range(40))


def overwhelming(z, n, rng):
    """How often a network is overwhelming beside `n` null networks of which it is `z` standard deviations above."""
    nulls = 0.3 + SPREAD * rng.standard_normal((1_000, n))
    return [
        Evidence(agreement=1.0, modularity=0.3 + SPREAD * z, null_modularity=one, structured=True).is_overwhelming
        for one in nulls
    ]


@pytest.mark.parametrize("n", [3, 4, 9])
def test_networks_at_the_limit_are_hardly_ever_overwhelming(n):
    """By chance they are in one of a thousand."""
    limit = norm.isf(MAX_P_VALUE)
    assert np.count_nonzero(overwhelming(limit, n, np.random.default_rng(n))) <= 5


@given(st.integers(3, 8), st.floats(-5, 200), st.integers(0, 100))
def test_the_noncentral_t_distribution_decides(n, z, seed):
    nulls = 0.3 + SPREAD * np.random.default_rng(seed).standard_normal(n)
    evidence = Evidence(agreement=1.0, modularity=0.3 + SPREAD * z, null_modularity=nulls, structured=True)
    excess = (evidence.modularity - nulls.mean()) / max(nulls.std(ddof=1), 0.005)
    chance = nct.sf(np.sqrt(n) * excess, n - 1, np.sqrt(n) * norm.isf(MAX_P_VALUE))
    if abs(chance - 0.001) > 1e-6:
        assert evidence.is_overwhelming == (chance < 0.001)


def test_without_null_networks_nothing_is_overwhelming():
    assert not Evidence(agreement=1.0, modularity=0.9, null_modularity=np.zeros(2), structured=True).is_overwhelming


@pytest.mark.science
def test_false_positives_and_verdicts_are_those_of_the_full_number():
    """Crowds without communities, and some at all distances: the first looks against as many networks as can be."""
    rng = np.random.default_rng(0)
    print("\n| distance | positive | with all 45 | few sufficed | disagree |\n|--:|--:|--:|--:|--:|")
    for z in (None, 0.0, 2.0, 2.576, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0):
        n_crowds = 4_000 if z is None else 500
        both = []
        for seed in range(n_crowds):
            # Without communities, a network is one more draw of the null model.
            distance = rng.standard_normal() if z is None else z
            comparison = judge(distance, seed)
            full = comparison.with_nulls(45, lambda one: one, np.random.default_rng(seed + 10**6))
            both.append((comparison.is_positive, full.is_positive, n_nulls(comparison) == FEW_NULLS))
        positive, full, few = np.array(both).T
        wrong = np.count_nonzero(few & (positive != full))
        name = "chance" if z is None else f"{z:g}"
        row = f"{positive.mean():.4f} | {full.mean():.4f} | {few.mean():.3f} | {(positive != full).mean():.4f}"
        print(f"| {name} | {row} |")
        assert wrong <= 0.001 * n_crowds
        if z is None:
            assert positive.mean() <= MAX_P_VALUE + 3 * np.sqrt(MAX_P_VALUE / n_crowds)
