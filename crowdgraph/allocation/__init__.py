"""Who should do what next: the value of asking volunteers about items, and policies that decide by it."""

from crowdgraph.allocation import replay, value
from crowdgraph.allocation.base import Policy
from crowdgraph.allocation.policies import GreedyInformation, MostUncertain, OldestFirst, RandomPolicy
from crowdgraph.core.assignment import Assignment
from crowdgraph.core.campaign import Campaign

__all__ = [
    "Assignment",
    "Campaign",
    "GreedyInformation",
    "MostUncertain",
    "OldestFirst",
    "Policy",
    "RandomPolicy",
    "replay",
    "value",
]
