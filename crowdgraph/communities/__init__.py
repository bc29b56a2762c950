"""Communities in networks of volunteers."""

from crowdgraph.communities import quality
from crowdgraph.communities.base import Detector
from crowdgraph.communities.leiden import Leiden

__all__ = ["Detector", "Leiden", "quality"]
