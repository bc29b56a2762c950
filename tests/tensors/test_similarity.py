"""Pi-similarity is differentiable, also where matrices are the same, and what networks are made of."""

import pytest
import torch
from torch.autograd import gradcheck

from crowdgraph.errors import ParameterError
from crowdgraph.kernels import similarity
from crowdgraph.tensors import pi_similarity

DISTANCES = ["bhattacharyya", "hellinger"]


@pytest.fixture
def confusion():
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(4, 2, 3, generator=generator, dtype=torch.float64) + 0.1
    return values / values.sum(2, keepdim=True)


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradients_are_right(distance, confusion):
    assert gradcheck(lambda at: pi_similarity(at, distance=distance), (confusion.requires_grad_(),))


@pytest.mark.parametrize("distance", DISTANCES)
def test_gradients_are_finite_where_matrices_are_the_same(distance, confusion):
    twins = torch.cat([confusion, confusion]).requires_grad_()
    values = pi_similarity(twins, distance=distance)
    assert torch.allclose(values[:4, 4:].diagonal(), torch.ones(4, dtype=torch.float64), atol=1e-12)
    values.sum().backward()
    assert torch.isfinite(twins.grad).all()
    assert twins.grad.abs().max() < 100


@pytest.mark.parametrize("distance", DISTANCES)
def test_blocks_of_pairs_are_the_same(distance, confusion, monkeypatch):
    expected = pi_similarity(confusion, distance=distance)
    assert torch.equal(similarity.similarities(confusion, distance=distance), expected)
    monkeypatch.setattr(similarity, "MAX_BLOCK_ENTRIES", 8)
    blocks = similarity.similarities(confusion, distance=distance)
    assert torch.allclose(blocks, expected, rtol=0, atol=1e-14)
    assert torch.equal(blocks, blocks.T)


@pytest.mark.parametrize(
    ("confusion", "distance", "words"),
    [
        (torch.ones(2, 3), "hellinger", r"shape \(V, J, L\); got torch.float32 of shape \(2, 3\)"),
        (torch.ones(2, 2, 2, dtype=torch.int64), "hellinger", "must be floating-point numbers"),
        (torch.ones(2, 2, 2), "helinger", "distance='helinger' is not a choice"),
    ],
)
def test_what_does_not_fit_is_refused(confusion, distance, words):
    with pytest.raises(ParameterError, match=words):
        pi_similarity(confusion, distance=distance)
