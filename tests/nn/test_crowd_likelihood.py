"""The likelihood of a crowd's answers as a module: against loops written out, and in training loops."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.nn import AnswersByItem, CrowdLikelihood
from crowdgraph.tensors import AnswerMatrix

K, N, J, L = 3, 5, 2, 3


def columns_of(seed, *, n_answers=12, sizes=(K, N, L)):
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.integers(size, size=n_answers)) for size in sizes]


def answers_of(columns, *, sizes=(K, N, L)):
    return AnswerMatrix(*columns, n_volunteers=sizes[0], n_items=sizes[1], n_labels=sizes[2])


def module_of(seed, *, n_items=N, **options):
    rng = np.random.default_rng(seed)
    module = CrowdLikelihood(torch.tensor(rng.uniform(0.5, 4, (J, L))), n_volunteers=K, n_items=n_items, **options)
    module.confusion.copy_(torch.tensor(rng.uniform(0.5, 9, (K, J, L))))
    return module


def logits_of(seed, n_items=N):
    return torch.tensor(np.random.default_rng(seed).normal(size=(n_items, J)))


def gold_of(n_items=N):
    gold = torch.full((n_items, J), math.nan, dtype=torch.float64)
    gold[0] = torch.tensor([0.2, 0.8])
    return gold


def by_hand(module, logits, columns, gold):
    """The bound, the class probabilities and the counts, one answer after another."""
    alpha, prior = module.confusion.numpy(), np.broadcast_to(module.confusion_prior.numpy(), (K, J, L))
    weights = logits.numpy() - np.log(np.exp(logits.numpy()).sum(axis=1, keepdims=True))
    for volunteer, item, label in zip(*(column.tolist() for column in columns), strict=True):
        for j in range(J):
            weights[item, j] += digamma(alpha[volunteer, j, label]) - digamma(alpha[volunteer, j].sum())
    probs, bound = np.empty_like(weights), 0.0
    for item in range(len(weights)):
        probs[item] = np.exp(weights[item]) / np.exp(weights[item]).sum()
        if gold is not None and not gold[item].isnan().any():
            probs[item] = gold[item].numpy()
        bound += (probs[item] * (weights[item] - np.log(probs[item]))).sum()
    counts = np.zeros((K, J, L))
    for volunteer, item, label in zip(*(column.tolist() for column in columns), strict=True):
        counts[volunteer, :, label] += probs[item]
    for k in range(K):
        for j in range(J):
            a, b = alpha[k, j], prior[k, j]
            divergence = gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
            divergence += ((a - b) * (digamma(a) - digamma(a.sum()))).sum()
            bound -= divergence * len(logits) / module.n_items
    return bound, probs, counts


@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("n_items", [N, 20])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_the_batch_is_as_by_hand(with_gold, n_items, seed):
    module, logits, columns = module_of(seed, n_items=n_items), logits_of(seed), columns_of(seed)
    gold = gold_of() if with_gold else None
    bound, probs, counts = by_hand(module, logits, columns, gold)
    answers = answers_of(columns)
    torch.testing.assert_close(float(module(logits, answers, gold=gold)), bound)
    torch.testing.assert_close(module.posteriors(logits, answers, gold=gold).numpy(), probs)
    before, prior = module.confusion.clone(), module.confusion_prior
    module.update(logits, answers, gold=gold)
    step = 1.0 if n_items == N else (0 + 1.0) ** -0.7
    expected = (1 - step) * before + step * (prior + n_items / N * torch.tensor(counts))
    torch.testing.assert_close(module.confusion, expected)
    second = 1.0 if n_items == N else 2.0**-0.7
    _, _, counts = by_hand(module, logits, columns, gold)
    expected = (1 - second) * module.confusion + second * (prior + n_items / N * torch.tensor(counts))
    module.update(logits, answers, gold=gold)
    torch.testing.assert_close(module.confusion, expected)
    assert int(module.n_updates) == 2


def test_batches_add_up_to_all_items():
    module, logits, answers = module_of(1), logits_of(1), answers_of(columns_of(1))
    by_item, order = AnswersByItem(answers), torch.tensor([3, 0, 4, 2, 1])
    parts = [module(logits[batch], by_item.about(batch), gold=gold_of()[batch]) for batch in order.split(2)]
    torch.testing.assert_close(sum(parts), module(logits, answers, gold=gold_of()))


def test_gradients_are_right_and_do_not_reach_the_confusion():
    module, answers = module_of(2), answers_of(columns_of(2))
    logits = logits_of(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda values: module(values, answers, gold=gold_of()), logits)
    module(logits, answers).backward()
    expected = module.posteriors(logits, answers) - torch.softmax(logits, dim=1)
    torch.testing.assert_close(logits.grad, expected.detach())
    assert list(module.parameters()) == []
    assert not module.confusion.requires_grad


def test_the_forward_pass_leaves_the_confusion_alone():
    module, answers = module_of(3).train(), answers_of(columns_of(3))
    before = module.confusion.clone()
    module(logits_of(3), answers)
    assert torch.equal(module.confusion, before)


def test_exact_updates_never_lower_the_bound():
    module, answers, logits = module_of(4), answers_of(columns_of(4)), logits_of(4)
    bounds = []
    for _ in range(20):
        bounds.append(float(module(logits, answers)))
        module.update(logits, answers)
    assert np.diff(bounds).min() >= -1e-12
    assert bounds[-1] > bounds[0]


def test_logits_that_are_nan_do_not_reach_the_confusion():
    module, answers = module_of(0), answers_of(columns_of(0))
    logits = logits_of(0).detach()
    logits[1, 0] = torch.nan
    before = module.confusion.clone()
    with pytest.raises(ParameterError, match="logits that are NaN or infinite; the confusion was left as it is"):
        module.update(logits, answers)
    assert torch.equal(module.confusion, before)


def test_state_round_trips():
    module, answers = module_of(5), answers_of(columns_of(5))
    module.update(logits_of(5), answers, step=0.5)
    other = CrowdLikelihood(torch.ones(J, L, dtype=torch.float64), n_volunteers=K, n_items=N)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(logits_of(5), answers), module(logits_of(5), answers))
    assert int(other.n_updates) == 1


def test_a_prior_with_gradients_leaves_buffers_without():
    prior = torch.tensor([[4.0, 1.0], [1.0, 4.0]], requires_grad=True)
    likelihood = CrowdLikelihood(2 * prior, n_volunteers=2, n_items=2)
    assert not likelihood.confusion.requires_grad
    assert not likelihood.confusion_prior.requires_grad
    assert torch.equal(deepcopy(likelihood).confusion, likelihood.confusion)


def test_it_moves_with_to():
    module = module_of(6).to(torch.float32)
    assert module.confusion.dtype == torch.float32
    assert module.n_updates.dtype == torch.int64
    assert module.to("meta").confusion.device.type == "meta"
    assert repr(module) == "CrowdLikelihood(3 volunteers, 5 items, 2 classes, 3 labels)"


def test_single_precision_logits_meet_double_precision_confusion():
    module, answers = module_of(7), answers_of(columns_of(7))
    logits = logits_of(7).float().requires_grad_()
    module(logits, answers).backward()
    module.update(logits, answers)
    assert logits.grad.dtype == torch.float32
    assert module.confusion.dtype == torch.float64


def test_mini_batches_come_to_where_all_items_do():
    """A linear classifier and the confusion, trained in mini-batches, nearly reach the bound of exact training."""
    crowd = cg.simulate.crowd(n_volunteers=12, n_items=200, n_responses=600, gold=0, seed=0)
    answers = crowd.graph.answers
    matrix = AnswerMatrix(
        *(torch.tensor(column.astype(np.int64)) for column in (answers.volunteer, answers.item, answers.label)),
        n_volunteers=12,
        n_items=200,
        n_labels=2,
    )
    rows = torch.tensor(np.random.default_rng(0).normal(size=(200, 2)) + crowd.truth.classes[:, None])
    prior = torch.tensor([[4.0, 1.0], [1.0, 4.0]], dtype=torch.float64)

    def bound_after(batch_size, n_epochs):
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 2, dtype=torch.float64)
        likelihood = CrowdLikelihood(prior, n_volunteers=12, n_items=200)
        optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
        by_item = AnswersByItem(matrix)
        for _ in range(n_epochs):
            for batch in torch.randperm(200).split(batch_size):
                optimiser.zero_grad()
                about = by_item.about(batch)
                (-likelihood(net(rows[batch]), about)).backward()
                optimiser.step()
                likelihood.update(net(rows[batch]), about)
        return float(likelihood(net(rows), matrix).detach())

    exact = bound_after(200, 150)
    assert bound_after(200, 1) < exact - 20
    assert exact - 4 < bound_after(50, 40) < exact + 1


PRIOR = torch.ones(J, L)
BAD = [
    (lambda: CrowdLikelihood([[1.0]], n_volunteers=K, n_items=N), "must be a tensor"),
    (lambda: CrowdLikelihood(PRIOR.long(), n_volunteers=K, n_items=N), "floating-point"),
    (lambda: CrowdLikelihood(torch.ones(2, J, L), n_volunteers=K, n_items=N), r"shape \(2, 2, 3\); expected \(J, L\)"),
    (lambda: CrowdLikelihood(PRIOR - 1, n_volunteers=K, n_items=N), "above zero"),
    (lambda: CrowdLikelihood(PRIOR, n_volunteers=0, n_items=N), "n_volunteers=0"),
    (lambda: CrowdLikelihood(PRIOR, n_volunteers=K, n_items=0), "n_items=0"),
    (lambda: CrowdLikelihood(PRIOR, n_volunteers=K, n_items=N, power=0.5), "power=0.5"),
    (lambda: CrowdLikelihood(PRIOR, n_volunteers=K, n_items=N, delay=0), "delay=0"),
    (lambda: module_of(0)(torch.zeros(N, J + 1), answers_of(columns_of(0))), r"\(5, 3\); expected \(B, 2\)"),
    (lambda: module_of(0)(torch.zeros(N - 1, J), answers_of(columns_of(0))), "about 5 items"),
    (
        lambda: module_of(0)(torch.zeros(N, J), answers_of(columns_of(0)), gold=torch.zeros(1, J)),
        r"gold= has the shape",
    ),
    (lambda: module_of(0).update(torch.zeros(N, J), answers_of(columns_of(0)), step=2), "step=2"),
    (lambda: AnswersByItem(answers_of(columns_of(0))).about(torch.tensor([N])), "codes from 0 to 4"),
    (lambda: AnswersByItem(answers_of(columns_of(0))).about(torch.tensor([0.0])), "codes from 0 to 4"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_answers_about_a_batch_are_those_about_its_items(seed):
    columns = columns_of(seed)
    batch = torch.tensor(np.random.default_rng(seed).permutation(N)[:3])
    about = AnswersByItem(answers_of(columns)).about(batch)
    volunteer, item, label = (column.tolist() for column in (about.volunteer, about.item, about.label))
    got = sorted(zip(volunteer, batch[item].tolist(), label, strict=True))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert got == sorted(row for row in rows if row[1] in batch.tolist())
