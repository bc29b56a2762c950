"""The data doctor: what a careful look at the data finds, before any model is asked."""

from crowdgraph.core.findings import Finding, Findings
from crowdgraph.diagnosis.doctor import CHECKS, diagnose

__all__ = ["CHECKS", "Finding", "Findings", "diagnose"]
