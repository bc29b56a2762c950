"""Aggregators that fit a model of how workers err."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from crowdgraph import models
from crowdgraph.compat.crowdkit._aggregator import Aggregator
from crowdgraph.compat.crowdkit._tables import ROLES, Answers
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_integer, check_non_negative
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ConvergenceWarning, InputError, ParameterError, check_choice, warn
from crowdgraph.kernels.one_coin import CodedAnswers, class_posterior, fit_one_coin, one_coin_confusion
from crowdgraph.messages import with_article
from crowdgraph.models.label_votes import vote_codes
from crowdgraph.models.voting import vote_shares

if TYPE_CHECKING:
    import pandas as pd

# No count of answers is lower, so that no probability is zero; it is crowd-kit's constant.
LEAST_COUNT = 1e-10


class ModelAggregator(Aggregator):
    """Any model of crowdgraph with crowd-kit's interface.

    Parameters
    ----------
    model
        The model, such as ``cg.Cautious()``.

    Attributes
    ----------
    priors_
        The proportion of each label: a series named ``prior``.
    errors_
        For models with confusion matrices: the probability that a worker gives a label (index) where another one is
        true (columns), at last where it changes. As in crowd-kit, the columns of each worker sum to one.
    skills_
        For models with confusion matrices: the share of right answers of each worker that these imply.
    fit_
        The `crowdgraph.ModelFit`, with intervals, diagnostics, `crowdgraph.ModelFit.calibrated` and the rest; None
        where the table is empty or has a single label.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.compat.crowdkit import ModelAggregator
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> answers = crowd.graph.to_pandas().rename(columns={"item": "task", "volunteer": "worker"})
    >>> probas = ModelAggregator(cg.Cautious()).fit_predict_proba(answers)
    >>> probas.shape
    (500, 2)
    """

    priors_: pd.Series[float]
    errors_: pd.DataFrame
    skills_: pd.Series[float]
    fit_: ModelFit | None

    _columns: tuple[str, ...] = ROLES

    def __init__(self, model: models.Model) -> None:
        self.model = model

    def fit(self, data: pd.DataFrame, true_labels: pd.Series[Any] | None = None) -> Self:
        """Fit the model; `true_labels` are those known, a series by task. Return this aggregator with the results."""
        self._report(Answers(data, true_labels, self._columns), self._model())
        return self

    def _model(self) -> models.Model:
        if not isinstance(self.model, models.Model):
            raise ParameterError(f"model= takes a model, such as cg.IBCC(); got {with_article(type(self.model))}.")
        return self.model

    def _report(self, answers: Answers, model: models.Model, start: ModelFit | None = None) -> None:
        """Set what a model infers; where there is nothing to tell apart, what is certain."""
        graph = answers.graph
        if graph is None or len(graph.classes) == 1:
            n_items, n_volunteers = (0, 0) if graph is None else (len(graph.items), len(graph.volunteers))
            self.fit_ = None
            self._set_results(answers, np.ones((n_items, 1)), np.ones(1), np.ones((n_volunteers, 1, 1)))
            return
        self.fit_ = fit = model.fit(graph, start=start)
        confusion = None if fit.confusion is None else fit.confusion.latest()
        self._set_results(answers, fit.item_probs, fit.class_probs, None if confusion is None else confusion.mean)

    def _set_results(self, answers: Answers, probs: Array, class_probs: Array, confusion: Array | None) -> None:
        """Set results from arrays of shape (N, J), (J,) and (K, J, L)."""
        self._set_probas(answers.by_task(probs))
        self.priors_ = answers.by_class(class_probs)
        if confusion is not None:
            self.errors_ = answers.by_worker_and_label(confusion)
            self.skills_ = answers.by_worker((confusion * answers.correct).sum(axis=2) @ class_probs)


class _IterativeAggregator(ModelAggregator):
    """An aggregator around a model that iterates."""

    _least_iter = 0

    def __init__(self, n_iter: int, tol: float) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def _stopping(self) -> dict[str, Any]:
        """Return the settings of the model that say when to stop."""
        check_integer("n_iter", self.n_iter, minimum=self._least_iter)
        check_non_negative("tol", self.tol)
        return {"max_iter": self.n_iter, "tol": max(self.tol, sys.float_info.min)}


class DawidSkene(_IterativeAggregator):
    """Dawid and Skene's model by expectation maximisation, with confusion matrices of maximum likelihood.

    Parameters
    ----------
    n_iter
        How many sweeps over the answers to make at most. With 0, probabilities are those of the majority vote.
    tol
        The change of class probabilities at which the fit has converged. (In crowd-kit, that of its loss.)
    initial_error_strategy
        What the initial errors of `fit` are: ``"assign"``, the errors of all workers, or ``"addition"``, counts of
        earlier answers that are added to those of the first sweep.

    Attributes
    ----------
    priors_, errors_, skills_, fit_
        As of `ModelAggregator`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.compat.crowdkit import DawidSkene
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> answers = crowd.graph.to_pandas().rename(columns={"item": "task", "volunteer": "worker"})
    >>> aggregator = DawidSkene(n_iter=100).fit(answers)
    >>> aggregator.labels_.name, list(aggregator.errors_.index.names), aggregator.probas_.columns.name
    ('agg_label', ['worker', 'label'], 'label')
    """

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-5,
        initial_error_strategy: Literal["assign", "addition"] | None = None,
    ) -> None:
        super().__init__(n_iter, tol)
        self.initial_error_strategy = initial_error_strategy

    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series[Any] | None = None,
        *,
        initial_error: pd.DataFrame | None = None,
    ) -> Self:
        """Fit the model and return this aggregator with the results.

        Parameters
        ----------
        data
            The answers.
        true_labels
            Known labels, a series by task.
        initial_error
            What is known of the workers from before, a table like ``errors_``; see `initial_error_strategy`.
        """
        answers, stopping = Answers(data, true_labels), self._stopping()
        model = models.DawidSkene(**{**stopping, "max_iter": max(self.n_iter, 1)}, smoothing=LEAST_COUNT)
        graph = answers.graph
        if graph is None or len(graph.classes) == 1 or (self.n_iter and initial_error is None):
            self._report(answers, model)
            return self
        probs = _gold_or_shares(graph)
        errors = self._first_errors(answers, graph, probs, initial_error)
        if self.n_iter:
            probs = class_posterior(_coded(graph), errors, probs.mean(axis=0).clip(LEAST_COUNT))
            self._report(answers, model, start=_start(graph, probs))
        else:
            self.fit_ = None
            self._set_results(answers, probs, probs.mean(axis=0), errors)
        return self

    def _first_errors(
        self, answers: Answers, graph: CrowdGraph, probs: Array, initial_error: pd.DataFrame | None
    ) -> Array:
        """Return the confusion of the first sweep, (K, J, L), from class probabilities and what is known before."""
        counts = expected_counts(graph, probs)
        if initial_error is not None and self.initial_error_strategy is not None:
            check_choice("initial_error_strategy", self.initial_error_strategy, ("assign", "addition"))
            known = answers.known_errors(initial_error, graph)
            if self.initial_error_strategy == "addition":
                counts = counts + np.nan_to_num(known)
            else:
                _check_complete(known, counts)
                counts = np.nan_to_num(known)
        counts = counts.clip(LEAST_COUNT)
        confusion: Array = counts / counts.sum(axis=2, keepdims=True)
        return confusion


class OneCoinDawidSkene(_IterativeAggregator):
    """Dawid and Skene's model in which each worker has one accuracy, and gives every wrong label equally often.

    Parameters
    ----------
    n_iter, tol
        As of `DawidSkene`.

    Attributes
    ----------
    skills_
        The accuracy of each worker.
    priors_, errors_
        As of `ModelAggregator`.

    Examples
    --------
    >>> import pandas as pd
    >>> from crowdgraph.compat.crowdkit import OneCoinDawidSkene
    >>> answers = pd.DataFrame({"task": [1, 1, 1, 2, 2, 2], "worker": ["anna", "bert", "cleo"] * 2,
    ...                         "label": ["yes", "no", "yes", "no", "yes", "no"]})
    >>> OneCoinDawidSkene().fit(answers).skills_.round(2).to_dict()
    {'anna': 1.0, 'bert': 0.0, 'cleo': 1.0}
    """

    def __init__(self, n_iter: int = 100, tol: float = 1e-5) -> None:
        super().__init__(n_iter, tol)

    def fit(self, data: pd.DataFrame) -> Self:  # type: ignore[override]
        """Fit the model and return this aggregator with the results."""
        answers, stopping = Answers(data, None), self._stopping()
        graph = answers.graph
        if graph is None or len(graph.classes) == 1:
            self._report(answers, models.MajorityVote())
            return self
        fit = fit_one_coin(
            _coded(graph), _gold_or_shares(graph), n_volunteers=len(graph.volunteers), least=LEAST_COUNT, **stopping
        )
        if self.n_iter and fit.change > stopping["tol"]:
            warn(
                f"OneCoinDawidSkene did not converge in {fit.n_iter:,} iterations: class probabilities still changed "
                f"by {fit.change:.1e}.",
                ConvergenceWarning,
                hint="Raise n_iter, or tol if that is accurate enough.",
            )
        self.fit_ = None
        confusion = one_coin_confusion(fit.accuracy, len(graph.classes))
        self._set_results(answers, fit.item_probs, fit.class_probs, confusion)
        return self


class IBCC(_IterativeAggregator):
    """`crowdgraph.IBCC`, which learns a prior from the crowd, with crowd-kit's interface.

    Parameters
    ----------
    n_iter, tol
        When to stop: after so many sweeps over the answers, or when no class probability changes by more.

    Attributes
    ----------
    priors_, errors_, skills_, fit_
        As of `ModelAggregator`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> from crowdgraph.compat.crowdkit import IBCC
    >>> crowd = cg.simulate.crowd(seed=0)
    >>> answers = crowd.graph.to_pandas().rename(columns={"item": "task", "volunteer": "worker"})
    >>> aggregator = IBCC().fit(answers)
    >>> bool((aggregator.fit_.calibrated().item_probs.max(axis=1) < 1).all())
    True
    """

    _least_iter = 2

    def __init__(self, n_iter: int = 1_000, tol: float = 1e-5) -> None:
        super().__init__(n_iter, tol)

    def _model(self) -> models.Model:
        return models.IBCC(**self._stopping())


class DynIBCC(_IterativeAggregator):
    """`crowdgraph.DynIBCC`, for workers who change, with crowd-kit's interface.

    The column ``time`` of the table says when answers were given; without it, their order does. ``errors_`` and
    ``skills_`` are those after each worker's last answer; ``fit_.confusion`` has those at each answer.

    Parameters
    ----------
    n_iter, tol
        As of `IBCC`.
    noise_scale
        As of `crowdgraph.DynIBCC`; by default the scale that predicts answers best.

    Attributes
    ----------
    priors_, errors_, skills_, fit_
        As of `ModelAggregator`.
    """

    _columns = (*ROLES, "time")
    _least_iter = 2

    def __init__(self, n_iter: int = 1_000, tol: float = 1e-5, noise_scale: float | Literal["auto"] = "auto") -> None:
        super().__init__(n_iter, tol)
        self.noise_scale = noise_scale

    def _model(self) -> models.Model:
        return models.DynIBCC(**self._stopping(), noise_scale=self.noise_scale)


def _coded(graph: CrowdGraph) -> CodedAnswers:
    answers = graph.answers
    return CodedAnswers(answers.volunteer, answers.item, answers.label, len(graph.items))


def _gold_or_shares(graph: CrowdGraph) -> Array:
    """Return the class probabilities of gold where there is some, and shares of votes elsewhere."""
    shares = vote_shares(graph, vote_codes(graph, None), log_weights=None, output="shares")
    return np.where(graph.gold.known[:, None], graph.gold.probs, shares)


def _start(graph: CrowdGraph, probs: Array) -> ModelFit:
    """Return a fit with these class probabilities, from which a model can start."""
    return ModelFit(
        model="start",
        items=graph.items.ids,
        classes=graph.classes,
        item_probs=probs,
        class_probs=probs.mean(axis=0),
    )


def _check_complete(known: Array, counts: Array) -> None:
    """Raise unless initial errors, (K, J, L), say all that was given, and shares of each worker sum to one."""
    answered = counts.sum(axis=1) > 0
    n_lacking = int(np.count_nonzero((np.isnan(known).any(axis=1) & answered).any(axis=1)))
    sums = np.nansum(known, axis=2)
    hint = "Complete the table, or use initial_error_strategy='addition', which takes counts of some workers."
    if n_lacking:
        raise InputError(f"initial_error= lacks {n_lacking:,} workers, or labels that they gave.", hint=hint)
    if np.nanmax(known) <= 1 and not np.allclose(sums, 1):
        raise InputError(
            "The sum of each worker's error matrix in initial_error should be 1.0 for each true label; one is "
            f"{sums.flat[np.abs(sums - 1).argmax()]:g}.",
            hint=hint,
        )
