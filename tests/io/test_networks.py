"""Networks that are brought in: from networkx, igraph, tables and the files that were saved."""

import datetime as dt
import re
import warnings

import igraph
import networkx as nx
import numpy as np
import pytest
from builders import communities_of, crowd, mirrored, network_of
from hypothesis import given, settings
from hypothesis import strategies as st
from results import same_result
from scipy.sparse import csr_array, issparse
from strategies import text

import crowdgraph as cg
from crowdgraph.errors import (
    AlignmentError,
    ColumnError,
    CrowdGraphWarning,
    DuplicateError,
    IdError,
    InputError,
    MissingValueError,
    ParameterError,
)
from crowdgraph.io.networks import read_params

FORMATS = (".graphml", ".gexf")
PARAMS = {"min_responses": 5, "half_life": None, "prior": [4, 0.1], "note": 'a < "b" & ü'}
FILE = {
    ".graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"/></graphml>',
    ".gexf": '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph><nodes/></graph></gexf>',
}


@st.composite
def networks(draw, *, ids=None):
    """Networks of any density with ids of one kind."""
    kind = draw(st.sampled_from([st.integers(-(2**62), 2**62), text])) if ids is None else ids
    names = draw(st.lists(kind, max_size=6, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = (len(names), len(names))
    linked = rng.random(size) < draw(st.sampled_from([0, 0.3, 1]))
    weights = mirrored(np.where(linked, rng.lognormal(sigma=20, size=size), 0))
    support = rng.integers(0, 50, len(names)) if draw(st.booleans()) else None
    p_values = mirrored(10 ** -rng.uniform(0, 300, size)) if draw(st.booleans()) else None
    return network_of(
        csr_array(weights),
        ids=names,
        method=draw(st.sampled_from(["a < b", "met"])),
        params=PARAMS,
        support=support,
        p_values=p_values,
    )


def dense(network):
    return network.weights.toarray() if issparse(network.weights) else network.weights


def assert_same(back, network, *, support=True):
    assert back.ids.tolist() == network.ids.tolist()
    assert set(map(type, back.ids.tolist())) == set(map(type, network.ids.tolist()))
    np.testing.assert_array_equal(dense(back), dense(network))
    assert back.method == network.method
    assert back.model is None
    assert same_result(back.p_values, network.p_values)
    if support:
        assert dict(back.params) == dict(network.params)
        np.testing.assert_array_equal(back.support, network.support)


# Round trips


@settings(max_examples=50)
@given(networks())
def test_networkx_and_igraph_graphs_come_back(network):
    assert_same(cg.VolunteerNetwork.from_networkx(network.to_networkx()), network)
    assert_same(cg.VolunteerNetwork.from_igraph(network.to_igraph()), network)


@settings(max_examples=30)
@given(networks(ids=st.tuples(st.integers(), text) | st.dates()))
def test_ids_of_any_kind_come_back_from_networkx_and_igraph(network):
    assert_same(cg.VolunteerNetwork.from_networkx(network.to_networkx()), network)
    assert_same(cg.VolunteerNetwork.from_igraph(network.to_igraph()), network)


@settings(max_examples=50)
@given(networks())
def test_saved_files_come_back(tmp_path_factory, network):
    for suffix in FORMATS:
        path = tmp_path_factory.mktemp("networks") / f"network{suffix}"
        network.save(path)
        assert_same(cg.VolunteerNetwork.load(path), network)


@settings(max_examples=50)
@given(networks(), st.sampled_from(["pandas", "polars", "arrow"]))
def test_tables_come_back(network, kind):
    frame = network.to_frame(kind=kind)
    back = cg.VolunteerNetwork.from_frame(frame, volunteers=network.ids, method=network.method)
    assert_same(back, network, support=False)


def test_networks_of_a_crowd_come_back(tmp_path):
    graph = crowd(n_volunteers=30, n_items=200, n_responses=1_500).graph
    graph = graph.annotate(cg.IBCC().fit(graph))
    for network in (cg.networks.pi_similarity(graph), cg.networks.task_cooccurrence(graph)):
        network.save(tmp_path / "network.gexf")
        for back in (
            cg.VolunteerNetwork.load(tmp_path / "network.gexf"),
            cg.VolunteerNetwork.from_networkx(network.to_networkx()),
            cg.VolunteerNetwork.from_igraph(network.to_igraph()),
        ):
            assert_same(back, network)
            assert network.model is not None


@pytest.mark.parametrize("suffix", FORMATS)
def test_other_programs_write_what_from_networkx_reads(tmp_path, suffix):
    network = network_of(mirrored([[0, 1.5, 2], [0, 0, 0], [0, 0, 0]]), ids=list("abc"), params={"n": 1})
    path = tmp_path / f"network{suffix}"
    write, read = {".graphml": (nx.write_graphml, nx.read_graphml), ".gexf": (nx.write_gexf, nx.read_gexf)}[suffix]
    write(network.to_networkx(), path)
    np.testing.assert_array_equal(dense(cg.VolunteerNetwork.from_networkx(read(path))), dense(network))
    with pytest.raises(InputError, match=r"not written by network.save\(path\).*from_networkx"):
        cg.VolunteerNetwork.load(path)


def test_p_values_of_equal_directions_are_read_and_those_of_several_links_left_out():
    graph = nx.DiGraph([("a", "b"), ("b", "a")])
    nx.set_edge_attributes(graph, 0.25, "p_value")
    assert cg.VolunteerNetwork.from_networkx(graph).pair_attributes()["p_value"].tolist() == [0.25]
    several = nx.MultiGraph([("a", "b"), ("b", "a")])
    nx.set_edge_attributes(several, 0.25, "p_value")
    with pytest.warns(CrowdGraphWarning, match="'p_value' is left out"):
        assert cg.VolunteerNetwork.from_networkx(several).p_values is None


def with_p_values(*values, kind=nx.Graph):
    graph = kind([("a", "b"), ("b", "c"), ("b", "a"), ("c", "b")][: len(values)])
    for (*ends, _), value in zip(list(graph.edges(data=True)), values, strict=True):
        if value is not None:
            graph.edges[tuple(ends)]["p_value"] = value
    return graph


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (with_p_values(0.1, None), "1 link of 2 lack 'p_value'; give it to all or to none"),
        (with_p_values(0.1, 0.0), r"above 0 and at most 1; got 0.0. Correct them, or rename"),
        (with_p_values(0.1, float("nan")), "got nan"),
        (with_p_values(0.1, "little"), "got 'little'"),
        (with_p_values(0.1, 0.2, 0.3, 0.2, kind=nx.DiGraph), "'p_value' of the two directions differ"),
    ],
)
def test_wrong_p_values_are_refused(graph, words):
    with pytest.raises(InputError, match=words):
        cg.VolunteerNetwork.from_networkx(graph)


@pytest.mark.parametrize("suffix", FORMATS)
def test_readers_of_graphs_name_the_reader_of_networks(tmp_path, suffix):
    network_of(np.zeros((2, 2))).save(tmp_path / f"x{suffix}")
    read = {".graphml": cg.read_graphml, ".gexf": cg.read_gexf}[suffix]
    with pytest.raises(InputError, match=r"is a network of volunteers.*VolunteerNetwork\.load"):
        read(tmp_path / f"x{suffix}")


# What is lost is said


def test_settings_that_json_cannot_hold_are_named(tmp_path):
    network = network_of(np.zeros((2, 2)), params={"at": dt.date(2026, 1, 1), "pair": (4, 1), "n": np.int64(3)})
    with pytest.warns(CrowdGraphWarning, match="settings 'at', 'pair' cannot be written"):
        graph = network.to_networkx()
    assert dict(cg.VolunteerNetwork.from_networkx(graph).params) == {"n": 3}
    with pytest.warns(CrowdGraphWarning, match="settings 'at', 'pair' cannot be written"):
        network.save(tmp_path / "x.graphml")
    assert dict(cg.VolunteerNetwork.load(tmp_path / "x.graphml").params) == {"n": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cg.VolunteerNetwork.from_igraph(network.to_igraph()).params["pair"] == (4, 1)


@pytest.mark.parametrize("suffix", FORMATS)
def test_communities_of_a_network_are_left_out_with_a_warning(tmp_path, suffix):
    network = network_of(mirrored(np.ones((3, 3))))
    groups = communities_of([0, 0, 1])
    words = r"left out are the attributes 'community'.* Communities.from_labels brings"
    network.save(tmp_path / f"x{suffix}", communities=groups)
    with pytest.warns(CrowdGraphWarning, match=words):
        assert_same(cg.VolunteerNetwork.load(tmp_path / f"x{suffix}"), network)
    graph = network.to_networkx(communities=groups)
    with pytest.warns(CrowdGraphWarning, match=words):
        assert_same(cg.VolunteerNetwork.from_networkx(graph), network)
    labels = nx.get_node_attributes(graph, "community")
    assert cg.Communities.from_labels(labels, network=network).to_labels() == groups.to_labels()


def test_attributes_of_edges_are_named():
    graph = nx.Graph()
    graph.add_edge("a", "b", value=3)
    with pytest.warns(CrowdGraphWarning, match="'value' of edges"):
        assert cg.VolunteerNetwork.from_networkx(graph).strength.tolist() == [1, 1]
    assert cg.VolunteerNetwork.from_networkx(graph, weight="value").strength.tolist() == [3, 3]


def test_a_network_without_its_model_says_that_it_was_not_tested(tmp_path):
    graph = crowd(0.95, 0.55, n_volunteers=30, n_items=200, n_responses=3_000).graph
    network = cg.networks.pi_similarity(graph.annotate(cg.IBCC().fit(graph)))
    back = cg.VolunteerNetwork.from_networkx(network.to_networkx())
    assert network.has_null
    assert not back.has_null
    with pytest.raises(ParameterError, match="rewiring hardly changes it"):
        back.null()
    with pytest.warns(CrowdGraphWarning, match="has lost the data that it was computed from"):
        evidence = cg.BayesianNMF(restarts=3).detect(back, seed=0).evidence
    assert len(evidence.null_modularity) == 0
    assert evidence.verdict == "no comparison with chance"


# How graphs are read


def test_links_without_weight_count_one_and_several_add_up():
    graph = nx.MultiGraph([("a", "b"), ("b", "a"), ("b", "c", {"weight": 0.5}), ("c", "d", {"weight": 0})])
    network = cg.VolunteerNetwork.from_networkx(graph)
    assert network.to_frame().to_numpy().tolist() == [["a", "b", 2.0], ["b", "c", 0.5]]
    assert network.method == "by hand"
    assert cg.VolunteerNetwork.from_networkx(graph, weight=None).strength.tolist() == [2, 3, 2, 1]
    other = igraph.Graph([(0, 1), (0, 1), (1, 2)])
    assert cg.VolunteerNetwork.from_igraph(other).ids.tolist() == [0, 1, 2]
    assert cg.VolunteerNetwork.from_igraph(other, method="met").strength.tolist() == [2, 3, 1]


def test_directed_graphs_must_be_symmetric():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "a", 2)])
    assert cg.VolunteerNetwork.from_networkx(graph).to_frame()["weight"].tolist() == [2]
    other = igraph.Graph([(0, 1), (1, 0)], directed=True)
    assert cg.VolunteerNetwork.from_igraph(other).strength.tolist() == [1, 1]
    graph.add_edge("a", "c", weight=1)
    with pytest.raises(InputError, match=r"directed.*differ.*as_undirected\(combine_edges='sum'\)"):
        cg.VolunteerNetwork.from_networkx(graph)
    with pytest.raises(InputError, match="directed"):
        cg.VolunteerNetwork.from_igraph(igraph.Graph([(0, 1)], directed=True))
    # What the message says works.
    matrix = nx.to_numpy_array(graph)
    assert cg.VolunteerNetwork(ids=list(graph), weights=matrix + matrix.T, method="m").strength.tolist() == [5, 4, 1]


def test_igraph_ids_are_names_or_as_asked():
    graph = igraph.Graph([(0, 1)])
    graph.vs["name"], graph.vs["id"], graph.vs["code"] = ["anna", "bert"], ["n0", "n1"], [7, 8]
    with pytest.warns(CrowdGraphWarning, match="'code' of nodes"):
        assert cg.VolunteerNetwork.from_igraph(graph).ids.tolist() == ["anna", "bert"]
    assert cg.VolunteerNetwork.from_igraph(graph, volunteer="code").ids.tolist() == [7, 8]
    with pytest.raises(ColumnError, match=r"no attribute 'names'.*Did you mean 'name'"):
        cg.VolunteerNetwork.from_igraph(graph, volunteer="names")


def test_names_of_columns_are_recognised():
    for left, right in (("Source", "Target"), ("from", "to"), ("u", "v"), ("volunteer", "neighbour")):
        network = cg.VolunteerNetwork.from_frame({left: ["b", "c"], right: ["a", "b"], "Weight": [2, 3]})
        assert network.ids.tolist() == ["b", "a", "c"]
        assert network.strength.tolist() == [5, 2, 3]
    assert cg.VolunteerNetwork.from_frame({"x": [1], "y": [2]}, volunteer="x", neighbour="y").n_edges == 1
    assert cg.VolunteerNetwork.from_frame({"u": [1, 2], "v": [2, 1]}, duplicates="sum").strength.tolist() == [2, 2]


# Bad input


def graph_of(*edges, **nodes):
    graph = nx.Graph(list(edges))
    graph.add_nodes_from(nodes.items())
    return graph


BAD_GRAPHS = [
    ({"a": {"b": {}}}, InputError, "Expected a networkx graph; got a dict"),
    (graph_of(("a", "a")), InputError, "1 link has both ends at the same volunteer, such as 'a' - 'a'.*self-loops"),
    (graph_of(("a", "b", {"weight": -1})), InputError, r"negative weights, such as 'a' - 'b' \(-1\).*no signs"),
    (graph_of(("a", "b", {"weight": np.nan})), InputError, "not finite"),
    (graph_of(("a", "b", {"weight": np.inf})), InputError, "not finite"),
    (graph_of(("a", "b", {"weight": "2"})), InputError, "Weights must be numbers; got '2'"),
    (graph_of(("a", "b", {"weight": True})), InputError, "Weights must be numbers; got True"),
    (graph_of(("a", "b", {"weight": 10**400})), InputError, "Weights must be numbers that fit in a float"),
    (graph_of(("a", "b"), a={"support": 3}), InputError, "1 node of 2 lack 'support'"),
    (graph_of(a={"kind": "item"}), InputError, "CrowdGraph.from_networkx"),
]


@pytest.mark.parametrize(("graph", "error", "words"), BAD_GRAPHS)
def test_graphs_that_are_no_networks(graph, error, words):
    with pytest.raises(error, match=words):
        cg.VolunteerNetwork.from_networkx(graph)


def test_other_bad_graphs():
    with pytest.raises(ColumnError, match="No edge has 'strenght'; edges have 'strength'"):
        cg.VolunteerNetwork.from_networkx(graph_of(("a", "b", {"strength": 1})), weight="strenght")
    with pytest.raises(InputError, match="Expected an igraph graph; got a Graph"):
        cg.VolunteerNetwork.from_igraph(nx.Graph())
    graph = igraph.Graph([(0, 1)])
    graph.vs["name"] = ["a", "a"]
    with pytest.raises(IdError, match="repeat"):
        cg.VolunteerNetwork.from_igraph(graph)


BAD_FRAMES = [
    ({"a": [1], "b": [2]}, {}, ColumnError, "no column 'volunteer'; it has 'a', 'b'.*volunteer="),
    ({"volunteer": [1], "b": [2]}, {}, ColumnError, "no column 'neighbour'.*neighbour="),
    ({"u": [1], "v": [2]}, {"weight": "w"}, ColumnError, "no column 'w'"),
    ({"u": [1], "v": [2], "weight": ["x"]}, {}, ColumnError, "must hold numbers; it holds 'x'"),
    ({"u": [1], "v": [2], "weight": [None]}, {}, ColumnError, "must hold numbers; it holds None"),
    ({"u": [1, 1], "v": [2, 3], "weight": [1.0, None]}, {}, InputError, "1 link has weights that are not finite"),
    ({"u": [1], "v": [None]}, {}, MissingValueError, "Column 'v' is null in rows 0"),
    ({"u": [1], "v": [1]}, {}, InputError, "same volunteer"),
    ({"u": [1], "v": [2], "weight": [-2]}, {}, InputError, "negative"),
    ({"u": [1, 2], "v": [2, 1]}, {}, DuplicateError, "1 pair of volunteers is in several rows, such as 1 and 2"),
    ({"u": [1], "v": [2]}, {"volunteers": [1, 3]}, AlignmentError, r"1 volunteer who is not in volunteers= \(2\)"),
    ({"u": [1], "v": [2]}, {"volunteers": [1, 2, 2]}, IdError, "repeat"),
    ({"u": [1], "v": [2]}, {"duplicates": "add"}, ParameterError, "duplicates='add'"),
    ("links.csv", {}, InputError, "is a path"),
]


@pytest.mark.parametrize(("frame", "options", "error", "words"), BAD_FRAMES)
def test_tables_that_are_no_networks(frame, options, error, words):
    with pytest.raises(error, match=words):
        cg.VolunteerNetwork.from_frame(frame, **options)


# Bad files

BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


def saved(tmp_path, suffix):
    path = tmp_path / f"network{suffix}"
    network_of(mirrored(np.ones((3, 3))), support=[1, 2, 3]).save(path)
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_with_a_document_type_are_refused(tmp_path, suffix):
    path = saved(tmp_path, suffix)
    body = path.read_text().split("\n", 1)[1].replace("by hand", "&b;")
    path.write_text(BOMB + body)
    with pytest.raises(InputError, match="declares a document type"):
        cg.VolunteerNetwork.load(path)
    path.write_text('<!DOCTYPE x SYSTEM "file:///etc/hostname">' + body)
    with pytest.raises(InputError, match="declares a document type"):
        cg.VolunteerNetwork.load(path)


def test_p_values_and_support_are_of_all_or_of_none(tmp_path):
    path = tmp_path / "network.gexf"
    network_of(mirrored(np.ones((3, 3))), p_values=mirrored(np.full((3, 3), 0.5)), support=[1, 2, 3]).save(path)
    content = path.read_text()
    for value, words in (
        ("0.5", "some links have no p-value"),
        ("3.0", "some nodes have support, and others have none"),
    ):
        path.write_text(re.sub(rf'<attvalue for="[^"]*" value="{value}"/>', "", content, count=1))
        assert path.read_text() != content
        with pytest.raises(InputError, match=words):
            cg.VolunteerNetwork.load(path)


def test_settings_that_nobody_wrote_are_none():
    assert read_params('{"tol": 0.5}') == {"tol": 0.5}
    for other in ("{", "[1]", "[" * 100_000):
        assert read_params(other) == {}


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_that_are_cut_anywhere_are_refused(tmp_path, suffix):
    path = saved(tmp_path, suffix)
    content = path.read_bytes().rstrip()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"damaged or incomplete"):
            cg.VolunteerNetwork.load(path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1.0", "one", "could not convert string to float"),
        ("1.0", "nan", "not finite"),
        ('target="v1"', 'target="v9"', r"unknown nodes \('v9'\)"),
        ('target="v1"', 'target="v0"', "same volunteer"),
        ('target="v1"', "", "'target'"),
        ('"text"', '"integers"', "invalid literal"),
        ('"ids"', '"identifiers"', "not written by network.save"),
        ("by hand", "", "method"),
        ('encoding="UTF-8"', 'encoding="klingon"', "encoding"),
    ],
)
def test_files_that_were_changed_are_refused(tmp_path, suffix, old, new, words):
    path = saved(tmp_path, suffix)
    content = path.read_text()
    assert old in content or old in content.replace("&quot;", '"')
    path.write_text(content.replace(old, new))
    if (old, new) == ("by hand", ""):
        assert cg.VolunteerNetwork.load(path).method == ""
        return
    with pytest.raises(InputError, match=words):
        cg.VolunteerNetwork.load(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_of_others_are_refused(tmp_path, suffix):
    path = tmp_path / f"other{suffix}"
    for content, words in [
        (FILE[suffix], "not written by network.save"),
        ("<html></html>", f"begins with <html>; expected <{suffix[1:]}>"),
        ("volunteer,neighbour\na,b\n", "damaged or incomplete"),
        ("", "damaged or incomplete"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError, match=words):
            cg.VolunteerNetwork.load(path)
    graph = crowd(n_volunteers=5, n_items=10, n_responses=20).graph
    getattr(graph, f"to_{suffix[1:]}")(path)
    with pytest.raises(InputError, match=r"not written by network\.save"):
        cg.VolunteerNetwork.load(path)


def test_paths_that_hold_no_network(tmp_path):
    for name, words in [("x.csv", "must end in .graphml or .gexf"), ("x.gexf", "does not exist or is not a file")]:
        with pytest.raises(InputError, match=words):
            cg.VolunteerNetwork.load(tmp_path / name)
