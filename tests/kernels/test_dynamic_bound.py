"""The lower bound that the paper prints for Dynamic IBCC is the sum of its terms, with noise kept from zero."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from kernels.random_steps import random_crowd
from kernels.test_dynibcc import variational_bayes
from oracles.dynamic_bound import Volunteer, printed_bound

from crowdgraph.kernels.dynamic_bound import step_priors


def volunteers_of(steps, prior):
    """Return the input of the oracle."""
    columns = [column.numpy() for column in steps[1:5]]
    own = prior.numpy().repeat(len(steps.starts) - 1, axis=0) if len(prior) == 1 else prior.numpy()
    spans = pairwise(steps.starts.tolist())
    return [
        Volunteer(table, *(column[first:last] for column in columns))
        for table, (first, last) in zip(own, spans, strict=True)
    ]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_seven_terms_written_out(compiled, published, seed):
    """Certain and uncertain items, steps without an answer, answers that count less, drift, one prior or several."""
    rng = np.random.default_rng(seed)
    steps, prior, probs = random_crowd(rng, [6, 0, 1, 9], 2, 2 + seed % 2, shared=seed % 3 == 0, n_items=8)
    vb = variational_bayes(steps, prior, probs, compiled=compiled, published=published)
    for noise_scale, floor in ((1.0, 1e-3), (0.4, 0.2), (0.0, 1.0)):
        expected = printed_bound(
            probs.numpy(),
            np.ones(2),
            volunteers_of(steps, prior),
            noise_scale=noise_scale,
            floor=floor,
            published=published,
        )
        assert vb.published_bound(noise_scale, floor=floor) == pytest.approx(expected, rel=1e-9)


def test_a_floor_is_needed_wherever_answers_are_no_surprise():
    """Three expected answers cause no noise: the printed prior of the next step would be infinite."""
    steps, prior, probs = random_crowd(np.random.default_rng(0), [4], 2, 2, drift=0, unanswered=0)
    label = torch.zeros_like(steps.label)
    certain = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(len(probs), 1)
    prior = torch.tensor([[[4.0, 1.0], [1.0, 4.0]]], dtype=torch.float64)
    vb = variational_bayes(steps._replace(label=label, weight=torch.ones_like(steps.weight)), prior, certain)
    noise = vb._scan.noise(certain, noise_scale=1.0)
    assert (noise == 0).all()
    unfloored = step_priors(steps.starts, prior, vb.confusion(1.0), noise=noise)
    assert torch.isinf(unfloored[1:]).all()
    assert torch.equal(unfloored[0], prior[0])
    bounds = [vb.published_bound(1.0, floor=floor) for floor in (1e-1, 1e-2, 1e-3, 1e-4)]
    assert all(later < earlier for earlier, later in pairwise(bounds))
    assert bounds[-1] / bounds[-2] == pytest.approx(10, rel=0.1)
