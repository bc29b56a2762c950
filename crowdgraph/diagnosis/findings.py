"""What the data doctor found: findings with their numbers, why they matter and what to do."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from textwrap import fill
from typing import Any, Literal, get_args, overload

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
from crowdgraph.errors import Interface, ParameterError, ResultError, check_choice, quote, suggestion, wording

__all__ = ["NAMES", "Finding", "Findings", "Severity", "Subject"]

Severity = Literal["info", "note", "warning"]
Subject = Literal["volunteer", "item", "label", "class"]
# What can be found, by topic.
NAMES: Mapping[str, tuple[str, ...]] = FrozenMapping(
    {
        "bots": ("fast answers", "constant answers", "copied answers", "copies not examined"),
        "switching": (
            "agreement",
            "no agreement",
            "no gold",
            "worse than chance",
            "swapped classes",
            "contrary volunteers",
        ),
        "gold": ("gold", "skewed gold", "classes with little gold", "gold without answers"),
        "parts": ("disconnected parts",),
        "labels": ("rare labels", "labels spelt alike", "one label"),
        "duplicates": ("repeated answers", "inconsistent repeats", "rows twice"),
        "anonymous": ("shared id", "visitors"),
        "prior": ("ruled by the prior",),
        "counts": ("counts", "no answers", "shown but not answered"),
        "activity": ("activity", "one-timers", "very active volunteers"),
        "coverage": ("coverage", "items without answers", "items with one answer"),
        "times": ("no times", "times without a unit", "answers at the same moment", "pauses", "stray times"),
    }
)
# From the mildest to the worst.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
# How wide a line of text is, and how far the text is moved in under its heading.
WIDTH, INDENT = 100, " " * 9
# How many ids a page shows.
MOST_IDS = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(ReadOnlyArrays, Tabular):
    """One thing that the data doctor found.

    Attributes
    ----------
    topic, name
        What was looked at, such as ``"bots"``, and what was found, such as ``"copied answers"``.
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

    def _columns(self) -> Columns:
        """A row for each id with its evidence."""
        return {self.subject: self.ids, **{name: np.asarray(column) for name, column in self.evidence.items()}}

    def to_dict(self, *, most_ids: int | None = None) -> dict[str, Any]:
        """The finding in values that JSON knows; `n_ids` tells how many ids there are if only `most_ids` are given."""
        words = {name: getattr(self, name) for name in ("topic", "name", "severity", "what", "why", "advice")}
        return {
            **words,
            "subject": self.subject,
            "n_ids": len(self.ids),
            "ids": _safe_list(self.ids[:most_ids]),
            "evidence": {name: _safe_list(np.asarray(column)[:most_ids]) for name, column in self.evidence.items()},
            "numbers": {name: _safe(number) for name, number in self.numbers.items()},
        }

    def __repr__(self) -> str:
        lines = [f"{self.severity.upper():<{len(INDENT)}}{self.topic}: {self.name}", *map(_moved_in, self._sentences())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        what, *others = (escape(sentence) for sentence in self._sentences())
        some = [str(value) for value in to_list(self.ids[:MOST_IDS])]
        if some:
            more = f" and {len(self.ids) - MOST_IDS:,} more" if len(self.ids) > MOST_IDS else ""
            others.append(f"<code>{'</code>, <code>'.join(map(escape, some))}</code>{more}")
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
    """All findings of the data doctor, the worst first; those equally bad stay in their order.

    Parameters
    ----------
    found
        The findings.
    examined
        The topics that were looked at, whether or not anything was found.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> findings = cg.simulate.crowd(gold=0, seed=0).graph.diagnose()
    >>> findings.worst
    'note'
    >>> findings.of("bots")
    Findings: none
    """

    found: tuple[Finding, ...]
    examined: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = tuple(self.found)
        strangers = [finding for finding in found if not isinstance(finding, Finding)]
        if strangers:
            raise ResultError(f"Findings are made of Finding objects; got a {type(strangers[0]).__name__}.")
        ordered = sorted(found, key=lambda finding: -SEVERITIES.index(finding.severity))
        topics = dict.fromkeys([*self.examined, *(finding.topic for finding in ordered)])
        object.__setattr__(self, "found", tuple(ordered))
        object.__setattr__(self, "examined", tuple(topics))

    @property
    def worst(self) -> Severity | None:
        """The worst severity among them; None if there are no findings."""
        return self.found[0].severity if self.found else None

    def of(self, name: str) -> Findings:
        """The findings of a topic such as ``"bots"``, or of a name such as ``"copied answers"``; maybe none."""
        known = [*self.examined, *(known for topic in self.examined for known in NAMES.get(topic, ()))]
        chosen = [finding for finding in self.found if name in (finding.topic, finding.name)]
        if not chosen and name not in known:
            raise ParameterError(
                f"Nothing called {name!r} was looked for; there are {quote(self.examined, most=20)}."
                f"{suggestion(name, known)}"
            )
        return Findings(tuple(chosen), examined=self.examined)

    def at_least(self, severity: Severity) -> Findings:
        """The findings that are at least so severe."""
        check_choice("severity", severity, SEVERITIES)
        least = SEVERITIES.index(severity)
        chosen = [finding for finding in self.found if SEVERITIES.index(finding.severity) >= least]
        return Findings(tuple(chosen), examined=self.examined)

    def worded(self, interface: Interface) -> Findings:
        """Return the findings with all text in the words of an interface: ``"python"`` or ``"cli"``."""
        worded = (
            replace(
                finding,
                what=wording(finding.what, interface),
                why=wording(finding.why, interface),
                advice=wording(finding.advice, interface),
            )
            for finding in self
        )
        return Findings(tuple(worded), examined=self.examined)

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Finding: ...

    @overload
    def __getitem__(self, place: slice) -> Findings: ...

    def __getitem__(self, place: int | slice) -> Finding | Findings:
        if isinstance(place, slice):
            return Findings(self.found[place], examined=self.examined)
        return self.found[place]

    def _columns(self) -> Columns:
        """A row for each finding, in words."""
        words = ("severity", "topic", "name", "what", "why", "advice", "subject")
        columns = {word: object_array(getattr(finding, word) for finding in self.found) for word in words}
        return {**columns, "n_ids": np.array([len(finding.ids) for finding in self.found], dtype=np.int64)}

    def to_dict(self, *, most_ids: int | None = None) -> dict[str, Any]:
        """The findings in values that JSON knows; at most `most_ids` ids of each."""
        return {
            "examined": list(self.examined),
            "worst": self.worst,
            "findings": [finding.to_dict(most_ids=most_ids) for finding in self.found],
        }

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *map(repr, self.found)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{finding._repr_html_()}</li>" for finding in self.found)
        return f'<div style="text-align:left">{self._headline()}<ul>{rows}</ul></div>'

    def _headline(self) -> str:
        counts = dict.fromkeys(reversed(SEVERITIES), 0)
        for finding in self.found:
            counts[finding.severity] += 1
        words = {"warning": ("warning", "warnings"), "note": ("note", "notes"), "info": ("for information",) * 2}
        parts = [f"{n} {words[severity][n > 1]}" for severity, n in counts.items() if n]
        return "Findings: " + (", ".join(parts) or "none")


def _moved_in(text: str) -> str:
    return fill(
        text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def _safe_list(column: Array) -> list[Any]:
    return [_safe(value) for value in to_list(column)]


def _safe(value: Hashable) -> Any:
    """A value that JSON knows: text for what it does not, nothing for what is not a finite number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)
