"""The command ``crowdgraph evaluate``: which model is best here."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdgraph.cli._options import ResponseOptions, Votes, parse_votes, with_response_options
from crowdgraph.cli._output import is_interactive, note, say, say_json
from crowdgraph.errors import GoldError

if TYPE_CHECKING:
    from crowdgraph.evaluation.cross_validation import CrossValidation

__all__ = ["evaluate"]

# Which way scores are better, for the table's header.
ARROWS = {"auc": "↑", "accuracy": "↑", "log_loss": "↓", "brier": "↓", "calibration_error": "↓", "seconds": "↓"}
# The question that a score answers, and whether more of it is better.
QUESTIONS = {"accuracy": ("Most often right", True), "log_loss": ("best probabilities (log loss)", False)}


@with_response_options
def evaluate(
    source: ResponseOptions,
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
    from crowdgraph.analysis.defaults import named_model
    from crowdgraph.errors import collect_warnings
    from crowdgraph.evaluation import cross_validate

    graph = source.read().graph
    if not len(graph.gold):
        raise GoldError("There is no gold to compare with; give a file of items and their classes with --gold.")
    timed = graph.responses.clock.kind != "order"
    names = model or ["majority_vote", "ibcc", *(["dynibcc"] if timed else [])]
    votes = parse_votes(vote, graph.labels, graph.classes)
    models = {name: named_model(name, graph=graph, votes=votes) for name in names}
    notes: list[str] = []
    with collect_warnings(notes):
        found = cross_validate(graph, models, folds=folds, seed=seed, progress=is_interactive())
    note(notes)
    if as_json:
        say_json(_scores(found))
    else:
        say(_with_arrows(str(found)))
        say(_answer(_best(found)))


def _with_arrows(table: str) -> str:
    """The printed table, telling in its header which way scores are better."""
    lines = table.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("  model "))
    for score, arrow in ARROWS.items():
        lines[place] = re.sub(rf"\b{score}(?:  |$)", f"{score} {arrow}", lines[place])
    return "\n".join(lines)


def _best(found: CrossValidation) -> dict[str, Any]:
    """The best model by each score that answers a question, and how far it is ahead of the next."""
    return {score: _ranked(found, score, 1 if more else -1) for score, (_, more) in QUESTIONS.items()}


def _ranked(found: CrossValidation, score: str, sign: int) -> dict[str, Any]:
    mean, spread = found.mean(score), found.spread(score)
    first, *others = sorted(range(len(mean)), key=lambda place: -sign * mean[place])
    told: dict[str, Any] = {"model": found.models[first], "mean": _number(mean[first])}
    if others:
        gap = abs(mean[first] - mean[others[0]])
        told |= {
            "next": found.models[others[0]],
            "ahead": _number(gap),
            "beyond_spread": bool(gap > max(spread[first], spread[others[0]])),
        }
    return told


def _answer(best: dict[str, Any]) -> str:
    """What was asked, in a sentence."""
    parts = []
    for score, told in best.items():
        part = f"{QUESTIONS[score][0]}: {told['model']} ({told['mean']:.3f}"
        if told.get("ahead"):
            where = "beyond" if told["beyond_spread"] else "within"
            part += f", {told['ahead']:.3f} from {told['next']}, {where} the spread over folds"
        elif "next" in told:
            part += f", as is {told['next']}"
        parts.append(part + ")")
    return "; ".join(parts) + "."


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
        "best": _best(found),
    }  # fmt: skip


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
