"""The scan of Dynamic IBCC is the exact joint Gaussian of a volunteer's steps, and never leaves the numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.random_steps import EITHER, HARD, SOFT, random_crowd, random_truth
from numpy.testing import assert_allclose
from oracles.dglm import Sequence, joint_published, joint_weighted, recursion
from scipy.special import digamma

from crowdgraph.kernels import _runtime, dglm_compiled, dynibcc
from crowdgraph.kernels.dglm import TensorScan
from crowdgraph.kernels.dglm_compiled import (
    CompiledScan,
    Workspace,
    filter_weighted,
    shares_array,
    smooth_weighted,
    split_work,
)
from crowdgraph.kernels.dglm_published import filter_published, smooth_published
from crowdgraph.kernels.dynibcc import CompiledLikelihood, ItemSteps, TensorLikelihood
from crowdgraph.tensors.dynibcc import Steps, dirichlet_rows, filter_states, predict_states, smooth_states

STAGES = ("predicted", "filtered", "smoothed")
seeds = st.integers(0, 10**6)
truths = st.sampled_from([HARD, SOFT, EITHER])
sizes = st.sampled_from([2, 2, 3, 3, 4])


@st.composite
def sequences(draw):
    """One volunteer's steps, the prior, the truth and the noise scale."""
    rng = np.random.default_rng(draw(seeds))
    crowd = random_crowd(
        rng,
        [draw(st.integers(1, 12))],
        draw(sizes),
        draw(st.integers(2, 4)),
        kind=draw(truths),
        drift=draw(st.sampled_from([0, 0.3])),
        unanswered=draw(st.sampled_from([0, 0.3])),
        soft_answers=draw(st.booleans()),
    )
    return *crowd, draw(st.just(0) | st.floats(0, 3))


def shares_of(label, steps):
    """The share of each answer that a label has; zero where no answer is soft."""
    return np.zeros(len(steps.item)) if steps.shares is None else steps.shares[:, label].numpy()


def seen_by(label, steps, prior, probs, noise_scale):
    """Return the input of the oracle: the steps of one volunteer, as one label sees them."""
    given_labels, table = steps.label.tolist(), prior.numpy()[0]
    return Sequence(
        truth=probs.numpy()[steps.item.numpy()],
        hit=[
            None if given_label < 0 else given_label == label if steps.shares is None else float(share)
            for given_label, share in zip(given_labels, shares_of(label, steps), strict=True)
        ],
        weight=steps.weight.numpy(),
        drift=steps.drift.numpy(),
        hits=table[:, label],
        misses=np.delete(table, label, axis=1).sum(axis=1),
        noise_scale=noise_scale,
    )


def compiled_states(label, steps, prior, probs, noise_scale, *, stage, published):
    """Means and covariances of one volunteer and label from the compiled filter and smoother."""
    sequence, n_classes, n_steps = seen_by(label, steps, prior, probs, noise_scale), prior.shape[1], len(steps.item)
    workspace = Workspace.for_steps(n_steps, 1, n_classes, published=published)
    columns = [column.numpy() for column in (steps.item, steps.label, steps.weight, steps.drift)]
    columns.append(shares_array(steps))
    hits, misses = (np.ascontiguousarray(part) for part in (sequence.hits, sequence.misses))
    first = (np.log(hits / misses), np.diag(1 / hits + 1 / misses)) if published else (hits[None], misses[None])
    start = (*first, float(noise_scale), stage == "predicted")
    classes = tuple(range(n_classes))
    run, smooth = (filter_published, smooth_published) if published else (filter_weighted, smooth_weighted)
    run(classes, 0, n_steps, label, *columns, probs.numpy(), *start, *workspace)
    if stage == "smoothed":
        smooth(classes, n_steps, *workspace)
    if published:
        return workspace.first, workspace.second
    hits, misses = workspace.first[:, 0], workspace.second[:, 0]
    return np.log(hits / misses), (1 / hits + 1 / misses)[:, :, None] * np.eye(n_classes)


def tensor_states(label, steps, prior, probs, noise_scale, *, stage, published):
    """Means and covariances of one volunteer and label from the filter and smoother of tensors."""
    filtered = filter_states(steps, prior, probs=probs, noise_scale=noise_scale, published=published)
    states = {
        "predicted": lambda: predict_states(steps, prior, filtered=filtered),
        "filtered": lambda: filtered.states,
        "smoothed": lambda: smooth_states(steps, filtered),
    }[stage]()
    covariance = states.covariance if published else torch.diag_embed(states.covariance)
    return states.mean[:, label].numpy(), covariance[:, label].numpy()


def largest_difference(actual, expected):
    """How far means and covariances are apart."""
    return max(float(np.abs(one - other).max()) for one, other in zip(actual, expected, strict=True))


# The joint Gaussian.


@pytest.mark.slow
@pytest.mark.parametrize("published", [True, False])
@given(sequences())
def test_states_are_those_of_the_joint_gaussian(published, sequence):
    for label in range(sequence[1].shape[2]):
        exact = (joint_published if published else joint_weighted)(seen_by(label, *sequence))
        for stage in STAGES:
            for states_of in (tensor_states, compiled_states):
                states = states_of(label, *sequence, stage=stage, published=published)
                assert largest_difference(states, exact[stage]) < 1e-10


@given(sequences())
def test_the_corrected_recursion_is_the_joint_gaussian(sequence):
    sequence = seen_by(0, *sequence)
    exact, actual = joint_published(sequence), recursion(sequence)
    assert max(largest_difference(actual[stage], exact[stage]) for stage in STAGES) < 1e-10


# The errata of the paper.


def sensible(n_steps=30):
    """A volunteer who says yes to most items of one class and to few of the other, whose truth is nearly known."""
    rng = np.random.default_rng(0)
    truth = np.array([[0.9, 0.1], [0.2, 0.8]])[rng.integers(0, 2, n_steps)]
    hit = (rng.random(n_steps) < np.where(truth[:, 0] > 0.5, 0.8, 0.3)).tolist()
    return Sequence(
        truth, hit, np.ones(n_steps), np.full(n_steps, 0.02), np.array([2.0, 1.0]), np.array([1.0, 2.0]), 1.0
    )


def test_erratum_1_the_printed_covariance():
    """The paper multiplies all of (I - K h') P by 1 - r' / r; only what the answer took away is to be."""
    sequence = sensible()
    exact = joint_published(sequence)
    assert largest_difference(recursion(sequence)["filtered"], exact["filtered"]) < 1e-12
    printed = recursion(sequence, printed_covariance=True)
    for stage in STAGES:
        for part in range(2):
            assert np.abs(printed[stage][part] - exact[stage][part]).max() > 0.1


def test_erratum_1_an_answer_that_tells_nothing_would_tell_all():
    sequence = sensible(1)._replace(weight=np.array([1e-9]))
    known = np.diag(1 / sequence.hits + 1 / sequence.misses) + 0.02 * np.eye(2)
    assert np.allclose(recursion(sequence)["filtered"][1][0], known, atol=1e-8)
    assert np.abs(recursion(sequence, printed_covariance=True)["filtered"][1]).max() < 1e-8


def test_erratum_2_the_printed_smoother():
    """The paper goes back with the full gain, and without a transpose on the left."""
    sequence = sensible()
    exact = joint_published(sequence)
    printed = recursion(sequence, printed_smoother=True)
    assert largest_difference(printed["filtered"], exact["filtered"]) < 1e-12
    for part in range(2):
        assert np.abs(printed["smoothed"][part] - exact["smoothed"][part]).max() > 0.1


def test_erratum_2_only_the_next_answer_would_be_heard():
    """With known truth, a printed smoother that hears one more answer about a class is deaf to all later ones."""
    first = sensible()._replace(truth=np.tile([1.0, 0.0], (30, 1)), noise_scale=0.0)
    other = first._replace(hit=[*first.hit[:2], *(not hit for hit in first.hit[2:])])
    printed, exact = (
        [recursion(one, printed_smoother=wrong)["smoothed"][0][0] for one in (first, other)] for wrong in (True, False)
    )
    assert np.allclose(*printed, atol=1e-12)
    assert np.abs(exact[0] - exact[1]).max() > 0.1


# Static IBCC is the case without noise.


@given(seeds, sizes, st.integers(2, 4), truths, st.booleans())
def test_without_noise_every_step_has_the_static_counts(seed, n_classes, n_labels, kind, published):
    rng = np.random.default_rng(seed)
    kind = HARD if published else kind
    steps, prior, probs = random_crowd(rng, [9, 0, 1, 14], n_classes, n_labels, kind=kind, drift=0)
    volunteer = np.repeat(np.arange(4), [9, 0, 1, 14])
    counts, answered = prior.numpy().copy(), steps.label.numpy() >= 0
    shares = (steps.weight[:, None] * probs[steps.item.long()]).numpy()[answered]
    np.add.at(counts, (volunteer[answered], slice(None), steps.label.numpy()[answered]), shares)
    expected = counts[volunteer]
    for scan in (CompiledScan(steps, prior, published=published), TensorScan(steps, prior, published=published)):
        actual = scan(probs, noise_scale=0, stage="smoothed").numpy()
        assert np.allclose(actual, expected, rtol=1e-10, atol=1e-10)


# The two scans.


@pytest.mark.slow
@given(
    seeds,
    st.lists(st.integers(0, 25), min_size=1, max_size=6),
    sizes,
    st.integers(2, 4),
    truths,
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_both_scans_agree(seed, counts, n_classes, n_labels, kind, shared, published, n_threads):
    """For any crowd and number of threads; few steps are enough for several here."""
    rng = np.random.default_rng(seed)
    steps, prior, probs = random_crowd(rng, counts, n_classes, n_labels, kind=kind, shared=shared)
    noise_scale = rng.uniform(0, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dglm_compiled, "MIN_STEPS_PER_THREAD", 5)
        patch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        compiled, tensor = (
            CompiledScan(steps, prior, published=published),
            TensorScan(steps, prior, published=published),
        )
        for stage in STAGES:
            actual = compiled(probs, noise_scale=noise_scale, stage=stage).numpy().copy()
            assert actual.shape == (sum(counts), n_classes, n_labels)
            assert np.allclose(actual, tensor(probs, noise_scale=noise_scale, stage=stage), rtol=1e-10, atol=0)
            assert np.array_equal(actual, compiled(probs, noise_scale=noise_scale, stage=stage))


@pytest.mark.parametrize("published", [True, False])
def test_a_busy_volunteer_is_split_by_label(monkeypatch, published):
    """The same bits for any number of threads, and for scans of other stages between."""
    rng = np.random.default_rng(0)
    counts = [3, 60, 0, 2, 50, *[2] * 35]
    steps, prior, probs = random_crowd(rng, counts, 3, 3)
    monkeypatch.setattr(dglm_compiled, "MIN_STEPS_PER_THREAD", 10)
    actual = {}
    for n_threads in (1, 2, 3, 7):
        monkeypatch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        scan = CompiledScan(steps, prior, published=published)
        tasks = split_work(np.array(counts), 3)
        assert len(tasks) == n_threads
        split = {int(own[0]) for part in tasks for own, first, last in part if last - first < 3}
        assert split == ({1, 4} if n_threads > 1 else set())
        for stage in (*STAGES, *STAGES):
            bits = scan(probs, noise_scale=1.5, stage=stage).numpy().copy()
            assert np.array_equal(bits, actual.setdefault(stage, bits))
    tensor = TensorScan(steps, prior, published=published)
    for stage in STAGES:
        assert np.allclose(actual[stage], tensor(probs, noise_scale=1.5, stage=stage), rtol=1e-10, atol=0)


@given(st.lists(st.integers(0, 50) | st.integers(0, 2000), max_size=30), st.integers(1, 5), st.integers(1, 9))
def test_every_step_is_scanned_once(counts, n_labels, n_threads):
    counts = np.array(counts, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dglm_compiled, "MIN_STEPS_PER_THREAD", 10)
        patch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        tasks = split_work(counts, n_labels)
    assert len(tasks) == max(1, min(n_threads, counts.sum() // 10))
    covered = np.zeros((len(counts), n_labels), dtype=int)
    for volunteers, first, last in (task for part in tasks for task in part):
        assert np.array_equal(volunteers, np.sort(volunteers))
        covered[volunteers, first:last] += 1
    assert np.array_equal(covered, np.tile((counts > 0)[:, None], n_labels))
    # Nobody has more to do than a fair share and one task more.
    work = [sum(int(counts[own].sum()) * (last - first) for own, first, last in part) for part in tasks]
    pieces = [counts[own].max() * (last - first) for part in tasks for own, first, last in part]
    assert max(work) <= sum(work) / len(work) + max(pieces, default=0)


def test_nobody_answered():
    steps = Steps(torch.zeros(4, dtype=torch.int64), *(torch.zeros(0, dtype=torch.int16),) * 2, *(torch.zeros(0),) * 2)
    steps = steps._replace(weight=steps.weight.double(), drift=steps.drift.double(), item=steps.item.int())
    prior, probs = torch.ones(1, 2, 3, dtype=torch.float64), torch.full((5, 2), 0.5, dtype=torch.float64)
    for published in (True, False):
        for scan in (CompiledScan(steps, prior, published=published), TensorScan(steps, prior, published=published)):
            assert all(scan(probs, noise_scale=1, stage=stage).shape == (0, 2, 3) for stage in STAGES)


# From labels to rows.


def betas(rng, n_labels, *, equal=False, sure=True):
    """Counts for and against labels: means that add up to one if `sure`, and totals that may differ."""
    total = np.full(n_labels, rng.uniform(0.1, 50)) if equal else np.exp(rng.uniform(-3, 5, n_labels))
    mean = rng.dirichlet(np.ones(n_labels)) if sure else rng.uniform(0.01, 0.99, n_labels)
    return torch.from_numpy(mean * total), torch.from_numpy((1 - mean) * total), mean, total


@given(seeds, st.integers(2, 5))
def test_rows_of_equal_totals_are_the_counts(seed, n_labels):
    hits, misses, _, _ = betas(np.random.default_rng(seed), n_labels, equal=True)
    assert torch.allclose(dirichlet_rows(hits, misses, published=False), hits, rtol=1e-12)
    assert dirichlet_rows(hits, misses, published=True) is hits


@given(seeds)
def test_rows_of_two_labels_are_the_counts(seed):
    """What is for the one label is against the other, so that their totals are the same."""
    hits = torch.from_numpy(np.random.default_rng(seed).gamma(1, 5, (3, 2)) + 1e-9)
    assert torch.allclose(dirichlet_rows(hits, hits.flip(-1), published=False), hits, rtol=1e-12)


@given(seeds, st.integers(2, 5))
def test_rows_keep_means_and_the_total_variance(seed, n_labels):
    """Of probabilities whose log odds have variance 1 / a + 1 / b, which is p (1 - p) / n to first order."""
    hits, misses, mean, total = betas(np.random.default_rng(seed), n_labels)
    row = dirichlet_rows(hits, misses, published=False).numpy()
    assert np.allclose(row / row.sum(), mean, rtol=1e-12)
    spread = mean * (1 - mean)
    assert np.allclose(spread.sum() / row.sum(), (spread / total).sum(), rtol=1e-12)


@given(seeds, st.integers(2, 5))
def test_rows_whose_means_do_not_add_up(seed, n_labels):
    """Their ratios stay, and the row counts as much as something between its labels."""
    hits, misses, mean, total = betas(np.random.default_rng(seed), n_labels, sure=False)
    row = dirichlet_rows(hits, misses, published=False).numpy()
    assert np.allclose(row / row.sum(), mean / mean.sum(), rtol=1e-12)
    assert total.min() * (1 - 1e-12) <= row.sum() <= total.max() * (1 + 1e-12)


@settings(max_examples=20)
@given(seeds, st.floats(0, 3), st.booleans())
def test_two_labels_need_no_join(seed, noise_scale, published):
    """The states of two labels mirror each other, so that a row's counts are those of both."""
    rng = np.random.default_rng(seed)
    steps, prior, probs = random_crowd(rng, [12], 2, 2)
    mean, covariance = compiled_states(0, steps, prior, probs, noise_scale, stage="smoothed", published=published)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    expected = np.stack([(1 + np.exp(mean)) / variance, (1 + np.exp(-mean)) / variance], axis=2)
    actual = CompiledScan(steps, prior, published=published)(probs, noise_scale=noise_scale, stage="smoothed")
    assert np.allclose(actual, expected, rtol=1e-10, atol=0)


# Extremes.


@st.composite
def extremes(draw):
    """Crowds of which everything may be tiny, huge or exactly zero."""
    rng = np.random.default_rng(draw(seeds))
    n_classes, n_labels, n_items = draw(sizes), draw(st.integers(2, 4)), 6
    longest = draw(st.sampled_from([4, 40, 400]))
    counts = rng.integers(0, longest, 4).tolist()
    n_steps = sum(counts)
    tiny = draw(st.sampled_from([0.0, 1e-300, 1e-12, 1e-6]))
    probs = random_truth(rng, n_items, n_classes, draw(truths))
    probs = np.where(rng.random(probs.shape) < 0.5, tiny, probs)
    probs[probs.sum(1) < 1e-6, 0] = 1
    probs /= probs.sum(1, keepdims=True)
    exponent = draw(st.sampled_from([(-12, -12), (8, 8), (-12, 8), (-12, 0), (-1, 1)]))
    drift = draw(st.sampled_from([0.0, 1e-12, 1.0, 1e6])) * (rng.random(n_steps) < draw(st.sampled_from([0.1, 1.0])))
    steps = Steps(
        starts=torch.tensor([0, *np.cumsum(counts)]),
        item=torch.from_numpy(rng.integers(0, n_items, n_steps).astype(np.int32)),
        label=torch.from_numpy(rng.integers(draw(st.sampled_from([-1, 0])), n_labels, n_steps).astype(np.int16)),
        weight=torch.from_numpy(10.0 ** rng.uniform(draw(st.sampled_from([-12, 0])), 0, n_steps)),
        drift=torch.from_numpy(drift),
    )
    if draw(st.booleans()):
        steps.label.clamp_(max=0)
    prior = torch.from_numpy(10.0 ** rng.uniform(*exponent, (4, n_classes, n_labels)))
    if draw(st.booleans()):
        prior = torch.where(torch.from_numpy(rng.random(prior.shape) < 0.5), 1e-12, 1.0).double()
    return steps, prior, torch.from_numpy(probs), draw(st.sampled_from([0.0, 1e-12, 1.0, 1e3]))


def is_positive(values):
    values = np.asarray(values)
    return bool(np.isfinite(values).all() and (values > 0).all())


@given(extremes())
def test_extremes_stay_positive_and_finite(crowd):
    steps, prior, probs, noise_scale = crowd
    for stage in STAGES:
        for published in (True, False):
            compiled = CompiledScan(steps, prior, published=published)(probs, noise_scale=noise_scale, stage=stage)
            assert is_positive(compiled)
        if len(steps.item) < 200:
            tensor = TensorScan(steps, prior, published=False)(probs, noise_scale=noise_scale, stage=stage)
            assert is_positive(tensor)


@given(extremes())
def test_covariances_of_extremes_are_positive(crowd):
    steps, prior, probs, noise_scale = crowd
    last = int(steps.starts[1])
    steps = steps.at(torch.arange(last), steps.starts[:2])
    for stage in STAGES:
        mean, covariance = compiled_states(0, steps, prior, probs, noise_scale, stage=stage, published=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(covariance).all()
        assert is_positive(np.diagonal(covariance, axis1=1, axis2=2))
        deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        assert (np.abs(covariance) <= deviation[:, :, None] * deviation[:, None, :] * (1 + 1e-9)).all()


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize(("noise_scale", "drift"), [(0, 0), (1e3, 0), (1, 1e-3), (1e3, 1e6)])
@pytest.mark.parametrize("rows_of_prior", [[[1e-12, 1.0], [1.0, 1e-12]], [[1e8, 1e8], [1e-12, 1e-12]]])
@pytest.mark.parametrize("truth", [[1.0, 0.0], [1 - 1e-12, 1e-12], [0.6, 0.4]])
def test_very_long_sequences_of_one_answer(published, noise_scale, drift, rows_of_prior, truth):
    n_steps = 100_000
    steps = Steps(
        torch.tensor([0, n_steps]),
        torch.zeros(n_steps, dtype=torch.int32),
        torch.zeros(n_steps, dtype=torch.int16),
        torch.ones(n_steps, dtype=torch.float64),
        torch.full((n_steps,), float(drift), dtype=torch.float64),
    )
    prior = torch.tensor([rows_of_prior], dtype=torch.float64)
    scan = CompiledScan(steps, prior, published=published)
    for stage in STAGES:
        actual = scan(torch.tensor([truth], dtype=torch.float64), noise_scale=noise_scale, stage=stage)
        assert is_positive(actual)


# The likelihood of answers.


def likelihood_case(seed, n_items, n_steps, n_classes, n_labels):
    """Return steps, the same by item, and the arguments of a likelihood; some items are fixed, some of them certain."""
    rng = np.random.default_rng(seed)
    n_volunteers = 4
    counts = rng.multinomial(n_steps, np.full(n_volunteers, 1 / n_volunteers)).tolist()
    steps, _, probs = random_crowd(rng, counts, n_classes, n_labels, n_items=n_items)
    order = np.argsort(steps.item.numpy(), kind="stable")
    starts = np.searchsorted(steps.item.numpy()[order], np.arange(n_items + 1))
    item_steps = ItemSteps(torch.from_numpy(starts), torch.from_numpy(order))
    concentration = torch.from_numpy(rng.gamma(1, 4, (n_steps, n_classes, n_labels)) + 1e-3)
    fixed = torch.from_numpy(rng.random(n_items) < 0.3)
    # Computed probabilities are never exactly zero.
    probs = torch.where(fixed[:, None], probs, (probs + 1e-6) / (1 + n_classes * 1e-6))
    class_logs = torch.from_numpy(np.log(rng.dirichlet(np.ones(n_classes))))
    return steps, item_steps, concentration, class_logs, probs, fixed


def written_out(steps, concentration, class_logs, probs, fixed):
    """Compute the likelihood in plain Python, step by step."""
    n_steps, n_classes, _ = concentration.shape
    table, probs = concentration.numpy(), probs.numpy()
    logs, totals = np.zeros((n_steps, n_classes)), np.tile(class_logs.numpy(), (len(probs), 1))
    left_out, expected = [], []
    for step in range(n_steps):
        label, item, weight = int(steps.label[step]), int(steps.item[step]), float(steps.weight[step])
        if label < 0:
            continue
        for j in range(n_classes):
            logs[step, j] = weight * (digamma(table[step, j, label]) - digamma(table[step, j].sum()))
        totals[item] += logs[step]
        predicted = np.array([table[step, j, label] / table[step, j].sum() for j in range(n_classes)])
        without = probs[item] if fixed[item] else probs[item] * np.exp(logs[step].min() - logs[step])
        left_out.append(weight * math.log(without @ predicted / without.sum()))
        expected.append(weight * float(probs[item] @ np.log(predicted)))
    actual = np.exp(totals - totals.max(axis=1, keepdims=True))
    actual /= actual.sum(axis=1, keepdims=True)
    actual[fixed.numpy()] = probs[fixed.numpy()]
    return logs, actual, (math.fsum(left_out), math.fsum(expected))


@given(seeds, st.integers(1, 20), st.integers(1, 120), sizes, st.integers(2, 4), st.integers(1, 3))
def test_likelihoods_are_the_one_written_out(seed, n_items, n_steps, n_classes, n_labels, n_threads):
    steps, item_steps, concentration, class_logs, probs, fixed = likelihood_case(
        seed, n_items, n_steps, n_classes, n_labels
    )
    logs, new_probs, predictive = written_out(steps, concentration, class_logs, probs, fixed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynibcc, "MIN_STEPS_PER_THREAD", 10)
        patch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        for likelihood in (
            CompiledLikelihood(steps, item_steps, n_classes=n_classes),
            TensorLikelihood(steps),
        ):
            actual = likelihood.logs(concentration)
            assert np.allclose(actual, logs, rtol=1e-10, atol=1e-10)
            assert np.allclose(
                likelihood.predictive(concentration, actual, probs, fixed), predictive, rtol=1e-10, atol=1e-10
            )
            changed = probs.clone()
            change = likelihood.update_items(actual, class_logs, changed, fixed)
            assert np.allclose(changed, new_probs, rtol=1e-10, atol=1e-10)
            assert change == pytest.approx(float((changed - probs).abs().max()), abs=1e-15)
            assert torch.equal(changed[fixed], probs[fixed])
            sums = torch.zeros_like(probs)
            likelihood.add_to_items(actual, sums)
            for item in range(n_items):
                assert np.allclose(sums[item], logs[(steps.item == item).numpy()].sum(0), rtol=1e-10, atol=1e-10)


def test_an_unanswered_step_carries_no_information():
    steps, item_steps, concentration, class_logs, probs, fixed = likelihood_case(0, 5, 30, 2, 3)
    steps.label.fill_(-1)
    fixed.fill_(False)
    for likelihood in (CompiledLikelihood(steps, item_steps, n_classes=2), TensorLikelihood(steps)):
        logs = likelihood.logs(concentration)
        assert not logs.any()
        assert likelihood.predictive(concentration, logs, probs, fixed) == (0, 0)
        changed = probs.clone()
        likelihood.update_items(logs, class_logs, changed, fixed)
        assert np.allclose(changed, class_logs.exp(), rtol=1e-12)


# Going on from where a filter ended.


def split_each(steps, rng):
    """Cut every volunteer's steps in two; return the first and the second part."""
    starts = steps.starts.tolist()
    cuts = [first + int(rng.integers(0, last - first + 1)) for first, last in pairwise(starts)]
    parts = []
    for bounds in (zip(starts, cuts, strict=False), zip(cuts, starts[1:], strict=True)):
        ranges = [range(*pair) for pair in bounds]
        index = torch.tensor([step for one in ranges for step in one], dtype=torch.int64)
        lengths = [len(one) for one in ranges]
        parts.append(steps.at(index, torch.tensor([0, *np.cumsum(lengths)])))
    return parts


@pytest.mark.parametrize("kind", [CompiledScan, TensorScan])
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_filter_goes_on_from_where_it_ended(kind, published, seed):
    rng = np.random.default_rng(seed)
    steps, prior, probs = random_crowd(rng, [9, 0, 14, 1, 6], 2 + seed % 2, 3, shared=seed == 2)
    whole = kind(steps, prior, published=published)
    earlier, later = split_each(steps, rng)
    before = kind(earlier, prior, published=published)
    _, middle = before.with_last_states(probs, noise_scale=0.8, stage="filtered")
    rest = kind(later, middle, published=published)
    for stage in ("filtered", "predicted"):
        expected = whole(probs, noise_scale=0.8, stage=stage).clone()
        actual = rest(probs, noise_scale=0.8, stage=stage)
        for k, (first, last) in enumerate(pairwise(later.starts.tolist())):
            end = int(steps.starts[k + 1])
            assert_allclose(actual[first:last], expected[end - (last - first) : end], rtol=1e-12)
    for stage in ("predicted", "filtered", "smoothed"):
        ends = [scan.with_last_states(probs, noise_scale=0.8, stage=stage)[1] for scan in (rest, whole)]
        for actual, expected in zip(*ends, strict=True):
            assert_allclose(actual, expected.expand_as(actual), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", [CompiledScan, TensorScan])
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("stage", ["predicted", "filtered", "smoothed"])
def test_last_states_come_with_what_a_scan_returns(kind, published, stage):
    steps, prior, probs = random_crowd(np.random.default_rng(8), [9, 0, 14, 1], 3, 3)
    scan = kind(steps, prior, published=published)
    expected = scan(probs, noise_scale=0.8, stage=stage).clone()
    actual, _ = scan.with_last_states(probs, noise_scale=0.8, stage=stage)
    assert torch.equal(actual, expected)
