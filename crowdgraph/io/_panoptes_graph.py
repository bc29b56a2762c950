"""A question of a Zooniverse export as a graph, with an account of every row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdgraph.core._arrays import Array, is_null
from crowdgraph.core._text import quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.tables import RESPONSE_NAMES, NodeTable
from crowdgraph.errors import DroppedRowsWarning, InputError, warn
from crowdgraph.io._panoptes_choice import is_version
from crowdgraph.io._panoptes_rows import ExportRows, TaskKey
from crowdgraph.io._panoptes_subjects import ANONYMOUS, RETIRED, subject_attributes, visitor_names
from crowdgraph.io._panoptes_values import (
    DROPDOWN,
    MULTIPLE,
    NO,
    SURVEY,
    YES,
    binned,
    choices_of,
    dropdown_label,
    survey_answers,
    survey_label,
    yes_or_no,
)
from crowdgraph.io.accounts import MAX_LINES, RowAccount
from crowdgraph.io.frames import graph_from_frame
from crowdgraph.messages import Hint, Message, short

# Further columns that become attributes of the responses; IP addresses and free metadata do not.
ATTRIBUTE_COLUMNS = ("classification_id", "workflow_id", "workflow_version", "user_id")
# Why rows are left out, in the order in which the reasons are looked for.
OTHER_WORKFLOW = "of another workflow"
OTHER_VERSION = "of another version"
UNREADABLE = "annotations not readable"
VISITORS = "by visitors who were not logged in"
NOT_ASKED = "task not asked"
NOT_ANSWERED = "not answered"
OTHER_KIND = "another kind of answer"
NO_LABEL = "no label"
EXPERTS = "gold standard"
INCOMPLETE = "incomplete"
REPEATED = "repeated"
# From so many answers on, an option that nobody chose in a version was probably not offered.
MIN_VERSION_ANSWERS = 20


class MalformedError(InputError):
    """Annotations that are not readable, which are an error about all questions alike."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which answers are read, and how; see `crowdgraph.read_panoptes`."""

    key: TaskKey
    kind: str
    option: Hashable | None
    version: str | None
    bins: Sequence[float] | None
    label: Callable[[Any], Hashable | None] | None
    anonymous: str
    malformed: str
    gold_standard: str


def graph_of(
    export: ExportRows,
    selection: Selection,
    *,
    gold: Any,
    classes: Iterable[Hashable] | None,
    labels: Iterable[Hashable] | None,
    duplicates: Any,
    missing: Any,
) -> tuple[CrowdGraph, RowAccount, list[str]]:
    """Return the graph, what became of every row, and what was decided, in sentences."""
    notes: list[str] = []
    answers = export.answers[selection.key]
    label_of, names = _labeller(selection)
    reasons = _reasons(export, selection)
    values: list[Any] = [None] * len(export)
    details: dict[str, list[str | None]] = {}
    for row, value in zip(answers.rows, answers.values, strict=True):
        if reasons[row] is not None:
            continue
        values[row] = label_of(value)
        if is_null(values[row]):
            values[row], reasons[row] = None, NO_LABEL
        elif selection.kind == SURVEY and selection.label is None:
            for question, answer in survey_answers(value, selection.option).items():
                details.setdefault(question, [None] * len(export))[row] = answer
    expert_gold = _expert_gold(export, selection, values, reasons, notes)
    is_read = np.array([reason is None for reason in reasons], dtype=bool)
    if not is_read.any():
        skipped = _account(export, reasons, read=0)
        raise InputError(f"No answer is left to read. {skipped}")
    _warn_malformed(export, reasons)
    rows = np.flatnonzero(is_read)
    volunteers, n_unknown = visitor_names(export, rows, selection.anonymous)
    if n_unknown:
        notes.append(f"The session of {quantity(n_unknown, 'answer')} is not known; their address stands for it.")
    times = pc.replace_substring_regex(export.table["created_at"], r" UTC$", "Z")
    frame = {
        "volunteer": volunteers,
        "item": export.table["subject_ids"],
        "label": values,
        "time": pc.if_else(pa.array(is_read), times, None),
        **{name: export.table[name] for name in ATTRIBUTE_COLUMNS if name in export.table.column_names},
    }
    for question, column in details.items():
        frame[f"answer_{question}" if question in (*frame, *RESPONSE_NAMES) else question] = column
    class_names = None if classes is None else tuple(classes)
    graph = graph_from_frame(
        frame,
        gold=_known_classes(expert_gold, class_names, notes) if gold is None else gold,
        classes=class_names,
        labels=_label_names(names, labels, values),
        duplicates=duplicates,
        missing=missing,
        row_mask=is_read,
    )
    if gold is not None and expert_gold:
        ours = {item: graph.gold[item] for item in graph.gold}
        theirs = _known_classes(expert_gold, graph.classes, notes)
        graph = graph.with_gold({**(theirs or {}), **ours}, classes=graph.classes)
    _mark_lost(export, graph, reasons, rows, missing)
    graph = _with_attributes(export, graph, rows, volunteers)
    notes += [*_version_notes(export, selection, reasons), *_subject_notes(graph)]
    return graph, _account(export, reasons, read=graph.n_responses), notes


# Which rows


def _reasons(export: ExportRows, selection: Selection) -> list[str | None]:
    """Return for each row why it is not read; None if it is."""
    workflow, task, _ = selection.key
    reasons: list[str | None] = [NOT_ASKED] * len(export)
    for key, answers in export.answers.items():
        if key[:2] == (workflow, task):
            for row in answers.rows:
                reasons[row] = None if key == selection.key else OTHER_KIND
    for row in export.unanswered.get((workflow, task), ()):
        reasons[row] = NOT_ANSWERED
    if selection.anonymous == "drop":
        for row in np.flatnonzero(export.is_anonymous).tolist():
            reasons[row] = VISITORS
    for row in export.malformed:
        reasons[row] = UNREADABLE
    for row, version in enumerate(export.versions):
        if selection.version is not None and not is_version(version, selection.version):
            reasons[row] = OTHER_VERSION
    for row, name in enumerate(export.workflows):
        if name != workflow:
            reasons[row] = OTHER_WORKFLOW
    if selection.malformed == "error":
        refuse_malformed(export, [row for row in export.malformed if reasons[row] == UNREADABLE])
    return reasons


def refuse_malformed(export: ExportRows, rows: list[int]) -> None:
    """Raise an error that names some rows whose annotations are not readable, if there are any."""
    if not rows:
        return
    lines = export.lines(rows[:MAX_LINES])
    others = f"; so are those of {quantity(len(rows) - 1, 'other row')}" if len(rows) > 1 else ""
    others += f" (lines {', '.join(map(str, lines))}{', ...' if len(rows) > len(lines) else ''})" if others else ""
    text = export.table["annotations"][rows[0]].as_py()
    raise MalformedError(
        f"The annotations in line {lines[0]} are not readable ({export.malformed[rows[0]]}): "
        f"{short(repr(str(text)))}{others}.",
        hint=Hint(
            "Correct the export, or use malformed='skip' to leave such rows out.",
            cli="Correct the export, or use --malformed skip to leave such rows out.",
        ),
    )


def _warn_malformed(export: ExportRows, reasons: Sequence[str | None]) -> None:
    rows = [row for row in export.malformed if reasons[row] == UNREADABLE]
    if rows:
        lines = export.lines(rows[:MAX_LINES])
        more = ", ..." if len(rows) > len(lines) else ""
        has = "row has" if len(rows) == 1 else "rows have"
        warn(
            f"{len(rows):,} {has} annotations that are not readable, and {'is' if len(rows) == 1 else 'are'} left out "
            f"(line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}{more}).",
            DroppedRowsWarning,
        )


def _mark_lost(export: ExportRows, graph: CrowdGraph, reasons: list[str | None], rows: Array, missing: str) -> None:
    """Note which rows were read and then lost: those with gaps, and as many as were repeated."""
    if missing != "error":
        columns = [export.table[name].take(rows) for name in ("user_name", "subject_ids", "created_at")]
        has_gap = np.logical_or.reduce([column.is_null().to_numpy() for column in columns])
        for row in rows[has_gap].tolist():
            reasons[row] = INCOMPLETE
    n_left = sum(reason is None for reason in reasons)
    for row in reversed(rows.tolist()):
        if n_left == graph.n_responses:
            return
        # Which of the repeated rows was lost is of no interest; how many were is.
        if reasons[row] is None:
            reasons[row], n_left = REPEATED, n_left - 1


def _account(export: ExportRows, reasons: Sequence[str | None], *, read: int) -> RowAccount:
    counts = Counter(reason for reason in reasons if reason is not None)
    unreadable = [row for row in export.malformed if reasons[row] == UNREADABLE]
    return RowAccount(
        rows=len(export),
        read=read,
        skipped=dict(counts.most_common()),
        lines={UNREADABLE: export.lines(unreadable[:MAX_LINES])} if unreadable else {},
    )


# Labels


def _labeller(selection: Selection) -> tuple[Callable[[Any], Any], tuple[str, ...] | None]:
    """Return what turns a value into a label, and all labels in their order if that is known."""
    if selection.label is not None:
        return selection.label, None
    if selection.option is not None:
        chosen = choices_of if selection.kind == SURVEY else list
        return yes_or_no(selection.option, chosen), (NO, YES)
    if selection.bins is not None:
        if selection.kind in (MULTIPLE, SURVEY, DROPDOWN):
            raise InputError(
                f"Answers to task {selection.key.task} ({selection.kind}) are no numbers; leave out "
                + Message("bins=", cli="--bins")
                + "."
            )
        return binned(selection.bins)
    if selection.kind == SURVEY:
        return survey_label, None
    return (dropdown_label if selection.kind == DROPDOWN else _as_it_is), None


def _as_it_is(value: Any) -> Any:
    return value


def _label_names(
    names: tuple[str, ...] | None, labels: Iterable[Hashable] | None, values: Sequence[Any]
) -> tuple[Hashable, ...] | None:
    """Return the labels: those of the user, or those that are known in their order and occur."""
    if labels is not None:
        return tuple(labels)
    if names is None:
        return None
    # Both of yes and no can always be said.
    return names if names == (NO, YES) else tuple(name for name in names if name in set(values))


def _expert_gold(
    export: ExportRows, selection: Selection, values: list[Any], reasons: list[str | None], notes: list[str]
) -> dict[Hashable, Any]:
    """Take the rows of experts away from the answers, and return the shares of their answers about each item."""
    if selection.gold_standard == "answers":
        return {}
    subjects = export.table["subject_ids"].to_pylist()
    votes: dict[str, Counter[Any]] = defaultdict(Counter)
    for row in np.flatnonzero(export.is_gold_standard).tolist():
        if reasons[row] is None:
            if subjects[row] is not None:
                votes[subjects[row]][values[row]] += 1
            values[row], reasons[row] = None, EXPERTS
    if not votes or selection.gold_standard == "drop":
        return {}
    n_split = sum(len(counts) > 1 for counts in votes.values())
    notes.append(
        f"Experts classified {quantity(len(votes), 'subject')} as a gold standard, which is gold here."
        + (f" About {n_split:,} of them they differ; gold is the share of each answer." if n_split else "")
    )
    return {
        item: next(iter(counts))
        if len(counts) == 1
        else {name: n / counts.total() for name, n in sorted(counts.items(), key=lambda pair: str(pair[0]))}
        for item, counts in votes.items()
    }


def _known_classes(
    gold: Mapping[Hashable, Any], classes: tuple[Hashable, ...] | None, notes: list[str]
) -> dict[Hashable, Any] | None:
    """Return the gold of experts without what is no class; None if there is none."""
    if classes is None:
        return dict(gold) or None
    known = {
        item: value
        for item, value in gold.items()
        if set(value if isinstance(value, Mapping) else [value]) <= set(classes)
    }
    if len(known) < len(gold):
        notes.append(
            f"What experts said of {quantity(len(gold) - len(known), 'subject')} is not among the classes, and is no "
            "gold."
        )
    return known or None


# Attributes


def _with_attributes(
    export: ExportRows, graph: CrowdGraph, rows: Array, volunteers: Sequence[str | None]
) -> CrowdGraph:
    """Return the graph with what is known of subjects and visitors."""
    item_ids, volunteer_ids = graph.items.ids, graph.volunteers.ids
    items = NodeTable("item", item_ids, subject_attributes(export, rows.tolist(), item_ids.tolist()))
    table = graph.volunteers.table
    if export.is_anonymous[rows].any():
        visitors = {volunteers[row] for row in rows.tolist() if export.is_anonymous[row]}
        marks = np.array([name in visitors for name in volunteer_ids.tolist()], dtype=bool)
        table = NodeTable("volunteer", volunteer_ids, {ANONYMOUS: marks})
    return CrowdGraph(table, items, graph.responses.table, classes=graph.classes, labels=graph.labels, gold=graph.gold)


def _subject_notes(graph: CrowdGraph) -> list[str]:
    retired = graph.items.attributes.get(RETIRED)
    if retired is None or not retired.any():
        return []
    return [f"Of {quantity(graph.n_items, 'subject')} {int(retired.sum()):,} are retired already."]


def _version_notes(export: ExportRows, selection: Selection, reasons: Sequence[str | None]) -> list[str]:
    """Return which versions of the workflow are read together, and what differs between them."""
    answers = export.answers[selection.key]
    versions = Counter(export.versions[row] for row in answers.rows if reasons[row] is None and export.versions[row])
    if len(versions) < 2:
        return []
    counts = ", ".join(f"{name} ({quantity(n, 'answer')})" for name, n in sorted(versions.items()))
    how = Message(f"version={max(versions)!r}", cli=f"--version {max(versions)}")
    notes: list[str] = [f"Versions {counts} of the workflow are read together; " + how + " reads one of them."]
    if len(answers.texts) > 1:
        texts = " and ".join(repr(short(text)) for text, _ in answers.texts.most_common(2))
        notes.append(f"The versions do not ask with the same words: {texts}.")
    if selection.option is not None:
        chosen = choices_of if selection.kind == SURVEY else list
        with_option = {
            export.versions[row]
            for row, value in zip(answers.rows, answers.values, strict=True)
            if selection.option in chosen(value)
        }
        without = [name for name, n in versions.items() if n >= MIN_VERSION_ANSWERS and name not in with_option]
        if without:
            notes.append(
                f"In version {', '.join(sorted(without))} nobody chose {selection.option}; if it was not offered, read "
                "the other version only."
            )
    return notes
