"""The whole analysis of a crowd in one call: from a file to classes, skill, communities, pictures and a report."""

from crowdgraph.analysis.analyse import analyse
from crowdgraph.analysis.choices import MODELS, guessed_votes, named_model
from crowdgraph.analysis.reading import Reading, read
from crowdgraph.analysis.result import Analysis
from crowdgraph.analysis.writing import write_results

__all__ = ["MODELS", "Analysis", "Reading", "analyse", "guessed_votes", "named_model", "read", "write_results"]
