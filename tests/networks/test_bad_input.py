"""Bad input of everything that builds networks: the builder, its options, and the error and words that answer them."""

import datetime as dt

import pytest
from builders import crowd, fitted

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError, TimeError, TooFewError
from crowdgraph.networks import error_correlation, pi_similarity, task_cooccurrence


@pytest.fixture(scope="module")
def crowds():
    """The graphs and fits that the table names."""
    graph = fitted(n_items=40, n_responses=200)
    columns = {"volunteer": ["a", "a", "b"], "item": ["x", "y", "x"], "label": [0, 0, 0], "time": [1, 2, 3]}
    return {
        "a fitted graph": graph,
        "a graph without fits": crowd(n_items=40, n_responses=200).graph,
        "a graph with numbers as times": cg.CrowdGraph.from_responses(columns, labels=[0, 1]),
        "a fit without confusion": cg.MajorityVote().fit(graph),
        "a fit of another graph": fitted(n_volunteers=20, n_items=40, n_responses=200).fit(),
    }


FITTED, DATED, NUMBERED = "a fitted graph", "a graph without fits", "a graph with numbers as times"
VOTES, OTHER = "a fit without confusion", "a fit of another graph"


@pytest.mark.parametrize(
    ("build", "graph", "options", "error", "words"),
    [
        (
            pi_similarity,
            FITTED,
            {"distance": "euclid"},
            ParameterError,
            "distance='euclid' is not a choice; use one of 'bhattacharyya'",
        ),
        (pi_similarity, FITTED, {"neighbours": 0}, ParameterError, "neighbours=0 must be a whole number from 1 up"),
        (pi_similarity, FITTED, {"neighbours": 2.5}, ParameterError, "neighbours=2.5 must be a whole number"),
        (
            pi_similarity,
            FITTED,
            {"min_responses": -1},
            ParameterError,
            "min_responses=-1 must be a whole number from 0",
        ),
        (pi_similarity, FITTED, {"min_responses": 10**6}, ParameterError, "nobody to link. Lower min_responses"),
        (pi_similarity, FITTED, {"fit": "gibbs"}, NotAnnotatedError, "gibbs"),
        (
            pi_similarity,
            FITTED,
            {"fit": 3},
            ParameterError,
            "fit= takes a fit, its confusion, or the name of an annotation; got an int",
        ),
        (pi_similarity, FITTED, {"fit": OTHER}, AlignmentError, "made for another graph"),
        (
            pi_similarity,
            FITTED,
            {"fit": VOTES},
            NotAnnotatedError,
            "'majority_vote' has no confusion matrices to compare",
        ),
        (pi_similarity, OTHER, {}, ParameterError, "built from a CrowdGraph; got a ModelFit"),
        (error_correlation, DATED, {}, NotAnnotatedError, "IBCC"),
        (error_correlation, FITTED, {"fit": VOTES}, NotAnnotatedError, "has no confusion matrices"),
        (error_correlation, FITTED, {"fit": 3}, ParameterError, "fit= takes a fit"),
        (error_correlation, FITTED, {"min_common": 0}, ParameterError, "min_common"),
        (error_correlation, FITTED, {"min_responses": 1_000}, TooFewError, "Lower min_responses"),
        (
            task_cooccurrence,
            NUMBERED,
            {"half_life": dt.timedelta(days=3)},
            TimeError,
            "must be a number, since the graph's times are numbers",
        ),
        (task_cooccurrence, NUMBERED, {"half_life": "a week"}, TimeError, "half_life='a week' must be a number"),
        (task_cooccurrence, NUMBERED, {"half_life": 0}, ParameterError, "half_life=0 must be longer than zero"),
        (task_cooccurrence, NUMBERED, {"half_life": float("nan")}, ParameterError, "must be longer than zero"),
        (task_cooccurrence, DATED, {"half_life": 30}, TimeError, r"half_life=30 has no unit, .*give a timedelta"),
        (task_cooccurrence, NUMBERED, {"prior": 3}, ParameterError, r"prior=3 must be a pair \(a, b\) of numbers"),
        (task_cooccurrence, NUMBERED, {"prior": (0, 1)}, ParameterError, "must be a pair of numbers above zero"),
        (
            task_cooccurrence,
            NUMBERED,
            {"validate": 0},
            ParameterError,
            "validate=0 must be a number above 0 and below 1",
        ),
        (task_cooccurrence, NUMBERED, {"validate": 1}, ParameterError, "validate=1 must be a number above 0 and below"),
        (task_cooccurrence, NUMBERED, {"validate": True}, ParameterError, "validate=True must be a number above 0"),
        (task_cooccurrence, NUMBERED, {"validate": "fdr"}, ParameterError, "validate='fdr' must be a number above 0"),
        (
            task_cooccurrence,
            NUMBERED,
            {"min_responses": 50},
            ParameterError,
            "No volunteer has 50 answers or more .the most is 2.",
        ),
    ],
)
def test_what_networks_cannot_be_built_from_is_refused(crowds, build, graph, options, error, words):
    if options.get("fit") in crowds:
        options = {**options, "fit": crowds[options["fit"]]}
    few = {"min_responses": 1} if graph == NUMBERED else {}
    with pytest.raises(error, match=words):
        build(crowds[graph], **{**few, **options})
