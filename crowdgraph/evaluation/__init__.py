"""How good models are: on gold that was hidden from them, and by what they expect of the answers."""

from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.model_checks import calibration, predictive_check

__all__ = ["calibration", "cross_validate", "predictive_check"]
