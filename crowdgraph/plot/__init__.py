"""Pictures: a graph or result in, matplotlib axes out; nothing is computed twice and nothing is shown."""

from crowdgraph.plot.activity import activity, responses_over_time
from crowdgraph.plot.communities import participation_matrix, prototypes, relevance
from crowdgraph.plot.confusion import confusion_history, skill_over_time
from crowdgraph.plot.dynamics import community_means_over_time, flow, modularity, participation
from crowdgraph.plot.evaluation import campaign, reliability, roc
from crowdgraph.plot.network import network
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
    "participation",
    "participation_matrix",
    "prototypes",
    "relevance",
    "reliability",
    "responses_over_time",
    "roc",
    "skill_over_time",
]
