"""The options with which responses are read, the same for all commands that read them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from crowdgraph.cli._output import note
from crowdgraph.errors import ParameterError

if TYPE_CHECKING:
    from crowdgraph.io.any_file import Reading

READING = "Reading"
Votes = Annotated[
    list[str] | None,
    typer.Option(
        "--vote",
        metavar="LABEL=CLASS",
        help="Which class a label speaks for; LABEL= for none. Give one for each label.",
    ),
]


@dataclass(frozen=True)
class ResponseOptions:
    """What to read, and how."""

    responses: Annotated[
        Path,
        typer.Argument(
            help="CSV (plain or .gz), Parquet, a Zooniverse export, a saved .crowd, or results with one.",
            metavar="RESPONSES",
            readable=False,
        ),
    ]
    gold: Annotated[
        Path | None, typer.Option(help="Items whose class is known: a file with item and label.", readable=False)
    ] = None
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class", help="What items can be, one option for each; else the classes of gold, or the labels."
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(help="csv, parquet, panoptes or crowd; told by the file if left out.", rich_help_panel=READING),
    ] = None
    volunteer: Annotated[
        str | None, typer.Option(help="Column of the volunteer; usual names are guessed.", rich_help_panel=READING)
    ] = None
    item: Annotated[str | None, typer.Option(help="Column of the item.", rich_help_panel=READING)] = None
    label: Annotated[str | None, typer.Option(help="Column of the label.", rich_help_panel=READING)] = None
    time: Annotated[str | None, typer.Option(help="Column of the time.", rich_help_panel=READING)] = None
    no_time: Annotated[bool, typer.Option("--no-time", help="Leave times out.", rich_help_panel=READING)] = False
    delimiter: Annotated[
        str | None, typer.Option(help="What stands between fields; guessed if left out.", rich_help_panel=READING)
    ] = None
    encoding: Annotated[str, typer.Option(help="How text is encoded.", rich_help_panel=READING)] = "utf-8"
    duplicates: Annotated[
        str, typer.Option(help="Repeated answers: all, first, last or error.", rich_help_panel=READING)
    ] = "all"
    missing: Annotated[
        str, typer.Option(help="Rows with gaps: error, drop, or keep (null labels).", rich_help_panel=READING)
    ] = "error"
    task: Annotated[str, typer.Option(help="Task of a Zooniverse export.", rich_help_panel=READING)] = "T0"
    workflow: Annotated[str | None, typer.Option(help="Workflow of a Zooniverse export.", rich_help_panel=READING)] = (
        None
    )

    def read(self) -> Reading:
        """Read the responses, and say what was guessed."""
        from crowdgraph.io.any_file import read

        if self.no_time and self.time is not None:
            raise ParameterError(f"--no-time leaves times out, and --time {self.time} names them; give one of both.")
        named = {role: getattr(self, role) for role in ("volunteer", "item", "label", "time")}
        if self.no_time:
            named["time"] = ""
        options: dict[str, Any] = {"duplicates": self.duplicates, "missing": self.missing}
        for name in ("workflow", "classes"):
            if getattr(self, name):
                options[name] = getattr(self, name)
        found = read(
            self.responses,
            gold=self.gold,
            kind=self.format,
            columns={role: name for role, name in named.items() if name is not None},
            delimiter=None if self.delimiter is None else self.delimiter.replace("\\t", "\t"),
            encoding=self.encoding,
            task=self.task,
            **options,
        )
        note(found.notes)
        return found

    def record(self, found: Reading) -> dict[str, Any]:
        """What was read, and how, so that it can be read again; without folders, since results are passed on."""
        from crowdgraph.io.any_file import saved_graph_path

        files = {"responses": saved_graph_path(self.responses), "gold": self.gold}
        return {
            "files": {
                name: {"name": path.name, "sha256": _digest(path)}
                for name, path in files.items()
                if path is not None and path.is_file()
            },
            "format": found.kind,
            "columns": dict(found.columns),
            "classes": self.classes,
            "duplicates": self.duplicates,
            "missing": self.missing,
        }


def with_response_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments and options of `ResponseOptions`; it gets them as its first argument."""
    source_hints, own_hints = (get_type_hints(part, include_extras=True) for part in (ResponseOptions, command))
    shared = [
        parameter.replace(annotation=source_hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(ResponseOptions).parameters.items()
    ]
    own = [
        parameter.replace(annotation=own_hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in list(signature(command).parameters.items())[1:]
    ]

    def run(**given: Any) -> None:
        names = [parameter.name for parameter in shared]
        command(ResponseOptions(**{name: given.pop(name) for name in names}), **given)

    ordered = [shared[0], *own, *shared[1:]]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    run.__signature__ = signature(command).replace(parameters=ordered)  # type: ignore[attr-defined]
    return run


def parse_votes(given: list[str] | None, labels: tuple[Any, ...], classes: tuple[Any, ...]) -> Mapping[Any, Any] | None:
    """Which class each label speaks for, from ``LABEL=CLASS``; labels and classes are found by their text."""
    if not given:
        return None
    votes = {}
    for pair in given:
        label, mark, target = pair.partition("=")
        if not mark:
            raise ParameterError(
                f"--vote {pair} has no '='; write LABEL=CLASS, or LABEL= for one that speaks for none."
            )
        votes[_named(label, labels)] = _named(target, classes) if target else None
    return votes


def _named(text: str, values: tuple[Any, ...]) -> Any:
    return next((value for value in values if str(value) == text), text)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
