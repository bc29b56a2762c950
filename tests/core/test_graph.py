"""The graph: parts, immutability, annotations and read-outs."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import AlignmentError, ColumnError, IdError, NotAnnotatedError, ParameterError, UnknownIdError


def test_parts(graph):
    assert (len(graph.volunteers), len(graph.items), len(graph.responses)) == (3, 3, 6)
    assert list(graph.volunteers) == ["anna", "bert", "cleo"]
    assert graph.labels == graph.classes == ("no", "yes")
    assert graph.volunteers.n_responses.tolist() == [3, 2, 1]
    assert graph.items.n_responses.tolist() == [3, 2, 1]
    assert "anna" in graph.volunteers
    assert "x" not in graph.volunteers
    assert [1] not in graph.volunteers


def test_responses_are_sorted_by_time_and_ties_keep_their_order(graph):
    assert [(r.volunteer, r.item, r.label, r.time) for r in graph.responses] == [
        ("anna", "x", "yes", 1),
        ("bert", "x", "no", 2),
        ("anna", "y", "no", 3),
        ("bert", "z", "yes", 3),
        ("cleo", "y", "no", 5),
        ("anna", "x", "yes", 9),
    ]
    assert graph.responses[-1].time == 9
    assert graph.responses.is_repeat.tolist() == [False] * 5 + [True]
    assert graph.answers.n_repeats == 1
    with pytest.raises(IndexError, match="no response 6"):
        graph.responses[6]


def test_nodes_show_their_responses(graph):
    anna = graph.volunteers["anna"]
    assert (anna.id, anna.code, anna.n_responses) == ("anna", 0, 3)
    assert [response.item for response in anna.responses] == ["x", "y", "x"]
    assert graph.items["x"].gold == "yes"
    assert graph.items["z"].gold is None
    assert repr(anna) == "Volunteer('anna', 3 responses)"


@pytest.mark.parametrize(
    ("wrong", "hint"), [("ana", "Did you mean 'anna'"), (7, "of type str"), (["a"], "no volunteer")]
)
def test_unknown_ids_are_named(graph, wrong, hint):
    with pytest.raises(UnknownIdError, match=hint) as raised:
        graph.volunteers[wrong]
    assert isinstance(raised.value, KeyError)


def test_a_graph_cannot_be_changed(graph):
    with pytest.raises(AttributeError, match="immutable"):
        graph.labels = ("a",)
    with pytest.raises(AttributeError, match="immutable"):
        del graph.labels
    with pytest.raises(AttributeError):
        graph.gold.probs = None
    for column in ("volunteer", "item", "label", "time"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(graph.responses, column)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        graph.volunteers.ids[0] = "eve"
    with pytest.raises(TypeError):
        graph.annotations["x"] = 1


def test_a_graph_does_not_follow_its_source(columns):
    arrays = {name: np.array(values, dtype=None) for name, values in columns.items()}
    arrays["time"] = np.sort(arrays["time"])
    graph = cg.CrowdGraph.from_responses(arrays)
    arrays["time"][:] = 77
    arrays["label"][:] = "?"
    assert graph.responses.time.tolist() == [1, 2, 3, 3, 5, 9]
    assert set(graph.labels) == {"no", "yes"}


def test_the_story(graph, fit):
    story = repr(graph.annotate(fit))
    for words in (
        "3 volunteers, 3 items, 6 responses",
        "no 50%, yes 50%",
        "gold for 2 of 3",
        "1 to 9",
        "made-up (ModelFit)",
    ):
        assert words in story
    page = cg.CrowdGraph.from_responses({"volunteer": ["<b>"], "item": ["&"], "label": ["<i>"]})._repr_html_()
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert repr(graph.responses).startswith("Responses: 6 from 1 to 9")
    assert repr(graph.first(0).responses) == "Responses: none"
    assert "'anna', 'bert', 'cleo'" in repr(graph.volunteers)


def test_annotating_returns_a_new_graph_that_shares_the_columns(graph, fit):
    annotated = graph.annotate(fit)
    assert dict(graph.annotations) == {}
    assert list(annotated.annotations) == ["made-up"]
    for column in ("volunteer", "item", "label", "time"):
        assert np.shares_memory(getattr(graph.responses, column), getattr(annotated.responses, column))
    assert annotated.fit() is fit
    assert annotated.confusion("made-up") is fit.confusion
    assert annotated.item_probs() is fit.item_probs
    assert annotated.items["y"].class_probs == {"no": 0.9, "yes": 0.1}
    assert annotated.volunteers["anna"].confusion.times.tolist() == [1, 3, 9]


def test_the_latest_annotation_answers(graph, fit):
    groups = [
        cg.Communities(ids=["bert", "anna"], participation=[[1.0, 0.0], [0.3, 0.7]], modularity=q, method=name)
        for q, name in ((0.1, "one"), (0.2, "two"))
    ]
    annotated = graph.annotate(groups[0]).annotate(groups[1]).annotate(fit)
    assert annotated.communities().method == "two"
    assert annotated.communities("one").method == "one"
    assert annotated.volunteers["anna"].participation.tolist() == [0.3, 0.7]
    assert annotated.annotate(groups[0]).communities().method == "one"
    assert list(annotated.annotate(groups[0], name="two").annotations) == ["one", "made-up", "two"]


def test_what_is_not_carried_is_said(graph, fit):
    with pytest.raises(NotAnnotatedError, match=r"no confusion matrices.*graph = graph.annotate"):
        graph.volunteers["anna"].confusion  # noqa: B018
    with pytest.raises(NotAnnotatedError, match=r"There is no annotation 'mad-up'.*Did you mean 'made-up'"):
        graph.annotate(fit).fit("mad-up")
    with pytest.raises(NotAnnotatedError, match="'made-up' has no communities"):
        graph.annotate(fit).communities("made-up")
    for read in (graph.network, graph.community_track):
        with pytest.raises(NotAnnotatedError):
            read()


def test_results_for_other_graphs_are_refused(graph, fit, columns):
    before = dict(graph.annotations)
    other = cg.CrowdGraph.from_responses({**columns, "item": ["y", "x", "x", "y", "w", "x"]})
    with pytest.raises(AlignmentError, match=r"1 of its items are not in the graph \('z'\)"):
        other.annotate(fit)
    with pytest.raises(AlignmentError, match="covers 3 of the graph's 4 items"):
        cg.CrowdGraph.from_responses(columns, items={"item": ["x", "y", "z", "w"]}).annotate(fit)
    with pytest.raises(AlignmentError, match="another order"):
        cg.CrowdGraph.from_responses(columns, items={"item": ["z", "y", "x"]}).annotate(fit)
    with pytest.raises(AlignmentError, match="classes"):
        cg.CrowdGraph.from_responses(columns, classes=["yes", "no"]).annotate(fit)
    with pytest.raises(AlignmentError, match="labels"):
        cg.CrowdGraph.from_responses(columns, classes=["no", "yes"], labels=["yes", "no"]).annotate(fit)
    stranger = cg.Communities(ids=["zoe"], participation=[[1.0]], modularity=0.0, method="m")
    with pytest.raises(AlignmentError, match="'zoe'"):
        graph.annotate(stranger)
    with pytest.raises(ParameterError, match="got a int"):
        graph.annotate(5)
    with pytest.raises(ParameterError, match="text"):
        graph.annotate(fit, name=5)
    assert dict(graph.annotations) == before


def test_gold_can_be_exchanged(graph, fit):
    other = graph.annotate(fit).with_gold({"z": "no"})
    assert dict(other.gold) == {"z": "no"}
    assert dict(graph.gold) == {"x": "yes", "y": "no"}
    assert not other.annotations
    assert len(graph.with_gold(None).gold) == 0
    assert graph.with_gold({"z": "maybe"}, classes=["no", "maybe"]).classes == ("no", "maybe")


def test_finished_tables_are_checked():
    def table(**changes):
        columns = {"volunteer": [0, 0], "item": [0, 0], "label": [0, -1], "time": [1, 2], **changes}
        return ResponseTable(**{k: np.array(v) for k, v in columns.items()}, clock=cg.Clock("number"))

    nodes = NodeTable("volunteer", ["a"]), NodeTable("item", ["x"])
    graph = cg.CrowdGraph(*nodes, table(), classes=["c"], labels=["l"])
    assert graph.responses[1].label is None
    for changes, message in (
        ({"volunteer": [0, 1]}, "'volunteer' run from 0 to 1"),
        ({"item": [-1, 0]}, "'item' run from -1"),
        ({"label": [0, 1]}, "'label' run from 0 to 1"),
        ({"label": [0]}, "'label' has shape"),
        ({"label": [0.0, 1.0]}, "integer codes"),
    ):
        with pytest.raises(ColumnError, match=message):
            cg.CrowdGraph(*nodes, table(**changes), classes=["c"], labels=["l"])
    with pytest.raises(IdError, match=r"1 volunteer ids repeat \('a'\)"):
        NodeTable("volunteer", ["a", "b", "a"])
    with pytest.raises(ColumnError, match="'age' of the volunteers has shape"):
        NodeTable("volunteer", ["a"], {"age": [1, 2]})
    with pytest.raises(ColumnError, match="cannot be called 'kind'"):
        NodeTable("volunteer", ["a"], {"kind": [1]})


def test_a_copy_or_a_pickle_is_the_same_and_as_immutable(graph, fit):
    annotated = graph.annotate(fit)
    for again in (copy.deepcopy(annotated), pickle.loads(pickle.dumps(annotated))):  # noqa: S301
        assert again.equals(annotated)
        assert again.confusion().of("anna").at(3).mean.tolist() == fit.confusion.of("anna").at(3).mean.tolist()
        for array in (again.responses.label, again.volunteers.ids, again.gold.probs, again.item_probs()):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_equal_numbers_of_other_types_are_not_equal():
    def graph_of(item, label):
        return cg.CrowdGraph.from_responses({"volunteer": ["a", "a"], "item": [item, "x"], "label": label})

    assert not graph_of(1, [0, 1]).equals(graph_of(True, [0, 1]))
    assert not graph_of(1, [0, 1]).equals(graph_of(1, [False, True]))
    assert not graph_of(1, [0, 1]).equals("a graph")


def test_items_that_were_only_shown_are_no_answers():
    columns = {"volunteer": ["a"] * 3, "item": ["x"] * 3, "label": [None, "yes", "no"]}
    graph = cg.CrowdGraph.from_responses(columns, missing="keep", gold={"x": "yes"})
    assert graph.responses.is_repeat.tolist() == [False, False, True]
    first = cg.CrowdGraph.from_responses(columns, missing="keep", duplicates="first")
    assert [r.label for r in first.responses] == [None, "yes"]
    with pytest.raises(ParameterError, match="No item"):
        graph.first(1).select_experienced(min_per_class=0, min_experienced=1)


def test_what_leaves_a_graph_is_a_copy():
    graph = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["x"], "label": [0], "blob": [{"k": 1}]})
    graph.responses[0].attributes["blob"]["k"] = 2
    next(iter(graph.to_networkx().edges(data=True)))[2]["blob"]["k"] = 3
    assert graph.responses[0].attributes == {"blob": {"k": 1}}


def test_gold_of_another_graph_is_refused(graph):
    other = cg.CrowdGraph.from_responses({"volunteer": ["a"], "item": ["w"], "label": ["no"]}, labels=["no", "yes"])
    with pytest.raises(cg.errors.GoldError, match="other items"):
        cg.CrowdGraph(
            graph.volunteers.table,
            graph.items.table,
            graph.responses.table,
            classes=graph.classes,
            labels=graph.labels,
            gold=other.gold,
        )


def test_volunteers_outside_the_communities_take_no_part(graph):
    groups = cg.Communities(ids=["anna"], participation=[[1.0, 0.0]], modularity=0.0, method="m")
    assert graph.annotate(groups).volunteers["bert"].participation.tolist() == [0, 0]


def test_slices_and_masks_of_responses(graph):
    assert [r.time for r in graph.responses[1:3]] == [2, 3]
    assert [r.volunteer for r in graph.responses[graph.responses.label == 0]] == ["bert", "anna", "cleo"]
    assert graph.volunteers["anna"].responses.to_frame()["item"].tolist() == ["x", "y", "x"]
    assert graph.responses.to_frame(kind="arrow").equals(graph.to_arrow())
    for wrong in (slice(0, 6, 2), np.array([True]), True, "anna"):
        with pytest.raises(ParameterError, match="an integer, a slice"):
            graph.responses[wrong]


def test_a_track_of_a_view_does_not_fit_the_whole(graph, fit, columns):
    track = dataclasses.replace(
        fit.confusion,
        starts=[0, 1, 1, 1],
        times=graph.responses.time[:1],
        concentration=fit.confusion.concentration[:1],
    )
    with pytest.raises(AlignmentError, match="1 steps, the graph 6 responses"):
        graph.annotate(track)
    dated = cg.CrowdGraph.from_responses({**columns, "time": [f"2026-01-0{day}" for day in columns["time"]]})
    with pytest.raises(AlignmentError, match="times are"):
        dated.annotate(fit.confusion)


def test_a_view_tells_who_is_active(graph):
    assert repr(graph.first(2)).startswith("CrowdGraph: 3 volunteers (2 active), 3 items (1 active), 2 responses")
    assert "1 responses answer an item that the volunteer had answered before" in repr(graph)


def test_selection_needs_gold_of_every_class(graph):
    with pytest.raises(ParameterError, match="no gold"):
        graph.with_gold(None).select_experienced()
    with pytest.raises(ParameterError, match="gold for 1 of 3 items"):
        graph.with_gold({"x": "yes"}).select_experienced()
