"""Files of subjects that ``crowdgraph allocate`` writes: those to retire, and those that need more answers."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdgraph.cli._output import say
from crowdgraph.errors import ParameterError
from crowdgraph.messages import quote

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

REASON = "consensus"


@dataclass(frozen=True, kw_only=True)
class SubjectFiles:
    """Where to write which subjects; None for nowhere."""

    retire_to: Path | None
    subject_set_to: Path | None

    def write(self, graphs: Mapping[str, CrowdGraph], *, workflow: str | None, seed: int) -> None:
        """Write the files about one question, or several of one workflow, and say what is in them.

        A subject can be retired if no question about it needs more answers.
        """
        from crowdgraph.allocation import retirable
        from crowdgraph.core._text import quantity
        from crowdgraph.io.subjects import write_subjects

        states: dict[Hashable, list[_State]] = {}
        version = None
        for title, graph in graphs.items():
            choice = retirable(graph, seed=seed)
            if self.retire_to is not None:
                say(f"{title}: {choice.words}" if title else choice.words)
            for item, state in _states(graph, set(choice.items.tolist())).items():
                states.setdefault(item, []).append(state)
            version = _version(graph) or version
        done = {item: known for item, known in states.items() if _is_done(known)}
        n_before = sum(any(state.is_retired for state in known) for known in states.values())
        if self.retire_to is not None:
            facts = {item: {"retire": 1, **_facts(known)} for item, known in done.items()}
            write_subjects(facts, self.retire_to, version=version)
            say(
                f"{quantity(len(done), 'subject')} to retire, beside {n_before:,} that are retired already. Written: "
                f"{self.retire_to}",
                style="bold green",
            )
            if self.retire_to.suffix.lower() == ".txt":
                command = f"xargs panoptes workflow retire-subjects --reason {REASON} {workflow or 'WORKFLOW'}"
                say(f"With Panoptes: {command} < {self.retire_to}")
        if self.subject_set_to is not None:
            still = {
                item: known
                for item, known in states.items()
                if item not in done
                and not any(state.is_retired for state in known)
                and any(not state.is_settled for state in known)
            }
            ordered = sorted(still, key=lambda item: min(state.probability for state in still[item]))
            again = {item: {"retire": 0, **_facts(still[item])} for item in ordered}
            write_subjects(again, self.subject_set_to, version=version)
            say(
                f"{quantity(len(still), 'subject')} need more answers, the least certain first. Written: "
                f"{self.subject_set_to}",
                style="bold green",
            )
            if self.subject_set_to.suffix.lower() == ".txt":
                say(f"With Panoptes: panoptes subject-set add-subjects SUBJECT_SET -f {self.subject_set_to}")


@dataclass(frozen=True)
class _State:
    """What is known of a subject by one question."""

    label: str
    probability: float
    is_settled: bool
    has_gold: bool
    is_retired: bool


def _states(graph: CrowdGraph, retirable: set[Hashable]) -> dict[Hashable, _State]:
    from crowdgraph.allocation._eligibility import retired_items
    from crowdgraph.models.calibrated import calibrated_if_possible

    probs = calibrated_if_possible(graph.fit(), graph).item_probs
    best, retired = probs.argmax(axis=1), retired_items(graph)
    return {
        item: _State(
            str(graph.classes[best[code]]),
            float(probs[code, best[code]]),
            item in retirable or bool(graph.gold.known[code]),
            bool(graph.gold.known[code]),
            bool(retired[code]),
        )
        for code, item in enumerate(graph.items.ids.tolist())
    }


def _is_done(states: Sequence[_State]) -> bool:
    """Return whether a subject needs no more answers and is not retired yet; what only has gold is left to its use."""
    return (
        all(state.is_settled for state in states)
        and not all(state.has_gold for state in states)
        and not any(state.is_retired for state in states)
    )


def _facts(states: Sequence[_State]) -> dict[str, Any]:
    worst = min(states, key=lambda state: state.probability)
    if len(states) == 1:
        return {"class": worst.label, "probability": round(worst.probability, 4)}
    return {"probability": round(worst.probability, 4)}


def _version(graph: CrowdGraph) -> str | None:
    """Return the version of the workflow of the last response."""
    versions = graph.responses.attributes.get("workflow_version")
    return None if versions is None or not len(versions) else str(versions[-1])


def open_parts(directory: Path, workflow: str | None) -> tuple[dict[str, CrowdGraph], str | None]:
    """Return the graphs of the analyses of one workflow in a directory of several, and the workflow; else none."""
    from crowdgraph.analysis.several import analysis_folders
    from crowdgraph.io.store import SAVED_GRAPH, load

    folders = analysis_folders(directory)
    workflows = {folder: _choice(folder).get("workflow") for folder in folders}
    names = list(dict.fromkeys(workflows.values()))
    if workflow is not None and folders and workflow not in names:
        raise ParameterError(f"--workflow {workflow} is not among {quote(names)}, which these results are of.")
    if workflow is None and len(names) > 1:
        raise ParameterError(
            f"These results are of the workflows {quote(names)}, and subjects are retired from one; name it with "
            "--workflow."
        )
    chosen = workflow if workflow is not None else next(iter(names), None)
    return {folder.name: load(folder / SAVED_GRAPH) for folder in folders if workflows[folder] == chosen}, chosen


def _choice(folder: Path) -> Mapping[str, Any]:
    """Return which answers an analysis is of."""
    try:
        choice = json.loads((folder / "run.json").read_text(encoding="utf-8"))["source"]["choice"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return choice if isinstance(choice, dict) else {}
