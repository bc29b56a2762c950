"""Checks of single settings, with errors that say what was got and what was expected."""

from __future__ import annotations

import numpy as np

from crowdgraph.errors import ParameterError

__all__ = ["check_bool", "check_positive", "check_seed", "check_whole", "is_number"]


def is_number(value: object) -> bool:
    """Whether a value is a real number, of Python or of NumPy."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_positive(name: str, value: object) -> None:
    """Raise unless a setting is a finite number above zero."""
    if not is_number(value) or not 0 < value < float("inf"):  # type: ignore[operator]
        raise ParameterError(f"{name}={value!r} must be a number above zero.")


def check_bool(name: str, value: object) -> None:
    """Raise unless a setting is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name}={value!r} must be True or False.")


def check_whole(name: str, value: object, *, least: int = 1) -> None:
    """Raise unless a setting is a whole number, not too small."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ParameterError(f"{name}={value!r} must be a whole number from {least} up.")


def check_seed(seed: object) -> None:
    """Raise unless a seed is a whole number or None."""
    if seed is not None and (not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0):
        raise ParameterError(f"seed={seed!r} must be a whole number from 0 up, or None to draw anew each time.")
