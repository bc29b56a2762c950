"""The command ``crowdgraph evaluate``: which model is best here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli.saying import note, say, say_json, shows_progress
from crowdgraph.cli.source import Source, Votes, parsed_votes, reads_responses
from crowdgraph.errors import GoldError

if TYPE_CHECKING:
    from crowdgraph.core.evaluation import CrossValidation

__all__ = ["evaluate"]


@reads_responses
def evaluate(
    source: Source,
    *,
    model: Annotated[
        list[str] | None, typer.Option(help="A model to compare; give several. Else majority_vote, ibcc and dynibcc.")
    ] = None,
    vote: Votes = None,
    folds: Annotated[int, typer.Option(help="Into how many parts gold is dealt.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same folds.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores for machines.")] = False,
) -> None:
    """Which model is best here? Gold is hidden, a part at a time, and models tell what it is.

    For example:

    [bold]crowdgraph evaluate responses.csv --gold gold.csv[/bold]
    [bold]crowdgraph evaluate responses.csv --gold gold.csv --model ibcc --model dawid_skene --json[/bold]
    """
    from crowdgraph.analysis.choices import named_model
    from crowdgraph.analysis.run import noted
    from crowdgraph.evaluation import cross_validate

    graph = source.read().graph
    if not len(graph.gold):
        raise GoldError("There is no gold to compare with; give a file of items and their classes with --gold.")
    timed = graph.responses.clock.kind != "order"
    names = model or ["majority_vote", "ibcc", *(["dynibcc"] if timed else [])]
    votes = parsed_votes(vote, graph.labels, graph.classes)
    models = {name: named_model(name, graph=graph, votes=votes) for name in names}
    notes: list[str] = []
    with noted(notes):
        found = cross_validate(graph, models, folds=folds, seed=seed, progress=shows_progress())
    note(notes)
    if as_json:
        say_json(_scores(found))
    else:
        say(found)


def _scores(found: CrossValidation) -> dict[str, Any]:
    """The mean and the spread of each score over folds, by model."""
    means = {score: (found.mean(score), found.spread(score)) for score in found.scores}
    return {
        "folds": found.n_folds,
        "items": len(found.items),
        "models": {
            name: {score: {"mean": _number(mean[place]), "spread": _number(spread[place])}
                   for score, (mean, spread) in means.items()}
            for place, name in enumerate(found.models)
        },
    }  # fmt: skip


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
