"""Majority vote: every answer counts the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crowdgraph.errors import check_choice
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.tallies import vote_outcome
from crowdgraph.models.votes import Votes, check_mapping, vote_codes

__all__ = ["MajorityVote"]


@dataclass(frozen=True, kw_only=True)
class MajorityVote(Model):
    """The class with most votes, every answer counting the same.

    It knows nothing of volunteers or gold, and is the first thing to compare with.

    Parameters
    ----------
    votes
        For each label the class it votes for, or None where it votes for none. Not needed where labels are classes.
    output
        ``"shares"``: class probabilities are shares of the votes; ``"winner"``: 1 for the class with most votes,
        shared between equals.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "cleo"], "item": ["x", "x", "x"], "label": ["yes", "no", "yes"]})
    >>> cg.MajorityVote().fit(graph).predict()
    {'x': 'yes'}
    """

    name: ClassVar[str] = "majority_vote"

    votes: Votes | None = None
    output: Literal["shares", "winner"] = "shares"

    def __post_init__(self) -> None:
        check_mapping("votes", self.votes)
        check_choice("output", self.output, ("shares", "winner"))

    def _fit(self, job: Job) -> Outcome:
        votes = vote_codes(job.answers.graph, self.votes)
        return vote_outcome(job.answers, votes, log_weights=None, output=self.output)
