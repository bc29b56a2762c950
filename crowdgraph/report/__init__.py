"""The report: one page, in one file, about a crowd."""

from crowdgraph.report.show import show
from crowdgraph.report.write import write

__all__ = ["show", "write"]


def __dir__() -> list[str]:
    return __all__
