"""How good models are on gold that was hidden from them, and whether the answers are what they expect."""

from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.model_checks import Calibration, Unmeasured, calibration
from crowdgraph.evaluation.panels import EffectiveVotes, effective_votes
from crowdgraph.evaluation.predictive import PredictiveChecks, predictive_checks

__all__ = [
    "Calibration",
    "EffectiveVotes",
    "PredictiveChecks",
    "Unmeasured",
    "calibration",
    "cross_validate",
    "effective_votes",
    "predictive_checks",
]


def __dir__() -> list[str]:
    return __all__
