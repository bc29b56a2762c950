"""Messages and hints that read differently in Python and on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Literal

__all__ = ["Hint", "Interface", "Message"]


def __dir__() -> list[str]:
    return __all__


# How much of a value a message quotes, and how long what it says before its advice may be, whatever it quotes.
MAX_VALUE = 80
MAX_MESSAGE = 1_500
# What terminals obey instead of showing: control characters other than tabs and ends of lines, and marks that turn the
# direction of text.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

Interface = Literal["python", "cli"]


class Message(str):
    """Text for Python users that also has a wording for users of the command line.

    As a string it is Python's wording; `wording` returns either, and adding text preserves both.

    Parameters
    ----------
    python
        The text as Python users read it.
    cli
        The text as users of the command line read it; the same if left out.

    Examples
    --------
    >>> message = Message("Use missing='drop'", cli="Use --missing drop") + " to leave these rows out."
    >>> message
    "Use missing='drop' to leave these rows out."
    >>> message.wording("cli")
    'Use --missing drop to leave these rows out.'
    """

    cli: str

    def __new__(cls, python: str, *, cli: str | None = None) -> Message:
        """Return the text; without `cli`, a message keeps its own wording for the command line."""
        message = super().__new__(cls, python)
        message.cli = wording(python, "cli") if cli is None else cli
        return message

    def wording(self, interface: Interface) -> str:
        """Return the text for one of the interfaces, as a plain string."""
        return self.cli if interface == "cli" else str.__str__(self)

    def __add__(self, other: str) -> Message:
        return Message(f"{self}{other}", cli=self.cli + wording(other, "cli"))

    def __radd__(self, other: str) -> Message:
        return Message(f"{other}{self}", cli=wording(other, "cli") + self.cli)


class Hint(Message):
    """What to do about a problem: a sentence for Python users and one for users of the command line.

    Errors, warnings and findings carry hints; whoever shows them chooses the wording.

    Examples
    --------
    >>> from crowdgraph.errors import TooFewError
    >>> error = TooFewError("No volunteer has 50 answers.",
    ...                     hint=Hint("Lower min_responses.", cli="Lower --min-responses."))
    >>> str(error)
    'No volunteer has 50 answers. Lower min_responses.'
    >>> error.message.wording("cli")
    'No volunteer has 50 answers. Lower --min-responses.'
    """


def wording(text: str, interface: Interface) -> str:
    """Return the wording of a text for an interface; that of a plain string is the string."""
    return text.wording(interface) if isinstance(text, Message) else text


def argument(name: str, value: object, *, option: str | None = None) -> Message:
    """Return how an argument was given, to begin a message with: ``folds=9``, or ``--folds 9`` on the command line.

    Parameters
    ----------
    name, value
        The argument.
    option
        The name of the option, if it is not that of the argument.

    Examples
    --------
    >>> message = argument("n_items", 0) + " must be a whole number from 1 up."
    >>> message.wording("cli")
    '--items 0 must be a whole number from 1 up.'
    """
    option = name.removeprefix("n_").replace("_", "-") if option is None else option
    return Message(f"{name}={short(repr(value))}", cli=f"--{option} {short(str(value))}")


def short(text: str, *, most: int = MAX_VALUE) -> str:
    """Return a text of at most so many characters: of a longer one its beginning and its end.

    Examples
    --------
    >>> short("0123456789" * 9, most=20)
    '01234567 ... 3456789'
    """
    n_last = (most - 5) // 2
    return text if len(text) <= most else f"{text[: most - 5 - n_last]} ... {text[-n_last:]}"


def printable(text: str) -> str:
    r"""Return a text with what terminals would obey written out, such as ``\x1b`` for an escape.

    Examples
    --------
    >>> print(printable("\x1b[2Janna"))
    \x1b[2Janna
    """
    return OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def quote(values: Iterable[object], *, most: int = 5) -> str:
    """Return the first few values as text for messages, long ones cut: ``'a', 'b', 'c' and 4 more``."""
    items = list(values)
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(short(repr(item)) for item in items[:most]) + more


def with_article(kind: type) -> str:
    """Return the name of a type with its article, as in ``a str`` or ``an int``."""
    name = kind.__name__
    return ("an " if name[0] in "AEIOaeio" or name == "ndarray" else "a ") + name


def suggestion(wrong: object, known: Sequence[object]) -> str:
    """Return a closing ``Did you mean ...?`` if a known name is close to the wrong one, and nothing otherwise."""
    names = {str(name): name for name in known}
    close = get_close_matches(str(wrong), list(names), n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""
