"""Which question of a Zooniverse export is meant: by workflow, task, version and option; what exists is listed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from crowdgraph.core._text import quantity
from crowdgraph.errors import ColumnError, InputError
from crowdgraph.io._panoptes_rows import ExportRows
from crowdgraph.io._panoptes_values import MULTIPLE, SURVEY
from crowdgraph.messages import Hint, Message, printable, quote, short, suggestion

if TYPE_CHECKING:
    from crowdgraph.io.panoptes import Question

# How many questions or workflows an error lists.
MAX_LISTED = 12


def choose_question(
    questions: Sequence[Question],
    rows: ExportRows,
    *,
    task: str | None,
    workflow: int | str | None,
    version: float | str | None = None,
    several: bool = False,
) -> Any:
    """Return the one question that is meant; with `several`, all that may be. Raise if there is none, or several."""
    workflow_id = None if workflow is None else workflow_of(rows, workflow)
    within = [one for one in questions if workflow_id in (None, one.workflow)]
    if version is not None:
        check_version(rows, workflow_id, str(version))
        within = [one for one in within if any(is_version(name, str(version)) for name in one.versions)]
    meant = within if task is None else [one for one in within if one.task == str(task)]
    if several and meant:
        return meant
    if not meant:
        where = "" if workflow_id is None else f" of workflow {workflow_id}"
        if task is None or not questions:
            raise InputError(f"No row{where} has an answer that is readable.")
        raise InputError(
            f"No row{where} answers the task {str(task)!r}; the export asks {listed(within)}."
            + suggestion(task, sorted({one.task for one in within}))
        )
    if len(meant) == 1:
        return meant[0]
    readable = [one for one in meant if one.refusal is None]
    if task is None and len(readable) == 1:
        return readable[0]
    raise InputError(f"The export asks several questions: {listed(meant)}.", hint=_how_to_choose(meant))


def _how_to_choose(questions: Sequence[Question]) -> Hint:
    """Return the options by which some questions differ."""
    if len({one.workflow for one in questions}) > 1:
        first = questions[0]
        return Hint(
            f"Say which, such as workflow={first.workflow!r}, task={first.task!r}; open_panoptes(path).read_all() "
            "reads all of them.",
            cli=f"Say which, such as --workflow {first.workflow} --task {first.task}; analyse reads all of them.",
        )
    if len({one.task for one in questions}) > 1:
        return Hint(
            f"Say which, such as task={questions[0].task!r}; open_panoptes(path).read_all() reads all of them.",
            cli=f"Say which, such as --task {questions[0].task}; analyse reads all of them.",
        )
    versions = next((name for one in questions for name in one.versions), "")
    return Hint(
        f"Its versions have answers of several kinds; say which, such as version={versions!r}.",
        cli=f"Its versions have answers of several kinds; say which, such as --version {versions}.",
    )


def listed(questions: Sequence[Question]) -> str:
    """Return questions in words."""
    more = f" and {len(questions) - MAX_LISTED:,} more" if len(questions) > MAX_LISTED else ""
    return ", ".join(str(one) for one in questions[:MAX_LISTED]) + more if questions else "nothing"


def workflow_of(rows: ExportRows, workflow: int | str) -> str:
    """Return the id of a workflow that is named by its id or its name."""
    if rows.column("workflow_id") is None:
        raise ColumnError(
            "The export has no column 'workflow_id'; leave out " + Message("workflow=", cli="--workflow") + "."
        )
    name, names = str(workflow), rows.workflow_names
    if name in names:
        return name
    meant = [one for one, title in names.items() if title.strip().casefold() == name.strip().casefold()]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InputError(
            f"{quantity(len(meant), 'workflow')} are called {name!r}: {quote(meant, most=MAX_LISTED)}.",
            hint="Name one of them by its id.",
        )
    known = [repr(one) + (f" ({printable(short(title))})" if title else "") for one, title in names.items()]
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    raise InputError(
        f"No row belongs to workflow {name!r}; the export has {', '.join(known[:MAX_LISTED])}{more}."
        + suggestion(name, [*names, *filter(None, names.values())])
    )


def is_version(name: str, version: str) -> bool:
    """Return whether a version is the one that is meant, or one of a major version."""
    return name == version or name.startswith(f"{version}.")


def check_version(rows: ExportRows, workflow: str | None, version: str) -> None:
    """Raise unless some row is of a version."""
    if rows.column("workflow_version") is None:
        raise ColumnError(
            "The export has no column 'workflow_version'; leave out " + Message("version=", cli="--version") + "."
        )
    versions = {
        name for one, name in zip(rows.workflows, rows.versions, strict=True) if workflow in (None, one) and name
    }
    if not any(is_version(name, version) for name in versions):
        where = "the export" if workflow is None else f"workflow {workflow}"
        raise InputError(
            f"No row is of version {version!r}; {where} has {quote(sorted(versions), most=MAX_LISTED) or 'none'}."
        )


def optioned(question: Question, option: Hashable | None, *, free: bool) -> Hashable | None:
    """Return the option as the question has it; raise if it has no such option, or needs one."""
    names = list(question.options)
    if option is None:
        if question.kind == MULTIPLE and names and not free:
            raise InputError(
                f"{question} has several options, of which any number can be ticked: {quote(names, most=MAX_LISTED)}.",
                hint=Hint(
                    f"Read one as yes or no, such as option={names[0]!r}; or give label= a function of all that were "
                    "ticked.",
                    cli=f"Read one as yes or no, such as --option {str(names[0])!r}; analyse reads all, one by one.",
                ),
            )
        return None
    if question.kind not in (MULTIPLE, SURVEY) or free:
        raise InputError(
            f"{question} has no options to read one by one; leave out " + Message("option=", cli="--option") + "."
        )
    by_text = {str(name).strip().casefold(): name for name in names}
    meant = option if option in question.options else by_text.get(str(option).strip().casefold())
    if meant is None:
        raise InputError(
            f"Nobody chose {str(option)!r} in {question}; they chose {quote(names, most=MAX_LISTED) or 'nothing'}."
            + suggestion(option, names)
        )
    return meant
