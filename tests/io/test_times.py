"""Times of every form."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg

AMSTERDAM = ZoneInfo("Europe/Amsterdam")


def graph_of(times, **options):
    n = len(times)
    columns = {"volunteer": list(range(n)), "item": [0] * n, "label": [0] * n, "time": times}
    return cg.CrowdGraph.from_responses(columns, **options)


@given(st.lists(st.datetimes(timezones=st.sampled_from([AMSTERDAM, dt.UTC])), min_size=1))
def test_zoned_datetimes_are_sorted_as_instants(moments):
    try:
        expected = sorted(moment.astimezone(dt.UTC) for moment in moments)
    except OverflowError:
        return
    graph = graph_of(moments)
    # Compared in UTC: Python calls times in the hour that comes twice unequal to any time of another zone.
    assert [r.time.astimezone(dt.UTC) for r in graph.responses] == expected


@pytest.mark.parametrize(
    ("times", "zone"),
    [
        ([dt.datetime(2026, 7, 1, tzinfo=AMSTERDAM)], "Europe/Amsterdam"),
        ([dt.datetime(2026, 7, 1, tzinfo=dt.UTC)], "UTC"),
        ([dt.datetime(2026, 7, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3.5)))], "-03:30"),
        ([dt.datetime(2026, 7, 1, tzinfo=dt.timezone(dt.timedelta(hours=-5), "CET"))], "-05:00"),
        ([dt.datetime(2026, 7, 1, tzinfo=AMSTERDAM), dt.datetime(2026, 7, 1, tzinfo=dt.UTC)], "UTC"),
        (["2026-07-01T00:00+02:00"], "UTC"),
        (["2026-07-01 00:00:00 UTC"], "UTC"),
        (["20260701T000000Z"], "UTC"),
        (pd.to_datetime(["2026-07-01"]).tz_localize("Europe/Amsterdam"), "Europe/Amsterdam"),
        (pa.array([0], pa.timestamp("ms", "+02:00")), "+02:00"),
        ([dt.datetime(2026, 7, 1)], None),
        ([dt.date(2026, 7, 1)], None),
        (["2026-07-01"], None),
        (pl.Series([dt.date(2026, 7, 1)]), None),
        (np.array(["2026-07"], dtype="datetime64[M]"), None),
        ([np.datetime64("2026-07-01T00:00")], None),
    ],
)
def test_zones_are_known_in_every_form(times, zone):
    assert graph_of(times).responses.clock == cg.Clock("datetime", zone)


def test_daylight_saving_is_ordered_by_instant():
    graph = graph_of(["2026-10-25T02:30:00+01:00", "2026-10-25T02:45:00+02:00"])
    assert list(graph.volunteers) == [1, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T00:00:00.000000005", "2026-03-01T00:00:00.000000005"),
        ("20260301T000000.000000005", "2026-03-01T00:00:00.000000005"),
        ("2026-03-01 00:00:00.000000005 UTC", "2026-03-01T00:00:00.000000005"),
        (" 2026-03-01T00:00:00.5 ", "2026-03-01T00:00:00.5"),
    ],
)
def test_fractions_of_seconds_survive(text, expected):
    assert graph_of([text]).responses.time[0] == np.datetime64(expected)


def test_timestamps_of_pandas_keep_their_nanoseconds():
    graph = graph_of([pd.Timestamp("2026-01-01T00:00:00.000000005")])
    assert graph.responses.time[0] == np.datetime64("2026-01-01T00:00:00.000000005")


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.float32(), pa.date64(), pa.timestamp("s"), pa.int64()])
def test_times_of_arrow_are_ordered_and_may_be_null(kind):
    with pytest.warns(cg.errors.DroppedRowsWarning, match="null time in rows 1"):
        graph = graph_of(pa.chunked_array([pa.array([3, None, 1], pa.int64()).cast(kind)]), missing="drop")
    assert list(graph.volunteers) == [2, 0]
    assert graph.responses.time[0] < graph.responses.time[1]


class Nowhere(dt.tzinfo):
    """A zone with a name that nobody can look up."""

    key = "Nowhere/Land"

    def utcoffset(self, moment):
        return dt.timedelta(hours=3)


def test_times_of_unknown_zones_are_in_utc():
    graph = graph_of([dt.datetime(2026, 7, 1, 12, tzinfo=Nowhere())])
    assert graph.responses.clock == cg.Clock("datetime", "UTC")
    assert graph.responses[0].time == dt.datetime(2026, 7, 1, 9, tzinfo=dt.UTC)


def test_no_times_are_datetimes_where_the_graph_had_such():
    graph = graph_of([dt.datetime(2026, 7, 1)]).first(0)
    assert cg.CrowdGraph.from_networkx(graph.to_networkx()).equals(graph)
