"""How good models are on gold that was hidden from them."""

from crowdgraph.evaluation.cross_validation import cross_validate

__all__ = ["cross_validate"]
