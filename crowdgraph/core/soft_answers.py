"""Soft answers: answers that are distributions over the labels, such as the probabilities of a classifier.

A soft answer is stored as attributes of the response, one for each label: ``probability[yes]`` and so on, all of them
NaN where the answer is certain. So whatever carries attributes carries soft answers: views, files, tables, networks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.answers import Answers
from crowdgraph.core.tables import ResponseTable
from crowdgraph.errors import ColumnError, CrowdGraphWarning, ParameterError, warn
from crowdgraph.messages import Hint, quote

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = [
    "AnswerParts",
    "answer_parts",
    "chances_by_share",
    "check_label_probs",
    "count_soft_answers",
    "is_label_column",
    "label_column",
    "label_probs_of",
    "refuse_soft_answers",
    "refuse_streamed_soft_answers",
    "warn_of_most_probable_labels",
]

PREFIX, SUFFIX = "probability[", "]"
# By how much the probabilities of a soft answer may miss a sum of one: rounded ones do.
SUM_TOLERANCE = 0.005
# The least chance of which a logarithm is taken.
TINY = 1e-300


def label_column(label: Hashable) -> str:
    """Return the name of the attribute that holds the probabilities of a label.

    Examples
    --------
    >>> label_column("yes")
    'probability[yes]'
    """
    return f"{PREFIX}{label}{SUFFIX}"


def is_label_column(name: object) -> bool:
    """Return whether a column is called like one that holds the probabilities of a label."""
    return isinstance(name, str) and name.startswith(PREFIX) and name.endswith(SUFFIX)


def label_probs_of(responses: ResponseTable, labels: Sequence[Hashable]) -> Array | None:
    """Return the probability of each label in each response, (R, L); None where no response says any.

    Certain answers have a one; responses without a label have zeros.
    """
    names = [name for name in responses.attributes if is_label_column(name)]
    if not names:
        return None
    expected = [label_column(label) for label in labels]
    if unknown := [name for name in names if name not in expected]:
        raise ColumnError(
            f"The responses have the columns {quote(unknown)}, which name no label; the labels are {quote(labels)}.",
            hint="Rename these columns, or name the labels with labels=[...].",
        )
    columns = [responses.attributes[name] if name in names else np.full(len(responses), np.nan) for name in expected]
    try:
        probs = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    except (TypeError, ValueError) as error:
        raise ColumnError(f"The columns {quote(names)} must hold probabilities; {error}.") from error
    is_soft = ~np.isnan(probs).all(axis=1) & (responses.label >= 0)
    probs[is_soft] = check_label_probs(np.nan_to_num(probs[is_soft], nan=0.0), np.flatnonzero(is_soft))
    probs[~is_soft] = responses.label[~is_soft, None] == np.arange(len(labels))
    return lock(probs)


def check_label_probs(probs: Array, rows: Array, *, counted: str = "") -> Array:
    """Return probabilities of labels, (n, L), scaled to sums of one; raise unless they nearly have these.

    `rows` are their numbers in a table, for messages, which say how they are `counted`.
    """

    def examples(is_wrong: Array) -> str:
        wrong = np.flatnonzero(is_wrong)
        listed = "; ".join(f"row {rows[row]} has {probs[row].tolist()}" for row in wrong[:3].tolist())
        return f"of {len(wrong):,} soft answers{counted}: {listed}"

    # A comparison with NaN is false.
    is_wrong = np.logical_not(((probs >= 0) & (probs <= 1 + SUM_TOLERANCE)).all(axis=1))
    if is_wrong.any():
        raise ColumnError(
            f"Probabilities of labels must lie between 0 and 1, and so do not those {examples(is_wrong)}.",
            hint=Hint(
                "Correct them; give logarithms as log_probability=..., and leave all probabilities of an answer empty "
                "where it is certain.",
                cli="Correct them; give logarithms with --log-probability, and leave all probabilities of an answer "
                "empty where it is certain.",
            ),
        )
    sums = probs.sum(axis=1)
    is_wrong = np.abs(sums - 1) > SUM_TOLERANCE
    if is_wrong.any():
        raise ColumnError(
            f"Probabilities of labels must sum to one, and so do not those {examples(is_wrong)}.",
            hint="Name the columns of all labels, or divide each row by its sum if other labels were left out.",
        )
    return np.asarray(probs / sums[:, None])


def count_soft_answers(graph: CrowdGraph) -> int:
    """Return how many answers are soft: how many say more than one label."""
    probs = graph.label_probs
    return 0 if probs is None else int(np.count_nonzero((probs > 0).sum(axis=1) > 1))


class AnswerParts(NamedTuple):
    """Answers by label: a certain answer is one part, a soft one a part for each of its labels.

    Attributes
    ----------
    answer
        The position of each part's answer among the answers, rising, of shape (n,).
    volunteer, item, label
        Codes, of shape (n,).
    share
        The probability of the label, of shape (n,); None if all answers are certain.
    """

    answer: Array
    volunteer: Array
    item: Array
    label: Array
    share: Array | None


def answer_parts(graph: CrowdGraph, answers: Answers | None = None) -> AnswerParts:
    """Return answers, all of a graph's if left out, by label."""
    answers = graph.answers if answers is None else answers
    probs = graph.label_probs
    if probs is None:
        return AnswerParts(np.arange(len(answers)), answers.volunteer, answers.item, answers.label, None)
    own = answers.of_responses(probs)
    answer, label = np.nonzero(own)
    return AnswerParts(
        answer, answers.volunteer[answer], answers.item[answer], label.astype(answers.label.dtype), own[answer, label]
    )


def chances_by_share(chance_of: Callable[[Array], Array], label: Array, probs: Array | None) -> Array:
    r"""Return the chance of answers, (n, J): of a soft one :math:`\prod_l p_{jl}^{q_l}`, as its labels count by shares.

    Parameters
    ----------
    chance_of
        A function of labels, (n,), that returns their chances given each class, (n, J).
    label
        The labels, the most probable ones of soft answers, of shape (n,).
    probs
        The probabilities of the labels, of shape (n, L); None if all answers are certain.
    """
    chances = chance_of(label)
    if probs is None:
        return chances
    is_soft = (probs > 0).sum(axis=1) > 1
    logs = np.zeros(chances.shape)
    for code in range(probs.shape[1]):
        logs += probs[:, code, None] * np.log(np.maximum(chance_of(np.full_like(label, code)), TINY))
    return np.where(is_soft[:, None], np.exp(logs), chances)


def refuse_soft_answers(graph: CrowdGraph, what: str) -> None:
    """Raise if a graph has soft answers, which `what` cannot take."""
    n_soft = count_soft_answers(graph)
    if n_soft:
        raise ParameterError(
            f"{what} takes no soft answers, and {n_soft:,} of {len(graph.answers):,} answers are soft.",
            hint=Hint(
                "Use IBCC, DynIBCC, DawidSkene or MajorityVote; or take the most probable labels: graph.certain().",
                cli="Use --model ibcc, dynibcc, dawid_skene or majority_vote, or leave --probability out.",
            ),
        )


def refuse_streamed_soft_answers(attributes: Iterable[str]) -> None:
    """Raise if responses with these attributes are soft: a store keeps attributes only in order of time."""
    if any(map(is_label_column, attributes)):
        raise ParameterError(
            "These responses have soft answers, which one process reads with all responses in memory.",
            hint=Hint(
                "Leave memory= and further processes out, or save graph.certain() as columns.",
                cli="Leave --memory out, or convert a table without the columns probability[...].",
            ),
        )


def warn_of_most_probable_labels(graph: CrowdGraph, what: str) -> None:
    """Warn if a graph has soft answers, of which `what` takes the most probable label."""
    n_soft = count_soft_answers(graph)
    if n_soft:
        warn(
            f"{n_soft:,} of {len(graph.answers):,} answers are soft; {what} takes the most probable label of each.",
            CrowdGraphWarning,
        )
