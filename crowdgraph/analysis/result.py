"""What an analysis found: the annotated graph, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdgraph.core.columns import FrozenMapping, Sealed, object_array
from crowdgraph.core.findings import Findings
from crowdgraph.core.graph import CrowdGraph

__all__ = ["Analysis", "by_reason"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Analysis(Sealed):
    """What `analyse` found.

    Attributes
    ----------
    graph
        The graph, annotated with the fit, networks, communities and communities over time, as far as they were made.
    findings
        What the data doctor says of the data.
    skipped
        The steps that could not be done, each with the reason.
    notes
        What was decided without being asked, and what the steps warned of, in sentences.
    timings
        How many seconds each step took.
    parameters
        The settings with which the same graph gives the same analysis.
    """

    graph: CrowdGraph
    findings: Findings
    skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("skipped", "timings", "parameters"):
            object.__setattr__(self, name, FrozenMapping(getattr(self, name)))
        object.__setattr__(self, "notes", tuple(self.notes))

    def to_frame(self, *, kind: str = "pandas") -> Any:
        """One row for each step: how long it took, and why it was skipped; `kind` is pandas, polars or arrow."""
        from crowdgraph.io.columns import native_frame

        columns = {
            "step": object_array(self.timings),
            "seconds": object_array(map(float, self.timings.values())),
            "skipped": object_array(self.skipped.get(step, "") for step in self.timings),
        }
        return native_frame(columns, kind=kind)

    def __repr__(self) -> str:
        done = [step for step in self.timings if step not in self.skipped]
        lines = [f"Analysis in {sum(self.timings.values()):.1f} s: {', '.join(done)}"]
        lines += [f"  skipped {steps}: {reason}" for reason, steps in by_reason(self.skipped).items()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def by_reason(skipped: Mapping[str, str]) -> dict[str, str]:
    """The steps that were skipped for each reason.

    Examples
    --------
    >>> by_reason({"pi_similarity": "Too few.", "communities": "Too few."})
    {'Too few.': 'pi_similarity, communities'}
    """
    steps: dict[str, str] = {}
    for step, reason in skipped.items():
        steps[reason] = f"{steps[reason]}, {step}" if reason in steps else step
    return steps
