"""Agreement of divisions: ARI and NMI against igraph and pairs counted, overlapping NMI against its definition."""

from itertools import combinations
from math import log2

import igraph
import numpy as np
from builders import communities_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crowdgraph.communities.agreement import agreement


def pairs_index(left, right):
    """The adjusted Rand index, by looking at every pair of volunteers."""
    same = [(left[u] == left[v], right[u] == right[v]) for u, v in combinations(range(len(left)), 2)]
    both, ones, others = (sum(map(f, same)) for f in (all, lambda pair: pair[0], lambda pair: pair[1]))
    expected = ones * others / len(same)
    most = (ones + others) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def overlapping_nmi(left, right, n):
    """The formulas of McDaid, Greene and Hurley (2011), sections 2 and 3, for lists of sets."""

    def h(w):
        return -w * log2(w / n) if w else 0.0

    def entropy(x):
        return h(len(x)) + h(n - len(x))

    def conditional(x, y):
        d = len(x & y)
        b, c = len(y) - d, len(x) - d
        a = n - b - c - d
        if h(a) + h(d) <= h(b) + h(c) + 1e-9:
            return entropy(x)
        return h(a) + h(b) + h(c) + h(d) - h(b + d) - h(a + c)

    def unexplained(xs, ys):
        return sum(min([entropy(x), *(conditional(x, y) for y in ys)]) for x in xs)

    total = [sum(map(entropy, cover)) for cover in (left, right)]
    return (sum(total) - unexplained(left, right) - unexplained(right, left)) / 2 / max(total)


def sets(member):
    return [set(np.flatnonzero(column).tolist()) for column in np.asarray(member).T]


@st.composite
def assignments(draw):
    """Two assignments of the same volunteers, from equal to unrelated."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 30))
    left = rng.integers(0, draw(st.integers(1, 6)), n)
    changed = rng.random(n) < draw(st.sampled_from([0, 0.2, 1]))
    return left, np.where(changed, rng.integers(0, draw(st.integers(1, 6)), n), left)


@st.composite
def covers(draw):
    """Two boolean covers of the same volunteers, from equal to unrelated; volunteers may be in none or in all."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 25))
    left = rng.random((n, draw(st.integers(1, 5)))) < draw(st.sampled_from([0.2, 0.5, 0.8]))
    if draw(st.booleans()):
        return left, rng.random((n, draw(st.integers(1, 5)))) < 0.4
    return left, left ^ (rng.random(left.shape) < 0.1)


@given(assignments())
def test_hard_measures_are_igraphs_and_those_of_pairs(case):
    left, right = case
    result = agreement(left, right)
    assert_allclose(result.ari, pairs_index(left, right), atol=1e-12)
    # Old versions of igraph refuse numbers of communities beyond that of volunteers.
    left, right = (np.unique(labels, return_inverse=True)[1] for labels in case)
    assert result.n_volunteers == result.n_assigned == len(left)
    single = len(set(left.tolist())) == 1 and len(set(right.tolist())) == 1
    if not single:
        expected = igraph.compare_communities(left.tolist(), right.tolist(), method="nmi")
        assert_allclose(result.nmi, expected, atol=1e-9)
        one_each = len(set(left.tolist())) == len(set(right.tolist())) == len(left)
        if not one_each:
            expected = igraph.compare_communities(left.tolist(), right.tolist(), method="adjusted_rand")
            assert_allclose(result.ari, expected, atol=1e-9)
    else:
        assert result.nmi == 1


@given(covers())
def test_the_overlapping_measure_is_its_definition(case):
    left, right = case
    result = agreement(left, right).overlapping_nmi
    assert 0 <= result <= 1
    if any(0 < len(group) < len(left) for group in sets(left) + sets(right)):
        assert_allclose(result, overlapping_nmi(sets(left), sets(right), len(left)), atol=1e-9)
    assert_allclose(agreement(right, left).overlapping_nmi, result, atol=1e-12)
    assert_allclose(agreement(left, left).overlapping_nmi, 1)


@given(covers(), st.randoms(use_true_random=False))
def test_numbers_and_order_do_not_matter(case, random):
    left, right = case
    volunteers = random.sample(range(len(left)), len(left))
    columns = random.sample(range(right.shape[1]), right.shape[1])
    result = agreement(left, right)
    moved = agreement(left[volunteers], right[volunteers][:, columns])
    assert_allclose(moved[:3], result[:3], atol=1e-12)
    assert moved[3:] == result[3:]


def test_blocks_of_communities_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.random((50, 7)) < 0.3, rng.random((50, 9)) < 0.3
    at_once = agreement(left, right).overlapping_nmi
    for n_pairs in (1, 20):
        monkeypatch.setitem(agreement.__globals__, "PAIRS_AT_A_TIME", n_pairs)
        assert_allclose(agreement(left, right).overlapping_nmi, at_once, rtol=1e-12)


def test_a_community_does_not_match_its_complement():
    """Knowing who is in one community tells who is in its complement, yet they have nobody in common."""
    half = np.repeat([True, False], 5)[:, None]
    assert agreement(half, ~half).overlapping_nmi == 0
    assert agreement(half, half).overlapping_nmi == 1


def test_one_community_of_all_agrees_with_itself_only():
    together, apart, nobody = np.zeros(6, dtype=int), np.repeat([0, 1], 3), np.full(6, -1)
    assert agreement(together, together)[:3] == (1, 1, 1)
    assert agreement(together, apart)[:3] == (0, 0, 0)
    assert agreement(nobody, nobody).overlapping_nmi == 1
    assert agreement(together, nobody).overlapping_nmi == 0
    assert agreement(apart, nobody).overlapping_nmi == 0
    assert np.isnan(agreement(apart, nobody)[:2]).all()


def test_those_of_no_community_are_left_out_of_assignments_and_outside_of_covers():
    left, right = np.array([0, 0, 1, 1, 2, -1]), np.array([1, 1, 0, -1, 0, 0])
    result = agreement(left, right)
    both = [0, 1, 2, 4]
    assert result[:2] == agreement(left[both], right[both])[:2]
    assert (result.n_volunteers, result.n_assigned) == (6, 4)
    assert_allclose(result.overlapping_nmi, overlapping_nmi([{0, 1}, {2, 3}, {4}], [{2, 4, 5}, {0, 1}], 6))


def test_members_of_several_have_no_assignment_by_booleans():
    member = np.array([[1, 0], [1, 1], [0, 1], [0, 1], [0, 0]], dtype=bool)
    result = agreement(member, [0, 0, 1, 1, 1])
    assert (result.ari, result.nmi, result.n_assigned) == (1, 1, 3)


def test_participations_become_covers_by_the_threshold():
    shares = np.array([[0.7, 0.3], [0.9, 0.1], [0.2, 0.8], [0.0, 1.0], [0.0, 0.0]])
    groups = communities_of(shares)
    member = np.array([[1, 1], [1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    for division in (shares, groups):
        assert agreement(division, member).overlapping_nmi == 1
        assert agreement(division, member, threshold=0.5).overlapping_nmi < 1
        assert agreement(division, [0, 0, 1, 1, -1], threshold=0.5)[:3] == (1, 1, 1)


def test_communities_are_compared_over_the_volunteers_of_both():
    left = communities_of([0, 0, 0, 1, 1, 1], ids="abcdef")
    right = communities_of([0, 2, 0, 1, 1, 2], ids="fzdcba")
    result = agreement(left, right)
    assert result == agreement([0, 0, 0, 1, 1], [2, 1, 1, 0, 0])
    assert result.n_volunteers == 5
    assert agreement(left, left)[:3] == (1, 1, 1)


def test_many_volunteers_and_communities_are_compared():
    rng = np.random.default_rng(0)
    left = rng.integers(0, 500, 100_000)
    right = np.where(rng.random(len(left)) < 0.1, rng.integers(0, 500, len(left)), left)
    result = agreement(left, right)
    assert 0.75 < result.ari < 0.85
    assert 0.6 < result.overlapping_nmi < result.nmi < 1
