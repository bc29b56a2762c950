"""Simulated crowds whose truth is known."""

from crowdgraph.simulate.crowd import SimulatedCrowd, Truth, crowd
from crowdgraph.simulate.galaxy_zoo import galaxy_zoo_supernovae, galaxy_zoo_supernovae_full
from crowdgraph.simulate.groups import Group

__all__ = ["Group", "SimulatedCrowd", "Truth", "crowd", "galaxy_zoo_supernovae", "galaxy_zoo_supernovae_full"]
