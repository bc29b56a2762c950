"""The data doctor: all checks, one after another."""

from __future__ import annotations

from crowdgraph.core._parameters import check_bool
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.bots import check_constant_answers, check_copied_answers, check_fast_answers
from crowdgraph.diagnosis.findings import Check, Finding, Findings
from crowdgraph.diagnosis.labels import check_gold, check_labels, check_switching
from crowdgraph.diagnosis.responses import check_counts, check_coverage, check_duplicates, check_times
from crowdgraph.diagnosis.volunteers import check_activity, check_anonymous, check_hardly_known, check_parts
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article

__all__ = ["CHECKS", "diagnose", "finding_names"]

# In the order in which equally bad findings are listed.
CHECKS: tuple[Check, ...] = (
    check_fast_answers,
    check_constant_answers,
    check_copied_answers,
    check_switching,
    check_gold,
    check_parts,
    check_labels,
    check_duplicates,
    check_anonymous,
    check_hardly_known,
    check_counts,
    check_activity,
    check_coverage,
    check_times,
)


def diagnose(graph: CrowdGraph, *, progress: bool = False) -> Findings:
    """Examine the data for what often goes wrong, before any model is fitted; `CrowdGraph.diagnose` is the same.

    Parameters
    ----------
    graph
        The graph.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Findings
        The findings, the worst first.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> cg.simulate.crowd(seed=0).graph.diagnose().of("duplicates")
    Findings: none
    """
    if not isinstance(graph, CrowdGraph):
        raise ParameterError(f"The data doctor examines a CrowdGraph; got {with_article(type(graph))}.")
    check_bool("progress", progress)
    findings: list[Finding] = []
    with progress_bar("Diagnosis", visible=progress, total=len(CHECKS), unit="checks") as bar:
        for check in CHECKS:
            findings += check(graph)
            bar.update()
    return Findings(tuple(findings), examined=tuple(finding_names()))


def finding_names() -> dict[str, tuple[str, ...]]:
    """Return the names of everything that the checks can find, by topic.

    Examples
    --------
    >>> finding_names()["parts"]
    ('disconnected parts',)
    """
    names: dict[str, tuple[str, ...]] = {}
    for check in CHECKS:
        names[check.topic] = names.get(check.topic, ()) + tuple(kind.name for kind in check.types)
    return names
