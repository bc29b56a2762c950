"""No door shows what came later: communities over time with their evidence, at random moments."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from builders import communities_of, crowd, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from results import same_result

import crowdgraph as cg
from crowdgraph.core.evidence import Evidence
from crowdgraph.io._known import known_at

N_RESPONSES = 420
COUNTS = (140, 280, 420)

pytestmark = pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")


def with_other_future(graph, n, seed):
    """The graph with other responses after the first `n`: other volunteers, items, labels and times."""
    rng = np.random.default_rng(seed)
    table = graph.responses.table
    sizes = {"volunteer": len(graph.volunteers), "item": len(graph.items), "label": len(graph.labels)}
    columns = {name: getattr(table, name).copy() for name in (*sizes, "time")}
    for name, size in sizes.items():
        columns[name][n:] = rng.integers(0, size, len(table) - n)
    columns["time"][n:] += 1 + np.sort(rng.integers(0, 10**6, len(table) - n))
    return graph.replace(responses=replace(table, **columns))


def analysed(graph):
    """The graph with a track whose communities have evidence, and with what knows everything."""
    track = cg.dynamics.over_time(
        graph,
        counts=COUNTS,
        network=partial(cg.networks.task_cooccurrence, min_responses=3),
        model=cg.IBCC(),
        detector=cg.BayesianNMF(nulls=9),
        compare_starts=False,
        restarts=1,
        seed=0,
    )
    fit = cg.MajorityVote().fit(graph)
    return graph.annotate(fit, name="fit").annotate(track[-1], name="groups").annotate(track, name="track")


def fields(result):
    return {name: getattr(result, name) for name in result.__dataclass_fields__}


def contents(graph, at, folder):
    """What each door shows of a graph at a moment."""
    network, vertices = graph.to_networkx(at=at, history="full"), graph.to_igraph(at=at, history="full")
    graph.to_graphml(folder / "at.graphml", at=at, history="full")
    graph.to_gexf(folder / "at.gexf", at=at)
    about = network.graph["crowdgraph"]
    return {
        "networkx": (dict(network.nodes(data=True)), list(network.edges(data=True)), about["left_out"]),
        "annotations": {name: fields(result) for name, result in about["annotations"].items()},
        "igraph": ([one.attributes() for one in vertices.vs], [one.attributes() for one in vertices.es]),
        "graphml": (folder / "at.graphml").read_text(),
        "gexf": (folder / "at.gexf").read_text(),
    }


@pytest.fixture(scope="module")
def past():
    graph = crowd(n_volunteers=14, n_items=90, n_responses=N_RESPONSES, n_communities=2, mixing=0.05).graph
    return graph, analysed(graph)


@settings(max_examples=5)
@given(n=st.integers(COUNTS[0], N_RESPONSES - 1), seed=st.integers(0, 2**32))
def test_nothing_that_came_later_is_seen(past, tmp_path_factory, n, seed):
    graph, one = past
    at = graph.responses.time[n - 1]
    n = int(np.searchsorted(graph.responses.time, at, side="right"))
    other = analysed(with_other_future(graph, n, seed))
    folder = tmp_path_factory.mktemp("leaks")
    seen, seen_by_other = contents(one, at, folder), contents(other, at, folder)
    # Comparing outside of the assertion spares a report of all differences.
    differing = [name for name in seen if not same_result(seen[name], seen_by_other[name])]
    assert not differing
    assert list(seen["annotations"]) == ["track"]
    assert seen["annotations"]["track"]["snapshots"][0].evidence is not None


def test_apparent_events_and_evidence_of_later_snapshots_are_left_out():
    graph = graph_of(["a", "b", "c", "d"], ["x", "x", "y", "y"], ["no", "yes", "no", "yes"])
    evidence = [
        Evidence(agreement=1, modularity=0.2, null_modularity=[0.1, 0.2], structured=True, persists=persists)
        for persists in (False, True, True)
    ]
    snapshots = [communities_of([0, 0, 1, 1], ids=list("abcd"), evidence=one) for one in evidence]
    track = cg.CommunityTrack(
        ids=list("abcd"),
        times=[1, 2, 3],
        counts=[2, 3, 4],
        snapshots=snapshots,
        clock=graph.responses.clock,
        method="by hand",
        params={"hindsight": False},
        apparent=((1, 0, 1), (2, 1, 0)),
    )
    known, _ = known_at(graph.annotate(track), 2)
    cut = known.community_track()
    assert cut.apparent == ((1, 0, 1),)
    assert [one.evidence.persists for one in cut] == [False, True]


def test_communities_that_came_later_are_not_counted():
    graph = graph_of(["a", "b", "c", "d"], ["x", "x", "y", "y"], ["no", "yes", "no", "yes"])
    members = np.eye(3)[[[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 2, 2]]]
    track = cg.CommunityTrack(
        ids=list("abcd"),
        times=[1, 2, 3],
        counts=[2, 3, 4],
        snapshots=[communities_of(one, ids=list("abcd")) for one in members],
        clock=graph.responses.clock,
        method="by hand",
        params={"hindsight": False},
    )
    known, _ = known_at(graph.annotate(track), 2)
    assert known.community_track().n_communities_ever == 2


def test_a_snapshot_taken_later_does_not_say_that_nobody_answered_in_between():
    rows = {"volunteer": list("abcabc"), "item": list("xxxyyy"), "label": [0, 1, 0, 1, 0, 1]}
    seen = []
    for later in (13, 19):  # before and after the second snapshot
        graph = cg.CrowdGraph.from_responses({**rows, "time": [1, 2, 3, 4, 5, later]})
        track = cg.dynamics.over_time(
            graph,
            times=[5, 15, 20],
            network=partial(cg.networks.task_cooccurrence, min_responses=1),
            detector=cg.Leiden(),
            restarts=0,
            seed=0,
        )
        known, left_out = known_at(graph.annotate(track), 12)
        seen.append((known.community_track().counts.tolist(), known.community_track().params["moments"], left_out))
    assert seen == [([4], (5,), ())] * 2
