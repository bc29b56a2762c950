"""Tables that are never in memory become the store that an in-memory graph would be saved as."""

import datetime as dt
import json
import os
import pickle
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import tables

import crowdgraph as cg
from crowdgraph.errors import (
    ColumnError,
    CrowdGraphError,
    DroppedRowsWarning,
    DuplicateError,
    GoldError,
    GoldWarning,
    IdError,
    InputError,
    LabelError,
    MissingValueError,
    ParameterError,
    StoreError,
    TimeError,
)
from crowdgraph.io import _column_files, _conversion_order, _conversion_plan, _conversion_rows, _row_streams
from crowdgraph.io._id_coders import IntegerCoder, TextCoder

SMALL = {
    "volunteer": ["anna", "bert", "anna", "carl", "bert"],
    "item": [7, 7, 3, 3, 3],
    "label": ["yes", "no", "no", "yes", "no"],
    "time": [5, 1, 3, 3, 2],
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let a few rows be many: batches, blocks and ranges of two or three."""
    monkeypatch.setattr(_row_streams, "BATCH_ROWS", 3)
    monkeypatch.setattr(_column_files, "BLOCK_ROWS", 2)
    monkeypatch.setattr(_conversion_plan, "BUCKET_ROWS", 2)
    monkeypatch.setattr("crowdgraph.io.columns.os.fsync", lambda _: None)


def write(folder, columns, name="responses.parquet"):
    path = folder / name
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, row_group_size=4)
    return path


def build(folder, columns=SMALL, **options):
    return cg.build_store(write(folder, columns), folder / "store", **options)


def outcome(function):
    """The result, or the type of the error, with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except CrowdGraphError as error:
            result = type(error)
    return result, sorted({str(warning.category) for warning in caught})


@st.composite
def cases(draw):
    """A table with gaps and repeats, and options."""
    columns = draw(tables(id_kinds=("int", "str")))
    n_rows = len(columns["label"])
    for name in draw(st.lists(st.sampled_from(sorted(columns)), max_size=2)):
        columns[name] = [None if draw(st.integers(0, 5)) == 0 else value for value in columns[name]]
    if draw(st.booleans()):
        columns = {name: [values[row // 2] for row in range(n_rows)] for name, values in columns.items()}
    options = {
        "duplicates": draw(st.sampled_from(["all", "first", "last", "error"])),
        "missing": draw(st.sampled_from(["error", "drop", "keep"])),
    }
    items = [name for name in dict.fromkeys(columns["item"]) if name is not None]
    labels = [name for name in dict.fromkeys(columns["label"]) if name is not None]
    if labels and draw(st.booleans()):
        options["gold"] = {"item": items, "label": [draw(st.sampled_from([*labels, None])) for _ in items]}
    return columns, options


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(cases())
def test_the_same_store_as_in_memory(tmp_path_factory, case):
    columns, options = case
    folder = tmp_path_factory.mktemp("build")
    path = write(folder, columns)
    expected, graph_warnings = outcome(lambda: cg.read_parquet(path, **options))
    store, store_warnings = outcome(lambda: cg.build_store(path, folder / "store", **options))
    if isinstance(expected, type):
        assert store is expected
        assert not list(folder.glob("*store*")) + list(folder.glob(".store*"))
        return
    assert store_warnings == graph_warnings
    expected.save(folder / "saved", format="columns")
    assert store.graph().equals(expected)
    assert store.fingerprint == cg.open_store(folder / "saved").fingerprint
    assert store.manifest["source"]["rows"] == store.n_responses + store.manifest["source"]["skipped"]
    assert len(columns["label"]) == store.manifest["source"]["rows"]
    shutil.rmtree(folder)
