"""networkx and igraph graphs, GraphML and GEXF."""

import datetime as dt

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import ColumnError, IdError, InputError


@given(graphs())
def test_networkx_round_trip(graph):
    assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)


@given(graphs())
def test_networkx_round_trip_of_views(graph):
    for view in (graph.first(0), graph.first(len(graph.responses) // 2)):
        assert cg.CrowdGraph.from_networkx(view.to_networkx()).equals(view)


def test_shape_of_the_networkx_graph(graph, fit):
    network = graph.annotate(fit).to_networkx()
    assert isinstance(network, nx.MultiGraph)
    assert nx.bipartite.sets(network, {n for n, side in network.nodes(data="bipartite") if side == 0})
    assert network.number_of_edges() == 6
    anna = network.nodes["volunteer", "anna"]
    assert (anna["kind"], anna["id"]) == ("volunteer", "anna")
    np.testing.assert_array_equal(anna["confusion"], fit.confusion.of("anna").latest().mean)
    assert network.nodes["item", "x"]["gold"] == "yes"
    assert network.nodes["item", "x"]["class_probs"].tolist() == [0.2, 0.8]
    assert sorted(data["time"] for *_, data in network.edges(data=True)) == [1, 2, 3, 3, 5, 9]


def test_at_a_moment(graph, fit):
    annotated = graph.annotate(fit)
    network = annotated.to_networkx(at=3)
    assert network.number_of_edges() == 4
    np.testing.assert_array_equal(network.nodes["volunteer", "anna"]["confusion"], fit.confusion.of("anna").at(3).mean)
    assert annotated.to_igraph(at=3).ecount() == 4


def test_ns_times_survive():
    times = np.array([5, 1], dtype="datetime64[ns]")
    graph = cg.CrowdGraph.from_responses({"volunteer": [1, 2], "item": [1, 1], "label": [0, 1], "time": times})
    assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)


def test_a_graph_made_by_hand():
    network = nx.Graph()
    network.add_node("anna", kind="volunteer", country="nl")
    network.add_node("x", kind="item", gold="yes")
    network.add_edge("x", "anna", label="yes", time=dt.datetime(2026, 1, 1))
    graph = cg.CrowdGraph.from_networkx(network)
    assert graph.volunteers["anna"].attributes == {"country": "nl"}
    assert dict(graph.gold) == {"x": "yes"}
    assert graph.responses[0].time == dt.datetime(2026, 1, 1)


def by_hand(node=None, edge=None, **graph):
    network = nx.MultiGraph(**graph)
    network.add_node("anna", **{"kind": "volunteer", **(node or {})})
    network.add_node("x", kind="item")
    network.add_edges_from([("anna", "x", {"label": 1} if edge is None else edge)])
    return network


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (by_hand({"kind": "person"}), InputError, "Node 'anna' has kind='person'"),
        (by_hand({"kind": "item"}), InputError, "joins two items"),
        (by_hand(edge={}), InputError, "has no label"),
        (by_hand(edge={"label": 1, "volunteer": "eve"}), ColumnError, "edge attribute 'volunteer'"),
        (by_hand({"volunteer": "eve"}), ColumnError, "node attribute 'volunteer'"),
        (by_hand({"id": ["a"]}), IdError, "cannot be an id"),
        (by_hand(crowdgraph="yes"), InputError, "delete it"),
        (by_hand(crowdgraph={"classes": ["a"]}), InputError, "delete it"),
        ("graph", InputError, "Expected a networkx graph"),
    ],
)
def test_bad_networks(network, error, message):
    with pytest.raises(error, match=message):
        cg.CrowdGraph.from_networkx(network)


@given(graphs(time_kinds=("int", "naive")))
def test_igraph_holds_everything(graph):
    made = graph.to_igraph()
    n = len(graph.volunteers)
    assert made.vs["id"] == [*graph.volunteers, *graph.items]
    assert made.vs["kind"] == ["volunteer"] * n + ["item"] * len(graph.items)
    ends = [(made.vs[edge.source]["id"], made.vs[edge.target]["id"]) for edge in made.es]
    assert ends == [(r.volunteer, r.item) for r in graph.responses]
    assert made.es["label"] == [r.label for r in graph.responses]
    assert made.es["time"] == [r.time for r in graph.responses]
    for name in graph.responses.attributes:
        assert [r.attributes[name] for r in graph.responses] == made.es[name]
    assert made.vs["since"][:n] == [graph.volunteers[v].attributes["since"] for v in graph.volunteers]


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@given(graph=graphs(id_kinds=("int", "str")))
def test_files_for_gephi(kind, tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("gephi") / f"crowd.{kind}"
    getattr(graph, f"to_{kind}")(path)
    back = getattr(nx, f"read_{kind}")(path)
    assert back.number_of_edges() == len(graph.responses)
    assert {f"volunteer:{v}" for v in graph.volunteers} == {
        n for n, kind in back.nodes(data="kind") if kind == "volunteer"
    }


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_annotations_reach_the_files(kind, graph, fit, tmp_path):
    groups = cg.Communities(ids=["anna"], participation=[[0.25, 0.75]], modularity=0.0, method="m")
    getattr(graph.annotate(fit).annotate(groups), f"to_{kind}")(tmp_path / "crowd")
    back = getattr(nx, f"read_{kind}")(tmp_path / "crowd")
    anna = back.nodes["volunteer:anna"]
    assert anna["confusion[yes,no]"] == pytest.approx(fit.confusion.of("anna").latest().mean[1, 0])
    assert anna["participation[1]"] == 0.75
    assert back.nodes["item:x"]["p(yes)"] == 0.8
    assert list(tmp_path.iterdir()) == [tmp_path / "crowd"]


def test_names_that_files_cannot_carry(tmp_path):
    graph = cg.CrowdGraph.from_responses({"volunteer": [1, "1"], "item": ["x", "x"], "label": [0, 1]})
    with pytest.raises(IdError, match="become the same text in a file: 'volunteer:1'"):
        graph.to_graphml(tmp_path / "a")
    bell = cg.CrowdGraph.from_responses({"volunteer": ["a\x0b"], "item": ["x"], "label": [0]})
    with pytest.raises(IdError, match="XML files cannot carry"):
        bell.to_gexf(tmp_path / "a")
    odd = cg.CrowdGraph.from_responses(
        {"volunteer": ["a", "b"], "item": ["x", "x"], "label": [0, 1], "viz": [1, "x"], "key": [1, 2]}
    )
    odd.to_gexf(tmp_path / "a")
    assert nx.read_gexf(tmp_path / "a").number_of_edges() == 2


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_attributes_of_responses_do_not_touch_their_labels(kind, tmp_path):
    columns = {"volunteer": ["a"], "item": ["x"], "label": ["no"], "id": [11], "id_": [12], "confusion": ["much"]}
    getattr(cg.CrowdGraph.from_responses(columns), f"to_{kind}")(tmp_path / "g")
    ((_, _, data),) = getattr(nx, f"read_{kind}")(tmp_path / "g").edges(data=True)
    assert (data["label"], data["id__"], data["id_"], data["confusion"]) == ("no", 11, 12, "much")


def test_attributes_with_names_of_annotations_are_not_dropped_in_silence():
    for attributes in ({"confusion": 1}, {"gold": "yes"}):
        with pytest.raises(ColumnError, match="cannot be called"):
            cg.CrowdGraph.from_networkx(by_hand(attributes))
