"""The command and its subcommands; an error is one sentence, without a traceback."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from crowdgraph.cli._output import fail
from crowdgraph.cli.allocate import allocate
from crowdgraph.cli.analyse import analyse, demo, update
from crowdgraph.cli.data import convert, inspect, simulate
from crowdgraph.cli.evaluate import evaluate
from crowdgraph.errors import CrowdGraphError

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """Commands whose errors are one sentence and an exit code: 1 for what the user can fix, 2 for usage."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except CrowdGraphError as error:
            fail(error.message)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            fail(f"{error.filename or 'A file'}: {error.strerror or error}. Check the path, its rights and free space.")
        except MemoryError:
            fail("There is not enough memory for this crowd; give fewer responses, or use --model ibcc.")
        except KeyboardInterrupt:
            fail("Interrupted.", code=130)


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
    app()
