"""The data doctor: what a careful look at the data finds, before any model is asked."""

from crowdgraph.diagnosis.doctor import CHECKS, diagnose
from crowdgraph.diagnosis.findings import Finding, Findings

__all__ = ["CHECKS", "Finding", "Findings", "diagnose"]
