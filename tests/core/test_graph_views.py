"""The graph as network analysts know it, against networkx on `to_networkx()` for random crowds."""

import copy
import datetime as dt
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import strategies
from builders import communities_of, graph_of, track_of
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.core.response_annotations import response_confusion, response_surprise
from crowdgraph.errors import CrowdGraphError, IdError, InputError, ParameterError, TimeError, UnknownIdError

FEW = settings(max_examples=40, deadline=None)
SHARED = {"volunteer": [1, 2, 1], "item": [1, 3, 3], "label": ["a", "b", "a"]}


@st.composite
def crowds(draw):
    """Graphs in which ids may be those of volunteers and items, and answers may repeat."""
    pool = draw(st.sampled_from([["anna", "bert", "x", 1, 2], [1, 2, 3, 4], [("item", 1), 1, ("volunteer", "x"), "x"]]))
    n_rows = draw(st.integers(1, 12))
    volunteers, items = (draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)) for _ in range(2))
    labels = draw(st.lists(st.sampled_from([0, 1, None]), min_size=n_rows, max_size=n_rows))
    columns = {"volunteer": volunteers, "item": items, "label": labels}
    alone = {"volunteer": [*dict.fromkeys(volunteers), "nobody"]} if draw(st.booleans()) else None
    return cg.CrowdGraph.from_responses(columns, missing="keep", labels=[0, 1], volunteers=alone)


def pair(graph, name):
    """The node of `to_networkx` that a name means."""
    node = graph.nodes[name]
    return node.kind, node.id


@FEW
@given(crowds() | strategies.graphs())
def test_names_degrees_and_neighbours_are_those_of_networkx(graph):
    theirs = graph.to_networkx()
    names = list(graph)
    assert [pair(graph, name) for name in names] == list(theirs)
    assert len(graph) == graph.number_of_nodes() == len(graph.nodes) == len(set(names)) == len(theirs)
    assert all(name in graph and pair(graph, name) in graph.nodes for name in names)
    assert {pair(graph, name): degree for name, degree in graph.degree} == dict(theirs.degree)
    assert dict(graph.degree) == {name: graph.degree[name] for name in names}
    assert graph.degree.array.tolist() == [graph.degree(pair(graph, name)) for name in names]
    for name in names:
        neighbours = graph.neighbors(name)
        assert {pair(graph, other) for other in neighbours} == set(theirs[pair(graph, name)])
        assert len(set(neighbours)) == len(neighbours)
        first = [graph.responses.table.item, graph.responses.table.volunteer][graph.nodes[name].kind == "item"]
        codes = [first[row] for row in graph.nodes[name]._rows]
        assert graph.nodes[name]._neighbor_codes().tolist() == list(dict.fromkeys(codes))


@FEW
@given(crowds() | strategies.graphs())
def test_edges_are_those_of_networkx(graph):
    theirs = graph.to_networkx()
    assert len(graph.edges) == graph.number_of_edges() == graph.n_responses == theirs.number_of_edges()
    edges = [(pair(graph, volunteer), pair(graph, item)) for volunteer, item in graph.edges]
    assert sorted(map(repr, edges)) == sorted(repr((left, right)) for left, right in theirs.edges())
    for volunteer in graph.volunteers:
        for item in graph.items:
            expected = theirs.has_edge(("volunteer", volunteer), ("item", item))
            assert graph.has_edge(("volunteer", volunteer), ("item", item)) == expected
            assert ((("item", item), ("volunteer", volunteer)) in graph.edges) == expected
    for (volunteer, item, data), response in zip(graph.edges(data=True), graph.responses, strict=True):
        assert (graph.nodes[volunteer].id, graph.nodes[item].id) == (response.volunteer, response.item)
        assert data == {"label": response.label, "time": response.time, **response.attributes}
    assert [label for _, _, label in graph.edges(data="label")] == [one.label for one in graph.responses]


@FEW
@given(crowds())
def test_coworkers_are_the_weighted_projection(graph):
    simple = nx.Graph(graph.to_networkx())
    volunteers = [("volunteer", volunteer) for volunteer in graph.volunteers]
    projected = nx.bipartite.weighted_projected_graph(simple, volunteers)
    for volunteer in graph.volunteers:
        coworkers = graph.volunteers[volunteer].coworkers()
        expected = {other[1]: data["weight"] for other, data in projected[("volunteer", volunteer)].items()}
        assert coworkers == expected
        assert list(coworkers.values()) == sorted(expected.values(), reverse=True)


def test_single_nodes():
    graph = graph_of(["anna", "bert", "anna", "anna"], ["y", "x", "x", "y"], [1, 0, 1, 1])
    anna, x = graph.volunteers["anna"], graph.items["x"]
    assert anna.items == anna.neighbors == ["y", "x"]
    assert x.volunteers == x.neighbors == ["bert", "anna"]
    assert (anna.degree, x.degree) == (3, 2)
    assert (graph.n_volunteers, graph.n_items, graph.n_responses) == (2, 2, 4)
    assert graph.has_edge("anna", "x")
    assert graph.has_edge("x", "anna")
    assert not graph.has_edge("bert", "y")
    assert not graph.has_edge("anna", "bert")
    assert "zoe" not in graph
    assert ["anna"] not in graph
    assert ("volunteer", ["anna"]) not in graph
    assert ("anna", "x", "y") not in graph.edges
    assert graph.nodes() is not graph
    assert list(graph.nodes()) == list(graph)
    assert dict(graph.degree()) == dict(graph.degree)
    assert list(graph.edges()) == list(graph.edges)
    columns = {"volunteer": ["anna"], "item": ["x"], "label": [1]}
    alone = cg.CrowdGraph.from_responses(columns, volunteers={"volunteer": ["zoe"]})
    assert repr(alone.volunteers["zoe"].coworkers()) == "common_items of 0 volunteers"
    assert alone.volunteers["zoe"].coworkers() == {}
    assert alone.neighbors("zoe") == []


@pytest.mark.parametrize(("n", "end"), [(4, "'v4' 1"), (5, "'v5' 1"), (6, "'v5' 1, ...")])
def test_values_name_the_first_five_volunteers(n, end):
    names = [f"v{k}" for k in range(n + 1)]
    graph = cg.CrowdGraph.from_responses({"volunteer": names, "item": ["x"] * (n + 1), "label": [1] * (n + 1)})
    shown = repr(graph.volunteers["v0"].coworkers())
    assert shown.startswith(f"common_items of {n} volunteers: 'v1' 1, 'v2' 1")
    assert shown.endswith(end)


def test_shared_ids_have_names_that_say_the_kind():
    graph = cg.CrowdGraph.from_responses(SHARED)
    assert list(graph) == [("volunteer", 1), 2, ("item", 1), 3]
    assert graph.neighbors(("item", 1)) == [("volunteer", 1)]
    assert graph.neighbors(3) == [2, ("volunteer", 1)]
    assert graph.degree["volunteer", 1] == 2
    assert graph.volunteers[1].items == [1, 3]
    assert 1 in graph
    assert graph.has_edge(1, 1)
    assert not graph.has_edge(2, 1)
    assert not graph.has_edge(("volunteer", 2), ("item", 1))
    assert graph.to_pandas().shape == graph.edges.to_frame()[["volunteer", "item", "label"]].shape


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda graph: graph.neighbors(1),
            IdError,
            r"1 is the id of a volunteer and of an item. Write \('vol",
        ),
        (lambda graph: graph.degree[1], IdError, r"or \('item', 1\)"),
        (lambda graph: graph.nodes["eve"], UnknownIdError, "no volunteer or item 'eve' among 4"),
        (lambda graph: graph.nodes[["eve"]], UnknownIdError, "no volunteer or item"),
        (lambda graph: graph.neighbors(("item", 2)), UnknownIdError, "no item 2 among 2"),
        (lambda graph: graph.neighbors("33"), UnknownIdError, "Did you mean 3"),
        (lambda graph: graph.edges(data="lable"), ParameterError, "'label', 'time'. Did you mean 'label'"),
        (lambda graph: graph.volunteers[2].coworkers()[5], UnknownIdError, "no volunteer 5 among 1"),
        (lambda graph: graph.volunteers[2].coworkers().top(-1), ParameterError, "n=-1"),
        (lambda graph: graph.volunteers[2].participation_over_time(), CrowdGraphError, "no communities over time"),
        (lambda _: cg.CrowdGraph(SHARED), InputError, r"got a dict. Build .* with cg.CrowdGraph.from_responses"),
        (lambda _: cg.CrowdGraph(volunteers="anna"), InputError, "got a str"),
        (lambda _: cg.CrowdGraph(), InputError, "got nothing"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call(cg.CrowdGraph.from_responses(SHARED))


def test_edges_carry_what_annotations_say_about_each_response():
    graph = cg.simulate.crowd(n_volunteers=5, n_items=20, n_responses=60, seed=0).graph
    fit = cg.IBCC().fit(graph)
    annotated = graph.annotate(fit)
    confusion, surprise = response_confusion(graph, fit.confusion), response_surprise(graph, fit)
    for row, (_, _, data) in enumerate(annotated.edges(data=True)):
        np.testing.assert_array_equal(data["confusion"], confusion[row])
        assert data["surprise"] == surprise[row]
    frame = annotated.edges.to_frame()
    assert list(frame) == ["volunteer", "item", "label", "time", "surprise"]
    np.testing.assert_array_equal(frame["surprise"], surprise)
    assert list(graph.edges.to_frame()) == ["volunteer", "item", "label", "time"]
    only_track = graph.annotate(fit.confusion)
    assert set(next(only_track.edges(data=True))[2]) == {"label", "time", "confusion"}


def test_attributes_of_responses_come_before_computed_ones():
    columns = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["yes", "no"], "surprise": ["own", "mine"]}
    graph = cg.CrowdGraph.from_responses(columns)
    annotated = graph.annotate(cg.IBCC(confusion_prior=(4, 1)).fit(graph))
    assert [own for _, _, own in annotated.edges(data="surprise")] == ["own", "mine"]
    assert annotated.edges.to_frame()["surprise"].tolist() == ["own", "mine"]


def test_frames_and_data_of_nodes():
    ages = {"volunteer": ["anna", "bert"], "age": [30, 40]}
    columns = {"volunteer": ["anna", "bert"], "item": [1, 1], "label": [0, 1]}
    graph = cg.CrowdGraph.from_responses(columns, volunteers=ages)
    assert dict(graph.nodes(data=True)) == {
        "anna": {"kind": "volunteer", "age": 30},
        "bert": {"kind": "volunteer", "age": 40},
        1: {"kind": "item"},
    }
    rows = graph.nodes.to_frame(kind="arrow").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("volunteer", "anna", None, 1),
        ("volunteer", "bert", None, 1),
        ("item", None, 1, 2),
    ]


def test_participation_over_time():
    graph = graph_of(["v0", "v1"], ["x", "x"], [0, 1])
    annotated = graph.annotate(track_of([[0, 1], [0, 0], [0, -1]]))
    history = annotated.volunteers["v1"].participation_over_time()
    assert history.community.tolist() == [1, 0, -1]
    assert history.participation.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert list(history.to_frame()) == ["time", "count", "community", "participation_0", "participation_1"]
    assert repr(history) == "ParticipationHistory of 'v1': 3 snapshots, communities 1, 0, none"
    assert len(history) == 3


def test_the_graph_does_not_change():
    graph = cg.CrowdGraph.from_responses(SHARED)
    before = copy.deepcopy(graph)
    neighbours, degrees = graph.neighbors(3), graph.degree.array
    neighbours.clear()
    assert graph.neighbors(3) == [2, ("volunteer", 1)]
    with pytest.raises(ValueError, match="read-only"):
        degrees[0] = 9
    with pytest.raises(AttributeError, match="immutable"):
        graph.nodes = {}
    dict(graph.nodes(data=True))[2]["kind"] = "item"
    assert dict(graph.nodes(data=True))[2]["kind"] == "volunteer"
    assert graph.equals(before)
    assert list(copy.deepcopy(graph)) == list(graph)
    assert bool(graph.first(0))


def test_snapshots_of_equal_parts_and_lengths_of_time():
    days = [0, 1, 1, 35, 36, 89, 90]
    times = [dt.datetime(2026, 1, 1) + dt.timedelta(days=day) for day in days]
    columns = {"volunteer": list("abcabca"), "item": list("xxxyyyz"), "label": [0, 1, 0, 1, 0, 1, 0]}
    graph = cg.CrowdGraph.from_responses({**columns, "time": times})
    for every in ("30D", "30 d", dt.timedelta(days=30), "720h", np.timedelta64(30, "D")):
        views = list(graph.snapshots(every=every))
        assert [view.n_responses for view in views] == [3, 5, 6, 7]
        # Each view is what was known before the end of its length of time.
        for number, view in enumerate(views):
            assert view.equals(graph.before(times[0] + (number + 1) * dt.timedelta(days=30)))
    numbered = cg.CrowdGraph.from_responses({**columns, "time": days})
    assert [view.n_responses for view in numbered.snapshots(every=30)] == [3, 5, 6, 7]
    assert [view.n_responses for view in graph.snapshots(3)] == [2, 4, 7]
    assert [view.n_responses for view in graph.snapshots(9)] == [0, 1, 2, 3, 3, 4, 5, 6, 7]
    assert list(graph.first(0).snapshots(every="1W")) == []
    for every in ("1M", "soon", "30", "1e400D", f"{10**400}D"):
        with pytest.raises(TimeError, match="is not a length of time; give a number with the unit W, D, h, min, s"):
            graph.snapshots(every=every)
    with pytest.raises(TimeError, match="must be a number"):
        numbered.snapshots(every="30D")


@FEW
@given(
    st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 50), min_size=1, max_size=12)
    | st.lists(st.floats(-1e300, 1e300) | st.floats(0, 50), min_size=1, max_size=12),
    st.integers(1, 20),
)
def test_snapshots_of_numbers_agree_with_before(times, parts):
    times = sorted(times)
    columns = {"volunteer": ["a"] * len(times), "item": list(range(len(times))), "label": [0] * len(times)}
    graph = cg.CrowdGraph.from_responses({**columns, "time": times})
    every = (times[-1] - times[0]) / parts or 1.0
    counts = [view.n_responses for view in graph.snapshots(every=every)]
    assert counts[-1] == len(times)
    elapsed = np.array([float(time - times[0]) for time in times])
    for number, count in enumerate(counts):
        assert count >= np.count_nonzero(elapsed < (number + 1) * every * (1 - 1e-9))
        assert count <= np.count_nonzero(elapsed <= (number + 1) * every * (1 + 1e-9))


def test_notebooks_show_tables():
    crowd = cg.simulate.crowd(n_volunteers=8, n_items=20, n_responses=90, seed=0)
    graph = crowd.graph
    annotated = graph.annotate(cg.IBCC().fit(graph))
    volunteer = annotated.volunteers[next(iter(graph.volunteers))]
    shown = {
        "volunteers": (graph.volunteers, "5 of 8 volunteers"),
        "items": (graph.items, "5 of 20 items"),
        "volunteer": (volunteer, "confusion after the last response"),
        "item": (annotated.items[next(iter(graph.items))], "probability of each class"),
        "plain": (graph.volunteers[volunteer.id], f"{volunteer.n_responses} responses"),
        "history": (volunteer.confusion, "at all times"),
        "matrix": (volunteer.confusion.latest(), "true class"),
        "coworkers": (volunteer.coworkers(), "common_items"),
    }
    for thing, words in shown.values():
        html = thing._repr_html_()
        assert words in html
        assert html.count("<table>") == html.count("</table>")
    escaped = graph_of(["<b>"], ["x"], ["<i>"])
    snapshots = [communities_of([0], ids=["<b>"])]
    track = escaped.annotate(replace(track_of([[0]]), ids=["<b>"], snapshots=snapshots))
    for thing in (escaped.volunteers, track.volunteers["<b>"], track.volunteers["<b>"].participation_over_time()):
        assert "<b>" not in thing._repr_html_()


def test_autocomplete_leads_through_the_vocabulary():
    graph = cg.CrowdGraph.from_responses(SHARED)
    public = {name for name in dir(graph) if not name.startswith("_")}
    assert {"nodes", "edges", "degree", "neighbors", "has_edge", "volunteers", "items", "responses"} <= public
    volunteer = {name for name in dir(graph.volunteers[2]) if not name.startswith("_")}
    assert {"items", "coworkers", "degree", "neighbors", "participation_over_time"} <= volunteer
    assert [repr(view) for view in (graph.nodes, graph.edges, graph.degree)] == [
        "Nodes: 2 volunteers, 2 items",
        "Edges: 3 responses",
        "Degrees of 4 nodes",
    ]


def test_one_attribute_of_all_nodes():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]},
        volunteers={"volunteer": ["anna", "bert"], "team": ["red", "blue"]},
    )
    assert dict(graph.nodes(data="team")) == {"anna": "red", "bert": "blue", "x": None}
    assert dict(graph.nodes(data="kind"))["x"] == "item"
    with pytest.raises(ParameterError, match=r"data='tean': the nodes .* have 'kind', 'team'\. Did you mean 'team'"):
        graph.nodes(data="tean")


def test_a_subgraph_of_nodes_of_both_kinds():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna", "bert", "anna", "x"], "item": ["x", "x", "y", "y"], "label": [1, 3, 1, 1]}
    )
    part = graph.subgraph(["anna", ("item", "x"), "y"])
    assert part.equals(graph.subgraph(volunteers=["anna"], items=["x", "y"]))
    for wrong, error, words in (
        (["x"], IdError, "the id of a volunteer and of an item"),
        (["nobody"], UnknownIdError, "no volunteer or item 'nobody'"),
        ("anna", ParameterError, "must be several values"),
    ):
        with pytest.raises(error, match=words):
            graph.subgraph(wrong)
    with pytest.raises(ParameterError, match="either nodes of both kinds"):
        graph.subgraph(["anna"], items=["x"])


def test_some_responses_are_gathered_as_all_are(graph):
    some = graph.responses[1:5]
    for rows, codes in ((some.by_volunteer, some.volunteer), (some.by_item, some.item)):
        for code in range(3):
            assert rows.rows(code).tolist() == np.flatnonzero(codes == code).tolist()
