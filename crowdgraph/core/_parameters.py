"""Parameters: checks of single values, dataclass fields that declare their checks, random seeds and progress bars.

Each check raises an error that names the parameter, the value it got and what it expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from typing import Any, TypeVar

import numpy as np

from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import argument, with_article

Value = TypeVar("Value")
# A check of a setting, called with its name and its value; it raises, or returns None.
Check = Callable[[str, Any], None]


# Single values


def is_number(value: object) -> bool:
    """Return whether a value is a real number, of Python or of NumPy."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_number(name: str, value: Any, *, valid: Callable[[Any], bool], expected: str) -> None:
    """Raise unless a setting is a number that is valid; `expected` completes the sentence "must ..."."""
    if not is_number(value) or not valid(value):
        raise ParameterError(argument(name, value) + f" must {expected}.")


def check_positive(name: str, value: object) -> None:
    """Raise unless a setting is a finite number above zero."""
    check_number(name, value, valid=lambda number: 0 < number < np.inf, expected="be a number above zero")


def check_non_negative(name: str, value: object) -> None:
    """Raise unless a setting is a finite number from zero up."""
    check_number(name, value, valid=lambda number: 0 <= number < np.inf, expected="be a finite number of at least 0")


def check_fraction(name: str, value: object) -> None:
    """Raise unless a setting is a number from 0 to 1."""
    check_number(name, value, valid=lambda number: 0 <= number <= 1, expected="be a share from 0 to 1")


def check_integer(name: str, value: Any, *, minimum: int = 1) -> None:
    """Raise unless a setting is a whole number of at least `minimum`."""
    if not is_integer(value) or value < minimum:
        raise ParameterError(argument(name, value) + f" must be a whole number from {minimum} up.")


def check_bool(name: str, value: object) -> None:
    """Raise unless a setting is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(argument(name, value) + " must be True or False.")


def check_seed(seed: Any) -> None:
    """Raise unless a seed is a whole number or None."""
    if seed is not None and (not is_integer(seed) or seed < 0):
        raise ParameterError(
            argument("seed", seed) + " must be a whole number from 0 up, or None to draw anew each time."
        )


def check_instance(name: str, value: object, kind: type, *, expected: str | None = None) -> None:
    """Raise unless an argument is of a kind; `expected` completes the sentence "takes ...", such as "a model"."""
    if not isinstance(value, kind):
        takes = with_article(kind) if expected is None else expected
        raise ParameterError(f"{name}= takes {takes}; got {with_article(type(value))}.")


# Fields that declare their checks


def setting(default: Value, check: Check) -> Value:
    """Declare a field of a `Configured` dataclass with a default and a check.

    A default that is None or a word, such as ``"auto"``, is always valid.
    """
    return field(default=default, metadata={"check": check})


def positive(default: Value) -> Value:
    """Declare a finite number above zero.

    With a word as default, the word is valid too, and the error says so.
    """
    if not isinstance(default, str):
        return setting(default, check_positive)
    return number(default, valid=lambda value: 0 < value < np.inf, expected=f"be a number above zero, or {default!r}")


def non_negative(default: Value) -> Value:
    """Declare a finite number from zero up."""
    return setting(default, check_non_negative)


def fraction(default: Value) -> Value:
    """Declare a number from 0 to 1."""
    return setting(default, check_fraction)


def number(default: Value, *, valid: Callable[[Any], bool], expected: str) -> Value:
    """Declare a number with a range of its own; `expected` completes the sentence "must ..."."""
    return setting(default, lambda name, value: check_number(name, value, valid=valid, expected=expected))


def integer(default: Value, *, minimum: int = 1) -> Value:
    """Declare a whole number of at least `minimum`."""
    return setting(default, lambda name, value: check_integer(name, value, minimum=minimum))


def boolean(default: Value) -> Value:
    """Declare a switch."""
    return setting(default, check_bool)


def choice(default: Value, options: Sequence[str]) -> Value:
    """Declare one of several words; the error suggests the nearest."""
    # A word as default is one of the options, so it needs no exception.
    return setting(default, lambda name, value: check_choice(name, value, options))


def precision(default: Value, options: Sequence[str]) -> Value:
    """Declare one of several precisions, by its name or as the type of PyTorch."""

    def convert(value: Any) -> Any:
        name = str(value).removeprefix("torch.")
        check_choice("dtype", name, options)
        return name

    return converted(default, convert)


def instance(default: Value, kind: type, *, expected: str | None = None) -> Value:
    """Declare an object of a kind; `expected` completes the sentence "takes ..."."""
    return setting(default, lambda name, value: check_instance(name, value, kind, expected=expected))


def converted(default: Value, convert: Callable[[Any], Any]) -> Value:
    """Declare a value that is stored as `convert` returns it; `convert` raises where it cannot."""
    return field(default=default, metadata={"convert": convert})


class Configured:
    """A dataclass whose fields are settings, each checked where it is declared.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Search(Configured):
    ...     tol: float = positive(1e-5)
    ...     max_iter: int = integer(100, minimum=2)
    ...     limit: float | None = positive(None)
    >>> Search(max_iter=1)
    Traceback (most recent call last):
        ...
    crowdgraph.errors.ParameterError: max_iter=1 must be a whole number from 2 up.
    """

    def __post_init__(self) -> None:
        instance: Any = self
        for declared in fields(instance):
            value = getattr(self, declared.name)
            if "convert" in declared.metadata:
                object.__setattr__(self, declared.name, declared.metadata["convert"](value))
            elif "check" in declared.metadata and not _is_special(value, declared.default):
                declared.metadata["check"](declared.name, value)
        self._check_settings()

    def _check_settings(self) -> None:
        """Check what no single field can: how settings go together."""


def _is_special(value: object, default: object) -> bool:
    """Return whether a value is None or a word that a field has as its default."""
    return (value is None and default is None) or (isinstance(value, str) and value == default)


def as_list(values: Any, name: str) -> list[Any]:
    """Return the values of an argument that must be iterable, as a list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{name}={values!r} must be several values, such as {name}=[...].")
    return list(values)
