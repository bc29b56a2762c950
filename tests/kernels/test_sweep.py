"""The two sweeps agree with each other and with a sweep that is written out response by response."""

import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import entr, logsumexp

from crowdgraph.kernels import _runtime, sweep
from crowdgraph.kernels.crowd_prior import class_variance
from crowdgraph.kernels.ranks import SharedSweep
from crowdgraph.kernels.sweep import (
    CompiledExpectations,
    CompiledSweep,
    ItemResponses,
    LocalExpectations,
    Streaming,
    TensorSweep,
    pair_variance,
    tensor_expectations,
)


def problem(seed, *, n_items=7, n_volunteers=4, n_labels=3, n_classes=3, n_responses=40, gold=2, soft=False):
    """Random responses in item order, random logarithms, and class probabilities of which some are known."""
    rng = np.random.default_rng(seed)
    item = np.sort(rng.integers(0, n_items, n_responses))
    volunteer, label = rng.integers(0, n_volunteers, n_responses), rng.integers(0, n_labels, n_responses)
    starts = np.searchsorted(item, np.arange(n_items + 1))
    responses = ItemResponses(
        torch.from_numpy(starts),
        torch.from_numpy((volunteer * n_labels + label).astype(np.int32)),
        n_volunteers,
        n_labels,
        shares=torch.from_numpy(rng.random(n_responses)) if soft else None,
    )
    logs = torch.from_numpy(rng.normal(0, 3, (n_volunteers, n_labels, n_classes)))
    class_logs = torch.from_numpy(rng.normal(size=n_classes))
    probs = torch.from_numpy(rng.dirichlet(np.ones(n_classes), n_items))
    fixed = torch.zeros(n_items, dtype=torch.bool)
    fixed[:gold] = True
    return responses, logs, class_logs, probs, fixed


def written_out(responses, logs, class_logs, probs, fixed):
    """The sweep in plain Python."""
    n_labels = responses.n_labels
    counts, evidence, updated = np.zeros(logs.shape), 0.0, probs.numpy().copy()
    shares = np.ones(len(responses.codes)) if responses.shares is None else responses.shares.numpy()
    for item in range(len(updated)):
        rows = slice(int(responses.starts[item]), int(responses.starts[item + 1]))
        answers = [
            (*divmod(code, n_labels), share)
            for code, share in zip(responses.codes[rows].tolist(), shares[rows], strict=True)
        ]
        weights = class_logs.numpy() + sum(
            (share * logs[k, label].numpy() for k, label, share in answers), np.zeros(len(class_logs))
        )
        if fixed[item]:
            evidence += updated[item] @ weights + entr(updated[item]).sum()
        else:
            evidence += logsumexp(weights)
            updated[item] = np.exp(weights - logsumexp(weights))
        for k, label, share in answers:
            counts[k, label] += share * updated[item]
    return updated, counts, evidence


def swept(sweeper, arguments):
    _, logs, class_logs, probs, fixed = arguments
    probs = probs.clone()
    before = probs.clone()
    result = sweeper(logs, class_logs, probs, fixed)
    assert float(result.change) == pytest.approx(float((probs - before).abs().max()), abs=1e-15)
    return probs.numpy(), result


def both_sweeps(responses, n_classes):
    return (
        CompiledSweep(responses, n_classes=n_classes),
        TensorSweep(responses, device=torch.device("cpu")),
    )


@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(2, 4),
    st.integers(1, 200),
    st.booleans(),
)
def test_both_sweeps_are_the_one_written_out(seed, n_items, n_volunteers, n_labels, n_classes, n_responses, soft):
    arguments = problem(
        seed,
        n_items=n_items,
        n_volunteers=n_volunteers,
        n_labels=n_labels,
        n_classes=n_classes,
        n_responses=n_responses,
        gold=n_items // 3,
        soft=soft,
    )
    updated, counts, evidence = written_out(*arguments)
    n_answers = np.diff(arguments[0].starts.numpy())[:, None]
    (compiled, tensor) = (swept(sweeper, arguments) for sweeper in both_sweeps(arguments[0], n_classes))
    assert (np.abs(compiled[0] - tensor[0]) <= 1e-12 * (1 + np.abs(updated)) * (1 + n_answers)).all()
    for probs, result in (compiled, tensor):
        assert (np.abs(probs - updated) <= 1e-12 * (1 + np.abs(updated)) * (1 + n_answers)).all()
        assert np.allclose(result.counts.numpy(), counts, rtol=1e-12, atol=1e-12 * n_responses)
        assert np.allclose(result.class_counts.numpy(), updated.sum(axis=0), rtol=1e-12)
        assert np.isclose(float(result.evidence), evidence, rtol=1e-12, atol=1e-12 * n_responses)


@pytest.mark.parametrize("responses_per_block", [1, 7, 1_000])
def test_blocks_give_the_same_and_leave_once_each(responses_per_block):
    """Responses that stream give the sums of those in memory; every item leaves memory once, in order."""
    arguments = problem(3, n_items=60, n_responses=400, gold=9)
    released = []
    streaming = Streaming(responses_per_block, lambda first, last: released.append((first, last)))
    streamed = CompiledSweep(arguments[0]._replace(streaming=streaming), n_classes=3)
    released.clear()
    probs, result = swept(streamed, arguments)
    assert [item for first, last in released for item in range(first, last)] == list(range(60))
    starts = arguments[0].starts
    assert all(last - first == 1 or starts[last] - starts[first] <= responses_per_block for first, last in released)
    expected_probs, expected = swept(CompiledSweep(arguments[0], n_classes=3), arguments)
    assert np.array_equal(probs, expected_probs)
    assert np.allclose(result.counts, expected.counts, rtol=1e-13)
    assert np.isclose(result.evidence, expected.evidence, rtol=1e-13)


@given(st.integers(0, 10**6), st.booleans())
def test_class_variance_is_the_one_of_the_answers(seed, shared):
    """Against `class_variance`, which goes over the answers in NumPy and has oracles of its own."""
    responses, logs, _, probs, _ = problem(seed)
    effect = logs[:1] if shared else logs
    item = np.repeat(np.arange(len(probs)), np.diff(responses.starts))
    volunteer, label = np.divmod(responses.codes.numpy(), responses.n_labels)
    expected = class_variance(
        volunteer, item, label, probs.numpy(), effect.transpose(1, 2).numpy(), n_volunteers=len(logs)
    )
    for sweeper in both_sweeps(responses, 3):
        assert np.allclose(sweeper.class_variance(probs, effect), expected, rtol=1e-11, atol=1e-11)


def test_processes_that_share_items_add_up_to_one():
    """Two processes with half of the items each reach the sums of one with all; here one after the other."""
    responses, logs, class_logs, probs, fixed = arguments = problem(5, n_items=20, n_responses=150)
    half = int(responses.starts[10])
    shares = [
        (responses._replace(starts=responses.starts[:11], codes=responses.codes[:half]), slice(0, 10)),
        (responses._replace(starts=responses.starts[10:] - half, codes=responses.codes[half:]), slice(10, 20)),
    ]
    alone = [CompiledSweep(share, n_classes=3) for share, _ in shares]

    class Partner:
        """The other process, whose part is known before."""

        rank, size = 0, 2

        def total(self, values):
            swept_there = alone[1](logs, class_logs, probs[10:].clone(), fixed[10:])
            evidence = torch.tensor([swept_there.evidence], dtype=torch.float64)
            return values + torch.cat([swept_there.counts.ravel(), swept_there.class_counts, evidence])

        def largest(self, value):
            return max(value, alone[1](logs, class_logs, probs[10:].clone(), fixed[10:]).change)

    together = SharedSweep(alone[0], Partner())(logs, class_logs, probs[:10].clone(), fixed[:10])
    _, expected = swept(CompiledSweep(responses, n_classes=3), arguments)
    assert np.allclose(together.counts, expected.counts, rtol=1e-13)
    assert np.allclose(together.class_counts, expected.class_counts, rtol=1e-13)
    assert np.isclose(together.evidence, expected.evidence, rtol=1e-13)
    assert together.change == expected.change


def test_threads_change_nothing_but_rounding(monkeypatch):
    """Any number of threads gives the same answer up to rounding, and the same number the same bits."""
    arguments = problem(0, n_items=900, n_volunteers=50, n_responses=6_000, gold=100)
    monkeypatch.setattr(sweep, "MIN_RESPONSES_PER_THREAD", 1_000)

    def swept_by(n_threads):
        monkeypatch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
        sweeper = CompiledSweep(arguments[0], n_classes=3)
        assert len(sweeper._tables) == n_threads
        return swept(sweeper, arguments)

    alone = swept_by(1)
    for n_threads in (1, 2, 3, 5):
        first, second = swept_by(n_threads), swept_by(n_threads)
        assert np.array_equal(first[0], alone[0])
        assert np.allclose(first[1].counts, alone[1].counts, rtol=1e-12)
        assert np.array_equal(first[1].counts.numpy(), second[1].counts.numpy())
        assert first[1].evidence == second[1].evidence


@pytest.mark.parametrize("compiled", [True, False])
def test_single_precision_is_nearly_as_good(compiled):
    arguments = problem(1, n_classes=2)
    exact = swept(CompiledSweep(arguments[0], n_classes=2), arguments)
    single = (
        CompiledSweep(arguments[0], n_classes=2, dtype=torch.float32)
        if compiled
        else TensorSweep(arguments[0], device=torch.device("cpu"))
    )
    logs, class_logs, probs = (tensor.float() for tensor in arguments[1:4])
    result = single(logs, class_logs, probs, arguments[4])
    assert probs.dtype == result.counts.dtype == result.class_counts.dtype == torch.float32
    assert np.allclose(probs.numpy(), exact[0], atol=1e-5)
    assert np.allclose(result.counts, exact[1].counts, atol=1e-5)
    assert float(result.evidence) == pytest.approx(exact[1].evidence, rel=1e-6)


def test_extreme_logarithms_do_not_overflow():
    responses, logs, class_logs, probs, fixed = problem(2, gold=0)
    for sweeper in both_sweeps(responses, 3):
        updated, result = swept(sweeper, (responses, logs * 1e5, class_logs, probs, fixed))
        assert np.isfinite(updated).all()
        assert np.isfinite(float(result.evidence))


def test_a_repeated_answer_counts_twice():
    """Sparse matrices must not lose duplicates."""
    responses = ItemResponses(torch.tensor([0, 2]), torch.tensor([1, 1], dtype=torch.int32), 1, 2)
    logs = torch.tensor([[[0.0, 0.0], [-1.0, -2.0]]], dtype=torch.float64)
    arguments = (responses, logs, torch.zeros(2, dtype=torch.float64), torch.full((1, 2), 0.5, dtype=torch.float64))
    for sweeper in both_sweeps(responses, 2):
        updated, result = swept(sweeper, (*arguments, torch.zeros(1, dtype=torch.bool)))
        assert np.allclose(updated, 1 / (1 + np.exp([[-2.0, 2.0]])))
        assert float(result.counts.sum()) == pytest.approx(2)


@given(st.integers(0, 10**6), st.booleans())
def test_compiled_expectations_are_those_of_tensors(seed, shared):
    rng = np.random.default_rng(seed)
    alpha = torch.from_numpy(rng.gamma(1, 5, (6, 3, 2)) + 1e-3)
    prior = torch.from_numpy(rng.gamma(1, 1, (1 if shared else 6, 3, 2)) + 1e-3)
    expectations = CompiledExpectations()
    for _ in range(2):
        compiled, tensor = expectations(alpha, prior), tensor_expectations(alpha, prior)
        assert torch.allclose(compiled[0], tensor[0], rtol=1e-12, atol=1e-12)
        assert np.isclose(compiled[1], tensor[1], rtol=1e-11)
        # Another prior may follow.
        prior = prior + 1


@given(st.integers(0, 10**6), st.booleans())
def test_local_expectations_are_those_of_tensors(seed, shared):
    """After any volunteers changed, and with another prior."""
    rng = np.random.default_rng(seed)
    alpha = torch.from_numpy(rng.gamma(1, 5, (6, 3, 2)) + 1e-3)
    prior = torch.from_numpy(rng.gamma(1, 1, (1 if shared else 6, 3, 2)) + 1e-3)
    expectations = LocalExpectations()
    for step in range(4):
        local, tensor = expectations(alpha, prior), tensor_expectations(alpha, prior)
        assert torch.allclose(local[0], tensor[0], rtol=1e-12, atol=1e-12)
        assert np.isclose(local[1], tensor[1], rtol=1e-11)
        # What was returned stays as it is.
        previous = local[0].clone()
        changed = torch.from_numpy(rng.random((6, 1, 1)) < 0.5)
        alpha = torch.where(changed, alpha * 1.5, alpha)
        expectations(alpha, prior)
        assert torch.equal(local[0], previous)
        prior = prior + 1 if step == 1 else prior


@given(st.integers(0, 10**6))
def test_pair_sums_give_the_variance_of_any_effect(seed):
    n_classes = 3
    rng = np.random.default_rng(seed)
    starts = torch.from_numpy(np.concatenate([[0], np.cumsum(rng.integers(0, 6, 40))]))
    codes = torch.from_numpy(rng.integers(0, 5 * 3, int(starts[-1])).astype(np.int32))
    sweeper = CompiledSweep(ItemResponses(starts, codes, 5, 3), n_classes=n_classes)
    logs, class_logs = torch.from_numpy(rng.normal(0, 1, (5, 3, n_classes))), torch.zeros(n_classes).double()
    probs = [torch.from_numpy(rng.dirichlet(np.ones(n_classes), 40)) for _ in range(2)]
    probs[1].copy_(probs[0])
    fixed = torch.from_numpy(rng.random(40) < 0.3)
    plain = sweeper(logs, class_logs, probs[0], fixed)
    swept, pair_sums = sweeper.with_pair_sums(logs, class_logs, probs[1], fixed)
    assert torch.equal(probs[0], probs[1])
    assert torch.equal(plain.counts, swept.counts)
    assert plain.evidence == swept.evidence
    for shape in ((5, 3, n_classes), (1, 3, n_classes)):
        effect = torch.from_numpy(rng.normal(0, 1, shape))
        expected = sweeper.class_variance(probs[0], effect)
        assert np.allclose(pair_variance(pair_sums, effect, 5), expected, rtol=1e-9, atol=1e-12)


def test_torch_gets_its_threads_back():
    """Also when fits overlap, and when one of them fails."""
    torch.set_num_threads(3)
    outer, inner = _runtime.single_threaded_torch(), _runtime.single_threaded_torch()
    with outer:
        with pytest.raises(ValueError, match="oops"), inner:
            raise ValueError("oops")
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


@pytest.mark.slow
def test_compiled_code_is_kept_on_disk():
    """A process loads what one before it compiled, be it a test's or the first of these, and compiles nothing."""
    code = (
        "import numpy as np\n"
        "from crowdgraph.kernels import sweep as sweeps\n"
        "sweeps.compile_sweep(2, np.dtype(np.uint32), np.dtype(float))\n"
        "kernels = [sweeps.sweep_for(2), sweeps._add_tables, sweeps._expectations]\n"
        "print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))\n"
    )
    runs = (subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2))
    assert any(run.stdout.strip() == "0" for run in runs)


def test_compiling_is_announced(capsys, monkeypatch):
    monkeypatch.setattr(_runtime, "NOTICE_AFTER", 0.01)
    with _runtime.compile_notice("something slow"):
        time.sleep(0.1)
    assert "compiling something slow; this happens once" in capsys.readouterr().err
    with _runtime.compile_notice("something fast"):
        pass
    assert capsys.readouterr().err == ""
