"""Pictures: a graph or result in, matplotlib axes out; nothing is computed twice and nothing is shown."""

from crowdgraph.plot.activity import activity
from crowdgraph.plot.reliability import reliability
from crowdgraph.plot.responses_over_time import responses_over_time
from crowdgraph.plot.roc import roc

__all__ = ["activity", "reliability", "responses_over_time", "roc"]
