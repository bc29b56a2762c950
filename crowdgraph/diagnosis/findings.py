"""Findings of the data doctor: what was found, with its numbers, why it matters and what to do."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import (
    Array,
    FrozenMapping,
    ReadOnlyArrays,
    id_array,
    object_array,
    plain,
    read_only,
    to_list,
)
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import ParameterError, ResultError, check_choice
from crowdgraph.messages import Interface, quote, suggestion, with_article, wording

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["Check", "Finding", "FindingType", "Findings", "Severity", "Subject", "reports"]

Severity = Literal["info", "note", "warning"]
Subject = Literal["volunteer", "item", "label", "class"]
# From the mildest to the worst.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
# The width of a line of text, and how far the text is indented under its heading.
LINE_WIDTH, INDENT = 100, " " * 9
# How many ids a page shows.
MAX_IDS_SHOWN = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(ReadOnlyArrays, Tabular):
    """One thing that the data doctor found; as a table, a row for each id with its evidence.

    Attributes
    ----------
    topic, name
        What was examined, such as ``"bots"``, and what was found, such as ``"copied answers"``.
    severity
        ``"info"``: good to know; ``"note"``: keep it in mind when reading results; ``"warning"``: results may be wrong.
    what, why, advice
        What was found, with its numbers; why it matters; what to do. Information may come without the latter two.
    subject
        What the ids are of: ``"volunteer"``, ``"item"``, ``"label"`` or ``"class"``.
    ids
        Which of them are concerned, the worst first where they differ; empty where it concerns the whole crowd.
    evidence
        Columns with a value for each of the ids.
    numbers
        The numbers behind the sentence.

    Examples
    --------
    >>> finding = Finding(topic="bots", name="fast answers", severity="warning", what="1 volunteer is very fast.",
    ...                   ids=["anna"], evidence={"seconds": [0.2]}, numbers={"volunteers": 1})
    >>> finding
    WARNING  bots: fast answers
             1 volunteer is very fast.
    >>> print(finding.to_frame(kind="text"))
    volunteer  seconds
    anna           0.2
    """

    topic: str
    name: str
    severity: Severity
    what: str
    why: str = ""
    advice: str = ""
    subject: Subject = "volunteer"
    ids: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    evidence: Mapping[str, ArrayLike] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("severity", self.severity, SEVERITIES)
        check_choice("subject", self.subject, get_args(Subject))
        object.__setattr__(self, "ids", id_array(self.ids))
        columns = {name: read_only(column) for name, column in self.evidence.items()}
        for name, column in columns.items():
            if column.shape != self.ids.shape:
                raise ResultError(
                    f"Evidence {name!r} has shape {column.shape}; expected {self.ids.shape} like the ids."
                )
        object.__setattr__(self, "evidence", FrozenMapping(columns))
        numbers = {name: plain(number) for name, number in self.numbers.items()}
        object.__setattr__(self, "numbers", FrozenMapping(numbers))

    def wording(self, interface: Interface) -> Finding:
        """Return the finding in the words of an interface: ``"python"``, or ``"cli"`` with options instead of calls."""
        what, why, advice = (wording(text, interface) for text in (self.what, self.why, self.advice))
        return replace(self, what=what, why=why, advice=advice)

    def _columns(self) -> Columns:
        return {self.subject: self.ids, **{name: np.asarray(column) for name, column in self.evidence.items()}}

    def to_dict(self, *, most_ids: int | None = None) -> dict[str, Any]:
        """Return the finding as values that JSON knows; `n_ids` counts the ids even if only `most_ids` are given."""
        words = {name: getattr(self, name) for name in ("topic", "name", "severity", "what", "why", "advice")}
        return {
            **words,
            "subject": self.subject,
            "n_ids": len(self.ids),
            "ids": _json_list(self.ids[:most_ids]),
            "evidence": {name: _json_list(np.asarray(column)[:most_ids]) for name, column in self.evidence.items()},
            "numbers": {name: _json_value(number) for name, number in self.numbers.items()},
        }

    def __repr__(self) -> str:
        heading = self.name if self.name == self.topic else f"{self.topic}: {self.name}"
        return "\n".join([f"{self.severity.upper():<{len(INDENT)}}{heading}", *map(_indented, self._sentences())])

    def _repr_html_(self) -> str:
        what, *others = (escape(sentence) for sentence in self._sentences())
        ids = [str(node_id) for node_id in to_list(self.ids[:MAX_IDS_SHOWN])]
        if ids:
            more = f" and {len(self.ids) - MAX_IDS_SHOWN:,} more" if len(self.ids) > MAX_IDS_SHOWN else ""
            others.append(f"<code>{'</code>, <code>'.join(map(escape, ids))}</code>{more}")
        rest = "".join(f"<br>{sentence}" for sentence in others)
        return f"<strong>{self.severity}: {escape(self.name)}.</strong> {what}{rest}"

    def _sentences(self) -> Iterator[str]:
        yield self.what
        if self.why:
            yield f"Why it matters: {self.why}"
        if self.advice:
            yield f"What to do: {self.advice}"


@dataclass(frozen=True, eq=False, repr=False)
class Findings(ReadOnlyArrays, Tabular, Sequence[Finding]):
    """All findings of the data doctor, the worst first; as a table, a row for each.

    Parameters
    ----------
    findings
        The findings; those equally bad keep their order.
    examined
        The topics that were examined, whether or not anything was found.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> findings = cg.simulate.crowd(gold=0, seed=0).graph.diagnose()
    >>> findings.worst
    'note'
    >>> findings.of("bots")
    Findings: none
    """

    findings: tuple[Finding, ...]
    examined: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        findings = tuple(self.findings)
        strangers = [finding for finding in findings if not isinstance(finding, Finding)]
        if strangers:
            raise ResultError(f"Findings are made of Finding objects; got {with_article(type(strangers[0]))}.")
        ordered = sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity))
        topics = dict.fromkeys([*self.examined, *(finding.topic for finding in ordered)])
        object.__setattr__(self, "findings", tuple(ordered))
        object.__setattr__(self, "examined", tuple(topics))

    @property
    def worst(self) -> Severity | None:
        """The worst severity among them; None if there are no findings."""
        return self.findings[0].severity if self.findings else None

    def of(self, name: str) -> Findings:
        """Return the findings of a topic such as ``"bots"``, or of a name such as ``"copied answers"``; maybe none."""
        from crowdgraph.diagnosis.doctor import finding_names

        names = finding_names()
        known = [*self.examined, *(finding_name for topic in self.examined for finding_name in names.get(topic, ()))]
        findings = [finding for finding in self.findings if name in (finding.topic, finding.name)]
        if not findings and name not in known:
            raise ParameterError(
                f"Nothing called {name!r} was examined; the topics are {quote(self.examined, most=20)}."
                f"{suggestion(name, known)}"
            )
        return Findings(tuple(findings), examined=self.examined)

    def at_least(self, severity: Severity) -> Findings:
        """Return the findings of this severity and worse."""
        check_choice("severity", severity, SEVERITIES)
        mildest = SEVERITIES.index(severity)
        findings = [finding for finding in self.findings if SEVERITIES.index(finding.severity) >= mildest]
        return Findings(tuple(findings), examined=self.examined)

    def wording(self, interface: Interface) -> Findings:
        """Return the findings in the words of an interface, as `Finding.wording`."""
        return Findings(tuple(finding.wording(interface) for finding in self.findings), examined=self.examined)

    def __len__(self) -> int:
        return len(self.findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Findings: ...

    def __getitem__(self, index: int | slice) -> Finding | Findings:
        if isinstance(index, slice):
            return Findings(self.findings[index], examined=self.examined)
        return self.findings[index]

    def _columns(self) -> Columns:
        words = ("severity", "topic", "name", "what", "why", "advice", "subject")
        columns: Columns = {word: object_array(str(getattr(finding, word)) for finding in self) for word in words}
        return {**columns, "n_ids": np.array([len(finding.ids) for finding in self], dtype=np.int64)}

    def to_dict(self, *, most_ids: int | None = None) -> dict[str, Any]:
        """Return the findings as values that JSON knows, with at most `most_ids` ids of each."""
        return {
            "examined": list(self.examined),
            "worst": self.worst,
            "findings": [finding.to_dict(most_ids=most_ids) for finding in self.findings],
        }

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *map(repr, self.findings)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{finding._repr_html_()}</li>" for finding in self.findings)
        return f'<div style="text-align:left">{self._headline()}<ul>{rows}</ul></div>'

    def _headline(self) -> str:
        counts = dict.fromkeys(reversed(SEVERITIES), 0)
        for finding in self.findings:
            counts[finding.severity] += 1
        words = {"warning": ("warning", "warnings"), "note": ("note", "notes"), "info": ("for information",) * 2}
        parts = [f"{n} {words[severity][n > 1]}" for severity, n in counts.items() if n]
        return "Findings: " + (", ".join(parts) or "none")


@dataclass(frozen=True, kw_only=True)
class FindingType:
    """What a check can find, declared beside the check: the parts of a `Finding` that do not depend on the data.

    Attributes
    ----------
    topic, name, why, advice, subject
        As in `Finding`.
    severity
        The usual severity; a check may report another.

    Examples
    --------
    >>> SLEEPY = FindingType(topic="bots", name="sleepy", severity="note", why="They may be tired.", advice="Ask them.")
    >>> SLEEPY.finding("3 volunteers are sleepy.", numbers={"volunteers": 3})
    NOTE     bots: sleepy
             3 volunteers are sleepy.
             Why it matters: They may be tired.
             What to do: Ask them.
    """

    topic: str
    name: str
    severity: Severity
    why: str = ""
    advice: str = ""
    subject: Subject = "volunteer"

    def finding(self, what: str, **details: Any) -> Finding:
        """Return a finding of this type; `details` are fields of `Finding`, and replace those declared here."""
        declared = {part.name: getattr(self, part.name) for part in fields(self)}
        return Finding(what=what, **{**declared, **details})


@dataclass(frozen=True)
class Check:
    """A function that examines a graph, and the types of findings that it may report, all of one topic."""

    function: Callable[[CrowdGraph], list[Finding]]
    types: tuple[FindingType, ...]

    @property
    def topic(self) -> str:
        """The topic that is examined."""
        return self.types[0].topic

    def __call__(self, graph: CrowdGraph) -> list[Finding]:
        """Examine a graph."""
        return self.function(graph)


def reports(*types: FindingType) -> Callable[[Callable[[CrowdGraph], list[Finding]]], Check]:
    """Declare which types of findings a check may report."""
    return lambda function: Check(function, types)


def _indented(text: str) -> str:
    return fill(
        text,
        LINE_WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _json_list(column: Array) -> list[Any]:
    return [_json_value(value) for value in to_list(column)]


def _json_value(value: Hashable) -> Any:
    """Return a value that JSON knows: text for what it does not, nothing for what is not a finite number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)
