"""Everything crowdgraph raises or warns about.

Each error says what was wrong, what was got, what was expected and what to do. All of them can be caught as
`CrowdGraphError`, or as the built-in they also are::

    CrowdGraphError
    ├── InputError (ValueError)             what came through a door cannot become a graph
    │   ├── ColumnError                     a column is missing, doubled or of the wrong length
    │   ├── MissingValueError               an id, label or time is null
    │   ├── IdError                         ids that collide, repeat or cannot be carried
    │   ├── LabelError                      labels outside the label set, or of mixed types
    │   ├── TimeError                       times that cannot be read, compared or ordered
    │   ├── GoldError                       gold that contradicts itself or the classes
    │   └── DuplicateError                  a volunteer answered an item twice where that is not allowed
    ├── ParameterError (ValueError)         an argument outside its range
    │   ├── TooFewError                     an argument that leaves too few volunteers
    │   └── InfeasibleError                 limits under which nothing can be asked
    ├── ResultError (ValueError)            a result whose arrays do not fit together
    ├── AlignmentError (ValueError)         a result made for other volunteers, items or classes
    ├── FitError (ArithmeticError)          a fit whose numbers overflowed
    ├── UnknownIdError (KeyError)           no such volunteer or item
    ├── NotAnnotatedError (LookupError)     the graph does not carry the result asked for
    ├── StoreError (OSError)                a saved graph that cannot be read or written
    └── MissingPackageError (ImportError)   an optional package is needed

    CrowdGraphWarning (UserWarning)
    ├── DroppedRowsWarning                  rows were left out, as asked
    ├── GoldWarning                         gold for items nobody answered
    ├── ForgettingWarning                   a setting under which nearly everything is forgotten
    ├── NoTimesWarning                      a model of change takes the order of the rows for that of time
    ├── RepeatedAnswersWarning              a model without time counts repeated answers as independent
    ├── CollapsedFitWarning                 a fit that no longer tells items apart
    └── ConvergenceWarning                  a fit stopped before it settled
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "AlignmentError",
    "CollapsedFitWarning",
    "ColumnError",
    "ConvergenceWarning",
    "CrowdGraphError",
    "CrowdGraphWarning",
    "DroppedRowsWarning",
    "DuplicateError",
    "FitError",
    "ForgettingWarning",
    "GoldError",
    "GoldWarning",
    "IdError",
    "InfeasibleError",
    "InputError",
    "LabelError",
    "MissingPackageError",
    "MissingValueError",
    "NoTimesWarning",
    "NotAnnotatedError",
    "ParameterError",
    "RepeatedAnswersWarning",
    "ResultError",
    "StoreError",
    "TimeError",
    "TooFewError",
    "UnknownIdError",
]


class CrowdGraphError(Exception):
    """The root of everything crowdgraph raises."""

    def __str__(self) -> str:
        # KeyError would show the repr of its message.
        return str(self.args[0]) if self.args else ""


class InputError(CrowdGraphError, ValueError):
    """What came through a door cannot become a graph."""


class ColumnError(InputError):
    """A column is missing, doubled or of the wrong length."""


class MissingValueError(InputError):
    """An id, label or time is null."""


class IdError(InputError):
    """Ids that collide, repeat or cannot be carried."""


class LabelError(InputError):
    """Labels outside the label set, or of mixed types."""


class TimeError(InputError):
    """Times that cannot be read, compared or ordered."""


class GoldError(InputError):
    """Gold that contradicts itself or the classes."""


class DuplicateError(InputError):
    """A volunteer answered an item twice where that is not allowed."""


class ParameterError(CrowdGraphError, ValueError):
    """An argument outside its range."""


class TooFewError(ParameterError):
    """An argument leaves too few volunteers."""


class InfeasibleError(ParameterError):
    """Limits under which nothing can be asked."""


class ResultError(CrowdGraphError, ValueError):
    """A result whose arrays do not fit together."""


class AlignmentError(CrowdGraphError, ValueError):
    """A result made for other volunteers, items or classes."""


class FitError(CrowdGraphError, ArithmeticError):
    """A fit whose numbers overflowed."""


class UnknownIdError(CrowdGraphError, KeyError):
    """No such volunteer or item."""


class NotAnnotatedError(CrowdGraphError, LookupError):
    """The graph does not carry the result asked for."""


class StoreError(CrowdGraphError, OSError):
    """A saved graph that cannot be read or written."""


class MissingPackageError(CrowdGraphError, ImportError):
    """An optional package is needed."""


class CrowdGraphWarning(UserWarning):
    """The root of everything crowdgraph warns about."""


class DroppedRowsWarning(CrowdGraphWarning):
    """Rows were left out, as asked."""


class GoldWarning(CrowdGraphWarning):
    """Gold for items nobody answered."""


class ForgettingWarning(CrowdGraphWarning):
    """A setting under which nearly everything is forgotten."""


class NoTimesWarning(CrowdGraphWarning):
    """A model of change takes the order of the rows for that of time."""


class RepeatedAnswersWarning(CrowdGraphWarning):
    """A model without time counts repeated answers as independent."""


class CollapsedFitWarning(CrowdGraphWarning):
    """A fit that no longer tells items apart."""


class ConvergenceWarning(CrowdGraphWarning):
    """A fit stopped before it settled."""


def shown(values: Iterable[object], *, most: int = 5) -> str:
    """The first few values as text, for messages: ``'a', 'b', 'c' and 4 more``."""
    listed = list(values)
    text = ", ".join(repr(value) for value in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most:,} more"


def suggestion(wrong: object, known: Sequence[object]) -> str:
    """A closing ``Did you mean ...?`` where a known name is close to the wrong one."""
    names = {str(name): name for name in known}
    close = get_close_matches(str(wrong), list(names), n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise unless `value` is one of the allowed words."""
    if value not in allowed:
        raise ParameterError(
            f"{name}={value!r} is not a choice; use one of {shown(allowed, most=20)}.{suggestion(value, allowed)}"
        )


def warn(message: str, category: type[CrowdGraphWarning]) -> None:
    """Warn, pointing at the line outside crowdgraph that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "crowdgraph":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
