"""Networks in files: read again by networkx and igraph, and as Gephi expects them."""

import datetime as dt
import time
import xml.etree.ElementTree as ET

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import random_array

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, IdError, ParameterError, StoreError

READ = {".graphml": nx.read_graphml, ".gexf": nx.read_gexf}
WEIGHTS = np.array([[0, 0.1, 0, 0], [0.1, 0, 1e-17, 0], [0, 1e-17, 0, 0], [0, 0, 0, 0]])
HOSTILE = ['<anna> & "co"', "b'e\nr\tt\r", "]]> \U0001f52d ü", " dé "]


@pytest.fixture
def network():
    return cg.VolunteerNetwork(ids=HOSTILE, weights=WEIGHTS, method="a < b & c", support=[3, 2, 1, 0.5])


@pytest.fixture
def communities():
    shares = [[0.0, 0.0], [0.25, 0.75], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    return cg.Communities(ids=[HOSTILE[3], *HOSTILE[:3], "more"], participation=shares, modularity=0.1, method="m")


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
    made = READ[suffix](path)
    assert not made.is_directed()
    assert not made.is_multigraph()
    assert list(made) == HOSTILE
    for name, values in EXPECTED.items():
        assert [about[name] for _, about in made.nodes(data=True)] == values
    assert [about["label"] for _, about in made.nodes(data=True)] == HOSTILE
    assert {frozenset(pair): about["weight"] for *pair, about in made.edges(data=True)} == {
        frozenset(HOSTILE[:2]): 0.1,
        frozenset(HOSTILE[1:3]): 1e-17,
    }
    if suffix == ".graphml":
        assert made.graph["method"] == "a < b & c"


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", min_codepoint=32)), unique=True)
)
def test_any_text_survives(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("made")
    network = cg.VolunteerNetwork(ids=names, weights=np.ones((len(names),) * 2) - np.eye(len(names)), method="all")
    for suffix, read in READ.items():
        network.save(path / f"x{suffix}")
        found = read(path / f"x{suffix}")
        assert sorted(found) == sorted(names)
        assert nx.utils.graphs_equal(nx.Graph(found.edges), nx.Graph(network.to_networkx().edges))


def test_igraph_reads_graphml(network, communities, tmp_path):
    network.save(tmp_path / "crowd.graphml", communities=communities)
    made = igraph.Graph.Read_GraphML(str(tmp_path / "crowd.graphml"))
    assert made.vs["label"] == HOSTILE
    assert made.vs["community"] == EXPECTED["community"]
    assert_allclose(sorted(made.es["weight"]), [1e-17, 0.1])


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


def test_without_communities_and_support(tmp_path):
    network = cg.VolunteerNetwork(ids=[1, 2], weights=[[0, 1], [1, 0]], method="by hand")
    for suffix, read in READ.items():
        network.save(tmp_path / f"x{suffix.upper()}")
        found = read(tmp_path / f"x{suffix.upper()}")
        assert dict(found.nodes["1"]) == {"label": "1", "strength": 1.0}
    empty = cg.VolunteerNetwork(ids=[], weights=np.zeros((0, 0)), method="nobody")
    for suffix, read in READ.items():
        empty.save(tmp_path / f"x{suffix}")
        assert len(read(tmp_path / f"x{suffix}")) == 0


def test_the_same_attributes_in_networkx_and_igraph(network, communities):
    rich, vertices = network.to_networkx(communities=communities), network.to_igraph(communities=communities).vs
    for name, values in EXPECTED.items():
        assert list(nx.get_node_attributes(rich, name).values()) == values
        assert vertices[name] == values
    assert vertices["id"] == HOSTILE
    assert set(network.to_networkx().nodes[HOSTILE[0]]) == {"strength", "support"}
    assert set(network.to_igraph().vs.attributes()) == {"id", "strength", "support"}


def test_a_real_network_with_its_communities(tmp_path):
    graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    network = cg.networks.task_cooccurrence(graph)
    found = cg.Leiden().detect(network, seed=0)
    network.save(tmp_path / "crowd.gexf", communities=found)
    made = nx.read_gexf(tmp_path / "crowd.gexf")
    assert_array_equal([made.nodes[name]["community"] for name in network.ids], found.assignment)
    assert_array_equal([made.nodes[name]["support"] for name in network.ids], network.support)
    assert_array_equal(nx.to_numpy_array(made, nodelist=network.ids), network.weights.toarray())


def test_ids_of_any_type_become_text(tmp_path):
    ids = [(1, "a"), 3, dt.date(2026, 3, 1), None]
    network = cg.VolunteerNetwork(ids=ids, weights=np.zeros((4, 4)), method="by hand")
    network.save(tmp_path / "x.gexf")
    assert list(nx.read_gexf(tmp_path / "x.gexf")) == ["(1, 'a')", "3", "2026-03-01", "None"]


@pytest.mark.parametrize(
    ("ids", "path", "error", "message"),
    [
        ([1, "1", 2], "x.gexf", IdError, "become the same text in a file: '1'. Rename them"),
        (["a", "b\x00", "c"], "x.graphml", IdError, r"'b\\x00' holds a character that XML files cannot carry"),
        (["a", "b", "c"], "x.csv", ParameterError, r"x.csv' must end in .graphml or .gexf"),
        (["a", "b", "c"], "gexf", ParameterError, "must end in .graphml or .gexf"),
        (["a", "b", "c"], "nowhere/x.gexf", StoreError, "Cannot write to"),
    ],
)
def test_bad_input_leaves_no_file(tmp_path, ids, path, error, message):
    network = cg.VolunteerNetwork(ids=ids, weights=np.zeros((3, 3)), method="by hand")
    (tmp_path / "x.gexf").write_text("old")
    with pytest.raises(error, match=message):
        network.save(tmp_path / path)
    assert [file.name for file in tmp_path.iterdir()] == ["x.gexf"]
    assert (tmp_path / "x.gexf").read_text() == "old"


def test_communities_of_others(network, communities, tmp_path):
    strangers = cg.Communities(ids=HOSTILE[:2], participation=np.ones((2, 1)), modularity=0.0, method="m")
    for write in (
        network.to_networkx,
        network.to_igraph,
        lambda **options: network.save(tmp_path / "x.gexf", **options),
    ):
        with pytest.raises(AlignmentError, match="The communities lack 2 of the network's volunteers"):
            write(communities=strangers)
        with pytest.raises(ParameterError, match="communities= takes Communities, found by a detector; got a list"):
            write(communities=[0, 1, 1, 0])


def test_a_large_network_is_written_in_seconds(tmp_path):
    half = random_array((20_000, 20_000), density=2.5e-4, rng=np.random.default_rng(0)).tocsr()
    weights = half + half.T
    weights.setdiag(0)
    network = cg.VolunteerNetwork(ids=range(20_000), weights=weights, method="drawn")
    began = time.process_time()
    network.save(tmp_path / "x.gexf")
    assert network.n_edges > 90_000
    assert time.process_time() - began < 5
