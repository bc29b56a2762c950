"""The communities and networks of the page: who is linked, who belongs together, and what changes over time."""

from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, network_of
from hypothesis import given
from hypothesis import strategies as st
from report.pages import by_id

import crowdgraph as cg
from crowdgraph.core.community_events import CommunityEvent
from crowdgraph.plot._style import colours
from crowdgraph.report import communities as pictures
from crowdgraph.report.communities import describe_event, ribbons, track_sentence
from crowdgraph.report.write import payload

# Networks


def test_networks_are_the_networks(graph, data):
    shown = data["networks"]["pictures"]
    assert [picture["title"] for picture in shown] == ["Who behaves alike", "Who works on the same items"]
    for picture in shown:
        network = graph.network(picture["name"])
        assert picture["id"] == [str(name) for name in network.ids]
        left, right = (picture["links"][start::2] for start in (0, 1))
        weights = np.asarray(network.weights.toarray() if hasattr(network.weights, "toarray") else network.weights)
        np.testing.assert_allclose(picture["weights"], weights[left, right] / weights.max(), atol=6e-4)
        assert np.abs([picture["x"], picture["y"]]).max() == pytest.approx(1)
        assert f"{len(left):,} of {network.n_edges:,} links" in picture["note"]


def test_of_large_networks_the_strongest_links_are_drawn(graph, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_VOLUNTEERS", 20)
    monkeypatch.setattr(pictures, "MAX_LINKS", 15)
    for picture in payload(graph)["networks"]["pictures"]:
        assert len(picture["id"]) == 20
        assert picture["note"].startswith("The 20 of ")
        assert len(picture["weights"]) == 15
        assert "the strongest 15 of " in picture["note"]


# Communities


def test_communities_are_described(graph, data):
    groups, shown = graph.communities(), data["communities"]
    assert [row["volunteers"] for row in shown["rows"]] == groups.sizes.tolist()
    assert [row["behaviour"] for row in shown["rows"]] == groups.describe()["behaviour"].tolist()
    np.testing.assert_allclose(shown["mean"], groups.mean_confusion(by_responses=True), atol=5e-5)
    central = [groups.confusion.of(name).mean for name in groups.centroids]
    np.testing.assert_allclose(shown["central"], central, atol=5e-5)
    assert data["colours"]["communities"][: len(groups)] == colours(range(len(groups)))


def test_communities_of_some_volunteers(bare):
    network = network_of(np.zeros((2, 2)), ids=["anna", "bert"])
    data = payload(bare.annotate(communities_of([0, 1], ids=["bert", "cleo"]), name="groups").annotate(network))
    assert by_id(data["volunteers"], "community", ["anna", "bert", "cleo"]) == [-1, 0, 1]
    picture = data["networks"]["pictures"][0]
    assert picture["community"] == [-1, 0]
    assert picture["title"] == "The network by hand"
    assert picture["links"] == []


def test_one_crowd_has_no_groups(graph):
    ids, network = graph.volunteers.ids, graph.network("task_cooccurrence")
    everybody = communities_of(np.zeros(60, dtype=int), ids=ids)
    track = cg.CommunityTrack(
        ids=ids,
        times=graph.responses.time[-1:],
        counts=[2_400],
        snapshots=[everybody],
        clock=graph.responses.clock,
        method="by hand",
    )
    one_crowd = graph.first(2_400).annotate(network)
    one_crowd = one_crowd.annotate(communities_of([0] * len(network), ids=network.ids), name="task communities")
    data = payload(one_crowd.annotate(everybody, name="groups").annotate(track))
    assert data["communities"]["missing"] == "by hand found one community; whether there are more was not tested."
    assert "At no time was there clear evidence" in data["track"]["missing"]
    assert "community" not in data["volunteers"]
    assert data["networks"]["pictures"][0]["noun"] is None


def test_communities_that_become_visible_have_not_split(graph):
    ids, two = graph.volunteers.ids, (np.arange(60) < 20).astype(int)
    doubt = cg.Evidence(agreement=0.5, modularity=0.1, null_modularity=[0.1, 0.1, 0.1], structured=False)
    clear = cg.Evidence(agreement=0.9, modularity=0.5, null_modularity=[0.1, 0.1, 0.1], structured=True)
    for evidence, told in ((doubt, "(20 volunteers) is first seen; it may be older"), (clear, "splits off")):
        everybody = communities_of(np.tile([1.0, 0.0], (60, 1)), ids=ids, evidence=evidence)
        snapshots = [everybody, communities_of(two, ids=ids, evidence=clear), everybody]
        track = cg.CommunityTrack(
            ids=ids,
            times=graph.responses.time[[800, 1_600, 2_399]],
            counts=[801, 1_601, 2_400],
            snapshots=snapshots,
            clock=graph.responses.clock,
            method="by hand",
        )
        assert track.unclear == (evidence is doubt, False, evidence is doubt)
        assert ("first seen" in track._repr_html_()) == (evidence is doubt)
        data = payload(graph.annotate(track))
        words = [event["words"] for event in data["track"]["events"]]
        assert any(told in one for one in words)
        assert ("that does not say that it ended" in "".join(words)) == (evidence is doubt)
        (over_time,) = [s["words"] for s in data["overview"]["sentences"] if "over time" in s["words"]]
        story = {
            True: "none clear after 801 responses, 2 after 1,601 (first seen: community 1), none clear after 2,400",
            False: "1 after 801 responses, 2 after 1,601 (new: community 1), "
            "1 after 2,400 (merged into another: community 1)",
        }
        assert over_time == f"Communities over time: {story[evidence is doubt]}."


def answering(graph, assignment):
    """Return communities whose members answer as their number says: the first nearly always right, and so on."""
    kinds = np.array([[[95, 3, 2], [2, 3, 95]], [[2, 3, 95], [2, 3, 95]], [[95, 3, 2], [95, 3, 2]]])
    confusion = cg.ConfusionSnapshot(
        ids=graph.volunteers.ids, concentration=kinds[assignment], classes=graph.classes, labels=graph.labels
    )
    member = np.eye(3)[assignment]
    return replace(communities_of(member, ids=graph.volunteers.ids), confusion=confusion)


def test_the_story_of_communities_says_what_is_new(graph):
    """Of many snapshots some are named, with all that is new since the last of these."""
    one, two, three = (np.arange(60) // 20 * np.array([n > 1, n > 1, n > 2])[np.arange(60) // 20] for n in (1, 2, 3))
    for n_each, n_named in ((1, 3), (4, 6)):
        snapshots = [answering(graph, kind) for kind in (one, two, three) for _ in range(n_each)]
        counts = np.linspace(800, 2_400, len(snapshots)).astype(int)
        track = cg.CommunityTrack(
            ids=graph.volunteers.ids,
            times=graph.responses.time[counts - 1],
            counts=counts,
            snapshots=snapshots,
            clock=graph.responses.clock,
            method="by hand",
        )
        story = track_sentence(track)
        assert story.count(" after ") == n_named
        labels = graph.labels
        assert f"(new: says {labels[2]} to nearly everything)" in story
        assert f"(new: says {labels[0]} to nearly everything)" in story
        assert story.startswith("1 after 800 responses, ")


def test_few_movers_are_named(graph):
    ids, before = graph.volunteers.ids, (np.arange(60) < 20).astype(int)
    for n, told in ((1, f"{ids[0]} moves"), (3, f"{ids[0]}, {ids[1]} and {ids[2]} move"), (4, "4 volunteers move")):
        after = np.where(np.arange(60) < n, 0, before)
        track = cg.CommunityTrack(
            ids=ids,
            times=graph.responses.time[[800, 1_600]],
            counts=[801, 1_601],
            snapshots=[communities_of(before, ids=ids), communities_of(after, ids=ids)],
            clock=graph.responses.clock,
            method="by hand",
        )
        words = [event["words"] for event in payload(graph.annotate(track))["track"]["events"]]
        assert any(one.endswith(f": {told} from community 1 to community 0") for one in words)


# Communities of those who work on the same items


@pytest.fixture(scope="module")
def tasks_only(graph):
    """The graph with no result but the network of those who work on the same items."""
    return graph.first(len(graph.responses)).annotate(graph.network("task_cooccurrence"))


def test_task_communities_colour_their_network(graph, data):
    alike, tasks = data["networks"]["pictures"]
    assert (alike["noun"], tasks["noun"]) == ("community", "task community")
    assert alike["community"] == graph.communities().assignment[graph.volunteers.table.codes(alike["id"])].tolist()
    assert tasks["community"] == [1] * 12 + [0] * (len(tasks["id"]) - 12)
    assert data["communities"]["others"] == []
    words = f"form 2 task communities with {len(tasks['id']) - 12}, 12 volunteers."
    assert any(sentence["words"].endswith(words) for sentence in data["overview"]["sentences"])


@pytest.mark.parametrize("name", ["Groups by task", "groups"])
def test_task_communities_are_known_by_name_or_volunteers(graph, tasks_only, name):
    """Those of behaviour are described in their section, and those of tasks colour the network of tasks."""
    tasks, alike = graph.annotations["task communities"], graph.communities()
    data = payload(tasks_only.annotate(alike, name="alike").annotate(tasks, name=name))
    assert [row["volunteers"] for row in data["communities"]["rows"]] == alike.sizes.tolist()
    assert data["networks"]["pictures"][0]["noun"] == "task community"
    without = payload(tasks_only.annotate(alike, name="alike"))
    assert [row["volunteers"] for row in without["communities"]["rows"]] == alike.sizes.tolist()
    assert without["networks"]["pictures"][0]["noun"] == "community"


@pytest.mark.parametrize("name", ["task communities", "groups"])
def test_task_communities_are_never_shown_as_those_of_behaviour(graph, tasks_only, name):
    data = payload(tasks_only.annotate(graph.annotations["task communities"], name=name))
    assert data["networks"]["pictures"][0]["noun"] == "task community"
    assert "missing" in data["communities"]
    assert "community" not in data["volunteers"]
    assert "communities" not in [card["name"] for card in data["overview"]["cards"]]
    sentences = [sentence["words"] for sentence in data["overview"]["sentences"]]
    assert sum("task communities with" in sentence for sentence in sentences) == 1
    assert not any(sentence.startswith("There are") for sentence in sentences)


def test_more_task_communities_than_others_have_colours(agreeing):
    ids, codes = agreeing.volunteers.ids, np.arange(20)
    annotated = agreeing.annotate(communities_of(codes // 4, ids=ids), name="task communities")
    annotated = annotated.annotate(communities_of(codes // 10, ids=ids), name="groups")
    assert len(payload(annotated)["colours"]["communities"]) == 5


# Over time


def test_flow_moves_everybody_once(graph, data):
    track = graph.community_track()
    assert data["track"]["sizes"] == track.sizes.tolist()
    assert len(data["track"]["events"]) == len(track.events)
    groups = graph.communities()
    at_end = track.assignment[-1][graph.volunteers.table.codes(groups.ids.tolist())]
    assert data["track"]["renumbered"] == (at_end != groups.assignment).any()
    for flow in data["track"]["flows"]:
        both = (track.assignment[flow["from"]] >= 0) & (track.assignment[flow["to"]] >= 0)
        assert sum(n for *_, n in flow["ribbons"]) == np.count_nonzero(both)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=30))
def test_ribbons_count_pairs(pairs):
    before, after = np.array(pairs).T
    counts = {(source, target): n for source, target, n in ribbons(before, after)}
    for source in range(4):
        for target in range(4):
            assert counts.get((source, target), 0) == pairs.count((source, target))


@pytest.mark.parametrize(
    "name",
    ["born", "split", "returned", "ended", "merged", "grew", "shrank", "moved", "first seen", "no longer seen"],
)
def test_every_event_has_words(name):
    words = describe_event(CommunityEvent(1, name, 2, 3, 10, 20, 1))
    assert "community 2" in words
    assert ("community 3" in words) == (name in ("split", "merged", "moved", "first seen", "no longer seen"))


def test_events_have_the_sizes_and_who_moved():
    split = CommunityEvent(1, "split", 1, 0, before=0, after=79, volunteers=46)
    assert describe_event(split) == "community 1 (79 volunteers) splits off community 0, from which 46 came"
    merged = CommunityEvent(2, "merged", 2, 0, before=1, after=0, volunteers=1)
    assert describe_event(merged) == "community 2 (1 volunteer) merges into community 0, to which 1 went"
