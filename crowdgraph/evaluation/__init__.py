"""How good models are on gold that was hidden from them."""

from crowdgraph.evaluation.cross_validation import cross_validate
from crowdgraph.evaluation.model_checks import Calibration, Unmeasured, calibration

__all__ = ["Calibration", "Unmeasured", "calibration", "cross_validate"]
