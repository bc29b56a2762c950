"""The factoriser of Bayesian NMF: from weights as arrays to the kernels and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from crowdgraph.communities._team import current_team
from crowdgraph.core._arrays import Array
from crowdgraph.kernels import nmf
from crowdgraph.kernels._runtime import single_threaded_torch
from crowdgraph.kernels.backend_names import BackendName, Precision
from crowdgraph.kernels.backends import choose_nmf_backend, nmf_step
from crowdgraph.kernels.fixed_point import Step, squarem
from crowdgraph.kernels.local_moving import community_start
from crowdgraph.kernels.nmf_search import SearchResult, search, seeded_start


class Factoriser:
    """Factorises symmetric weights, dense or sparse, in compiled code or with tensors.

    Parameters
    ----------
    weights
        An array or a SciPy CSR array of shape (V, V), with zeros on the diagonal.
    prior
        The prior of the precisions.
    symmetric
        Whether both factors are the same.
    backend, device, dtype
        What runs, where, and in which precision; see `choose_nmf_backend`.
    """

    def __init__(
        self,
        weights: Any,
        prior: nmf.Prior,
        *,
        symmetric: bool,
        backend: BackendName = "auto",
        device: str = "cpu",
        dtype: Precision | Literal["auto"] = "auto",
    ) -> None:
        self._weights, self._prior, self._symmetric = weights, prior, symmetric
        self._strength = np.asarray(weights.sum(axis=1)).ravel()
        self.backend = choose_nmf_backend(
            backend, device=device, dtype=dtype, symmetric=symmetric, largest=float(weights.max())
        )

    def search(self, k: int, generator: torch.Generator, *, tol: float, max_iter: int) -> SearchResult:
        """Search for the best factors, starting from `k` seeds, or in sparse networks from at most `k` communities."""
        if isinstance(self._weights, np.ndarray):
            start = seeded_start(self._row, self._product, torch.from_numpy(self._strength), k, generator)
        else:
            start = community_start(self._weights, k, generator)
        return self._search(start, tol=tol, max_iter=max_iter)

    def _search(self, start: Tensor, *, tol: float, max_iter: int) -> SearchResult:
        """Search from a start, of shape (V, K), scaled so that it explains as much weight as there is."""
        start = start * (self._strength.sum() / (start.sum(0) ** 2).sum()).sqrt()
        if not self._symmetric:
            start = torch.cat([start, start])
        is_sparse = not isinstance(self._weights, np.ndarray)
        with single_threaded_torch():
            return search(self._step(), self._state(start), tol=tol, max_iter=max_iter, weighted=is_sparse)

    def published(self, k: int, generator: torch.Generator, *, tol: float, max_iter: int) -> SearchResult:
        """Take the printed steps from a random start, and drop columns that explain nothing at the end."""
        start = torch.rand(2 * len(self._strength), k, generator=generator, dtype=torch.float64)
        trace = squarem(self._step(published=True), self._state(start), max_iter=max_iter, tol=tol, accelerate=False)
        squares = (trace.state**2).sum(0)
        # Below half of the prior's rate, the precision is hardly more than the prior's.
        relevant = squares >= min(self._prior.rate / 2, float(squares.max()))
        return SearchResult(
            trace.state[:, relevant], trace.objectives[-1], trace.change, trace.n_steps, trace.converged
        )

    def participation(self, factors: Tensor) -> Array:
        """Return how much each volunteer belongs to each community, of shape (V, K); rows sum to one."""
        shares = (factors if self._symmetric else torch.stack(factors.tensor_split(2)).sum(0)).cpu().double().numpy()
        weightless = self._strength == 0
        if weightless.any():
            # Chance explains all of their links: they belong where most volunteers do.
            shares = np.where(weightless[:, None], shares[~weightless].sum(axis=0), shares)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def relevance(self, factors: Tensor) -> Array:
        """Return the variance that the prior leaves to each community, of shape (K,)."""
        count = len(self._strength) / (2 if self._symmetric else 1)
        with single_threaded_torch():
            return np.asarray(nmf.relevance((factors**2).sum(0), count, self._prior).cpu().double().numpy())

    def _step(self, *, published: bool = False) -> Callable[[Tensor], Step]:
        team = current_team()
        if team is not None and self.backend.compiled:
            return team.nmf_step(self._weights, self._prior, precision=self.backend.array_type)
        return nmf_step(
            self._weights, self._prior, symmetric=self._symmetric, published=published, backend=self.backend
        )

    def _state(self, start: Tensor) -> Tensor:
        # Compiled code multiplies rows in single precision and holds the state in double precision.
        return start.to(self.backend.device, torch.float64 if self.backend.compiled else self.backend.dtype)

    def _row(self, volunteer: int) -> Tensor:
        row = self._weights[[volunteer]]
        return torch.from_numpy((row if isinstance(row, np.ndarray) else row.toarray()).ravel().copy())

    def _product(self, vector: Tensor) -> Tensor:
        return torch.from_numpy(self._weights @ vector.numpy())
