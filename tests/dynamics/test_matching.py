"""Who is who: all assignments tried one by one, and what renaming must not change."""

from itertools import permutations

import numpy as np
import pytest
from builders import communities_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.core._arrays import object_array
from crowdgraph.core.tables import NodeTable
from crowdgraph.dynamics.matching import MIN_SIMILARITY, CommunityProfile, community_profiles, match


@st.composite
def profiles(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_before, n_after = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    known = draw(st.booleans())

    def some(n):
        shares = rng.dirichlet(np.full(max(n, 1), 0.3), 12)
        shares[rng.random(12) < 0.3] = np.nan
        matrices = rng.dirichlet(np.ones(3), (n, 2))
        return [CommunityProfile(shares[:, k], matrices[k] if known else None) for k in range(n)]

    return some(n_before), some(n_after)


def similarity(old, new):
    parts, low, high = [], 0.0, 0.0
    for a, b in zip(old.participation, new.participation, strict=True):
        if not (np.isnan(a) or np.isnan(b)):
            low, high = low + min(a, b), high + max(a, b)
    if high > 0:
        parts.append(low / high)
    if old.confusion is not None:
        apart = sum(
            1 - sum(np.sqrt(p * q) for p, q in zip(*rows, strict=True))
            for rows in zip(old.confusion, new.confusion, strict=True)
        )
        parts.append(np.exp(-8 * apart))
    return sum(parts) / len(parts) if parts else 0.0


@given(profiles())
def test_no_other_matching_is_better(case):
    before, after = case
    matching = match(before, after)
    table = np.array([[similarity(old, new) for new in after] for old in before]).reshape(len(before), len(after))
    assert_allclose(matching.similarity, table, atol=1e-12)
    matched = [(old, new) for new, old in enumerate(matching.previous) if old >= 0]
    assert all(table[pair] > MIN_SIMILARITY for pair in matched)
    own = sum(table[pair] - MIN_SIMILARITY for pair in matched)
    # Every way to match the later ones with earlier ones, or with none (the numbers beyond).
    candidates = range(len(before) + len(after))
    best = max(
        sum(max(table[old, new] - MIN_SIMILARITY, 0.0) for new, old in enumerate(way) if old < len(before))
        for way in permutations(candidates, len(after))
    )
    assert_allclose(own, best, atol=1e-9)


@given(profiles(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_communities_does_not_matter(case, random):
    before, after = case
    order = list(range(len(after)))
    random.shuffle(order)
    matching, moved = match(before, after), match(before, [after[k] for k in order])
    assert_array_equal(moved.previous, matching.previous[order])


def test_those_who_were_not_there_both_times_do_not_count():
    old = CommunityProfile(np.array([1.0, 1.0, np.nan, np.nan]), None)
    new = CommunityProfile(np.array([1.0, np.nan, 1.0, 1.0]), None)
    assert_allclose(match([old], [new]).similarity, 1.0)
    strangers = CommunityProfile(np.array([np.nan, np.nan, 1.0, 1.0]), None)
    assert match([old], [strangers]).previous.tolist() == [-1]


def test_newcomers_who_behave_the_same_are_the_same_community():
    behaviour = np.array([[0.9, 0.1], [0.2, 0.8]])
    old = CommunityProfile(np.array([1.0, np.nan]), behaviour)
    assert match([old], [CommunityProfile(np.array([np.nan, 1.0]), behaviour)]).previous.tolist() == [0]
    assert match([old], [CommunityProfile(np.array([np.nan, 1.0]), behaviour[::-1])]).previous.tolist() == [-1]


def test_confidence_is_the_share_of_restarts_that_agree():
    def hard(*rows):
        return [CommunityProfile(np.array(column, dtype=float), None) for column in np.array(rows).T]

    before = hard([1, 0], [1, 0], [0, 1], [0, 1])
    after = hard([1, 0], [1, 0], [0, 1], [0, 1])
    swapped = hard([0, 1], [0, 1], [1, 0], [1, 0])
    # Found as one community, which is nearer to neither: it counts for one of the two.
    joined = hard([1], [1], [1], [1])
    assert np.isnan(match(before, after).confidence).all()
    assert match(before, after, restarts=[swapped, after]).confidence.tolist() == [1, 1]
    assert match(before, after, restarts=[swapped, joined]).confidence.sum() == pytest.approx(1.5)


def test_profiles_hold_members_and_behaviour():
    groups = communities_of(
        [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]],
        ids=["b", "a", "z"],
        confusion=cg.ConfusionSnapshot(
            ids=["b", "a", "z"], concentration=[[[9, 1]], [[1, 9]], [[5, 5]]], classes=["x"], labels=[0, 1]
        ),
    )
    first, second = community_profiles(groups, NodeTable("volunteer", object_array(["a", "b", "c", "z"])))
    assert_array_equal(first.participation, [0.5, 1.0, np.nan, np.nan])
    assert_array_equal(second.participation, [0.5, 0.0, np.nan, np.nan])
    assert_allclose(second.confusion, [[0.1, 0.9]])
