"""The log posterior of factors: written out, differentiable, and what steps report."""

import math
import warnings

import numpy as np
import pytest
import torch
from kernels.weights import USUAL, symmetric_weights
from torch.autograd import gradcheck

from crowdgraph.errors import ParameterError
from crowdgraph.kernels.nmf import paired_step, published_step, symmetric_step
from crowdgraph.tensors import nmf_objective
from crowdgraph.tensors.nmf import DenseWeights

FORMS = ["dense", "csr", "coo"]


def held(weights, form):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        return {"dense": weights.clone, "csr": weights.to_sparse_csr, "coo": weights.to_sparse}[form]()


@pytest.fixture
def case():
    """Weights of five volunteers and two factors."""
    rng = np.random.default_rng(0)
    weights = torch.from_numpy(symmetric_weights(rng, 5, 0.6))
    return weights, *torch.from_numpy(rng.uniform(0.2, 2, (2, 5, 3)))


def written_out(weights, left, right, pairs, n_entries):
    values = sum(weights[i, j] * math.log(left[i] @ right[j]) - left[i] @ right[j] for i, j in pairs)
    both = left if left is right else torch.cat([left, right])
    return values - (n_entries / 2 + 4) * torch.log((both**2).sum(0) / 2 + 2).sum()


@pytest.mark.parametrize("form", FORMS)
def test_the_objective_is_the_log_posterior(form, case):
    weights, left, right = case
    matrix, index = held(weights, form), range(5)
    expected = written_out(weights, left, left, [(i, j) for i in index for j in index if i < j], 5)
    assert float(nmf_objective(matrix, left)) == pytest.approx(float(expected), rel=1e-12)
    for diagonal in (False, True):
        pairs = [(i, j) for i in index for j in index if diagonal or i != j]
        expected = written_out(weights, left, right, pairs, 10)
        assert float(nmf_objective(matrix, left, right=right, diagonal=diagonal)) == pytest.approx(
            float(expected), rel=1e-12
        )


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_right(form, case):
    weights, left, right = case
    matrix = held(weights, form)
    left.requires_grad_()
    right.requires_grad_()
    shape, rate = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (5.0, 2.0))
    assert gradcheck(lambda *at: nmf_objective(matrix, at[0], shape=at[1], rate=at[2]), (left, shape, rate))
    for diagonal in (False, True):
        assert gradcheck(lambda *at, d=diagonal: nmf_objective(matrix, at[0], right=at[1], diagonal=d), (left, right))


@pytest.mark.parametrize("form", FORMS)
def test_a_step_up_the_gradient_raises_the_objective(form, case):
    weights, factors, _ = case
    matrix = held(weights, form)
    factors.requires_grad_()
    objective = nmf_objective(matrix, factors)
    objective.backward()
    with torch.no_grad():
        assert nmf_objective(matrix, factors + 1e-4 * factors.grad) > objective


def test_steps_report_the_objective(case):
    weights, left, right = case
    matrix, state = DenseWeights(weights), torch.cat([left, right])
    assert symmetric_step(matrix, left, USUAL).objective == nmf_objective(weights, left)
    for step, diagonal in ((paired_step, False), (published_step, True)):
        expected = nmf_objective(weights, left, right=right, diagonal=diagonal)
        assert float(step(matrix, state, USUAL).objective) == pytest.approx(float(expected), rel=1e-14)


def test_the_objective_asks_nothing_of_the_values():
    """Nothing is read back from the device: tensors without values pass."""
    weights, factors = torch.empty(5, 5, device="meta"), torch.empty(5, 2, device="meta")
    assert nmf_objective(weights, factors).shape == ()
    assert nmf_objective(weights, factors, right=factors).shape == ()


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((torch.ones(2, 3), torch.ones(2, 1)), {}, r"weights must have the shape \(N, N\); got \(2, 3\)"),
        ((torch.ones(2, 2), torch.ones(3, 1)), {}, r"factors must have the shape \(2, K\).*got \(3, 1\)"),
        ((torch.ones(2, 2), torch.ones(2, 1)), {"right": torch.ones(2, 2)}, r"right must have the shape \(2, K\)"),
        ((torch.ones(2, 2), torch.ones(2, 1)), {"diagonal": True}, "diagonal=True belongs to two factors"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, options, words):
    with pytest.raises(ParameterError, match=words):
        nmf_objective(*arguments, **options)


def test_other_layouts_are_refused():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        weights = torch.eye(2).to_sparse_csc()
    with pytest.raises(ParameterError, match=r"dense, or sparse as CSR or COO; got the layout torch.sparse_csc"):
        nmf_objective(weights, torch.ones(2, 1))
