"""The options with which responses are read, the same for all commands that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from crowdgraph.cli._output import note
from crowdgraph.errors import ParameterError, collect_warnings
from crowdgraph.io._files import file_digest

if TYPE_CHECKING:
    from crowdgraph.core.fit import ModelFit
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.io.any_file import Reading
    from crowdgraph.io.columns import ResponseStore
    from crowdgraph.io.panoptes import PanoptesExport

READING, EXPORT = "Reading", "Zooniverse exports"
Votes = Annotated[
    list[str] | None,
    typer.Option(
        "--vote",
        metavar="LABEL=CLASS",
        help="Which class a label votes for; LABEL= for none. Give one for each label.",
    ),
]
Prior = Annotated[
    str | None,
    typer.Option(
        "--prior",
        metavar="PRIOR",
        help="How volunteers are expected to label: crowd (learned from the crowd, the default), gold (learned from "
        "answers to gold items), or RIGHT,WRONG, such as 4,1, answers that everybody is taken to have given before.",
    ),
]


@dataclass(frozen=True)
class ResponseOptions:
    """Which responses to read, and how."""

    responses: Annotated[
        Path,
        typer.Argument(
            help="CSV (or .gz), .xlsx, Parquet, a Zooniverse export, a saved .crowd or store, results, or .graphml.",
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
        typer.Option(
            help="csv, excel, parquet, panoptes, label_studio, argilla, doccano, prodigy, inaturalist, crowd, store, "
            "graphml or gexf; recognised if left out.",
            rich_help_panel=READING,
        ),
    ] = None
    volunteer: Annotated[
        str | None, typer.Option(help="Column of the volunteer; usual names are guessed.", rich_help_panel=READING)
    ] = None
    item: Annotated[str | None, typer.Option(help="Column of the item.", rich_help_panel=READING)] = None
    label: Annotated[str | None, typer.Option(help="Column of the label.", rich_help_panel=READING)] = None
    time: Annotated[str | None, typer.Option(help="Column of the time.", rich_help_panel=READING)] = None
    probability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help='Soft answers: the column of the confidence in the label, or of JSON such as {"yes": 0.9, "no": '
            "0.1}; or LABEL=COLUMN, one option for each label.",
            rich_help_panel=READING,
        ),
    ] = None
    log_probability: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="The same as logarithms.", rich_help_panel=READING)
    ] = None
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
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            help="Replace the names of volunteers, and write who is who to this new CSV file: a key to keep.",
            rich_help_panel=READING,
        ),
    ] = None
    reuse_pseudonyms: Annotated[
        bool,
        typer.Option(
            "--reuse-pseudonyms", help="The key is there: use its pseudonyms, add new ones.", rich_help_panel=READING
        ),
    ] = False
    workflow: Annotated[
        str | None, typer.Option(help="The workflow, by its id or its name.", rich_help_panel=EXPORT)
    ] = None
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="The task, such as T0; analyse takes several, or all if left out; or a tool's question.",
            rich_help_panel=EXPORT,
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a multiple choice or a survey: whether this was chosen, yes or no. Analyse takes several, or all.",
            rich_help_panel=EXPORT,
        ),
    ] = None
    version: Annotated[
        str | None,
        typer.Option(help="Only this version of the workflow, such as 14.41, or 14.", rich_help_panel=EXPORT),
    ] = None
    bins: Annotated[
        str | None,
        typer.Option(help="Where to divide the numbers of a slider, such as 10,50.", rich_help_panel=EXPORT),
    ] = None
    anonymous: Annotated[
        str | None,
        typer.Option(
            help="Visitors who were not logged in: keep (each address is a volunteer), drop, pool (none answers twice "
            "about an item), or session.",
            rich_help_panel=EXPORT,
        ),
    ] = None
    malformed: Annotated[
        str | None, typer.Option(help="Rows that are not readable: error, or skip.", rich_help_panel=EXPORT)
    ] = None
    gold_standard: Annotated[
        str | None,
        typer.Option(help="Rows of experts marked gold_standard: gold, answers or drop.", rich_help_panel=EXPORT),
    ] = None

    def read(self, *, extend: CrowdGraph | None = None) -> Reading:
        """Read the responses, which may be added to those of a graph, and print what was guessed."""
        from crowdgraph.io.any_file import read
        from crowdgraph.io.extend import without_known

        options: dict[str, Any] = {"duplicates": self.duplicates, "missing": self.missing, **self.export_options()}
        for name in ("task", "option"):
            values = getattr(self, name) or []
            if len(values) > 1:
                raise ParameterError(f"--{name} names {len(values)}, and this command reads one; name one.")
            if values:
                options[name] = values[0]
        if self.classes:
            options["classes"] = self.classes
        for name in ("probability", "log_probability"):
            if getattr(self, name):
                options[name] = parse_probability(getattr(self, name))
        # Names that are replaced are those of the new responses only.
        later = None if self.pseudonyms is None else extend
        first = read(self.responses, **self._table_options(), extend=None if later else extend, **options)
        (reading,) = self.hidden([first])
        if later is not None:
            warned: list[str] = []
            with collect_warnings(warned):
                fresh, n_known = without_known(reading.graph, later, key="classification_id")
                graph = later.extend(fresh, duplicates=options["duplicates"])
            known = [f"{n_known:,} of its responses are known already, and are not added again."] if n_known else []
            reading = replace(reading, graph=graph, notes=(*reading.notes, *warned, *known))
        note(reading.notes)
        return reading

    def again(self, choice: Mapping[str, Any]) -> ResponseOptions:
        """Return the options that read the answers of a choice, as `record` notes it, where nothing else is said."""
        values: dict[str, Any] = {name: [str(choice[name])] for name in ("task", "option") if name in choice}
        names = ("workflow", "version", "anonymous", "malformed", "gold_standard")
        values |= {name: str(choice[name]) for name in names if name in choice}
        if "bins" in choice:
            values["bins"] = ",".join(map(str, choice["bins"]))
        return replace(self, **{name: value for name, value in values.items() if not getattr(self, name)})

    def hidden(self, readings: Sequence[Reading]) -> list[Reading]:
        """Return readings with pseudonyms if these are asked for, the same ones in all."""
        if self.reuse_pseudonyms and self.pseudonyms is None:
            raise ParameterError("--reuse-pseudonyms is for the key that --pseudonyms names; give both.")
        if self.pseudonyms is None:
            return list(readings)
        from crowdgraph.io.pseudonyms import pseudonymise

        reuse, renamed = self.reuse_pseudonyms, []
        for reading in readings:
            renamed.append(replace(reading, graph=pseudonymise(reading.graph, key=self.pseudonyms, reuse=reuse)))
            reuse = True
        note([f"Volunteers have pseudonyms. Who is who is in {str(self.pseudonyms)!r}; keep that to yourself."])
        return renamed

    def check_key(self, out: Path) -> None:
        """Raise if the key of pseudonyms would lie among the results, which are passed on."""
        if self.pseudonyms is not None and out.resolve() in self.pseudonyms.resolve().parents:
            raise ParameterError(
                f"The key {str(self.pseudonyms)!r} would be passed on with the results; name a file elsewhere."
            )

    def export_options(self) -> dict[str, Any]:
        """Return how a Zooniverse export is read, beside the tasks and options."""
        names = ("workflow", "version", "anonymous", "malformed", "gold_standard")
        values = {name: getattr(self, name) for name in names} | {"bins": parse_bins(self.bins)}
        return {name: value for name, value in values.items() if value is not None}

    def export(self) -> PanoptesExport | None:
        """Return the Zooniverse export with its questions; None if the file is none."""
        from crowdgraph.io.any_file import open_export

        table = self._table_options()
        return open_export(self.responses, kind=self.format, delimiter=table["delimiter"], encoding=table["encoding"])

    def convert(
        self, more: list[Path], store: Path, *, labels: list[str] | None, attributes: list[str] | None, **options: Any
    ) -> ResponseStore:
        """Convert tables to a store of columns without reading them into memory, and print what was guessed."""
        from crowdgraph.io.any_file import convert

        if self.probability or self.log_probability:
            raise ParameterError(
                "A store of columns is made of certain answers; leave --probability out, or analyse the table itself."
            )
        built, notes = convert(
            [self.responses, *more],
            store,
            **self._table_options(),
            classes=self.classes or None,
            labels=labels,
            attributes=attributes or None,
            duplicates=self.duplicates,
            missing=self.missing,
            **options,
        )
        note(notes)
        return built

    def _table_options(self) -> dict[str, Any]:
        """Return the options with which tables are read."""
        if self.no_time and self.time is not None:
            raise ParameterError(f"--no-time leaves times out, and --time {self.time} names them; give one of both.")
        columns = {role: getattr(self, role) for role in ("volunteer", "item", "label", "time")}
        if self.no_time:
            columns["time"] = ""
        return {
            "gold": self.gold,
            "kind": self.format,
            "columns": {role: name for role, name in columns.items() if name is not None},
            "delimiter": None if self.delimiter is None else self.delimiter.replace("\\t", "\t"),
            "encoding": self.encoding,
        }

    def record(self, reading: Reading) -> dict[str, Any]:
        """Return what was read, and how, to repeat it; without directories, since results are passed on."""
        from crowdgraph.io.any_file import saved_graph_path

        files = {"responses": saved_graph_path(self.responses), "gold": self.gold}
        return {
            "files": {
                name: {"name": path.name, "sha256": file_digest(_content(path))}
                for name, path in files.items()
                if path is not None and _content(path).is_file()
            },
            "format": reading.kind,
            "columns": dict(reading.columns),
            "probability": self.probability,
            "log_probability": self.log_probability,
            **({} if reading.account is None else {"rows": reading.account.to_dict(), "choice": dict(reading.choice)}),
            "classes": self.classes,
            "duplicates": self.duplicates,
            "missing": self.missing,
        }


def _content(path: Path) -> Path:
    """Return the file whose checksum stands for a path: of a store its manifest, which holds those of the others."""
    from crowdgraph.io.columns import MANIFEST, is_store

    return path / MANIFEST if is_store(path) else path


def with_response_options(command: Callable[..., None], *, before: tuple[str, ...] = ()) -> Callable[..., None]:
    """Give a command the argument and options of `ResponseOptions`, which it gets as its first argument.

    Arguments of its own that are named in `before` come before the responses.
    """
    shared_hints, own_hints = (get_type_hints(part, include_extras=True) for part in (ResponseOptions, command))
    shared = [
        parameter.replace(annotation=shared_hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(ResponseOptions).parameters.items()
    ]
    own = [
        parameter.replace(annotation=own_hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in list(signature(command).parameters.items())[1:]
    ]

    def run(**values: Any) -> None:
        source = ResponseOptions(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        command(source, **values)

    leading = [parameter for parameter in own if parameter.name in before]
    ordered = [*leading, shared[0], *(parameter for parameter in own if parameter.name not in before), *shared[1:]]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    run.__signature__ = signature(command).replace(parameters=ordered)  # type: ignore[attr-defined]
    return run


def parse_votes(pairs: list[str] | None, labels: tuple[Any, ...], classes: tuple[Any, ...]) -> dict[Any, Any] | None:
    """Return the class that each label votes for, from ``LABEL=CLASS``; labels and classes are known by their text."""
    if not pairs:
        return None
    votes = {}
    for pair in pairs:
        label, equals, target = pair.partition("=")
        if not equals:
            raise ParameterError(f"--vote {pair} has no '='; write LABEL=CLASS, or LABEL= for one that votes for none.")
        votes[_by_text(label, labels)] = _by_text(target, classes) if target else None
    return votes


def parse_probability(columns: list[str] | None) -> str | list[str] | dict[str, str] | None:
    """Return the columns of soft answers: one for all, or those of the labels, from ``LABEL=COLUMN`` or ``COLUMN``."""
    if not columns:
        return None
    pairs = [column.rpartition("=") for column in columns]
    if all(equals for _, equals, _ in pairs):
        return {label: column for label, _, column in pairs}
    return columns[0] if len(columns) == 1 else columns


def parse_prior(text: str | None) -> str | tuple[float, float] | None:
    """Return the prior of confusion: a word, or the numbers of right and wrong answers, from ``RIGHT,WRONG``."""
    if text is None or text in ("crowd", "gold"):
        return text
    try:
        right, wrong = map(float, text.split(","))
    except ValueError:
        raise ParameterError(f"--prior {text} must be crowd, gold, or two numbers such as 4,1.") from None
    if not (0 < right < float("inf") and 0 < wrong < float("inf")):
        raise ParameterError(f"--prior {text} must be made of numbers above zero, such as 4,1.")
    return right, wrong


def parse_bins(text: str | None) -> list[float] | None:
    """Return the bounds between bins, from ``10,50``."""
    if text is None:
        return None
    try:
        return [float(bound) for bound in text.split(",")]
    except ValueError:
        raise ParameterError(f"--bins {text} must be numbers with commas between them, such as 10,50.") from None


def options_of(fit: ModelFit) -> dict[str, Any]:
    """Return the options that ask for the prior and the votes of a fit, as far as options can."""
    prior, votes = fit.params.get("confusion_prior"), fit.params.get("votes")
    if isinstance(prior, tuple) and all(isinstance(value, float) for value in prior):
        prior = ",".join(f"{value:g}" for value in prior)
    return {
        "prior": prior if isinstance(prior, str) else None,
        "vote": [f"{label}={'' if name is None else name}" for label, name in votes.items()] if votes else None,
    }


def _by_text(text: str, values: tuple[Any, ...]) -> Any:
    return next((value for value in values if str(value) == text), text)
