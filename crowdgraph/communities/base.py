"""The base class of detectors: settings as fields, and one verb, `detect`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.communities.quality import modularity, soft_modularity
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import Configured, check_seed
from crowdgraph.core.communities import Communities, largest_first, main_community
from crowdgraph.core.evidence import Evidence
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article

__all__ = ["Detection", "Detector"]


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
    """

    participation: Array
    relevance: Array | None = None
    evidence: Evidence | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    objective: float = float("nan")
    candidate: Array | None = None

    @property
    def assignment(self) -> Array:
        """The community in which each volunteer participates most, of shape (V,)."""
        return main_community(self.participation)


@dataclass(frozen=True, kw_only=True)
class Detector(Configured, ABC):
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
            The same seed gives the same communities.
        progress
            Whether to show a progress bar.
        """
        if not isinstance(network, VolunteerNetwork):
            raise ParameterError(
                f"Communities are detected in a VolunteerNetwork; got {with_article(type(network))}. Make one with "
                "crowdgraph.networks.pi_similarity(graph) or task_cooccurrence(graph)."
            )
        return self._detect_with_candidate(network, seed=seed, progress=progress)[0]

    def _detect_with_candidate(
        self, network: VolunteerNetwork, *, seed: int | None, progress: bool = False
    ) -> tuple[Communities, Communities]:
        """Return the communities, and those that would be reported if the evidence sufficed (else the same)."""
        check_seed(seed)
        linked = network.degree > 0
        detection = Detection(np.zeros((0, 0)))
        if linked.any():
            part = network if linked.all() else network.subnetwork(network.ids[linked])
            detection = self._detect(part, seed=None if seed is None else int(seed), progress=progress)
        communities = self._communities(network, linked, detection)
        if detection.candidate is None or detection.candidate.shape == detection.participation.shape:
            return communities, communities
        candidate = detection._replace(participation=detection.candidate, relevance=None)
        return communities, self._communities(network, linked, candidate)

    def _communities(self, network: VolunteerNetwork, linked: Array, detection: Detection) -> Communities:
        """Return what was detected among the linked volunteers of a network, the largest community first."""
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
        """Return the communities of a network without isolated volunteers."""

    def _with_settings_of(self, communities: Communities) -> Detector:  # noqa: ARG002 - most detectors choose nothing
        """Return a faster detector that reuses the settings which were chosen for similar communities."""
        return self

    def settings(self) -> dict[str, Any]:
        """Return the detector's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}
