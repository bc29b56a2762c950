"""The policies, one in each file."""

from crowdgraph.allocation.policies.communities_first import CommunitiesFirst
from crowdgraph.allocation.policies.greedy_value import GreedyValue
from crowdgraph.allocation.policies.most_uncertain import MostUncertain
from crowdgraph.allocation.policies.oldest_first import OldestFirst
from crowdgraph.allocation.policies.optimal_matching import OptimalMatching
from crowdgraph.allocation.policies.random_policy import RandomPolicy

__all__ = ["CommunitiesFirst", "GreedyValue", "MostUncertain", "OldestFirst", "OptimalMatching", "RandomPolicy"]
