"""Policies, one in each file."""

from crowdgraph.allocation.policies.communities import CommunitiesFirst
from crowdgraph.allocation.policies.greedy import GreedyValue
from crowdgraph.allocation.policies.matching import OptimalMatching
from crowdgraph.allocation.policies.oldest import OldestFirst
from crowdgraph.allocation.policies.random import RandomPolicy
from crowdgraph.allocation.policies.uncertain import MostUncertain

__all__ = ["CommunitiesFirst", "GreedyValue", "MostUncertain", "OldestFirst", "OptimalMatching", "RandomPolicy"]
