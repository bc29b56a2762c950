"""Bad input gets a sentence that says what was wrong and what to do."""

import warnings

import numpy as np
import pytest
import torch

import crowdgraph as cg
from crowdgraph.errors import (
    AlignmentError,
    CollapsedFitWarning,
    ConvergenceWarning,
    GoldError,
    InputError,
    NotAnnotatedError,
    ParameterError,
    RepeatedAnswersWarning,
)


@pytest.fixture
def graph():
    return cg.simulate.crowd(n_volunteers=10, n_items=40, n_responses=150, gold=0.3, seed=0).graph


@pytest.fixture
def supernovae():
    return cg.simulate.galaxy_zoo_supernovae(seed=0).graph


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"confusion_prior": [[1, -1], [1, 1]]},
            r"numbers above zero \(pseudo-counts\), between 1e-08 and 1e\+08; got -1",
        ),
        ({"confusion_prior": (0, 1)}, "got 0"),
        ({"confusion_prior": [[1, np.nan], [1, 1]]}, "got nan"),
        ({"confusion_prior": (np.inf, 1)}, "got inf"),
        ({"confusion_prior": "silver"}, "the only word it can be is 'gold'"),
        ({"confusion_prior": [["a", "b"], ["c", "d"]]}, "must be made of numbers"),
        ({"confusion_prior": 3.0}, r"shape \(\); expected a pair \(right, wrong\), or a matrix"),
        ({"confusion_prior": {"anna": [1, 2, 3]}}, "The confusion prior of 'anna' has shape"),
        ({"confusion_prior": ("4", "1")}, "must be made of numbers"),
        ({"confusion_prior": [[1, 2], [3]]}, "must be made of numbers"),
        ({"confusion_prior": (1e-12, 1)}, "between 1e-08"),
        ({"class_prior": -1}, "class_prior must be made of numbers above zero"),
        ({"class_prior": {"no": "many"}}, "class_prior of 'no' must be made of numbers"),
        ({"learn_prior": "no"}, "learn_prior='no' must be True or False"),
        ({"max_iter": 1}, "must be a whole number from 2 up"),
        ({"max_iter": 10.0}, "must be a whole number"),
        ({"tol": 0}, "tol=0 must be a number above zero"),
        ({"tol": float("nan")}, "must be a number above zero"),
        ({"restarts": -1}, "restarts=-1"),
        ({"dtype": "float16"}, "not a choice; use one of 'float64', 'float32'"),
        ({"votes": ["yes"]}, "must be a mapping from labels"),
    ],
)
def test_settings_are_checked_on_construction(setting, message):
    with pytest.raises(ParameterError, match=message):
        cg.IBCC(**setting)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (cg.IBCC(confusion_prior=np.ones((3, 2))), r"shape \(3, 2\); expected \(2, 2\), classes by labels"),
        (cg.IBCC(confusion_prior={"stranger": np.ones((2, 2))}), "1 volunteers who are not in the graph: 'stranger'"),
        (cg.IBCC(class_prior=[1, 2, 3]), r"class_prior has shape \(3,\); expected \(2,\), one for each class"),
        (cg.IBCC(class_prior={"no": 1}), "misses 'yes'"),
        (cg.IBCC(class_prior={"no": 1, "yes": 1, "perhaps": 2}), "names 'perhaps'"),
        (cg.IBCC(votes={"no": "no"}), "votes= misses 'yes'; it must name every label"),
        (cg.IBCC(votes={"no": "no", "yes": "yess"}), "which is not a class.*Did you mean 'yes'"),
        (cg.IBCC(votes={"no": "no", "yes": "yes", "maybe": None}), "which is not a label"),
        (cg.IBCC(device="warp drive"), "device='warp drive' is not available here .*use one of cpu"),
        (cg.MeanScore(), "'no', 'yes' are not numbers. Say what each label stands for"),
        (cg.MeanScore(scores={"no": 0}), "scores= misses 'yes'"),
        (cg.MeanScore(scores={"no": 0, "yes": float("nan")}), "must give a finite number"),
        (cg.MeanScore(scores={"no": 1, "yes": 1}), "All labels have the score 1"),
        (cg.MeanScore(scores={"no": 0, "yes": 1}, positive="yess"), "Did you mean 'yes'"),
        (
            cg.IBCC(
                confusion_prior=cg.CrowdPrior(
                    ids=[],
                    confusion=np.ones((0, 2, 2)),
                    shared=np.ones((2, 2)),
                    class_concentration=[1, 1],
                    classes=("a", "b"),
                    labels=("no", "yes"),
                )
            ),
            "made for the classes 'a', 'b'; the graph has 'no', 'yes'",
        ),
    ],
)
def test_settings_that_do_not_fit_the_graph(graph, model, message):
    with pytest.raises((ParameterError, AlignmentError), match=message):
        model.fit(graph)


def test_labels_that_are_no_classes_need_a_word(supernovae):
    """The error shows both ways out."""
    for model in (cg.IBCC(), cg.GibbsIBCC(), cg.IBCC(confusion_prior=(5, 1))):
        with pytest.raises(ParameterError, match=r"votes=\{.*Or give confusion_prior= as a matrix of shape \(2, 3\)"):
            model.fit(supernovae)
    for model in (cg.MajorityVote(), cg.WeightedMajority(), cg.DawidSkene(), cg.WeightedSum()):
        with pytest.raises(ParameterError, match=r"which class a label votes for: votes=\{"):
            model.fit(supernovae)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_device_that_is_not_there(graph):
    with pytest.raises(ParameterError, match="is not available here"):
        cg.IBCC(device="cuda").fit(graph)


MODELS = [cg.MajorityVote(), cg.WeightedMajority(), cg.DawidSkene(), cg.IBCC(), cg.GibbsIBCC()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_graphs_that_cannot_be_fitted(model, graph):
    single = cg.CrowdGraph.from_responses({"volunteer": ["anna"], "item": ["x"], "label": ["yes"]})
    with pytest.raises(InputError, match="the single class 'yes', so there is nothing to tell apart"):
        model.fit(single)
    with pytest.raises(InputError, match="no answers"):
        model.fit(graph.first(0))
    with pytest.raises(ParameterError, match="fitted to a CrowdGraph; got a list"):
        model.fit([1, 2])
    with pytest.raises(ParameterError, match=r"takes an earlier fit \(a ModelFit\); got a dict"):
        model.fit(graph, start={})
    other = cg.simulate.crowd(n_volunteers=10, n_items=41, n_responses=150, seed=1).graph
    with pytest.raises(AlignmentError, match="made for another graph"):
        model.fit(graph, start=cg.MajorityVote().fit(other))


def test_weights_need_gold(graph):
    for model in (cg.WeightedMajority(), cg.WeightedSum(scores={"no": 0, "yes": 1})):
        with pytest.raises(GoldError, match="the graph has no such gold"):
            model.fit(graph.with_gold(None))
    with pytest.raises(GoldError, match="confusion_prior='gold' is learned from answers to items with gold"):
        cg.IBCC(confusion_prior="gold").fit(graph.with_gold(None))
    with pytest.raises(ParameterError, match=r"factor=1\.5 must lie between 0 and 1"):
        cg.WeightedMajority(factor=1.5)


def test_mean_scores_tell_two_classes_apart():
    graph = cg.simulate.crowd(classes=(0, 1, 2), seed=0).graph
    with pytest.raises(ParameterError, match="tells two classes apart; the graph has 3"):
        cg.MeanScore().fit(graph)


def test_learning_a_shared_prior_beside_own_ones(graph):
    own = {graph.volunteers.ids[0]: np.ones((2, 2))}
    with pytest.raises(ParameterError, match="leave one of the two out"):
        cg.IBCC(confusion_prior=own, learn_prior=True).fit(graph)


def test_repeated_answers_are_mentioned(graph):
    crowd = cg.simulate.crowd(duplicates=0.2, seed=0).graph
    with pytest.warns(RepeatedAnswersWarning, match=r"responses repeat a volunteer and item.*duplicates='first'"):
        cg.IBCC().fit(crowd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cg.IBCC().fit(graph)


def test_not_converged_is_a_warning_with_the_knob(graph):
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 3 iterations.*Raise max_iter, or tol"):
        fit = cg.IBCC(max_iter=3, tol=1e-12).fit(graph)
    assert not fit.converged
    assert np.isfinite(fit.item_probs).all()
    with pytest.warns(ConvergenceWarning, match="R-hat is"):
        cg.GibbsIBCC(max_draws=50, burn_in=1, stop_change=1e-9).fit(graph, seed=0)


def test_a_prior_without_preference_collapses_aloud(graph):
    with pytest.warns(CollapsedFitWarning, match="the same class probabilities, whatever was said"):
        cg.IBCC(confusion_prior=(1, 1)).fit(graph.with_gold(None))


@pytest.mark.parametrize("prior", [(1e-8, 1e-8), (1e8, 1e8), (1e-8, 1e8), (1e8, 1e-8)])
@pytest.mark.parametrize("learn_prior", [False, True])
def test_extreme_priors_stay_finite(graph, prior, learn_prior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cg.IBCC(confusion_prior=prior, learn_prior=learn_prior, tol=1e-8).fit(graph)
    assert np.isfinite(fit.item_probs).all()
    assert fit.bound[-1] <= 0


@pytest.mark.parametrize("seed", ["a", -1, 1.5, True])
def test_seeds_are_whole_numbers(graph, seed):
    with pytest.raises(ParameterError, match="must be a whole number from 0 up, or None"):
        cg.GibbsIBCC().fit(graph, seed=seed)


def test_fits_without_dirichlets_say_what_they_lack(graph):
    fit = cg.MajorityVote().fit(graph)
    with pytest.raises(NotAnnotatedError, match="no posterior that could become a prior"):
        fit.as_prior()
    with pytest.raises(NotAnnotatedError, match="no confusion matrices; fit IBCC"):
        fit.predict_response(graph.volunteers.ids[0], graph.items.ids[0])
    with pytest.raises(ParameterError, match="strength=2 must be a number from 0 to 1"):
        cg.IBCC().fit(graph).as_prior(2)
    with pytest.raises(ParameterError, match="strength='much' must be a number"):
        cg.IBCC().fit(graph).as_prior("much")


def test_scores_too_far_apart(graph):
    with pytest.raises(ParameterError, match="too far apart to be averaged"):
        cg.MeanScore(scores={"no": -1e308, "yes": 1e308}).fit(graph)


def test_influence_needs_a_subject(graph):
    fit = cg.IBCC().fit(graph)
    with pytest.raises(ParameterError, match="Say whose influence"):
        fit.influence()
    with pytest.raises(cg.errors.UnknownIdError, match="There is no volunteer 'nobody'"):
        fit.influence(volunteer="nobody")
    strangers = [
        (volunteer, item)
        for volunteer in graph.volunteers
        for item in graph.items
        if item not in {response.item for response in graph.volunteers[volunteer].responses}
    ]
    with pytest.raises(ParameterError, match="There is no response with"):
        fit.influence(volunteer=strangers[0][0], item=strangers[0][1])


def test_too_many_predictions_are_refused():
    graph = cg.simulate.crowd(n_volunteers=4_000, n_items=3_000, n_responses=5_000, seed=0).graph
    fit = cg.IBCC(max_iter=1_000).fit(graph)
    with pytest.raises(ParameterError, match="make 12,000,000 pairs; choose at most 10,000,000"):
        fit.predict_responses(graph)
