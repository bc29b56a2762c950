"""crowdgraph: understand crowds of volunteers who label things.

A `CrowdGraph` holds who said what about which item and when; models read it and return results; the graph is annotated
with results; networks, communities, dynamics, plots and reports are functions of the annotated graph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdgraph import (
        allocation,
        analysis,
        communities,
        dynamics,
        errors,
        evaluation,
        models,
        networks,
        plot,
        report,
        simulate,
        testing,
    )
    from crowdgraph.communities.bayesian_nmf import BayesianNMF
    from crowdgraph.communities.leiden import Leiden
    from crowdgraph.core.clock import Clock
    from crowdgraph.core.communities import Communities, Evidence
    from crowdgraph.core.community_track import CommunityTrack
    from crowdgraph.core.confusion import ConfusionHistory, ConfusionMatrix, ConfusionSnapshot, ConfusionTrack
    from crowdgraph.core.confusion_changes import ConfusionChange
    from crowdgraph.core.fit import Influence, ModelFit, PosteriorDraws
    from crowdgraph.core.gold import Gold
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.core.network import VolunteerNetwork
    from crowdgraph.core.prior import CrowdPrior
    from crowdgraph.diagnosis.findings import Finding, Findings
    from crowdgraph.evaluation.cross_validation import CrossValidation
    from crowdgraph.io.csv import read_csv
    from crowdgraph.io.galaxy_zoo import read_galaxy_zoo_supernovae
    from crowdgraph.io.panoptes import read_panoptes
    from crowdgraph.io.parquet import read_parquet
    from crowdgraph.io.store import load
    from crowdgraph.models import (
        IBCC,
        Cautious,
        DawidSkene,
        DynIBCC,
        GibbsIBCC,
        MajorityVote,
        MeanScore,
        WeightedMajority,
        WeightedSum,
    )

__version__ = "0.1.0"

__all__ = [
    "IBCC",
    "BayesianNMF",
    "Cautious",
    "Clock",
    "Communities",
    "CommunityTrack",
    "ConfusionChange",
    "ConfusionHistory",
    "ConfusionMatrix",
    "ConfusionSnapshot",
    "ConfusionTrack",
    "CrossValidation",
    "CrowdGraph",
    "CrowdPrior",
    "DawidSkene",
    "DynIBCC",
    "Evidence",
    "Finding",
    "Findings",
    "GibbsIBCC",
    "Gold",
    "Influence",
    "Leiden",
    "MajorityVote",
    "MeanScore",
    "ModelFit",
    "PosteriorDraws",
    "VolunteerNetwork",
    "WeightedMajority",
    "WeightedSum",
    "allocation",
    "analysis",
    "communities",
    "dynamics",
    "errors",
    "evaluation",
    "load",
    "models",
    "networks",
    "plot",
    "read_csv",
    "read_galaxy_zoo_supernovae",
    "read_panoptes",
    "read_parquet",
    "report",
    "simulate",
    "testing",
]

# Where each public name lives; loaded when first used (PEP 562), so that importing crowdgraph stays fast.
_HOMES = {
    "BayesianNMF": "crowdgraph.communities.bayesian_nmf",
    "Cautious": "crowdgraph.models.cautious",
    "Clock": "crowdgraph.core.clock",
    "Communities": "crowdgraph.core.communities",
    "CommunityTrack": "crowdgraph.core.community_track",
    "ConfusionChange": "crowdgraph.core.confusion_changes",
    "ConfusionHistory": "crowdgraph.core.confusion",
    "ConfusionMatrix": "crowdgraph.core.confusion",
    "ConfusionSnapshot": "crowdgraph.core.confusion",
    "ConfusionTrack": "crowdgraph.core.confusion",
    "CrossValidation": "crowdgraph.evaluation.cross_validation",
    "CrowdGraph": "crowdgraph.core.graph",
    "CrowdPrior": "crowdgraph.core.prior",
    "DawidSkene": "crowdgraph.models.dawid_skene",
    "DynIBCC": "crowdgraph.models.dynibcc",
    "Evidence": "crowdgraph.core.communities",
    "Finding": "crowdgraph.diagnosis.findings",
    "Findings": "crowdgraph.diagnosis.findings",
    "GibbsIBCC": "crowdgraph.models.gibbs_ibcc",
    "Gold": "crowdgraph.core.gold",
    "IBCC": "crowdgraph.models.ibcc",
    "Influence": "crowdgraph.core.fit",
    "Leiden": "crowdgraph.communities.leiden",
    "MajorityVote": "crowdgraph.models.voting",
    "MeanScore": "crowdgraph.models.voting",
    "ModelFit": "crowdgraph.core.fit",
    "PosteriorDraws": "crowdgraph.core.fit",
    "VolunteerNetwork": "crowdgraph.core.network",
    "WeightedMajority": "crowdgraph.models.voting",
    "WeightedSum": "crowdgraph.models.voting",
    "load": "crowdgraph.io.store",
    "read_csv": "crowdgraph.io.csv",
    "read_galaxy_zoo_supernovae": "crowdgraph.io.galaxy_zoo",
    "read_panoptes": "crowdgraph.io.panoptes",
    "read_parquet": "crowdgraph.io.parquet",
}
_MODULES = (
    "allocation",
    "analysis",
    "communities",
    "dynamics",
    "errors",
    "evaluation",
    "models",
    "networks",
    "plot",
    "report",
    "simulate",
    "testing",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"crowdgraph.{name}")
    else:
        raise AttributeError(f"module 'crowdgraph' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
