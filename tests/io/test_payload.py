"""Annotations and settings as text, which every format carries."""

import base64
import datetime as dt
import json
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from builders import communities_of, fitted, network_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs, text

import crowdgraph as cg
from crowdgraph.core._arrays import columns_equal, object_array
from crowdgraph.errors import CrowdGraphWarning, IdError, InputError
from crowdgraph.io import _payload
from crowdgraph.io._payload import (
    column_texts,
    column_type,
    column_values,
    decode_value,
    encode_value,
    graph_settings,
    pack_annotations,
    read_settings,
    unpack_annotations,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.binary(max_size=4)
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.sampled_from([None, dt.UTC, ZoneInfo("Europe/Amsterdam")]))
)
values = st.recursive(
    scalars, lambda parts: st.tuples(parts, parts) | st.lists(parts, max_size=2) | st.frozensets(st.integers())
)
COLUMNS = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int8": st.integers(-128, 127),
    "float64": st.floats(),
    "float32": st.floats(width=32),
    "bool": st.booleans(),
    "datetime64[ns]": st.integers(-(2**62), 2**62).map(lambda ticks: np.datetime64(ticks, "ns")),
    "datetime64[s]": st.integers(-(10**10), 10**10).map(lambda ticks: np.datetime64(ticks, "s")),
}


@given(values)
def test_values_survive(value):
    back = decode_value(json.loads(json.dumps(encode_value(value))))
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize("kind", COLUMNS)
@given(data=st.data())
def test_columns_survive_bit_for_bit(kind, data):
    column = np.array(data.draw(st.lists(COLUMNS[kind], max_size=5)), dtype=kind)
    assert column_type(column) == kind
    back = column_values(column_texts(column, kind, owner="It"), kind, owner="It")
    assert back.dtype == column.dtype
    assert np.array_equal(back, column, equal_nan=kind.startswith("float"))
    if kind == "float64":
        assert np.array_equal(np.signbit(back), np.signbit(column)) or np.isnan(column).any()


@given(st.lists(values, max_size=5))
def test_columns_of_objects_survive(objects):
    column = object_array(objects)
    kind = column_type(column)
    texts = column_texts(column, kind, owner="It")
    assert all(part is None or part.isprintable() or kind == "text" for part in texts)
    assert columns_equal(object_array(column_values(texts, kind, owner="It")), column)


@given(graphs())
def test_settings_survive_json(graph):
    settings = read_settings(json.loads(json.dumps(graph_settings(graph))))
    assert (settings.classes, settings.labels, settings.clock) == (graph.classes, graph.labels, graph.responses.clock)
    assert settings.time_type == str(graph.responses.time.dtype)
    assert list(settings.attributes["response"]) == list(graph.responses.attributes)
    assert list(settings.attributes["volunteer"]) == ["since"]


@given(st.lists(text, unique=True, min_size=1, max_size=4))
def test_text_columns_are_readable(words):
    column = np.array(words, dtype=object)
    assert column_texts(column, column_type(column), owner="It") == words


def test_characters_that_xml_lacks_are_escaped():
    column = object_array(["a\0b", "c"])
    assert column_type(column) == "json"
    assert column_texts(column, "json", owner="It") == ['"a\\u0000b"', '"c"']


@pytest.fixture(scope="module")
def annotated():
    graph = fitted(n_volunteers=6, n_items=20, n_responses=80)
    graph = graph.annotate(communities_of([0, 1], ids=graph.volunteers.ids[:2]))
    return graph.annotate(network_of(np.zeros((6, 6)), ids=graph.volunteers.ids, method="of all"))


def test_annotations_survive_and_share_ids(annotated):
    packed = pack_annotations(annotated)
    assert packed.isascii()
    assert packed.isprintable()
    assert packed == pack_annotations(annotated)
    bare = annotated.replace()
    back = unpack_annotations(packed, bare)
    assert list(back.annotations) == list(annotated.annotations)
    assert back.fit().items is bare.items.ids
    assert np.array_equal(back.item_probs(), annotated.item_probs())
    assert pack_annotations(bare) == ""
    assert unpack_annotations("", bare) is bare


def test_what_does_not_match_any_more_is_named(annotated):
    packed = pack_annotations(annotated)
    names = annotated.volunteers.ids.tolist()
    smaller = annotated.subgraph(volunteers=names[:4], items=list(annotated.items))
    with pytest.warns(CrowdGraphWarning) as caught:
        back = unpack_annotations(packed, smaller)
    assert [str(one.message).split(" is left out")[0] for one in caught] == [
        "The annotation 'ibcc'",
        "The annotation 'of all'",
    ]
    assert "2 of its volunteers" in str(caught[0].message)
    assert list(back.annotations) == ["by hand"]


def test_renamed_volunteers_do_not_inherit_the_results_of_others(annotated):
    table = annotated.to_pandas()
    table["volunteer"] = table["volunteer"].map(lambda name: f"{name} renamed")
    renamed = cg.CrowdGraph.from_responses(table, labels=annotated.labels, classes=annotated.classes)
    with pytest.warns(CrowdGraphWarning):
        assert not unpack_annotations(pack_annotations(annotated), renamed).annotations


@pytest.mark.parametrize("damage", [lambda t: t[:-40], lambda t: "x" + t, lambda t: "?!", lambda t: t[:60] + t[90:]])
def test_damaged_annotations_are_refused(annotated, damage):
    with pytest.raises(InputError, match="The annotations in the file are damaged or cut short"):
        unpack_annotations(damage(pack_annotations(annotated)), annotated)


def test_annotations_that_are_another_archive_are_refused(annotated):
    with pytest.raises(InputError, match="damaged"):
        unpack_annotations(base64.b64encode(b"no zip").decode(), annotated)


def test_annotations_of_later_versions_are_refused(annotated, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(_payload, "VERSION", _payload.VERSION + 1)
        packed = pack_annotations(annotated)
    with pytest.raises(InputError, match=f"of version {_payload.VERSION + 1}, this crowdgraph reads up to"):
        unpack_annotations(packed, annotated)


BAD_SETTINGS = [
    None,
    [],
    {},
    {"version": "new"},
    {"version": 1, "classes": 3},
    {"version": 1, "classes": ["a"], "labels": ["a"], "clock": {"kind": "sundial", "zone": None, "type": "int64"}},
]


@pytest.mark.parametrize("settings", BAD_SETTINGS)
def test_damaged_settings_are_refused(settings):
    with pytest.raises(InputError, match=r"settings in the graph attribute 'crowdgraph' are damaged"):
        read_settings(settings)


def test_settings_of_later_versions_are_refused():
    with pytest.raises(InputError, match="upgrade"):
        read_settings({"version": 99})


@pytest.mark.parametrize(
    ("texts", "kind"),
    [(["1", "x"], "int64"), (["yes"], "bool"), (["300"], "int8"), (["soon"], "datetime64[us]"), (["{"], "json")],
)
def test_text_of_another_type_is_refused(texts, kind):
    with pytest.raises(InputError, match=f"The attribute 'a' should be of type {kind.split('[')[0]}"):
        column_values(texts, kind, owner="The attribute 'a'")


def test_truth_values_of_other_programs_are_read():
    texts = ["true", " false ", "True", "False", "1", "0"]
    assert column_values(texts, "bool", owner="It").tolist() == [True, False] * 3


def test_gaps_in_numbers_make_a_list():
    assert column_values(["1", None], "int64", owner="It") == [1, None]
    assert np.isnan(column_values(["1", None], "float64", owner="It")[1])


def test_attributes_that_text_cannot_hold_are_named():
    with pytest.raises(IdError, match="The attribute 'a' of the items holds"):
        column_texts(object_array([object()]), "json", owner="The attribute 'a' of the items")
    assert decode_value(encode_value(Decimal("1.10"))) == Decimal("1.10")


def test_arrays_survive_as_text():
    """Settings may hold some, such as the prior of a model."""
    for array in (np.array([[0.1, np.nan]]), np.array(["2026-01-01"], "datetime64[s]"), np.float32(0.1), np.int8(3)):
        text = json.dumps(encode_value(array))
        back = decode_value(json.loads(text))
        assert np.array_equal(back, array, equal_nan=True)
        assert not isinstance(array, np.ndarray) or back.dtype == array.dtype
    assert decode_value(encode_value(np.datetime64("2026-01-01", "D"))) == np.datetime64("2026-01-01", "D")
    with pytest.raises(IdError, match="an array of objects cannot be written as text"):
        encode_value(object_array(["a", None]))
