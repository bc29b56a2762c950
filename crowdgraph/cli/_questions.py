"""The command ``crowdgraph analyse`` for a Zooniverse export with several questions: an analysis of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.cli._options import ResponseOptions
from crowdgraph.cli._output import command_line, note, say, say_json
from crowdgraph.errors import ParameterError
from crowdgraph.messages import wording

if TYPE_CHECKING:
    from crowdgraph.analysis.several import Part
    from crowdgraph.io.any_file import Reading
    from crowdgraph.io.panoptes import PanoptesExport


def count_questions(source: ResponseOptions, export: PanoptesExport, survey: Any) -> int:
    """Return how many analyses a command asks for."""
    if not export.questions:
        return 0
    options = source.export_options()
    choices = export.choices(
        tasks=source.task or None,
        workflow=source.workflow,
        options=source.option or None,
        survey=survey,
        version=options.get("version"),
    )
    return sum(question.refusal is None or "bins" in options for question, _ in choices)


def analyse_questions(
    source: ResponseOptions,
    export: PanoptesExport,
    out: Path,
    settings: Mapping[str, Any],
    *,
    survey: str,
    force: bool,
    as_json: bool,
    progress: bool,
) -> None:
    """Analyse every question, write the results with a page that leads to them, and print what was done."""
    from crowdgraph.analysis import write_several
    from crowdgraph.io._gold_files import GoldFile
    from crowdgraph.io.any_file import read_questions

    for name, values in (("class", source.classes), ("vote", settings["vote"])):
        if values:
            raise ParameterError(f"--{name} is about one question, and there are several; name one with --task.")
    readings, refused = read_questions(
        export,
        tasks=source.task or None,
        options=source.option or None,
        survey=survey,
        gold=None if source.gold is None else GoldFile(source.gold),
        duplicates=source.duplicates,
        missing=source.missing,
        **source.export_options(),
    )
    readings = tuple(source.hidden(readings))
    left_out = dict(refused)
    if not as_json:
        say_export(export)
    parts: list[Part] = []
    write_several(
        _analyses(source, readings, settings, parts, left_out, progress=progress, quiet=as_json),
        out,
        title=settings["title"],
        left_out=left_out,
        command=command_line(),
        source={"rows": export.n_rows, "malformed_lines": list(export.malformed)},
        interface="cli",
        force=force,
        raw_cells=bool(settings["raw_cells"]),
        excel=bool(settings["excel"]),
    )
    if as_json:
        say_json(_summary(parts, left_out, export, out))
        return
    for question, reason in left_out.items():
        say(f"Not analysed: {question}. {wording(reason, 'cli')}", style="yellow")
    say(f"Open {out / 'index.html'}", style="bold green")


def _analyses(
    source: ResponseOptions,
    readings: Sequence[Reading],
    settings: Mapping[str, Any],
    parts: list[Part],
    left_out: dict[str, str],
    *,
    progress: bool,
    quiet: bool,
) -> Iterator[Part]:
    """Yield the analyses one by one; what cannot be analysed is left out with the reason."""
    from crowdgraph.analysis.several import Part, folder_names
    from crowdgraph.cli.analyse import analysis_of
    from crowdgraph.errors import CrowdGraphError

    workflows = {reading.choice.get("workflow") for reading in readings}
    names = folder_names(
        [
            *([choice.get("workflow", "")] if len(workflows) > 1 else []),
            choice["task"],
            choice.get("option", ""),
        ]
        for choice in (reading.choice for reading in readings)
    )
    for number, (reading, folder) in enumerate(zip(readings, names, strict=True), start=1):
        title = str(reading.title)
        if not quiet:
            say(f"{number} of {len(readings)}: {title}")
        own_settings = {**settings, "title": title}
        try:
            result = analysis_of(reading.graph, own_settings, progress=progress)
        except CrowdGraphError as error:
            left_out[title] = error.message
            continue
        result = replace(result, notes=(*reading.notes, *result.notes))
        if not quiet:
            note(result.notes)
        part = Part(
            analysis=result,
            folder=folder,
            title=title,
            about=_about(reading.choice),
            account=reading.account,
            source=source.record(reading),
            settings=own_settings,
        )
        parts.append(part)
        yield part


def _about(choice: Mapping[str, Any]) -> str:
    """Return the task and its workflow in words."""
    words = [f"task {choice['task']}"]
    if "workflow" in choice:
        words.append(f"workflow {choice['workflow']}")
    if "version" in choice:
        words.append(f"version {choice['version']}")
    return ", ".join(words)


def say_export(export: PanoptesExport) -> None:
    """Print the questions of an export, and which rows are not readable."""
    for line in export.lines("cli"):
        say(line)


def _summary(parts: Sequence[Part], left_out: Mapping[str, str], export: PanoptesExport, out: Path) -> dict[str, Any]:
    return {
        "out": str(out),
        "rows": export.n_rows,
        "malformed_lines": list(export.malformed),
        "analyses": [
            {
                "folder": part.folder,
                "title": part.title,
                "volunteers": part.analysis.graph.n_volunteers,
                "items": part.analysis.graph.n_items,
                "responses": part.analysis.graph.n_responses,
                "rows": None if part.account is None else part.account.to_dict(),
                "skipped": dict(part.analysis.skipped),
            }
            for part in parts
        ],
        "left_out": {name: wording(reason, "cli") for name, reason in left_out.items()},
    }
