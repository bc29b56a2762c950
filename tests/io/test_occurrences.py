"""Tables for biodiversity archives, read back with the csv module, and JSON lines.

The fields and enumerations are those of observations-table-schema.json of https://github.com/tdwg/camtrap-dp at
e4d1467, and of https://dwc.tdwg.org/terms.
"""

import csv
import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from builders import crowd

import crowdgraph as cg
from crowdgraph.errors import ColumnError, DroppedRowsWarning, IdError, InputError, ParameterError, TimeError

FIT = cg.ModelFit(
    model="ibcc",
    items=["x", "=y", "z"],
    classes=("fox", "none", "person"),
    item_probs=[[0.9, 0.1, 0], [0.3, 0.6, 0.1], [0, 0, 1]],
    class_probs=[0.6, 0.3, 0.1],
)
TIME = "2026-03-21T05:00:00Z"
ITEMS = {
    "item": ["z", "x", "=y", "unused"],
    "deploymentID": ["d2", "d1", "d1", "d3"],
    "eventStart": [TIME] * 4,
    "eventEnd": ["2026-03-21T05:00:10+0100"] * 4,
    "mediaID": [None, "m1", "m2", "m3"],
}
TYPES = {"none": "blank", "person": "human"}


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_observations_of_camtrap_dp(tmp_path):
    path = tmp_path / "observations.csv"
    FIT.to_camtrap_dp(path, items=ITEMS, types=TYPES, names={"fox": "Vulpes vulpes"})
    rows = rows_of(path)
    assert list(rows[0]) == [
        "observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel",
        "observationType", "scientificName", "classificationMethod", "classifiedBy", "classificationProbability",
    ]  # fmt: skip
    assert [row["observationID"] for row in rows] == ["x", "'=y", "z"]  # a spreadsheet runs no formula
    assert [row["deploymentID"] for row in rows] == ["d1", "d1", "d2"]
    assert [row["observationLevel"] for row in rows] == ["media", "media", "event"]
    assert [row["observationType"] for row in rows] == ["animal", "blank", "human"]
    assert [row["scientificName"] for row in rows] == ["Vulpes vulpes", "", ""]
    assert [float(row["classificationProbability"]) for row in rows] == [0.9, 0.6, 1.0]
    assert {row["eventStart"] for row in rows} == {TIME}
    assert {row["classifiedBy"] for row in rows} == {"volunteers, combined by crowdgraph's ibcc"}
    zoned = pd.DataFrame(ITEMS).assign(eventStart=pd.Timestamp(TIME), eventEnd=dt.datetime(2026, 3, 21, tzinfo=dt.UTC))
    FIT.to_camtrap_dp(path, items=zoned, types=TYPES)
    assert rows_of(path)[0]["eventStart"] == "2026-03-21T05:00:00+00:00"


def test_occurrences_of_darwin_core(tmp_path):
    path = tmp_path / "occurrence.csv"
    items = {
        "item": ["x", "=y", "z"],
        "eventDate": [dt.date(2026, 3, 21), "2026-03", TIME],
        "decimalLatitude": [1, 2, 3],
    }
    with pytest.warns(DroppedRowsWarning, match="1 of 3 items are left out: they are 'none'"):
        FIT.to_darwin_core(path, items=items, names={"none": None, "fox": "Vulpes vulpes"}, basis="MachineObservation")
    rows = rows_of(path)
    assert [row["occurrenceID"] for row in rows] == ["x", "z"]
    assert [row["scientificName"] for row in rows] == ["Vulpes vulpes", "person"]
    assert [row["eventDate"] for row in rows] == ["2026-03-21", TIME]
    assert [row["decimalLatitude"] for row in rows] == ["1", "3"]
    assert {(row["basisOfRecord"], row["occurrenceStatus"]) for row in rows} == {("MachineObservation", "present")}
    assert [json.loads(row["dynamicProperties"]) for row in rows] == [
        {"classificationProbability": 0.9}, {"classificationProbability": 1.0}
    ]  # fmt: skip
    assert rows[0]["identificationRemarks"] == "probability 0.900"


def test_json_lines(tmp_path):
    graph = crowd(n_volunteers=8, n_items=12, n_responses=40).graph
    fit = cg.MajorityVote().fit(graph)
    fit.to_json_lines(tmp_path / "items.jsonl")
    records = list(map(json.loads, (tmp_path / "items.jsonl").read_text().splitlines()))
    assert [record["item"] for record in records] == fit.items.tolist()
    assert {record["item"]: record["class"] for record in records} == fit.predict()
    probs = [[record["probabilities"][name] for name in fit.classes] for record in records]
    np.testing.assert_allclose(probs, fit.item_probs, atol=1e-6)
    assert all(record["probability"] == max(record["probabilities"].values()) for record in records)
    items = {"item": fit.items.tolist(), "eventDate": ["2026"] * len(fit.items)}
    fit.to_darwin_core(tmp_path / "occurrence.csv", items=items)
    counts = graph.answers.n_by_item
    words = [f"{count} answers of volunteers, combined by crowdgraph's majority_vote" for count in counts]
    assert [row["identifiedBy"] for row in rows_of(tmp_path / "occurrence.csv")] == words


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"deploymentID": None}, {}, ColumnError, "items= has no column 'deploymentID'; it has"),
        ({"item": ["z", "x", "x", "y"]}, {}, IdError, "several rows for the item 'x'"),
        ({"item": ["z", "x", "y", "w"]}, {}, IdError, "lacks 1 items of the fit: '=y'; it has 'z', 'x'"),
        ({"deploymentID": ["d2", None, "d1", "d3"]}, {}, InputError, "no deploymentID for 'x'"),
        (
            {"eventEnd": ["2026-03-21"] * 4},
            {},
            TimeError,
            "eventEnd '2026-03-21' for 'x'; expected a time with its zone",
        ),
        ({}, {"types": {"none": "empty"}}, ParameterError, "types= names 'empty'; an observation is one of 'animal'"),
        ({}, {"names": {"Fox": "Vulpes"}}, ParameterError, "names= names 'Fox'; the classes are 'fox', 'none'"),
    ],
)
def test_bad_tables_of_items(changes, options, error, message, tmp_path):
    items = {name: column for name, column in {**ITEMS, **changes}.items() if column is not None}
    path = tmp_path / "observations.csv"
    path.write_text("old")
    with pytest.raises(error, match=message):
        FIT.to_camtrap_dp(path, items=items, **options)
    assert path.read_text() == "old"


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(ColumnError, match="has the column 'scientificName', which is written from the fit"):
        FIT.to_darwin_core(path, items={"item": FIT.items, "eventDate": [TIME] * 3, "scientificName": [""] * 3})
    odd = cg.ModelFit(
        model="m", items=[("a", 1)], classes=("no", "yes"), item_probs=[[0.5, 0.5]], class_probs=[0.5, 0.5]
    )
    with pytest.raises(IdError, match="JSON has no tuple"):
        odd.to_json_lines(path)
    assert not path.exists()
