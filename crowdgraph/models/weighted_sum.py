"""Weighted sum: scores, of which those of volunteers who err on gold items count less."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.tallies import check_factor, learned_log_weights, mean_score_outcome
from crowdgraph.models.votes import Scores, Votes, check_mapping, label_scores, vote_codes

__all__ = ["WeightedSum"]


@dataclass(frozen=True, kw_only=True)
class WeightedSum(Model):
    """The weighted mean of the labels' scores, for two classes; weights as in `WeightedMajority`.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    votes
        For each label the class it votes for, which says what is a mistake. Not needed where labels are classes.
    factor
        What a mistake multiplies a weight by.
    positive
        The class that high scores speak for, as in `MeanScore`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "anna", "bert"], "item": ["x", "x", "y", "y"], "label": [1, 0, 0, 1]},
    ...     gold={"x": 1})
    >>> cg.WeightedSum(factor=0.5).fit(graph).item_probs[1].round(2)
    array([0.67, 0.33])
    """

    name: ClassVar[str] = "weighted_sum"

    scores: Scores | None = None
    votes: Votes | None = None
    factor: float = 0.9
    positive: Hashable | None = None

    def __post_init__(self) -> None:
        check_mapping("scores", self.scores)
        check_mapping("votes", self.votes)
        check_factor(self.factor)

    def _fit(self, job: Job) -> Outcome:
        scores = label_scores(job.answers.graph, self.scores)
        votes = vote_codes(job.answers.graph, self.votes)
        log_weights = learned_log_weights(job.answers, votes, factor=self.factor)
        return mean_score_outcome(job.answers, scores, log_weights=log_weights, positive=self.positive)
