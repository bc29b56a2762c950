"""Bad input of everything in core: results that do not fit together, calls with impossible arguments, and the words."""

from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, history_of, network_of
from scipy.sparse import csr_array

import crowdgraph as cg
from crowdgraph.core._arrays import id_array, value_tuple
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.clock import Clock
from crowdgraph.core.fit import Influence
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.gold import Gold
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.core.volunteer_values import VolunteerValues
from crowdgraph.errors import (
    AlignmentError,
    ColumnError,
    CrowdGraphError,
    GoldError,
    IdError,
    NotAnnotatedError,
    ParameterError,
    ResultError,
    TimeError,
    UnknownIdError,
)

NAN = float("nan")
THREE = communities_of([[1, 0], [0.3, 0.7], [0, 0]], ids=["a", "b", "c"])
TWO = communities_of([[1, 0], [1, 0]], ids=["a", "b"])
GOOD = {
    cg.ModelFit: {
        "model": "m",
        "items": ["x", "y"],
        "classes": ("a", "b"),
        "item_probs": [[0.4, 0.6], [1, 0]],
        "class_probs": [0.5, 0.5],
    },
    cg.VolunteerNetwork: {
        "ids": ["a", "b", "c"],
        "weights": [[0, 2.0, 0], [2.0, 0, 0], [0, 0, 0]],
        "method": "m",
    },
    cg.Communities: {
        "ids": ["a", "b", "c"],
        "participation": [[1, 0], [0.3, 0.7], [0, 0]],
        "modularity": 0.2,
        "method": "m",
    },
    cg.CommunityTrack: {
        "ids": ["a", "b", "c"],
        "times": [1, 2],
        "counts": [10, 20],
        "snapshots": (TWO, THREE),
        "clock": Clock("number"),
        "method": "m",
    },
    cg.ConfusionTrack: {
        "ids": ["a", "b"],
        "starts": [0, 1, 2],
        "times": np.array([5, 3]),
        "concentration": np.ones((2, 2, 3)),
        "initial": np.ones((2, 3)),
        "clock": Clock("number"),
        "classes": ("no", "yes"),
        "labels": ("no", "yes", "skip"),
    },
}
GOOD |= {
    cg.NetworkTrack: {
        "ids": ["v0", "v1"],
        "times": [1, 2],
        "counts": [10, 20],
        "snapshots": 2 * (network_of([[0, 1], [1, 0]]),),
        "clock": Clock("number"),
        "method": "m",
    },
    CrowdPrior: {
        "ids": ["a", "b"],
        "confusion": np.ones((2, 2, 3)),
        "shared": np.ones((2, 3)),
        "class_concentration": [1, 1],
        "classes": ("no", "yes"),
        "labels": ("no", "yes", "skip"),
    },
    VolunteerValues: {"quantity": "strength", "ids": ["a", "b"], "array": [1.0, 2.0]},
    Gold: {"items_table": NodeTable("item", ["x"]), "classes": ("a", "b"), "probs": [[0.5, 0.5]]},
}
FORWARD = ForwardState(
    ids=["a"], mean=np.zeros((1, 2, 2)), covariance=np.ones((1, 2, 2)), noise=np.zeros((1, 2)), times=np.array([1])
)
OTHER_CLASSES = cg.ConfusionTrack.static(
    ids=["v"], concentration=np.ones((1, 2, 2)), classes=("a", "c"), labels=("a", "c")
)
NO_NETWORKS = [
    (np.zeros((2, 2)), "shape"),
    ([[0, 1, 0], [2, 0, 0], [0, 0, 0]], "symmetric"),
    ([[0, -1, 0], [-1, 0, 0], [0, 0, 0]], "negative"),
    ([[1, 1, 0], [1, 0, 0], [0, 0, 0]], "self-loops"),
    ([[0, np.nan, 0], [np.nan, 0, 0], [0, 0, 0]], "not finite"),
]
RESULTS = [
    (cg.ModelFit, {"item_probs": [[0.4, 0.6]]}, CrowdGraphError, r"item_probs has shape \(1, 2\); expected \(2, 2\)"),
    (cg.ModelFit, {"item_probs": [[0.4, 0.7], [1, 0]]}, CrowdGraphError, "one sum is 1.1"),
    (cg.ModelFit, {"item_probs": [[-0.4, 1.4], [1, 0]]}, CrowdGraphError, "must not be negative"),
    (cg.ModelFit, {"item_probs": [[np.nan, 1.4], [1, 0]]}, CrowdGraphError, "not finite"),
    (cg.ModelFit, {"class_probs": [1.0]}, CrowdGraphError, "class_probs has shape"),
    (cg.ModelFit, {"items": ["x", "x"]}, CrowdGraphError, "repeat"),
    (cg.ModelFit, {"bound": [np.inf]}, CrowdGraphError, "not finite"),
    (cg.ModelFit, {"n_iter": -1}, CrowdGraphError, "n_iter"),
    (cg.ModelFit, {"classes": ("a", "a")}, CrowdGraphError, "repeat"),
    (cg.ModelFit, {"confusion": OTHER_CLASSES}, ResultError, "classes"),
    *((cg.VolunteerNetwork, {"weights": weights}, ResultError, words) for weights, words in NO_NETWORKS),
    *(
        (cg.VolunteerNetwork, {"weights": csr_array(np.array(weights, dtype=float))}, ResultError, words)
        for weights, words in NO_NETWORKS
    ),
    *(
        (cg.VolunteerNetwork, {"p_values": values}, ResultError, f"p_values {words}")
        for values, words in (
            ([[0, 0.5], [0.5, 0]], r"have shape \(2, 2\); expected that of the weights, \(3, 3\)"),
            ([[0, 1.5, 0], [1.5, 0, 0], [0, 0, 0]], "must be numbers above 0 and at most 1"),
            ([[0, 0.5, 0], [0.4, 0, 0], [0, 0, 0]], "must be symmetric"),
            (np.zeros((3, 3)), "lack 2 of 2 links; every link needs one above 0"),
        )
    ),
    (cg.VolunteerNetwork, {"support": [1, 2]}, ResultError, r"support has shape \(2,\); expected \(3,\)"),
    (cg.Communities, {"participation": [[1, 0], [0.3, 0.7]]}, ResultError, "shape"),
    (cg.Communities, {"participation": [[1, 0], [0.3, 0.3], [0, 0]]}, ResultError, "one sum is 0.6"),
    (cg.Communities, {"participation": [[2, -1], [0.3, 0.7], [0, 0]]}, ResultError, "negative"),
    (cg.Communities, {"modularity": 1.5}, ResultError, "modularity"),
    (cg.CommunityTrack, {"counts": [10]}, CrowdGraphError, "as many times and counts"),
    (cg.CommunityTrack, {"counts": [20, 10]}, CrowdGraphError, "fall"),
    (cg.CommunityTrack, {"times": [2, 1]}, CrowdGraphError, "sorted"),
    (cg.CommunityTrack, {"ids": ["a", "b"]}, CrowdGraphError, r"1 volunteers who are not in the track \('c'\)"),
    (cg.CommunityTrack, {"snapshots": (TWO, communities_of([0], ids=["c"]))}, CrowdGraphError, "columns"),
    (cg.CommunityTrack, {"ids": ["a", "a"], "times": [], "counts": [], "snapshots": ()}, IdError, "repeat"),
    (
        cg.CommunityTrack,
        {"confidence": [[1.5, 0], [0, 0]]},
        ResultError,
        "must lie between 0 and 1",
    ),
    (cg.NetworkTrack, {"counts": [10]}, ResultError, r"as many times and counts as snapshots; got .*'counts': 1"),
    (cg.NetworkTrack, {"counts": [10, 5]}, ResultError, "must not be negative or fall"),
    (cg.NetworkTrack, {"counts": [-1, 5]}, ResultError, "must not be negative or fall"),
    (cg.NetworkTrack, {"reasons": ["a gap"]}, ResultError, "'reasons': 1"),
    (CrowdPrior, {"shared": np.ones((3, 2))}, ResultError, r"shared has shape \(3, 2\); expected \(2, 3\)"),
    (CrowdPrior, {"forward": FORWARD}, ResultError, r"of \(labels, classes\) \(2, 2\); expected \(3, 2\)"),
    (VolunteerValues, {"array": [1.0]}, ResultError, r"have shape \(1,\); expected \(2,\), one for each volunteer"),
    (Gold, {"probs": np.zeros((2, 2))}, GoldError, r"Gold has shape \(2, 2\); expected \(1, 2\), items by classes"),
    (cg.ConfusionTrack, {"starts": [0, 1]}, CrowdGraphError, "starts has shape"),
    (cg.ConfusionTrack, {"starts": [0.0, 1.7, 2.0]}, CrowdGraphError, "integers"),
    (cg.ConfusionTrack, {"starts": [0, 2, 1]}, CrowdGraphError, "must rise"),
    (cg.ConfusionTrack, {"starts": [0, 0, 2]}, CrowdGraphError, "must not fall"),
    (cg.ConfusionTrack, {"times": np.array([5.0, np.nan]), "starts": [0, 0, 2]}, CrowdGraphError, "must be finite"),
    (cg.ConfusionTrack, {"times": np.array(["a", "b"])}, CrowdGraphError, "read them with CrowdGraph.from_responses"),
    (
        cg.ConfusionTrack,
        {"concentration": np.ones((2, 3, 2))},
        CrowdGraphError,
        r"concentration has shape \(2, 3, 2\); expected \(2, 2, 3\)",
    ),
    (cg.ConfusionTrack, {"concentration": np.zeros((2, 2, 3))}, CrowdGraphError, "must be positive"),
    (
        cg.ConfusionTrack,
        {"concentration": np.full((2, 2, 3), np.nan)},
        CrowdGraphError,
        "12 values that are not finite",
    ),
    (cg.ConfusionTrack, {"concentration": "abc"}, CrowdGraphError, "array of numbers"),
    (cg.ConfusionTrack, {"initial": np.ones((3, 2))}, CrowdGraphError, "initial has shape"),
    (cg.ConfusionTrack, {"initial": np.ones((1, 2, 3))}, CrowdGraphError, "initial has shape"),
    (cg.ConfusionTrack, {"inference": "guessed"}, CrowdGraphError, "not a choice"),
    (cg.ConfusionTrack, {"inference": "static"}, CrowdGraphError, "static track has no steps"),
    (cg.ConfusionTrack, {"ids": ["a", "a"]}, CrowdGraphError, "repeat"),
    (cg.ConfusionTrack, {"labels": ("no", "no", "yes")}, CrowdGraphError, "repeat"),
]


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_what_the_tables_change_is_good(kind):
    kind(**GOOD[kind])


@pytest.mark.parametrize(("kind", "changes", "error", "words"), RESULTS)
def test_results_that_do_not_fit_together_are_refused(kind, changes, error, words):
    with pytest.raises(error, match=words):
        kind(**{**GOOD[kind], **changes})


def graph_of_codes(**changes):
    """A graph of codes written by hand."""
    columns = {"volunteer": [0, 0], "item": [0, 0], "label": [0, -1], "time": [1, 2], **changes}
    table = ResponseTable(**{name: np.array(values) for name, values in columns.items()}, clock=Clock("number"))
    return cg.CrowdGraph(NodeTable("volunteer", ["a"]), NodeTable("item", ["x"]), table, classes=["c"], labels=["l"])


def graph_with_gold_of(graph, other):
    return cg.CrowdGraph(
        graph.volunteers.table,
        graph.items.table,
        graph.responses.table,
        classes=graph.classes,
        labels=graph.labels,
        gold=other.gold,
    )


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: graph_of_codes(volunteer=[0, 1]), ColumnError, "'volunteer' run from 0 to 1"),
        (lambda: graph_of_codes(item=[-1, 0]), ColumnError, "'item' run from -1"),
        (lambda: graph_of_codes(label=[0, 1]), ColumnError, "'label' run from 0 to 1"),
        (lambda: graph_of_codes(label=[0]), ColumnError, "'label' has shape"),
        (lambda: graph_of_codes(label=[0.0, 1.0]), ColumnError, "integer codes"),
        (lambda: NodeTable("volunteer", ["a", "b", "a"]), IdError, r"1 volunteer ids repeat \('a'\)"),
        (lambda: NodeTable("volunteer", ["a"], {"age": [1, 2]}), ColumnError, "'age' of the volunteers has shape"),
        (lambda: NodeTable("volunteer", ["a"], {"kind": [1]}), ColumnError, "cannot be called 'kind'"),
        *(
            (lambda values=values: value_tuple(values, what="classes"), ParameterError, "classes")
            for values in ("ab", 5, [], ["a", "a"], [1, "1"], [1, True], [["a"]])
        ),
    ],
)
def test_tables_that_are_none_are_refused(build, error, words):
    assert graph_of_codes().responses[1].label is None
    with pytest.raises(error, match=words):
        build()


PETS = {"classes": ["cat", "dog"], "labels": ["cat", "dog"]}
MATRIX = cg.ConfusionMatrix(
    concentration=[[6.0, 3.0, 1.0], [2.0, 4.0, 4.0]], classes=("no", "yes"), labels=("no", "yes", "skip")
)
SNAPSHOT = cg.ConfusionSnapshot(
    ids=["c", "b", "a"], concentration=np.ones((3, 2, 2)), classes=("no", "yes"), labels=("no", "yes")
)
HISTORY = history_of(np.column_stack([np.linspace(0.8, 0.2, 50), np.linspace(0.2, 0.8, 50)]))
FIT = cg.IBCC().fit(cg.simulate.crowd(n_volunteers=5, n_items=20, n_responses=60, seed=0).graph)
OTHER_GRAPH = cg.simulate.crowd(n_volunteers=6, n_items=21, n_responses=60, seed=1).graph
FULL = network_of(1 - np.eye(4))
NONE = communities_of(np.zeros((2, 0)))
TRACK = cg.CommunityTrack(**GOOD[cg.CommunityTrack])
EMPTY_TRACK = cg.CommunityTrack(**{**GOOD[cg.CommunityTrack], "times": [], "counts": [], "snapshots": ()})
OF_VOTES = cg.ModelFit(**GOOD[cg.ModelFit])
LARGER = network_of([[0, 1], [1, 0]], ids=["a", "d"])
NO_COMMUNITY = r"There is no community .*; communities are numbered 0 to 1"
NO_THRESHOLD = "threshold=.* must be a participation above 0, at most 1"
NOT_FITTING = r"lacks 1 of the volunteers who belong to communities \('b'\)"
NO_SNAPSHOT = r"Expected a ConfusionSnapshot, such as fit.confusion.latest\(\); got a"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        # Communities
        *((lambda k=k: THREE.members(k), ParameterError, NO_COMMUNITY) for k in (2, -1, 1.0, "0", True, None)),
        *(
            (lambda call=call, threshold=threshold: call(threshold=threshold), ParameterError, NO_THRESHOLD)
            for threshold in (0, -0.1, 1.5, NAN, "high", True)
            for call in (THREE.cover, lambda threshold: THREE.members(0, threshold=threshold))
        ),
        (lambda: NONE.members(0), ParameterError, "no community 0; there are none at all"),
        *(
            (lambda call=call, confusion=confusion: call(confusion), error, words)
            for call in (THREE.mean_confusion, THREE.describe)
            for confusion, error, words in (
                (replace(SNAPSHOT, ids=["c", "zoe", "a"]), AlignmentError, NOT_FITTING),
                (np.ones((3, 2, 2)), ParameterError, NO_SNAPSHOT),
            )
        ),
        (THREE.mean_confusion, NotAnnotatedError, "'by hand' were not detected from confusion matrices; pass some, su"),
        (
            lambda: THREE.mean_confusion(SNAPSHOT, by_responses=True),
            NotAnnotatedError,
            "do not know how many answers the volunteers gave",
        ),
        (
            lambda: THREE.mean_confusion(SNAPSHOT, by_responses=1),
            ParameterError,
            "by_responses=1 must be True or False",
        ),
        (
            lambda: THREE.describe(kind="html"),
            ParameterError,
            r"kind='html' is not a choice; use one of 'pandas', .*'text'",
        ),
        (lambda: THREE.on(LARGER), AlignmentError, r"lack 1 of the network's volunteers \('d'\)\. Detect them"),
        (lambda: cg.CommunityTrack(**GOOD[cg.CommunityTrack]).of("z"), UnknownIdError, "'z'"),
        # Confusion
        (lambda: MATRIX.accuracy(correct={"no": "no"}), ParameterError, "does not name the class 'yes'"),
        (
            lambda: MATRIX.accuracy(correct={"no": "no", "yes": "perhaps"}),
            ParameterError,
            "'perhaps' is not a label",
        ),
        (lambda: MATRIX.accuracy([0.9, 0.9]), ResultError, "sum to one"),
        (lambda: MATRIX.interval(1.0), ParameterError, "between 0 and 1"),
        (lambda: SNAPSHOT.accuracy_interval(2), ParameterError, "level=2 must lie between 0 and 1"),
        # Changes
        (HISTORY.changes, NotAnnotatedError, r"do not know the answers .* Call fit\.changes\(graph\)"),
        *(
            (
                lambda rate=rate: FIT.changes(false_discovery_rate=rate),
                ParameterError,
                "must be a share above 0 and below 1",
            )
            for rate in (0, 1, -0.5, 2.0, NAN, "0.05", None)
        ),
        *(
            (
                lambda least=least: FIT.changes(min_answers=least),
                ParameterError,
                f"min_answers={least!r} must be a whole number from 2 up",
            )
            for least in (1, 8.0, "8", None, True)
        ),
        (lambda: FIT.changes(seed=-1), ParameterError, "seed=-1 must be a whole number"),
        (lambda: FIT.changes(seed=0.5), ParameterError, "seed=0.5 must be a whole number"),
        (lambda: FIT.changes(correct={"no": "no"}), ParameterError, "does not name the class 'yes'"),
        (lambda: FIT.changes("graph"), ParameterError, "graph= takes a CrowdGraph; got a str"),
        (lambda: FIT.changes(OTHER_GRAPH), AlignmentError, "was made for another graph"),
        (lambda: FIT.changes_to_frame(kind="html"), ParameterError, "kind='html' is not a choice"),
        (lambda: FIT.changes().of("nobody"), UnknownIdError, "nobody"),
        (lambda: FIT.confusion.changes(min_answers=0), ParameterError, "min_answers=0"),
        (lambda: cg.ModelFit(**GOOD[cg.ModelFit]).changes(), NotAnnotatedError, "Pass the graph"),
        (lambda: replace(FIT.changes(), p_values=[0.5]), ResultError, r"p_values has shape \(1,\); expected"),
        (lambda: replace(FIT.changes(), moments=[[1, 2, 3]]), ResultError, r"moments has shape \(1, 3\)"),
        # Behaviour
        (lambda: behaviour([[0.5, 0.4], [0.5, 0.5]], **PETS), ResultError, "confusion must sum to one"),
        (lambda: behaviour([[0.5, 0.5]], **PETS), ResultError, r"confusion has shape \(1, 2\); expected \(2, 2\)"),
        (lambda: behaviour([[NAN, 0.5], [0.5, 0.5]], **PETS), ResultError, "not finite"),
        (lambda: behaviour([[1.5, -0.5], [0.5, 0.5]], **PETS), ResultError, "must not be negative"),
        (lambda: behaviour(np.eye(2), classes="cat", labels="ab"), ParameterError, "must be several values"),
        # Networks
        (lambda: FULL.subnetwork(["nobody"]), UnknownIdError, "nobody"),
        (lambda: FULL.subnetwork("a"), IdError, "Expected several volunteer ids"),
        (
            lambda: FULL.null(seed=0),
            ParameterError,
            r"'by hand' links 100% of all pairs.*Build it with networks.pi_similarity",
        ),
        (lambda: FULL.resampled(seed=0), ParameterError, "'by hand' has no model of how it was built"),
        (lambda: FULL.null(seed=0.5), ParameterError, r"seed=0\.5 must be a whole number"),
        (lambda: FULL.resampled(seed=0.5), ParameterError, r"seed=0\.5 must be a whole number"),
        # Clocks
        *(
            (lambda change=change: TRACK.moves(min_change=change), ParameterError, "must be a share of participation")
            for change in (-0.1, 1.5, NAN, "half", True)
        ),
        *((lambda k=k: TRACK.mean_confusion(k), ParameterError, NO_COMMUNITY) for k in (2, -1, 1.0, "0")),
        (lambda: EMPTY_TRACK.mean_confusion(0), ParameterError, "no community 0; there are none at all"),
        (
            lambda: TRACK.mean_confusion(0),
            NotAnnotatedError,
            "were tracked without confusion matrices",
        ),
        (lambda: id_array(np.zeros((2, 2))), IdError, r"Ids have shape \(2, 2\); expected one id for each row"),
        (lambda: NodeTable("item", []).code("x"), UnknownIdError, r"^There is no item 'x' among 0\.$"),
        (
            lambda: Influence(volunteer="v", item=None, n_responses=1, fit=OF_VOTES, without=OF_VOTES).confusion_change,
            NotAnnotatedError,
            "'m' has no confusion matrices that could change",
        ),
        (lambda: Clock("number", "UTC"), TimeError, "belongs to datetimes"),
        *(
            (lambda zone=zone: Clock("datetime", zone), TimeError, "not a known time zone")
            for zone in ("Mars/Olympus", "Europe", "+99:00")
        ),
        *(
            (lambda times=times: Clock("number").check(np.array(times)), TimeError, "must be finite and sorted")
            for times in ([2, 1], [1.0, np.nan], [1.0, np.inf])
        ),
        (
            lambda: Clock("datetime").check(np.array(["NaT"], dtype="M8[s]")),
            TimeError,
            "must be finite and sorted",
        ),
        (lambda: Clock("number").check(np.zeros((1, 1))), TimeError, r"an array of float64 of shape \(1, 1\)"),
    ],
)
def test_impossible_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        *(
            (lambda graph, count=count: graph.first(count), ParameterError, "whole number from 0 to 6")
            for count in (-1, 7, 1.0, True, "3")
        ),
        *(
            (lambda graph, options=options: graph.snapshots(**options), ParameterError, words)
            for options, words in (
                ({}, r"needs either a number of equal parts, times=\[...\], counts=\[...\] or every"),
                ({"n": 0}, r"snapshots\(0\): expected a whole number of parts from 1 up"),
                ({"n": "30D"}, r"For a length of time, write snapshots\(every='30D'\)"),
                ({"every": 0}, "every=0 must be longer than zero"),
                ({"every": 1e-9}, "every=1e-09 makes .* snapshots; choose a longer time"),
                ({"times": [1], "counts": [1]}, r"needs either a number of equal parts, times"),
                ({"counts": [7]}, r"first\(7\): expected a whole number from 0 to 6"),
                ({"counts": [3, 1]}, "must increase; sort them"),
                ({"counts": 5}, "counts=5 must be several values"),
                ({"times": "2026"}, "times='2026' must be several values"),
            )
        ),
        (lambda graph: graph.window(5, 1), ParameterError, "swap them"),
        (lambda graph: graph.subgraph(volunteers=["eve"]), UnknownIdError, "'eve'"),
        (lambda graph: graph.subgraph(volunteers="anna"), IdError, r"write \['anna'\]"),
        (lambda graph: graph.subgraph(items=5), IdError, "single value 5"),
        *(
            (lambda graph, rows=rows: graph.responses[rows], ParameterError, "an integer, a slice")
            for rows in (slice(0, 6, 2), np.array([True]), True, "anna")
        ),
        (lambda graph: graph.responses[6], IndexError, "no response 6"),
        (lambda graph: graph.volunteers["ana"], UnknownIdError, "Did you mean 'anna'"),
        (lambda graph: graph.volunteers[7], UnknownIdError, "of type str"),
        (lambda graph: graph.volunteers[["a"]], UnknownIdError, "no volunteer"),
        (lambda graph: graph.with_gold(None).select_experienced(), ParameterError, "no gold"),
        (lambda graph: graph.with_gold({"x": "yes"}).select_experienced(), ParameterError, "gold for 1 of 3 items"),
        (lambda graph: graph.select_experienced(min_per_class="many"), ParameterError, "min_per_class"),
        (lambda graph: graph_with_gold_of(graph, graph_of_codes()), GoldError, "other items"),
        (lambda graph: graph.annotate(5), ParameterError, "got an int"),
        (lambda graph: graph.annotate(communities_of([0], ids=["zoe"])), AlignmentError, "'zoe'"),
    ],
)
def test_what_a_graph_cannot_do_is_refused(graph, call, error, words):
    with pytest.raises(error, match=words):
        call(graph)
