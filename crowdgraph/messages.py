"""Messages and hints that read differently in Python and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Literal

__all__ = ["Hint", "Interface", "Message"]

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
    return Message(f"{name}={value!r}", cli=f"--{option} {value}")


def quote(values: Iterable[object], *, most: int = 5) -> str:
    """Return the first few values as text for messages: ``'a', 'b', 'c' and 4 more``."""
    items = list(values)
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(repr, items[:most])) + more


def with_article(kind: type) -> str:
    """Return the name of a type with its article, as in ``a str`` or ``an int``."""
    name = kind.__name__
    return ("an " if name[0] in "AEIOaeio" or name == "ndarray" else "a ") + name


def suggestion(wrong: object, known: Sequence[object]) -> str:
    """Return a closing ``Did you mean ...?`` if a known name is close to the wrong one, and nothing otherwise."""
    names = {str(name): name for name in known}
    close = get_close_matches(str(wrong), list(names), n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""
