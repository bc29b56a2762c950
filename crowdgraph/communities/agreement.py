"""Agreement of two divisions of volunteers into communities: Rand index and mutual information."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array
from crowdgraph.core._partitions import is_partition
from crowdgraph.core.communities import COVER_THRESHOLD, Communities, cover_mask, main_community
from crowdgraph.errors import AlignmentError, ParameterError

__all__ = ["Agreement", "agreement"]

# Pairs of communities to compare at a time, so that thousands of communities fit into memory.
PAIRS_AT_A_TIME = 4_000_000


class Agreement(NamedTuple):
    """How well two divisions agree; each measure is 1 for equal divisions, however their communities are numbered.

    Attributes
    ----------
    ari
        The adjusted Rand index of the assignments: about 0 for unrelated divisions. NaN with fewer than two volunteers
        to compare.
    nmi
        The mutual information of the assignments, divided by the mean of their entropies; from 0 to 1, or NaN likewise.
    overlapping_nmi
        The normalised mutual information of the covers, in which volunteers may be in several communities; from 0 to 1.
    n_volunteers
        How many volunteers are in both divisions; `overlapping_nmi` compares these.
    n_assigned
        How many of them have a community in both; `ari` and `nmi` compare these.
    """

    ari: float
    nmi: float
    overlapping_nmi: float
    n_volunteers: int
    n_assigned: int


class Division(NamedTuple):
    """A division in two forms: the community of each volunteer, -1 for none, and sparse memberships, (V, K)."""

    assignment: Array
    member: Any


def agreement(
    a: Communities | ArrayLike | Any, b: Communities | ArrayLike | Any, *, threshold: float = COVER_THRESHOLD
) -> Agreement:
    r"""Measure how well two divisions of the same volunteers into communities agree.

    The adjusted Rand index and the normalised mutual information compare hard assignments and leave out volunteers
    who have none in `a` or in `b`. The overlapping normalised mutual information compares covers; a volunteer of
    no community is outside of all. It is that of McDaid, Greene and Hurley (2011),

    .. math:: \frac{I(X : Y)}{\max(H(X), H(Y))}, \qquad
              I(X : Y) = \tfrac{1}{2} \left( H(X) - H(X | Y) + H(Y) - H(Y | X) \right),

    where :math:`H(X)` sums the entropies of membership in each community :math:`X_i`, and :math:`H(X | Y)` sums what
    is left of them when the best community of the other cover is known, :math:`\min_j H(X_i | Y_j)`. As Lancichinetti,
    Fortunato and Kertesz (2009) found necessary, only :math:`Y_j` count for which being in both or in neither is more
    informative than being in one; otherwise a community would match its complement. Covers without information
    (everybody in one community) have an agreement of 1 if they are equal, else of 0. For partitions it is close to
    `nmi`, but not the same.

    Parameters
    ----------
    a, b
        Communities, of which the volunteers in both are compared; or arrays for the same volunteers in the same order
        (next to communities, in the order of their `ids`). An array holds the number of each volunteer's community, of
        shape (V,), -1 for none; or participations of shape (V, K), whose rows sum to one, or to zero for none; or
        memberships as booleans of shape (V, K). Volunteers with several memberships have no assignment. Mappings,
        lists of sets and clusterings are read as by `Communities.from_labels`.
    threshold
        The participation from which on a volunteer is a member of a community other than that of assignment; see
        `Communities.cover`. It does not affect assignments and booleans.

    References
    ----------
    A. F. McDaid, D. Greene, N. Hurley (2011). Normalized mutual information to evaluate overlapping community finding
    algorithms. https://arxiv.org/abs/1110.2515

    A. Lancichinetti, S. Fortunato, J. Kertesz (2009). Detecting the overlapping and hierarchical community structure
    in complex networks. https://doi.org/10.1088/1367-2630/11/3/033015

    Examples
    --------
    >>> both = agreement([0, 0, 0, 1, 1, 1], [5, 5, 5, 2, 2, 7])
    >>> round(both.ari, 3), round(both.nmi, 3), round(both.overlapping_nmi, 3)
    (0.706, 0.813, 0.605)
    >>> agreement([{"anna", "bert"}, {"cleo"}], {"anna": "expert", "bert": "expert", "cleo": "novice"}).ari
    1.0
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    a, b = (Communities.from_labels(division) if is_partition(division) else division for division in (a, b))
    left, right = _division(a, threshold=threshold), _division(b, threshold=threshold)
    if isinstance(a, Communities) and isinstance(b, Communities):
        left, right = _of_common_volunteers(a, b, left, right)
    n_volunteers = len(left.assignment)
    if n_volunteers != len(right.assignment):
        raise AlignmentError(
            f"One division has {n_volunteers:,} volunteers, the other {len(right.assignment):,}; give both for the "
            "same volunteers in the same order, or as Communities, which know their volunteers."
        )
    if n_volunteers < 2:
        raise AlignmentError(f"Only {n_volunteers} volunteers are in both divisions; agreement needs two or more.")
    both = (left.assignment >= 0) & (right.assignment >= 0)
    n_assigned = int(np.count_nonzero(both))
    ari = nmi = float("nan")
    if n_assigned >= 2:
        hard = (left.assignment[both], right.assignment[both])
        ari, nmi = float(adjusted_rand_score(*hard)), float(normalized_mutual_info_score(*hard))
    overlapping = _overlapping_nmi(left.member, right.member)
    return Agreement(ari, nmi, overlapping, n_volunteers=n_volunteers, n_assigned=n_assigned)


def _division(communities: Communities | ArrayLike, *, threshold: float) -> Division:
    """Read a division from communities or an array."""
    from scipy.sparse import csr_array

    if isinstance(communities, Communities):
        return Division(communities.assignment, csr_array(cover_mask(communities.participation, threshold)))
    try:
        array = np.asarray(communities)
    except ValueError as error:
        raise ParameterError(f"A division must be Communities or an array: {error}.") from error
    kind = (array.ndim, array.dtype.kind)
    if kind in ((1, "i"), (1, "u")) and (array >= -1).all():
        return Division(array, _membership(array))
    if kind == (2, "b"):
        # A volunteer with several memberships is in none of them more than in the others.
        return Division(np.where(array.sum(axis=1) == 1, main_community(array), -1), csr_array(array))
    if kind in ((2, "f"), (2, "i"), (2, "u")) and (array >= 0).all() and _sum_to_one(array):
        return Division(main_community(array), csr_array(cover_mask(array, threshold)))
    raise ParameterError(
        "A division must be Communities, a mapping or a list of sets of volunteers; or whole numbers from 0 up, -1 for "
        "none, of shape (V,); or, of shape (V, K), participations whose rows sum to one or zero, or booleans. Got "
        f"something else: an array of {array.dtype} of shape {array.shape}."
    )


def _sum_to_one(shares: Array) -> bool:
    """Whether all rows sum to one, or to zero."""
    sums = shares.sum(axis=1)
    return bool((np.isclose(sums, 1.0, rtol=0, atol=1e-6) | (sums == 0)).all())


def _membership(assignment: Array) -> Any:
    """Return the sparse memberships of an assignment, of shape (V, K), one community for each number that occurs."""
    from scipy.sparse import csr_array

    rows = np.flatnonzero(assignment >= 0)
    numbers, columns = np.unique(assignment[rows], return_inverse=True)
    return csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(assignment), len(numbers)))


def _of_common_volunteers(a: Communities, b: Communities, left: Division, right: Division) -> tuple[Division, Division]:
    """Restrict both divisions to the volunteers that they have in common."""
    common = [name for name in a.ids.tolist() if name in b.table]
    if len(common) == len(a.ids) == len(b.ids) and (a.ids == b.ids).all():
        return left, right
    here, there = a.table.codes(common), b.table.codes(common)
    return Division(left.assignment[here], left.member[here]), Division(right.assignment[there], right.member[there])


def _overlapping_nmi(left: Any, right: Any) -> float:
    """Return the overlapping NMI of two sparse arrays of memberships, of shapes (V, K) and (V, M)."""
    n_volunteers = left.shape[0]
    shared = (left.T.astype(np.int64) @ right.astype(np.int64)).tocsr()
    sizes = (np.asarray(left.sum(axis=0)), np.asarray(right.sum(axis=0)))
    entropies = [_entropy(size, n_volunteers) for size in sizes]
    most = max(entropy.sum() for entropy in entropies)
    if most == 0:
        return float((sizes[0] == n_volunteers).any() == (sizes[1] == n_volunteers).any())
    unexplained = _unexplained(shared, *sizes, n=n_volunteers) + _unexplained(
        shared.T.tocsr(), *reversed(sizes), n=n_volunteers
    )
    information = (entropies[0].sum() + entropies[1].sum() - unexplained) / 2
    return float(np.clip(information / most, 0.0, 1.0))


def _entropy(sizes: Array, n: int) -> Array:
    """Return the entropies of membership in communities of these sizes."""
    from scipy.special import entr

    return np.asarray(entr(sizes / n) + entr(1 - sizes / n))


def _unexplained(shared: Any, sizes: Array, other_sizes: Array, *, n: int) -> float:
    """Return H(X | Y): the entropies of membership given the best community of the other cover, summed."""
    from scipy.special import entr

    conditional = _entropy(sizes, n)
    step = max(1, PAIRS_AT_A_TIME // max(len(other_sizes), 1))
    for start in range(0, len(sizes), step):
        part = slice(start, start + step)
        both = shared[part].toarray()
        only, other = sizes[part, None] - both, other_sizes - both
        agree = entr(both / n) + entr((n - both - only - other) / n)
        differ = entr(only / n) + entr(other / n)
        # Counts that tie must tie in floating point, too.
        pairwise = np.where(agree > differ + 1e-12, agree + differ - _entropy(other_sizes, n), np.inf)
        conditional[part] = np.minimum(conditional[part], pairwise.min(axis=1, initial=np.inf))
    return float(conditional.sum())
