"""IBCC for streams of responses that are never stored: stochastic variational inference."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, id_array, same_values, value_tuple
from crowdgraph.core._parameters import Configured, check_bool, converted, integer, non_negative, number, setting
from crowdgraph.core._text import quantity
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.soft_answers import refuse_soft_answers
from crowdgraph.errors import AlignmentError, InputError, ParameterError
from crowdgraph.messages import quote
from crowdgraph.models._priors import (
    DEFAULT_PSEUDO_COUNTS,
    ClassPrior,
    ConfusionPrior,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
)
from crowdgraph.models.label_votes import Votes, check_mapping

__all__ = ["StreamingIBCC"]


@dataclass
class _State:
    """What a stream has learned; the rows of volunteers are in order of their first answer.

    Attributes
    ----------
    base
        The prior.
    row_of
        The row of each volunteer.
    prior, counts
        The prior of each volunteer, and the expected counts of their answers, both of shape (K, J, L).
    n_answers, n_visited
        How many answers each volunteer gave, and how many were visited, repeatedly or not, both of shape (K,).
    class_counts
        The expected number of items of each class, of shape (J,).
    n_items, n_items_visited
        How many items there were, and how many were visited.
    evidence
        For each item that is remembered, the log probability of its answers so far given each class, of shape (J,).
    """

    base: CrowdPrior
    row_of: dict[Hashable, int]
    prior: Array
    counts: Array
    n_answers: Array
    n_visited: Array
    class_counts: Array
    n_items: int = 0
    n_items_visited: int = 0
    n_batches: int = 0
    evidence: dict[Hashable, Array] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamingIBCC(Configured):
    r"""IBCC that learns from batches of responses and stores none of them.

    Give it one batch after another with `update`, in a loop that may never end. It holds expected counts of every
    volunteer, the class proportions, and the evidence about recent items. `IBCC` visits all responses again and again
    until nothing changes; this visits each once, so its answers are close to, but not the same as, those of `IBCC`. Use
    it where the responses do not fit anywhere; otherwise ``IBCC().update(fit, graph)`` is exact.

    For each batch the class probabilities of its items follow from what is known of the volunteers (as in a sweep of
    `IBCC`), and give expected counts :math:`\hat N^{(k)}` for the :math:`b_k` answers of each volunteer in it. These
    are a noisy estimate of all their answers, to which a natural gradient step moves:

    .. math:: \frac{N^{(k)}}{n_k} \leftarrow (1 - \rho_k) \frac{N^{(k)}}{n_k} + \rho_k \frac{\hat N^{(k)}}{b_k},
              \qquad \rho_k = (t_k + \text{delay})^{-\text{forgetting rate}},

    where :math:`n_k` counts the volunteer's answers so far and :math:`t_k` says how many batches of this size they
    make. A volunteer who is not in a batch keeps their counts, and somebody's first batch counts fully. The proportions
    of the classes move in the same way. Step sizes with rates above 0.5 and up to 1 satisfy the conditions of Robbins
    and Monro; with 1 and no delay, every answer keeps the weight it first had.

    Parameters
    ----------
    classes, labels
        What items can be, and what volunteers can say; the classes, if `labels` is left out.
    confusion_prior
        Pseudo-counts of labels given classes: a pair (right, wrong), a matrix of shape (J, L), a mapping from
        volunteers to matrices, an earlier fit, or ``fit.as_prior()`` to go on from there.
    class_prior, votes
        As for `IBCC`.
    forgetting_rate, delay
        The schedule of step sizes.
    sweeps
        How often the classes of a batch and the counts that follow from them are computed in turn.
    max_items
        How many items to remember, the latest ones. Further answers about an item that is remembered add to its
        evidence; an item that was forgotten starts anew.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> graph = crowd.graph
    >>> stream = cg.StreamingIBCC(classes=graph.classes)
    >>> for start in range(0, 5_000, 500):
    ...     fit = stream.update(graph.to_arrow().slice(start, 500))
    >>> stream
    StreamingIBCC(10 batches, 5,000 answers of 100 volunteers about 500 items)
    >>> stream.confusion.latest().mean.shape
    (100, 2, 2)
    """

    classes: Iterable[Hashable]
    labels: Iterable[Hashable] | None = None
    confusion_prior: ConfusionPrior = converted(DEFAULT_PSEUDO_COUNTS, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    forgetting_rate: float = number(
        0.8,
        valid=lambda value: 0.5 < value <= 1,
        expected="be above 0.5 and at most 1, so that steps add up and settle",
    )
    delay: float = non_negative(0.0)
    sweeps: int = integer(5)
    max_items: int = integer(1_000_000, minimum=0)

    def _check_settings(self) -> None:
        if isinstance(self.confusion_prior, str | Mapping):
            raise ParameterError(
                f"confusion_prior={self.confusion_prior!r} needs to know the crowd, and a stream has not seen it yet.",
                hint="Give pseudo-counts, such as (4, 1), or the prior of an earlier fit, fit.as_prior().",
            )
        classes = value_tuple(self.classes, what="classes")
        labels = classes if self.labels is None else value_tuple(self.labels, what="labels")
        if len(classes) < 2:
            raise ParameterError(
                f"classes={list(classes)!r}: there is nothing to tell apart.", hint="Name all classes that may be true."
            )
        no_responses: dict[str, Any] = {"volunteer": [], "item": [], "label": []}
        nobody = CrowdGraph.from_responses(
            no_responses, classes=classes, labels=labels, volunteers={"volunteer": []}, items={"item": []}
        )
        base = crowd_prior(nobody, self.confusion_prior, self.class_prior, self.votes)
        empty = np.zeros((0, len(classes), len(labels)))
        state = _State(base, {}, empty, empty, np.zeros(0), np.zeros(0), np.zeros(len(classes)))
        for name, value in {"classes": classes, "labels": labels, "_state": state}.items():
            object.__setattr__(self, name, value)

    @property
    def confusion(self) -> ConfusionTrack:
        """The confusion of all volunteers so far, in order of their first answer."""
        state = self._learned
        return self._track(id_array(state.row_of), state.prior + state.counts)

    @property
    def class_probs(self) -> Array:
        """The proportion of each class so far, of shape (J,)."""
        return np.asarray(self._class_concentration / self._class_concentration.sum())

    def update(self, batch: Any, *, gold: Any = None, again: bool = False, **columns: str) -> ModelFit:
        """Learn from a batch of responses, and return the class probabilities of its items.

        The confusion of the result is that of the batch's volunteers. If the batch cannot be read, nothing changes.

        Parameters
        ----------
        batch
            A table, in any form that `CrowdGraph.from_responses` takes, or a graph.
        gold
            Known classes of some of the batch's items, as in `CrowdGraph.from_responses`.
        again
            Whether the batch was there before, as in a further pass over stored responses. It then improves what is
            known and nothing counts twice. Such batches need all answers about an item.
        **columns
            The names of columns, as ``volunteer="user"``.
        """
        check_bool("again", again)
        graph, state = self._graph(batch, gold, columns), self._learned
        rows, newcomers = self._rows(graph)
        earlier = self._evidence(graph, again=again)
        n_new_items = 0 if again else sum(item not in state.evidence for item in graph.items.ids.tolist())
        answers = _Share(
            *(_with_rows(part, len(newcomers)) for part in (state.counts, state.n_answers, state.n_visited))
        )
        items = _Share(state.class_counts, state.n_items, state.n_items_visited)
        prior = np.concatenate([state.prior, state.base.of_all(newcomers)])
        n_answers: Array = graph.answers.n_by_volunteer.astype(float)
        moved, moved_items = answers.at(rows), items
        for _ in range(self.sweeps):
            probs, _ = self._item_probs(graph, prior[rows] + moved.counts, moved_items.counts, earlier)
            moved = self._step(answers.at(rows), expected_counts(graph, probs), n_answers, 0 if again else n_answers)
            moved_items = self._step(items, probs.sum(axis=0), len(probs), n_new_items)
        probs, evidence = self._item_probs(graph, prior[rows] + moved.counts, moved_items.counts, earlier)
        for part, values in zip(answers, moved, strict=True):
            part[rows] = values
        first = len(state.row_of)
        state.row_of.update({volunteer: first + number for number, volunteer in enumerate(newcomers)})
        state.prior, (state.counts, state.n_answers, state.n_visited) = prior, answers
        state.class_counts, state.n_items, state.n_items_visited = moved_items
        state.n_batches += 1
        self._remember(graph, evidence)
        return self._fit(graph, probs, prior[rows] + moved.counts)

    def classify(self, batch: Any, *, gold: Any = None, again: bool = False, **columns: str) -> ModelFit:
        """Return the class probabilities of a batch's items, and learn nothing from it.

        Parameters
        ----------
        batch, gold, **columns
            As for `update`.
        again
            Whether the batch has all answers about its items, so that what is remembered of them must not count twice.
        """
        check_bool("again", again)
        graph, state = self._graph(batch, gold, columns), self._learned
        rows, newcomers = self._rows(graph)
        concentration = np.concatenate([state.prior + state.counts, state.base.of_all(newcomers)])[rows]
        probs, _ = self._item_probs(graph, concentration, state.class_counts, self._evidence(graph, again=again))
        return self._fit(graph, probs, concentration)

    def as_prior(self) -> CrowdPrior:
        """Return what was learned as a prior, with which `IBCC` or another stream can go on."""
        state = self._learned
        return replace(
            state.base,
            ids=id_array(state.row_of),
            confusion=state.prior + state.counts,
            class_concentration=self._class_concentration,
        )

    def __repr__(self) -> str:
        state = self._learned
        batches = f"{state.n_batches:,} batch{'' if state.n_batches == 1 else 'es'}"
        answers = f"{quantity(int(state.n_answers.sum()), 'answer')} of {quantity(len(state.row_of), 'volunteer')}"
        return f"StreamingIBCC({batches}, {answers} about {quantity(state.n_items, 'item')})"

    @property
    def _learned(self) -> _State:
        state: _State = self.__dict__["_state"]
        return state

    @property
    def _class_concentration(self) -> Array:
        return np.asarray(self._learned.base.class_concentration + self._learned.class_counts)

    def _graph(self, batch: Any, gold: Any, columns: dict[str, Any]) -> CrowdGraph:
        """Return a batch as a graph of the stream's classes and labels."""
        base = self._learned.base
        if isinstance(batch, CrowdGraph):
            for what in ("classes", "labels"):
                if not same_values(getattr(batch, what), getattr(base, what)):
                    raise AlignmentError(
                        f"The batch has the {what} {quote(getattr(batch, what))}; the stream has "
                        f"{quote(getattr(base, what))}.",
                        hint=f"Build the graph with {what}={list(getattr(base, what))!r}, or give a table.",
                    )
            graph = batch if gold is None else batch.with_gold(gold)
        else:
            graph = CrowdGraph.from_responses(batch, gold=gold, classes=base.classes, labels=base.labels, **columns)
        refuse_soft_answers(graph, "A stream")
        if not len(graph.answers):
            raise InputError("The batch has no answers.", hint="Leave out batches without any.")
        return graph

    def _rows(self, graph: CrowdGraph) -> tuple[Array, list[Hashable]]:
        """Return the row of each volunteer of a batch, and the volunteers who are new, with the next rows."""
        row_of, ids = self._learned.row_of, graph.volunteers.ids.tolist()
        newcomers = [volunteer for volunteer in ids if volunteer not in row_of]
        next_rows = {volunteer: len(row_of) + number for number, volunteer in enumerate(newcomers)}
        return np.array([row_of.get(volunteer, next_rows.get(volunteer)) for volunteer in ids]), newcomers

    def _evidence(self, graph: CrowdGraph, *, again: bool) -> Array:
        """Return the log probability of other answers about a batch's items given each class, (N, J)."""
        nothing = np.zeros(len(graph.classes))
        evidence: dict[Hashable, Array] = {} if again else self._learned.evidence
        return np.array([evidence.get(item, nothing) for item in graph.items.ids.tolist()])

    def _remember(self, graph: CrowdGraph, evidence: Array) -> None:
        """Keep the evidence about the latest items."""
        remembered = self._learned.evidence
        for item, values in zip(graph.items.ids.tolist(), evidence, strict=True):
            remembered.pop(item, None)
            remembered[item] = values
        for item in list(islice(remembered, max(len(remembered) - self.max_items, 0))):
            del remembered[item]

    def _item_probs(
        self, graph: CrowdGraph, confusion: Array, class_counts: Array, earlier: Array
    ) -> tuple[Array, Array]:
        """Return the class probabilities of a batch's items, and the log probability of their answers, both (N, J)."""
        from scipy.special import digamma, softmax

        answers, n_items = graph.answers, len(graph.items)
        logs = digamma(confusion) - digamma(confusion.sum(axis=2, keepdims=True))  # eq:expectation_lnPi
        classes = self._learned.base.class_concentration + class_counts
        evidence = earlier.copy()
        for code in range(len(graph.classes)):
            values = logs[answers.volunteer, code, answers.label]
            evidence[:, code] += np.bincount(answers.item, values, minlength=n_items)  # eq:VB_lnqstar_ti
        probs = softmax(evidence + digamma(classes) - digamma(classes.sum()), axis=1)
        return np.where(graph.gold.known[:, None], np.nan_to_num(graph.gold.probs), probs), evidence

    def _step(self, share: _Share, counts: Array, n_batch: Any, n_new: Any) -> _Share:
        """Move a share by a natural gradient step towards that of a batch, and its total by what is new."""
        size = np.maximum(n_batch, 1)
        rate = np.where(share.n_visited > 0, (share.n_visited / size + 1 + self.delay) ** -self.forgetting_rate, 1.0)
        rate = np.where(np.asarray(n_batch) > 0, rate, 0.0)
        n_total = share.n_total + n_new

        def spread(values: Any) -> Array:
            return np.reshape(values, (*np.shape(values), *(1,) * (np.ndim(counts) - np.ndim(values))))

        old = share.counts / spread(np.maximum(share.n_total, 1))
        moved = spread(n_total) * (spread(1 - rate) * old + spread(rate) * counts / spread(size))
        return _Share(moved, n_total, share.n_visited + n_batch)

    def _track(self, ids: Array, concentration: Array) -> ConfusionTrack:
        base = self._learned.base
        return ConfusionTrack.static(ids=ids, concentration=concentration, classes=base.classes, labels=base.labels)

    def _fit(self, graph: CrowdGraph, probs: Array, concentration: Array) -> ModelFit:
        """Return the class probabilities of a batch's items with what is known of its volunteers."""
        return ModelFit(
            model="streaming_ibcc",
            items=graph.items.ids,
            classes=graph.classes,
            item_probs=probs,
            class_probs=self.class_probs,
            class_concentration=self._class_concentration,
            confusion=self._track(graph.volunteers.ids, concentration),
            prior=self._learned.base,
            params={setting.name: getattr(self, setting.name) for setting in fields(self)},
        )


class _Share(NamedTuple):
    """Expected counts, how many of something they are about, and how many were visited to estimate them."""

    counts: Array
    n_total: Any
    n_visited: Any

    def at(self, rows: Array) -> _Share:
        """Return the values of some rows."""
        return _Share(self.counts[rows], self.n_total[rows], self.n_visited[rows])


def _with_rows(values: Array, n_more: int) -> Array:
    """Return a copy of values with rows of zeros appended."""
    return np.concatenate([values, np.zeros((n_more, *values.shape[1:]))])
