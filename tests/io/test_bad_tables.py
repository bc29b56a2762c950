"""Bad tables get an error that names the place; nothing but our own errors leaves a door."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphError,
    IdError,
    InputError,
    LabelError,
    MissingValueError,
    ParameterError,
    TimeError,
)

from_responses = cg.CrowdGraph.from_responses
GOOD = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": ["n", "y", "y"]}
AWARE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"volunteer": ["a", None, "a"]}, MissingValueError, r"Null volunteer in rows 1.*missing='drop'"),
        ({"item": [float("nan"), "x", None]}, MissingValueError, "item in rows 0, 2"),
        ({"label": ["n", "y", None]}, MissingValueError, "label in rows 2.*missing='keep'"),
        ({"label": [1, "1", 1]}, LabelError, r"mixes types: 1 in row 0 \(number\), '1' in row 1 \(str\)"),
        ({"label": [1, True, 0]}, IdError, "would become one"),
        ({"volunteer": [1, True, 2]}, IdError, r"row 1 has True \(bool\), an earlier row has 1 \(int\)"),
        ({"item": [1.0, 1, 2]}, IdError, "would become one"),
        ({"item": [["x"], ["x"], ["y"]]}, IdError, r"row 0 is \['x'\].*not hashable"),
        ({"item": pa.array([[1], [1], [2]])}, IdError, "cannot be ids"),
        ({"item": ["x", "x"]}, ColumnError, "differ in length"),
        ({"item": "x"}, ColumnError, "'item' must be a list"),
        ({"item": {"x", "y", "z"}}, ColumnError, "'item' must be a list"),
        ({"item": 5}, ColumnError, "'item' must be a list"),
        ({"item": np.zeros((3, 2))}, ColumnError, r"shape \(3, 2\)"),
        ({"item": np.zeros(3, dtype=complex)}, ColumnError, "complex"),
        ({"time": [1, 2, None]}, MissingValueError, "time in rows 2"),
        ({"time": [1.0, float("inf"), 2.0]}, TimeError, "infinite.*rows 1"),
        ({"time": ["2026-01-01", "soon", "2026-01-03"]}, TimeError, "'soon' in row 1"),
        ({"time": ["1", "foo", "3"]}, TimeError, "'foo' in row 1"),
        ({"time": ["2026-01-01", "2026-01-02T00:00Z", "2026-01-03"]}, TimeError, r"mix kinds.*in row 0.*in row 1"),
        (
            {"time": [AWARE, AWARE.replace(tzinfo=None), AWARE]},
            TimeError,
            r"without zone\)\. Give all of them one form",
        ),
        ({"time": [AWARE, 5, AWARE]}, TimeError, "mix kinds"),
        ({"time": [1, [2], 3]}, TimeError, r"row 1 is \[2\], a list"),
        ({"time": [True, False, True]}, TimeError, "row 0 is True"),
        ({"time": [2**70, 1, 2]}, TimeError, "64-bit"),
        ({"time": np.array([2**63, 1, 2], dtype=np.uint64)}, TimeError, "64-bit"),
        ({"time": pa.array([1, 2, 3], pa.duration("s"))}, TimeError, "duration"),
        (
            {"time": [dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), AWARE, AWARE]},
            TimeError,
            "outside the years",
        ),
    ],
)
def test_bad_columns(changes, error, message):
    with pytest.raises(error, match=message):
        from_responses({**GOOD, **changes})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"volunteer": "who"},
            ColumnError,
            "no column 'who' for the volunteer; the table has 'volunteer', 'item', 'label'",
        ),
        ({"item": "volunteer"}, ColumnError, "'volunteer' is named for two things"),
        ({"time": "when"}, ColumnError, "no column 'when' for the time"),
        ({"volunteer": ["volunteer"]}, ParameterError, "named by text"),
        ({"labels": ["n"]}, LabelError, r"1 labels are not among 'n': 'y' \(first in rows 1\)"),
        ({"labels": [0, 1]}, LabelError, "They are of type str, those given are int"),
        ({"labels": "ny"}, ParameterError, "several values"),
        ({"labels": 5}, ParameterError, "several values"),
        ({"classes": []}, ParameterError, "no classes"),
        ({"classes": ["a", "a"]}, ParameterError, "repeat 'a'"),
        ({"duplicates": "frist"}, ParameterError, "Did you mean 'first'"),
        ({"missing": "ignore"}, ParameterError, "missing='ignore' is not a choice"),
        ({"volunteers": {"name": ["a"]}}, ColumnError, "table of volunteers has no column 'volunteer'"),
        ({"volunteers": {"volunteer": ["a", "b", "a"]}}, IdError, "repeat"),
        ({"volunteers": {"volunteer": ["a", None]}}, MissingValueError, "null ids in rows 1"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        from_responses(GOOD, **options)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({}, ColumnError, "no columns"),
        ({"volunteer": [], "item": [], "label": []}, InputError, "no rows"),
        (pd.DataFrame(GOOD).iloc[:0], InputError, "no rows"),
        (pl.DataFrame(GOOD)[:0], InputError, "no rows"),
        ({"worker": ["a"], "item": ["x"], "label": ["y"]}, ColumnError, "Did you mean volunteer='worker'"),
        (pd.DataFrame([[1, 2, 3]], columns=["item", "item", "label"]), ColumnError, "same name: 'item'"),
        (pa.table([[1], [1]], names=["item", "item"]), ColumnError, "same name"),
        (pd.DataFrame([[1, 2, 3]]), ColumnError, "must be text; got 0, 1, 2"),
        ({**GOOD, 5: [1, 2, 3]}, ColumnError, "must be text"),
        ("responses.csv", InputError, "is a path"),
        (5, InputError, "from a int"),
        ([1, 2], InputError, "from a list"),
        (None, InputError, "from a NoneType"),
    ],
)
def test_bad_tables(table, error, message):
    with pytest.raises(error, match=message):
        from_responses(table)


def test_further_columns_cannot_take_our_names():
    with pytest.raises(ColumnError, match="'volunteer' has the name of a part of a response"):
        from_responses({**GOOD, "who": ["a", "b", "c"]}, volunteer="who")
    with pytest.raises(ColumnError, match="cannot be called 'position'"):
        from_responses({**GOOD, "position": [1, 2, 3]})


def test_nulls_of_every_library_are_nulls():
    for null in (None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")):
        with pytest.raises(MissingValueError, match="rows 1"):
            from_responses({**GOOD, "volunteer": ["a", null, "a"]})
    frames = (
        pd.DataFrame({**GOOD, "item": [1, None, 3]}),
        pd.DataFrame({**GOOD, "item": pd.array([1, None, 3], dtype="Int64")}),
        pl.DataFrame({**GOOD, "item": ["x", None, "y"]}),
        pl.DataFrame({**GOOD, "item": ["x", None, "y"]}).with_columns(pl.col("item").cast(pl.Categorical)),
        pa.table({**GOOD, "item": ["x", None, "y"]}),
    )
    for frame in frames:
        with pytest.raises(MissingValueError, match="item in rows 1"):
            from_responses(frame)
        with pytest.warns(cg.errors.DroppedRowsWarning):
            assert len(from_responses(frame, missing="drop").responses) == 2


def test_small_integers_do_not_wrap():
    for kind, values in (("int8", [-128, 127, 0]), ("int16", [-20_000, 20_000, 0]), ("uint64", [2**64 - 1, 0, 5])):
        graph = from_responses({**GOOD, "item": np.array(values, dtype=kind)})
        assert list(graph.items) == values


# Anything at all in a cell: either it makes a graph, or one of our errors says why not.
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.tuples(st.integers(), st.none()),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([pd.NA, pd.NaT, np.int8(3), np.float32(2.5), np.datetime64("2026"), object, 10**400]),
)
CELLS = st.lists(ANYTHING, min_size=3, max_size=3)


@given(
    st.fixed_dictionaries(
        {},
        optional={"volunteer": CELLS, "item": CELLS, "label": CELLS, "time": CELLS, "extra": CELLS},
    ),
    st.sampled_from(["error", "drop", "keep"]),
    st.sampled_from(["all", "first", "last", "error"]),
    st.none() | st.dictionaries(st.sampled_from(["x", "y", "q"]), ANYTHING, max_size=2),
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_malformed_tables_never_surprise(changes, missing, duplicates, gold):
    table = {**GOOD, **changes}
    try:
        graph = from_responses(table, missing=missing, duplicates=duplicates, gold=gold)
    except CrowdGraphError:
        return
    assert len(graph.responses) <= 3
    assert repr(graph)
    assert graph.to_networkx().number_of_edges() == len(graph.responses)


@given(st.lists(st.sampled_from(["volunteer", "item", "label", "time", 5]), max_size=5), st.data())
def test_malformed_pandas_frames_never_surprise(names, data):
    rows = data.draw(st.lists(st.tuples(*[ANYTHING] * len(names)), max_size=4))
    frame = pd.DataFrame(rows, columns=names)
    try:
        from_responses(frame)
    except CrowdGraphError:
        return
