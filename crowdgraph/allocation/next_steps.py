"""Next steps: what a team can do now. Whom to ask about what, when it is done, what to retire, train and thank."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from crowdgraph.allocation._beliefs import Beliefs, current_beliefs
from crowdgraph.allocation._eligibility import anonymous_volunteers, answered_pairs, retired_items
from crowdgraph.allocation._information_gain import entropy, single_gains
from crowdgraph.allocation.objective import Objective, question_values
from crowdgraph.allocation.policies import GreedyValue
from crowdgraph.allocation.retirement import ErrorGuarantee, calibrated_retirement, min_retired
from crowdgraph.allocation.settling import SettlingForecast, activity, forecast_settled, settled_items
from crowdgraph.allocation.training import training_candidates
from crowdgraph.core._arrays import Array, FrozenMapping, ReadOnlyArrays, id_array, object_array, read_only
from crowdgraph.core._parameters import check_instance, check_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, real_array
from crowdgraph.errors import CrowdGraphError, InfeasibleError, NotAnnotatedError
from crowdgraph.evaluation.model_checks import SURE_PROBABILITY
from crowdgraph.models.base import Model
from crowdgraph.models.calibrated import Calibrated, calibrated_if_possible
from crowdgraph.models.ibcc import IBCC

__all__ = ["Learner", "NextSteps", "Retirable", "Thanks", "next_steps", "retirable"]

# How many questions are listed, and how many of them one volunteer is asked unless there are few volunteers.
N_QUESTIONS, CAPACITY = 30, 3
# Of more items or volunteers than these, the most uncertain ones and the most active ones are considered.
MAX_ITEMS = MAX_VOLUNTEERS = 2_000
# How many volunteers are named who could be trained, and who are thanked.
N_NAMES = 5
# Of volunteers with fewer answers it is hardly known how they answer.
MIN_ANSWERS = 10
# At most this share of the items that are retired is to be wrong, with this confidence.
ERROR, CONFIDENCE = 0.05, 0.95


# What is missing, in the words before its reason.
MISSING = {
    "questions": "no questions",
    "forecast": "no forecast",
    "retirable": "nothing to retire",
    "learners": "nobody to train",
}


class Retirable(NamedTuple):
    """The items that need no more answers.

    Attributes
    ----------
    items
        Their ids, of shape (M,).
    guarantee
        The error rate that gold guarantees for them, by the model for which it was measured; None if there is none.
    words
        What is guaranteed, or why nothing is.
    """

    items: Array
    guarantee: ErrorGuarantee | None
    words: str


class Learner(NamedTuple):
    """A volunteer who could be trained.

    Attributes
    ----------
    volunteer, n_answers
        Who it is, and how many answers they gave.
    share
        How much an answer of theirs tells about an item, as a share of what one of the better community tells.
    teachers
        From whom they could learn, the best first.
    """

    volunteer: Hashable
    n_answers: int
    share: float
    teachers: tuple[Hashable, ...]


class Thanks(NamedTuple):
    """A volunteer to thank.

    Attributes
    ----------
    volunteer, n_answers
        Who it is, and how many answers they gave.
    share
        Their share of all that the crowd's answers tell about the items, or of the answers where that is not known.
    """

    volunteer: Hashable
    n_answers: int
    share: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NextSteps(ReadOnlyArrays, Tabular):
    """What a team can do next; its table has one row for each question, the most valuable first.

    Attributes
    ----------
    volunteers, items
        Whom to ask, and about what, of shape (Q,).
    likeliest
        The most probable class of each of these items now, of shape (Q,).
    probability, expected
        How probable it is now, and how probable the most probable class is expected to be after the answer, of shape
        (Q,), each question taken alone.
    removed
        The share of the uncertainty (entropy) about the item that the answer is expected to remove, of shape (Q,).
    forecast
        How many more answers until most items are settled; None if that is unknown.
    retirable
        The items that can be retired now; None without class probabilities that can be calibrated.
    learners, thanks
        Volunteers who could be trained, and volunteers to thank.
    by_information
        Whether thanks are counted by what answers tell; otherwise by their number.
    reasons
        Why a part is missing, by its name: ``"questions"``, ``"forecast"``, ``"retirable"`` or ``"learners"``.
    """

    volunteers: Array
    items: Array
    likeliest: Array
    probability: Array
    expected: Array
    removed: Array
    forecast: SettlingForecast | None = None
    retirable: Retirable | None = None
    learners: tuple[Learner, ...] = ()
    thanks: tuple[Thanks, ...] = ()
    by_information: bool = True
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("volunteers", "items"):
            object.__setattr__(self, name, read_only(id_array(getattr(self, name))))
        object.__setattr__(self, "likeliest", read_only(object_array(self.likeliest)))
        for name in ("probability", "expected", "removed"):
            object.__setattr__(self, name, real_array(name, getattr(self, name), shape=(len(self.volunteers),)))
        object.__setattr__(self, "reasons", FrozenMapping(self.reasons))

    def __len__(self) -> int:
        return len(self.volunteers)

    def _columns(self) -> Columns:
        names = ("probability", "expected", "removed")
        return {
            "volunteer": self.volunteers,
            "item": self.items,
            "class": self.likeliest,
            **{name: getattr(self, name) for name in names},
        }

    def __repr__(self) -> str:
        n_volunteers, n_items = len(set(self.volunteers.tolist())), len(set(self.items.tolist()))
        asked = f"to ask {quantity(n_volunteers, 'volunteer')} about {quantity(n_items, 'item')}"
        lines = [f"NextSteps: {quantity(len(self), 'question')} {asked}" if len(self) else "NextSteps: nothing to ask"]
        if self.forecast is not None:
            lines += [*self.forecast.sentences, *filter(None, [self.forecast.advice])]
        lines += [] if self.retirable is None else [self.retirable.words]
        for what, people in (("could be trained", self.learners), ("to thank", self.thanks)):
            if people:
                lines.append(f"{what}: {', '.join(str(one.volunteer) for one in people)}")
        return "\n  ".join([*lines, *(f"{MISSING[part]}: {reason}" for part, reason in self.reasons.items())])


def next_steps(
    graph: CrowdGraph,
    *,
    fit: ModelFit | str | None = None,
    model: Model | None = None,
    seed: int | None = None,
) -> NextSteps:
    """Say what to do next: whom to ask about what, how long it takes, what to retire, whom to train and to thank.

    Questions are those that `GreedyValue` asks first: 30, to volunteers who were active of late, about items that are
    not settled; nobody gets more than three if there are enough others. `forecast_settled` says how many more answers
    it takes, `calibrated_retirement` what can be retired and `training_candidates` who could be trained. What cannot be
    said is left out, with the reason.

    All of it is by calibrated class probabilities: those of the fit, or those that it has once it is calibrated.

    Parameters
    ----------
    graph
        The graph, annotated with a fit and, for training, with communities.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.
    model
        The model to fit again while gold is hidden, for the guarantee; calibrated IBCC with the votes and the prior of
        the fit if left out.
    seed
        The same seed gives the same result.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=40, n_items=100, n_responses=600, gold=0.2, seed=0).graph
    >>> steps = cg.allocation.next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    >>> len(steps), bool((steps.expected >= steps.probability).all())
    (30, True)
    >>> steps.reasons["learners"]
    'Without communities there is nobody to learn from: none were detected.'
    """
    check_instance("graph", graph, CrowdGraph)
    check_seed(seed)
    if model is not None:
        check_instance("model", model, Model, expected="a model, such as Calibrated()")
    fit = graph.resolve_fit(fit)
    if fit.confusion is None:
        why = f"The model {fit.model} does not estimate how volunteers answer, so it is unknown whose answers help."
        parts = ("questions", "forecast", "retirable", "learners")
        return _steps(None, _thanks(graph, graph.answers.n_by_volunteer), dict.fromkeys(parts, why))
    fit = calibrated_if_possible(fit, graph)
    reasons: dict[str, str] = {}
    beliefs = current_beliefs(graph, fit)
    retirable = _retirable(graph, fit, _same_settings(fit) if model is None else model, seed)
    is_open = ~settled_items(graph, fit.item_probs) & ~graph.gold.known & ~retired_items(graph)
    if retirable.guarantee is not None:
        is_open &= ~np.isin(np.arange(len(graph.items)), graph.items.table.codes(retirable.items))
    return _steps(
        _questions(graph, fit, beliefs, is_open, reasons),
        _most_information(graph, beliefs),
        reasons,
        forecast=_forecast(graph, fit, reasons, seed),
        retirable=retirable,
        learners=_learners(graph, fit, reasons),
    )


def _same_settings(fit: ModelFit) -> Model:
    """Return calibrated IBCC with the votes and the prior of a fit; a prior that was learned is learned again."""
    setting = fit.params.get("confusion_prior")
    prior = setting if isinstance(setting, str) else fit.prior
    model = IBCC(votes=fit.params.get("votes"))
    return Calibrated(model=model if prior is None else replace(model, confusion_prior=prior))


def _steps(
    questions: tuple[Array, ...] | None,
    thanks: tuple[Thanks, ...],
    reasons: Mapping[str, str],
    *,
    forecast: SettlingForecast | None = None,
    retirable: Retirable | None = None,
    learners: tuple[Learner, ...] = (),
) -> NextSteps:
    columns = [np.zeros(0)] * 6 if questions is None else questions
    names = ("volunteers", "items", "likeliest", "probability", "expected", "removed")
    return NextSteps(
        **dict(zip(names, columns, strict=True)),
        forecast=forecast,
        retirable=retirable,
        learners=learners,
        thanks=thanks,
        by_information="questions" not in reasons or forecast is not None or retirable is not None,
        reasons=reasons,
    )


# Questions


def _questions(
    graph: CrowdGraph, fit: ModelFit, beliefs: Beliefs, is_open: Array, reasons: dict[str, str]
) -> tuple[Array, ...] | None:
    """Return the columns of the first questions of the policy; None, and the reason, if there is nothing to ask."""
    n_open, weights = int(is_open.sum()), activity(graph) * ~anonymous_volunteers(graph)
    if not n_open:
        reasons["questions"] = (
            f"Every item has gold, has a class that is at least {SURE_PROBABILITY:.0%} probable, or can be retired."
        )
        return None
    active = _highest(weights, np.flatnonzero(weights), MAX_VOLUNTEERS)
    items = _highest(entropy(fit.item_probs), np.flatnonzero(is_open), MAX_ITEMS)
    active = active[~answered_pairs(graph, active, items).all(axis=0)]
    if not len(active):
        reasons["questions"] = (
            f"Nobody can be asked: {quantity(n_open, 'item')} {'is' if n_open == 1 else 'are'} open, but everybody who "
            "is active has answered all of them."
        )
        return None
    capacity = max(CAPACITY, math.ceil(N_QUESTIONS / len(active)))
    volunteers = graph.volunteers.ids[active].tolist()
    assignment = GreedyValue(per_item=math.ceil(N_QUESTIONS / n_open)).assign(
        graph,
        budget=N_QUESTIONS,
        items=graph.items.ids[items].tolist(),
        volunteers=volunteers,
        capacity=dict.fromkeys(volunteers, capacity),
        fit=fit,
    )
    who, what = graph.volunteers.table.codes(assignment.volunteers), graph.items.table.codes(assignment.items)
    return (assignment.volunteers, assignment.items, *_expectations(graph, beliefs, who, what))


def _highest(values: Array, codes: Array, most: int) -> Array:
    """Return the codes with the highest values, at most so many, in their order."""
    return np.sort(codes[np.argsort(-values[codes], kind="stable")[:most]])


def _expectations(graph: CrowdGraph, beliefs: Beliefs, volunteers: Array, items: Array) -> tuple[Array, ...]:
    """Return the likeliest class of items, how probable it is now and after one answer, and the uncertainty removed.

    An answer counts as an independent one with the probability that it adds to the effective number of answers, and
    otherwise adds nothing, as for the policy.
    """
    everything = {"volunteers": np.arange(len(graph.volunteers)), "items": np.arange(len(graph.items))}
    values = question_values(graph, beliefs, Objective(), **everything)
    probs, rows = beliefs.item_probs[items], beliefs.confusion[volunteers]
    now = probs.max(axis=1)
    informed = (probs[:, :, None] * rows).max(axis=1).sum(axis=1)
    expected = now + values.independence(items) * np.maximum(informed - now, 0.0)
    removed = values.pair_gains(items, volunteers) / np.maximum(entropy(probs), 1e-12)
    return object_array(graph.classes[code] for code in probs.argmax(axis=1)), now, np.minimum(expected, 1.0), removed


# Forecast, retirement


def _forecast(graph: CrowdGraph, fit: ModelFit, reasons: dict[str, str], seed: int | None) -> SettlingForecast | None:
    if graph.gold.known.all():
        reasons["forecast"] = "All items have gold, so there is nothing to settle."
        return None
    if not len(graph.answers):
        reasons["forecast"] = "There are no answers yet, so nothing is known about how the crowd goes on."
        return None
    return forecast_settled(graph, fit=fit, seed=seed)


def retirable(
    graph: CrowdGraph, *, fit: ModelFit | str | None = None, model: Model | None = None, seed: int | None = None
) -> Retirable:
    """Return the items that need no more answers, and what gold guarantees about them; see `next_steps`.

    Parameters
    ----------
    graph, fit, model, seed
        As in `next_steps`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=40, n_items=100, n_responses=900, gold=0, seed=0).graph
    >>> cg.allocation.retirable(graph.annotate(cg.Calibrated().fit(graph)), seed=0).guarantee is None
    True
    """
    check_instance("graph", graph, CrowdGraph)
    check_seed(seed)
    fit = calibrated_if_possible(graph.resolve_fit(fit), graph)
    return _retirable(graph, fit, _same_settings(fit) if model is None else model, seed)


def _retirable(graph: CrowdGraph, fit: ModelFit, model: Model, seed: int | None) -> Retirable:
    """Return what can be retired by a rule that gold guarantees or, without one, the settled items."""
    settled = graph.items.ids[settled_items(graph, fit.item_probs)]
    n_gold = int(((graph.gold.codes >= 0) & (graph.answers.n_by_item > 0)).sum())
    n_needed = min_retired(ERROR, 1 - CONFIDENCE)
    if not len(settled):
        why = "All items have gold" if graph.gold.known.all() else "No item is settled yet"
        return Retirable(settled, None, f"{why}, so there is none to retire.")
    which = f"{quantity(len(settled), 'item')} {'is' if len(settled) == 1 else 'are'} settled"
    doubt = "whether it is right" if len(settled) == 1 else "how many are wrong"
    if n_gold < n_needed:
        have = (
            "no item with answers has gold"
            if not n_gold
            else f"gold is known for only {quantity(n_gold, 'answered item')}"
        )
        return Retirable(
            settled, None, f"{which}, but nobody checked {doubt}: {have}; {n_needed} are needed for a guarantee."
        )
    try:
        rule = calibrated_retirement(graph, model, error=ERROR, confidence=CONFIDENCE, updates=1, seed=seed)
    except InfeasibleError:
        return Retirable(
            settled,
            None,
            f"{which}, but gold does not show that at most {ERROR:.0%} of them are wrong: too few gold items are as "
            "sure while their gold is hidden, or too many of those are wrong.",
        )
    # The rule holds for what its own model says.
    items = rule.retired_items(graph, model.fit(graph, seed=seed).item_probs)
    return Retirable(
        items,
        rule.guarantee,
        f"{quantity(len(items), 'item')} can be retired now: those whose class is at least {rule.threshold:.1%} "
        f"probable. At most {ERROR:.0%} of such items are wrong, with {CONFIDENCE:.0%} confidence: of "
        f"{quantity(rule.guarantee.n_retired, 'gold item')} that were that sure while their gold was hidden, "  # type: ignore[union-attr]
        f"{rule.guarantee.n_wrong:,} {'was' if rule.guarantee.n_wrong == 1 else 'were'} wrong.",  # type: ignore[union-attr]
    )


# People


def _learners(graph: CrowdGraph, fit: ModelFit, reasons: dict[str, str]) -> tuple[Learner, ...]:
    """Return the volunteers with enough answers and with teachers who would gain most; if there are none, say why."""
    try:
        plan = training_candidates(graph, fit=fit)
    except NotAnnotatedError:
        reasons["learners"] = "Without communities there is nobody to learn from: none were detected."
        return ()
    except CrowdGraphError as error:
        reasons["learners"] = error.message
        return ()
    learners = [
        Learner(
            volunteer,
            int(plan.n_responses[row]),
            float(plan.information[row] / (plan.information[row] + plan.gain[row])),
            plan.teachers[row],  # type: ignore[arg-type]
        )
        for row, volunteer in enumerate(plan.volunteers.tolist())
        if plan.teachers[row] and plan.n_responses[row] >= MIN_ANSWERS
    ]
    if not learners:
        reasons["learners"] = (
            f"Nobody with {MIN_ANSWERS} answers or more is clearly behind a community whose members share items with "
            "them."
        )
    return tuple(learners[:N_NAMES])


def _most_information(graph: CrowdGraph, beliefs: Beliefs) -> tuple[Thanks, ...]:
    """Return the volunteers whose answers tell most: by their number, their skill, and how many others answered."""
    answers = graph.answers
    each = single_gains(beliefs.class_probs[None], beliefs.confusion)[0]
    weight = np.ones(len(answers))
    if beliefs.dependence is not None:
        n_answers = beliefs.n_answers[answers.item]
        weight = beliefs.dependence.effective_answers(n_answers) / n_answers
    total = np.bincount(answers.volunteer, weight, minlength=len(each)) * each
    return _thanks(graph, total if total.any() else graph.answers.n_by_volunteer)


def _thanks(graph: CrowdGraph, total: Array) -> tuple[Thanks, ...]:
    n_answers, ids = graph.answers.n_by_volunteer, graph.volunteers.ids
    known = np.where(anonymous_volunteers(graph), 0, total)
    best = [code for code in np.argsort(-known, kind="stable")[:N_NAMES].tolist() if known[code] and n_answers[code]]
    return tuple(Thanks(ids.tolist()[code], int(n_answers[code]), float(total[code] / total.sum())) for code in best)
