"""Gold for several questions of a Zooniverse export: one table, of which each row names its task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from crowdgraph.errors import ColumnError
from crowdgraph.io._columns import Column, frame_columns, python_values
from crowdgraph.io._gold_files import GoldFile
from crowdgraph.messages import Hint, quote

if TYPE_CHECKING:
    from crowdgraph.io.panoptes import Question

ONE_QUESTION = Hint(
    "Add a column `task`, or read one question.",
    cli="Add a column 'task' (and 'option' for a multiple choice, with labels yes and no), or name one question with "
    "--workflow, --task and --option.",
)


class QuestionGold:
    """Gold by question: rows with the columns `item`, `label`, `task` and perhaps `workflow` and `option`.

    Parameters
    ----------
    gold
        A table, or the path of a file; None if there is no gold.
    """

    def __init__(self, gold: Any) -> None:
        self._columns: dict[str, list[Any]] = {}
        if gold is None:
            return
        table = _table(gold)
        names = {name.strip().lower(): name for name in table}
        absent = [name for name in ("task", "label") if name not in names]
        if absent:
            raise ColumnError(
                f"There are several questions, and gold does not say of which each row is: it lacks {quote(absent)}.",
                hint=ONE_QUESTION,
            )
        item = next((names[name] for name in ("item", "subject_id", "subject_ids", "subject") if name in names), None)
        if item is None:
            raise ColumnError("The gold has no column 'item' with the subject ids.")
        roles = {"item": item, **{name: names.get(name) for name in ("task", "label", "option", "workflow")}}
        self._columns = {role: _texts(table[name]) for role, name in roles.items() if name is not None}

    def of(self, question: Question, option: Hashable | None) -> dict[Hashable, Hashable] | None:
        """Return the class of each item by the rows of a question, or of an option; None if there are none."""
        if not self._columns:
            return None
        n_rows = len(self._columns["item"])
        nothing = [None] * n_rows
        workflows, options = self._columns.get("workflow", nothing), self._columns.get("option", nothing)
        rows = [
            row
            for row in range(n_rows)
            if self._columns["task"][row] == question.task
            and workflows[row] in (None, question.workflow, question.workflow_name)
            and options[row] == (None if option is None else str(option))
            and self._columns["label"][row] is not None
        ]
        return {self._columns["item"][row]: self._columns["label"][row] for row in rows} or None


def _table(gold: Any) -> Mapping[str, Column]:
    if isinstance(gold, GoldFile):
        return gold.table()
    return GoldFile(fspath(gold)).table() if isinstance(gold, str | PathLike) else frame_columns(gold)


def _texts(column: Column) -> list[str | None]:
    values = column if isinstance(column, list) else python_values(column)
    return [None if value in (None, "") else str(value) for value in values]
