"""The report: one page, in one file, that tells what is known of a crowd."""

from crowdgraph.report.write import write

__all__ = ["write"]
