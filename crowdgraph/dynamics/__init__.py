"""Communities over time: the same ones followed from snapshot to snapshot, and what becomes of them."""

from crowdgraph.core.community_track import CommunityEvent
from crowdgraph.dynamics.influence import StructureInfluence, influence
from crowdgraph.dynamics.matching import Matching, Sighting, match, sighted
from crowdgraph.dynamics.over_time import over_time

__all__ = ["CommunityEvent", "Matching", "Sighting", "StructureInfluence", "influence", "match", "over_time", "sighted"]
