"""Zooniverse exports."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.errors import ColumnError, CrowdGraphError, DroppedRowsWarning, InputError

COLUMNS = (
    "classification_id",
    "user_name",
    "user_id",
    "user_ip",
    "workflow_id",
    "created_at",
    "annotations",
    "subject_ids",
)


def task(value, name="T0"):
    return json.dumps([{"task": name, "task_label": "Is it a whale?", "value": value}])


def row(number, *, user="anna", annotations=None, subject="1001", workflow="427", time=None):
    when = time or f"2017-05-12 14:{number:02d}:00 UTC"
    return (number, user, "7", "deadbeef", workflow, when, task("Yes") if annotations is None else annotations, subject)


@pytest.fixture
def export(tmp_path):
    def export(rows, columns=COLUMNS):
        path = tmp_path / "export.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
        return path

    return export


def test_an_export_is_read_with_gold(export):
    path = export([row(3, annotations=task("No")), row(1, user="bert"), row(2, annotations=task("Yes", "T1"))])
    graph = cg.read_panoptes(path, task="T0", gold={"1001": "Yes"})
    assert [(r.volunteer, r.item, r.label) for r in graph.responses] == [
        ("bert", "1001", "Yes"),
        ("anna", "1001", "No"),
    ]
    assert graph.responses.clock == cg.Clock("datetime", "UTC")
    assert graph.responses[0].time.isoformat() == "2017-05-12T14:01:00+00:00"
    assert graph.responses.attributes["classification_id"].tolist() == ["1", "3"]
    assert "deadbeef" not in repr(graph.to_pandas().to_dict())
    assert dict(graph.gold) == {"1001": "Yes"}


def test_combo_tasks_lists_and_callables_give_labels(export):
    combo = json.dumps(
        [{"task": "T9", "value": [{"task": "T0", "value": ["fin", "blow"]}, {"task": "T1", "value": 3}]}]
    )
    marks = json.dumps([{"task": "T0", "value": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}])
    joined = cg.read_panoptes(export([row(1, annotations=combo)]), task="T0", label=" + ".join)
    assert joined.labels == ("fin + blow",)
    assert cg.read_panoptes(export([row(1, annotations=combo)]), task="T1").labels == (3,)
    with pytest.raises(InputError, match=r"T0 .*several options.*'fin', 'blow'.*option='fin'"):
        cg.read_panoptes(export([row(1, annotations=combo)]), task="T0")
    with pytest.raises(InputError, match=r"T0 .*drawing.*Drawings are no labels.*label=len"):
        cg.read_panoptes(export([row(1, annotations=marks)]), task="T0")
    assert cg.read_panoptes(export([row(1, annotations=marks)]), task="T0", label=len).labels == (2,)
    graph = cg.read_panoptes(export([row(1), row(2)]), task="T0", label=lambda v: v if v == "No" else "other")
    assert graph.labels == ("other",)


@pytest.mark.parametrize(
    ("anonymous", "volunteers"),
    [
        ("keep", ["anna", "not-logged-in-1f", "not-logged-in-2e"]),
        ("drop", ["anna"]),
        ("pool", ["anna", "not-logged-in", "not-logged-in 2"]),
    ],
)
def test_anonymous_volunteers_stay_go_or_become_one(export, anonymous, volunteers):
    path = export([row(1), row(2, user="not-logged-in-1f"), row(3, user="not-logged-in-2e")])
    assert list(cg.read_panoptes(path, task="T0", anonymous=anonymous).volunteers) == volunteers


def test_one_workflow_is_read(export):
    path = export([row(1), row(2, workflow="500", user="bert")])
    assert list(cg.read_panoptes(path, task="T0", workflow=500).volunteers) == ["bert"]
    with pytest.raises(InputError, match="No row belongs to workflow '501'; the export has '427', '500'"):
        cg.read_panoptes(path, task="T0", workflow=501)


def test_unanswered_tasks_are_passed_over(export):
    path = export([row(1), row(2, annotations=task(None)), row(3, annotations="[]"), row(4, annotations=task([]))])
    assert len(cg.read_panoptes(path, task="T0").responses) == 1
    with pytest.raises(InputError, match=r"No row.* answers the task 'T7'; the export asks T0"):
        cg.read_panoptes(path, task="T7")


@pytest.mark.parametrize("text", ['[{"task": ', "{}", "[5]", '[{"value": 1}]', "null", "[" * 100_000])
def test_malformed_annotations_are_named_or_skipped(export, text):
    path = export([row(1), row(2), row(3, annotations=text)])
    with pytest.raises(InputError, match=r"annotations in line 4 are not readable.*malformed='skip'"):
        cg.read_panoptes(path, task="T0")
    with pytest.warns(DroppedRowsWarning, match=r"1 row has annotations that are not readable.*line 4"):
        assert len(cg.read_panoptes(path, task="T0", malformed="skip").responses) == 2


@given(text=st.text(max_size=20) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.DroppedRowsWarning")
def test_any_annotation_either_reads_or_is_named(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("panoptes") / "export.csv"
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file).writerows([COLUMNS, row(1), row(2, annotations=text)])
    assert len(cg.read_panoptes(path, task="T0", malformed="skip").responses) == 1
    try:
        cg.read_panoptes(path, task="T0")
    except CrowdGraphError as error:
        assert "line 3" in str(error)  # noqa: PT017


def test_errors_name_rows_of_the_file(export):
    """Rows of other workflows and tasks count, but what is wrong in them does not matter."""
    other = [row(number, workflow="500", time="soon", subject="") for number in range(3)]
    path = export([*other, row(4), row(5, annotations=task(7))])
    with pytest.raises(cg.errors.LabelError, match="7 in row 4"):
        cg.read_panoptes(path, task="T0", workflow=427)
    assert len(cg.read_panoptes(export([*other, row(4)]), task="T0", workflow=427).responses) == 1


def test_the_tasks_of_an_export_are_named_though_some_of_its_rows_cannot_be_read(export):
    rows = [row(1, annotations="{"), row(2, annotations='[{"value": 1}]'), row(3, annotations=task("Yes", "T7"))]
    with pytest.raises(InputError, match="T7"):
        cg.read_panoptes(export([rows[2]]), task="T0")
    with pytest.raises(InputError, match="the export asks T7"):
        cg.read_panoptes(export(rows), task="T0")


def test_an_export_without_workflows_has_none_to_choose(export):
    columns = [name for name in COLUMNS if name != "workflow_id"]
    content = [[value for name, value in zip(COLUMNS, row(1), strict=True) if name != "workflow_id"]]
    with pytest.raises(ColumnError, match=r"no column 'workflow_id'; leave out workflow=\."):
        cg.read_panoptes(export(content, columns), task="T0", workflow=427)
