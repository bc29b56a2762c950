"""Starts of Bayesian NMF in large networks of similarities that begin with some of the volunteers."""

from __future__ import annotations

import numpy as np
import torch

from crowdgraph.communities._factoriser import Factoriser
from crowdgraph.core._arrays import Array
from crowdgraph.kernels.nmf_search import BACKGROUND_SHARE, SearchResult


class WarmFactoriser(Factoriser):
    """A factoriser that can also start from given participations."""

    def search_from(self, shares: Array, *, tol: float, max_iter: int) -> SearchResult:
        """Search for the best factors, starting from shares in communities, of shape (V, K), all positive."""
        return self._search(torch.from_numpy(shares), tol=tol, max_iter=max_iter)


def extend(links: Array, participation: Array) -> Array:
    """Return shares of everybody in the communities of some, (V, K), by their links to these, of shape (V, S).

    Rows sum to one, and `BACKGROUND_SHARE` is added. Those who have no links to any of these belong to all equally.
    """
    shares = links @ participation
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(shares + BACKGROUND_SHARE / shares.shape[1])
