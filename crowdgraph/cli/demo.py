"""The command ``crowdgraph demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdgraph.cli.results import written
from crowdgraph.cli.saying import say, shows_progress

__all__ = ["demo"]


def demo(
    *,
    out: Annotated[Path, typer.Option(help="Where to write the results.")] = Path("crowdgraph-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.", min=0)] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary for machines.")] = False,
) -> None:
    """Analyse an embedded crowd, a look-alike of Galaxy Zoo Supernovae, and write the report.

    For example: [bold]crowdgraph demo --out demo[/bold]
    """
    from crowdgraph.analysis import analyse
    from crowdgraph.analysis.writing import check_target
    from crowdgraph.models import DynIBCC
    from crowdgraph.simulate import galaxy_zoo_supernovae

    check_target(out, force=force)
    if not as_json:
        say("Analysing a look-alike of Galaxy Zoo Supernovae: 1,705 volunteers, 963 items, 26,558 responses ...")
    graph = galaxy_zoo_supernovae(arriving=True).graph
    no, yes = graph.classes
    # The crowd knows all classes; with a third of them there is something left to find out.
    graph = graph.with_gold({item: graph.gold[item] for item in list(graph.gold)[::3]}, classes=graph.classes)
    # The authors' prior.
    model = DynIBCC(
        confusion_prior=[[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]], class_prior=[100, 10], votes={-1: no, 1: yes, 3: yes}
    )
    found = analyse(graph, model=model, seed=seed, progress=shows_progress())
    source = {"crowd": "crowdgraph.simulate.galaxy_zoo_supernovae(arriving=True), with gold for every third item"}
    written(found, out, title="Galaxy Zoo Supernovae, a look-alike", source=source, force=force, as_json=as_json)
