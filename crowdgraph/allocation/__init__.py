"""Allocation: who should be asked about what next. The value of questions, and policies that decide by it."""

from crowdgraph.allocation import value
from crowdgraph.allocation.availability import Availability, availability
from crowdgraph.allocation.campaign import Campaign, simulate_campaign
from crowdgraph.allocation.counterfactual import Counterfactual, counterfactual
from crowdgraph.allocation.next_steps import Learner, NextSteps, Retirable, Thanks, next_steps, retirable
from crowdgraph.allocation.objective import Objective
from crowdgraph.allocation.policies import (
    CommunitiesFirst,
    GreedyValue,
    MostUncertain,
    OldestFirst,
    OptimalMatching,
    RandomPolicy,
)
from crowdgraph.allocation.policy import Assignment, Policy
from crowdgraph.allocation.replay import replay_campaign
from crowdgraph.allocation.retirement import ErrorGuarantee, Retirement, calibrated_retirement
from crowdgraph.allocation.settling import SettlingForecast, forecast_settled
from crowdgraph.allocation.shared_errors import SharedErrors, shared_errors
from crowdgraph.allocation.specialisation import Specialisation, specialisation
from crowdgraph.allocation.training import Training, TrainingPlan, training_candidates

__all__ = [
    "Assignment",
    "Availability",
    "Campaign",
    "CommunitiesFirst",
    "Counterfactual",
    "ErrorGuarantee",
    "GreedyValue",
    "Learner",
    "MostUncertain",
    "NextSteps",
    "Objective",
    "OldestFirst",
    "OptimalMatching",
    "Policy",
    "RandomPolicy",
    "Retirable",
    "Retirement",
    "SettlingForecast",
    "SharedErrors",
    "Specialisation",
    "Thanks",
    "Training",
    "TrainingPlan",
    "availability",
    "calibrated_retirement",
    "counterfactual",
    "forecast_settled",
    "next_steps",
    "replay_campaign",
    "retirable",
    "shared_errors",
    "simulate_campaign",
    "specialisation",
    "training_candidates",
    "value",
]


def __dir__() -> list[str]:
    return __all__
