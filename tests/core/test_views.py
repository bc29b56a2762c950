"""Views in time and parts of a graph, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import IdError, ParameterError, UnknownIdError


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


@pytest.mark.parametrize(
    "options",
    [{}, {"times": [1], "counts": [1]}, {"counts": [7]}, {"counts": [3, 1]}, {"counts": 5}, {"times": "2026"}],
)
def test_wrong_snapshots_are_refused_at_once(graph, options):
    with pytest.raises(ParameterError):
        graph.snapshots(**options)


@pytest.mark.parametrize("n", [-1, 7, 1.0, True, "3"])
def test_first_takes_a_count(graph, n):
    with pytest.raises(ParameterError, match="whole number from 0 to 6"):
        graph.first(n)


def test_a_window_may_be_open(graph):
    assert graph.window(None, 3).equals(graph.before(3))
    assert [r.time for r in graph.window(5, None).responses] == [5, 9]


def test_a_window_runs_forward(graph):
    with pytest.raises(ParameterError, match="swap them"):
        graph.window(5, 1)


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


def test_subgraphs_of_strangers_are_refused(graph):
    with pytest.raises(UnknownIdError, match="'eve'"):
        graph.subgraph(volunteers=["eve"])
    with pytest.raises(IdError, match=r"write \['anna'\]"):
        graph.subgraph(volunteers="anna")
    with pytest.raises(IdError, match="single value 5"):
        graph.subgraph(items=5)


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
def test_the_papers_selection(seed, min_per_class, min_experienced):
    graph = cg.simulate.crowd(n_volunteers=8, n_items=12, n_responses=40, gold=0.8, duplicates=0.2, seed=seed).graph
    items, volunteers = naive_selection(graph, min_per_class, min_experienced)
    if not items:
        with pytest.raises(ParameterError, match=r"No item was answered|every class"):
            graph.select_experienced(min_per_class=min_per_class, min_experienced=min_experienced)
        return
    part = graph.select_experienced(min_per_class=min_per_class, min_experienced=min_experienced)
    assert (set(part.items), set(part.volunteers)) == (items, volunteers)
    assert len(part.responses) == sum(r.item in items for r in graph.responses)
    with pytest.raises(ParameterError, match="min_per_class"):
        graph.select_experienced(min_per_class="many")
