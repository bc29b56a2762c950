"""Arrays: read-only columns, ids of one kind, and rows gathered by group."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdgraph.core import _memory
from crowdgraph.core._arrays import attribute_columns, columns_equal, grouped, id_array, lock, read_only
from crowdgraph.core._maps import reserve
from crowdgraph.core._memory import resident_bytes
from crowdgraph.errors import ColumnError


@given(st.lists(st.integers(0, 6)), st.integers(7, 9))
def test_grouping_gathers_rows_in_order(codes, n_groups):
    grouping = grouped(np.array(codes, dtype=np.int32), n_groups)
    for group in range(n_groups):
        assert grouping.rows(group).tolist() == [row for row, code in enumerate(codes) if code == group]


def test_read_only_columns_are_copies_of_what_others_can_write():
    writable = np.arange(3)
    column = read_only(writable)
    writable[0] = 99
    assert column.tolist() == [0, 1, 2]
    view = read_only(writable[:2])
    writable[1] = 99
    assert view.tolist() == [99, 1]
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_locked_columns_are_not_copied():
    column = lock(np.arange(3))
    assert read_only(column) is column
    assert np.shares_memory(read_only(column[1:]), column)


def test_ids_keep_their_kind():
    assert id_array([1, 2]).dtype == np.int64
    assert id_array([np.int32(1), 2]).dtype == np.int64
    assert id_array([1, 2**70]).tolist() == [1, 2**70]
    assert id_array([True, False]).tolist() == [True, False]
    assert id_array([("a", 1), "b"]).tolist() == [("a", 1), "b"]
    assert id_array([(1, 2), (3, 4)]).shape == (2,)


def test_attributes_have_one_or_several_values_for_each_row():
    columns = attribute_columns({"age": [1, 2], "place": [[1, 2], [3, 4]]}, length=2, owner="items", reserved=[])
    assert columns["place"].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ColumnError, match="expected 3 values"):
        attribute_columns({"age": [1, 2]}, length=3, owner="items", reserved=[])


def test_nulls_equal_nulls():
    assert columns_equal(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    assert columns_equal(np.array([None, "a"], dtype=object), np.array([None, "a"], dtype=object))
    assert not columns_equal(np.array([None, "a"], dtype=object), np.array(["b", "a"], dtype=object))
    assert not columns_equal(np.arange(2), np.arange(3))


def test_columns_of_other_kinds_are_other_columns():
    whole, words = np.array([1, 2]), np.array(["a", "b"])
    assert not columns_equal(whole, whole.astype(float))
    assert not columns_equal(whole, whole[:1])
    assert columns_equal(words, words.copy())
    assert not columns_equal(words, words[::-1])
    assert columns_equal(np.array([1.0, np.nan]), np.array([1.0, np.nan]))


def test_files_get_their_size_on_every_system(tmp_path, monkeypatch):
    with (tmp_path / "map").open("wb") as file:
        reserve(file.fileno(), 100)
        assert (tmp_path / "map").stat().st_size == 100
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
        reserve(file.fileno(), 200)
    assert (tmp_path / "map").stat().st_size == 200


def test_memory_is_known_as_far_as_the_system_says(monkeypatch):
    now = resident_bytes()
    assert 10**7 < now < 10**12
    monkeypatch.setattr(_memory, "STATUS", Path("/nowhere"))
    peak = resident_bytes()
    assert 10**7 < peak < 10**12
    monkeypatch.setitem(sys.modules, "resource", None)
    assert resident_bytes() == 0
