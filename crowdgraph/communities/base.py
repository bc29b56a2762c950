"""What every detector has in common: settings as fields, and one verb, `detect`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.communities.quality import modularity, soft_modularity
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_seed
from crowdgraph.core.communities import Communities, Evidence, largest_first, main_community
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ParameterError

__all__ = ["Detection", "Detector"]


class Detection(NamedTuple):
    """What a detector found in a network without isolated volunteers.

    Participation is of shape (V, K), and rows sum to one; relevance is of shape (at least K,), first that of the
    communities. See `Communities` for both and for the evidence. Settings that the detector chose itself are `chosen`.
    """

    participation: Array
    relevance: Array | None = None
    evidence: Evidence | None = None
    chosen: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Detector(ABC):
    """A way to find communities in a network of volunteers.

    A detector is a frozen dataclass whose fields are its settings. To add one, derive from this class, give it a
    `name`, check the settings in ``__post_init__`` and implement `_detect`; `crowdgraph.testing.check_detector` checks
    the rest.
    """

    name: ClassVar[str]

    def detect(self, network: VolunteerNetwork, *, seed: int | None = None, progress: bool = False) -> Communities:
        """Find the communities of a network, the largest first.

        Volunteers without neighbours belong to none: their participation is zero, their assignment -1.

        Parameters
        ----------
        network
            The network; it stays as it is.
        seed
            The same seed gives the same communities.
        progress
            Whether to show a progress bar.
        """
        if not isinstance(network, VolunteerNetwork):
            raise ParameterError(
                f"Communities are detected in a VolunteerNetwork; got a {type(network).__name__}. Make one with "
                "crowdgraph.networks.pi_similarity(graph) or task_cooccurrence(graph)."
            )
        check_seed(seed)
        linked = network.degree > 0
        found = Detection(np.zeros((0, 0)))
        if linked.any():
            part = network if linked.all() else network.subnetwork(network.ids[linked])
            found = self._detect(part, seed=None if seed is None else int(seed), progress=progress)
        shares = np.zeros((len(network), found.participation.shape[1]))
        shares[linked] = found.participation
        order = largest_first(shares)
        shares, relevance = shares[:, order], found.relevance
        return Communities(
            ids=network.ids,
            participation=shares,
            modularity=modularity(network, main_community(shares)),
            soft_modularity=soft_modularity(network, shares),
            method=self.name,
            params={**self.settings(), **found.chosen},
            relevance=None if relevance is None else np.concatenate([relevance[order], relevance[len(order) :]]),
            evidence=found.evidence,
            support=network.support,
            confusion=None if network.model is None else network.model.confusion,
        )

    @abstractmethod
    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Detection:
        """The communities of a network without isolated volunteers."""

    def again(self, found: Communities) -> Detector:  # noqa: ARG002 - most have nothing to spare
        """A detector that finds the same communities in a network like the one of `found`, with less work."""
        return self

    def settings(self) -> dict[str, Any]:
        """The detector's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}
