"""crowd-kit's aggregators, computed by crowdgraph: pandas tables go in, pandas tables come out.

Every aggregator takes a pandas table with the columns ``task``, ``worker`` and ``label``. `fit` returns the aggregator
itself, which then has attributes whose names end with an underscore, as in crowd-kit and scikit-learn. Tables with no
rows give empty results, and where there is a single label it is certain.
"""

from crowdgraph.compat.crowdkit._aggregator import Aggregator
from crowdgraph.compat.crowdkit._models import IBCC, DawidSkene, DynIBCC, ModelAggregator, OneCoinDawidSkene
from crowdgraph.compat.crowdkit._votes import GoldMajorityVote, MajorityVote, Wawa

__all__ = [
    "IBCC",
    "Aggregator",
    "DawidSkene",
    "DynIBCC",
    "GoldMajorityVote",
    "MajorityVote",
    "ModelAggregator",
    "OneCoinDawidSkene",
    "Wawa",
]


def __dir__() -> list[str]:
    return __all__
