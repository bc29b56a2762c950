"""Networks with dual members, who belong to two communities. Nothing here knows how communities are found."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array


class DualNetwork(NamedTuple):
    """Links, (N, N), of ones; who is in which community, (N, K); and one community of each volunteer, (N,)."""

    links: csr_array
    member: np.ndarray
    one: np.ndarray


def dual_network(*, dual, seed, n=1_000, n_communities=20, n_links=25, mixing=0.2):
    """Everybody has one community or, a share `dual` of all, two; the largest community is up to three times the least.

    Of the ``n * n_links / 2`` links each starts at a volunteer drawn at random and ends, with probability `mixing`, at
    any other; else at a member of the volunteer's community, or of either of both with the same probability. Links that
    are drawn twice count once.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(1, 3, n_communities)
    scores = rng.exponential(size=(n, n_communities)) / sizes
    # The two least of exponential variables are two communities drawn without replacement, by size.
    first, second = np.argsort(scores, axis=1)[:, :2].T
    both = rng.permutation(n) < round(dual * n)
    member = np.zeros((n, n_communities), dtype=bool)
    member[np.arange(n), first] = True
    member[both, second[both]] = True

    left = rng.integers(n, size=n * n_links // 2)
    right = rng.integers(n, size=len(left))
    through = np.where(both[left] & (rng.random(len(left)) < 0.5), second[left], first[left])
    inside = rng.random(len(left)) >= mixing
    for community in range(n_communities):
        rows = np.flatnonzero(inside & (through == community))
        right[rows] = rng.choice(np.flatnonzero(member[:, community]), len(rows))
    apart = left != right
    half = csr_array((np.ones(apart.sum()), (left[apart], right[apart])), shape=(n, n))
    links = csr_array(half + half.T)
    links.data[:] = 1.0
    return DualNetwork(links, member, first)
