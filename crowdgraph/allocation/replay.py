"""Replay recorded responses: what a policy would have asked, answered from the record."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from crowdgraph.allocation.campaign import (
    AnswerSource,
    Campaign,
    CampaignSetup,
    GroundTruth,
    run_campaign,
)
from crowdgraph.allocation.objective import Objective
from crowdgraph.allocation.policy import Policy
from crowdgraph.allocation.retirement import Retirement
from crowdgraph.core._parameters import check_instance, check_seed
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import warn_of_most_probable_labels
from crowdgraph.errors import GoldError
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated

__all__ = ["replay_campaign"]


def replay_campaign(
    graph: CrowdGraph,
    policy: Policy,
    *,
    budget: int | None = None,
    update_every: int = 100,
    capacity: int | None = None,
    model: Model = Calibrated(),  # noqa: B008 - models cannot be changed
    known_items: Iterable[Hashable] = (),
    retirement: Retirement | None = None,
    objective: Objective = Objective(),  # noqa: B008 - it cannot be changed
    seed: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Try a policy on recorded responses: it may ask anybody about an item who really answered it.

    Otherwise as `simulate_campaign`. Accuracy is measured on items with gold, which the model does not see except for
    `known_items`. If a volunteer answered an item several times, the first answer counts.

    Parameters
    ----------
    graph
        The recorded responses, with gold.
    policy, update_every, capacity, model, known_items, retirement, objective, seed, progress
        As for `simulate_campaign`.
    budget
        How many responses may be revealed; all if left out.
    """
    check_instance("graph", graph, CrowdGraph)
    if not (graph.gold.codes >= 0).any():
        raise GoldError(
            "The graph has no gold that is certain, so the accuracy of a policy cannot be measured.",
            hint="Add some with graph.with_gold({item: class, ...}).",
        )
    check_seed(seed)
    budget = len(graph.responses) if budget is None else budget
    setup = CampaignSetup(policy, model, retirement, objective, budget, update_every, capacity)
    truth = GroundTruth(graph, graph.gold.codes, known_items)
    return run_campaign(truth, RecordedAnswers(graph), setup, np.random.default_rng(seed), progress=progress)


class RecordedAnswers(AnswerSource):
    """Answers that were recorded."""

    def __init__(self, graph: CrowdGraph) -> None:
        warn_of_most_probable_labels(graph, "a replay")
        answers = graph.answers.first
        pairs = zip(answers.volunteer.tolist(), answers.item.tolist(), strict=True)
        self.available = graph
        self._labels: dict[tuple[int, int], int] = dict(zip(pairs, answers.label.tolist(), strict=True))

    def first_questions(self, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return one recorded question about each item that has any."""
        pairs = list(self._labels)
        pair_of_item = {pairs[index][1]: pairs[index] for index in rng.permutation(len(pairs))}
        return [pair_of_item[item] for item in rng.permutation(sorted(pair_of_item)).tolist()]

    def answer(self, volunteer: int, item: int) -> int:
        """Return the label that was recorded."""
        return self._labels[volunteer, item]
