"""Plots: a graph or a result in, matplotlib axes out. They compute nothing that a result holds, and show nothing.

Functions hide the submodules of the same name: `crowdgraph.plot.network` is the plot. All submodules are imported here,
so that a later import cannot put the module back in the place of the function.
"""

from typing import TYPE_CHECKING, Any

from crowdgraph.core._other_names import missing_from_module
from crowdgraph.plot.activity import activity, responses_over_time
from crowdgraph.plot.communities import participation_matrix, prototypes, relevance
from crowdgraph.plot.confusion import confusion_history, skill_over_time
from crowdgraph.plot.dynamics import community_means_over_time, flow, modularity, participation
from crowdgraph.plot.evaluation import campaign, reliability, roc
from crowdgraph.plot.network import network
from crowdgraph.plot.network_panels import network_over_time
from crowdgraph.plot.ternary import community_ternary, community_ternary_over_time

__all__ = [
    "activity",
    "campaign",
    "community_means_over_time",
    "community_ternary",
    "community_ternary_over_time",
    "confusion_history",
    "flow",
    "modularity",
    "network",
    "network_over_time",
    "participation",
    "participation_matrix",
    "prototypes",
    "relevance",
    "reliability",
    "responses_over_time",
    "roc",
    "skill_over_time",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise missing_from_module(__name__, name)


def __dir__() -> list[str]:
    return __all__
