"""Communities in networks of volunteers: detectors, quality, agreement and consensus."""

from crowdgraph.communities import quality
from crowdgraph.communities.agreement import Agreement, agreement
from crowdgraph.communities.base import Detection, Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.communities.consensus import Consensus, consensus
from crowdgraph.communities.leiden import Leiden
from crowdgraph.communities.network_comparison import NetworkComparison, compare_networks

__all__ = [
    "Agreement",
    "BayesianNMF",
    "Consensus",
    "Detection",
    "Detector",
    "Leiden",
    "NetworkComparison",
    "agreement",
    "compare_networks",
    "consensus",
    "quality",
]
