"""Models that combine the crowd's answers."""

from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated
from crowdgraph.models.cautious import Cautious
from crowdgraph.models.classifier_ibcc import ClassifierIBCC
from crowdgraph.models.dawid_skene import DawidSkene
from crowdgraph.models.dynibcc import DynIBCC
from crowdgraph.models.gibbs_ibcc import GibbsIBCC
from crowdgraph.models.ibcc import IBCC
from crowdgraph.models.ordinal_ibcc import OrdinalIBCC
from crowdgraph.models.streaming_ibcc import StreamingIBCC
from crowdgraph.models.voting import MajorityVote, MeanScore, WeightedMajority, WeightedSum

__all__ = [
    "IBCC",
    "Calibrated",
    "Cautious",
    "ClassifierIBCC",
    "DawidSkene",
    "DynIBCC",
    "GibbsIBCC",
    "MajorityVote",
    "MeanScore",
    "Model",
    "OrdinalIBCC",
    "StreamingIBCC",
    "WeightedMajority",
    "WeightedSum",
]


def __dir__() -> list[str]:
    return __all__
