"""The graph: parts, immutability, annotations, read-outs, and views against plain Python."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from builders import communities_of, crowd
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import AlignmentError, NotAnnotatedError, ParameterError


def test_a_graph_has_volunteers_items_and_responses(graph):
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


def test_nodes_show_their_responses(graph):
    anna = graph.volunteers["anna"]
    assert (anna.id, anna.code, anna.n_responses) == ("anna", 0, 3)
    assert [response.item for response in anna.responses] == ["x", "y", "x"]
    assert graph.items["x"].gold == "yes"
    assert graph.items["z"].gold is None
    assert repr(anna) == "Volunteer('anna', 3 responses)"


def test_unknown_ids_are_key_errors(graph):
    with pytest.raises(KeyError):
        graph.volunteers["ana"]


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


def test_the_repr_tells_the_story(graph, fit):
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
    assert repr(graph.volunteers) == "Volunteers: 3 ('anna', 'bert', 'cleo')"


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
    groups = [communities_of([[1.0, 0.0], [0.3, 0.7]], ids=["bert", "anna"], method=name) for name in ("one", "two")]
    annotated = graph.annotate(groups[0]).annotate(groups[1]).annotate(fit)
    assert annotated.communities().method == "two"
    assert annotated.communities("one").method == "one"
    assert annotated.volunteers["anna"].participation.tolist() == [0.3, 0.7]
    assert annotated.annotate(groups[0]).communities().method == "one"
    assert list(annotated.annotate(groups[0], name="two").annotations) == ["one", "made-up", "two"]


def test_missing_annotations_are_named(graph, fit):
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
    with pytest.raises(AlignmentError, match=r"the graph lacks 1 of its items \('z'\)"):
        other.annotate(fit)
    with pytest.raises(AlignmentError, match="covers 3 of the graph's 4 items"):
        cg.CrowdGraph.from_responses(columns, items={"item": ["x", "y", "z", "w"]}).annotate(fit)
    with pytest.raises(AlignmentError, match="another order"):
        cg.CrowdGraph.from_responses(columns, items={"item": ["z", "y", "x"]}).annotate(fit)
    with pytest.raises(AlignmentError, match="classes"):
        cg.CrowdGraph.from_responses(columns, classes=["yes", "no"]).annotate(fit)
    with pytest.raises(AlignmentError, match="labels"):
        cg.CrowdGraph.from_responses(columns, classes=["no", "yes"], labels=["yes", "no"]).annotate(fit)
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


def test_volunteers_outside_the_communities_take_no_part(graph):
    groups = communities_of([[1.0, 0.0]], ids=["anna"])
    assert graph.annotate(groups).volunteers["bert"].participation.tolist() == [0, 0]


def test_responses_are_read_by_slices_and_masks(graph):
    assert [r.time for r in graph.responses[1:3]] == [2, 3]
    assert [r.volunteer for r in graph.responses[graph.responses.label == 0]] == ["bert", "anna", "cleo"]
    assert graph.volunteers["anna"].responses.to_frame()["item"].tolist() == ["x", "y", "x"]
    assert graph.responses.to_frame(kind="arrow").equals(graph.to_arrow())


def test_long_lists_of_nodes_end_in_dots():
    columns = {"volunteer": list("abcd"), "item": list("wxyz"), "label": [0, 1, 0, 1]}
    assert repr(cg.CrowdGraph.from_responses(columns).volunteers) == "Volunteers: 4 ('a', 'b', 'c', ...)"


@pytest.mark.parametrize(("times", "shown"), [([0, 1, 2], True), ([5, 6, 7], True), (None, False)])
def test_times_are_columns_unless_they_are_numbers_of_rows(columns, times, shown):
    rows = {name: values[:3] for name, values in columns.items() if name != "time"}
    graph = cg.CrowdGraph.from_responses(rows if times is None else {**rows, "time": times})
    frame = graph.responses.to_frame()
    assert ("time" in frame) is shown
    assert not shown or frame["time"].tolist() == times


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
    assert "1 response answers an item that the volunteer had answered before" in repr(graph)


# Arguments that are results, names of results, or nothing.


@pytest.fixture
def communities():
    """Two communities of two of the graph's three volunteers."""
    return communities_of([[1.0, 0.0], [0.3, 0.7]], ids=["cleo", "anna"])


@pytest.fixture
def votes(graph, fit):
    """A fit without confusion matrices."""
    return dataclasses.replace(fit, model="votes", confusion=None)


def test_a_fit_is_given_named_or_the_latest(graph, fit, votes):
    annotated = graph.annotate(fit).annotate(votes)
    assert graph.resolve_fit(fit) is fit
    assert annotated.resolve_fit("made-up", needs="confusion") is fit
    assert annotated.resolve_fit() is votes


def test_fits_that_do_not_serve_are_refused(graph, fit, votes):
    with pytest.raises(NotAnnotatedError, match=r"no model's fit\. Fit a model first: .*annotate\(cg\.IBCC"):
        graph.fit()
    with pytest.raises(NotAnnotatedError, match="carries no model's fit") as raised:
        graph.resolve_fit()
    assert "--model ibcc" in raised.value.message.wording("cli")
    with pytest.raises(NotAnnotatedError, match=r"'votes' has no confusion matrices\. Fit a model with"):
        graph.resolve_fit(votes, needs="confusion")
    with pytest.raises(ParameterError, match="fit= takes a fit or the name of one; got an int"):
        graph.resolve_fit(3)
    with pytest.raises(AlignmentError, match="made for another graph"):
        graph.subgraph(items=["x"]).resolve_fit(fit)


def test_communities_are_given_named_or_the_latest(graph, communities):
    annotated = graph.annotate(communities)
    assert graph.resolve_communities(communities) is communities
    assert annotated.resolve_communities("by hand") is annotated.resolve_communities() is communities
    with pytest.raises(
        NotAnnotatedError, match=r"no communities\. Find some first: .*cg\.BayesianNMF\(\)\.detect\(network"
    ):
        graph.communities()
    with pytest.raises(NotAnnotatedError, match=r"Find some: .*networks\.task_cooccurrence\(graph\)"):
        graph.resolve_communities(network="task_cooccurrence")
    with pytest.raises(ParameterError, match="communities= takes Communities or the name of some; got a list"):
        graph.resolve_communities([])
    with pytest.raises(AlignmentError, match="this one lacks 1 of its volunteers"):
        graph.subgraph(volunteers=["anna"]).resolve_communities(communities)


# Views in time and parts of a graph, against plain Python.


def rows(graph):
    return [(r.volunteer, r.item, r.label, r.time) for r in graph.responses]


@given(graphs(time_kinds=("int", "float")), st.data())
def test_views_hold_the_responses_of_their_time(graph, data):
    times = [r.time for r in graph.responses]
    start, stop = sorted(data.draw(st.lists(st.sampled_from(times) | st.integers(-9, 9), min_size=2, max_size=2)))
    assert rows(graph.before(stop)) == [row for row in rows(graph) if row[3] < stop]
    assert rows(graph.window(start, stop)) == [row for row in rows(graph) if start <= row[3] < stop]
    n = data.draw(st.integers(0, len(times)))
    assert rows(graph.first(n)) == rows(graph)[:n]


@given(graphs())
def test_views_keep_nodes_codes_and_gold(graph):
    view = graph.first(len(graph.responses) // 2)
    assert view.volunteers.table is graph.volunteers.table
    assert view.items.table is graph.items.table
    assert view.gold is graph.gold
    assert view.first(0).volunteers.n_responses.tolist() == [0] * len(graph.volunteers)


def test_views_share_memory_and_carry_no_annotations(graph, fit):
    view = graph.annotate(fit).before(3)
    assert not view.annotations
    for column in ("volunteer", "item", "label", "time"):
        assert np.shares_memory(getattr(graph.responses, column), getattr(view.responses, column))


def test_snapshots_are_views_one_after_another(graph):
    assert [len(view.responses) for view in graph.snapshots(counts=np.array([0, 2, 6]))] == [0, 2, 6]
    assert [len(view.responses) for view in graph.snapshots(times=[0, 3, 100])] == [0, 2, 6]
    assert next(graph.snapshots(times=[3])).equals(graph.before(3))


def test_a_window_may_be_open(graph):
    assert graph.window(None, 3).equals(graph.before(3))
    assert [r.time for r in graph.window(5, None).responses] == [5, 9]


@given(graphs(), st.data())
def test_subgraphs_are_induced(graph, data):
    chosen = data.draw(st.lists(st.sampled_from(list(graph.volunteers)), unique=True))
    items = data.draw(st.none() | st.lists(st.sampled_from(list(graph.items)), unique=True))
    part = graph.subgraph(volunteers=chosen, items=items)
    expected = [row for row in rows(graph) if row[0] in chosen and (items is None or row[1] in items)]
    assert rows(part) == expected
    assert list(part.volunteers) == [v for v in graph.volunteers if v in chosen]
    wanted = {row[1] for row in expected} if items is None else set(items)
    assert list(part.items) == [i for i in graph.items if i in wanted]
    assert all(part.items[item].gold == graph.items[item].gold for item in part.items)
    for name, column in graph.volunteers.attributes.items():
        assert part.volunteers.attributes[name].tolist() == column[graph.volunteers.codes(part.volunteers.ids)].tolist()


def naive_selection(graph, min_per_class, min_experienced):
    """The paper's rule, written out."""
    seen = {(r.volunteer, r.item) for r in graph.responses}
    examples = {
        v: {c: sum(w == v and graph.gold.get(i) == c for w, i in seen) for c in graph.classes} for v in graph.volunteers
    }
    experienced = {v for v, counts in examples.items() if min(counts.values()) >= min_per_class}
    items = {i for i in graph.items if sum(j == i and v in experienced for v, j in seen) >= min_experienced}
    return items, {v for v, i in seen if i in items}


@given(st.integers(0, 1000), st.integers(0, 3), st.integers(1, 3))
def test_the_selection_is_that_of_the_paper(seed, min_per_class, min_experienced):
    graph = crowd(n_volunteers=8, n_items=12, n_responses=40, gold=0.8, duplicates=0.2, seed=seed).graph
    items, volunteers = naive_selection(graph, min_per_class, min_experienced)
    if not items:
        with pytest.raises(ParameterError, match=r"No item was answered|every class"):
            graph.select_experienced(min_per_class=min_per_class, min_experienced=min_experienced)
        return
    part = graph.select_experienced(min_per_class=min_per_class, min_experienced=min_experienced)
    assert (set(part.items), set(part.volunteers)) == (items, volunteers)
    assert len(part.responses) == sum(r.item in items for r in graph.responses)
