"""Moments of every kind against plain Python comparison."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.core.clock import Clock, zone_info
from crowdgraph.errors import TimeError

SMALL = st.integers(-50, 50)
AMSTERDAM = ZoneInfo("Europe/Amsterdam")


@given(st.lists(SMALL), st.floats(-60, 60) | SMALL, st.booleans(), st.booleans())
def test_numbers_count_as_python_counts(values, moment, inclusive, as_float):
    times = np.array(sorted(values), dtype=float if as_float else np.int64)
    expected = sum(value <= moment if inclusive else value < moment for value in values)
    assert Clock("number").count_until(times, moment, inclusive=inclusive) == expected


@given(
    st.lists(st.integers(-(10**6), 10**6)),
    st.integers(-(10**6) * 1000, 10**6 * 1000),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.booleans(),
)
def test_datetimes_of_any_unit_count_exactly(ticks, nanoseconds, unit, inclusive):
    """The moment may be finer than the column's unit."""
    per_tick = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    times = np.array(sorted(ticks), dtype=np.int64).view(f"datetime64[{unit}]")
    expected = sum(tick * per_tick <= nanoseconds if inclusive else tick * per_tick < nanoseconds for tick in ticks)
    moment = np.datetime64(nanoseconds, "ns")
    assert Clock("datetime").count_until(times, moment, inclusive=inclusive) == expected


@given(
    st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)),
    st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)),
)
def test_far_datetimes_do_not_wrap(time, moment):
    times = np.array([time], dtype="datetime64[us]")
    for form in (moment, moment.isoformat(), np.datetime64(moment)):
        assert Clock("datetime").count_until(times, form) == (time < moment)
        assert Clock("datetime").reached(times, form)[0] == (time <= moment)


def test_naive_moments_are_read_in_the_graphs_zone():
    clock = Clock("datetime", "Europe/Amsterdam")
    times = np.array(["2026-07-01T10:00"], dtype="datetime64[us]")  # noon in Amsterdam
    assert clock.count_until(times, "2026-07-01T12:00", inclusive=True) == 1
    assert clock.count_until(times, "2026-07-01T12:00") == 0
    assert clock.count_until(times, dt.datetime(2026, 7, 1, 12, 1, tzinfo=AMSTERDAM)) == 1
    assert clock.count_until(times, "2026-07-01T10:00:00.000001+00:00") == 1
    assert clock.count_until(times, np.datetime64("2026-07-01T10:01")) == 1
    assert clock.to_python(times) == [dt.datetime(2026, 7, 1, 12, tzinfo=AMSTERDAM)]


def test_nanoseconds_of_pandas_and_of_strings_count():
    times = np.array(["2026-03-01T00:00:00.000000002"], dtype="datetime64[ns]")
    clock = Clock("datetime")
    assert clock.count_until(times, pd.Timestamp("2026-03-01T00:00:00.000000003")) == 1
    assert clock.count_until(times, "2026-03-01T00:00:00.000000002") == 0
    assert clock.count_until(times, "2026-03-01T00:00:00.000000003") == 1
    assert clock.to_python(times) == list(times)


def test_dates_begin_at_midnight():
    times = np.array(["2026-03-01T00:00", "2026-03-01T10:00"], dtype="datetime64[s]")
    assert Clock("datetime").count_until(times, dt.date(2026, 3, 1), inclusive=True) == 1


def test_moments_beyond_the_column_are_all_or_nothing():
    times = np.array([1, 2], dtype=np.int64)
    clock = Clock("number")
    assert [clock.count_until(times, moment) for moment in (10**400, float("inf"), -(10**400), -float("inf"))] == [
        2,
        2,
        0,
        0,
    ]
    ns = np.array(["2026-01-01"], dtype="datetime64[ns]")
    assert Clock("datetime").count_until(ns, "9999-12-31") == 1
    assert Clock("datetime").count_until(ns, "1500-01-01") == 0
    assert (
        Clock("datetime", "UTC").count_until(ns, dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=3))))
        == 1
    )


@pytest.mark.parametrize(
    ("kind", "moment", "message"),
    [
        ("number", "2026-01-01", "times are numbers; got the moment '2026-01-01'"),
        ("number", float("nan"), "nan"),
        ("number", True, "True"),
        ("order", None, "None"),
        ("datetime", 5, "times are datetimes; got the moment 5"),
        ("datetime", "yesterday", "'yesterday'"),
        ("datetime", np.datetime64("NaT"), "NaT"),
        ("datetime", pd.NaT, "NaT"),
        ("datetime", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "has a time zone"),
    ],
)
def test_wrong_moments_are_named(kind, moment, message):
    times = np.zeros(1, dtype="datetime64[us]" if kind == "datetime" else np.int64)
    with pytest.raises(TimeError, match=message):
        Clock(kind).count_until(times, moment)


def test_zones_may_be_offsets():
    assert zone_info("+02:00").utcoffset(None) == dt.timedelta(hours=2)
