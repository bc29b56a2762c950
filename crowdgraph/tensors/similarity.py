"""Pi-similarity as a function of tensors: how alike the confusion matrices of volunteers are."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError, check_choice

__all__ = ["Distance", "pi_similarity", "sum_of_distances"]

Distance = Literal["bhattacharyya", "hellinger"]
# One minus a coefficient that is smaller than this many times the precision is rounding: the rows are the same.
ROUNDING_OF_COEFFICIENT = 4
# How far the sum of a row may be from one.
MAX_ERROR_OF_SUM = 1e-3


def pi_similarity(confusion: Tensor, *, distance: Distance = "bhattacharyya") -> Tensor:
    r"""Return the similarity :math:`\exp(-\sum_j d_j)` of all pairs of confusion matrices, of shape (V, V).

    With :math:`b_j = \sum_l \sqrt{\pi_{jl} \pi'_{jl}}`, the Bhattacharyya coefficient of two rows, :math:`d_j` is
    :math:`1 - b_j`, or :math:`\sqrt{1 - b_j}` for the Hellinger distance (eq:adjacencymatrix, erratum 6). The diagonal
    is zero: nobody is their own neighbour. Pairs of rows that are the same have no gradient under the Hellinger
    distance, which has none there; it counts as zero.

    Parameters
    ----------
    confusion
        Confusion matrices, of shape (V, J, L), with rows that sum to one and, for gradients, entries above zero.
    distance
        ``"bhattacharyya"``, as in the paper (which calls it Hellinger's), or ``"hellinger"``.

    Examples
    --------
    >>> import torch
    >>> confusion = torch.tensor([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]])
    >>> pi_similarity(confusion)
    tensor([[0.0000, 0.4493, 1.0000],
            [0.4493, 0.0000, 0.4493],
            [1.0000, 0.4493, 0.0000]])
    """
    check_choice("distance", distance, ("bhattacharyya", "hellinger"))
    if confusion.ndim != 3 or not confusion.is_floating_point():
        raise ParameterError(
            f"confusion must be floating-point numbers of shape (V, J, L); got {confusion.dtype} of shape "
            f"{tuple(confusion.shape)}."
        )
    sums = confusion.detach().sum(-1)
    if not ((sums - 1).abs() < MAX_ERROR_OF_SUM).all():
        raise ParameterError(
            f"Rows of confusion must sum to one; they sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}.",
            hint="Divide concentrations by their sums; fit.to_torch().mean_confusion has the means.",
        )
    roots = confusion.sqrt()
    # Each pair once, so that both of its entries are the same bits.
    upper = torch.exp(-sum_of_distances(roots, roots, distance)).triu(1)  # eq:adjacencymatrix
    return upper + upper.T


def sum_of_distances(roots: Tensor, others: Tensor, distance: Distance) -> Tensor:
    """Return the sums over classes of the distances between rows, of shape (A, B).

    Both arguments are square roots of confusion matrices, of shapes (A, J, L) and (B, J, L).
    """
    if distance == "bhattacharyya":
        # HD below eq:adjacencymatrix, one product for all classes; rounding may take it above their number.
        return (roots.shape[1] - roots.flatten(1) @ others.flatten(1).T).clamp(min=0)
    # The Hellinger distance itself: erratum 6.
    gaps = 1 - torch.einsum("ajl,bjl->jab", roots, others)
    differ = gaps > ROUNDING_OF_COEFFICIENT * torch.finfo(gaps.dtype).eps
    # The inner choice keeps roots away from zero, where their gradient is infinite.
    return torch.where(differ, torch.where(differ, gaps, 1.0).sqrt(), 0.0).sum(0)
