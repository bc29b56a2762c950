"""Values of Zooniverse tasks: of which form they are, what kind of question has such answers, and their labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from crowdgraph.core._parameters import is_number
from crowdgraph.errors import ParameterError
from crowdgraph.messages import argument

# Forms of values. Nothing ticked has a form of its own, since it may be an answer to several kinds of questions.
PLAIN, TICKED, CHOSEN, SELECTED, MARKED, NOTHING = "plain", "ticked", "chosen", "selected", "marked", "nothing"
# Kinds of questions, as people call them.
SINGLE, MULTIPLE, SURVEY, NUMBER, TEXT = "single choice", "multiple choice", "survey", "number", "free text"
DROPDOWN, DRAWING = "dropdown", "drawing"
# What newer exports call the types of tasks.
TASK_TYPES = {
    "single": SINGLE,
    "dropdown-simple": SINGLE,
    "multiple": MULTIPLE,
    "survey": SURVEY,
    "slider": NUMBER,
    "number": NUMBER,
    "text": TEXT,
    "dropdown": DROPDOWN,
    "drawing": DRAWING,
}
# A single choice has no more numbers than these to choose from; otherwise they are of a slider, or were typed.
MAX_NUMBERS = 12
# Free text has more different answers than this, and at least this share of the answers differs from the others.
MIN_TEXTS, MIN_TEXT_SHARE = 20, 0.25
YES, NO = "yes", "no"
NO_CHOICE, SEVERAL_CHOICES = "nothing chosen", "several"


def form_of(value: Any) -> str:
    """Return the form of a value that is not null."""
    if isinstance(value, str | int | float):
        return PLAIN
    if isinstance(value, dict):
        return CHOSEN if "choice" in value else MARKED
    if not isinstance(value, list):
        return MARKED
    if not value:
        return NOTHING
    if all(isinstance(part, str | int | float) for part in value):
        return TICKED
    if all(isinstance(part, dict) for part in value):
        if all("choice" in part for part in value):
            return CHOSEN
        if all("value" in part and ("option" in part or "select_label" in part) for part in value):
            return SELECTED
    return MARKED


def question_kind(form: str, values: Sequence[Any], task_types: Counter[str]) -> str:
    """Return the kind of question that has answers of a form, by what the export calls it or by the answers."""
    if form != PLAIN:
        return {TICKED: MULTIPLE, CHOSEN: SURVEY, SELECTED: DROPDOWN, NOTHING: MULTIPLE, MARKED: DRAWING}[form]
    named = {TASK_TYPES.get(name) for name in task_types} & {SINGLE, NUMBER, TEXT}
    if len(named) == 1:
        return str(named.pop())
    distinct = set(values)
    if len(distinct) > MAX_NUMBERS and all(as_number(value) is not None for value in distinct):
        return NUMBER
    # A choice always says something, but a text may be left empty.
    if "" in distinct or len(distinct) > max(MIN_TEXTS, MIN_TEXT_SHARE * len(values)):
        return TEXT
    return SINGLE


def options_of(kind: str, values: Iterable[Any]) -> Counter[Any]:
    """Return what was chosen, and how often."""
    counts: Counter[Any] = Counter()
    for value in values:
        if kind == MULTIPLE:
            counts.update(list(dict.fromkeys(value)))
        elif kind == SURVEY:
            counts.update(choices_of(value))
        elif kind == DROPDOWN:
            counts.update([dropdown_label(value)])
        elif kind in (SINGLE, NUMBER, TEXT):
            counts.update([value])
    return counts


# Labels


def yes_or_no(option: Hashable, chosen: Callable[[Any], Sequence[Any]]) -> Callable[[Any], str]:
    """Return a function that says whether a value has an option."""
    return lambda value: YES if option in chosen(value) else NO


def choices_of(value: Any) -> list[str]:
    """Return the species, or whatever was chosen, of a survey; each once."""
    parts = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(str(part["choice"]) for part in parts))


def survey_label(value: Any) -> str:
    """Return the one choice of a survey, or that there were none or several."""
    choices = choices_of(value)
    if len(choices) > 1:
        return SEVERAL_CHOICES
    return choices[0] if choices else NO_CHOICE


def survey_answers(value: Any, option: Hashable | None) -> dict[str, str]:
    """Return the further answers of a survey, such as how many animals and what they do.

    Those are of the option, or of the only choice. What was said of one species twice is joined.
    """
    parts = value if isinstance(value, list) else [value]
    if option is None and len(choices_of(value)) > 1:
        return {}
    answers: dict[str, list[str]] = {}
    for part in parts:
        details = part.get("answers")
        if (option is None or str(part["choice"]) == option) and isinstance(details, Mapping):
            for question, answer in details.items():
                texts = answer if isinstance(answer, list) else [answer]
                answers.setdefault(str(question), []).extend(str(text) for text in texts if text is not None)
    return {question: " + ".join(texts) for question, texts in answers.items() if texts}


def dropdown_label(value: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what was selected in a dropdown; several are joined, and nothing selected is none."""
    selected = [part.get("label") or part.get("value") for part in value]
    return " + ".join(str(text) for text in selected if text not in (None, "")) or None


def as_number(value: Any) -> float | None:
    """Return a number, or text that spells one; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def binned(bins: Sequence[float]) -> tuple[Callable[[Any], str | None], tuple[str, ...]]:
    """Return a function that says in which bin a number is, and the names of the bins in their order."""
    edges = [float(edge) for edge in bins] if _are_numbers(bins) else []
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise ParameterError(
            argument("bins", bins) + " must be numbers that grow, the bounds between bins, such as 10, 50."
        )
    middle = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    names = (f"below {edges[0]:g}", *middle, f"{edges[-1]:g} or more")

    def bin_of(value: Any) -> str | None:
        number = as_number(value)
        return None if number is None else names[sum(number >= edge for edge in edges)]

    return bin_of, names


def _are_numbers(values: object) -> bool:
    return (
        isinstance(values, Iterable)
        and not isinstance(values, str | bytes)
        and all(is_number(value) and math.isfinite(value) for value in values)
    )
