"""The rounds of `ClassifierIBCC`: training of classifiers, and sweeps over the answers, in turn."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW

from crowdgraph.core._arrays import Array
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.kernels.backends import Backend
from crowdgraph.kernels.fixed_point import Step, reachable_tolerance, squarem
from crowdgraph.models._classifiers import (
    Learner,
    Optimiser,
    Targets,
    build_classifier,
    check_output,
    check_precision,
    is_trainable,
    log_probs,
    type_of,
)
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.tensors import (
    AnswerMatrix,
    dirichlet_divergence,
    expected_log,
    item_posteriors,
    log_evidence,
    sufficient_counts,
)
from crowdgraph.tensors.devices import total

if TYPE_CHECKING:
    from crowdgraph.models.classifier_ibcc import ClassifierIBCC

# The share of the items that a batch has by default, and the least and the largest number.
BATCH_SHARE, MIN_BATCH, MAX_BATCH = 0.1, 16, 256
# Rounds that raise the bound by too little, one after another, before the fit ends.
PATIENCE = 2
# By how much a bound may seem to fall, relatively, because of rounding.
ROUNDING_ERROR = 1e-12


class State(NamedTuple):
    """Where sweeps settled: concentrations, (K, J, L), class probabilities and priors, (N, J), and the bound."""

    confusion: Tensor
    probs: Tensor
    class_logs: Tensor
    bound: float


class Outcome(NamedTuple):
    """How the rounds ended: the best state, the round in which it was reached, and the bounds on the way."""

    state: State
    bounds: list[float]
    best_round: int
    n_rounds: int
    converged: bool
    change: float
    epochs: int


class Sweeps:
    """Variational Bayes for classes and confusion, given a prior of each item's class."""

    def __init__(
        self, graph: CrowdGraph, confusion_prior: Array, backend: Backend, *, max_iter: int, tol: float
    ) -> None:
        answers, self._backend = graph.answers, backend
        self._max_iter, self._tol = max_iter, tol
        self.answers: AnswerMatrix = AnswerMatrix(
            *(backend.column(column.astype(np.int64)) for column in (answers.volunteer, answers.item, answers.label)),
            n_volunteers=len(graph.volunteers),
            n_items=len(graph.items),
            n_labels=len(graph.labels),
        )
        self.prior = backend.values(confusion_prior)
        self.gold = backend.values(graph.gold.probs)

    def counted(self, probs: Array) -> Tensor:
        """Return the confusion that follows from class probabilities, (K, J, L)."""
        return self.prior + sufficient_counts(self.answers, self._backend.values(probs))

    def evidence(self, confusion: Tensor) -> Tensor:
        """Return the expected log probabilities of the answers about each item given its class, (N, J)."""
        return self.answers.sum_by_item(expected_log(confusion))

    def settle(self, confusion: Tensor, class_logs: Array | Tensor) -> State:
        """Sweep until nothing changes, from some confusion and with a prior of each item's class, (N, J)."""
        logs = class_logs.to(self.prior) if hasattr(class_logs, "to") else self._backend.values(class_logs)
        probs = confusion.new_zeros(len(logs), logs.shape[1])

        def sweep(state: Tensor) -> Step:
            concentration = state.reshape(confusion.shape)
            log_weights = self.evidence(concentration) + logs
            bound = log_evidence(log_weights, self.gold) - total(dirichlet_divergence(concentration, self.prior))
            updated = item_posteriors(log_weights, self.gold)
            change = (updated - probs).abs().max()
            probs.copy_(updated)
            following = self.prior + sufficient_counts(self.answers, probs)
            return Step(following.ravel(), bound, change)

        tol = reachable_tolerance(self._tol, self.prior.dtype)
        trace = squarem(
            sweep, confusion.ravel(), max_iter=self._max_iter, tol=tol, accelerate=True, give_up=is_interrupted
        )
        return State(trace.state.reshape(confusion.shape), probs, logs, trace.objectives[-1])


class Training:
    """The classifiers of a fit: one for each fold, and at last one for all items."""

    def __init__(
        self, model: ClassifierIBCC, graph: CrowdGraph, rows: Tensor, backend: Backend, generator: torch.Generator
    ) -> None:
        self._model, self._generator = model, generator
        classifier = build_classifier(model.classifier, rows, len(graph.classes), dtype=backend.dtype)
        check_precision(classifier, backend.device)
        self._classifier = classifier.to(backend.device)
        self._rows = rows.to(backend.device, type_of(classifier))
        check_output(self._classifier, self._rows, len(graph.classes))
        self._trainable = is_trainable(self._classifier)
        # Items with neither answers nor gold teach nothing.
        informative = (graph.answers.n_by_item > 0) | graph.gold.known
        self._informative = backend.column(informative)
        self._items = backend.column(np.flatnonzero(informative))
        self._folds = self._split()

    @property
    def n_items(self) -> int:
        return len(self._rows)

    def rounds(self, sweeps: Sweeps, state: State, *, on_round: Callable[[float], object]) -> Outcome:
        """Train and sweep in turn, as long as that raises the bound by enough; the highest one counts."""
        model, bounds, best_round, n_quiet, change = self._model, [state.bound], 0, 0, 0.0
        least_gain = model.min_gain * len(self._items)
        learners = self._learners()
        for number in range(1, model.max_rounds + 1):
            targets = Targets(sweeps.evidence(state.confusion), sweeps.gold)
            trial = sweeps.settle(state.confusion, self._predictions(learners, targets, state, f"round {number}"))
            on_round(trial.bound)
            gain = trial.bound - state.bound
            if gain >= -ROUNDING_ERROR * abs(state.bound):
                change = float((trial.probs - state.probs).abs().max())
                state, best_round = trial, number
                bounds.append(trial.bound)
            n_quiet = 0 if gain > least_gain else n_quiet + 1
            if n_quiet == PATIENCE or not self._trainable:
                return self._outcome(state, bounds, best_round, number, change, converged=True)
            if is_interrupted():
                return self._outcome(state, bounds, best_round, number, change, converged=False)
        return self._outcome(state, bounds, best_round, model.max_rounds, change, converged=False)

    def final_classifier(self, outcome: Outcome) -> Any:
        """Train a classifier on the class probabilities of all items."""
        if not self._trainable:
            return self._classifier.eval()
        learner = self._learner(self._items, "the classifier of all items")
        learner.train(Targets.from_probs(outcome.state.probs), epochs=outcome.epochs, period="the last training")
        return learner.classifier.eval()

    def item_probs(self, outcome: Outcome, classifier: Any) -> Array:
        """Return the class probabilities of all items; the classifier's for those without answers and gold, (N, J).

        If no round was used, these have the proportions of the classes.
        """
        probs = outcome.state.probs.clone()
        others = ~self._informative
        if outcome.best_round and others.any():
            probs[others] = log_probs(classifier, self._rows[others]).to(probs).exp()
        values = probs.cpu().double().numpy()
        return np.asarray(values / values.sum(axis=1, keepdims=True))

    def _outcome(
        self, state: State, bounds: list[float], best: int, n_rounds: int, change: float, *, converged: bool
    ) -> Outcome:
        return Outcome(state, bounds, best, n_rounds, converged, change, self._model.epochs * max(best, 1))

    def _split(self) -> list[Tensor]:
        """Return the codes of the items of each fold."""
        order = torch.randperm(len(self._items), generator=self._generator).to(self._items.device)
        n_folds = min(self._model.folds, len(self._items))
        return [self._items[order[fold::n_folds]] for fold in range(n_folds)]

    def _learners(self) -> list[Learner]:
        """Return a learner for each fold, which is trained on the items of the others."""
        if not self._trainable:
            return []
        if len(self._folds) == 1:
            return [self._learner(self._items, "the classifier")]
        return [
            self._learner(torch.cat(self._folds[:fold] + self._folds[fold + 1 :]), f"the classifier of fold {fold + 1}")
            for fold in range(len(self._folds))
        ]

    def _learner(self, members: Tensor, name: str) -> Learner:
        return Learner(
            deepcopy(self._classifier),
            self._optimiser,
            rows=self._rows,
            members=members,
            batch_size=self._batch_size,
            generator=self._generator,
            name=name,
        )

    @property
    def _batch_size(self) -> int:
        size = self._model.batch_size
        return min(max(int(BATCH_SHARE * len(self._items)), MIN_BATCH), MAX_BATCH) if isinstance(size, str) else size

    @property
    def _optimiser(self) -> Optimiser:
        model = self._model
        if model.optimiser is not None:
            return model.optimiser
        return lambda parameters: AdamW(parameters, lr=model.learning_rate, weight_decay=model.weight_decay)

    def _predictions(self, learners: list[Learner], targets: Targets, state: State, period: str) -> Tensor:
        """Train the classifiers, and return the log probabilities of each item by one that was not trained on it."""
        class_logs = state.class_logs.clone()
        if not self._trainable:
            return log_probs(self._classifier, self._rows)
        for learner, items in zip(learners, self._folds, strict=True):
            learner.train(targets, epochs=self._model.epochs, period=period)
            class_logs[items] = log_probs(learner.classifier, self._rows[items]).to(class_logs)
        return class_logs
