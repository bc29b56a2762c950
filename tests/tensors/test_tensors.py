"""The public functions of tensors: written out in NumPy, differentiable, and what fits are made of."""

import copy

import numpy as np
import pytest
import torch
from builders import crowd
from hypothesis import given
from hypothesis import strategies as st
from kernels.random_steps import SOFT, random_crowd
from scipy.special import digamma, gammaln
from torch.autograd import gradcheck

import crowdgraph as cg
from crowdgraph import tensors
from crowdgraph.errors import ParameterError
from crowdgraph.tensors import devices

seeds = st.integers(0, 10**6)
SIZES = {"n_volunteers": 4, "n_items": 6, "n_labels": 3}
N_CLASSES = 2


def random_answers(rng, n=25):
    """Answers and unanswered items, as codes."""
    columns = [rng.integers(0, SIZES["n_volunteers"], n), rng.integers(0, 6, n), rng.integers(-1, 3, n)]
    return tuple(map(torch.from_numpy, columns))


def positive(rng, *shape):
    """Concentrations whose gradients are asked for."""
    return torch.from_numpy(rng.gamma(2, 2, shape) + 0.2).requires_grad_()


def random_gold(rng):
    """Gold for three items: one certain, two not."""
    gold = np.full((6, N_CLASSES), np.nan)
    gold[0], gold[2:4] = [1, 0], rng.dirichlet(np.ones(N_CLASSES), 2)
    return torch.from_numpy(gold)


@pytest.fixture(params=["sparse products", "sums by index"])
def either_sum(request, monkeypatch):
    """Run on a device with and without sparse matrices."""
    if request.param == "sums by index":
        monkeypatch.setitem(devices.LIMITS, "cpu", devices.DeviceLimits(sparse=False))


# Oracles


def seven_terms(columns, q, alpha, nu, alpha0, nu0):
    """The terms of the paper's bound, one after the other, in loops."""
    volunteer, item, label = (column.numpy() for column in columns)
    log_pi, log_kappa = digamma(alpha) - digamma(alpha.sum(2, keepdims=True)), digamma(nu) - digamma(nu.sum())
    answers = sum(
        q[i, j] * log_pi[k, j, c]
        for k, i, c in zip(volunteer, item, label, strict=True)
        if c >= 0
        for j in range(len(nu))
    )
    classes = sum(q[i, j] * log_kappa[j] for i in range(len(q)) for j in range(len(nu)))
    entropy = -sum(value * np.log(value) for value in q.ravel() if value > 0)

    def density(concentration, exponents, logs):
        return gammaln(concentration.sum()) - gammaln(concentration).sum() + ((exponents - 1) * logs).sum()

    rows = [(k, j) for k in range(len(alpha)) for j in range(len(nu))]
    prior_of = alpha0 if len(alpha0) > 1 else np.repeat(alpha0, len(alpha), axis=0)
    return (
        answers
        + classes
        + entropy
        + density(nu0, nu0, log_kappa)
        - density(nu, nu, log_kappa)
        + sum(density(prior_of[row], prior_of[row], log_pi[row]) for row in rows)
        - sum(density(alpha[row], alpha[row], log_pi[row]) for row in rows)
    )


@given(seeds, st.booleans(), st.booleans())
def test_the_bound_has_the_seven_terms_of_the_paper(seed, shared, with_gold):
    rng = np.random.default_rng(seed)
    columns = random_answers(rng)
    answers = tensors.AnswerMatrix(*columns, **SIZES)
    alpha, alpha0 = positive(rng, 4, N_CLASSES, 3), positive(rng, 1 if shared else 4, N_CLASSES, 3)
    nu, nu0 = positive(rng, N_CLASSES), positive(rng, N_CLASSES)
    gold = random_gold(rng) if with_gold else None
    bound = tensors.lower_bound(
        answers, confusion=alpha, classes=nu, confusion_prior=alpha0, class_prior=nu0, gold=gold
    )
    log_weights = tensors.item_log_weights(answers, tensors.expected_log(alpha), class_logs=tensors.expected_log(nu))
    q = tensors.item_posteriors(log_weights, gold)
    arrays = [part.detach().numpy() for part in (q, alpha, nu, alpha0, nu0)]
    assert float(bound.detach()) == pytest.approx(seven_terms(columns, *arrays), rel=1e-11)


@pytest.mark.usefixtures("either_sum")
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_written_out(seed):
    rng = np.random.default_rng(seed)
    columns = random_answers(rng)
    answers = tensors.AnswerMatrix(*columns, **SIZES)
    logs, class_logs = torch.from_numpy(rng.normal(size=(4, N_CLASSES, 3))), torch.from_numpy(rng.normal(size=(6, 2)))
    probs = torch.from_numpy(rng.dirichlet(np.ones(N_CLASSES), 6))
    weights, counts = class_logs.clone(), torch.zeros(4, N_CLASSES, 3, dtype=torch.float64)
    for k, i, c in zip(*(column.tolist() for column in columns), strict=True):
        if c >= 0:
            weights[i] += logs[k, :, c]
            counts[k, :, c] += probs[i]
    assert torch.allclose(tensors.item_log_weights(answers, logs, class_logs=class_logs), weights, atol=1e-14)
    assert torch.allclose(tensors.sufficient_counts(answers, probs), counts, atol=1e-14)
    kept = columns[2] >= 0
    for name, column in zip(("volunteer", "item", "label"), columns, strict=True):
        assert torch.equal(getattr(answers, name), column[kept])


def test_divergence_is_that_of_torch():
    rng = np.random.default_rng(0)
    one, other = positive(rng, 5, 3), positive(rng, 5, 3)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Dirichlet(one), torch.distributions.Dirichlet(other)
    )
    assert torch.allclose(tensors.dirichlet_divergence(one, other), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4, 1e7])
def test_divergence_in_single_precision_does_not_lose_small_differences(scale):
    rng = np.random.default_rng(2)
    one, other = ((scale * positive(rng, 5, 3)).detach().float() for _ in range(2))
    expected = tensors.dirichlet_divergence(one.double(), other.double())
    divergence = tensors.dirichlet_divergence(one, other)
    assert divergence.dtype == torch.float32
    assert torch.allclose(divergence.double(), expected, rtol=1e-6)
    assert torch.equal(tensors.dirichlet_divergence(one, one), torch.zeros(5))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("n_items", [6, 256, 300])
def test_codes_may_be_of_any_integer_type(dtype, n_items):
    columns = [torch.tensor([0, 1, 3]), torch.tensor([5, 0, 5]), torch.tensor([2, 0, 1])]
    sizes = {**SIZES, "n_items": n_items}
    expected = tensors.AnswerMatrix(*columns, **sizes)
    answers = tensors.AnswerMatrix(*(column.to(dtype) for column in columns), **sizes)
    for name in ("volunteer", "item", "label"):
        assert torch.equal(getattr(answers, name), getattr(expected, name))


@pytest.mark.usefixtures("either_sum")
def test_sums_over_nobody_are_empty():
    nothing = torch.zeros(0, dtype=torch.int64)
    answers = tensors.AnswerMatrix(nothing, nothing, nothing, n_volunteers=0, n_items=3, n_labels=2)
    assert torch.equal(answers.sum_by_item(torch.zeros(0, N_CLASSES, 2)), torch.zeros(3, N_CLASSES))
    assert answers.sum_by_volunteer(torch.ones(3, N_CLASSES)).shape == (0, N_CLASSES, 2)


# Gradients


@pytest.mark.usefixtures("either_sum")
def test_gradients_of_ibcc():
    rng = np.random.default_rng(1)
    answers, gold = tensors.AnswerMatrix(*random_answers(rng), **SIZES), random_gold(rng)
    alpha, alpha0, nu, nu0 = (positive(rng, *shape) for shape in ((4, 2, 3), (1, 2, 3), (2,), (2,)))
    probs = torch.from_numpy(rng.dirichlet(np.ones(2), 6)).requires_grad_()
    weights = torch.from_numpy(rng.normal(size=(6, 2))).requires_grad_()

    def bound(confusion, classes, confusion_prior, class_prior):
        return tensors.lower_bound(
            answers,
            confusion=confusion,
            classes=classes,
            confusion_prior=confusion_prior,
            class_prior=class_prior,
            gold=gold,
        )

    assert gradcheck(bound, (alpha, nu, alpha0, nu0))
    assert gradcheck(tensors.expected_log, (alpha,))
    assert gradcheck(tensors.log_normaliser, (alpha,))
    assert gradcheck(tensors.dirichlet_divergence, (alpha, alpha0))
    assert gradcheck(lambda logs, prior: tensors.item_log_weights(answers, logs, class_logs=prior), (alpha, nu))
    assert gradcheck(lambda values: tensors.item_posteriors(values, gold), (weights,))
    assert gradcheck(lambda values: tensors.log_evidence(values, gold), (weights,))
    assert gradcheck(lambda values: tensors.sufficient_counts(answers, values), (probs,))


@pytest.mark.parametrize("published", [True, False])
def test_gradients_of_dynibcc(published):
    """With respect to the prior, the classes of the items and the noise scale."""
    rng = np.random.default_rng(3)
    steps, prior, probs = random_crowd(rng, [3, 0, 4], N_CLASSES, 2, kind=SOFT, n_items=4)
    scale = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    arguments = (prior.requires_grad_(), probs.requires_grad_(), scale)

    def over_time(stage):
        return lambda prior, probs, scale: tensors.confusion_over_time(
            steps, prior, probs=probs, noise_scale=scale, stage=stage, published=published
        )

    for stage in ("predicted", "filtered", "smoothed"):
        assert gradcheck(over_time(stage), arguments)

    def score(prior, probs, scale):
        logs = tensors.step_logs(steps, over_time("smoothed")(prior, probs, scale))
        predicted = over_time("predicted")(prior, probs, scale)
        return tensors.predictive_score(steps, predicted, logs=logs, probs=probs) + tensors.expected_score(
            steps, predicted, probs=probs
        )

    assert gradcheck(score, arguments)


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("stage", ["predicted", "filtered", "smoothed"])
@pytest.mark.parametrize("source", ["noise scale", "drift"])
def test_gradients_at_no_noise_are_those_of_a_little_noise(published, stage, source):
    steps, prior, probs = random_crowd(np.random.default_rng(4), [4, 0, 6], N_CLASSES, 2, kind=SOFT, n_items=5)
    steps = steps._replace(drift=torch.zeros_like(steps.drift))

    def total_of(value):
        drifting = steps._replace(drift=steps.drift + value) if source == "drift" else steps
        scale = value if source == "noise scale" else 0.0
        return tensors.confusion_over_time(
            drifting, prior, probs=probs, noise_scale=scale, stage=stage, published=published
        ).sum()

    zero, size = torch.zeros((), dtype=torch.float64, requires_grad=True), 1e-5
    total_of(zero).backward()
    with torch.no_grad():
        # Noise is never negative: a difference to one side, exact to second order.
        values = [total_of(torch.tensor(factor * size, dtype=torch.float64)) for factor in (0, 1, 2)]
    assert zero.grad == pytest.approx(float(-3 * values[0] + 4 * values[1] - values[2]) / (2 * size), rel=1e-5)


def test_gradients_of_the_predictive_score_with_certain_gold():
    """Probabilities of zero have no logarithm, and gold needs none."""
    steps, prior, probs = random_crowd(np.random.default_rng(5), [4, 6], N_CLASSES, 2, kind=SOFT, n_items=5)
    gold = torch.full_like(probs, torch.nan)
    gold[0] = torch.tensor([1.0, 0.0])
    predicted = tensors.confusion_over_time(steps, prior, probs=probs, stage="predicted")
    logs = tensors.step_logs(steps, predicted)

    def score(values):
        return tensors.predictive_score(steps, predicted, logs=logs, probs=values, gold=gold)

    assert gradcheck(score, (torch.where(gold.isnan(), probs, gold).requires_grad_(),))


def test_a_gradient_step_on_the_strength_of_the_prior_raises_the_bound():
    graph = crowd(n_volunteers=15, n_items=40, n_responses=300).graph
    fit = cg.IBCC(confusion_prior=(4, 1)).fit(graph)
    responses, estimate = graph.to_torch(), fit.to_torch()
    strength = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)

    def bound():
        return tensors.lower_bound(
            responses.answers,
            confusion=estimate.confusion,
            classes=estimate.classes,
            confusion_prior=strength * estimate.confusion_prior,
            class_prior=estimate.class_prior,
            gold=responses.gold,
        )

    before = bound()
    before.backward()
    assert abs(float(strength.grad)) > 0.1
    with torch.no_grad():
        strength += 1e-3 * strength.grad
    assert float(bound().detach()) > float(before.detach())


def test_the_noise_scale_can_be_learned_by_gradients():
    """The gradient of the predictive score at the chosen scale is that of a maximum, or scales beside it score less."""
    graph = crowd(0.9, 0.3, n_volunteers=12, n_items=40, n_responses=[20] * 12, drift="step", gold=1.0).graph
    steps, gold = graph.to_torch().steps(), graph.to_torch().gold
    prior = torch.tensor([[[4.0, 1.0], [1.0, 4.0]]], dtype=torch.float64)
    log_scale = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([log_scale], lr=0.1)

    def score(scale):
        predicted = tensors.confusion_over_time(steps, prior, probs=gold, noise_scale=scale, stage="predicted")
        return tensors.expected_score(steps, predicted, probs=gold)

    for _ in range(80):
        optimiser.zero_grad()
        (-score(log_scale.exp())).backward()
        optimiser.step()
    best = float(log_scale.detach().exp())
    scores = {factor: float(score(factor * best)) for factor in (0.5, 1.0, 2.0)}
    assert max(scores, key=scores.get) == 1.0


@pytest.mark.parametrize("with_gold", [True, False])
def test_gradients_of_the_predictive_score_are_finite_where_classes_are_impossible(with_gold):
    rng = np.random.default_rng(5)
    steps, prior, probs = random_crowd(rng, [4, 6], N_CLASSES, 2, n_items=5)
    probs = torch.eye(2, dtype=torch.float64)[torch.arange(5) % 2].requires_grad_()
    gold = probs.detach() if with_gold else None
    over_time = tensors.confusion_over_time(steps, prior, probs=probs.detach())
    predicted = tensors.confusion_over_time(steps, prior, probs=probs.detach(), stage="predicted")
    logs = tensors.step_logs(steps, over_time)
    tensors.predictive_score(steps, predicted, logs=logs, probs=probs, gold=gold).backward()
    assert probs.grad.isfinite().all()


# What PyTorch does with answers


def test_answers_are_copied_and_moved():
    rng = np.random.default_rng(0)
    answers, probs = tensors.AnswerMatrix(*random_answers(rng), **SIZES), torch.rand(6, 2, dtype=torch.float64)
    expected = tensors.sufficient_counts(answers, probs)
    for other in (copy.deepcopy(answers), answers.to("cpu")):
        assert torch.equal(tensors.sufficient_counts(other, probs), expected)


def test_transforms_and_half_precision_run_with_sums_by_index():
    rng = np.random.default_rng(0)
    columns = random_answers(rng)
    by_index = tensors.AnswerMatrix(*columns, **SIZES, sparse=False)
    logs = torch.from_numpy(rng.normal(size=(4, 2, 3)))

    def total(values, answers):
        return tensors.item_log_weights(answers, values, class_logs=torch.zeros(2)).logsumexp(1).sum()

    plain = logs.clone().requires_grad_()
    total(plain, tensors.AnswerMatrix(*columns, **SIZES)).backward()
    assert torch.allclose(torch.func.grad(total)(logs, by_index), plain.grad)
    assert torch.func.vmap(lambda values: total(values, by_index))(torch.stack([logs, logs])).shape == (2,)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert total(logs.float(), tensors.AnswerMatrix(*columns, **SIZES)).isfinite()


# Bad input


def test_shapes_are_checked():
    rng = np.random.default_rng(0)
    answers = tensors.AnswerMatrix(*random_answers(rng), **SIZES)
    right = {
        "confusion": positive(rng, 4, 2, 3),
        "classes": positive(rng, 2),
        "confusion_prior": positive(rng, 1, 2, 3),
        "class_prior": positive(rng, 2),
    }
    wrong = {
        "confusion": (positive(rng, 3, 2, 3), r"confusion= has the shape \(3, 2, 3\); expected \(4, J, 3\)"),
        "classes": (positive(rng, 1), r"classes= has the shape \(1,\); expected \(2,\)"),
        "confusion_prior": (positive(rng, 2, 3), r"confusion_prior= has the shape \(2, 3\)"),
        "class_prior": (positive(rng, 1), r"class_prior= has the shape \(1,\); expected \(2,\)"),
    }
    for name, (value, words) in wrong.items():
        with pytest.raises(ParameterError, match=words):
            tensors.lower_bound(answers, **{**right, name: value})
    with pytest.raises(ParameterError, match=r"must be an AnswerMatrix; got a tuple.*graph.to_torch\(\).answers"):
        tensors.lower_bound((), **right)
    with pytest.raises(ParameterError, match="prior has 3 entries along axis -1, and the Dirichlets have 2"):
        tensors.dirichlet_divergence(right["classes"], positive(rng, 3))


def test_a_prior_with_one_entry_is_the_same_for_all():
    concentration = positive(np.random.default_rng(0), 3)
    expected = tensors.dirichlet_divergence(concentration, torch.full((3,), 2.0, dtype=torch.float64))
    for prior in (torch.tensor(2.0).double(), torch.tensor([2.0]).double()):
        assert torch.equal(tensors.dirichlet_divergence(concentration, prior), expected)


def test_stages_and_priors_of_steps_are_checked():
    steps, prior, probs = random_crowd(np.random.default_rng(0), [4], N_CLASSES, 2)
    with pytest.raises(ParameterError, match="stage='smooth' is not a choice"):
        tensors.confusion_over_time(steps, prior, probs=probs, stage="smooth")
    with pytest.raises(ParameterError, match=r"prior= has the shape \(2, 2\); expected \(K, J, L\)"):
        tensors.confusion_over_time(steps, prior[0], probs=probs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"volunteer": [0, 4]}, r"volunteer= must be codes from 0 to 3; got \[4\]. n_volunteers=4 says how many"),
        ({"item": [-1, 0]}, r"item= must be codes from 0 to 5; got \[-1\]"),
        ({"label": [0, 3]}, r"label= must be codes from -1 to 2; got \[3\]"),
        ({"label": [0.0, 1.0]}, r"label= must be whole numbers of shape \(2,\); got torch.float32 of shape \(2,\)"),
        ({"item": [0]}, r"item= must be whole numbers of shape \(2,\); got torch.int64 of shape \(1,\)"),
    ],
)
def test_codes_are_checked(change, words):
    columns = {"volunteer": [0, 1], "item": [0, 1], "label": [0, 1], **change}
    with pytest.raises(ParameterError, match=words):
        tensors.AnswerMatrix(*(torch.tensor(column) for column in columns.values()), **SIZES)
