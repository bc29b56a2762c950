"""The command ``crowdgraph simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdgraph.cli.results import typed_command
from crowdgraph.cli.saying import say
from crowdgraph.cli.tables import write_table
from crowdgraph.errors import ParameterError

__all__ = ["simulate"]


# What a look-alike has of its own, so that these options would change nothing.
OWN = ("volunteers", "items", "responses", "gold", "communities")


def simulate(
    ctx: typer.Context,
    out: Annotated[Path, typer.Argument(help="The directory to write into.")],
    *,
    volunteers: Annotated[int, typer.Option(help="How many volunteers.", min=1)] = 100,
    items: Annotated[int, typer.Option(help="How many items.", min=1)] = 500,
    responses: Annotated[int, typer.Option(help="How many responses.", min=1)] = 5_000,
    gold: Annotated[float, typer.Option(help="The share of items whose class is told.", min=0, max=1)] = 0.2,
    drift: Annotated[str, typer.Option(help="How volunteers change: none, ramp, step, visit or learning.")] = "none",
    communities: Annotated[int, typer.Option(help="Into how many task communities they fall.", min=1)] = 1,
    galaxy_zoo: Annotated[
        bool, typer.Option("--galaxy-zoo", help="The look-alike of Galaxy Zoo Supernovae; sizes and gold are its own.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same crowd.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier crowd.")] = False,
) -> None:
    """Write a simulated crowd: responses.csv, gold.csv, and truth.csv with the class of every item.

    For example:

    [bold]crowdgraph simulate crowd --volunteers 200 --responses 20000 --drift step[/bold]
    [bold]crowdgraph simulate supernovae --galaxy-zoo[/bold]
    """
    from typing import Any, cast

    from crowdgraph.analysis.writing import versions, whole_folder, write_record
    from crowdgraph.core.columns import id_array
    from crowdgraph.io.columns import Coded, native_frame
    from crowdgraph.simulate import crowd, galaxy_zoo_supernovae

    kind = cast("Any", drift)
    if galaxy_zoo:
        _check_own(ctx)
        graph, truth = galaxy_zoo_supernovae(drift=kind, seed=seed)
    else:
        graph, truth = crowd(
            n_volunteers=volunteers,
            n_items=items,
            n_responses=responses,
            gold=gold,
            drift=kind,
            n_communities=communities,
            seed=seed,
        )
    every: dict[str, Any] = {"item": graph.items.ids, "label": Coded(truth.classes, id_array(graph.classes))}
    with whole_folder(out, force=force) as folder:
        write_table(graph.to_arrow(), folder / "responses.csv")
        write_table(graph.to_arrow(table="gold"), folder / "gold.csv")
        write_table(native_frame(every, kind="arrow"), folder / "truth.csv")
        write_record(folder, {"command": typed_command(), "seed": seed, "versions": versions()})
    say(graph)
    say(f"Written: {out}", style="bold green")


def _check_own(ctx: typer.Context) -> None:
    """Raise if options were given that a look-alike cannot follow."""
    given = [name for name in OWN if str(ctx.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise ParameterError(
            f"--{given[0]} does not go with --galaxy-zoo, whose sizes, gold and communities are its own; leave one out."
        )
