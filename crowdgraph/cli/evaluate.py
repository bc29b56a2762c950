"""The command ``crowdgraph evaluate``: which model is best here."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli._options import Prior, ResponseOptions, Votes, parse_prior, parse_votes, with_response_options
from crowdgraph.cli._output import Quiet, note, say, say_json
from crowdgraph.errors import GoldError, collect_warnings

if TYPE_CHECKING:
    from crowdgraph.evaluation.cross_validation import CrossValidation

__all__ = ["evaluate"]

# In which direction scores are better, for the table's header.
ARROWS = {"auc": "↑", "accuracy": "↑", "log_loss": "↓", "brier": "↓", "calibration_error": "↓", "seconds": "↓"}
# What the best model by a score is best at, and whether higher scores are better.
VERDICTS = {"accuracy": ("Most often right", True), "log_loss": ("best probabilities (log loss)", False)}


@with_response_options
def evaluate(
    source: ResponseOptions,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model to compare; give several. Else majority_vote, ibcc, calibrated."),
    ] = None,
    prior: Prior = None,
    vote: Votes = None,
    folds: Annotated[int, typer.Option(help="Into how many parts gold is divided.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same folds.", min=0)] = 0,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores for machines.")] = False,
) -> None:
    """Which model is best here? Gold is hidden, one part at a time, and models predict it.

    For example:

    [bold]crowdgraph evaluate responses.csv --gold gold.csv[/bold]
    [bold]crowdgraph evaluate responses.csv --gold gold.csv --model ibcc --model dawid_skene --json[/bold]
    """
    from crowdgraph.analysis.defaults import named_model, takes_prior
    from crowdgraph.evaluation import cross_validate

    graph = source.read().graph
    if not len(graph.gold):
        raise GoldError("There is no gold to compare with; give a file of items and their classes with --gold.")
    names = model or ["majority_vote", "ibcc", "calibrated"]
    votes = parse_votes(vote, graph.labels, graph.classes)
    confusion_prior = parse_prior(prior)
    without_prior = [] if confusion_prior is None else [name for name in names if not takes_prior(name)]
    note([f"--prior is not for {', '.join(without_prior)}."] if without_prior else [])
    models = {
        name: named_model(
            name, graph=graph, votes=votes, confusion_prior=confusion_prior if takes_prior(name) else None
        )
        for name in names
    }
    notes: list[str] = []
    with collect_warnings(notes):
        result = cross_validate(graph, models, folds=folds, seed=seed, progress=not quiet)
    note(notes)
    if as_json:
        say_json(_scores(result))
    else:
        say(_with_arrows(str(result)))
        say(_answer(_best(result)))


def _with_arrows(table: str) -> str:
    """Return the printed table, with arrows in its header for the direction in which scores are better."""
    lines = table.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("  model "))
    for score, arrow in ARROWS.items():
        lines[header] = re.sub(rf"\b{score}(?:  |$)", f"{score} {arrow}", lines[header])
    return "\n".join(lines)


def _best(result: CrossValidation) -> dict[str, Any]:
    """Return the best model by each score, and how far it is ahead of the next."""
    return {score: _ranking(result, score, 1 if higher else -1) for score, (_, higher) in VERDICTS.items()}


def _ranking(result: CrossValidation, score: str, sign: int) -> dict[str, Any]:
    mean, spread = result.mean(score), result.spread(score)
    first, *others = sorted(range(len(mean)), key=lambda code: -sign * mean[code])
    ranking: dict[str, Any] = {"model": result.models[first], "mean": _finite(mean[first])}
    if others:
        gap = abs(mean[first] - mean[others[0]])
        ranking |= {
            "next": result.models[others[0]],
            "ahead": _finite(gap),
            "beyond_spread": bool(gap > max(spread[first], spread[others[0]])),
        }
    return ranking


def _answer(best: dict[str, Any]) -> str:
    """Return which models are best, in a sentence."""
    clauses = []
    for score, ranking in best.items():
        clause = f"{VERDICTS[score][0]}: {ranking['model']} ({ranking['mean']:.3f}"
        if ranking.get("ahead"):
            where = "beyond" if ranking["beyond_spread"] else "within"
            clause += f", {ranking['ahead']:.3f} from {ranking['next']}, {where} the spread over folds"
        elif "next" in ranking:
            clause += f", as is {ranking['next']}"
        clauses.append(clause + ")")
    return "; ".join(clauses) + "."


def _scores(result: CrossValidation) -> dict[str, Any]:
    """Return the mean and the spread of each score over folds, by model."""
    scores = {score: (result.mean(score), result.spread(score)) for score in result.scores}
    return {
        "folds": result.n_folds,
        "items": len(result.items),
        "models": {
            name: {
                score: {"mean": _finite(mean[code]), "spread": _finite(spread[code])}
                for score, (mean, spread) in scores.items()
            }
            for code, name in enumerate(result.models)
        },
        "best": _best(result),
    }


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
