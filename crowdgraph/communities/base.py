"""What every detector has in common: settings as fields, and one verb, `detect`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from crowdgraph.communities.quality import modularity
from crowdgraph.core.columns import Array
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.settings import check_seed
from crowdgraph.errors import ParameterError

__all__ = ["Detector"]


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
        shares = np.zeros((len(network), 0))
        if linked.any():
            part = network if linked.all() else network.subnetwork(network.ids[linked])
            found = self._detect(part, seed=None if seed is None else int(seed), progress=progress)
            shares = np.zeros((len(network), found.shape[1]))
            shares[linked] = found
        shares = _largest_first(shares)
        return Communities(
            ids=network.ids,
            participation=shares,
            modularity=modularity(network, np.where(linked, shares.argmax(axis=1) if shares.size else -1, -1)),
            method=self.name,
            params=self.settings(),
        )

    @abstractmethod
    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Array:
        """The participation, of shape (V, K), in a network without isolated volunteers; rows sum to one."""

    def settings(self) -> dict[str, Any]:
        """The detector's settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}


def _largest_first(shares: Array) -> Array:
    """Columns by how many volunteers are assigned to them, then by participation, then by first members."""
    if not shares.size:
        return shares
    sizes = np.bincount(shares.argmax(axis=1)[shares.sum(axis=1) > 0], minlength=shares.shape[1])
    return shares[:, np.lexsort((shares.argmax(axis=0), -shares.sum(axis=0).round(9), -sizes))]
