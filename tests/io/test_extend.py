"""Graphs that grow: extending by parts gives the graph of the whole, and what cannot be compared is refused."""

import datetime as dt
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import tables

import crowdgraph as cg
from crowdgraph import errors

from_responses = cg.CrowdGraph.from_responses
DAY = {"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": ["yes", "no"]}


def rows(table, start, stop):
    return {name: column[start:stop] for name, column in table.items()}


def extended(graph, more, **options):
    """The longer graph, without the warning that responses came late."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.LateResponsesWarning)
        return graph.extend(more, **options)


@given(tables(id_kinds=("int", "str"), min_rows=3), st.data())
def test_parts_give_the_graph_of_the_whole(table, data):
    if "time" in table:
        order = sorted(range(len(table["label"])), key=lambda row: table["time"][row])
        table = {name: [column[row] for row in order] for name, column in table.items()}
    whole = from_responses(table)
    first = data.draw(st.integers(1, len(table["label"]) - 2))
    second = data.draw(st.integers(first + 1, len(table["label"]) - 1))
    parts = [rows(table, *bounds) for bounds in ((0, first), (first, second), (second, None))]
    # Rows of one kind of float or integer are read so: a part alone would be read as integers, for example.
    graph = from_responses(parts[0], labels=whole.labels)
    one, other, last = graph, graph.extend(parts[1]), graph.extend(parts[1]).extend(parts[2])
    assert last.responses.clock == whole.responses.clock
    for kind in ("volunteers", "items"):
        longer = getattr(last, kind).ids.tolist()
        assert longer == getattr(whole, kind).ids.tolist()
        for part in (one, other):
            assert getattr(part, kind).ids.tolist() == longer[: len(getattr(part, kind))]
    assert last.equals(whole)
    # It does not matter which parts are joined first.
    if "time" in table:
        joined = from_responses(parts[1], labels=whole.labels).extend(parts[2])
        assert graph.extend(joined).equals(whole)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), st.integers(0, 5)), min_size=2))
def test_late_responses_are_sorted_in(responses):
    table = dict(zip(("volunteer", "item", "label", "time"), map(list, zip(*responses, strict=True)), strict=True))
    graph = from_responses(rows(table, 0, 1), labels=[0, 1])
    longer = extended(graph, rows(table, 1, None))
    # A stable sort of all rows puts late ones after those of the same time, too.
    order = np.argsort(table["time"], kind="stable")
    for name in ("volunteer", "item"):
        ids = getattr(longer, f"{name}s").ids[getattr(longer.responses, name)]
        assert ids.tolist() == [table[name][row] for row in order]
    assert longer.responses.time.tolist() == sorted(table["time"])
    assert longer.volunteers.ids[0] == table["volunteer"][0]


def test_late_responses_are_counted():
    graph = from_responses({**DAY, "time": [3, 5]})
    with pytest.warns(errors.LateResponsesWarning, match=r"1 response of 2 came late"):
        longer = graph.extend({**DAY, "time": [5, 4]})
    assert longer.responses.time.tolist() == [3, 4, 5, 5]
    assert [response.volunteer for response in longer.responses] == ["anna", "bert", "bert", "anna"]


def test_without_times_rows_count_on():
    graph = from_responses(DAY).extend(DAY)
    assert graph.responses.time.tolist() == [0, 1, 2, 3]
    assert graph.responses.clock.kind == "order"


def test_the_graph_and_its_annotations_stay():
    graph = from_responses(DAY)
    annotated = graph.annotate(cg.MajorityVote().fit(graph))
    longer = annotated.extend(DAY)
    assert not longer.annotations
    assert annotated.n_responses == 2
    assert annotated.fit().model == "majority_vote"


@pytest.mark.parametrize(
    ("old", "new", "unit"),
    [("datetime64[s]", "datetime64[ms]", "ms"), ("datetime64[ns]", "datetime64[s]", "ns")],
)
def test_the_finer_unit_counts(old, new, unit):
    times = np.array([1, 2]).astype(old) + np.timedelta64(1, np.datetime_data(old)[0])
    graph = from_responses({**DAY, "time": times})
    longer = graph.extend({**DAY, "time": np.array([10**10, 2 * 10**10]).astype("datetime64[ns]").astype(new)})
    assert np.datetime_data(longer.responses.time.dtype)[0] == unit
    assert (longer.responses.time[:2] == times).all()


def test_numbers_of_both_types():
    longer = from_responses({**DAY, "time": [1, 2]}).extend({**DAY, "time": [2.5, 3.0]})
    assert longer.responses.time.tolist() == [1.0, 2.0, 2.5, 3.0]
    with pytest.raises(errors.TimeError, match="cannot hold both"):
        from_responses({**DAY, "time": [1, 2**60 + 1]}).extend({**DAY, "time": [0.5, 2.0**61]})


def test_years_that_nanoseconds_do_not_reach_are_refused():
    old = from_responses({**DAY, "time": np.array(["0500-01-01", "2026-01-01"], dtype="datetime64[us]")})
    with pytest.raises(errors.TimeError, match="cannot hold both"):
        old.extend({**DAY, "time": np.array([10**18 + 1, 10**18 + 2]).astype("datetime64[ns]")})


def test_another_zone_is_converted():
    moments = [dt.datetime(2026, 3, day, 12, tzinfo=ZoneInfo("Europe/Amsterdam")) for day in (1, 2)]
    graph = from_responses({**DAY, "time": moments})
    utc = [dt.datetime(2026, 3, day, 11, tzinfo=dt.UTC) for day in (3, 4)]
    longer = graph.extend({**DAY, "time": utc})
    assert longer.responses.clock.zone == "Europe/Amsterdam"
    assert longer.responses[2].time == utc[0]
    assert longer.responses[2].time.hour == 12


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (None, [1, 2], "no times but the order of its rows, the new responses have numbers"),
        ([1, 2], None, "numbers as times, the new responses have no times but the order of their rows"),
        ([1, 2], ["2026-03-01", "2026-03-02"], "numbers as times, the new responses have datetimes"),
        (["2026-03-01", "2026-03-02"], ["2026-03-03T00:00Z"] * 2, "no time zone, those of the new responses the zone"),
        (["2026-03-01T00:00Z"] * 2, ["2026-03-03"] * 2, "zone 'UTC', those of the new responses no time zone"),
    ],
)
def test_other_clocks_are_refused(old, new, message):
    graph = from_responses(DAY if old is None else {**DAY, "time": old})
    with pytest.raises(errors.TimeError, match=message):
        graph.extend(DAY if new is None else {**DAY, "time": new})


def test_labels_must_be_known():
    graph = from_responses(DAY)
    maybe = {**DAY, "label": ["maybe", "yes"]}
    with pytest.raises(errors.LabelError, match=r"'maybe' \(first in row 0\).*new_labels=True"):
        graph.extend(maybe)
    with pytest.raises(errors.LabelError, match="not among the graph's, 'no', 'yes': 'maybe'"):
        graph.extend(from_responses(maybe))
    longer = graph.extend(maybe, new_labels=True)
    assert longer.labels == longer.classes == ("no", "yes", "maybe")
    assert [response.label for response in longer.responses] == ["yes", "no", "maybe", "yes"]


def test_ids_of_another_type_are_refused():
    graph = from_responses({**DAY, "item": [1, 2]})
    with pytest.raises(errors.IdError, match=r"items are named by int, such as 1.*by str, such as '1'"):
        graph.extend({**DAY, "item": ["1", "2"]})


def test_gold_is_added():
    graph = from_responses(DAY, gold={"x": "yes"})
    more = {"volunteer": ["anna"], "item": ["y"], "label": ["no"]}
    assert dict(graph.extend(more, gold={"y": "no"}).gold) == {"x": "yes", "y": "no"}
    assert dict(graph.extend(from_responses(more, gold={"y": "no"}, labels=["no", "yes"])).gold) == {
        "x": "yes",
        "y": "no",
    }
    assert dict(from_responses(DAY).extend(more, gold={"x": "no"}).gold) == {"x": "no"}
    with pytest.raises(errors.GoldError, match="such as 'x': 'no' instead of 'yes'"):
        graph.extend(more, gold={"x": "no"})
    with pytest.raises(errors.GoldError, match="not among"):
        graph.extend(more, gold={"y": "perhaps"})


def test_gold_of_new_classes_that_are_labels():
    graph = from_responses(DAY, gold={"x": {"yes": 0.5, "no": 0.5}})
    longer = graph.extend({**DAY, "label": ["maybe", "yes"]}, new_labels=True)
    assert longer.gold["x"] == {"no": 0.5, "yes": 0.5, "maybe": 0.0}


@pytest.mark.parametrize(("duplicates", "labels"), [("all", 4), ("first", 2), ("last", 2)])
def test_duplicates_of_old_and_new(duplicates, labels):
    again = {**DAY, "label": ["no", "yes"]}
    longer = from_responses(DAY).extend(again, duplicates=duplicates)
    assert longer.n_responses == labels
    if duplicates != "all":
        expected = DAY if duplicates == "first" else again
        assert [response.label for response in longer.responses] == expected["label"]


def test_gold_of_added_responses_has_classes_of_the_graph():
    graph = from_responses(DAY, gold={"x": "yes"})
    more = {"volunteer": ["anna"], "item": ["y"], "label": ["no"]}
    added = from_responses(more, gold={"y": "comet"}, classes=["no", "yes", "comet"], labels=["no", "yes"])
    with pytest.raises(errors.GoldError, match="names 'comet'; the graph's classes are 'no', 'yes'"):
        graph.extend(added)
    # A class that the graph lacks, and that no item has, does no harm.
    added = from_responses(more, gold={"y": "no"}, classes=["no", "yes", "comet"], labels=["no", "yes"])
    assert dict(graph.extend(added).gold) == {"x": "yes", "y": "no"}


def test_a_crowd_without_anybody_in_common_is_warned_of():
    graph, other = ({name: [one] * 20 for name in ("volunteer", "item", "label")} for one in "ab")
    with pytest.warns(errors.CrowdGraphWarning, match=r"No volunteer and no item .*another project\?"):
        from_responses(graph, labels=["a", "b"]).extend(other)


def test_duplicates_can_be_an_error():
    with pytest.raises(errors.DuplicateError, match="2 responses repeat a volunteer and item"):
        from_responses(DAY).extend(DAY, duplicates="error")


def test_attributes_are_null_where_absent():
    graph = from_responses({**DAY, "device": ["phone", "web"], "seconds": [1.5, 2.0], "visit": [1, 2]})
    longer = graph.extend({**DAY, "seconds": [3.0, 4.0], "page": [7, 8]})
    columns = longer.responses.attributes
    assert columns["device"].tolist() == ["phone", "web", None, None]
    assert columns["seconds"].tolist() == [1.5, 2.0, 3.0, 4.0]
    assert columns["visit"].tolist() == [1, 2, None, None]
    assert columns["page"].tolist() == [None, None, 7, 8]


def test_numbers_and_times_stay_so_where_they_are_absent():
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[s]")
    first = from_responses({**DAY, "seconds": [1.5, 2.0], "seen": days})
    for longer, is_null in (
        (first.extend(DAY), [False, False, True, True]),
        (from_responses(DAY).extend({**DAY, "seconds": [1.5, 2.0], "seen": days}), [True, True, False, False]),
    ):
        seconds, seen = (longer.responses.attributes[name] for name in ("seconds", "seen"))
        assert (seconds.dtype, seen.dtype) == (np.float64, days.dtype)
        assert np.isnan(seconds).tolist() == np.isnat(seen).tolist() == is_null
        assert seconds[~np.isnan(seconds)].tolist() == [1.5, 2.0]
        assert seen[~np.isnat(seen)].tolist() == days.tolist()


@pytest.mark.parametrize("moments", [["2026-01-01", "2026-01-02"], ["2026-01-01", "NaT"], ["NaT", "NaT"]])
def test_times_of_nodes_stay_times(moments):
    since = np.array(moments, "datetime64[s]")
    graph = from_responses(DAY, volunteers={"volunteer": ["anna", "bert"], "since": since})
    longer = graph.extend({**DAY, "volunteer": ["bert", "cleo"]}).volunteers.attributes["since"]
    assert longer.dtype == since.dtype
    assert np.array_equal(longer, [*since, np.datetime64("NaT")], equal_nan=True)


def test_attributes_of_nodes():
    graph = from_responses(DAY, volunteers={"volunteer": ["anna", "bert"], "age": [30, 40], "city": ["Oslo", None]})
    longer = graph.extend(
        {**DAY, "volunteer": ["bert", "cleo"]},
        volunteers={"volunteer": ["cleo", "bert"], "city": ["Rome", "Bonn"], "score": [0.5, np.nan]},
    )
    assert longer.volunteers.attributes["age"].tolist() == [30, 40, None]
    assert longer.volunteers.attributes["city"].tolist() == ["Oslo", "Bonn", "Rome"]
    assert longer.volunteers.attributes["score"][2] == 0.5


def test_other_column_names_and_bad_tables():
    graph = from_responses(DAY)
    longer = graph.extend({"user": ["cleo"], "item": ["z"], "label": ["no"]}, volunteer="user")
    assert list(longer.volunteers) == ["anna", "bert", "cleo"]
    with pytest.raises(errors.ColumnError, match="no column 'volunteer'"):
        graph.extend({"user": ["cleo"], "item": ["z"], "label": ["no"]})
    with pytest.raises(errors.ParameterError, match="duplicates='none' is not a choice"):
        graph.extend(DAY, duplicates="none")
    with pytest.raises(errors.ColumnError, match="only attributes with one value"):
        cg.CrowdGraph(
            graph.volunteers.table,
            graph.items.table,
            type(graph.responses.table)(
                graph.responses.volunteer,
                graph.responses.item,
                graph.responses.label,
                graph.responses.time,
                graph.responses.clock,
                {"box": np.zeros((2, 4))},
            ),
            classes=graph.classes,
            labels=graph.labels,
        ).extend(DAY)
