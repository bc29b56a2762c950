"""What commands say: sentences for people, JSON for machines, errors on the error stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import typer

from crowdgraph.cli.options import as_options

__all__ = ["fail", "note", "say", "say_json", "shows_progress"]


def say(text: object, *, style: str | None = None) -> None:
    """Print a line; with colours only on a terminal, and not if NO_COLOR is set."""
    from rich.console import Console

    Console(highlight=False).print(str(text), style=style, soft_wrap=True, markup=False, emoji=False)


def note(sentences: Iterable[str]) -> None:
    """Print what was decided or warned of, on the error stream, so that what is piped on stays clean."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    for sentence in sentences:
        console.print(f"note: {as_options(sentence)}", style="dim", soft_wrap=True, markup=False, emoji=False)


def say_json(value: Any) -> None:
    """Print values as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False))


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """Say what is wrong and end with an exit code."""
    from rich.console import Console

    Console(stderr=True, highlight=False).print(
        f"Error: {' '.join(sentence.split())}", style="red", soft_wrap=True, markup=False, emoji=False
    )
    raise typer.Exit(code)


def shows_progress() -> bool:
    """Whether somebody is watching."""
    return sys.stderr.isatty()
