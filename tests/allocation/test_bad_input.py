"""Bad input of everything in allocation: what is called, with what, and the error and words that answer it."""

import datetime as dt

import numpy as np
import pytest
from builders import communities_of, crowd, fitted

import crowdgraph as cg
from crowdgraph.allocation import (
    Assignment,
    Availability,
    Campaign,
    CommunitiesFirst,
    Counterfactual,
    GreedyValue,
    Objective,
    OldestFirst,
    RandomPolicy,
    Retirement,
    SharedErrors,
    Training,
    TrainingPlan,
    availability,
    calibrated_retirement,
    counterfactual,
    replay_campaign,
    shared_errors,
    simulate_campaign,
    specialisation,
    training_candidates,
    value,
)
from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS
from crowdgraph.errors import (
    AlignmentError,
    GoldError,
    IdError,
    InfeasibleError,
    NotAnnotatedError,
    ParameterError,
    ResultError,
    TimeError,
    UnknownIdError,
)

STRANGERS = communities_of([[1.0]], ids=["stranger"])
ITEMS = [f"item-{code:02d}" for code in range(60)]
VOLUNTEERS = [f"volunteer-{code:02d}" for code in range(20)]
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def crowds(graph):
    """Crowds that the tables name."""

    def two_answers(**options):
        columns = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["n", "y"], **options}
        return cg.CrowdGraph.from_responses(columns)

    bare = graph.first(100)
    no_gold = bare.with_gold(None, classes=graph.classes)
    reliable = crowd(0.99, n_volunteers=30, n_responses=1_500).graph
    return {
        "annotated": graph,
        "bare": bare,
        "votes": bare.annotate(cg.MajorityVote().fit(bare)),
        "without communities": bare.annotate(cg.IBCC().fit(bare)),
        "without gold": no_gold,
        "with soft gold": no_gold.with_gold({item: {"no": 0.9, "yes": 0.1} for item in ITEMS[:50]}),
        "with little gold": reliable,
        "with three gold items": reliable.with_gold(dict(list(reliable.gold.items())[:3])),
        "at numbers": two_answers(time=[1, 2]),
        "at dates": two_answers(time=["2026-01-01", "2026-01-05"]),
        "without times": two_answers(),
        "simulated": crowd(0.9, n_volunteers=20, n_items=60, n_responses=300, gold=1.0),
    }


def assign(graph, **options):
    return GreedyValue(per_item=None).assign(graph, **{"budget": 5, **options})


def assign_what_was_answered(graph):
    return assign(graph, available=graph)


def assign_at_random(graph):
    return RandomPolicy().assign(graph, budget=1)


def simulate(graph, **options):
    return simulate_campaign(graph, **{"policy": RandomPolicy(), "budget": 100, **options})


def replay(graph, **options):
    return replay_campaign(graph, **{"policy": RandomPolicy(), "budget": 100, **options})


def chance(graph, **options):
    return availability(graph, half_life=1).chance(**options)


def specialised_elsewhere(graph):
    elsewhere = fitted(n_volunteers=21, n_items=60, n_responses=300)
    groups = communities_of(np.arange(21) % 2, ids=elsewhere.volunteers.ids)
    return assign(graph, objective=Objective(specialisation=specialisation(elsewhere, groups)))


CAMPAIGNS = [
    ({"budget": -1}, "budget"),
    ({"update_every": 0}, "update_every"),
    ({"capacity": 0}, "capacity"),
    ({"seed": 1.5}, "seed"),
    ({"policy": "random"}, "takes a policy"),
    ({"policy": CommunitiesFirst()}, r"CommunitiesFirst\(communities=...\)"),
    ({"model": "ibcc"}, "model= takes a model, such as Calibrated"),
    ({"objective": None}, "objective= takes an objective"),
    ({"retirement": 0.9}, "retirement= takes a retirement"),
    ({"known_items": "item-000"}, "known_items='item-000' must be several items"),
]
RULE = Retirement(threshold=0.9)
# What is called; a crowd by name, or what stands in its place; other arguments; the error, and words of its message.
CALLS = [
    # Policies
    (assign, "annotated", {"budget": -1}, ParameterError, "budget"),
    (assign, "annotated", {"budget": 2.5}, ParameterError, "budget"),
    (assign, "annotated", {"capacity": -1}, ParameterError, "capacity"),
    (assign, "annotated", {"capacity": {"volunteer-00": -2}}, ParameterError, "capacity"),
    (assign, "annotated", {"capacity": {"nobody": 2}}, UnknownIdError, "nobody"),
    (assign, "annotated", {"volunteers": ["nobody"]}, UnknownIdError, "nobody"),
    (assign, "annotated", {"volunteers": "anna"}, ParameterError, "several volunteers"),
    (assign, "annotated", {"items": ["item-00", "item-00"]}, ParameterError, "twice"),
    (assign, "annotated", {"fit": "nothing"}, NotAnnotatedError, "Fit a model"),
    (assign, "annotated", {"fit": 3}, ParameterError, "got an int"),
    (assign, "annotated", {"seed": -1}, ParameterError, "seed"),
    (assign, "annotated", {"load": -1}, ParameterError, "load"),
    (assign, "annotated", {"volunteers": ["volunteer-00"], "capacity": 0}, ParameterError,
     "'volunteer-00', who may not be asked more"),
    (assign, "annotated", {"volunteers": ["volunteer-00"], "load": 1}, ParameterError,
     "capacity or load leave nothing"),
    (assign, "annotated", {"items": ["item-00"], "retired": ["item-00"]}, ParameterError,
     "1 that are retired, such as 'item-00'"),
    (assign, "annotated", {"retired": ["nothing"]}, UnknownIdError, "nothing"),
    (assign, "annotated", {"retired": "item-00"}, ParameterError, "retired='item-00' must be several items"),
    (assign, "annotated", {"available": 3}, ParameterError, "takes an Availability or a CrowdGraph; got an int"),
    (assign, "annotated", {"objective": 3}, ParameterError, "takes an Objective; got an int"),
    (assign, "annotated", {"objective": Objective(payment={"volunteer-00": 1.0})}, ParameterError,
     "lacks 'volunteer-01'"),
    (assign, "annotated", {"objective": Objective(cost=100.0)}, InfeasibleError, "worth what it costs"),
    (assign, "annotated", {"retired": ITEMS}, InfeasibleError, "all are retired"),
    (assign, "annotated", {"capacity": 0}, InfeasibleError, "capacity left"),
    (assign, "annotated", {"volunteers": []}, InfeasibleError, "no volunteers"),
    (assign_what_was_answered, "annotated", {}, InfeasibleError, "or is not available"),
    (specialised_elsewhere, "annotated", {}, AlignmentError, "specialisation"),
    (assign_at_random, "bare", {}, NotAnnotatedError, r"IBCC\(\).fit\(graph\)"),
    (assign_at_random, "votes", {}, NotAnnotatedError, "no confusion matrices"),
    (assign_at_random, [1], {}, ParameterError, "CrowdGraph"),
    # Values
    (value.information_gain, "annotated", {"item": "item-00", "coalition": ["volunteer-00"] * 2}, ParameterError,
     "twice"),
    (value.information_gain, "annotated", {"item": "item-00", "coalition": "volunteer-00"}, ParameterError,
     "several volunteers"),
    (value.cost, "annotated", {"volunteer": "nobody", "item": "item-01"}, UnknownIdError, "nobody"),
    (value.cost, "annotated", {"volunteer": "volunteer-01", "item": "item-01", "effort": {"item-00": 1.0}},
     ParameterError, "lacks 'item-01'"),
    (value.cost, [], {"volunteer": "a", "item": "x"}, ParameterError, "graph= takes a CrowdGraph; got a list"),
    (value.total_value, "annotated", {"assignments": [("volunteer-01", "item-01")] * 2}, ParameterError, "twice"),
    (value.total_value, "annotated", {"assignments": [], "objective": 3}, ParameterError,
     "takes an Objective; got an int"),
    *[(value.total_value, "annotated", {"assignments": wrong}, ParameterError, "pairs of a volunteer and an item")
      for wrong in ("anna", 3, [("anna", "x", 1)])],
    (shared_errors, "annotated", {"communities": 3}, ParameterError, "takes Communities or the name of some"),
    (specialisation, "annotated", {"communities": 3}, ParameterError, "takes Communities or the name of some"),
    (specialisation, "annotated", {"strength": 0}, ParameterError, "strength"),
    # Training
    (training_candidates, "bare", {}, NotAnnotatedError, "Fit a model with confusion matrices"),
    (training_candidates, "votes", {}, NotAnnotatedError, "has no confusion matrices"),
    (training_candidates, "without communities", {}, NotAnnotatedError, r"no communities.*pi_similarity\(graph\)"),
    (training_candidates, "annotated", {"communities": "leiden"}, NotAnnotatedError, "no annotation 'leiden'"),
    (training_candidates, "annotated", {"communities": [1]}, ParameterError,
     "takes Communities or the name of some; got a list"),
    (training_candidates, "annotated", {"communities": STRANGERS}, AlignmentError, "another graph"),
    (training_candidates, "annotated", {"n_teachers": -1}, ParameterError, "n_teachers=-1"),
    (training_candidates, "annotated", {"fit": 3}, ParameterError, "fit= takes a fit"),
    (training_candidates, 3, {}, ParameterError, "CrowdGraph; got an int"),
    # Availability
    (availability, "at numbers", {"horizon": 0}, ParameterError, "horizon=0 must be longer"),
    (availability, "at numbers", {"half_life": -1}, ParameterError, "half_life=-1 must be longer"),
    (availability, "at numbers", {"half_life": NAN}, ParameterError, "half_life=nan"),
    (availability, "at numbers", {"horizon": dt.timedelta(1)}, TimeError,
     "must be a number, since the graph's times are numbers"),
    (availability, "without times", {"horizon": "week"}, TimeError, "row numbers"),
    (availability, "at dates", {"horizon": 7}, TimeError, "horizon=7 has no unit"),
    (availability, "at dates", {"at": "soon"}, TimeError, "soon"),
    (availability, "at numbers", {"at": INF}, TimeError, "finite moment"),
    (availability, "at numbers", {"communities": "leiden"}, ParameterError, "communities= takes Communities"),
    (availability, "at numbers", {"communities": STRANGERS}, AlignmentError, "another graph"),
    (availability, 3, {}, ParameterError, "CrowdGraph; got an int"),
    (chance, "at numbers", {"volunteers": ["z"]}, UnknownIdError, "no volunteer 'z'"),
    (chance, "at numbers", {"items": "x"}, IdError, "several item ids"),
    # Retirement
    (calibrated_retirement, "annotated", {"error": 0}, ParameterError, "error=0 must be"),
    (calibrated_retirement, "annotated", {"error": "small"}, ParameterError, "error='small' must be"),
    (calibrated_retirement, "annotated", {"confidence": 1.0}, ParameterError, "confidence=1.0 must be"),
    (calibrated_retirement, "annotated", {"updates": 0}, ParameterError, "updates"),
    (calibrated_retirement, "annotated", {"updates": 1.5}, ParameterError, "updates"),
    (calibrated_retirement, "annotated", {"folds": 1}, ParameterError, "folds=1"),
    (calibrated_retirement, "annotated", {"seed": -1}, ParameterError, "seed"),
    (calibrated_retirement, "annotated", {"model": "ibcc"}, ParameterError, "model= takes a model"),
    (calibrated_retirement, 3, {}, ParameterError, "CrowdGraph with gold; got an int"),
    (calibrated_retirement, "without gold", {}, GoldError,
     r"no error rate can be guaranteed.*Retirement\(threshold=\.\.\.\)"),
    (calibrated_retirement, "with soft gold", {}, GoldError, "gold that is certain"),
    (calibrated_retirement, "with little gold", {"updates": 2, "folds": 2, "seed": 0}, ParameterError,
     r"of the 100 gold items .* 0 were wrong, so up to 2.95% .*at least 149 items"),
    (calibrated_retirement, "with three gold items", {}, ParameterError, "only 3 items have gold"),
    # Counterfactuals
    (counterfactual, "annotated", {}, ParameterError, "either without="),
    (counterfactual, "annotated", {"without": ["volunteer-01"], "retirement": RULE}, ParameterError,
     "either without="),
    (counterfactual, "annotated", {"without": []}, ParameterError, "names nobody"),
    (counterfactual, "annotated", {"without": "volunteer-01"}, IdError, "several volunteer ids"),
    (counterfactual, "annotated", {"without": 3}, IdError, "several volunteer ids"),
    (counterfactual, "annotated", {"without": ["nobody"]}, UnknownIdError, "no volunteer 'nobody'"),
    (counterfactual, "annotated", {"without": VOLUNTEERS}, ParameterError, "nobody else answered"),
    (counterfactual, "annotated", {"retirement": 0.98}, ParameterError, r"Retirement\(threshold=0.99\); got a float"),
    (counterfactual, "annotated", {"retirement": RULE, "updates": 0}, ParameterError, "updates"),
    (counterfactual, "annotated", {"retirement": RULE, "updates": 2_000}, ParameterError, "500 answers"),
    (counterfactual, "annotated", {"without": ["volunteer-01"], "model": "ibcc"}, ParameterError,
     "model= takes a model"),
    (counterfactual, "annotated", {"without": ["volunteer-01"], "seed": "x"}, ParameterError, "seed"),
    (counterfactual, "annotated", {"without": ["volunteer-01"], "hide_gold": 1}, ParameterError, "hide_gold=1"),
    (counterfactual, {}, {"without": ["volunteer-01"]}, ParameterError, "CrowdGraph; got a dict"),
    # Campaigns
    *[(simulate, "simulated", options, ParameterError, words) for options, words in CAMPAIGNS],
    *[(replay, "annotated", options, ParameterError, words) for options, words in CAMPAIGNS],
    (simulate, "annotated", {}, ParameterError, r"use replay_campaign"),
    (replay, "without gold", {}, GoldError, "no gold"),
    (replay, 3, {}, ParameterError, "CrowdGraph"),
    # Pictures
    (cg.plot.campaign, [], {}, ParameterError, "no campaigns"),
    (cg.plot.campaign, [3], {}, ParameterError, "Campaign"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "first", "options", "error", "words"), CALLS)
def test_bad_arguments_are_named(crowds, call, first, options, error, words):
    argument = crowds[first] if isinstance(first, str) else first
    with pytest.raises(error, match=words):
        call(argument, **options)


SETTINGS = [
    (GreedyValue, {"per_item": 0}, "per_item"),
    (OldestFirst, {"answers_per_item": 0}, "answers_per_item"),
    (CommunitiesFirst, {"communities": 3}, "communities= takes"),
    (Objective, {"information": -1.0}, "information=-1.0 must be a finite number of at least 0"),
    (Objective, {"cost": NAN}, "cost=nan"),
    (Objective, {"payment": NAN}, "payment=nan"),
    (Objective, {"payment": {"anna": INF}}, "payment=inf"),
    (Objective, {"effort": "much"}, "effort='much'"),
    (Objective, {"training": 0.5}, "training= takes a Training; got a float"),
    (Objective, {"shared_errors": 0.5}, "shared_errors= takes a SharedErrors"),
    (Training, {"rate": 2.0}, "share from 0 to 1"),
    (Training, {"reach": 0.5}, "needs communities="),
    (Training, {"reach": 0.5, "communities": "x"}, "communities= takes Communities; got a str"),
    *[(Retirement, {"threshold": threshold}, "threshold=") for threshold in (0, -0.5, 1.01, NAN, "0.9", True, None)],
    (Retirement, {"threshold": 0.9, "guarantee": 0.02}, "takes the ErrorGuarantee"),
]


@pytest.mark.parametrize(("kind", "options", "words"), SETTINGS)
def test_bad_settings_are_named(kind, options, words):
    with pytest.raises(ParameterError, match=words):
        kind(**options)


RESULTS = {
    Assignment: {
        "volunteers": ["a", "b"],
        "items": [1, 1],
        "gain": [0.1, 0.1],
        "learning": [0.0, 0.0],
        "cost": [0.0, 0.0],
        "chance": [1.0, 1.0],
        "rates": (1.0, 0.0),
        "policy": "p",
    },
    Availability: {
        "volunteers": ["a", "b"],
        "items": ["x"],
        "active": [1, 1],
        "finishes": [1, 1],
        "participation": [[1.0], [0.0]],
        "lift": [[2.0]],
        "horizon": 7,
    },
    Campaign: {
        "policy": "p",
        **dict.fromkeys(CAMPAIGN_COLUMNS, (1, 2)),
        "loads": [2],
        "retired_items": [],
    },
    SharedErrors: {"communities": communities_of([0, 1]), "chance": [0.5, 0.5], "n_pairs": [1, 1]},
    TrainingPlan: {
        "volunteers": ["a", "b"],
        "community": [1, -1],
        "information": [0.1, 0.2],
        "better": [0, 0],
        "gain": [0.3, 0.2],
        "n_responses": [5, 7],
        "teachers": [["c", "d"], []],
        "common": [[3, 2], []],
    },
}


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Assignment, {"items": [1]}, "pairs 2 volunteers with 1 items"),
        (Assignment, {"volunteers": ["a", "a"]}, "twice about the same item"),
        (Assignment, {"gain": [0.1]}, "gain has shape"),
        (Assignment, {"learning": [0.0, NAN]}, "learning"),
        (Availability, {"active": [1, 1.5]}, "active must be chances"),
        (Availability, {"finishes": [1]}, "finishes has shape"),
        (Campaign, {"accuracy": []}, "one number for each update"),
        (Campaign, {"spent": [2, 1]}, "fall"),
        (SharedErrors, {"chance": [0.5], "n_pairs": [1]}, "as many chances from 0 to 1"),
        (TrainingPlan, {"better": [0]}, "as many values as volunteers"),
        (TrainingPlan, {"common": [[3], []]}, "for each teacher"),
    ],
)
def test_results_check_their_columns(kind, changes, words):
    assert kind(**RESULTS[kind])
    with pytest.raises(ResultError, match=words):
        kind(**{**RESULTS[kind], **changes})


def test_counterfactuals_check_their_columns(crowds):
    fit = crowds["annotated"].fit()
    columns = {"reason": "r", "fit": fit, "other": fit, "n_responses": 1, "n_left_out": 0}
    with pytest.raises(ResultError, match=r"truth has shape \(1,\)"):
        Counterfactual(**columns, truth=[-1], retired_at=np.zeros(60, dtype=int))


@pytest.mark.parametrize(
    ("probs", "words"), [([0.5, 0.5], "shape"), ([[0.5, 0.6]], "sum to one"), ([[NAN, 1]], "finite")]
)
def test_bad_probabilities_of_items_are_named(probs, words):
    with pytest.raises(ResultError, match=words):
        RULE.retired(probs)


def test_bad_accuracies_are_named():
    with pytest.raises(ParameterError, match="accuracy"):
        Campaign(**RESULTS[Campaign]).spent_until(2)
