"""Calibrated: another model's class probabilities, with an allowance for dependence between answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_instance, is_number, setting
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.fit import FitSource, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.soft_answers import answer_parts, chances_by_share
from crowdgraph.errors import CrowdGraphError, NotAnnotatedError, ParameterError
from crowdgraph.messages import Message
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC

if TYPE_CHECKING:
    from crowdgraph.models._crowd_prior import LearnedPrior

__all__ = ["Calibrated"]

# With fewer gold items the correlation is that of a typical crowd; more of them hardly change it.
MIN_GOLD_ITEMS, MAX_GOLD_ITEMS = 10, 5_000
# What a model of difficulties leaves of the correlation on typical crowds.
TYPICAL_REMAINING_CORRELATION = 0.2
# Stands for probabilities and counts that are zero, where logarithms are taken.
TINY = 1e-9
# The least concentration of a label without one of the answers that gave it.
MIN_COUNT = 1e-3
# Answers that are looked at together: few enough to stay in the cache.
ANSWERS_PER_CHUNK = 2**14


def _check_model(name: str, value: object) -> None:
    if not isinstance(value, Model) or value.name in ("calibrated", "classifier_ibcc"):
        raise ParameterError(f"{name}= takes a model with confusion matrices, such as IBCC(); got {value!r}.")


def _check_correlation(name: str, value: object) -> None:
    if value is not None and not (is_number(value) and 0 <= float(value) <= 1):  # type: ignore[arg-type]
        raise ParameterError(
            f"{name}={value!r} must be a number from 0 (answers are independent) to 1 (any number of them counts as "
            "one).",
            hint="Leave it out to learn it from gold, or to assume that of a typical crowd.",
        )


@dataclass(frozen=True, kw_only=True)
class Calibrated(Model):
    r"""Another model, with class probabilities that mean what they say.

    Models with confusion matrices take answers about an item for independent once its class is known. On real crowds
    they are not, so the models are too sure. This one fits the other model and discounts the evidence about each item
    by its effective number of answers: ``Calibrated(model=model).fit(graph)`` is ``model.fit(graph).calibrated()``,
    where `ModelFit.calibrated` gives the equations. Use it wherever a model is asked for: in cross-validation, in
    campaigns, for retirement.

    Parameters
    ----------
    model
        The model that estimates the confusion and the class proportions.
    rho
        The correlation of two answers about an item given its class, from 0 to 1. If left out, it is learned from gold
        if ten answered items or more have some; otherwise it is 0.5. Around `Cautious` it is always 0.2.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=60, difficulty=0.4, gold=0.2, seed=0)
    >>> fit = cg.Calibrated().fit(crowd.graph)
    >>> fit.dependence.source, fit.dependence.n_gold >= 10
    ('gold', True)
    """

    name: ClassVar[str] = "calibrated"

    model: Model = setting(IBCC(), _check_model)
    rho: float | None = setting(None, _check_correlation)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, what the model that estimates the confusion needs."""
        self.model.warm_up(graph)

    @property
    def _soft_answers(self) -> bool:
        return self.model._soft_answers

    @property
    def _sequential(self) -> bool:
        return self.model._sequential

    def settings(self) -> dict[str, Any]:
        """Return the settings by name, as a fit can carry them: the model as text, and its votes."""
        votes = getattr(self.model, "votes", None)
        settings = {**super().settings(), "model": repr(self.model)}
        return settings if votes is None else {**settings, "votes": votes}

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        return calibrated(self.model._refit(graph, start=start, seed=seed), graph, rho=self.rho)

    def _makes(self, fit: ModelFit) -> bool:
        return fit.model == f"calibrated {self.model.name}"

    def _update(self, fit: ModelFit, graph: CrowdGraph, *, progress: bool) -> ModelFit:
        return calibrated(self.model._update(fit, graph, progress=progress), graph, rho=self.rho)

    def _fit_better(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> tuple[ModelFit, int]:
        better, n_sweeps = self.model._fit_better(graph, start=start, seed=seed)
        return calibrated(better, graph, rho=self.rho), n_sweeps

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        return calibrated(self.model._fit(graph, seed=seed, start=start, progress=progress), graph, rho=self.rho)


def check_uncalibrated(fit: ModelFit) -> None:
    """Raise if a fit is calibrated already."""
    if fit.dependence is not None:
        raise ParameterError(
            f"This fit is calibrated already ({fit.dependence.words}).", hint="Calibrate the fit that it was made from."
        )


def calibrated_if_possible(fit: ModelFit, graph: CrowdGraph) -> ModelFit:
    """Return the fit with calibrated class probabilities; the fit itself where it has them, or cannot have them."""
    if fit.dependence is not None or fit.confusion is None:
        return fit
    try:
        return fit.calibrated(graph)
    except CrowdGraphError:
        return fit


def calibrated(fit: ModelFit, graph: CrowdGraph, *, rho: float | None = None) -> ModelFit:
    """Return the fit with class probabilities that allow for dependence; see `ModelFit.calibrated`."""
    from crowdgraph.kernels.discount import TYPICAL_CORRELATION, discounted_probs, evenness_guard, learn_correlation

    check_uncalibrated(fit)
    if fit.confusion is None:
        raise NotAnnotatedError(
            f"The model {fit.model!r} has no confusion matrices, so there is no evidence to discount.",
            hint=Message("Fit IBCC, and calibrate that.", cli="Use --model ibcc."),
        )
    if "classifier" in fit.diagnostics:
        raise ParameterError(
            f"The model {fit.model!r} has a classifier beside the answers, whose evidence cannot be discounted with "
            "theirs.",
            hint="Calibrate a fit of IBCC.",
        )
    _check_correlation("rho", rho)
    check_instance("graph", graph, CrowdGraph)
    fit.check_matches(graph)
    n_answers = graph.answers.n_by_item
    class_probs = evenness_guard(fit.class_probs, possible=_possible_classes(graph))
    evidence = evidence_without_own_answers(fit, fit.confusion, graph)
    # A single answer depends on no other.
    scored = np.flatnonzero((graph.gold.codes >= 0) & (n_answers > 1))
    if rho is None:
        rho, source = TYPICAL_CORRELATION if evidence is not None else TYPICAL_REMAINING_CORRELATION, "assumed"
        if evidence is not None and len(scored) >= MIN_GOLD_ITEMS:
            scored = scored[:: 1 + len(scored) // MAX_GOLD_ITEMS]
            rho = learn_correlation(evidence[scored], n_answers[scored], class_probs, graph.gold.codes[scored])
            source = "gold"
    else:
        rho, source = float(rho), "given"
    if evidence is None:
        # The model's own probabilities are no product over answers; their odds are discounted instead.
        evidence = np.log(np.maximum(fit.item_probs, TINY)) - np.log(np.maximum(fit.class_probs, TINY))
    probs = discounted_probs(evidence, n_answers, class_probs, rho)
    probs = np.where(graph.gold.known[:, None], np.nan_to_num(graph.gold.probs), probs)
    dependence = Dependence(rho, source, len(scored) if source == "gold" else 0)
    return replace(_with_probs(fit, fit.confusion, graph, probs, dependence), source=_source(fit, dependence))


def _possible_classes(graph: CrowdGraph) -> Array:
    """Return which classes, (J,), may be more frequent than they seem: those in gold, if there is enough of it."""
    counts = graph.gold.probs[graph.gold.known].sum(axis=0)
    return np.asarray(counts > 0) if counts.sum() >= MIN_GOLD_ITEMS else np.ones(len(graph.classes), dtype=bool)


def _source(fit: ModelFit, dependence: Dependence) -> FitSource | None:
    """Return where the calibrated fit comes from, if that is known of the fit."""
    if fit.source is None or not isinstance(fit.source.model, Model):
        return None
    rho = dependence.rho if dependence.source == "given" else None
    return fit.source._replace(model=Calibrated(model=fit.source.model, rho=rho))


def evidence_without_own_answers(fit: ModelFit, track: ConfusionTrack, graph: CrowdGraph) -> Array | None:
    """Return the log probabilities of the answers about each item given its class; None if they are no product.

    They are those of confusion that has not counted the item's own answers. Otherwise an item whose class is not known
    would be judged by volunteers who were judged by that very item, and would seem more certain than it is.
    """
    from crowdgraph.kernels.discount import log_evidence

    if "difficulties" in fit.diagnostics:
        return None
    answers = graph.answers
    chances = np.empty((len(answers), len(fit.classes)))
    rows_of = _static_rows(fit, track, graph) if track.inference == "static" else _dynamic_rows(fit, track, graph)
    for first in range(0, len(answers), ANSWERS_PER_CHUNK):
        chunk = slice(first, first + ANSWERS_PER_CHUNK)
        chances[chunk] = rows_of(chunk)
    return log_evidence(np.log(np.maximum(chances, TINY)), answers.item, len(graph.items))


def _static_rows(fit: ModelFit, track: ConfusionTrack, graph: CrowdGraph) -> Callable[[slice], Array]:
    """Return a function of a stretch of answers: the probability of each given each class, of shape (n, J)."""
    from crowdgraph.models._crowd_prior import posterior_mean, weights_of

    answers, weights, label_probs = graph.answers, weights_of(fit), _label_probs(graph)
    counts = expected_counts(graph, fit.item_probs)
    label_use, votes = counts.sum(axis=(0, 1)), fit.params.get("votes")
    concentration = track.latest().concentration
    labels_of = _labels_about_item(graph)

    def rows_of(chunk: slice) -> Array:
        volunteer, label = answers.volunteer[chunk], answers.label[chunk]
        shares = None if label_probs is None else label_probs[chunk]
        own = fit.item_probs[answers.item[chunk]][:, :, None] * labels_of(chunk)[:, None, :]
        if weights is None:
            return _without_own(concentration[volunteer], label, own, shares)
        others = np.maximum(counts[volunteer] - own, 0.0)
        mean = posterior_mean(graph, others, weights, votes=votes, label_use=label_use)
        return chances_by_share(partial(_chosen, mean), label, shares)

    return rows_of


def _labels_about_item(graph: CrowdGraph) -> Callable[[slice], Array]:
    """Return a function of a stretch of answers: how often the volunteer gave the item each label, of shape (n, L).

    That is the answer itself, and those in which the volunteer repeated or changed it.
    """
    answers, each, label_probs = graph.answers, np.eye(len(graph.labels)), _label_probs(graph)
    if not answers.n_repeats:
        return lambda chunk: each[answers.label[chunk]] if label_probs is None else label_probs[chunk]
    pair = np.unique(answers.volunteer.astype(np.int64) * len(graph.items) + answers.item, return_inverse=True)[1]
    parts = answer_parts(graph)
    cells = np.bincount(
        pair[parts.answer] * len(each) + parts.label, parts.share, minlength=(pair.max() + 1) * len(each)
    )
    tallies = cells.reshape(-1, len(each))
    return lambda chunk: np.asarray(tallies[pair[chunk]])


def _dynamic_rows(fit: ModelFit, track: ConfusionTrack, graph: CrowdGraph) -> Callable[[slice], Array]:
    """Do the same as `_static_rows` for confusion over time."""
    answers, label_probs = graph.answers, _label_probs(graph)
    concentration = answers.of_responses(track.at_responses(graph))
    each = np.eye(len(graph.labels))

    def rows_of(chunk: slice) -> Array:
        label = answers.label[chunk]
        shares = None if label_probs is None else label_probs[chunk]
        said = each[label] if shares is None else shares
        own = fit.item_probs[answers.item[chunk]][:, :, None] * said[:, None, :]
        return _without_own(concentration[chunk], label, own, shares)

    return rows_of


def _label_probs(graph: CrowdGraph) -> Array | None:
    """Return the probability of each label in each answer, of shape (A, L); None where all answers are certain."""
    return None if graph.label_probs is None else graph.answers.of_responses(graph.label_probs)


def _without_own(concentration: Array, label: Array, own: Array, shares: Array | None) -> Array:
    """Return the probability of answers, (n, J), from Dirichlets less what answers about the item added, (n, J, L)."""
    others = concentration - own
    totals = others.sum(axis=2)

    def chance(label: Array) -> Array:
        chosen = np.maximum(_chosen(others, label), MIN_COUNT)
        return np.asarray(chosen / np.maximum(totals, chosen))

    return chances_by_share(chance, label, shares)


def _chosen(table: Array, label: Array) -> Array:
    """Return the entries of tables by answer, class and label, (n, J, L), for the labels of the answers, (n, J)."""
    return np.asarray(np.take_along_axis(table, label[:, None, None].astype(np.int64), axis=2)[:, :, 0])


def _with_probs(
    fit: ModelFit, track: ConfusionTrack, graph: CrowdGraph, probs: Array, dependence: Dependence
) -> ModelFit:
    """Return the fit with other class probabilities, and with the confusion and class proportions that follow."""
    has_answers = graph.answers.n_by_item > 0
    class_counts = probs[has_answers].sum(axis=0)
    class_prior = np.ones(len(fit.classes)) if fit.prior is None else fit.prior.class_concentration
    concentration = class_prior + class_counts
    class_probs = concentration / concentration.sum()
    return replace(
        fit,
        model=f"calibrated {fit.model}",
        item_probs=probs,
        class_probs=class_probs,
        class_concentration=concentration,
        confusion=_confusion(fit, track, graph, probs, class_probs, dependence),
        diagnostics={**fit.diagnostics, "dependence": dependence.to_facts()},
    )


def _confusion(
    fit: ModelFit,
    track: ConfusionTrack,
    graph: CrowdGraph,
    probs: Array,
    class_probs: Array,
    dependence: Dependence,
) -> ConfusionTrack:
    """Return the volunteers' confusion, given class probabilities of the items.

    Where the correlation is assumed, answers may as well be independent, and volunteers as the fit says.
    """
    from crowdgraph.models._crowd_prior import correct_mask, honest_concentration

    if track.inference != "static":
        from crowdgraph.models.dynibcc import follow_classes

        return follow_classes(fit, track, graph, probs, dependence)
    learned = _learned_prior(fit, graph, probs)
    if learned is not None:
        prior = learned.own
    elif fit.prior is not None:
        prior = fit.prior.of_all(graph.volunteers.ids.tolist())
    else:
        # Models without a prior, such as that of Dawid and Skene, smooth a little.
        prior = np.maximum(track.latest().concentration - expected_counts(graph, fit.item_probs), MIN_COUNT)
    is_correct = correct_mask(fit, track)
    plain = (track.latest().mean * is_correct).sum(axis=2) @ class_probs
    concentration = honest_concentration(
        graph,
        prior,
        probs,
        is_correct=is_correct,
        class_probs=class_probs,
        learned=learned,
        other_accuracy=plain if dependence.source == "assumed" else None,
    )
    return ConfusionTrack.static(ids=track.ids, concentration=concentration, classes=track.classes, labels=track.labels)


def _learned_prior(fit: ModelFit, graph: CrowdGraph, probs: Array) -> LearnedPrior | None:
    """Return the prior that a fit learned from the crowd, with the accuracies that follow from other classes."""
    from crowdgraph.models._crowd_prior import learn_prior, weights_of

    weights = weights_of(fit)
    if weights is None or fit.prior is None:
        return None
    concentration = fit.prior.class_concentration
    return learn_prior(graph, probs, votes=fit.params.get("votes"), class_concentration=concentration, weights=weights)
