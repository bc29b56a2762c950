"""The command and its subcommands; an error is one sentence, without a traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from crowdgraph.cli._output import fail, prepare_streams
from crowdgraph.cli.allocate import allocate
from crowdgraph.cli.analyse import analyse, demo, update
from crowdgraph.cli.data import convert, inspect, simulate
from crowdgraph.cli.evaluate import evaluate
from crowdgraph.errors import CrowdGraphError

__all__ = ["app", "main"]


# What torch, igraph and the standard library of C++ say when there is not enough memory.
NO_MEMORY = ("allocate memory", "out of memory", "not enough memory", "alloc_failed", "bad_alloc")
# A process that a signal ends has this exit code and the signal's number.
BY_SIGNAL = 128
# Windows does not have this signal.
SIGPIPE = 13


class Ended(BaseException):
    """The process was asked to end by a signal, of which this is the number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Commands(TyperGroup):
    """Commands whose errors are one sentence and an exit code: 1 for what the user can fix, 2 for usage."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except CrowdGraphError as error:
            fail(error.message)
        except BrokenPipeError as error:
            _print_nowhere()
            raise typer.Exit(BY_SIGNAL + SIGPIPE) from error
        except KeyboardInterrupt:
            fail("Interrupted.", code=BY_SIGNAL + signal.SIGINT)
        except Ended as end:
            fail(f"Ended by {signal.Signals(end.number).name}.", code=BY_SIGNAL + end.number)
        except Exception as error:
            if _lacks_memory(error):
                fail("There is not enough memory for this crowd; give fewer responses, or use a machine with more.")
            if not isinstance(error, OSError):
                raise
            fail(f"{error.filename or 'A file'}: {error.strerror or error}. Check the path, its rights and free space.")
        return result


def _lacks_memory(error: Exception) -> bool:
    """Return whether an error says in any of the ways of libraries that there is not enough memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return not isinstance(error, OSError) and any(words in str(error).lower() for words in NO_MEMORY)


def _print_nowhere() -> None:
    """Drop what is still to be printed, since nobody reads it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


app = typer.Typer(
    name="crowdgraph",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, analyse, update, inspect, evaluate, allocate, simulate, convert):
    app.command(no_args_is_help=command is not demo)(command)


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"crowdgraph {version('crowdgraph')}")
        raise typer.Exit


@app.callback()
def _about(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Understand crowds of volunteers who label things.

    Begin with [bold]crowdgraph demo[/bold], or with your own answers:
    [bold]crowdgraph analyse responses.csv --gold gold.csv[/bold]
    """


def main() -> None:
    """Run the command."""
    prepare_streams()
    listen_to_signals()
    try:
        app()
    except Ended as end:
        raise SystemExit(BY_SIGNAL + end.number) from None


def listen_to_signals() -> None:
    """Let the signals that ask a process to end raise an error, so that it cleans up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # A command stops at once, where `Model.fit` would complete its step for those who may want its state.
        signal.signal(signal.SIGINT, _interrupt)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # One that is ignored stays so, as nohup wants it.
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _end(number: int, _: Any) -> None:
    # Asked twice, it still cleans up only once.
    signal.signal(number, signal.SIG_IGN)
    raise Ended(number)
