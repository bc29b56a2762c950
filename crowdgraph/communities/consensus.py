"""Consensus: the uncertainty of participations, from communities of resampled networks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
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
        The communities, with the mean participation over all draws.
    draws
        The participations in each draw, of shape (B, V, K); zeros for a volunteer without neighbours in that draw.
    """

    communities: Communities
    draws: Array

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper end of the central interval of each participation, each of shape (V, K)."""
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r} must lie between 0 and 1, such as 0.9.")
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lock(low), lock(high)

    @property
    def stability(self) -> Array:
        """The share of draws in which each volunteer has the same community as on average, of shape (V,)."""
        if not len(self.communities):
            return np.ones(len(self.communities.ids))  # nobody has a community in any draw
        assignment = np.where(self.draws.sum(axis=2) > 0, self.draws.argmax(axis=2), -1)
        return np.asarray((assignment == self.communities.assignment).mean(axis=0))

    def __repr__(self) -> str:
        return (
            f"Consensus({len(self.draws)} draws of {self.communities!r}; volunteers keep their community in "
            f"{self.stability.mean():.0%} of them on average)"
        )


def consensus(
    network: VolunteerNetwork,
    *,
    detector: Detector | None = None,
    draws: int = 20,
    seed: int | None = None,
    progress: bool = False,
) -> Consensus:
    """Detect communities in resampled networks, to measure how certain participations are.

    Each draw resamples the network (`VolunteerNetwork.resampled`: confusion matrices from their posterior, or items
    drawn with replacement) and detects its communities from another start; a network without a model is only started
    anew. Each community of a draw is identified with the community of the network itself with which it shares most
    participation. Participations of volunteers with many answers turn out certain, those of newcomers do not.

    Parameters
    ----------
    network
        The network.
    detector
        The detector; `BayesianNMF` if left out.
    draws
        How often to resample.
    seed
        The same seed gives the same result.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> consensus = cg.communities.consensus(cg.networks.task_cooccurrence(graph), draws=5, seed=0)
    >>> consensus.stability.mean()
    np.float64(1.0)
    """
    check_integer("draws", draws)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    detector = BayesianNMF() if detector is None else detector
    reference = detector.detect(network, seed=child_seed(rng), progress=progress)
    quick = detector._with_settings_of(reference)
    participation = np.zeros((draws, *reference.participation.shape))
    with progress_bar("Consensus", visible=progress, total=draws, unit="draws") as bar:
        for draw in range(draws):
            sample = network if network.model is None else network.resampled(seed=child_seed(rng))
            participation[draw] = _in_terms_of(reference, quick.detect(sample, seed=child_seed(rng)))
            bar.update()
    sums = participation.sum(axis=(0, 2))[:, None]
    mean = np.divide(participation.sum(axis=0), sums, out=np.zeros(participation.shape[1:]), where=sums > 0)
    return Consensus(communities=replace(reference, participation=mean), draws=lock(participation))


def _in_terms_of(reference: Communities, communities: Communities) -> Array:
    """Return participations in the reference's communities: each community counts for the one it shares most with."""
    shared = communities.participation.T @ reference.participation
    participation = np.zeros(reference.participation.shape)
    if shared.size:
        np.add.at(participation.T, shared.argmax(axis=1), communities.participation.T)
    return participation
