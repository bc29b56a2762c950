"""The base class of detectors: settings as fields, and one verb, `detect`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.communities.quality import modularity, soft_modularity
from crowdgraph.core._arrays import Array
from crowdgraph.core._other_names import AdvisesOnNames
from crowdgraph.core._parameters import Configured, check_seed
from crowdgraph.core.communities import Communities, largest_first, main_community
from crowdgraph.core.evidence import Evidence
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.canonical_order import canonical_order
from crowdgraph.messages import with_article

__all__ = ["Detection", "Detector"]

# Where the largest weight is in this range, products of sums of weights are within the numbers.
WEIGHT_RANGE = (1e-100, 1e100)


class Detection(NamedTuple):
    """The communities that a detector found in a network without isolated volunteers.

    Attributes
    ----------
    participation
        How much each volunteer belongs to each community, of shape (V, K); rows sum to one.
    relevance, evidence
        As in `Communities`: of shape (at least K,), those of the communities first; and whether there are any.
    settings
        The settings that the detector chose itself, by name.
    objective
        What the detector maximised, to choose among several starts; NaN if it has no such number.
    candidate
        The participation in the communities that would be reported if the evidence sufficed; None if the same.
    others
        The participations that other starts found in the same network.
    """

    participation: Array
    relevance: Array | None = None
    evidence: Evidence | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    objective: float = float("nan")
    candidate: Array | None = None
    others: tuple[Array, ...] = ()

    @property
    def assignment(self) -> Array:
        """The community in which each volunteer participates most, of shape (V,)."""
        return main_community(self.participation)


class Snapshot(NamedTuple):
    """What was detected in one of a sequence of networks.

    Attributes
    ----------
    communities
        The communities.
    candidate
        Those that would be reported if the evidence sufficed; the same if it does, or if they were not looked for.
    others
        Those that other starts found.
    """

    communities: Communities
    candidate: Communities
    others: tuple[Communities, ...]


@dataclass(frozen=True, kw_only=True)
class Detector(AdvisesOnNames, Configured, ABC):
    """A method to find communities in a network of volunteers.

    A detector is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a
    `name`, declare the settings and implement `_detect`; `crowdgraph.testing.check_detector` checks the rest.
    """

    name: ClassVar[str]

    def detect(self, network: VolunteerNetwork, *, seed: int | None = None, progress: bool = False) -> Communities:
        """Find the communities of a network, the largest first.

        Volunteers without neighbours belong to no community: their participation is zero, their assignment -1.

        Parameters
        ----------
        network
            The network; it is not changed.
        seed
            The same seed gives the same communities of the same network on the same machine, also under other names, in
            another order of volunteers, and once the network was saved with its graph and loaded. Volunteers who could
            change places without a difference to the weights are the exception: where a division tells them apart, the
            order may decide who is who.
        progress
            Whether to show a progress bar.
        """
        if not isinstance(network, VolunteerNetwork):
            raise ParameterError(
                f"Communities are detected in a VolunteerNetwork; got {with_article(type(network))}. Make one with "
                "crowdgraph.networks.pi_similarity(graph) or task_cooccurrence(graph)."
            )
        return self._detect_snapshot(network, None, seed=seed, progress=progress).communities

    def _detect_snapshot(
        self, network: VolunteerNetwork, previous: Communities | None, *, seed: int | None, progress: bool = False
    ) -> Snapshot:
        """Detect the communities of a network, given those of the network before it, if there is one."""
        check_seed(seed)
        linked = canonical_order(network.weights, network.support)
        detection = Detection(np.zeros((0, 0)))
        if len(linked):
            part = _in_usual_unit(network.subnetwork(network.ids[linked]))
            detection = self._detect_after(part, previous, seed=None if seed is None else int(seed), progress=progress)
        communities = candidate = self._communities(network, linked, detection)
        if detection.candidate is not None and detection.candidate.shape != detection.participation.shape:
            better = detection._replace(participation=detection.candidate, relevance=None)
            candidate = self._communities(network, linked, better)
        others = (detection._replace(participation=one, relevance=None) for one in detection.others)
        return Snapshot(communities, candidate, tuple(self._communities(network, linked, one) for one in others))

    def _communities(self, network: VolunteerNetwork, linked: Array, detection: Detection) -> Communities:
        """Return what was detected among the linked volunteers of a network (codes), the largest community first."""
        participation = np.zeros((len(network), detection.participation.shape[1]))
        participation[linked] = detection.participation
        order = largest_first(participation)
        participation, relevance = participation[:, order], detection.relevance
        return Communities(
            ids=network.ids,
            participation=participation,
            modularity=modularity(network, main_community(participation)),
            soft_modularity=soft_modularity(network, participation),
            method=self.name,
            params={**self.settings(), **detection.settings},
            relevance=None if relevance is None else np.concatenate([relevance[order], relevance[len(order) :]]),
            evidence=detection.evidence,
            support=network.support,
            confusion=None if network.model is None else network.model.confusion,
        )

    @abstractmethod
    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Detection:
        """Return the communities of a network without isolated volunteers, whose order their weights decide."""

    def _detect_after(
        self,
        network: VolunteerNetwork,
        previous: Communities | None,  # noqa: ARG002 - most detectors reuse nothing
        *,
        seed: int | None,
        progress: bool,
    ) -> Detection:
        """Do the same as `_detect`, given the communities of the network before, to reuse what was found there."""
        return self._detect(network, seed=seed, progress=progress)

    def _with_settings_of(self, communities: Communities) -> Detector:  # noqa: ARG002 - most detectors choose nothing
        """Return a faster detector that reuses the settings which were chosen for similar communities."""
        return self

    def settings(self) -> dict[str, Any]:
        """Return the detector's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}


def _in_usual_unit(network: VolunteerNetwork) -> VolunteerNetwork:
    """Return the network; if weights are so large or small that products are beyond the numbers, in another unit."""
    weights = network.weights
    largest = float((weights if isinstance(weights, np.ndarray) else weights.data).max())
    if WEIGHT_RANGE[0] <= largest <= WEIGHT_RANGE[1]:
        return network
    # Only ratios count, which powers of two leave as they are. Twice half, since the power may be beyond the numbers.
    half = int(np.frexp(largest)[1]) // 2
    return replace(network, weights=weights * 2.0**-half * 2.0**-half)
