"""Graphs with their annotations through networkx, igraph and GraphML, and back."""

import datetime as dt
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from zoneinfo import ZoneInfo

import igraph
import networkx as nx
import numpy as np
import pytest
from builders import communities_of, crowd, graph_of, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from results import same_graph, same_result
from strategies import answered_graphs, graphs

import crowdgraph as cg
from crowdgraph.core.response_annotations import response_confusion, response_surprise
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphWarning,
    IdError,
    InputError,
    LabelError,
    ParameterError,
    TimeError,
)

CLASSES = ("no", "yes")
SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def through_networkx(graph, folder, **options):
    return cg.CrowdGraph.from_networkx(graph.to_networkx(**options))


def through_igraph(graph, folder, **options):
    return cg.CrowdGraph.from_igraph(graph.to_igraph(**options))


def through_graphml(graph, folder, **options):
    graph.to_graphml(folder / "g.graphml", **options)
    return cg.read_graphml(folder / "g.graphml")


def through_networkx_graphml(graph, folder, **options):
    graph.to_graphml(folder / "g.graphml", **options)
    return cg.CrowdGraph.from_networkx(nx.read_graphml(folder / "g.graphml"))


DOORS = [through_networkx, through_igraph, through_graphml]
doors = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)

# DynIBCC needs a choice of labels.
two_labels = answered_graphs().filter(lambda graph: len(graph.labels) > 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doors")


def annotate(graph, rng):
    """Annotate a graph with results of all types, in which every number is different."""
    ids = graph.volunteers.ids
    n = len(ids)
    prior = 1 + rng.random((len(graph.classes), len(graph.labels)))
    static = cg.IBCC(confusion_prior=prior).fit(graph)
    confusion = static.confusion.latest()
    weights = np.triu(rng.random((n, n)), 1)
    shares = rng.dirichlet(np.ones(2), n)
    early = communities_of(shares[: n - 1], ids=ids[: n - 1], confusion=confusion)
    track = cg.CommunityTrack(
        ids=ids,
        times=graph.responses.time[[0, -1]],
        counts=[1, len(graph.responses)],
        snapshots=(early, communities_of(shares, ids=ids, confusion=confusion)),
        clock=graph.responses.clock,
        method="by hand",
        params={"hindsight": False, "sweeps": (1, 2)},
        confidence=[[0.5, np.nan], [1.0, 0.25]],
        reasons=("", ""),
    )
    results = (
        static,
        cg.DynIBCC(confusion_prior=prior).fit(graph),
        network_of(weights + weights.T, ids=ids, method="a network", params={"of": (1, 2.5, None)}),
        communities_of(shares[: n - 1], ids=ids[: n - 1]),
        track,
    )
    for result in results:
        graph = graph.annotate(result)
    return graph


# There and back


@doors
@settings(max_examples=40)
@given(graph=graphs())
def test_any_graph_comes_back(door, folder, graph):
    assert door(graph, folder).equals(graph)


@doors
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.NoTimesWarning")
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
@settings(max_examples=15)
@given(graph=two_labels, seed=st.integers(0, 100), history=st.sampled_from(["latest", "full"]))
def test_annotations_come_back(door, folder, graph, seed, history):
    graph = annotate(graph, np.random.default_rng(seed))
    assert same_graph(door(graph, folder, history=history), graph)


def test_annotations_come_back_as_the_same_objects():
    graph = annotate(crowd().graph, np.random.default_rng(0))
    for back in (through_networkx(graph, None), through_igraph(graph, None)):
        assert all(back.annotations[name] is result for name, result in graph.annotations.items())


HOSTILE = ['<a> & "b"', "c'\r\n\t", "]]> \U0001f52d", "", " d "]


@doors
@pytest.mark.parametrize(
    "ids",
    [HOSTILE, [3, -(2**62), 0, 1, 2], [("a", 1), 2.5, dt.date(2026, 1, 1), b"x", frozenset({1})], [True, "x", 7, 8, 9]],
    ids=["text", "integers", "all kinds", "mixed"],
)
def test_odd_ids_come_back_though_volunteers_and_items_share_them(door, folder, ids):
    graph = graph_of(ids, ids[::-1], ["no", "yes", "no", "no", "yes"])
    back = door(graph, folder)
    assert back.equals(graph)
    assert [type(node) for node in back.volunteers] == [type(node) for node in ids]


@doors
@pytest.mark.parametrize("labels", [HOSTILE, [1, 2, 3, -4, 5], [0.5, 1.5, -0.25, 1e300, 2.0], [("a", 1), "b", 2, True]])
def test_labels_and_gold_come_back(door, folder, labels):
    table = {"volunteer": ["a", "b", "c"], "item": ["x", "y", "z"], "label": [labels[0], None, labels[0]]}
    gold = {"x": labels[0], "y": {labels[0]: 0.1, labels[1]: 0.9}, "stranger": labels[1]}
    with pytest.warns(CrowdGraphWarning):
        graph = cg.CrowdGraph.from_responses(table, labels=labels, classes=labels[:2], gold=gold, missing="keep")
    back = door(graph, folder)
    assert back.equals(graph)
    assert list(map(type, back.labels)) == list(map(type, graph.labels))
    assert back.gold.n_unmatched == graph.gold.n_unmatched == 1


AMSTERDAM = ZoneInfo("Europe/Amsterdam")
TIMES = {
    "zone": [dt.datetime(2026, 10, 25, 2, 30, tzinfo=AMSTERDAM, fold=fold) for fold in (0, 1)],
    "offset": [dt.datetime(2026, 1, 1, hour, tzinfo=dt.timezone(dt.timedelta(hours=-3.5))) for hour in (1, 2)],
    "nanoseconds": np.array([1, 10**18 + 1], dtype="datetime64[ns]"),
    "seconds": np.array([1, 10**9], dtype="datetime64[s]"),
    "floats": [0.1, 1e300],
}


@doors
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_times_come_back(door, folder, times):
    table = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": [0, 1], "time": times}
    graph = cg.CrowdGraph.from_responses(table)
    back = door(graph, folder)
    assert back.equals(graph)
    assert_array_equal(back.responses.time, graph.responses.time)


ATTRIBUTES = {
    "numbers": np.array([1, 2], dtype=np.int8),
    "large": np.array([2**64 - 1, 0], dtype=np.uint64),
    "single": np.array([0.1, np.inf], dtype=np.float32),
    "gaps": np.array([np.nan, -0.0]),
    "flag": np.array([True, False]),
    "seen": np.array(["2026-01-01T00:00:00.000000001", "NaT"], dtype="datetime64[ns]"),
    "mixed": [1, "1"],
    "objects": [(1, "a"), None],
    "control": ["a\0", "b"],
    "maybe": [None, 2**62],
    "name": ["Anna", "Bert"],
    "type": ["learner", "expert"],
    "weight": [1, 2],
    "surprise": ["much", "little"],
}


@doors
@pytest.mark.filterwarnings("ignore:The responses have attributes called:crowdgraph.errors.CrowdGraphWarning")
def test_attributes_of_all_types_come_back(door, folder):
    table = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": [0, 1], **ATTRIBUTES}
    volunteers = {"volunteer": ["a", "b"], "since": [2020, 2021], "both": [1, 2], **ATTRIBUTES}
    items = {"item": ["x", "y"], "both": ["p", "q"]}
    graph = cg.CrowdGraph.from_responses(table, volunteers=volunteers, items=items)
    graph = graph.annotate(cg.IBCC().fit(graph))
    back = door(graph, folder)
    assert same_graph(back, graph)
    for name, column in graph.volunteers.attributes.items():
        assert back.volunteers.attributes[name].dtype == column.dtype, name


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.NoTimesWarning")
@settings(max_examples=10)
@given(graph=two_labels, seed=st.integers(0, 9))
def test_networkx_reads_our_graphml_and_we_read_what_it_read(folder, graph, seed):
    graph = annotate(graph, np.random.default_rng(seed))
    assert same_graph(through_networkx_graphml(graph, folder), graph)


# What nodes and responses hold


@pytest.fixture(scope="module")
def annotated():
    return annotate(crowd(n_volunteers=8, n_items=30, n_responses=120).graph, np.random.default_rng(1))


def test_nodes_and_edges_hold_the_latest(annotated):
    network = annotated.to_networkx()
    fit, groups = annotated.fit(), annotated.communities()
    for code, volunteer in enumerate(annotated.volunteers):
        data = network.nodes["volunteer", volunteer]
        assert_array_equal(data["confusion"], fit.confusion.of(volunteer).latest().mean)
        covered = code < len(groups.ids)
        assert data["community"] == (groups.assignment[code] if covered else -1)
        assert ("participation" in data) is covered
        assert not {"confusion_times", "confusion_history", "participation_history"} & data.keys()
    surprise = response_surprise(annotated, fit)
    for *_, data in network.edges(data=True):
        assert data["surprise"] == surprise[data["position"]]
        assert "confusion" not in data
    for item, probs in zip(annotated.items, annotated.item_probs(), strict=True):
        assert_array_equal(network.nodes["item", item]["class_probs"], probs)


def test_full_histories_are_those_of_the_tracks(annotated):
    network = annotated.to_networkx(history="full")
    track, groups = annotated.confusion(), annotated.community_track()
    confusion = response_confusion(annotated, track)
    for volunteer in annotated.volunteers:
        data, history = network.nodes["volunteer", volunteer], track.of(volunteer)
        assert_array_equal(data["confusion_times"], history.times)
        assert_array_equal(data["confusion_history"], history.mean)
        assert_array_equal(data["participation_times"], groups.times)
        assert_array_equal(data["participation_history"], groups.of(volunteer))
        assert_array_equal(data["community_history"], groups.assignment[:, groups.table.code(volunteer)])
    for *_, data in network.edges(data=True):
        assert_array_equal(data["confusion"], confusion[data["position"]])


def test_a_static_model_has_one_entry_of_history():
    graph = crowd().graph
    fit = cg.IBCC().fit(graph)
    network = graph.annotate(fit).to_networkx(history="full")
    for volunteer in graph.volunteers:
        data = network.nodes["volunteer", volunteer]
        assert_array_equal(data["confusion_times"], graph.responses.time[-1:])
        assert_array_equal(data["confusion_history"], fit.confusion.of(volunteer).latest().mean[None])


@pytest.mark.parametrize("history", ["latest", "full"])
def test_igraph_holds_what_networkx_does(annotated, history):
    network, vertices = annotated.to_networkx(history=history), annotated.to_igraph(history=history)
    for vertex in vertices.vs:
        data = network.nodes[vertex["kind"], vertex["id"]]
        held = {name: value for name, value in vertex.attributes().items() if value is not None}
        assert held.keys() - {"type"} == data.keys() - {"bipartite"}
        assert all(same_result(held[name], data[name]) for name in data.keys() - {"bipartite"})
    by_position = {data["position"]: data for *_, data in network.edges(data=True)}
    for edge in vertices.es:
        assert all(map(same_result, edge.attributes().values(), by_position[edge["position"]].values()))
    assert vertices.is_bipartite()


def test_graphml_holds_histories_as_json_and_everybody_reads_it(annotated, tmp_path):
    annotated.to_graphml(tmp_path / "g.graphml", history="full")
    network = nx.read_graphml(tmp_path / "g.graphml")
    first = next(iter(annotated.volunteers))
    data, history = network.nodes[f"volunteer:{first}"], annotated.confusion().of(first)
    assert_array_equal(json.loads(data["confusion_history"]), history.mean)
    assert json.loads(data["confusion_times"]) == [str(time) for time in history.times]
    assert data["confusion[no,yes]"] == history.latest().mean[0, 1]
    assert data["label"] == first
    assert isinstance(data["community"], int)
    other = igraph.Graph.Read_GraphML(str(tmp_path / "g.graphml"))
    assert (other.vcount(), other.ecount()) == (len(network), len(annotated.responses))
    assert other.es["surprise"] == pytest.approx(response_surprise(annotated, annotated.fit()))
    root = ET.parse(tmp_path / "g.graphml").getroot()  # noqa: S314 - written above
    keys = {one.get("id") for one in root.iter(f"{SPACE}key")}
    assert {one.get("key") for one in root.iter(f"{SPACE}data")} == keys
    with pytest.raises(InputError, match=r"read the file with crowdgraph.read_graphml"):
        cg.CrowdGraph.from_igraph(other)


def test_attributes_go_before_annotations_of_their_name():
    table = {"volunteer": ["a", "b"], "item": ["x", "x"], "label": ["no", "yes"], "surprise": [1, 2]}
    graph = cg.CrowdGraph.from_responses(table, volunteers={"volunteer": ["a", "b"], "community": ["north", "south"]})
    graph = graph.annotate(cg.IBCC().fit(graph)).annotate(communities_of([0, 1], ids=["a", "b"]))
    with pytest.warns(CrowdGraphWarning) as caught:
        network = graph.to_networkx()
    assert [str(one.message).split(",")[0] for one in caught] == [
        "The volunteers have attributes called 'community' of their own",
        "The responses have attributes called 'surprise' of their own",
    ]
    assert network.nodes["volunteer", "a"]["community"] == "north"
    assert cg.CrowdGraph.from_networkx(network).equals(graph)


# Edited graphs


def test_an_edited_graph_drops_what_does_not_match_and_says_so(annotated, tmp_path):
    network = annotated.to_networkx()
    last = list(annotated.volunteers)[-1]
    network.remove_node(("volunteer", last))
    with pytest.warns(CrowdGraphWarning) as caught:
        back = cg.CrowdGraph.from_networkx(network)
    named = [str(one.message).split(" is left out")[0] for one in caught]
    assert named == [f"The annotation {name!r}" for name in ("ibcc", "dynibcc", "a network", "by hand over time")]
    assert list(back.annotations) == ["by hand"]
    assert len(back.volunteers) == len(annotated.volunteers) - 1


def test_added_attributes_become_attributes(annotated, tmp_path):
    network = annotated.to_networkx()
    nx.set_node_attributes(network, dict(nx.degree_centrality(network)), "centrality")
    assert "centrality" in cg.CrowdGraph.from_networkx(network).volunteers.attributes
    annotated.to_graphml(tmp_path / "g.graphml")
    read = nx.read_graphml(tmp_path / "g.graphml")
    nx.set_node_attributes(read, dict(nx.degree_centrality(nx.Graph(read))), "centrality")
    nx.write_graphml(read, tmp_path / "h.graphml")
    back = cg.read_graphml(tmp_path / "h.graphml")
    assert list(back.items.attributes) == ["centrality"]
    assert all(same_result(back.annotations[name], result) for name, result in annotated.annotations.items())


def test_edited_values_are_not_rounded_to_the_old_type():
    table = {"volunteer": ["a"], "item": ["x"], "label": ["no"], "n": [1]}
    network = cg.CrowdGraph.from_responses(table).to_networkx()
    next(iter(network.edges(data=True)))[2]["n"] = 1.5
    assert cg.CrowdGraph.from_networkx(network).responses[0].attributes == {"n": 1.5}


def test_other_gold_leaves_annotations_out(annotated):
    first = next(iter(annotated.items))
    with pytest.warns(CrowdGraphWarning, match="may have seen other gold"):
        back = cg.CrowdGraph.from_networkx(annotated.to_networkx(), gold={first: "no"})
    assert dict(back.gold) == {first: "no"}
    assert not back.annotations


# What was known at a moment


def altered_after(graph, n, seed):
    """The graph with other responses after the first `n`, at other times."""
    rng = np.random.default_rng(seed)
    table = graph.responses.table
    columns = {
        "volunteer": (table.volunteer, len(graph.volunteers)),
        "item": (table.item, len(graph.items)),
        "label": (table.label, len(graph.labels)),
    }
    changed = {}
    for name, (column, size) in columns.items():
        changed[name] = column.copy()
        changed[name][n:] = rng.integers(0, size, len(column) - n)
    time = table.time.copy()
    time[n:] += 1 + np.sort(rng.integers(0, 1000, len(time) - n))
    return graph.replace(responses=replace(table, **changed, time=time))


def pipeline(graph, n_view):
    """Annotate a graph with everything that saw all of it, a fit of what came first, and a track."""
    view = graph.first(n_view)
    track = cg.dynamics.over_time(
        graph,
        counts=[150, 300, 450, 600],
        network=cg.networks.task_cooccurrence,
        model=cg.IBCC(),
        detector=cg.Leiden(),
        restarts=1,
        seed=0,
    )
    fit = cg.DynIBCC().fit(graph)
    network = cg.networks.task_cooccurrence(graph)
    hindsight = replace(track, params={**track.params, "hindsight": True})
    for name, result in {
        "first": cg.IBCC().fit(view),
        "all": fit,
        "only confusion": fit.confusion,
        "network": network,
        "groups": cg.Leiden().detect(network, seed=0),
        "track": track,
        "hindsight": hindsight,
    }.items():
        graph = graph.annotate(result, name=name)
    return graph


def networkx_content(graph, at, folder):
    network = graph.to_networkx(at=at, history="full")
    return (
        dict(network.nodes(data=True)),
        sorted(network.edges(data=True), key=lambda edge: edge[2]["position"]),
        {
            name: {part: value for part, value in result.__dict__.items() if part in result.__dataclass_fields__}
            if name == "track"
            else name
            for name, result in network.graph["crowdgraph"]["annotations"].items()
        },
        network.graph["crowdgraph"]["left_out"],
    )


def igraph_content(graph, at, folder):
    network = graph.to_igraph(at=at, history="full")
    record = {name: value for name, value in network["crowdgraph"].items() if name != "annotations"}
    return (
        [one.attributes() for one in network.vs],
        [one.attributes() for one in network.es],
        network.get_edgelist(),
        record,
    )


def graphml_content(graph, at, folder):
    graph.to_graphml(folder / "at.graphml", at=at, history="full")
    return (folder / "at.graphml").read_text()


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("content", [networkx_content, igraph_content, graphml_content])
@pytest.mark.parametrize(("n", "n_view"), [(0, 100), (80, 100), (200, 200), (310, 150), (599, 599)])
def test_the_future_does_not_leak(content, folder, n, n_view):
    graph = crowd(n_volunteers=20, n_items=150, n_responses=600, n_communities=2, mixing=0.05).graph
    at = graph.responses.time[max(n - 1, 0)] - np.timedelta64(int(n == 0), "s")
    n = int(np.searchsorted(graph.responses.time, at, side="right"))
    one = content(pipeline(graph, n_view), at, folder)
    for seed in range(2 if n else 1):
        altered = altered_after(graph, n, seed)
        other = content(pipeline(altered, n_view), at, folder)
        # Comparing outside of the assertion spares a report of all differences.
        is_same = same_result(one, other)
        assert is_same


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_the_test_sees_leaks(folder):
    graph = crowd(n_volunteers=20, n_items=150, n_responses=600).graph
    one, other = (
        networkx_content(pipeline(version, 100), None, folder) for version in (graph, altered_after(graph, 590, 0))
    )
    are_same = same_result(one[0], other[0]), same_result(one[1], other[1]), same_result(one[2], other[2])
    assert are_same == (False, False, False)


def test_what_provably_saw_only_the_past_stays():
    graph = crowd(n_volunteers=20, n_items=150, n_responses=600, n_communities=2, mixing=0.05).graph
    graph = pipeline(graph, 200)
    at = graph.responses.time[309]
    with pytest.warns(CrowdGraphWarning) as caught:
        network = graph.to_networkx(at=at, history="full")
    assert len(caught) == 1
    assert "'all', 'only confusion', 'network', 'groups', 'hindsight' are left out at" in str(caught[0].message)
    about = network.graph["crowdgraph"]
    assert about["left_out"] == ["all", "only confusion", "network", "groups", "hindsight"]
    assert list(about["annotations"]) == ["first", "track"]
    assert network.number_of_edges() == 310
    track = graph.community_track("track")
    cut = about["annotations"]["track"]
    assert_array_equal(cut.counts, [150, 300])
    assert cut.params["sweeps"] == track.params["sweeps"][:2]
    width = cut.n_communities_ever
    for volunteer in graph.volunteers:
        data = network.nodes["volunteer", volunteer]
        assert_array_equal(data["confusion"], graph.fit("first").confusion.of(volunteer).latest().mean)
        assert_array_equal(data["participation_history"], track.of(volunteer)[:2, :width])


def test_a_track_gives_confusion_where_no_fit_stays():
    graph = pipeline(crowd(n_volunteers=20, n_items=150, n_responses=600).graph, 600)
    with pytest.warns(CrowdGraphWarning):
        network = graph.to_networkx(at=graph.responses.time[400])
    then = graph.community_track("track")[1].confusion
    for volunteer in graph.volunteers:
        assert_array_equal(network.nodes["volunteer", volunteer]["confusion"], then.of(volunteer).mean)


@doors
def test_moments_outside_the_data(annotated, folder, door):
    last = annotated.responses[-1].time
    assert same_graph(door(annotated, folder, at=last), annotated)
    with pytest.warns(CrowdGraphWarning):
        early = door(annotated, folder, at="1999-01-01")
    assert early.equals(annotated.before("1999-01-01"))
    with pytest.raises(TimeError, match="soon"):
        door(annotated, folder, at="soon")
    with pytest.raises(ParameterError, match="history"):
        door(annotated, folder, history="all")


# Graphs of other programs


def test_the_conventions_of_networkx_are_understood():
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        network = kind()
        network.add_nodes_from(["a", "b"], bipartite=0)
        network.add_nodes_from([1, 2], bipartite=1)
        network.add_edges_from([("a", 1, {"label": "yes"}), ("b", 2, {"label": "no"})])
        graph = cg.CrowdGraph.from_networkx(network)
        assert list(graph.volunteers) == ["a", "b"]
        assert list(graph.items) == [1, 2]
        assert not graph.items.attributes


def test_the_conventions_of_igraph_are_understood():
    network = igraph.Graph.Bipartite([0, 0, 1, 1], [(0, 2), (3, 1)], directed=False)
    network.es["label"] = ["yes", "no"]
    assert list(cg.CrowdGraph.from_igraph(network).volunteers) == [0, 1]
    network.vs["name"] = ["a", "b", "x", "y"]
    network.vs["gold"] = [None, None, "yes", None]
    network.vs["age"] = [30, None, None, None]
    graph = cg.CrowdGraph.from_igraph(network)
    assert [(one.volunteer, one.item) for one in graph.responses] == [("a", "x"), ("b", "y")]
    assert dict(graph.gold) == {"x": "yes"}
    assert graph.volunteers["a"].attributes == {"age": 30}
    assert not graph.items.attributes


def test_graphml_of_networkx_is_read(tmp_path):
    network = nx.MultiGraph()
    network.add_node("anna", bipartite=0, since=2020, share=0.5, expert=True)
    network.add_node("x", kind="item", gold="yes")
    network.add_edge("x", "anna", label="yes", time=3)
    network.add_edge("x", "anna", label="no", time=1)
    nx.write_graphml(network, tmp_path / "g.graphml")
    graph = cg.read_graphml(tmp_path / "g.graphml")
    assert [(one.label, one.time) for one in graph.responses] == [("no", 1), ("yes", 3)]
    assert graph.volunteers["anna"].attributes == {"since": 2020, "share": 0.5, "expert": True}
    assert dict(graph.gold) == {"x": "yes"}


def graphml(body, keys="", begin=""):
    declared = (
        '<key id="k" for="node" attr.name="kind" attr.type="string"><default>item</default></key>'
        '<key id="l" for="edge" attr.name="label" attr.type="string"/>'
    )
    return (
        f'<?xml version="1.0"?>{begin}<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns">'.replace(
            "g:", ""
        ).replace("xmlns:g", "xmlns")
        + f"{declared}{keys}<graph edgedefault='undirected'>{body}</graph></graphml>"
    )


ANNA = '<node id="anna"><data key="k">volunteer</data></node>'
ANSWER = '<edge source="anna" target="x"><data key="l">yes</data></edge>'


def test_defaults_descriptions_and_drawings_are_understood(write):
    drawing = '<key id="d" yfiles.type="nodegraphics" for="node"/>'
    body = f'<desc>A crowd</desc>{ANNA}<node id="x"><data key="d"><y><z w="1">text</z></y></data></node>{ANSWER}'
    graph = cg.read_graphml(write(graphml(body, keys=drawing), "g.graphml"))
    assert [(one.volunteer, one.item, one.label) for one in graph.responses] == [("anna", "x", "yes")]


BOMB = '<!DOCTYPE z [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'
BAD_FILES = [
    ("", "is not XML .* expected GraphML"),
    ("volunteer,item,label\n", "is not XML"),
    ("<gexf/>", "is not GraphML: it begins with <gexf>.*read_gexf"),
    ("<graphml/>", "has no nodes"),
    (graphml(ANNA)[:-20], "is cut short or damaged"),
    (graphml(f"{ANNA}<node id='x'>&c;</node>", begin=BOMB), "document type declaration .* refused"),
    (graphml(f"{ANNA}{ANNA}"), "has two nodes 'anna'"),
    (graphml(f"{ANNA}{ANSWER}"), "has edges to nodes that it does not have: 'x'"),
    (graphml(f"{ANNA}<node/>"), "has a <node> without id="),
    (graphml(f"{ANNA}<node id='x'/><edge source='x'/>"), "has a <edge> without target="),
    (graphml(f"{ANNA}<node id='x'/><edge source='x' target='anna'/>"), "has no label"),
    (graphml(f"{ANNA}<node id='x'><data key='z'>1</data></node>"), "the key 'z', which it does not declare"),
    (graphml(ANNA, keys='<key id="n" for="node" attr.name="n" attr.type="complex"/>'), "declares the type 'complex'"),
    (
        graphml(
            '<node id="x"><data key="n">many</data></node>',
            keys='<key id="n" for="node" attr.name="n" attr.type="int"/>',
        ),
        "the attribute 'n' to be of type int, and has 'many'",
    ),
    (graphml(f"{ANNA}<hyperedge/>"), "has a hyperedge"),
    (graphml(f"<node id='y'><graph/></node>{ANNA}"), "has several graphs"),
    (graphml("<node id='y'><data key='k'>person</data></node>"), "Node 'y' has kind='person'"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_bad_graphml_is_refused(write, content, words):
    with pytest.raises(InputError, match=words):
        cg.read_graphml(write(content, "g.graphml"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for path, words in (
        (tmp_path / "no.graphml", r"no.graphml' does not exist or is not a file; give the path of a GraphML file"),
        (tmp_path, "' is a directory, not a file"),
        (None, "^None does not exist or is not a file"),
    ):
        with pytest.raises(InputError, match=words):
            cg.read_graphml(path)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_files_that_are_cut_short_are_refused(annotated, tmp_path, cut):
    annotated.to_graphml(tmp_path / "g.graphml")
    content = (tmp_path / "g.graphml").read_bytes()
    (tmp_path / "g.graphml").write_bytes(content[: int(cut * len(content))])
    with pytest.raises(InputError, match="is cut short or damaged"):
        cg.read_graphml(tmp_path / "g.graphml")


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ('"version": 1', '"version": 99', InputError, "upgrade"),
        ('"settings"', '"setting"', InputError, "delete it"),
        ('{"settings"', "settings", InputError, "delete it"),
        (">UEsDB", ">UEsXX", InputError, "annotations in the file are damaged"),
        ('<data key="e0">yes</data>', '<data key="e0">perhaps</data>', LabelError, "perhaps"),
        (
            '<data key="e1">2026',
            '<data key="e1">soon',
            InputError,
            "times of the responses should be of type datetime64",
        ),
    ],
)
def test_files_of_ours_that_were_damaged_are_refused(annotated, tmp_path, old, new, error, words):
    annotated.to_graphml(tmp_path / "g.graphml")
    content = (tmp_path / "g.graphml").read_text()
    assert old in content
    (tmp_path / "g.graphml").write_text(content.replace(old, new))
    with pytest.raises(error, match=words):
        cg.read_graphml(tmp_path / "g.graphml")


def directed(*edges):
    network = nx.DiGraph()
    network.add_node("anna", kind="volunteer")
    network.add_node("x", kind="item")
    network.add_edges_from(edges, label=1)
    return network


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (directed(("x", "anna")), "'x' -> 'anna' leads from an item to a volunteer"),
        (nx.path_graph(2), "Node 0 has kind=None and bipartite=None"),
        (nx.Graph(crowdgraph={"settings": 1}), "delete it"),
    ],
)
def test_networks_that_are_no_crowds_are_refused(network, words):
    with pytest.raises(InputError, match=words):
        cg.CrowdGraph.from_networkx(network)


def bad_igraph(**vertices):
    network = igraph.Graph(2, [(0, 1)])
    network.es["label"] = ["yes"]
    for name, values in vertices.items():
        network.vs[name] = values
    return network


@pytest.mark.parametrize(
    ("network", "error", "words"),
    [
        (nx.Graph(), InputError, "Expected an igraph graph; got a Graph"),
        (bad_igraph(), InputError, "type=0 for volunteers"),
        (bad_igraph(type=[0, 0]), InputError, "joins two volunteers"),
        (bad_igraph(type=[0, 1], id=[["a"], "b"]), IdError, "cannot be an id"),
        (bad_igraph(type=[0, 1], confusion=[1, 2]), ColumnError, "cannot be called 'confusion'"),
    ],
)
def test_bad_igraph_graphs_are_refused(network, error, words):
    with pytest.raises(error, match=words):
        cg.CrowdGraph.from_igraph(network)


def test_attributes_that_a_file_cannot_hold_are_named(tmp_path):
    table = {"volunteer": ["a"], "item": ["x"], "label": ["no"], "thing": [object()]}
    with pytest.raises(IdError, match="The attribute 'thing' of the responses holds"):
        cg.CrowdGraph.from_responses(table).to_graphml(tmp_path / "g")
    assert not list(tmp_path.iterdir())
