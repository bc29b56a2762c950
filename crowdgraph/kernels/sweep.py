"""One pass over all responses: class probabilities of the items and, from them, expected counts of the volunteers.

Both sweeps take expected (or plain) logarithms of confusion and class probabilities and do the same: for each item

    ln rho_ij = ln kappa_j + sum over its responses of ln pi^(k)_{j, label},      q_i = softmax over j,

then add q_i to the counts of (volunteer, label) of each of its responses. `TensorSweep` is two products with a sparse
matrix and runs on any device; `CompiledSweep` fuses everything into one pass over the responses and runs on CPUs.

Tables have the shape (K, L, J), volunteers by labels by classes, so that what a response needs lies together.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

__all__ = ["ItemResponses", "Sweep", "Sweeper", "TensorSweep", "counted"]


class ItemResponses(NamedTuple):
    """Responses gathered by item: item `i` has ``codes[starts[i]:starts[i + 1]]``, each volunteer * L + label."""

    starts: Tensor
    codes: Tensor
    n_volunteers: int
    n_labels: int


class Sweep(NamedTuple):
    """What a sweep found.

    Attributes
    ----------
    counts
        Expected number of responses by volunteer, label and class, of shape (K, L, J).
    class_counts
        Expected number of items by class, of shape (J,).
    evidence
        The sum over items of the log normalising constant of q_i; for gold items of their expected log weight.
    change
        The largest change of a class probability.
    """

    counts: Tensor
    class_counts: Tensor
    evidence: float
    change: float


class Sweeper(Protocol):
    """A sweep over certain responses."""

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; `probs`, of shape (N, J), is overwritten except where `fixed`, of shape (N,), is true.

        Known probabilities sum to one for each item, too.
        """
        ...


def counted(sweeper: Sweeper, probs: Tensor, shape: tuple[int, ...]) -> Sweep:
    """The counts, tables of shape (K, L, J), that follow if these are the class probabilities: nothing is inferred."""
    nothing = torch.zeros(shape, dtype=probs.dtype, device=probs.device)
    known = torch.ones(len(probs), dtype=torch.bool, device=probs.device)
    return sweeper(nothing, nothing[0, 0], probs, known)


class TensorSweep:
    """The sweep as two sparse products, on the device and in the precision of its arguments."""

    def __init__(self, responses: ItemResponses, *, device: torch.device, dtype: torch.dtype) -> None:
        starts = responses.starts
        rows = torch.repeat_interleave(torch.arange(len(starts) - 1), starts.diff())
        places = torch.stack([rows, responses.codes.long()])
        self._shape = (responses.n_volunteers, responses.n_labels, -1)
        size = (len(starts) - 1, responses.n_volunteers * responses.n_labels)
        ones = torch.ones(places.shape[1], dtype=dtype)
        # A transposed view is several times slower than a matrix of its own.
        self._items = _csr(places, ones, size).to(device)
        self._volunteers = _csr(places.flip(0), ones, size[::-1]).to(device)

    def __call__(self, logs: Tensor, class_logs: Tensor, probs: Tensor, fixed: Tensor) -> Sweep:
        """Sweep once; see `Sweeper`."""
        weights = self._items @ logs.reshape(-1, logs.shape[-1]) + class_logs
        peaks = torch.logsumexp(weights, 1)
        known = fixed[:, None]
        found = torch.where(known, probs, torch.exp(weights - peaks[:, None]))
        evidence = torch.where(fixed, (probs * weights).sum(1), peaks).sum()
        change = (found - probs).abs().max()
        probs.copy_(found)
        counts = (self._volunteers @ probs).reshape(self._shape)
        return Sweep(counts, probs.sum(0), float(evidence), float(change))


def _csr(places: Tensor, values: Tensor, size: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")
        return torch.sparse_coo_tensor(places, values, size, check_invariants=False).coalesce().to_sparse_csr()
