"""Communities in networks of volunteers: detectors, quality, agreement and consensus."""

from typing import TYPE_CHECKING, Any

from crowdgraph.communities import quality
from crowdgraph.communities.agreement import Agreement, agreement
from crowdgraph.communities.base import Detection, Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.communities.consensus import Consensus, consensus
from crowdgraph.communities.leiden import Leiden
from crowdgraph.communities.network_comparison import NetworkComparison, compare_networks
from crowdgraph.core._other_names import missing_from_module

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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise missing_from_module(__name__, name)


def __dir__() -> list[str]:
    return __all__
