"""Odd ids, with everything that a graph can carry, through every door and back."""

import numpy as np
import pytest
from builders import communities_of, graph_of, mirrored, network_of
from results import same_graph

import crowdgraph as cg
from crowdgraph.core.evidence import Evidence
from crowdgraph.errors import IdError

IDS = {
    "like nothing": ["nan", "None", "", "null", " "],
    "XML": ["a<b>&\"'", "]]>", "--><?x?>", "\U0001f600", "a\r\nb\t"],
    "names of nodes": [("volunteer", "x"), ("item", "x"), "x", "volunteer:x", "item:x"],
    "floats": [1.5, -0.0, float("inf"), 1e-300, 2.5],
    "large integers": [2**63, -(2**70), 2**63 - 1, 0, 1],
    "nested": [((1,), ("a", (2,))), (None,), (1.5, True), frozenset({1}), b"\0"],
    "one": ["a"] * 5,
}
SAME_TEXT = [1, "1", 2, "x", "y"]

pytestmark = pytest.mark.filterwarnings("ignore::crowdgraph.errors.RepeatedAnswersWarning")


def doors(folder):
    """Every way out and back in."""
    files = {
        "graphml": (lambda graph, path: graph.to_graphml(path, history="full"), cg.read_graphml),
        "gexf": (lambda graph, path: graph.to_gexf(path), cg.read_gexf),
        "crowd": (lambda graph, path: graph.save(path), cg.load),
    }

    def through(graph, kind):
        if kind == "networkx":
            return cg.CrowdGraph.from_networkx(graph.to_networkx(history="full"))
        if kind == "igraph":
            return cg.CrowdGraph.from_igraph(graph.to_igraph(history="full"))
        write, read = files[kind]
        write(graph, folder / f"g.{kind}")
        return read(folder / f"g.{kind}")

    return through


def annotated(volunteers, items):
    graph = graph_of(volunteers, items, ["no", "yes", "no", "yes", "no"])
    ids = graph.volunteers.ids
    n = len(ids)
    rng = np.random.default_rng(0)
    evidence = Evidence(
        agreement=0.5,
        modularity=0.1,
        null_modularity=np.linspace(0, 0.1, 12),
        structured=True,
        mean_weight=0.3,
        null_mean_weight=np.linspace(0.1, 0.4, 12),
        power=0.9,
        persists=True,
    )
    groups = communities_of(np.eye(2)[np.arange(n) % 2], ids=ids, evidence=evidence)
    track = cg.CommunityTrack(
        ids=ids,
        times=graph.responses.time[[1, 4]],
        counts=[2, 5],
        snapshots=(groups, groups),
        clock=graph.responses.clock,
        method="by hand",
        apparent=((1, 0, 1),),
    )
    network = network_of(mirrored(rng.random((n, n))), ids=ids, p_values=mirrored(rng.random((n, n)) + 1e-9) / 2)
    results = {"<fit> & 'x'\n": cg.IBCC().fit(graph), "net/..": network, "\u2603": groups, "over\0time": track}
    for name, result in results.items():
        graph = graph.annotate(result, name=name)
    return graph


@pytest.mark.parametrize("kind", ["networkx", "igraph", "graphml", "gexf", "crowd"])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_everything_comes_back(tmp_path, ids, kind):
    for volunteers, items in ((ids, ids[::-1]), (ids, range(5)), ("abcde", ids)):
        graph = annotated(list(volunteers), list(items))
        back = doors(tmp_path)(graph, kind)
        assert same_graph(back, graph)
        assert list(map(type, back.volunteers)) == list(map(type, graph.volunteers))
        assert list(map(type, back.items)) == list(map(type, graph.items))


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_ids_that_become_the_same_text_are_refused(tmp_path, kind):
    with pytest.raises(IdError, match=r"become the same text in a file: 'volunteer:1'\. Rename them"):
        doors(tmp_path)(annotated(SAME_TEXT, list("vwxyz")), kind)


@pytest.mark.parametrize("kind", ["networkx", "igraph", "crowd"])
def test_others_tell_integers_from_their_text(tmp_path, kind):
    graph = annotated(SAME_TEXT, SAME_TEXT)
    assert same_graph(doors(tmp_path)(graph, kind), graph)
