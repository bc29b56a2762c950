"""What labels would tell: all of them enumerated, the bound of the error, and where greedy may trust submodularity."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crowdgraph.allocation._information_gain import (
    PosteriorTree,
    Sharing,
    coalition_gain,
    row_information,
    single_gains,
)


@st.composite
def cases(draw, *, most=4):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_classes, n_labels = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    n_volunteers = draw(st.integers(0, most))
    sharp = draw(st.sampled_from([0.2, 1.0, 5.0]))
    probs = rng.dirichlet(np.full(n_classes, sharp))
    confusion = rng.dirichlet(np.full(n_labels, sharp), (n_volunteers, n_classes))
    # Some labels are never given, some classes impossible.
    if draw(st.booleans()):
        confusion[:, :, 0] = 0
        confusion /= confusion.sum(axis=2, keepdims=True)
    return probs, confusion


def entropy(probs):
    return -sum(p * np.log(p) for p in probs if p > 0)


def enumerated(probs, confusion):
    """The entropy before, less the expected entropy after, over all combinations of labels."""
    gain = entropy(probs)
    for labels in product(range(confusion.shape[2]), repeat=len(confusion)):
        joint = [p * np.prod([confusion[k, j, label] for k, label in enumerate(labels)]) for j, p in enumerate(probs)]
        chance = sum(joint)
        if chance > 0:
            gain -= chance * entropy([part / chance for part in joint])
    return gain


@given(cases())
def test_gain_is_that_of_all_labels(case):
    gain = coalition_gain(*case)
    assert gain.error == 0
    assert_allclose(gain.nats, enumerated(*case), atol=1e-10)


def erased(confusion, independence):
    """Confusion with one more label, which says nothing: what is given where the label is not an independent one."""
    nothing = np.broadcast_to((1 - independence)[:, None, None], (*confusion.shape[:2], 1))
    return np.concatenate([independence[:, None, None] * confusion, nothing], axis=2)


@given(cases(), st.lists(st.sampled_from([0.0, 0.2, 0.7, 1.0]), min_size=4, max_size=4))
def test_labels_that_may_add_nothing_are_those_with_an_erasure(case, independence):
    probs, confusion = case
    chances = np.array(independence[: len(confusion)])
    gain = coalition_gain(probs, confusion, independence=chances)
    assert gain.error == 0
    assert_allclose(gain.nats, enumerated(probs, erased(confusion, chances)), atol=1e-10)
    assert gain.nats <= coalition_gain(probs, confusion).nats + 1e-10
    # One more label adds its chance of what it would add as an independent one.
    tree = PosteriorTree(probs)
    for rows, chance in zip(confusion[:-1], chances[:-1], strict=True):
        tree.add_label(rows, independence=chance)
    if len(confusion):
        marginal = chances[-1] * tree.marginal_gain(confusion)[-1]
        assert_allclose(tree.gain.nats + marginal, gain.nats, atol=1e-10)
    few = coalition_gain(probs, confusion, independence=chances, max_states=4)
    assert few.nats - 1e-10 <= gain.nats <= few.nats + few.error + 1e-10


@given(cases())
def test_independent_labels_are_not_changed(case):
    probs, confusion = case
    assert coalition_gain(probs, confusion, independence=np.ones(len(confusion))) == coalition_gain(probs, confusion)
    assert_allclose(coalition_gain(probs, confusion, independence=np.zeros(len(confusion))).nats, 0, atol=1e-12)


def drawn_together(confusion, labels, j):
    """The probability that one uniform draw gives everybody their label."""
    low, high = 0.0, 1.0
    for k, label in enumerate(labels):
        low, high = max(low, confusion[k, j, :label].sum()), min(high, confusion[k, j, : label + 1].sum())
    return max(high - low, 0.0)


def enumerated_together(probs, confusion, community, chance):
    """As `enumerated`, where each community with its chance decides by one draw."""
    gain = entropy(probs)
    for labels in product(range(confusion.shape[2]), repeat=len(confusion)):
        joint = list(probs)
        for j in range(len(probs)):
            for one in set(community):
                members = [k for k, theirs in enumerate(community) if theirs == one]
                share = chance[one] if one >= 0 else 0.0
                alone = np.prod([confusion[k, j, labels[k]] for k in members])
                joint[j] *= (1 - share) * alone + share * drawn_together(
                    confusion[members], [labels[k] for k in members], j
                )
        total = sum(joint)
        if total > 1e-300:
            gain -= total * entropy([part / total for part in joint])
    return gain


@given(cases(), st.lists(st.integers(-1, 1), min_size=4, max_size=4), st.tuples(*[st.sampled_from([0, 0.3, 1])] * 2))
def test_shared_errors_are_those_of_all_labels(case, community, chance):
    probs, confusion = case
    sharing = Sharing(np.array(community[: len(confusion)], dtype=np.int64), np.array(chance))
    gain = coalition_gain(probs, confusion, sharing=sharing)
    assert gain.error == 0
    assert_allclose(gain.nats, enumerated_together(probs, confusion, sharing.community.tolist(), chance), atol=1e-10)
    # One more volunteer, without asking; and with few posteriors kept apart.
    tree = PosteriorTree(probs, chances=sharing.chance)
    for row, theirs in zip(confusion[:-1], sharing.community[:-1], strict=True):
        tree.add_label(row, int(theirs))
    marginal = tree.marginal_gain(confusion, sharing.community)
    if len(confusion):
        assert_allclose(tree.gain.nats + marginal[-1], gain.nats, atol=1e-10)
    few = coalition_gain(probs, confusion, sharing=sharing, max_states=4)
    assert few.nats <= gain.nats + 1e-10
    assert gain.nats <= few.nats + few.error + 1e-10


@pytest.mark.parametrize("n_classes", [9, 14, 20])
@pytest.mark.parametrize("max_states", [256, 4_096])
def test_many_classes_are_merged_with_care(n_classes, max_states):
    probs = np.full(n_classes, 1 / n_classes)
    row = np.full((n_classes, n_classes), 0.1 / (n_classes - 1))
    np.fill_diagonal(row, 0.9)
    gains = [coalition_gain(probs, np.repeat(row[None], m, axis=0), max_states=max_states) for m in range(7)]
    nats = [gain.nats for gain in gains]
    assert nats == sorted(nats)
    # One label is exact; several cannot tell more than all there is, nor less than two of them.
    assert_allclose(nats[1], enumerated(probs, row[None]), atol=1e-10)
    exact = enumerated(probs, np.repeat(row[None], 2, axis=0))
    assert nats[6] > 0.95 * exact
    for gain in gains:
        assert gain.error >= 0
        assert gain.nats + gain.error <= np.log(n_classes) + 1e-9


def test_those_who_err_together_tell_less():
    probs, confusion = np.array([0.5, 0.5]), np.tile([[0.8, 0.2], [0.2, 0.8]], (3, 1, 1))
    community = np.array([0, 0, 1])
    never, sometimes, always = (
        coalition_gain(probs, confusion, sharing=Sharing(community, np.array([chance, 0.0]))).nats
        for chance in (0.0, 0.5, 1.0)
    )
    assert never == pytest.approx(coalition_gain(probs, confusion).nats)
    assert never > sometimes > always
    # Two who always say the same tell what one of them does.
    assert always == pytest.approx(coalition_gain(probs, confusion[1:]).nats)


@given(cases(most=6), st.sampled_from([2, 3, 8, 30]))
def test_the_error_is_a_bound(case, max_states):
    exact, merged = coalition_gain(*case), coalition_gain(*case, max_states=max_states)
    assert exact.error == 0
    assert merged.nats <= exact.nats + 1e-10
    assert exact.nats <= merged.nats + merged.error + 1e-10
    assert merged.error >= 0


def test_many_volunteers_are_within_a_small_error():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet([3, 1, 1], (30, 2))
    confusion[:, 1] = confusion[:, 1, ::-1]
    gain = coalition_gain(np.array([0.6, 0.4]), confusion)
    assert 0 < gain.error < 1e-3
    assert gain.nats <= entropy([0.6, 0.4])


@given(cases(most=5))
def test_the_gain_of_one_more_volunteer_is_the_difference(case):
    probs, confusion = case
    if not len(confusion):
        return
    assert_allclose(
        single_gains(probs[None], confusion)[0],
        [coalition_gain(probs, one[None]).nats for one in confusion],
        atol=1e-10,
    )
    tree = PosteriorTree(probs)
    for one in confusion[:-1]:
        tree.add_label(one)
    before = tree.gain.nats
    marginal = tree.marginal_gain(confusion[-1:])[0]
    tree.add_label(confusion[-1])
    assert_allclose(marginal, tree.gain.nats - before, atol=1e-10)


@given(cases(most=4))
def test_gains_rise_and_are_submodular(case):
    """With labels that are independent given the class: the more were asked, the less one more tells."""
    probs, confusion = case
    n = len(confusion)
    gain = {
        members: coalition_gain(probs, confusion[list(members)]).nats
        for size in range(n + 1)
        for members in combinations(range(n), size)
    }
    for small in gain:
        for large in gain:
            for one in set(range(n)) - set(large):
                if set(small) <= set(large):
                    more = [gain[tuple(sorted((*members, one)))] - gain[members] for members in (small, large)]
                    assert more[0] >= more[1] - 1e-10
                    assert more[1] >= -1e-10


def test_labels_that_depend_on_each_other_are_not_submodular():
    """One of two who decide by one draw tells nothing alone; after the other, more than the other."""
    informative, uninformative = [[0.5, 0.5], [0.6, 0.4]], [[0.5, 0.5], [0.5, 0.5]]
    sharing = Sharing(np.zeros(2, dtype=int), np.ones(1))

    def gain(*members):
        return coalition_gain(np.full(2, 0.5), np.array(members), sharing=sharing.take(range(len(members)))).nats

    assert_allclose(gain(uninformative), 0, atol=1e-12)
    assert gain(informative, uninformative) - gain(informative) > gain(informative) > 0


@pytest.mark.parametrize("seed", range(4))
def test_what_is_learned_of_a_row_is_its_expected_loss_of_entropy(seed):
    """The information between a label and its Dirichlet, from the change of the Dirichlet's own entropy."""
    from scipy.stats import dirichlet

    rows = np.random.default_rng(seed).gamma(2, 2, 3) + 0.1
    mean = rows / rows.sum()
    after = sum(p * dirichlet(rows + np.eye(3)[label]).entropy() for label, p in enumerate(mean))
    assert_allclose(row_information(rows), dirichlet(rows).entropy() - after, rtol=1e-8)
