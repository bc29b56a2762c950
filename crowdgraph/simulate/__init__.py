"""Simulated crowds whose truth is known."""

from crowdgraph.simulate.crowd import SimulatedCrowd, Truth, crowd
from crowdgraph.simulate.galaxy_zoo import (
    galaxy_zoo_supernovae,
    galaxy_zoo_supernovae_auc_table,
    galaxy_zoo_supernovae_full,
)
from crowdgraph.simulate.groups import Group
from crowdgraph.simulate.queue import Queue

__all__ = [
    "Group",
    "Queue",
    "SimulatedCrowd",
    "Truth",
    "crowd",
    "galaxy_zoo_supernovae",
    "galaxy_zoo_supernovae_auc_table",
    "galaxy_zoo_supernovae_full",
]


def __dir__() -> list[str]:
    return __all__
