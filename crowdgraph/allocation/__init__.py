"""Who should do what next: the value of asking volunteers about items, and policies that decide by it."""

from crowdgraph.allocation import replay, value
from crowdgraph.allocation.availability import availability
from crowdgraph.allocation.base import Policy
from crowdgraph.allocation.counterfactual import counterfactual
from crowdgraph.allocation.policies import (
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    OldestFirst,
    OptimalMatching,
    RandomPolicy,
)
from crowdgraph.allocation.retirement import Promise, Retirement, calibrated_retirement
from crowdgraph.allocation.shared_errors import SharedErrors, shared_errors
from crowdgraph.allocation.specialisation import Specialisation, specialisation
from crowdgraph.allocation.training import training_candidates
from crowdgraph.allocation.worth import Training, Worth
from crowdgraph.core.assignment import Assignment
from crowdgraph.core.availability import Availability
from crowdgraph.core.campaign import Campaign
from crowdgraph.core.counterfactual import Counterfactual
from crowdgraph.core.training import TrainingPlan

__all__ = [
    "Assignment",
    "Availability",
    "Campaign",
    "CommunitiesFirst",
    "Counterfactual",
    "GreedyValue",
    "MostUncertain",
    "OldestFirst",
    "OptimalMatching",
    "Policy",
    "Promise",
    "RandomPolicy",
    "Retirement",
    "SharedErrors",
    "Specialisation",
    "Training",
    "TrainingPlan",
    "Worth",
    "availability",
    "calibrated_retirement",
    "counterfactual",
    "replay",
    "shared_errors",
    "specialisation",
    "training_candidates",
    "value",
]
