"""Tables in and out: every frame library gives the same graph, and nothing is lost on the way back."""

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

import crowdgraph as cg
from crowdgraph.errors import ColumnError, IdError
from crowdgraph.io.frames import stable_order

from_responses = cg.CrowdGraph.from_responses
PLAIN_IDS = ("int", "str", "date")


def through_frames(graph, kind):
    """Out through the graph's four tables and in again."""
    tables = {name: getattr(graph, f"to_{kind}")(table=name) for name in ("responses", "volunteers", "items", "gold")}
    return from_responses(
        tables["responses"],
        gold=tables["gold"],
        classes=graph.classes,
        labels=graph.labels,
        volunteers=tables["volunteers"],
        items=tables["items"],
    )


@given(graphs())
def test_nothing_is_lost_through_pandas(graph):
    assert through_frames(graph, "pandas").equals(graph)


@given(graphs(id_kinds=PLAIN_IDS))
def test_nothing_is_lost_through_arrow(graph):
    assert through_frames(graph, "arrow").equals(graph)


@given(graphs(id_kinds=PLAIN_IDS))
def test_nothing_is_lost_through_polars(graph):
    restored = through_frames(graph, "polars")
    if graph.responses.clock.zone == "-03:30":
        # polars has no fixed offsets: the instants survive, in UTC.
        assert restored.responses.clock.zone == "UTC"
        assert restored.responses.time.tolist() == graph.responses.time.tolist()
    else:
        assert restored.equals(graph)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_nanoseconds_survive(kind):
    times = np.array([5, 1, 3], dtype="datetime64[ns]")
    graph = from_responses({"volunteer": ["a", "b", "a"], "item": ["x"] * 3, "label": [0, 1, 0], "time": times})
    assert graph.responses.time.tolist() == [1, 3, 5]
    assert through_frames(graph, kind).equals(graph)


@pytest.mark.parametrize(
    "door",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: pl.DataFrame(columns).lazy(),
        lambda columns: duckdb.from_arrow(pa.table(columns)),
        lambda columns: pd.DataFrame(columns).astype({"volunteer": "category", "label": "category"}),
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pd.DataFrame(columns).astype(object),
        lambda columns: pl.DataFrame(columns).with_columns(pl.col("volunteer", "item").cast(pl.Categorical)),
        lambda columns: {name: pd.Series(values) for name, values in columns.items()},
        lambda columns: {name: tuple(values) for name, values in columns.items()},
        lambda columns: {name: np.array(values) for name, values in columns.items()},
        lambda columns: {name: pa.chunked_array([values[:2], values[2:]]) for name, values in columns.items()},
        lambda columns: {
            name: pa.chunked_array([pa.array(values[:2]).dictionary_encode(), pa.array(values[2:]).dictionary_encode()])
            for name, values in columns.items()
        },
    ],
)
def test_every_table_gives_the_same_graph(columns, door):
    assert from_responses(door(columns)).equals(from_responses(columns))


def test_unused_categories_are_no_volunteers_and_no_labels():
    category = pd.Categorical(["b", "a"], categories=["z", "b", "a"])
    graph = from_responses(pd.DataFrame({"volunteer": category, "item": [1, 1], "label": category}))
    assert list(graph.volunteers) == ["b", "a"]
    assert graph.labels == ("a", "b")


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=40))
def test_the_fast_sort_is_the_stable_sort(values):
    times = np.array(values, dtype=np.int64)
    assert stable_order(times).tolist() == np.argsort(times, kind="stable").tolist()
    assert stable_order(times.astype(float)).tolist() == np.argsort(times.astype(float), kind="stable").tolist()


@given(st.integers(0, 2**32 - 1), st.integers(1, 62))
def test_the_fast_sort_is_stable_at_every_width(seed, bits):
    """Wide ranges do not fit beside the row number and need the second pass."""
    times = np.random.default_rng(seed).integers(-(2**bits), 2**bits, 300)
    times[::7] = times[0]
    assert stable_order(times).tolist() == np.argsort(times, kind="stable").tolist()


def test_the_fast_sort_tells_neighbours_in_a_wide_range():
    """They are equal as far as there is room beside the row number, which is why there is a second pass."""
    times = np.array([2**61 + 1, 2**61, 0, 2**61 + 1, 2**61])
    assert stable_order(times).tolist() == [2, 1, 4, 0, 3]


def test_integers_with_gaps_and_far_apart_are_ids():
    for items in ([5, 9, 5, 7], [0, 2**40, 7, 0], [-3, 10**6, 4, 4]):
        graph = from_responses({"volunteer": ["a"] * 4, "item": np.array(items), "label": [0] * 4})
        assert [r.item for r in graph.responses] == items


@pytest.mark.parametrize(
    ("kind", "items"),
    [("int8", [-128, 127, 0]), ("int16", [-20_000, 20_000, 0]), ("uint64", [2**64 - 1, 0, 5])],
)
def test_small_integers_do_not_wrap(kind, items):
    graph = from_responses({"volunteer": ["a"] * 3, "item": np.array(items, dtype=kind), "label": [0] * 3})
    assert list(graph.items) == items


def test_nodes_come_by_first_response_in_time(columns):
    graph = from_responses(columns)
    assert list(graph.volunteers) == ["anna", "bert", "cleo"]
    assert list(graph.items) == ["x", "y", "z"]


def test_without_times_the_order_of_rows_is_the_time(columns):
    del columns["time"]
    graph = from_responses(columns)
    assert graph.responses.clock.kind == "order"
    assert list(graph.volunteers) == ["cleo", "anna", "bert"]
    assert "time" not in graph.to_pandas()
    assert graph.window(2, 4).to_pandas()["time"].tolist() == [2, 3]


def test_columns_may_have_other_names(columns):
    renamed = {"who": columns["volunteer"], "what": columns["item"], "said": columns["label"], "when": columns["time"]}
    graph = from_responses(renamed, volunteer="who", item="what", label="said", time="when")
    assert graph.equals(from_responses(columns))


def test_further_columns_become_attributes(columns):
    graph = from_responses(
        {**columns, "seconds": [6, 1, 2, 3, 4, 5]}, items={"item": ["w", "z", "y", "x"], "size": [1, 2, 3, 4]}
    )
    assert graph.responses.attributes["seconds"].tolist() == [1, 2, 3, 4, 6, 5]
    assert graph.responses[4].attributes == {"seconds": 6}
    assert list(graph.items) == ["w", "z", "y", "x"]
    assert graph.items["x"].attributes == {"size": 4}
    assert graph.items["w"].n_responses == 0
    assert "also have seconds" in repr(graph)
    assert list(from_responses(columns, items={"item": ["y"]}).items) == ["y", "x", "z"]


def test_attributes_keep_what_they_are():
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    odd = [{"a": 1}, (1, 2), moment]
    graph = from_responses({"volunteer": [1, 1, 1], "item": [1, 2, 3], "label": [0, 0, 0], "odd": odd})
    odd[0]["a"] = 2
    assert graph.responses.attributes["odd"].tolist() == [{"a": 1}, (1, 2), moment]


def test_numbers_of_both_kinds_are_floats():
    graph = from_responses({"volunteer": [1, 1, 1], "item": [1, 2, 3], "label": [0, 0, 0], "mixed": [1, 2.5, None]})
    np.testing.assert_array_equal(graph.responses.attributes["mixed"], [1.0, 2.5, np.nan])
    assert graph.to_arrow()["mixed"].type == pa.float64()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_changing_a_frame_leaves_the_graph(kind, graph):
    frame = getattr(graph, f"to_{kind}")()
    if kind == "pandas":
        frame.loc[:, "time"] = 99
        frame["label"] = "?"
    assert graph.responses.time.tolist() == [1, 2, 3, 3, 5, 9]
    assert through_frames(graph, kind).equals(graph)


@pytest.mark.parametrize(("policy", "labels"), [("all", [0, 1, 2, 3]), ("first", [0, 2]), ("last", [1, 3])])
def test_of_duplicates_all_the_first_or_the_last_count(policy, labels):
    columns = {"volunteer": ["a"] * 4, "item": ["y", "y", "x", "x"], "label": [3, 2, 1, 0], "time": [3, 2, 1, 0]}
    graph = from_responses(columns, duplicates=policy)
    assert [r.label for r in graph.responses] == labels


def test_null_labels_stay_or_are_dropped(columns):
    columns["label"][2] = None
    with_null = from_responses(columns, missing="keep")
    assert [r.label for r in with_null.responses] == ["yes", None, "no", "yes", "no", "yes"]
    assert "1 response shows an item without an answer" in repr(with_null)
    restored = from_responses(with_null.to_pandas(), missing="keep", labels=with_null.labels)
    assert restored.equals(with_null)
    with pytest.warns(cg.errors.DroppedRowsWarning, match=r"1 of 6 rows are left out: null label in rows 2"):
        dropped = from_responses(columns, missing="drop")
    assert len(dropped.responses) == 5


def test_labels_of_dropped_rows_are_no_labels(columns):
    columns["label"][0] = "only here"
    columns["volunteer"][0] = None
    with pytest.warns(cg.errors.DroppedRowsWarning):
        assert from_responses(columns, missing="drop").labels == ("no", "yes")


def test_labels_are_in_natural_order():
    def labels(values):
        n = len(values)
        return from_responses({"volunteer": ["a"] * n, "item": list(range(n)), "label": values}).labels

    assert labels(["10", "9", "-1"]) == ("-1", "9", "10")
    assert labels(["b", "10", "a"]) == ("10", "a", "b")
    assert labels([3.0, -1.0, 1.0]) == (-1, 1, 3)
    assert labels([2.5, 0.5]) == (0.5, 2.5)
    assert labels([True, False]) == (False, True)
    assert labels([("b",), ("a",)]) == (("a",), ("b",))


def test_classes_are_the_labels_unless_gold_says_otherwise(columns):
    assert from_responses(columns, gold={"x": "yes"}).classes == ("no", "yes")
    assert from_responses(columns, gold={"x": "supernova", "y": "dust"}).classes == ("dust", "supernova")
    assert from_responses(columns, gold={"x": "b"}, classes=["b", "a"]).classes == ("b", "a")
    assert from_responses(columns, labels=["yes", "no", "skip"]).labels == ("yes", "no", "skip")


def test_missing_packages_are_named(graph, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(cg.errors.MissingPackageError, match="pip install polars"):
        graph.to_polars()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cg.errors.MissingPackageError, match=r"pip install pandas, or ask for kind='arrow'"):
        graph.to_pandas()


@pytest.mark.parametrize(
    "bad", [("a", float("nan")), ("a", (1, np.datetime64("NaT"))), frozenset([float("nan")]), Decimal("NaN")]
)
def test_ids_that_hold_nan_are_refused(bad):
    """Such an id equals nothing, itself included, so that a saved graph could not be the graph that was saved."""
    with pytest.raises(IdError, match=r"The volunteer in row 1 is .*, which holds NaN"):
        from_responses({"volunteer": ["b", bad], "item": [1, 1], "label": [0, 1]})


def test_ids_may_hold_none():
    graph = from_responses({"volunteer": [("a", None), "b"], "item": [1, 1], "label": [0, 1]})
    assert ("a", None) in graph.volunteers


def test_columns_of_one_name_are_refused():
    table = pa.table([["a"], ["b"], ["n"], ["m"]], names=["volunteer", "item", "label", "label"])
    with pytest.raises(ColumnError, match=r"columns of the same name: 'label'\. Rename or drop them"):
        from_responses(table)


def test_values_that_arrow_has_no_type_for_are_kept(columns):
    """Such as complex numbers, which pandas holds without Python's objects."""
    numbers = [1 + 2j] * 6
    assert from_responses(pd.DataFrame({**columns, "phase": numbers})).responses.attributes["phase"].tolist() == numbers


@pytest.mark.parametrize(
    ("values", "words"),
    [([2**70, 1, 2, 3, 4, 5], "too large"), ([1j, 1, 2, 3, 4, 5], "holds values of type complex and int")],
)
def test_what_arrow_cannot_hold_is_named(columns, values, words):
    graph = from_responses({**columns, "size": values})
    with pytest.raises(IdError, match=rf"^Column 'size' cannot become an Arrow column: .*{words}.*with to_pandas\(\)"):
        graph.to_arrow()


def test_times_of_a_fixed_offset_are_in_utc_where_tables_have_no_offsets():
    zone = dt.timezone(dt.timedelta(hours=5))
    times = [dt.datetime(2026, 1, day, 3, tzinfo=zone) for day in (1, 2)]
    graph = from_responses({"volunteer": ["a", "b"], "item": ["x", "x"], "label": [0, 1], "time": times})
    column = graph.to_polars()["time"]
    assert column.dtype.time_zone == "UTC"
    assert column.to_list() == times
