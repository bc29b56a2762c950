"""Aggregators that count votes, or weigh them."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from crowdgraph.compat.crowdkit._aggregator import Aggregator
from crowdgraph.compat.crowdkit._tables import Answers, check_by_id, checked_answers, known_labels
from crowdgraph.core._parameters import is_number
from crowdgraph.errors import InputError, ParameterError, check_choice
from crowdgraph.io._columns import import_optional
from crowdgraph.messages import quote
from crowdgraph.models.label_votes import vote_codes
from crowdgraph.models.voting import vote_shares

if TYPE_CHECKING:
    import pandas as pd


class MajorityVote(Aggregator):
    """The label with the most votes or, with skills, with the largest sum of skills.

    Parameters
    ----------
    default_skill
        The skill of workers without one, with ``on_missing_skill="value"``.
    on_missing_skill
        What to do with answers of workers without a skill: raise an ``"error"``, ``"ignore"`` the answers, unless
        nothing is left about a task, or take the default ``"value"``.

    Attributes
    ----------
    skills_
        The share of each worker's answers that equal the aggregated label.

    Examples
    --------
    >>> import pandas as pd
    >>> from crowdgraph.compat.crowdkit import MajorityVote
    >>> answers = pd.DataFrame({"task": [1, 1, 1], "worker": ["anna", "bert", "cleo"], "label": ["yes", "no", "yes"]})
    >>> MajorityVote().fit_predict(answers).to_dict()
    {1: 'yes'}
    >>> MajorityVote().fit_predict(answers, skills=pd.Series({"anna": 0.2, "bert": 0.9, "cleo": 0.4})).to_dict()
    {1: 'no'}
    """

    skills_: pd.Series[float]

    def __init__(
        self,
        default_skill: float | None = None,
        on_missing_skill: Literal["error", "ignore", "value"] = "error",
    ) -> None:
        self.default_skill = default_skill
        self.on_missing_skill = on_missing_skill

    def fit(self, data: pd.DataFrame, skills: pd.Series[float] | None = None) -> Self:
        """Count votes, or add up `skills`, a series by worker; return this aggregator with the results."""
        data = checked_answers(data)
        weights = None if skills is None else self._weights(data, skills)
        if weights is not None:
            data, weights = data[weights.notna()], weights[weights.notna()]
        self._set_probas(_in_order(_shares(data, weights)))
        self.skills_ = _agreement(data, self.labels_)
        return self

    def _weights(self, data: pd.DataFrame, skills: pd.Series[float]) -> pd.Series[float]:
        """Return the weight of each answer; null for those to ignore."""
        check_choice("on_missing_skill", self.on_missing_skill, ("error", "ignore", "value"))
        check_by_id("skills", skills, of="worker")
        bad = skills[~(np.isfinite(skills.to_numpy(dtype=float)) & (skills >= 0))]
        if len(bad):
            raise ParameterError(
                f"skills= must be finite numbers of at least 0; got {bad.iloc[0]!r} for {bad.index[0]!r}."
            )
        weights = data["worker"].map(skills).astype(float)
        lacking = data["worker"][weights.isna()].unique().tolist()
        if not lacking:
            return weights
        if self.on_missing_skill == "value":
            if not is_number(self.default_skill):
                raise ParameterError(
                    f"default_skill={self.default_skill!r} must be a number with on_missing_skill='value'."
                )
            return weights.fillna(self.default_skill)
        lost = set(data["task"]) - set(data["task"][weights.notna()])
        if self.on_missing_skill == "error" or lost:
            reason = f"; without their answers, nothing is known about {quote(lost)}" if lost else ""
            raise InputError(
                f"skills= lacks {quote(lacking)}{reason}.",
                hint="Add them, leave their answers out with on_missing_skill='ignore', or give all of them one skill "
                "with on_missing_skill='value' and default_skill=...",
            )
        return weights


class Wawa(Aggregator):
    """Worker agreement with aggregate: votes weighted by how often each worker agrees with the majority.

    Attributes
    ----------
    skills_
        The share of each worker's answers that equal the majority's label.

    Examples
    --------
    >>> import pandas as pd
    >>> from crowdgraph.compat.crowdkit import Wawa
    >>> answers = pd.DataFrame({"task": [1, 1, 1, 2, 2], "worker": ["anna", "bert", "cleo", "anna", "bert"],
    ...                         "label": ["yes", "no", "yes", "no", "yes"]})
    >>> Wawa().fit(answers).skills_.to_dict()
    {'anna': 1.0, 'bert': 0.0, 'cleo': 1.0}
    """

    skills_: pd.Series[float]

    def fit(self, data: pd.DataFrame) -> Self:
        """Learn the workers' skills; return this aggregator, which predicts any table of their answers."""
        self.skills_ = MajorityVote().fit(data).skills_
        return self

    def predict(self, data: pd.DataFrame) -> pd.Series[Any]:
        """Return the label of each task with the largest sum of skills."""
        self._set_probas(MajorityVote().fit(data, self.skills_).probas_)
        return self.labels_

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return each label's share of the sum of skills of each task."""
        self.predict(data)
        return self.probas_

    def fit_predict(self, data: pd.DataFrame, *args: Any, **kwargs: Any) -> pd.Series[Any]:
        """Return the label of each task with the largest sum of skills; arguments are those of `fit`."""
        return self.fit(data, *args, **kwargs).predict(data)

    def fit_predict_proba(self, data: pd.DataFrame, *args: Any, **kwargs: Any) -> pd.DataFrame:
        """Return each label's share of the sum of skills of each task; arguments are those of `fit`."""
        return self.fit(data, *args, **kwargs).predict_proba(data)


class GoldMajorityVote(Wawa):
    """Votes weighted by the share of tasks with a known label that each worker got right.

    Attributes
    ----------
    skills_
        The share of each worker's answers to tasks with a known label that are right.

    Examples
    --------
    >>> import pandas as pd
    >>> from crowdgraph.compat.crowdkit import GoldMajorityVote
    >>> answers = pd.DataFrame({"task": [1, 1, 2, 2], "worker": ["anna", "bert", "anna", "bert"],
    ...                         "label": ["yes", "no", "no", "yes"]})
    >>> GoldMajorityVote().fit_predict(answers, pd.Series({1: "no"})).to_dict()
    {1: 'no', 2: 'yes'}
    """

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Learn skills from the known labels, a series by task; return this aggregator, which predicts other tasks."""
        if true_labels is None:
            raise ParameterError("GoldMajorityVote learns skills from known labels; give true_labels=, by task.")
        self.skills_ = _agreement(checked_answers(data), known_labels(true_labels, several=True))
        return self


def _shares(data: pd.DataFrame, weights: pd.Series[float] | None) -> pd.DataFrame:
    """Return each label's share of the weights of each task; equal shares where all weights are zero."""
    answers = Answers(data, None)
    graph = answers.graph
    if graph is None:
        return answers.by_task(np.ones((0, 1)))
    log_weights = None
    if weights is not None:
        by_worker = weights.groupby(data["worker"], sort=False).first().loc[graph.volunteers.ids.tolist()]
        log_weights = np.log(np.maximum(by_worker.to_numpy(dtype=float), sys.float_info.min))
    return answers.by_task(vote_shares(graph, vote_codes(graph, None), log_weights=log_weights, output="shares"))


def _in_order(probas: pd.DataFrame) -> pd.DataFrame:
    """Return a table sorted by task, as crowd-kit sorts votes; tasks that cannot be compared keep their order."""
    with suppress(TypeError):
        return probas.sort_index()
    return probas


def _agreement(data: pd.DataFrame, labels: pd.Series[Any]) -> pd.Series[float]:
    """Return the share of each worker's answers, where a task has a known label or several, that equal one."""
    answers = data[data["task"].isin(labels.index)]
    known = set(zip(labels.index.tolist(), labels.tolist(), strict=True))
    is_right = [pair in known for pair in zip(answers["task"].tolist(), answers["label"].tolist(), strict=True)]
    right = import_optional("pandas").Series(is_right, index=answers.index, dtype=float)
    return right.groupby(answers["worker"]).mean().rename("skill")
