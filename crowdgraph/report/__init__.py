"""The report: one page, in one file, about a crowd."""

from crowdgraph.report.write import write

__all__ = ["write"]


def __dir__() -> list[str]:
    return __all__
