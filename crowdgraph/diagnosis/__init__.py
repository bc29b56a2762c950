"""The data doctor: checks of the data for what often goes wrong, before any model is fitted."""

from crowdgraph.diagnosis.doctor import CHECKS, diagnose
from crowdgraph.diagnosis.findings import Check, Finding, Findings, FindingType, reports

__all__ = ["CHECKS", "Check", "Finding", "FindingType", "Findings", "diagnose", "reports"]
