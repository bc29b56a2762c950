"""Bad input to models gets a sentence that says what was wrong and what to do."""

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from builders import communities_of, crowd

import crowdgraph as cg
from crowdgraph.errors import (
    AlignmentError,
    CollapsedFitWarning,
    ConvergenceWarning,
    ForgettingWarning,
    GoldError,
    InputError,
    NotAnnotatedError,
    NoTimesWarning,
    ParameterError,
    RepeatedAnswersWarning,
    TimeError,
    UnknownIdError,
)

NAN, INFINITY = float("nan"), float("inf")


# Graphs, each simulated once


@cache
def small():
    return crowd(n_volunteers=10, n_items=40, n_responses=150, gold=0.3).graph


@cache
def without_gold():
    return small().with_gold(None)


@cache
def empty():
    return small().first(0)


@cache
def supernovae():
    """Three labels and two classes of other names."""
    return cg.simulate.galaxy_zoo_supernovae_auc_table(seed=0).graph


@cache
def three_labels():
    return cg.CrowdGraph.from_responses({"volunteer": [0, 1], "item": [0, 0], "label": [0, 2]}, labels=[0, 1, 2])


@cache
def three_classes():
    return crowd(classes=(0, 1, 2)).graph


@cache
def repeating():
    return crowd(duplicates=0.2).graph


def answers_of_anna(answers, *, times=None, **options):
    """One volunteer, who answers one item after another."""
    columns = {"volunteer": ["anna"] * len(answers), "item": list(range(len(answers))), "label": answers}
    return cg.CrowdGraph.from_responses(columns if times is None else {**columns, "time": times}, **options)


@cache
def one_class():
    return answers_of_anna(["yes"])


@cache
def one_label():
    return answers_of_anna(["x", "x"], times=[0, 1], classes=["x", "y"])


@cache
def untimed():
    return answers_of_anna([0, 1], labels=[0, 1])


@cache
def numbered():
    return answers_of_anna([0, 1], times=[0, 1], labels=[0, 1])


# Settings


@pytest.mark.parametrize(
    ("kind", "setting", "words"),
    [
        (
            cg.IBCC,
            {"confusion_prior": [[1, -1], [1, 1]]},
            r"numbers above zero \(pseudo-counts\), between 1e-08 and 1e\+08; got -1",
        ),
        (cg.IBCC, {"confusion_prior": (0, 1)}, "got 0"),
        (cg.IBCC, {"confusion_prior": [[1, NAN], [1, 1]]}, "got nan"),
        (cg.IBCC, {"confusion_prior": (INFINITY, 1)}, "got inf"),
        (cg.IBCC, {"confusion_prior": "silver"}, "the words it can be are 'crowd' and 'gold'"),
        (cg.IBCC, {"confusion_prior": [["a", "b"], ["c", "d"]]}, "must be made of numbers"),
        (cg.IBCC, {"confusion_prior": 3.0}, r"shape \(\); expected a pair \(right, wrong\), or a matrix"),
        (cg.IBCC, {"confusion_prior": {"anna": [1, 2, 3]}}, "The confusion prior of 'anna' has shape"),
        (cg.IBCC, {"confusion_prior": ("4", "1")}, "must be made of numbers"),
        (cg.IBCC, {"confusion_prior": [[1, 2], [3]]}, "must be made of numbers"),
        (cg.IBCC, {"confusion_prior": (1e-12, 1)}, "between 1e-08"),
        (cg.IBCC, {"class_prior": -1}, "class_prior must be made of numbers above zero"),
        (cg.IBCC, {"class_prior": {"no": "many"}}, "class_prior of 'no' must be made of numbers"),
        (cg.IBCC, {"learn_prior": "no"}, "learn_prior='no' must be True or False"),
        (cg.IBCC, {"max_iter": 1}, "must be a whole number from 2 up"),
        (cg.IBCC, {"max_iter": 10.0}, "must be a whole number"),
        (cg.IBCC, {"tol": 0}, "tol=0 must be a number above zero"),
        (cg.IBCC, {"tol": NAN}, "must be a number above zero"),
        (cg.IBCC, {"restarts": -1}, "restarts=-1"),
        (cg.IBCC, {"dtype": "float16"}, "not a choice; use one of 'float64', 'float32'"),
        (cg.IBCC, {"votes": ["yes"]}, "must be a mapping from labels"),
        (cg.DynIBCC, {"noise_scale": -0.1}, r"noise_scale=-0.1 must be a number from 0 to 1e\+06"),
        (cg.DynIBCC, {"noise_scale": NAN}, "noise_scale=nan must be a number from 0"),
        (cg.DynIBCC, {"noise_scale": "automatic"}, "the only word it can be is 'auto'"),
        (cg.DynIBCC, {"noise_scale": None}, "noise_scale=None must be a number"),
        (cg.DynIBCC, {"noise_scale": True}, "noise_scale=True must be a number"),
        (cg.DynIBCC, {"drift_per_time": -1}, "drift_per_time=-1 must be a number from 0"),
        (cg.DynIBCC, {"drift_per_time": INFINITY}, "drift_per_time=inf must be a number from 0"),
        (cg.DynIBCC, {"drift_per_time": "1 day"}, "drift_per_time='1 day' must be a number"),
        (cg.DynIBCC, {"time_unit": "days"}, "time_unit='days' is not a choice; use one of 'second', 'minute'"),
        (cg.DynIBCC, {"inference": "static"}, "inference='static' is not a choice; use one of 'smoothed', 'filtered'"),
        (cg.DynIBCC, {"repeat_span": 0}, "repeat_span=0 must be a number above zero"),
        (cg.DynIBCC, {"published": "yes"}, "published='yes' must be True or False"),
        (
            cg.DynIBCC,
            {"published_bound": True},
            "published_bound=True must be the least state noise, a number",
        ),
        (cg.DynIBCC, {"published_bound": 0}, "published_bound=0 must be the least state noise"),
        (cg.DynIBCC, {"published_bound": NAN}, "published_bound=nan must be the least state noise"),
        (cg.DynIBCC, {"published_bound": INFINITY}, r"to 1e\+06 such as 0.001"),
        (cg.DynIBCC, {"published_bound": "0.001"}, "published_bound='0.001' must be the least state noise"),
        (cg.DynIBCC, {"max_iter": 0}, "max_iter=0 must be a whole number from 1"),
        (cg.DynIBCC, {"tol": -1}, "tol=-1 must be a number above zero"),
        (cg.DynIBCC, {"confusion_prior": (0, 1)}, "numbers above zero"),
        (cg.DynIBCC, {"dtype": "float16"}, "use one of 'float64', 'float32'"),
        (cg.DynIBCC, {"update_classes": 1}, "update_classes=1 must be True or False"),
        (cg.DynIBCC, {"confusion_prior": "silver"}, "the words it can be are 'crowd' and 'gold'"),
        (cg.GibbsIBCC, {"confusion_prior": "silver"}, "the words it can be are 'crowd' and 'gold'"),
        (cg.Calibrated, {"rho": -0.01}, r"rho=-0.01 must be a number from 0 \(answers are independent\) to 1"),
        (cg.Calibrated, {"rho": NAN}, "rho=nan must be a number from 0"),
        (cg.Calibrated, {"rho": "0.5"}, "rho='0.5' must be a number from 0 .* Leave it out"),
        (cg.Calibrated, {"rho": True}, "rho=True must be a number from 0"),
        (cg.Calibrated, {"model": cg.Calibrated()}, "model= takes a model with confusion matrices, such as IBCC"),
        (cg.Calibrated, {"model": "ibcc"}, "model= takes a model with confusion matrices"),
        (cg.WeightedMajority, {"factor": 1.5}, r"factor=1\.5 must lie between 0 and 1"),
        (cg.Cautious, {"backend": "numba"}, "backend='numba' is not a choice; use one of 'auto', 'compiled', 'torch'"),
        (cg.Cautious, {"dtype": "float16"}, "dtype='float16' is not a choice; use one of 'float64', 'float32'"),
        (cg.Cautious, {"model": 3}, "model= takes a model with confusion matrices"),
        (cg.Cautious, {"model": cg.Cautious()}, "model= takes a model with confusion matrices"),
        (cg.Cautious, {"communities": [1]}, "communities= takes the Communities .* got a list"),
    ],
)
def test_settings_are_checked_on_construction(kind, setting, words):
    with pytest.raises(ParameterError, match=words):
        kind(**setting)


PRIOR_OF_OTHER_CLASSES = cg.CrowdPrior(
    ids=[],
    confusion=np.ones((0, 2, 2)),
    shared=np.ones((2, 2)),
    class_concentration=[1, 1],
    classes=("a", "b"),
    labels=("no", "yes"),
)
# Both ways out of labels that are no classes, and the only way of models without a prior.
VOTES_OR_PRIOR = r"votes=\{.*Or give confusion_prior= as a matrix of shape \(2, 3\)"
VOTES = r"which class a label votes for: votes=\{"
NO_GOLD = "the graph has no such gold"


@pytest.mark.parametrize(
    ("model", "graph", "error", "words"),
    [
        (
            cg.IBCC(confusion_prior=np.ones((3, 2))),
            small,
            ParameterError,
            r"shape \(3, 2\); expected \(2, 2\), classes by labels",
        ),
        (
            cg.IBCC(confusion_prior={"stranger": np.ones((2, 2))}),
            small,
            ParameterError,
            "1 volunteers who are not in the graph: 'stranger'",
        ),
        (
            cg.IBCC(class_prior=[1, 2, 3]),
            small,
            ParameterError,
            r"class_prior has shape \(3,\); expected \(2,\), one for each class",
        ),
        (cg.IBCC(class_prior={"no": 1}), small, ParameterError, "misses 'yes'"),
        (cg.IBCC(class_prior={"no": 1, "yes": 1, "perhaps": 2}), small, ParameterError, "names 'perhaps'"),
        (cg.IBCC(votes={"no": "maybe"}), small, ParameterError, "votes= names 'maybe', which is not a class"),
        (cg.IBCC(votes={"no": "no"}), small, ParameterError, "votes= misses 'yes'; it must name every label"),
        (
            cg.IBCC(votes={"no": "no", "yes": "yess"}),
            small,
            ParameterError,
            "which is not a class.*Did you mean 'yes'",
        ),
        (cg.IBCC(votes={"no": "no", "yes": "yes", "maybe": None}), small, ParameterError, "which is not a label"),
        (
            cg.IBCC(device="warp drive"),
            small,
            ParameterError,
            "device='warp drive' is not available here .*use one of cpu",
        ),
        pytest.param(
            cg.IBCC(device="cuda"),
            small,
            ParameterError,
            "is not available here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA"),
        ),
        (
            cg.IBCC(confusion_prior=PRIOR_OF_OTHER_CLASSES),
            small,
            AlignmentError,
            "made for the classes 'a', 'b'; the graph has 'no', 'yes'",
        ),
        (
            cg.IBCC(confusion_prior={"volunteer-0": np.ones((2, 2))}, learn_prior=True),
            small,
            ParameterError,
            "leave one of the two out",
        ),
        (
            cg.IBCC(confusion_prior="gold"),
            without_gold,
            GoldError,
            "confusion_prior='gold' is learned from answers to items with gold",
        ),
        (cg.WeightedMajority(), without_gold, GoldError, NO_GOLD),
        (cg.WeightedSum(scores={"no": 0, "yes": 1}), without_gold, GoldError, NO_GOLD),
        (
            cg.MeanScore(),
            small,
            ParameterError,
            "'no', 'yes' are not numbers. Say what each label stands for",
        ),
        (cg.MeanScore(scores={"no": 0}), small, ParameterError, "scores= misses 'yes'"),
        (cg.MeanScore(scores={"no": 0, "yes": NAN}), small, ParameterError, "must give a finite number"),
        (cg.MeanScore(scores={"no": 1, "yes": 1}), small, ParameterError, "All labels have the score 1"),
        (cg.MeanScore(scores={"no": 0, "yes": 1}, positive="yess"), small, ParameterError, "Did you mean 'yes'"),
        (cg.MeanScore(scores={"no": -1e308, "yes": 1e308}), small, ParameterError, "too far apart to be averaged"),
        (cg.MeanScore(positive=1), three_classes, ParameterError, "names one of two classes; the graph has 3"),
        (cg.IBCC(), supernovae, ParameterError, VOTES_OR_PRIOR),
        (cg.GibbsIBCC(), supernovae, ParameterError, VOTES_OR_PRIOR),
        (cg.Calibrated(), supernovae, ParameterError, VOTES_OR_PRIOR),
        (
            cg.Calibrated(model=cg.MajorityVote()),
            small,
            NotAnnotatedError,
            r"'majority_vote' has no confusion matrices.* Fit IBCC",
        ),
        (cg.IBCC(confusion_prior=(5, 1)), supernovae, ParameterError, VOTES_OR_PRIOR),
        (cg.MajorityVote(), supernovae, ParameterError, VOTES),
        (cg.WeightedMajority(), supernovae, ParameterError, VOTES),
        (cg.DawidSkene(), supernovae, ParameterError, VOTES),
        (cg.WeightedSum(), supernovae, ParameterError, VOTES),
        (
            cg.DynIBCC(drift_per_time=0.1),
            small,
            ParameterError,
            r"drift_per_time=0.1 has no unit. .*time_unit='second', 'minute'",
        ),
        (
            cg.DynIBCC(drift_per_time=0.1, time_unit="day"),
            numbered,
            ParameterError,
            "time_unit='day' is for datetimes, but the graph's times are plain numbers",
        ),
        pytest.param(
            cg.DynIBCC(drift_per_time=0.1),
            untimed,
            TimeError,
            "drift_per_time=0.1 needs times, and the graph was built without",
            marks=pytest.mark.filterwarnings("ignore::crowdgraph.errors.NoTimesWarning"),
        ),
        (cg.DynIBCC(), one_label, InputError, "single label 'x'.*labels="),
        (
            cg.Cautious(model=cg.MajorityVote(votes={0: 0, 1: 1, 2: None})),
            three_labels,
            ParameterError,
            "has no confusion matrices",
        ),
        (
            cg.Cautious(model=cg.IBCC(votes={0: 0, 1: 1, 2: None}), communities=communities_of([0], ids=["x"])),
            three_labels,
            AlignmentError,
            "this one lacks 1 of its volunteers",
        ),
    ],
)
def test_settings_that_do_not_suit_the_graph(model, graph, error, words):
    with pytest.raises(error, match=words):
        model.fit(graph())


@pytest.mark.parametrize(
    "model",
    [cg.MajorityVote(), cg.WeightedMajority(), cg.DawidSkene(), cg.IBCC(), cg.GibbsIBCC()],
    ids=lambda model: model.name,
)
def test_graphs_and_starts_that_cannot_be_used(model):
    other = crowd(n_volunteers=10, n_items=41, n_responses=150, seed=1).graph
    of_another_graph = cg.MajorityVote().fit(other)
    for graph, start, error, words in (
        (one_class(), None, InputError, "the single class 'yes', so there is nothing to tell apart"),
        (empty(), None, InputError, "no answers"),
        ([1, 2], None, ParameterError, "fitted to a CrowdGraph; got a list"),
        (small(), {}, ParameterError, r"takes an earlier fit \(a ModelFit\); got a dict"),
        (small(), of_another_graph, AlignmentError, "made for another graph"),
    ):
        with pytest.raises(error, match=words):
            model.fit(graph, start=start)


@pytest.mark.parametrize("seed", ["a", -1, 1.5, True])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(ParameterError, match="must be a whole number from 0 up, or None"):
        cg.GibbsIBCC().fit(small(), seed=seed)


# Questions to fits


@pytest.fixture(scope="module")
def fits():
    return {"votes": cg.MajorityVote().fit(small()), "ibcc": cg.IBCC().fit(small())}


@pytest.mark.parametrize(
    ("fit", "method", "question", "error", "words"),
    [
        ("votes", "as_prior", {}, NotAnnotatedError, "no posterior that could become a prior"),
        (
            "votes",
            "predict_response",
            {"volunteer": "volunteer-0", "item": "item-00"},
            NotAnnotatedError,
            "no confusion matrices; fit IBCC",
        ),
        ("ibcc", "as_prior", {"strength": 2}, ParameterError, "strength=2 must be a number from 0 to 1"),
        ("ibcc", "as_prior", {"strength": "much"}, ParameterError, "strength='much' must be a number"),
        ("ibcc", "influence", {}, ParameterError, "Say whose influence"),
        ("ibcc", "influence", {"volunteer": "nobody"}, UnknownIdError, "There is no volunteer 'nobody'"),
    ],
)
def test_questions_that_a_fit_cannot_answer(fits, fit, method, question, error, words):
    with pytest.raises(error, match=words):
        getattr(fits[fit], method)(**question)


def test_a_response_that_was_never_given_has_no_influence(fits):
    volunteer = small().volunteers.ids[0]
    answered = {response.item for response in small().volunteers[volunteer].responses}
    unanswered = next(item for item in small().items if item not in answered)
    with pytest.raises(ParameterError, match="There is no response with"):
        fits["ibcc"].influence(volunteer=volunteer, item=unanswered)


def test_too_many_predictions_are_refused():
    volunteers, items = {"volunteer": list(range(4_000))}, {"item": list(range(3_000))}
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": [0, 1], "item": [0, 1], "label": ["no", "yes"]}, volunteers=volunteers, items=items
    )
    with pytest.raises(ParameterError, match="make 12,000,000 pairs; choose at most 10,000,000"):
        cg.IBCC().fit(graph).predict_responses(graph)


# Warnings


@pytest.mark.parametrize(
    ("model", "graph", "warning", "words"),
    [
        (
            cg.IBCC(),
            repeating,
            RepeatedAnswersWarning,
            "responses repeat a volunteer and item.*duplicates='first'",
        ),
        (
            cg.IBCC(confusion_prior=(1, 1)),
            without_gold,
            CollapsedFitWarning,
            "the same class probabilities, whatever was said",
        ),
        (
            cg.IBCC(confusion_prior=(4, 1), max_iter=3, tol=1e-12),
            small,
            ConvergenceWarning,
            "did not converge in 3 iterations.*Raise max_iter, or tol",
        ),
        (cg.GibbsIBCC(max_draws=50, burn_in=1, stop_change=1e-9), small, ConvergenceWarning, "R-hat is"),
        (
            cg.DynIBCC(max_iter=2),
            without_gold,
            ConvergenceWarning,
            "DynIBCC did not converge in 2 iterations.*Raise max_iter",
        ),
        (
            cg.DynIBCC(max_iter=2, noise_scale="auto"),
            without_gold,
            ConvergenceWarning,
            "still changed by [0-9]",
        ),
        (
            cg.DynIBCC(drift_per_time=0.01, time_unit="second"),
            small,
            ForgettingWarning,
            r"gain a variance of .* Is the unit right\?",
        ),
        (cg.DynIBCC(), untimed, NoTimesWarning, "in the order of the rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CollapsedFitWarning")
def test_fits_warn_of_what_users_should_know(model, graph, warning, words):
    with pytest.warns(warning, match=words):
        fit = model.fit(graph(), seed=0)
    assert np.isfinite(fit.item_probs).all()
    if warning is ConvergenceWarning:
        assert not fit.converged
        assert fit.n_iter == getattr(model, "max_iter", fit.n_iter)


@pytest.mark.parametrize(("model", "graph"), [(cg.IBCC(), small), (cg.DynIBCC(), repeating)])
def test_nothing_is_said_where_all_is_well(model, graph):
    """DynIBCC knows what to do with repeated answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(graph())


@pytest.mark.parametrize("prior", [(1e-8, 1e-8), (1e8, 1e8), (1e-8, 1e8), (1e8, 1e-8)])
@pytest.mark.parametrize("learn_prior", [False, True])
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_extreme_priors_stay_finite(prior, learn_prior):
    fit = cg.IBCC(confusion_prior=prior, learn_prior=learn_prior, tol=1e-8).fit(small())
    assert np.isfinite(fit.item_probs).all()
    assert fit.bound[-1] <= 0
