"""How much there is of everything."""

from __future__ import annotations

import numpy as np

from crowdgraph.core.findings import Finding
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.diagnosis.words import counted, percent

__all__ = ["find_counts"]


def find_counts(graph: CrowdGraph) -> list[Finding]:
    """The sizes; a warning if there is nothing at all."""
    n_responses = len(graph.responses)
    n_answers = int(np.count_nonzero(graph.responses.label >= 0))
    sizes = {
        "volunteers": int(np.count_nonzero(graph.volunteers.n_responses)),
        "items": int(np.count_nonzero(graph.items.n_responses)),
        "responses": n_responses,
        "answers": n_answers,
        "labels": len(graph.labels),
    }
    if not n_answers:
        return [_nothing(sizes)]
    what = (
        f"{counted(sizes['volunteers'], 'volunteer')} gave {counted(n_answers, 'answer')} about "
        f"{counted(sizes['items'], 'item')}, with {counted(sizes['labels'], 'label')} to choose from."
    )
    found = [Finding(topic="counts", name="counts", severity="info", what=what, numbers=sizes)]
    return found + _unanswered(n_responses, n_answers)


def _nothing(sizes: dict[str, int]) -> Finding:
    return Finding(
        topic="counts",
        name="no answers",
        severity="warning",
        what=f"There are no answers among {counted(sizes['responses'], 'response')}.",
        why="Without answers nothing can be learned.",
        advice="Check which column holds the labels, and which filter made the file.",
        numbers=sizes,
    )


def _unanswered(n_responses: int, n_answers: int) -> list[Finding]:
    n_empty = n_responses - n_answers
    if not n_empty:
        return []
    share = n_empty / n_responses
    finding = Finding(
        topic="counts",
        name="shown but not answered",
        severity="note" if share > 0.05 else "info",
        what=f"{counted(n_empty, 'response')} ({percent(share)}) show an item without an answer.",
        why="Items that are skipped are often the hard ones; models leave these responses out.",
        advice="If skipping means something, such as 'cannot tell', make it a label of its own.",
        numbers={"unanswered": n_empty, "share": share},
    )
    return [finding]
