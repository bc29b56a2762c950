"""Weighted majority: volunteers who err on gold items count less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdgraph.errors import check_choice
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.tallies import check_factor, learned_log_weights, vote_outcome
from crowdgraph.models.votes import Votes, check_mapping, vote_codes

__all__ = ["WeightedMajority"]


@dataclass(frozen=True, kw_only=True)
class WeightedMajority(Model):
    """Majority vote in which a volunteer's weight falls by a factor at each mistake on a gold item.

    After Littlestone and Warmuth, *The Weighted Majority Algorithm* (1994). Weights start at one. The more a volunteer
    answers, the more mistakes they make, so that busy volunteers lose weight even when they are good: one of the
    reasons why IBCC does better. The weights are in ``fit.diagnostics["weights"]``.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None where it votes for none. Not needed where labels are classes.
    factor
        What a mistake multiplies a weight by.
    output
        ``"shares"``: class probabilities are shares of the weight; ``"winner"``: 1 for the heaviest class,
        shared between equals.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "anna", "bert"], "item": ["x", "x", "y", "y"],
    ...      "label": ["yes", "no", "no", "yes"]}, gold={"x": "yes"})
    >>> cg.WeightedMajority().fit(graph).predict()["y"]
    'no'
    """

    name: ClassVar[str] = "weighted_majority"

    votes: Votes | None = None
    factor: float = 0.9
    output: Literal["shares", "winner"] = "shares"

    def __post_init__(self) -> None:
        check_mapping("votes", self.votes)
        check_factor(self.factor)
        check_choice("output", self.output, ("shares", "winner"))

    def _fit(self, job: Job) -> Outcome:
        votes = vote_codes(job.answers.graph, self.votes)
        log_weights = learned_log_weights(job.answers, votes, factor=self.factor)
        return vote_outcome(job.answers, votes, log_weights=log_weights, output=self.output)
