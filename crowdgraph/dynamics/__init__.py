"""Communities and networks over time: tracked from snapshot to snapshot, and the influence of items on them."""

from crowdgraph.core.community_events import CommunityEvent
from crowdgraph.core.network_track import NetworkTrack
from crowdgraph.dynamics.influence import StructureInfluence, influence
from crowdgraph.dynamics.matching import CommunityProfile, Matching, community_profiles, match
from crowdgraph.dynamics.network_sequence import networks_over_time
from crowdgraph.dynamics.over_time import over_time

__all__ = [
    "CommunityEvent",
    "CommunityProfile",
    "Matching",
    "NetworkTrack",
    "StructureInfluence",
    "community_profiles",
    "influence",
    "match",
    "networks_over_time",
    "over_time",
]


def __dir__() -> list[str]:
    return __all__
