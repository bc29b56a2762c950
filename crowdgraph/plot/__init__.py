"""Pictures: a graph or result in, matplotlib axes out; nothing is computed twice and nothing is shown."""

from crowdgraph.plot.activity import activity
from crowdgraph.plot.responses_over_time import responses_over_time

__all__ = ["activity", "responses_over_time"]
