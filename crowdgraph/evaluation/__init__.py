"""How good models are on gold that was hidden from them."""

from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.model_checks import calibration

__all__ = ["calibration", "cross_validate"]
