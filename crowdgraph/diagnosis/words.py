"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["counted", "named", "percent"]


def counted(n: int, noun: str) -> str:
    """A number with its noun, as in ``1 volunteer`` or ``1,200 volunteers``."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def percent(share: float) -> str:
    """A share in percent, with decimals where they tell something."""
    if 0 < share < 0.001:
        return "less than 0.1%"
    if 0.999 < share < 1:
        return "more than 99.9%"
    return f"{share:.1%}" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share:.0%}"


def named(values: Iterable[object], *, most: int = 3) -> str:
    """The first few of several values, as in ``a, b, c and 4 more``."""
    listed = [str(value) for value in values]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
