"""How sure participations are: communities found again and again, in networks that could as well be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed, child_seed, progress_bar
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError

__all__ = ["Consensus", "consensus"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Consensus(ReadOnlyArrays):
    """Participations with their uncertainty.

    Attributes
    ----------
    communities
        The communities, with the mean participation of all draws.
    draws
        Participations in each draw, of shape (B, V, K); a volunteer without neighbours in a draw has zeros there.
    """

    communities: Communities
    draws: Array

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The lower and upper end of the central interval of each participation, each of shape (V, K)."""
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.9.")
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lock(low), lock(high)

    @property
    def stability(self) -> Array:
        """The share of draws in which each volunteer is assigned to the same community as in most, of shape (V,)."""
        assigned = np.where(self.draws.sum(axis=2) > 0, self.draws.argmax(axis=2), -1)
        return np.asarray((assigned == self.communities.assignment).mean(axis=0))

    def __repr__(self) -> str:
        return (
            f"Consensus({len(self.draws)} draws of {self.communities!r}; on average volunteers stay in "
            f"{self.stability.mean():.0%} of them)"
        )


def consensus(
    network: VolunteerNetwork,
    *,
    detector: Detector | None = None,
    draws: int = 20,
    seed: int | None = None,
    progress: bool = False,
) -> Consensus:
    """Find communities again and again, to tell how sure participations are.

    Each time the network is made anew from what is known of its volunteers (`VolunteerNetwork.resampled`: confusion
    matrices from their posterior, or items drawn with replacement) and searched from another start; a network made by
    hand is searched from another start only. What is found is told in the communities of the network itself: each new
    community counts for that of them with which it shares most. So participations of volunteers with many answers are
    sure, and those of newcomers are not.

    Parameters
    ----------
    network
        The network.
    detector
        What finds the communities; `BayesianNMF` if left out.
    draws
        How often to find them.
    seed
        The same seed gives the same answer.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> sure = cg.communities.consensus(cg.networks.task_cooccurrence(graph), draws=5, seed=0)
    >>> sure.stability.mean()
    np.float64(1.0)
    """
    check_integer("draws", draws)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    detector = BayesianNMF() if detector is None else detector
    reference = detector.detect(network, seed=child_seed(rng), progress=progress)
    quick = detector.again(reference)
    found = np.zeros((draws, *reference.participation.shape))
    with progress_bar("Consensus", visible=progress, total=draws, unit="draws") as bar:
        for place in range(draws):
            drawn = network if network.model is None else network.resampled(seed=child_seed(rng))
            found[place] = _told(quick.detect(drawn, seed=child_seed(rng)), reference)
            bar.update()
    sums = found.sum(axis=(0, 2))[:, None]
    mean = np.divide(found.sum(axis=0), sums, out=np.zeros(found.shape[1:]), where=sums > 0)
    return Consensus(communities=replace(reference, participation=mean), draws=lock(found))


def _told(found: Communities, reference: Communities) -> Array:
    """Participations in the reference's communities: each new one counts for that with which it shares most."""
    shared = found.participation.T @ reference.participation
    told = np.zeros(reference.participation.shape)
    if shared.size:
        np.add.at(told.T, shared.argmax(axis=1), found.participation.T)
    return told
