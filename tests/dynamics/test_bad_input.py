"""Bad input of everything in dynamics: what is called, with what, and the error and words that answer it."""

from functools import partial

import pytest
from builders import crowd, track_of

import crowdgraph as cg
from crowdgraph.dynamics import influence, over_time
from crowdgraph.errors import NotAnnotatedError, ParameterError, TimeError, UnknownIdError
from crowdgraph.networks import pi_similarity, task_cooccurrence

QUICK = {"network": partial(task_cooccurrence, min_responses=3), "detector": cg.Leiden(), "model": None, "seed": 0}
TRACK = track_of([[0, 1], [0, 0]])


@pytest.fixture(scope="module")
def graph():
    return crowd(n_responses=200).graph


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ParameterError, "one of counts="),
        ({"counts": [10], "times": [1]}, ParameterError, "one of counts="),
        ({"counts": []}, ParameterError, "no snapshot to take"),
        ({"counts": [10, 9_999]}, ParameterError, r"first\(9999\)"),
        ({"counts": [20, 10]}, ParameterError, "must increase"),
        ({"counts": [20, 20]}, ParameterError, "the same number of responses twice"),
        ({"counts": 20}, ParameterError, "several values"),
        ({"times": "2026-02-01"}, ParameterError, "several values"),
        ({"times": 20}, ParameterError, "several values"),
        ({"times": ["soon"]}, TimeError, "soon"),
        ({"counts": [200], "hindsight": "yes"}, ParameterError, "hindsight"),
        ({"counts": [200], "restarts": -1}, ParameterError, "restarts"),
        ({"counts": [200], "network": lambda _: 3}, ParameterError, "must build a VolunteerNetwork"),
        ({"counts": [200], "network": None}, ParameterError, "builds a network"),
        ({"counts": [200], "network": pi_similarity}, NotAnnotatedError, "carries no confusion matrices"),
        ({"counts": [200], "seed": -1}, ParameterError, "seed"),
        ({"counts": [200], "model": cg.IBCC}, ParameterError, r"model= takes a model, such as IBCC\(\)"),
        ({"counts": [200], "detector": None}, ParameterError, "detector= takes"),
    ],
)
def test_what_over_time_cannot_follow_is_refused(graph, options, error, words):
    with pytest.raises(error, match=words):
        over_time(graph, **{**QUICK, **options})


@pytest.mark.parametrize(
    ("items", "options", "error", "words"),
    [
        ([], {}, ParameterError, "at least one"),
        (["nothing"], {}, UnknownIdError, "nothing"),
        ("all", {"controls": 5}, ParameterError, "others to compare with"),
        ("one", {"network": "x"}, ParameterError, "builds a network"),
        ("one", {"detector": cg.Leiden}, ParameterError, "detector= takes"),
        ("all", {"controls": -1}, ParameterError, "controls"),
        ("all", {}, ParameterError, "no communities to compare"),
    ],
)
def test_items_without_influence_are_refused(graph, items, options, error, words):
    items = {"all": graph.items.ids, "one": graph.items.ids[:1]}[items] if isinstance(items, str) else items
    with pytest.raises(error, match=words):
        influence(graph, items, **{**QUICK, **options})


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda _: influence("graph", ["a"]), ParameterError, "got a str"),
        (lambda _: over_time(3, counts=[1]), ParameterError, "got an int"),
        (lambda graph: over_time(graph.first(0), counts=[0], **QUICK), ParameterError, "no responses"),
        (lambda _: TRACK.of("nobody"), UnknownIdError, "nobody"),
        (lambda _: TRACK.mean_confusion(2), ParameterError, "numbered 0 to 1"),
        (lambda _: TRACK.moves_to_frame(min_change=2), ParameterError, "min_change"),
        (lambda _: TRACK.moves_to_frame(kind="excel"), ParameterError, "kind"),
    ],
)
def test_impossible_arguments_are_refused(graph, call, error, words):
    with pytest.raises(error, match=words):
        call(graph)
