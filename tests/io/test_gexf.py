"""Dynamic GEXF: round trips, what it says about times, other readers, no leak, and bad input."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from builders import communities_of, crowd, graph_of, network_of, track_of
from hypothesis import HealthCheck, given, settings
from results import same_graph
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import ColumnError, CrowdGraphWarning, IdError, InputError, ParameterError, StoreError

NS = "{http://www.gexf.net/1.2draft}"
# What version 1.2 allows: the attributes of each element and the elements inside of it.
TIMES = {"start", "end", "startopen", "endopen"}
ALLOWED = {
    "gexf": ({"version", "variant"}, {"meta", "graph"}),
    "meta": ({"lastmodifieddate"}, {"creator", "keywords", "description"}),
    "creator": (set(), set()),
    "description": (set(), set()),
    "graph": ({"timeformat", "defaultedgetype", "idtype", "mode"} | TIMES, {"attributes", "nodes", "edges"}),
    "attributes": ({"class", "mode"} | TIMES, {"attribute"}),
    "attribute": ({"id", "title", "type"}, {"default", "options"}),
    "nodes": ({"count"}, {"node"}),
    "node": ({"id", "label", "pid"} | TIMES, {"attvalues", "spells", "nodes", "edges", "parents"}),
    "edges": ({"count"}, {"edge"}),
    "edge": ({"id", "source", "target", "label", "weight", "type"} | TIMES, {"attvalues", "spells"}),
    "attvalues": (set(), {"attvalue"}),
    "attvalue": ({"for", "value"} | TIMES, set()),
    "spells": (set(), {"spell"}),
    "spell": (TIMES, set()),
}
REQUIRED = {
    "gexf": {"version"},
    "attributes": {"class"},
    "attribute": {"id", "title", "type"},
    "node": {"id"},
    "edge": {"id", "source", "target"},
    "attvalue": {"for", "value"},
}
TIME = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?")
TYPES = {"integer", "long", "double", "float", "boolean", "liststring", "string", "anyURI"}


def check_structure(path):
    """Check a file against the elements, attributes, types and times that version 1.2 allows."""
    root = ET.parse(path).getroot()  # noqa: S314 - our own file
    assert root.tag == f"{NS}gexf"
    assert root.get("version") == "1.2"
    declared = {"node": set(), "edge": set()}
    for element in root.iter():
        name = element.tag.removeprefix(NS)
        attributes, children = ALLOWED[name]
        assert set(element.keys()) <= attributes, name
        assert set(element.keys()) >= REQUIRED.get(name, set()), name
        assert {child.tag.removeprefix(NS) for child in element} <= children, name
        assert all(TIME.fullmatch(element.get(key)) for key in TIMES & set(element.keys()))
        if name == "attributes":
            assert all(one.get("type") in TYPES for one in element)
            declared[element.get("class")] |= {one.get("id") for one in element}
    for owner, ids in declared.items():
        for element in root.iter(f"{NS}{owner}"):
            assert {value.get("for") for value in element.iter(f"{NS}attvalue")} <= ids
    assert len({node.get("id") for node in root.iter(f"{NS}node")}) == sum(1 for _ in root.iter(f"{NS}node"))
    return root


def check_schema(path):
    """Validate a file by the XSD of GEXF 1.2, if the environment says where it is and which Python has lxml."""
    schema = os.environ.get("CROWDGRAPH_GEXF_SCHEMA")
    if not schema:
        return
    program = (
        "import sys; from lxml import etree; schema, file = sys.argv[1:]; "
        "etree.XMLSchema(etree.parse(schema)).assertValid(etree.parse(file, etree.XMLParser(huge_tree=True)))"
    )
    python = os.environ.get("CROWDGRAPH_LXML_PYTHON", sys.executable)
    subprocess.run([python, "-c", program, schema, str(path)], check=True)


def check(path):
    root = check_structure(path)
    check_schema(path)
    nx.read_gexf(path)
    return root


def same_annotations(left, right):
    assert list(left.annotations) == list(right.annotations)
    for name, result in left.annotations.items():
        other = right.annotations[name]
        assert type(other) is type(result)
        assert other.to_frame(kind="arrow").equals(result.to_frame(kind="arrow"))


@pytest.fixture(scope="module")
def annotated():
    graph = crowd(0.9, 0.6, n_volunteers=20, n_items=40, n_responses=400).graph
    graph = graph.annotate(cg.DynIBCC(confusion_prior=(4, 1)).fit(graph))
    network = cg.networks.task_cooccurrence(graph)
    graph = graph.annotate(network).annotate(cg.Leiden().detect(network, seed=0))
    track = cg.dynamics.over_time(
        graph, counts=[200, 300, 400], network=cg.networks.task_cooccurrence, model=None, detector=cg.Leiden(), seed=0
    )
    return graph.annotate(track)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_round_trip(tmp_path, graph):
    path = tmp_path / "x.gexf"
    try:
        graph.to_gexf(path)
    except IdError:  # ids that become the same text
        return
    check(path)
    again = cg.read_gexf(path)
    assert again.equals(graph)
    assert again.gold.n_unmatched == graph.gold.n_unmatched


def test_annotations_come_back(tmp_path, annotated):
    annotated.to_gexf(tmp_path / "x.gexf")
    check(tmp_path / "x.gexf")
    again = cg.read_gexf(tmp_path / "x.gexf")
    assert again.equals(annotated)
    same_annotations(annotated, again)


@pytest.mark.parametrize("zone", [None, "Europe/Amsterdam"])
def test_responses_are_moments_and_nodes_last_from_first_to_last(tmp_path, zone):
    import pandas as pd

    times = pd.to_datetime(["2026-03-01 12:00", "2026-03-02 12:00", "2026-03-03 12:00"])
    times = times if zone is None else times.tz_localize(zone)
    frame = pd.DataFrame({"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": [0, 1, 0], "time": times})
    graph = cg.CrowdGraph.from_responses(frame)
    graph.to_gexf(tmp_path / "x.gexf")
    root = check(tmp_path / "x.gexf")
    edges = [(edge.get("label"), edge.get("start"), edge.get("end")) for edge in root.iter(f"{NS}edge")]
    hour, end = ("12", "") if zone is None else ("11", "Z")
    assert [start for _, start, _ in edges] == [stop for _, _, stop in edges]
    assert re.fullmatch(rf"2026-03-01T{hour}:00:00(\.0+)?{end}", edges[0][1])
    spells = {node.get("id"): (node.get("start"), node.get("end")) for node in root.iter(f"{NS}node")}
    assert spells["volunteer:a"] == (edges[0][1], edges[2][1])
    assert spells["item:x"] == (edges[0][1], edges[1][1])
    assert root.find(f"{NS}graph").get("timeformat") == "date"
    assert cg.read_gexf(tmp_path / "x.gexf").responses[0].time == graph.responses[0].time


def changes(root, title):
    keys = {one.get("id") for one in root.iter(f"{NS}attribute") if one.get("title") == title}
    return {
        node.get("id"): [
            (value.get("value"), value.get("start"), value.get("end"))
            for value in node.iter(f"{NS}attvalue")
            if value.get("for") in keys
        ]
        for node in root.iter(f"{NS}node")
    }


def test_skill_and_community_change(tmp_path, annotated):
    annotated.to_gexf(tmp_path / "x.gexf")
    root = check(tmp_path / "x.gexf")
    fit, track = annotated.fit(), annotated.community_track()
    skills, communities = changes(root, "skill"), changes(root, "community")
    for volunteer in annotated.volunteers:
        history = fit.confusion.of(volunteer)
        steps = skills[f"volunteer:{volunteer}"]
        assert 1 <= len(steps) <= 50
        expected = history.accuracy(fit.class_probs)
        assert float(steps[-1][0]) == pytest.approx(expected[-1], abs=1e-3)
        # Intervals touch and do not overlap.
        assert all(before[2] == after[1] for before, after in pairwise(steps))
        code = annotated.volunteers.table.code(volunteer)
        numbers = [number for number in track.assignment[:, code].tolist() if number >= 0]
        joined = [number for place, number in enumerate(numbers) if place == 0 or numbers[place - 1] != number]
        assert [int(value) for value, _, _ in communities[f"volunteer:{volunteer}"]] == joined
    assert not skills[f"item:{annotated.items.ids[0]}"]


def test_nothing_of_the_future_is_written(tmp_path, annotated):
    moment = annotated.responses.time[249]
    view = annotated.first(250)
    fit = cg.IBCC().fit(view)
    graph = annotated.annotate(fit, name="then")
    rng = np.random.default_rng(0)
    table = graph.responses.table
    label = np.array(table.label)
    label[250:] = rng.integers(0, len(graph.labels), len(label) - 250)
    changed = graph.replace(
        responses=type(table)(table.volunteer, table.item, label, table.time, table.clock, table.attributes)
    )
    for name, result in graph.annotations.items():
        changed = changed.annotate(result, name=name)
    for name, one in (("a", graph), ("b", changed)):
        with pytest.warns(CrowdGraphWarning, match="left out"):
            one.to_gexf(tmp_path / f"{name}.gexf", at=moment)
    first, second = ((tmp_path / f"{name}.gexf").read_text() for name in "ab")
    assert first == second
    again = cg.read_gexf(tmp_path / "a.gexf")
    assert again.equals(view)
    assert "then" in again.annotations
    assert str(np.datetime_as_string(graph.responses.time[250])) not in first


def test_names_that_readers_reserve(tmp_path):
    names = ("id", "id_", "start", "end", "weight", "type")
    columns = {"volunteer": ["a"], "item": ["x"], "label": ["yes"], "time": [7], **{name: [name] for name in names}}
    graph = cg.CrowdGraph.from_responses(columns, volunteers={"volunteer": ["a"], "start": [3], "spells": ["?"]})
    graph.to_gexf(tmp_path / "x.gexf")
    check(tmp_path / "x.gexf")
    assert cg.read_gexf(tmp_path / "x.gexf").equals(graph)
    other = nx.read_gexf(tmp_path / "x.gexf")
    (data,) = (data for _, _, data in other.edges(data=True))
    assert (data["id__"], data["id_"], data["start_"], data["weight_"]) == ("id", "id_", "start", "weight")
    assert data["start"] == 7
    assert other.nodes["volunteer:a"]["start_"] == 3


# Networks over time


def test_networks_over_time(tmp_path, annotated):
    track = cg.dynamics.networks_over_time(annotated, counts=[150, 200, 300, 400])
    track.save(tmp_path / "x.gexf", communities=annotated.community_track(), confusion=annotated.fit())
    root = check(tmp_path / "x.gexf")
    texts = np.datetime_as_string(track.times).tolist()
    linked = {}
    for number, network in enumerate(track):
        for row in network.to_frame().itertuples():
            linked.setdefault(frozenset((row.volunteer, row.neighbour)), []).append((number, row.weight))
    edges = {frozenset((e.get("source"), e.get("target"))): e for e in root.iter(f"{NS}edge")}
    assert edges.keys() == linked.keys()
    for pair, element in edges.items():
        assert float(element.get("weight")) == pytest.approx(linked[pair][-1][1])
        values = [(float(v.get("value")), v.get("start")) for v in element.iter(f"{NS}attvalue")]
        steps = [(-2, None), *linked[pair]]
        joined = [new for old, new in pairwise(steps) if old != (new[0] - 1, new[1])]
        assert values == [(weight, texts[number]) for number, weight in joined]
        assert next(element.iter(f"{NS}spell")).get("start") == texts[linked[pair][0][0]]
    present = {name for network in track for name in network.ids.tolist()}
    spells = {node.get("id"): len(list(node.iter(f"{NS}spell"))) for node in root.iter(f"{NS}node")}
    assert {name for name, n in spells.items() if n} == present
    with pytest.raises(InputError, match="is a network of volunteers"):
        cg.read_gexf(tmp_path / "x.gexf")


def test_a_link_that_comes_back_has_two_spells(tmp_path):
    together, apart = network_of([[0, 1], [1, 0]]), network_of([[0, 0], [0, 0]])
    track = cg.NetworkTrack(
        ids=["v0", "v1"],
        times=[1, 2, 3, 5],
        counts=[1, 2, 3, 4],
        snapshots=[together, apart, together, together],
        clock=cg.Clock("number"),
        method="m",
    )
    track.save(tmp_path / "x.gexf", communities=track_of([[0, 0], [0, 1]]))
    root = check(tmp_path / "x.gexf")
    edge = next(root.iter(f"{NS}edge"))
    assert [(one.get("start"), one.get("end")) for one in edge.iter(f"{NS}spell")] == [("1", "2"), ("3", "6")]
    assert [(one.get("start"), one.get("end")) for one in edge.iter(f"{NS}attvalue")] == [("1", "2"), ("3", "6")]


def pair_track(**options):
    """One network of two volunteers, at the time 1."""
    one = {"ids": ["v0", "v1"], "times": [1], "counts": [1], "snapshots": [network_of([[0, 1], [1, 0]])]}
    return cg.NetworkTrack(**{**one, "clock": cg.Clock("number"), "method": "m", **options})


def test_communities_and_skills_without_change_hold_all_the_time(tmp_path):
    confusion = cg.ConfusionTrack.static(
        ids=["v0", "v1"], concentration=[[[3, 1], [1, 3]], [[1, 1], [1, 1]]], classes=["a", "b"], labels=["a", "b"]
    )
    pair_track().save(tmp_path / "x.gexf", communities=communities_of([0, -1]), confusion=confusion)
    root = check(tmp_path / "x.gexf")
    assert changes(root, "community") == {"v0": [("0", "1", "2")], "v1": []}
    assert changes(root, "skill") == {"v0": [("0.75", "1", "2")], "v1": [("0.5", "1", "2")]}


def test_of_skills_at_one_time_the_last_is_written(tmp_path):
    confusion = cg.ConfusionTrack(
        ids=["v0", "v1"],
        starts=[0, 3, 3],
        times=[1, 1, 2],
        concentration=[[[9, 1], [1, 9]], [[8, 2], [2, 8]], [[7, 3], [3, 7]]],
        initial=[[1, 1], [1, 1]],
        classes=["a", "b"],
        labels=["a", "b"],
        clock=cg.Clock("number"),
    )
    pair_track(times=[1, 4], counts=[1, 2], snapshots=2 * [network_of([[0, 1], [1, 0]])]).save(
        tmp_path / "x.gexf", confusion=confusion
    )
    assert changes(check(tmp_path / "x.gexf"), "skill") == {"v0": [("0.8", "1", "2"), ("0.7", "2", "7")], "v1": []}


def test_skill_is_written_only_where_it_is_known_which_labels_are_right(tmp_path, graph):
    confusion = cg.ConfusionTrack.static(
        ids=graph.volunteers.ids, concentration=np.ones((3, 2, 2)), classes=["no", "yes"], labels=["0", "1"]
    )
    columns = {**graph.to_arrow().to_pydict(), "label": ["0", "1", "1", "1", "0", "0"]}
    other = cg.CrowdGraph.from_responses(columns, gold={"x": "yes", "y": "no"}).annotate(confusion)
    other.to_gexf(tmp_path / "x.gexf")
    assert "skill" not in (tmp_path / "x.gexf").read_text().partition("<nodes")[0]
    read = cg.read_gexf(tmp_path / "x.gexf").confusion()
    assert np.array_equal(read.latest().concentration, confusion.latest().concentration)
    with pytest.raises(ParameterError, match=r"It is not known which labels are right.* leave confusion= out"):
        pair_track(ids=graph.volunteers.ids, snapshots=[network_of(np.zeros((3, 3)), ids=graph.volunteers.ids)]).save(
            tmp_path / "y.gexf", confusion=confusion
        )


def test_a_track_without_snapshots_is_not_written(tmp_path):
    with pytest.raises(ParameterError, match="has no snapshots, so there is nothing to write"):
        pair_track(times=[], counts=[], snapshots=[]).save(tmp_path / "x.gexf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "options", "error", "words"),
    [
        ("x.graphml", {}, ParameterError, "must end in .gexf"),
        ("nowhere/x.gexf", {}, StoreError, "Cannot write to"),
        (
            "x.gexf",
            {"communities": 3},
            ParameterError,
            "takes Communities or a CommunityTrack; got an int",
        ),
        ("x.gexf", {"confusion": 3}, ParameterError, "confusion= takes a fit with confusion matrices"),
        ("x.gexf", {"communities": track_of([[0, 0]], kind="order")}, ParameterError, "make both from one graph"),
        ("x.gexf", {"communities": track_of([[0]])}, cg.errors.AlignmentError, "lack 1 of the track's volunteers"),
    ],
)
def test_bad_tracks(tmp_path, path, options, error, words):
    with pytest.raises(error) as caught:
        pair_track().save(tmp_path / path, **options)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


# Files of others


def test_a_file_of_networkx(tmp_path):
    network = nx.MultiGraph()
    network.add_node("a", bipartite=0)
    network.add_node("x", bipartite=1, size_of=3)
    network.add_edge("a", "x", label="yes", time=3)
    network.add_edge("a", "x", label="no", time=5)
    nx.write_gexf(network, tmp_path / "x.gexf")
    graph = cg.read_gexf(tmp_path / "x.gexf")
    assert [(r.volunteer, r.item, r.label, r.time) for r in graph.responses] == [
        ("a", "x", "yes", 3),
        ("a", "x", "no", 5),
    ]
    assert graph.items["x"].attributes["size_of"] == 3


def foreign(
    edges,
    *,
    graph="",
    nodes='<node id="a"><attvalues><attvalue for="k" value="volunteer"/></attvalues></node>',
    declared="",
):
    items = '<node id="x"><attvalues><attvalue for="k" value="item"/></attvalues></node>'
    kinds = '<attributes class="node"><attribute id="k" title="kind" type="string"/></attributes>'
    return (
        f'<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph {graph}>{kinds}{declared}<nodes>{nodes}{items}</nodes>'
        f"<edges>{edges}</edges></graph></gexf>"
    )


def own_attribute(kind, *, owner="edge", default=""):
    """Declare the attribute t of a type, with the text of its default."""
    inside = f"<default>{default}</default>" if default else ""
    return (
        f'<attributes class="{owner}"><attribute id="t" title="trained" type="{kind}">{inside}</attribute></attributes>'
    )


def edge(inside="", *, more=""):
    return f'<edge source="a" target="x" label="yes" {more}>{inside}</edge>'


TRAINED = '<attvalues><attvalue for="t" value="{}"/></attvalues>'


@pytest.mark.parametrize(
    ("graph", "start", "time"),
    [
        ("", "3.5", 3.5),
        ('timeformat="dateTime"', "2026-03-01T00:00:00", "2026-03-01"),
        ('timeformat="integer"', "3", 3),
    ],
)
def test_the_start_of_an_edge_is_its_time(tmp_path, graph, start, time):
    (tmp_path / "x.gexf").write_text(foreign(f'<edge source="a" target="x" label="yes" start="{start}"/>', graph=graph))
    read = cg.read_gexf(tmp_path / "x.gexf")
    assert str(read.responses[0].time).startswith(str(time))


def test_the_weight_of_an_edge_is_an_attribute(tmp_path):
    (tmp_path / "x.gexf").write_text(foreign(edge(more='weight="2.5"')))
    assert cg.read_gexf(tmp_path / "x.gexf").responses[0].attributes == {"weight": 2.5}


@pytest.mark.parametrize(
    ("kind", "default", "text", "values"),
    [
        ("boolean", "false", "True", [True, False]),
        ("integer", "-1", "3", [3, -1]),
        ("string", "un known", "", ["", "un known"]),
    ],
)
def test_edges_without_a_value_have_the_default(tmp_path, kind, default, text, values):
    declared = own_attribute(kind, default=default)
    (tmp_path / "x.gexf").write_text(foreign(edge(TRAINED.format(text)) + edge(), declared=declared))
    read = cg.read_gexf(tmp_path / "x.gexf")
    assert read.responses.attributes["trained"].tolist() == values


def test_edges_that_another_program_numbered_are_read(tmp_path, graph):
    graph.to_gexf(tmp_path / "x.gexf")
    content = (tmp_path / "x.gexf").read_text()
    (tmp_path / "x.gexf").write_text(content.replace('<edge id="', '<edge id="e'))
    read = cg.read_gexf(tmp_path / "x.gexf")
    assert read.to_arrow() == graph.to_arrow()


BOMB = '<!DOCTYPE gexf [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><gexf version="1.2">&b;</gexf>'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not XML"),
        ("volunteer,item,label\n", "is not XML"),
        ("<html><body/></html>", "is not GEXF: it begins with <html>"),
        ("<graphml/>", "Read GraphML with crowdgraph.read_graphml"),
        (BOMB, "document type declaration"),
        ('<gexf version="1.2"><graph/></gexf>', "has no nodes"),
        (foreign('<edge source="a" target="x" label="1"/>')[:-20], "is cut short or damaged"),
        (foreign('<edge source="a" target="y" label="1"/>'), "edges to nodes that it does not have: 'y'"),
        (foreign('<edge source="a" target="x"/>'), "has no label"),
        (foreign('<edge source="a" label="1"/>'), "<edge> without target="),
        (foreign('<edge target="x" label="1"/>'), "<edge> without source="),
        (foreign('<edge source="a" target="x" label="1" start="soon"/>'), "'soon' as the start of an edge"),
        (foreign("", nodes='<node id="a"/>'), "every node needs the attribute kind"),
        (foreign("", nodes='<node id="x"/>'), "two nodes 'x'"),
        (
            foreign("", nodes='<node id="a"><attvalues><attvalue for="z" value="1"/></attvalues></node>'),
            "does not declare",
        ),
        (foreign("", nodes="<node/>"), "<node> without id="),
        (foreign(edge(more='weight="heavy"')), "'heavy' as the weight of an edge; expected a number"),
        (foreign(edge()).replace("</gexf>", "<graph/></gexf>"), "has several graphs"),
        (foreign(edge(), declared=own_attribute("string", owner="graph")), "attributes of class 'graph'"),
        (
            foreign(edge(TRAINED.format("maybe")), declared=own_attribute("boolean")),
            "declares the attribute 'trained' to be of type boolean, and has 'maybe'",
        ),
        (foreign(edge(), declared=own_attribute("integer", default="1.5")), "to be of type integer, and has '1.5'"),
    ],
)
def test_bad_files(tmp_path, content, words):
    (tmp_path / "x.gexf").write_text(content)
    with pytest.raises(InputError) as caught:
        cg.read_gexf(tmp_path / "x.gexf")
    assert words in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"x.gexf' does not exist or is not a file; give the path of a GEXF file"):
        cg.read_gexf(tmp_path / "x.gexf")
    with pytest.raises(InputError, match=r"^'.*' is a directory, not a file"):
        cg.read_gexf(tmp_path)


def test_every_cut_of_our_file_is_noticed(tmp_path, annotated):
    annotated.to_gexf(tmp_path / "x.gexf")
    content = (tmp_path / "x.gexf").read_bytes()
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(content) - len("</gexf>\n"), 25).tolist():
        (tmp_path / "cut.gexf").write_bytes(content[:size])
        with pytest.raises(InputError):
            cg.read_gexf(tmp_path / "cut.gexf")


@pytest.mark.parametrize("labels", [["a?>b", "c"], ["<", '"&'], [0, 1]])
def test_labels_that_xml_would_misread(tmp_path, labels):
    graph = graph_of(["\n", "<b>", "c"], ["?>", "--", " x "], [labels[0], labels[1], labels[0]])
    graph.to_gexf(tmp_path / "x.gexf")
    check(tmp_path / "x.gexf")
    assert cg.read_gexf(Path(tmp_path / "x.gexf")).equals(graph)


@pytest.mark.parametrize("name", ["skill", "community"])
def test_items_may_have_attributes_called_as_what_changes_of_volunteers(tmp_path, name):
    table = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": ["no", "yes"], "time": [1, 2]}
    graph = cg.CrowdGraph.from_responses(table, items={"item": ["x", "y"], name: [3, 4]})
    groups = communities_of([0, 1], ids=["a", "b"])
    track = cg.CommunityTrack(
        ids=["a", "b"], times=[1], counts=[1], snapshots=[groups], clock=graph.responses.clock, method="by hand"
    )
    graph = graph.annotate(cg.DynIBCC().fit(graph)).annotate(track)
    graph.to_gexf(tmp_path / "g.gexf")
    assert same_graph(cg.read_gexf(tmp_path / "g.gexf"), graph)
    ids = re.findall(r'<attribute id="([^"]*)"', (tmp_path / "g.gexf").read_text())
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("suffix", ["graphml", "gexf"])
def test_attributes_called_as_gold_probabilities_are_refused(tmp_path, suffix):
    table = {"volunteer": ["a", "b"], "item": ["x", "y"], "label": ["no", "yes"]}
    items = {"item": ["x", "y"], "gold(no)": [0.5, 0.9], "gold(yes)": [0.5, 0.1]}
    graph = cg.CrowdGraph.from_responses(table, items=items, gold={"x": {"no": 0.2, "yes": 0.8}})
    with pytest.raises(ColumnError, match=r"gold probabilities of items as 'gold\(no\)', 'gold\(yes\)'; rename"):
        getattr(graph, f"to_{suffix}")(tmp_path / f"g.{suffix}")
