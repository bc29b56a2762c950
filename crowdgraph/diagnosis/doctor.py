"""All checks of the data doctor, one after another."""

from __future__ import annotations

from collections.abc import Callable

from crowdgraph.core._parameters import check_bool, progress_bar
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.bots import find_constant, find_copied, find_fast
from crowdgraph.diagnosis.findings import Finding, Findings
from crowdgraph.diagnosis.labels import find_gold, find_labels, find_switching
from crowdgraph.diagnosis.responses import find_counts, find_coverage, find_duplicates, find_times
from crowdgraph.diagnosis.volunteers import find_activity, find_anonymous, find_parts, find_prior
from crowdgraph.errors import ParameterError

__all__ = ["CHECKS", "diagnose"]

# What is looked at, in the order in which equally bad findings are told, and what looks at it.
CHECKS: tuple[tuple[str, Callable[[CrowdGraph], list[Finding]]], ...] = (
    ("bots", find_fast),
    ("bots", find_constant),
    ("bots", find_copied),
    ("switching", find_switching),
    ("gold", find_gold),
    ("parts", find_parts),
    ("labels", find_labels),
    ("duplicates", find_duplicates),
    ("anonymous", find_anonymous),
    ("prior", find_prior),
    ("counts", find_counts),
    ("activity", find_activity),
    ("coverage", find_coverage),
    ("times", find_times),
)


def diagnose(graph: CrowdGraph, *, progress: bool = False) -> Findings:
    """What a careful look at the data finds, the worst first; `CrowdGraph.diagnose` is the same.

    Parameters
    ----------
    graph
        The graph.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> cg.simulate.crowd(seed=0).graph.diagnose().of("duplicates")
    Findings: none
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"The doctor looks at a CrowdGraph; got a {type(graph).__name__}.")
    check_bool("progress", progress)
    found: list[Finding] = []
    with progress_bar("Diagnosis", visible=progress, total=len(CHECKS), unit="checks") as bar:
        for _, find in CHECKS:
            found += find(graph)
            bar.update()
    return Findings(tuple(found), examined=tuple(dict.fromkeys(topic for topic, _ in CHECKS)))
