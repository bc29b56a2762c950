"""A complete analysis in one call: from a file to classes, skill, communities, pictures and a report."""

from crowdgraph.analysis.analyse import Analysis, analyse
from crowdgraph.analysis.defaults import DEFAULT_MODEL, MODELS, named_model
from crowdgraph.analysis.output import write_results
from crowdgraph.analysis.several import Part, write_several
from crowdgraph.analysis.update import EarlierResults, Renewal, read_results, renewal
from crowdgraph.io.any_file import Reading, read
from crowdgraph.models.label_votes import guess_votes

__all__ = [
    "DEFAULT_MODEL",
    "MODELS",
    "Analysis",
    "EarlierResults",
    "Part",
    "Reading",
    "Renewal",
    "analyse",
    "guess_votes",
    "named_model",
    "read",
    "read_results",
    "renewal",
    "write_results",
    "write_several",
]


def __dir__() -> list[str]:
    return __all__
