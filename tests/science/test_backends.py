"""Compiled code and tensors agree on hundreds of random crowds, and so do both precisions; `science.backends`."""

import pytest
from science.backends import MAX_DIFFERENCE, MAX_RELATIVE_DIFFERENCE, MAX_SINGLE_DIFFERENCE, MODELS, compare


@pytest.mark.science
@pytest.mark.parametrize("name", MODELS)
def test_backends_and_precisions_agree(name):
    results = [compare(name, seed) for seed in range(200)]
    assert max(result.probs for result in results) <= MAX_DIFFERENCE
    assert max(result.concentration for result in results) <= MAX_RELATIVE_DIFFERENCE
    assert max(result.single_probs for result in results) <= MAX_SINGLE_DIFFERENCE
    assert sum(result.other_labels for result in results) == 0
