"""The errors and warnings of crowdgraph.

Each error says what is wrong, what was passed, what was expected and what to do. All of them can be caught as
`CrowdGraphError`, or as the built-in error in parentheses::

    CrowdGraphError
    ├── InputError (ValueError)             data that cannot become a graph
    │   ├── ColumnError                     a column is missing, doubled or of the wrong length
    │   ├── MissingValueError               an id, label or time is null
    │   ├── IdError                         ids that collide, repeat or cannot be stored
    │   ├── LabelError                      labels outside the label set, or of mixed types
    │   ├── TimeError                       times that cannot be read, compared or ordered
    │   ├── GoldError                       gold that contradicts itself or the classes
    │   └── DuplicateError                  a volunteer answered an item twice where that is not allowed
    ├── ParameterError (ValueError)         an argument outside its range
    │   ├── TooFewError                     an argument that leaves too few volunteers
    │   └── InfeasibleError                 limits with which nobody can be asked anything
    ├── ResultError (ValueError)            a result with inconsistent arrays
    ├── AlignmentError (ValueError)         a result for other volunteers, items or classes
    ├── FitError (ArithmeticError)          a fit whose numbers overflowed
    │   └── TrainingError                   a classifier whose loss became NaN or infinite
    ├── UnknownIdError (KeyError)           no such volunteer or item
    ├── NotAnnotatedError (LookupError)     the graph does not carry the requested result
    ├── StoreError (OSError)                a saved graph that cannot be read or written
    ├── LostRankError (ConnectionError)     a process that computed together with this one has ended
    └── MissingPackageError (ImportError)   an optional package is needed

    CrowdGraphWarning (UserWarning)
    ├── DroppedRowsWarning                  rows were left out, as requested
    ├── LateResponsesWarning                new responses of times that a graph was thought to know
    ├── GoldWarning                         gold for items that nobody answered
    ├── ForgettingWarning                   a setting with which nearly everything is forgotten
    ├── NoTimesWarning                      a model of change uses the order of the rows as time
    ├── RepeatedAnswersWarning              a model without time counts repeated answers as independent
    ├── CollapsedFitWarning                 a fit that no longer distinguishes items
    ├── UntrainedClassifierWarning          a classifier that learned nothing from the answers
    ├── ConvergenceWarning                  a fit that stopped before it converged
    └── LeftOutFigureWarning                a figure of an analysis that could not be drawn

Beside these is `FitInterrupted` (KeyboardInterrupt), which has the fit that Ctrl-C ended early.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crowdgraph.messages import MAX_MESSAGE, Message, argument, quote, short, suggestion, wording

if TYPE_CHECKING:
    from crowdgraph.core.fit import ModelFit

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
    "FitInterrupted",
    "ForgettingWarning",
    "GoldError",
    "GoldWarning",
    "IdError",
    "InfeasibleError",
    "InputError",
    "LabelError",
    "LateResponsesWarning",
    "LeftOutFigureWarning",
    "LostRankError",
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
    "TrainingError",
    "UnknownIdError",
    "UntrainedClassifierWarning",
]


def __dir__() -> list[str]:
    return __all__


class _WithMessage(Exception):  # noqa: N818 - warnings are derived from it, too
    """An error or warning with a message for either interface.

    Parameters
    ----------
    text
        What was wrong, what was got and what was expected.
    hint
        What to do about it.
    """

    message: Message

    def __init__(self, text: str = "", *, hint: str | None = None) -> None:
        # Data that a message quotes may be of any length.
        text = Message(short(text, most=MAX_MESSAGE), cli=short(wording(text, "cli"), most=MAX_MESSAGE))
        super().__init__(text)
        self.message = text if hint is None else text + " " + hint

    def __str__(self) -> str:
        # KeyError would show the repr of its message.
        return str(self.message)


class CrowdGraphError(_WithMessage):
    """The root of everything crowdgraph raises."""


class InputError(CrowdGraphError, ValueError):
    """Data that cannot become a graph."""


class ColumnError(InputError):
    """A column is missing, doubled or of the wrong length."""


class MissingValueError(InputError):
    """An id, label or time is null."""


class IdError(InputError):
    """Ids that collide, repeat or cannot be stored."""


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
    """Limits with which nobody can be asked anything."""


class ResultError(CrowdGraphError, ValueError):
    """A result with inconsistent arrays."""


class AlignmentError(CrowdGraphError, ValueError):
    """A result for other volunteers, items or classes."""


class FitError(CrowdGraphError, ArithmeticError):
    """A fit whose numbers overflowed."""


class TrainingError(FitError):
    """A classifier whose loss became NaN or infinite.

    Attributes
    ----------
    state_dict
        The last good weights, for ``classifier.load_state_dict``.
    """

    def __init__(self, text: str = "", *, hint: str | None = None, state_dict: Mapping[str, Any] | None = None) -> None:
        super().__init__(text, hint=hint)
        self.state_dict = {} if state_dict is None else dict(state_dict)


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit before it was complete.

    It is no `CrowdGraphError`, so that whoever catches those does not catch Ctrl-C.

    Attributes
    ----------
    fit
        The `ModelFit` that was reached: complete and consistent, but not converged.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph, model = cg.simulate.crowd(seed=0).graph, cg.IBCC()
    >>> try:
    ...     fit = model.fit(graph)
    ... except cg.errors.FitInterrupted as interrupted:
    ...     fit = interrupted.fit
    """

    def __init__(self, text: str = "", *, fit: ModelFit | None = None) -> None:
        super().__init__(text)
        self.fit = fit


class UnknownIdError(CrowdGraphError, KeyError):
    """No such volunteer or item."""


class NotAnnotatedError(CrowdGraphError, LookupError):
    """The graph does not carry the requested result."""


class StoreError(CrowdGraphError, OSError):
    """A saved graph that cannot be read or written."""


class LostRankError(CrowdGraphError, ConnectionError):
    """A process that computed together with this one has ended, or cannot be reached any more."""


class MissingPackageError(CrowdGraphError, ImportError):
    """An optional package is needed."""


class CrowdGraphWarning(_WithMessage, UserWarning):
    """The root of everything crowdgraph warns about."""


class DroppedRowsWarning(CrowdGraphWarning):
    """Rows were left out, as requested."""


class LateResponsesWarning(CrowdGraphWarning):
    """New responses of times that a graph was thought to know."""


class GoldWarning(CrowdGraphWarning):
    """Gold for items that nobody answered."""


class ForgettingWarning(CrowdGraphWarning):
    """A setting with which nearly everything is forgotten."""


class NoTimesWarning(CrowdGraphWarning):
    """A model of change uses the order of the rows as time."""


class RepeatedAnswersWarning(CrowdGraphWarning):
    """A model without time counts repeated answers as independent."""


class CollapsedFitWarning(CrowdGraphWarning):
    """A fit that no longer distinguishes items."""


class UntrainedClassifierWarning(CrowdGraphWarning):
    """A classifier that learned nothing from the answers."""


class ConvergenceWarning(CrowdGraphWarning):
    """A fit that stopped before it converged."""


class LeftOutFigureWarning(CrowdGraphWarning):
    """A figure of an analysis could not be drawn; everything else was written."""


def check_choice(name: str, value: object, allowed: Sequence[str], *, option: str | None = None) -> None:
    """Raise unless `value` is one of the allowed words; `option` is as for `argument`."""
    if value not in allowed:
        raise ParameterError(
            argument(name, value, option=option)
            + f" is not a choice; use one of {quote(allowed, most=20)}.{suggestion(value, allowed)}"
        )


def warn(text: str, category: type[CrowdGraphWarning], *, hint: str | None = None) -> None:
    """Warn, and point at the line outside crowdgraph from which the call came."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "crowdgraph":
        level, frame = level + 1, frame.f_back
    warnings.warn(category(text, hint=hint), stacklevel=level)


@contextmanager
def collect_warnings(messages: list[str]) -> Iterator[None]:
    """Append the warnings of crowdgraph to a list, those of one kind and line as one; pass on other warnings.

    One that is repeated word for word counts once.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdGraphWarning)
        yield
    alike: dict[tuple[type[Warning], str, int], list[Message]] = {}
    for warning in caught:
        if isinstance(warning.message, CrowdGraphWarning):
            key = (warning.category, warning.filename, warning.lineno)
            alike.setdefault(key, []).append(warning.message.message)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    for first, *others in map(dict.fromkeys, alike.values()):
        message = first + f" (And {len(others):,} more like this.)" if others else first
        if message not in messages:
            messages.append(message)
