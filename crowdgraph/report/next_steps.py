"""What next: the questions, the forecast, retirement, training and thanks that the page lists."""

from __future__ import annotations

from typing import Any

from crowdgraph.messages import Message
from crowdgraph.report._results import SETTLED_PROBABILITY, GraphResults, to_numbers, to_texts

__all__ = ["next_section"]


def next_section(results: GraphResults) -> dict[str, Any]:
    """Return what a team can do next, in numbers and words; each part that is missing has its reason."""
    plan = results.plan
    if plan is None:
        return results.advice(
            Message(
                "What to do next was not computed: crowdgraph.analysis.analyse(graph) does it, and "
                "plan=cg.allocation.next_steps(graph).",
                cli="What to do next was not computed; crowdgraph analyse does it.",
            )
        )
    return {
        "questions": {
            "volunteer": to_texts(plan.volunteers),
            "item": to_texts(plan.items),
            "class": to_texts(plan.likeliest),
            "probability": to_numbers(plan.probability),
            "expected": to_numbers(plan.expected),
            "removed": to_numbers(plan.removed),
        },
        "forecast": None
        if plan.forecast is None
        else [*plan.forecast.sentences, *filter(None, [plan.forecast.advice])],
        "retire": None if plan.retirable is None else plan.retirable.words,
        "learners": [
            [str(one.volunteer), one.n_answers, round(one.share, 4), to_texts(one.teachers)] for one in plan.learners
        ],
        "thanks": [[str(one.volunteer), one.n_answers, round(one.share, 4)] for one in plan.thanks],
        "by_information": plan.by_information,
        "settled_from": SETTLED_PROBABILITY,
        "reasons": dict(plan.reasons),
    }
