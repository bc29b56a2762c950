"""Weights of networks and steps of their factors, for the tests of factorisation."""

import numpy as np
from scipy.sparse import csr_array

from crowdgraph.kernels.nmf import CompiledWeights, Prior

USUAL = Prior(5.0, 2.0)


def symmetric_weights(rng, n, density):
    upper = np.triu(rng.lognormal(0, 1.5, (n, n)) * (rng.random((n, n)) < density), 1)
    upper[0, n - 1] += 1
    return upper + upper.T


def compiled(weights, *, sparse, precision=np.float64):
    if not sparse:
        return CompiledWeights(np.arange(len(weights) + 1) * len(weights), None, weights.ravel(), precision=precision)
    rows = csr_array(weights)
    return CompiledWeights(rows.indptr.astype(np.int64), rows.indices, rows.data, precision=precision)


def stepping(weights, prior=USUAL):
    """One step of symmetric factors of the weights."""
    matrix = compiled(weights, sparse=False)
    return lambda state: matrix.symmetric_step(state, prior)
