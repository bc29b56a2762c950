"""Pictures: a graph or result in, matplotlib axes out; nothing is computed twice and nothing is shown."""

from crowdgraph.plot.activity import activity
from crowdgraph.plot.campaign import campaign
from crowdgraph.plot.community_means_over_time import community_means_over_time
from crowdgraph.plot.community_ternary import community_ternary
from crowdgraph.plot.community_ternary_over_time import community_ternary_over_time
from crowdgraph.plot.confusion_history import confusion_history
from crowdgraph.plot.flow import flow
from crowdgraph.plot.modularity import modularity
from crowdgraph.plot.network import network
from crowdgraph.plot.participation import participation
from crowdgraph.plot.participation_matrix import participation_matrix
from crowdgraph.plot.prototypes import prototypes
from crowdgraph.plot.relevance import relevance
from crowdgraph.plot.reliability import reliability
from crowdgraph.plot.responses_over_time import responses_over_time
from crowdgraph.plot.roc import roc
from crowdgraph.plot.skill_over_time import skill_over_time

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
