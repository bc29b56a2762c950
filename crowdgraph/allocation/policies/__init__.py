"""Ways to decide who is asked about what next, one in each file."""

from crowdgraph.allocation.policies.greedy import GreedyInformation
from crowdgraph.allocation.policies.oldest import OldestFirst
from crowdgraph.allocation.policies.random import RandomPolicy
from crowdgraph.allocation.policies.uncertain import MostUncertain

__all__ = ["GreedyInformation", "MostUncertain", "OldestFirst", "RandomPolicy"]
