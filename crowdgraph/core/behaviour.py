"""How somebody answers, in words: a sentence from a confusion matrix, by a fixed rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, value_tuple
from crowdgraph.core.result import probability_array

__all__ = ["behaviour"]

# The share of answers from which on labels are given "nearly always", and "mostly".
MIN_NEARLY_ALWAYS, MIN_MOSTLY = 0.95, 0.5
# The favourites of a class are the labels given at least this often, relative to the most frequent one.
MIN_FAVOURITE_RATIO = 0.5
# Classes are answered alike if no two rows differ by more than this in total variation.
MAX_VARIATION_ALIKE = 0.15
# More favourites than these are no preference; further classes and clauses are counted instead of listed.
MAX_FAVOURITES, MAX_CLASSES, MAX_CLAUSES = 3, 3, 4
# So that shares such as 0.61 + 0.34 reach the 0.95 that they are on paper.
ROUNDING = 1e-9


class Habit(NamedTuple):
    """How a class is answered: how often with its favourite labels, as codes; undecided without labels."""

    often: str
    labels: tuple[int, ...]


def behaviour(confusion: ArrayLike, *, classes: Iterable[Hashable], labels: Iterable[Hashable]) -> str:
    """Return in words how somebody with this confusion matrix answers.

    The favourites of a class are the labels that are given at least half as often as the most frequent one. They are
    given "nearly always" if they make up at least 0.95 of the answers, and "mostly" from 0.5 up. If they make up less,
    are more than three, are all of several labels, or are the right label and others, the class is "undecided". The
    first rule that holds decides:

    1. All classes have the same favourites: "says X to nearly everything", or "to most things". If no two rows differ
       by more than 0.15 in total variation, their mean is used, since such differences mean little.
    2. All classes are undecided: "guesses" if the rows are as close as that. Otherwise, if classes are labels,
       "little better than guessing" if the right label is the most frequent one for every class, and "worse than
       guessing" if it is so for none and given less often than by chance, the mean of the right labels' shares being
       below one over the number of classes; else "close to guessing".
    3. Classes are labels, and the favourite of each is the right one, equally often for all: "nearly always right" or
       "mostly right".
    4. Otherwise class by class, with classes that are answered in the same way together; after "contrary" if classes
       are labels and all of them are taken for others.

    Parameters
    ----------
    confusion
        The probability of each label given each true class, of shape (J, L); rows sum to one.
    classes, labels
        The names of the rows and of the columns. Labels that are text are quoted.

    Examples
    --------
    >>> names = {"classes": ["not supernova", "supernova"], "labels": [-1, 1, 3]}
    >>> behaviour([[0.97, 0.02, 0.01], [0.95, 0.03, 0.02]], **names)
    'says -1 to nearly everything'
    >>> behaviour([[0.88, 0.08, 0.04], [0.10, 0.46, 0.44]], **names)
    'mostly says -1 to not supernova, 1 or 3 to supernova'
    >>> behaviour([[0.7, 0.3], [0.04, 0.96]], classes=["cat", "dog"], labels=["cat", "dog"])
    'nearly always right about dog, mostly right about cat'
    """
    classes, labels = value_tuple(classes, what="classes"), value_tuple(labels, what="labels")
    rows = probability_array("confusion", confusion, shape=(len(classes), len(labels)))
    right = [labels.index(name) if name in labels else None for name in classes]
    alike = _are_alike(rows)
    habits = [_habit(rows.mean(axis=0))] * len(rows)
    if not alike:
        habits = [_habit(row, code) for row, code in zip(rows, right, strict=True)]
    always = all(habit.often == "nearly always" for habit in habits)
    if not any(habit.labels for habit in habits):
        return "guesses" if alike else _close_to_guessing(rows, right)
    if len({habit.labels for habit in habits}) == 1:
        return f"says {_favourites(habits[0], labels)} to {'nearly everything' if always else 'most things'}"
    equally = len({habit.often for habit in habits}) == 1
    if equally and all(habit.labels == (code,) for habit, code in zip(habits, right, strict=True)):
        return f"{habits[0].often} right"
    sentence = _class_by_class(habits, right, classes=classes, labels=labels)
    return f"contrary: {sentence}" if _are_contrary(habits, right) else sentence


def _are_alike(rows: Array) -> bool:
    """Return whether all classes are answered in nearly the same way."""
    return all(np.abs(rows - row).sum(axis=1).max() / 2 <= MAX_VARIATION_ALIKE + ROUNDING for row in rows)


def _habit(row: Array, right: int | None = None) -> Habit:
    """Return how a class with this row of the confusion matrix is answered; right and wrong in turn is no habit."""
    codes = np.flatnonzero(row >= MIN_FAVOURITE_RATIO * row.max() - ROUNDING)
    share = float(row[codes].sum()) + ROUNDING
    too_many = len(codes) > 1 and (len(codes) == len(row) or len(codes) > MAX_FAVOURITES)
    if share < MIN_MOSTLY or too_many or (len(codes) > 1 and right in codes):
        return Habit("", ())
    return Habit("nearly always" if share >= MIN_NEARLY_ALWAYS else "mostly", tuple(codes.tolist()))


def _are_contrary(habits: list[Habit], right: list[int | None]) -> bool:
    """Return whether every class is taken for other classes."""
    others = [{*right} - {code, None} for code in right]
    return None not in right and all(
        habit.labels and set(habit.labels) <= wrong for habit, wrong in zip(habits, others, strict=True)
    )


def _close_to_guessing(rows: Array, right: list[int | None]) -> str:
    """Return the words for a matrix without favourites in which classes differ."""
    known = [(row, code) for row, code in zip(rows, right, strict=True) if code is not None]
    is_right = [row[code] >= row.max() - ROUNDING for row, code in known]
    if len(known) < len(rows):
        return "close to guessing"
    if all(is_right):
        return "little better than guessing"
    below_chance = float(np.mean([row[code] for row, code in known])) < 1 / len(rows) - ROUNDING
    return "worse than guessing" if below_chance and not any(is_right) else "close to guessing"


def _class_by_class(
    habits: list[Habit], right: list[int | None], *, classes: Sequence[Hashable], labels: Sequence[Hashable]
) -> str:
    """Return how each class is answered, with classes answered in the same way together and right answers first."""
    groups: dict[tuple[bool, Habit], list[str]] = {}
    for name, habit, code in zip(classes, habits, right, strict=True):
        rightly = habit.labels == (code,)
        # Right answers count as the same although they are different labels.
        key = (rightly, habit._replace(labels=()) if rightly else habit)
        groups.setdefault(key, []).append(str(name))
    ordered = sorted(groups.items(), key=lambda group: (not group[0][0], group[0][0] and group[0][1].often == "mostly"))
    clauses: list[str] = []
    before = ""
    for (rightly, habit), names in ordered[:MAX_CLAUSES]:
        about = _enumerate(names, "and", most=MAX_CLASSES)
        if rightly:
            clauses.append(f"{habit.often} right about {about}")
        elif not habit.labels:
            clauses.append(f"undecided about {about}")
        else:
            # Said once, the verb and its adverb hold for the clauses that follow.
            verb = f"{habit.often} says " if not before else f"{habit.often} " if habit.often != before else ""
            clauses.append(f"{verb}{_favourites(habit, labels)} to {about}")
        before = habit.often if habit.labels else ""
    n_left = sum(len(names) for _, names in ordered[MAX_CLAUSES:])
    return ", ".join(clauses) + (f", something else to {n_left} more" if n_left else "")


def _favourites(habit: Habit, labels: Sequence[Hashable]) -> str:
    """Return the labels of a habit, as in ``1 or 3``."""
    names = [f'"{labels[code]}"' if isinstance(labels[code], str) else str(labels[code]) for code in habit.labels]
    return _enumerate(names, "or", most=MAX_FAVOURITES)


def _enumerate(names: list[str], word: str, *, most: int) -> str:
    """Return names as a list, as in ``a, b and c`` or ``a, b, c and 4 more``."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
