"""The factoriser of Bayesian NMF: from weights as arrays to the kernels and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crowdgraph.core._arrays import Array
from crowdgraph.kernels import nmf
from crowdgraph.kernels._runtime import single_threaded_torch
from crowdgraph.kernels.fixed_point import Step, squarem
from crowdgraph.kernels.nmf import CompiledWeights
from crowdgraph.kernels.nmf_search import SearchResult, search, seeded_start
from crowdgraph.tensors._options import resolve_device


class Factoriser:
    """Factorises symmetric weights, dense or sparse: in compiled code on CPUs, else with tensors.

    Parameters
    ----------
    weights
        An array or a SciPy CSR array of shape (V, V), with zeros on the diagonal.
    prior
        The prior of the precisions.
    device
        Where to compute.
    symmetric
        Whether both factors are the same.
    """

    def __init__(self, weights: Any, prior: nmf.Prior, *, device: str, symmetric: bool) -> None:
        self._weights, self._prior, self._symmetric = weights, prior, symmetric
        self._device = resolve_device(device)
        self._strength = np.asarray(weights.sum(axis=1)).ravel()
        self._compiled = symmetric and self._device.type == "cpu"

    def search(self, k: int, generator: torch.Generator, *, tol: float, max_iter: int) -> SearchResult:
        """Search for the best factors, starting from `k` seeds."""
        start = seeded_start(self._row, self._product, torch.from_numpy(self._strength), k, generator)
        start *= (self._strength.sum() / (start.sum(0) ** 2).sum()).sqrt()
        if not self._symmetric:
            start = torch.cat([start, start])
        with single_threaded_torch():
            return search(self._step(), start.to(self._device), tol=tol, max_iter=max_iter)

    def published(self, k: int, generator: torch.Generator, *, tol: float, max_iter: int) -> SearchResult:
        """Take the printed steps from a random start, and drop columns that explain nothing at the end."""
        weights = _tensors(self._weights, self._device)
        n = len(self._strength)
        start = torch.rand(2 * n, k, generator=generator, dtype=torch.float64).to(self._device)
        trace = squarem(
            lambda state: nmf.published_step(weights, state, self._prior),
            start,
            max_iter=max_iter,
            tol=tol,
            accelerate=False,
        )
        squares = (trace.state**2).sum(0)
        # Below half of the prior's rate, the precision is hardly more than the prior's.
        relevant = squares >= min(self._prior.rate / 2, float(squares.max()))
        return SearchResult(
            trace.state[:, relevant], trace.objectives[-1], trace.change, trace.n_steps, trace.converged
        )

    def participation(self, factors: Tensor) -> Array:
        """Return how much each volunteer belongs to each community, of shape (V, K); rows sum to one."""
        shares = (factors if self._symmetric else torch.stack(factors.tensor_split(2)).sum(0)).cpu().numpy()
        weightless = self._strength == 0
        if weightless.any():
            # Chance explains all of their links: they belong where most volunteers do.
            shares = np.where(weightless[:, None], shares[~weightless].sum(axis=0), shares)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def relevance(self, factors: Tensor) -> Array:
        """Return the variance that the prior leaves to each community, of shape (K,)."""
        count = len(self._strength) / (2 if self._symmetric else 1)
        return np.asarray(nmf.relevance((factors**2).sum(0), count, self._prior).cpu().numpy())

    def _step(self) -> Callable[[Tensor], Step]:
        if self._compiled:
            compiled = _compiled(self._weights)
            return lambda state: compiled.symmetric_step(state, self._prior)
        weights = _tensors(self._weights, self._device)
        step = nmf.symmetric_step if self._symmetric else nmf.paired_step
        return lambda state: step(weights, state, self._prior)

    def _row(self, volunteer: int) -> Tensor:
        row = self._weights[[volunteer]]
        return torch.from_numpy((row if isinstance(row, np.ndarray) else row.toarray()).ravel().copy())

    def _product(self, vector: Tensor) -> Tensor:
        return torch.from_numpy(self._weights @ vector.numpy())


def _tensors(weights: Any, device: torch.device) -> nmf.Weights:
    if isinstance(weights, np.ndarray):
        return nmf.DenseWeights(torch.tensor(weights, device=device))
    starts, columns, values = (
        torch.tensor(part, device=device) for part in (weights.indptr, weights.indices, weights.data)
    )
    with warnings.catch_warnings():
        # torch warns once that sparse tensors may change; our tests cover what is used of them.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        tensor = torch.sparse_csr_tensor(starts, columns, values, size=weights.shape, check_invariants=False)
    return nmf.SparseWeights(tensor)


def _compiled(weights: Any) -> CompiledWeights:
    if isinstance(weights, np.ndarray):
        return CompiledWeights(np.arange(len(weights) + 1) * len(weights), None, weights.ravel())
    columns = weights.indices.astype(np.int32, copy=False)
    return CompiledWeights(weights.indptr.astype(np.int64), columns, weights.data)
