"""Zooniverse classification exports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from crowdgraph.core._arrays import FrozenMapping, object_array
from crowdgraph.core._text import join_names, quantity
from crowdgraph.core.graph import CrowdGraph, Duplicates, Missing
from crowdgraph.core.result import Columns, Tabular
from crowdgraph.errors import InputError, check_choice
from crowdgraph.io._panoptes_choice import choose_question, optioned
from crowdgraph.io._panoptes_gold import QuestionGold
from crowdgraph.io._panoptes_graph import MalformedError, Selection, graph_of, refuse_malformed
from crowdgraph.io._panoptes_rows import REQUIRED_COLUMNS, ExportRows, TaskKey, read_rows
from crowdgraph.io._panoptes_values import (
    DRAWING,
    MULTIPLE,
    NUMBER,
    SURVEY,
    TEXT,
    options_of,
    question_kind,
)
from crowdgraph.io.accounts import MAX_LINES, RowAccount
from crowdgraph.messages import Hint, Interface, printable, quote, short, suggestion, wording

__all__ = ["REQUIRED_COLUMNS", "PanoptesExport", "Question", "QuestionReading", "open_panoptes", "read_panoptes"]

Anonymous = Literal["keep", "drop", "pool", "session"]
Malformed = Literal["error", "skip"]
GoldStandard = Literal["gold", "answers", "drop"]
SurveyLabels = Literal["species", "each"]
# How many options of a question are listed.
MAX_OPTIONS = 8
# How tables become graphs, if nothing else is said.
TABLE: Mapping[str, Any] = FrozenMapping(
    {"gold": None, "classes": None, "labels": None, "duplicates": "all", "missing": "error"}
)
# Why answers of some kinds are not labels, and what to do.
REFUSED: Mapping[str, str] = FrozenMapping(
    {
        TEXT: Hint(
            "Free text cannot be compared. Give label=, a function that turns a text into a label.",
            cli="Free text cannot be compared; read it in Python, where label= turns a text into a label.",
        ),
        DRAWING: Hint(
            "Drawings are no labels. Give label=, such as label=len for the number of marks.",
            cli="Drawings are no labels; read them in Python, where label=len is the number of marks.",
        ),
        NUMBER: Hint(
            "Numbers are no labels. Say where to divide them, such as bins=[10, 50].",
            cli="Numbers are no labels. Say where to divide them, such as --bins 10,50.",
        ),
    }
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a task of a workflow asks.

    Attributes
    ----------
    workflow, workflow_name
        The id and the name of the workflow; empty if the export does not say them.
    task, text
        The task, such as ``"T0"``, and what it asks.
    kind
        ``"single choice"``, ``"multiple choice"``, ``"survey"``, ``"number"``, ``"dropdown"``, ``"free text"`` or
        ``"drawing"``.
    options
        What was chosen, and how often, the most frequent first; empty for kinds whose answers are no choices.
    versions
        How many answers there are to each version of the workflow.
    n_answers
        How many answers there are.
    """

    workflow: str
    workflow_name: str
    task: str
    text: str
    kind: str
    options: Mapping[Hashable, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    n_answers: int

    @property
    def refusal(self) -> str | None:
        """Why the answers cannot be read without saying more, and what to do; None if they can be."""
        if self.kind == MULTIPLE and not self.options:
            return "Nobody ever ticked anything."
        return REFUSED.get(self.kind)

    @property
    def title(self) -> str:
        """What is asked, or the task where the export does not say it."""
        return self.text or f"Task {self.task}"

    def __str__(self) -> str:
        workflow = f" of workflow {self.workflow}" if self.workflow else ""
        asks = f" {printable(short(self.text))!r}" if self.text else ""
        return f"{self.task}{workflow}{asks} ({self.kind}, {quantity(self.n_answers, 'answer')})"


@dataclass(frozen=True, kw_only=True)
class QuestionReading:
    """The answers to one question as a graph.

    Attributes
    ----------
    graph
        The graph.
    question
        The question.
    option
        The option about which the labels yes and no are; None if labels are what was chosen.
    version
        The version of the workflow that was read; None if all were.
    account
        What became of every row of the file.
    notes
        What was decided, in sentences.
    """

    graph: CrowdGraph
    question: Question
    option: Hashable | None
    version: str | None
    account: RowAccount
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is asked, with the option."""
        return self.question.title if self.option is None else f"{self.question.title} {self.option}"


class PanoptesExport(Tabular):
    """A Zooniverse classification export that was read once; its table has a row for each question.

    Make one with `crowdgraph.open_panoptes`.

    Attributes
    ----------
    path
        The file.
    questions
        What the workflows ask.
    """

    def __init__(self, rows: ExportRows) -> None:
        self._rows = rows
        self.path = rows.path
        self._keys: dict[tuple[str, str, str], TaskKey] = {}
        questions = [self._question(key) for key in rows.answers]
        # Workflows and tasks in the order in which people count them.
        self.questions: tuple[Question, ...] = tuple(
            sorted(questions, key=lambda question: (_natural(question.workflow), _natural(question.task)))
        )

    @property
    def n_rows(self) -> int:
        """The number of rows of the file."""
        return len(self._rows)

    @cached_property
    def malformed(self) -> Mapping[int, str]:
        """Why annotations are not readable, by the line of the file on which the row begins; the header is line 1."""
        lines = self._rows.lines(list(self._rows.malformed))
        return MappingProxyType(dict(zip(lines, self._rows.malformed.values(), strict=True)))

    @property
    def workflows(self) -> Mapping[str, str]:
        """The names of the workflows by their ids."""
        return FrozenMapping(self._rows.workflow_names)

    def read(
        self,
        *,
        task: str | None = None,
        workflow: int | str | None = None,
        option: Hashable | None = None,
        version: float | str | None = None,
        bins: Sequence[float] | None = None,
        label: Callable[[Any], Hashable | None] | None = None,
        anonymous: Anonymous = "keep",
        malformed: Malformed = "error",
        gold_standard: GoldStandard = "gold",
        gold: Any = None,
        classes: Iterable[Hashable] | None = None,
        labels: Iterable[Hashable] | None = None,
        duplicates: Duplicates = "all",
        missing: Missing = "error",
    ) -> QuestionReading:
        """Read the answers to one question; see `crowdgraph.read_panoptes`."""
        check_choice("anonymous", anonymous, ("keep", "drop", "pool", "session"))
        check_choice("malformed", malformed, ("error", "skip"))
        check_choice("gold_standard", gold_standard, ("gold", "answers", "drop"))
        if malformed == "error" and not self.questions:
            refuse_malformed(self._rows, list(self._rows.malformed))
        question = choose_question(self.questions, self._rows, task=task, workflow=workflow, version=version)
        return self._read(
            question,
            option=option,
            version=version,
            bins=bins,
            label=label,
            anonymous=anonymous,
            malformed=malformed,
            gold_standard=gold_standard,
            gold=gold,
            classes=classes,
            labels=labels,
            duplicates=duplicates,
            missing=missing,
        )

    def _read(
        self,
        question: Question,
        *,
        option: Hashable | None = None,
        version: float | str | None = None,
        bins: Sequence[float] | None = None,
        label: Callable[[Any], Hashable | None] | None = None,
        anonymous: str = "keep",
        malformed: str = "error",
        gold_standard: str = "gold",
        **table: Any,
    ) -> QuestionReading:
        """Read the answers to a question; `table` is as for `graph_of`."""
        option = optioned(question, option, free=label is not None)
        if label is None and (refusal := question.refusal) is not None and (bins is None or question.kind != NUMBER):
            raise InputError(f"{question} cannot be read as it is.", hint=refusal)
        selection = Selection(
            key=self._keys[question.workflow, question.task, question.kind],
            kind=question.kind,
            option=option,
            version=None if version is None else str(version),
            bins=bins,
            label=label,
            anonymous=anonymous,
            malformed=malformed,
            gold_standard=gold_standard,
        )
        graph, account, notes = graph_of(self._rows, selection, **table)
        return QuestionReading(
            graph=graph,
            question=question,
            option=option,
            version=selection.version,
            account=account,
            notes=tuple(notes),
        )

    def read_all(
        self,
        *,
        tasks: Iterable[str] | None = None,
        workflow: int | str | None = None,
        options: Iterable[Hashable] | None = None,
        survey: SurveyLabels = "species",
        **settings: Any,
    ) -> tuple[tuple[QuestionReading, ...], Mapping[str, str]]:
        """Read the answers to all questions: one graph for each, and for each option of a multiple choice.

        Parameters
        ----------
        tasks, workflow, options
            Only these; all if left out.
        survey
            Whether the label of a survey is the ``"species"`` that was chosen, or there is a graph for ``"each"``.
        **settings
            As for `read`. Gold of several questions is a table, or a file, with the columns `item`, `task`, `label`
            and, for a multiple choice, `option`, about which the labels are yes and no.

        Returns
        -------
        tuple, dict
            The readings; and why other questions were not read, by the question.
        """
        choices = self.choices(
            tasks=tasks, workflow=workflow, options=options, survey=survey, version=settings.get("version")
        )
        golds = QuestionGold(settings.pop("gold", None)) if len(choices) > 1 else None
        readings: list[QuestionReading] = []
        refused: dict[str, str] = {}
        for question, option in choices:
            if question.refusal is not None and settings.get("bins") is None and settings.get("label") is None:
                refused[str(question)] = question.refusal
                continue
            own_gold = {} if golds is None else {"gold": golds.of(question, option)}
            try:
                readings.append(self._read(question, option=option, **{**TABLE, **settings, **own_gold}))
            except MalformedError:
                raise
            except InputError as error:
                refused[str(question) if option is None else f"{question}: {option}"] = error.message
        return tuple(readings), MappingProxyType(refused)

    def choices(
        self,
        *,
        tasks: Iterable[str] | None = None,
        workflow: int | str | None = None,
        options: Iterable[Hashable] | None = None,
        survey: SurveyLabels = "species",
        version: float | str | None = None,
    ) -> tuple[tuple[Question, Hashable | None], ...]:
        """Return what `read_all` reads: questions, each with one of its options or, where labels are choices, None."""
        check_choice("survey", survey, ("species", "each"))
        wanted = None if options is None else list(options)
        questions: list[Question] = []
        for task in [None] if tasks is None else list(tasks):
            for question in choose_question(
                self.questions, self._rows, task=task, workflow=workflow, version=version, several=True
            ):
                questions += [] if question in questions else [question]
        _check_options(questions, wanted)
        return tuple((question, option) for question in questions for option in _options(question, wanted, survey))

    def _question(self, key: TaskKey) -> Question:
        answers = self._rows.answers[key]
        kind = question_kind(key.form, answers.values, answers.task_types)
        self._keys[key.workflow, key.task, kind] = key
        counts = options_of(kind, answers.values) if kind not in (TEXT, NUMBER) else Counter()
        versions = Counter(self._rows.versions[row] for row in answers.rows)
        return Question(
            workflow=key.workflow,
            workflow_name=self._rows.workflow_names.get(key.workflow, ""),
            task=key.task,
            text=answers.texts.most_common(1)[0][0] if answers.texts else "",
            kind=kind,
            options=MappingProxyType(dict(counts.most_common())),
            versions=FrozenMapping(dict(sorted(versions.items(), key=lambda pair: _natural(pair[0])))),
            n_answers=len(answers.rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the questions for machines."""
        names = ("workflow", "workflow_name", "task", "text", "kind", "n_answers")
        return {
            "rows": self.n_rows,
            "malformed_lines": list(self.malformed),
            "questions": [
                {
                    **{name: getattr(one, name) for name in names},
                    "options": {str(name): n for name, n in one.options.items()},
                    "versions": dict(one.versions),
                }
                for one in self.questions
            ],
        }

    def _columns(self) -> Columns:
        names = ("workflow", "workflow_name", "task", "text", "kind", "n_answers")
        return {name: object_array([getattr(one, name) for one in self.questions]) for name in names}

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, interface: Interface = "python") -> Iterator[str]:
        """Yield the questions in words, with what was chosen, and how many rows are not readable."""
        yield f"Zooniverse export {Path(self.path).name!r}: {quantity(self.n_rows, 'row')}"
        for question in self.questions:
            yield f"  {question}"
            if question.options:
                words = [f"{printable(short(str(name), most=40))} {n:,}" for name, n in question.options.items()]
                yield f"    {join_names(words, most=MAX_OPTIONS)}"
            if len(question.versions) > 1:
                yield "    versions " + ", ".join(f"{name} ({n:,})" for name, n in question.versions.items())
            if question.refusal is not None:
                yield f"    not read as it is: {wording(question.refusal, interface)}"
        if self.malformed:
            lines = list(map(str, self.malformed))
            dots = ", ..." if len(lines) > MAX_LINES else ""
            where = f"line{'s' * (len(lines) > 1)} {', '.join(lines[:MAX_LINES])}{dots}"
            yield f"  annotations not readable: {quantity(len(lines), 'row')} ({where})"


def open_panoptes(path: str | PathLike[str]) -> PanoptesExport:
    r"""Read a Zooniverse classification export once, and list its questions.

    Parameters
    ----------
    path
        The export, a CSV file, plain or compressed.

    Examples
    --------
    >>> import crowdgraph as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "export.csv"
    >>> answer = '[{""task"": ""T0"", ""task_label"": ""A whale?"", ""value"": ""Yes""}]'
    >>> _ = path.write_text('user_name,created_at,annotations,subject_ids\n'
    ...                     f'anna,2026-03-01 10:00:00 UTC,"{answer}",17\n')
    >>> export = cg.open_panoptes(path)
    >>> [str(question) for question in export.questions]
    ["T0 'A whale?' (single choice, 1 answer)"]
    >>> export.read(task="T0").graph.labels
    ('Yes',)
    """
    return PanoptesExport(read_rows(path))


def read_panoptes(
    path: str | PathLike[str],
    *,
    task: str | None = None,
    workflow: int | str | None = None,
    option: Hashable | None = None,
    version: float | str | None = None,
    bins: Sequence[float] | None = None,
    label: Callable[[Any], Hashable | None] | None = None,
    anonymous: Anonymous = "keep",
    malformed: Malformed = "error",
    gold_standard: GoldStandard = "gold",
    gold: Any = None,
    classes: Iterable[Hashable] | None = None,
    labels: Iterable[Hashable] | None = None,
    duplicates: Duplicates = "all",
    missing: Missing = "error",
) -> CrowdGraph:
    """Read the answers to one question of a Zooniverse classification export.

    Volunteers are user names, items are subject ids (as text), times are `created_at` in UTC. Items have the metadata
    of their subjects and `retired` as attributes, volunteers `anonymous`. IP addresses are not read.
    `crowdgraph.open_panoptes` lists the questions, reads several, and accounts for every row.

    Parameters
    ----------
    path
        The export, a CSV file, plain or compressed.
    task
        The task to read, such as ``"T0"``; it may be part of a combo task. It may be left out if there is only one.
    workflow
        The id or the name of its workflow; needed where several workflows have the task.
    option
        For a multiple choice or a survey: label whether this option was chosen, ``"yes"`` or ``"no"``. Nothing ticked
        is an answer. Without it, the label of a survey is the species that was chosen, ``"several"`` or
        ``"nothing chosen"``. What else was said of the species becomes an attribute of the response.
    version
        Read only this version of the workflow: ``"14.41"``, or ``"14"`` for all that begin so.
    bins
        For sliders and numbers: the bounds between bins, such as ``[10, 50]``.
    label
        A function that turns the value of the task into a label, or into None to skip a row, for any kind of question.
    anonymous
        What to do with visitors who were not logged in (``not-logged-in-<hash>``, the same for everybody behind an
        address): ``"keep"`` each as a volunteer, ``"drop"`` their rows, take each ``"session"`` as a volunteer, or
        ``"pool"`` them, so that little about each becomes much about all: the first of them about each item is one
        volunteer, the second another, and so on, so that no two of them become one who answers twice.
    malformed
        What to do with rows whose annotations are not valid JSON of the expected form: raise an ``"error"`` that names
        the line of the file, or ``"skip"`` them with a warning that counts them.
    gold_standard
        What to do with rows that experts classified as a gold standard: they are ``"gold"``, or ``"answers"`` like all
        others, or ``"drop"`` them. Where experts differ, gold is the share of each answer.
    gold, classes, labels, duplicates, missing
        As in `CrowdGraph.from_responses`; `gold` may also be the path of a CSV or Parquet file. It counts more than
        that of the export.
    """
    return (
        open_panoptes(path)
        .read(
            task=task,
            workflow=workflow,
            option=option,
            version=version,
            bins=bins,
            label=label,
            anonymous=anonymous,
            malformed=malformed,
            gold_standard=gold_standard,
            gold=gold,
            classes=classes,
            labels=labels,
            duplicates=duplicates,
            missing=missing,
        )
        .graph
    )


def _options(question: Question, wanted: Sequence[Hashable] | None, survey: str) -> list[Hashable | None]:
    """Return the options of which each is read: None for a question that is read as it is."""
    if wanted is not None:
        return [option for option in question.options if _is_named(option, wanted)] if _has_options(question) else []
    is_each = question.kind == MULTIPLE or (question.kind == SURVEY and survey == "each")
    return list(question.options) if is_each and question.options else [None]


def _check_options(questions: Sequence[Question], wanted: Sequence[Hashable] | None) -> None:
    """Raise if nobody chose one of the options that are named."""
    options = [option for question in questions if _has_options(question) for option in question.options]
    for name in wanted or ():
        if not any(_is_named(option, [name]) for option in options):
            raise InputError(
                f"Nobody chose {str(name)!r}; what was chosen is {quote(options, most=20) or 'nothing'}."
                + suggestion(name, options)
            )


def _has_options(question: Question) -> bool:
    return question.kind in (MULTIPLE, SURVEY)


def _is_named(option: Hashable, names: Sequence[Hashable]) -> bool:
    """Return whether an option is among some names; nobody has to be right about their case."""
    return str(option).strip().casefold() in [str(name).strip().casefold() for name in names]


def _natural(name: str) -> tuple[Any, ...]:
    """Return a key by which T2 comes before T10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
