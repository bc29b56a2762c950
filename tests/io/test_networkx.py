"""networkx and igraph graphs, and GraphML and GEXF files of graphs and networks."""

import datetime as dt
import gc
import xml.etree.ElementTree as ET

import igraph
import networkx as nx
import numpy as np
import pytest
from builders import communities_of, crowd, network_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, ColumnError, CrowdGraphWarning, InputError, ParameterError

READ = {".graphml": nx.read_graphml, ".gexf": nx.read_gexf}
WEIGHTS = np.array([[0, 0.1, 0, 0], [0.1, 0, 1e-17, 0], [0, 1e-17, 0, 0], [0, 0, 0, 0]])
HOSTILE = ['<anna> & "co"', "b'e\nr\tt\r", "]]> \U0001f52d ü", " dé "]


@given(graphs())
def test_nothing_is_lost_through_networkx(graph):
    assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)


@given(graphs())
def test_nothing_of_a_view_is_lost_through_networkx(graph):
    for view in (graph.first(0), graph.first(len(graph.responses) // 2)):
        assert cg.CrowdGraph.from_networkx(view.to_networkx()).equals(view)


def test_networkx_graphs_are_bipartite_and_hold_annotations(graph, fit):
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


def test_nanoseconds_survive_networkx():
    times = np.array([5, 1], dtype="datetime64[ns]")
    graph = cg.CrowdGraph.from_responses({"volunteer": [1, 2], "item": [1, 1], "label": [0, 1], "time": times})
    assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)


def test_a_networkx_graph_built_by_hand_is_read():
    network = nx.Graph()
    network.add_node("anna", kind="volunteer", country="nl")
    network.add_node("x", kind="item", gold="yes")
    network.add_edge("x", "anna", label="yes", time=dt.datetime(2026, 1, 1))
    graph = cg.CrowdGraph.from_networkx(network)
    assert graph.volunteers["anna"].attributes == {"country": "nl"}
    assert dict(graph.gold) == {"x": "yes"}
    assert graph.responses[0].time == dt.datetime(2026, 1, 1)


@given(graphs(time_kinds=("int", "naive")))
def test_igraph_holds_everything(graph):
    result = graph.to_igraph()
    n = len(graph.volunteers)
    assert result.vs["id"] == [*graph.volunteers, *graph.items]
    assert result.vs["kind"] == ["volunteer"] * n + ["item"] * len(graph.items)
    ends = [(result.vs[edge.source]["id"], result.vs[edge.target]["id"]) for edge in result.es]
    assert ends == [(r.volunteer, r.item) for r in graph.responses]
    assert result.es["label"] == [r.label for r in graph.responses]
    assert result.es["time"] == [r.time for r in graph.responses]
    for name in graph.responses.attributes:
        assert [r.attributes[name] for r in graph.responses] == result.es[name]
    assert result.vs["since"][:n] == [graph.volunteers[v].attributes["since"] for v in graph.volunteers]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@given(graph=graphs(id_kinds=("int", "str")))
def test_files_for_gephi_hold_all_volunteers_and_responses(kind, tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("gephi") / f"crowd.{kind}"
    getattr(graph, f"to_{kind}")(path)
    back = getattr(nx, f"read_{kind}")(path)
    assert back.number_of_edges() == len(graph.responses)
    assert {f"volunteer:{v}" for v in graph.volunteers} == {
        n for n, kind in back.nodes(data="kind") if kind == "volunteer"
    }


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_annotations_reach_the_files(kind, graph, fit, tmp_path):
    groups = communities_of([[0.25, 0.75]], ids=["anna"])
    getattr(graph.annotate(fit).annotate(groups), f"to_{kind}")(tmp_path / "crowd")
    back = getattr(nx, f"read_{kind}")(tmp_path / "crowd")
    anna = back.nodes["volunteer:anna"]
    assert anna["confusion[yes,no]"] == pytest.approx(fit.confusion.of("anna").latest().mean[1, 0])
    assert anna["participation[1]"] == 0.75
    assert back.nodes["item:x"]["p(yes)"] == 0.8
    assert list(tmp_path.iterdir()) == [tmp_path / "crowd"]


def test_attributes_with_names_that_files_use_themselves(tmp_path):
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["a", "b"], "item": ["x", "x"], "label": [0, 1], "viz": [1, "x"], "key": [1, 2]}
    )
    graph.to_gexf(tmp_path / "a")
    assert nx.read_gexf(tmp_path / "a").number_of_edges() == 2


@pytest.mark.parametrize(("kind", "id_name"), [("graphml", "id"), ("gexf", "id__")])
def test_attributes_of_responses_do_not_touch_their_labels(kind, id_name, tmp_path):
    columns = {"volunteer": ["a"], "item": ["x"], "label": ["no"], "id": [11], "id_": [12], "confusion": ["much"]}
    getattr(cg.CrowdGraph.from_responses(columns), f"to_{kind}")(tmp_path / "g")
    ((_, _, data),) = getattr(nx, f"read_{kind}")(tmp_path / "g").edges(data=True)
    assert (data["label"], data[id_name], data["id_"], data["confusion"]) == ("no", 11, 12, "much")


# Networks of volunteers


@pytest.fixture
def network():
    return network_of(WEIGHTS, ids=HOSTILE, method="a < b & c", support=[3, 2, 1, 0.5])


@pytest.fixture
def communities():
    shares = [[0.0, 0.0], [0.25, 0.75], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    return communities_of(shares, ids=[HOSTILE[3], *HOSTILE[:3], "more"])


EXPECTED = {
    "strength": [0.1, 0.1 + 1e-17, 1e-17, 0.0],
    "support": [3.0, 2.0, 1.0, 0.5],
    "community": [1, 0, 1, -1],
    "participation_0": [0.25, 1.0, 0.0, 0.0],
    "participation_1": [0.75, 0.0, 1.0, 0.0],
}


@pytest.mark.parametrize("suffix", READ)
def test_networkx_reads_what_was_written(network, communities, tmp_path, suffix):
    path = tmp_path / f"crowd{suffix}"
    network.save(path, communities=communities)
    reread = READ[suffix](path)
    assert not reread.is_directed()
    assert not reread.is_multigraph()
    assert list(reread) == HOSTILE
    for name, values in EXPECTED.items():
        assert [about[name] for _, about in reread.nodes(data=True)] == values
    assert [about["label"] for _, about in reread.nodes(data=True)] == HOSTILE
    assert {frozenset(pair): about["weight"] for *pair, about in reread.edges(data=True)} == {
        frozenset(HOSTILE[:2]): 0.1,
        frozenset(HOSTILE[1:3]): 1e-17,
    }
    if suffix == ".graphml":
        assert reread.graph["method"] == "a < b & c"


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", min_codepoint=32)), unique=True)
)
def test_any_text_survives(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("networks")
    network = network_of(np.ones((len(names),) * 2) - np.eye(len(names)), ids=names)
    for suffix, read in READ.items():
        network.save(path / f"x{suffix}")
        reread = read(path / f"x{suffix}")
        assert sorted(reread) == sorted(names)
        assert nx.utils.graphs_equal(nx.Graph(reread.edges), nx.Graph(network.to_networkx().edges))


def test_igraph_reads_graphml(network, communities, tmp_path):
    network.save(tmp_path / "crowd.graphml", communities=communities)
    reread = igraph.Graph.Read_GraphML(str(tmp_path / "crowd.graphml"))
    assert reread.vs["label"] == HOSTILE
    assert reread.vs["community"] == EXPECTED["community"]
    assert_allclose(sorted(reread.es["weight"]), [1e-17, 0.1])


def test_gexf_is_as_gephi_reads_it(network, communities, tmp_path):
    network.save(tmp_path / "crowd.gexf", communities=communities)
    root = ET.parse(tmp_path / "crowd.gexf").getroot()  # noqa: S314 - written above
    space = "{http://www.gexf.net/1.2draft}"
    assert (root.tag, root.get("version")) == (f"{space}gexf", "1.2")
    graph = root.find(f"{space}graph")
    assert graph.get("defaultedgetype") == "undirected"
    declared = {one.get("title"): one.get("type") for one in graph.iter(f"{space}attribute")}
    assert declared == {name: "long" if name == "community" else "double" for name in EXPECTED}
    assert [one.get("label") for one in graph.iter(f"{space}node")] == HOSTILE
    assert [one.get("id") for one in graph.iter(f"{space}edge")] == ["0", "1"]


def test_networks_without_communities_and_support_are_written(tmp_path):
    network = network_of([[0, 1], [1, 0]], ids=[1, 2])
    for suffix, read in READ.items():
        network.save(tmp_path / f"x{suffix.upper()}")
        reread = read(tmp_path / f"x{suffix.upper()}")
        assert dict(reread.nodes["1"]) == {"label": "1", "strength": 1.0}
    empty = network_of(np.zeros((0, 0)))
    for suffix, read in READ.items():
        empty.save(tmp_path / f"x{suffix}")
        assert len(read(tmp_path / f"x{suffix}")) == 0


def test_the_same_attributes_in_networkx_and_igraph(network, communities):
    converted, vertices = network.to_networkx(communities=communities), network.to_igraph(communities=communities).vs
    for name, values in EXPECTED.items():
        assert list(nx.get_node_attributes(converted, name).values()) == values
        assert vertices[name] == values
    assert vertices["id"] == HOSTILE
    assert set(network.to_networkx().nodes[HOSTILE[0]]) == {"strength", "support"}
    assert set(network.to_igraph().vs.attributes()) == {"id", "strength", "support"}


def test_a_detected_network_is_written_with_its_communities(tmp_path):
    graph = crowd(n_volunteers=60, n_items=500, n_responses=4_000, n_communities=3, mixing=0.05).graph
    network = cg.networks.task_cooccurrence(graph)
    detected = cg.Leiden().detect(network, seed=0)
    network.save(tmp_path / "crowd.gexf", communities=detected)
    reread = nx.read_gexf(tmp_path / "crowd.gexf")
    assert_array_equal([reread.nodes[name]["community"] for name in network.ids], detected.assignment)
    assert_array_equal([reread.nodes[name]["support"] for name in network.ids], network.support)
    assert_array_equal(nx.to_numpy_array(reread, nodelist=network.ids), network.weights.toarray())


def test_ids_of_any_type_become_text(tmp_path):
    ids = [(1, "a"), 3, dt.date(2026, 3, 1), None]
    network = network_of(np.zeros((4, 4)), ids=ids)
    with pytest.warns(CrowdGraphWarning, match="neither all text nor all integers become text"):
        network.save(tmp_path / "x.gexf")
    assert list(nx.read_gexf(tmp_path / "x.gexf")) == ["(1, 'a')", "3", "2026-03-01", "None"]


def test_communities_of_other_volunteers_are_refused(network, communities, tmp_path):
    other_communities = communities_of([0, 0], ids=HOSTILE[:2])
    for write in (
        network.to_networkx,
        network.to_igraph,
        lambda **options: network.save(tmp_path / "x.gexf", **options),
    ):
        with pytest.raises(AlignmentError, match="The communities lack 2 of the network's volunteers"):
            write(communities=other_communities)
        with pytest.raises(ParameterError, match="communities= takes Communities, found by a detector; got a list"):
            write(communities=[0, 1, 1, 0])


def test_sparse_networks_are_written_without_a_dense_matrix(tmp_path, monkeypatch):
    """Of twenty thousand volunteers it would take 3 GB."""
    ends = np.random.default_rng(0).integers(0, 20_000, (2, 4_000))
    half = csr_array((np.ones(4_000), ends), shape=(20_000, 20_000))
    weights = half + half.T
    weights.setdiag(0)
    network = network_of(weights, ids=range(20_000))

    def refuse(*args, **options):
        raise AssertionError("the weights were made dense")

    for name in ("toarray", "todense"):
        monkeypatch.setattr(csr_array, name, refuse)
    network.save(tmp_path / "x.gexf")
    edges = (tmp_path / "x.gexf").read_text().count("<edge ")
    assert edges == network.n_edges > 3_000


@pytest.mark.parametrize(
    "kinds", [5, [1], {"country": 5}, {"country": None}, {5: "int64"}, {"country": "text", "since": {}}]
)
def test_attributes_of_a_wrong_kind_are_refused(kinds):
    network = crowd(n_volunteers=5, n_items=8, n_responses=20).graph.to_networkx()
    network.graph["crowdgraph"]["settings"]["attributes"]["item"] = kinds
    with pytest.raises(InputError, match="settings in the graph attribute 'crowdgraph' are damaged"):
        cg.CrowdGraph.from_networkx(network)


def test_the_garbage_collector_stays_as_it_was(graph):
    for change, is_on in ((gc.disable, False), (gc.enable, True)):
        change()
        assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)
        assert gc.isenabled() == is_on


def test_edited_attributes_of_another_type_are_read_as_they_are(columns):
    graph = cg.CrowdGraph.from_responses(
        columns, volunteers={"volunteer": ["cleo", "anna", "bert"], "age": [30, 40, 50]}
    )
    network = graph.to_networkx()
    network.nodes["volunteer", "anna"]["age"] = "unknown"
    ages = cg.CrowdGraph.from_networkx(network).volunteers.attributes["age"]
    assert sorted(map(str, ages)) == ["30", "50", "unknown"]


def test_names_of_attributes_must_be_text(graph):
    network = nx.MultiGraph()
    network.add_node("anna", kind="volunteer")
    network.add_node("x", kind="item")
    network.add_edge("anna", "x", label="yes")
    network.nodes["anna"][5] = "five"
    with pytest.raises(ColumnError, match=r"^The names of node attributes must be text; got 5\. Rename them"):
        cg.CrowdGraph.from_networkx(network)
