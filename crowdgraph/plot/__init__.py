"""Pictures: a graph or result in, matplotlib axes out; nothing is computed twice and nothing is shown."""

from crowdgraph.plot.activity import activity
from crowdgraph.plot.confusion_history import confusion_history
from crowdgraph.plot.reliability import reliability
from crowdgraph.plot.responses_over_time import responses_over_time
from crowdgraph.plot.roc import roc
from crowdgraph.plot.skill_over_time import skill_over_time

__all__ = ["activity", "confusion_history", "reliability", "responses_over_time", "roc", "skill_over_time"]
