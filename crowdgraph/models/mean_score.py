"""Mean score: labels are numbers and their mean decides."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.tallies import mean_score_outcome
from crowdgraph.models.votes import Scores, check_mapping, label_scores

__all__ = ["MeanScore"]


@dataclass(frozen=True, kw_only=True)
class MeanScore(Model):
    """The mean of the labels' scores, for two classes: what Galaxy Zoo Supernovae ranked its candidates by.

    The mean is moved to [0, 1], between the lowest and the highest score, and taken for a probability: it ranks items
    well enough, but it is not calibrated.

    Parameters
    ----------
    scores
        For each label the number it stands for; labels that are numbers stand for themselves.
    positive
        The class that high scores speak for. If left out, the one named by the highest label or, where labels are no
        classes, the last class.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [-1, 3]}, labels=[-1, 1, 3],
    ...     gold={}, classes=["not supernova", "supernova"])
    >>> cg.MeanScore().fit(graph).item_probs
    array([[0.5, 0.5]])
    """

    name: ClassVar[str] = "mean_score"

    scores: Scores | None = None
    positive: Hashable | None = None

    def __post_init__(self) -> None:
        check_mapping("scores", self.scores)

    def _fit(self, job: Job) -> Outcome:
        scores = label_scores(job.answers.graph, self.scores)
        return mean_score_outcome(job.answers, scores, log_weights=None, positive=self.positive)
