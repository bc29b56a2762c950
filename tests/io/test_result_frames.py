"""Everything with a `to_frame` becomes the same table in every kind, and is refused in any other."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.allocation.availability import Availability
from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS, Campaign
from crowdgraph.allocation.counterfactual import Counterfactual
from crowdgraph.allocation.policy import Assignment
from crowdgraph.allocation.training import TrainingPlan
from crowdgraph.core._arrays import cell_text, is_null
from crowdgraph.errors import ParameterError

NAMES = ["anna", "bert", "cleo"]
GRAPH = cg.CrowdGraph.from_responses(
    {
        "volunteer": ["anna", "bert", "cleo"] * 4,
        "item": [1001] * 3 + [1002] * 3 + [1003] * 3 + [1004] * 3,
        "label": ["yes", "yes", "no", "no", "no", "yes", "yes", "no", "yes", "no", "no", "no"],
        "time": [f"2026-03-{day:02d}T12:00:00+02:00" for day in range(1, 13)],
        "odd": [True, None] * 6,
    },
    gold={1001: "yes", 1002: "no", 1003: "yes", 1004: "no"},
)
FIT = cg.IBCC().fit(GRAPH)
MOVING = cg.DynIBCC(noise_scale=0.1).fit(GRAPH).confusion
GROUPS = cg.Communities(
    ids=NAMES, participation=[[1, 0], [0.2, 0.8], [0, 1]], modularity=0.1, method="by hand", support=[4, 4, 4]
)
EARLY = cg.Communities(ids=NAMES, participation=[[1, 0], [1, 0], [0, 1]], modularity=0.1, method="by hand")
TRACK = cg.CommunityTrack(
    ids=NAMES, times=[1, 2], counts=[6, 12], snapshots=[EARLY, GROUPS], clock=cg.Clock("number"), method="by hand"
)
FOLDS = cg.evaluation.cross_validate(GRAPH, [cg.MajorityVote()], folds=2, seed=0)
FINDINGS = GRAPH.diagnose()
EXAMPLES = {
    "Assignment": Assignment(
        volunteers=["anna", "bert"],
        items=[1001, 1002],
        gain=[0.1, 0.2],
        learning=[0, 0],
        cost=[0, -0.1],
        chance=[1, 0.5],
        rates=(1.0, 1.0),
        policy="mine",
    ),
    "Availability": Availability(
        volunteers=NAMES,
        items=[1001],
        active=[0.5, 1, 0],
        finishes=[1, 1, 1],
        participation=GROUPS.participation,
        lift=[[1, 1]],
        horizon=7,
    ),
    "Campaign": Campaign(
        policy="mine", **{name: np.arange(3) for name in CAMPAIGN_COLUMNS}, loads=np.ones(3), retired_items=np.zeros(0)
    ),
    "Communities": GROUPS,
    "CommunityTrack": TRACK,
    "ConfusionHistory": MOVING.of("anna"),
    "ConfusionMatrix": FIT.confusion.of("anna").latest(),
    "ConfusionSnapshot": FIT.confusion.latest(),
    "ConfusionTrack": MOVING,
    "Counterfactual": Counterfactual(
        reason="nothing",
        fit=FIT,
        other=FIT,
        n_responses=12,
        n_left_out=0,
        truth=np.full(4, -1),
        retired_at=np.zeros(4, dtype=int),
    ),
    "CrossValidation": FOLDS,
    "Finding": next(finding for finding in FINDINGS if len(finding.ids)),
    "Findings": FINDINGS,
    "Gold": GRAPH.gold,
    "Influence": FIT.influence(volunteer="anna"),
    "Items": GRAPH.items,
    "ModelFit": FIT,
    "ReliabilityCurve": FOLDS.reliability("majority_vote"),
    "Responses": GRAPH.responses,
    "RocCurve": FOLDS.roc("majority_vote"),
    "TrainingPlan": TrainingPlan(
        volunteers=["cleo"],
        community=[1],
        information=[0.1],
        better=[0],
        gain=[0.2],
        n_responses=[4],
        teachers=[["anna"]],
        common=[[4]],
    ),
    "Volunteers": GRAPH.volunteers,
    "VolunteerNetwork": cg.networks.task_cooccurrence(GRAPH, min_responses=1),
}
TABLES = {
    **{name: result.to_frame for name, result in EXAMPLES.items()},
    "ModelFit.volunteers_to_frame": FIT.volunteers_to_frame,
    "ModelFit.predict_responses": lambda *, kind: FIT.predict_responses(GRAPH, kind=kind),
    "ConfusionTrack.changes_to_frame": MOVING.changes_to_frame,
    "static ConfusionTrack": FIT.confusion.to_frame,
    "static ConfusionHistory": FIT.confusion.of("anna").to_frame,
    "CommunityTrack.events_to_frame": TRACK.events_to_frame,
    "CommunityTrack.moves_to_frame": TRACK.moves_to_frame,
    "Communities.describe": GROUPS.describe,
}


def test_every_result_is_tried():
    names = ("core", "communities", "dynamics", "allocation", "diagnosis", "evaluation")
    packages = [importlib.import_module(f"crowdgraph.{name}") for name in names]
    modules = [
        importlib.import_module(module.name)
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    with_frames = {
        name
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if hasattr(kind, "to_frame") and kind.__module__.startswith("crowdgraph.")
    }
    assert with_frames - {"DirichletRows", "Nodes", "Result", "Tabular"} == set(EXAMPLES)


def same(values):
    """Values that compare as equal if they are: whatever stands for nothing is None."""
    return np.array([None if is_null(value) else value for value in values], dtype=object)


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_is_the_same_table(name):
    arrow = TABLES[name](kind="arrow")
    pandas, polars = TABLES[name](kind="pandas"), TABLES[name](kind="polars")
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert len(pandas) == len(polars) == arrow.num_rows
    for column in arrow.column_names:
        values = arrow[column].to_pylist()
        assert np.array_equal(same(polars[column].to_list()), same(values))
        assert np.array_equal(same(pandas[column].tolist()), same(values))
    header, *lines = TABLES[name](kind="text").splitlines()
    assert header.split("  ")[0].strip() == arrow.column_names[0]
    assert all(column in header for column in arrow.column_names)
    assert len(lines) == arrow.num_rows


@pytest.mark.parametrize("name", TABLES)
def test_other_kinds_are_refused(name):
    with pytest.raises(ParameterError, match=r"kind='texts' is not a choice.*Did you mean 'text'"):
        TABLES[name](kind="texts")


def test_text_is_for_reading():
    lines = GRAPH.responses.to_frame(kind="text").splitlines()
    assert lines[0].split() == ["volunteer", "item", "label", "time", "odd"]
    # Ids that are numbers are names: no thousands apart. Nothing stands for null.
    assert lines[1].split()[:3] == ["anna", "1001", "yes"]
    assert lines[1].endswith("True")
    assert lines[2].split()[:3] == ["bert", "1001", "yes"]
    assert not lines[2].endswith("None")


def test_confusion_matrices_as_rows():
    matrix = cg.ConfusionMatrix(concentration=[[3.0, 1.0], [2.0, 2.0]], classes=["a", "b"], labels=["x", "y"])
    rows = matrix.to_frame(kind="arrow").to_pylist()
    assert rows[0] == {"class": "a", "label": "x", "mean": 0.75, "concentration": 3.0}
    assert [(row["class"], row["label"]) for row in rows] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    snapshot = FIT.confusion.latest().to_frame()
    of_bert = snapshot[snapshot["volunteer"] == "bert"]["mean"].to_numpy().reshape(2, 2)
    assert np.allclose(of_bert, FIT.confusion.of("bert").latest().mean)
    history = MOVING.of("bert").to_frame()
    assert np.allclose(history["mean"].to_numpy()[-4:].reshape(2, 2), MOVING.of("bert").latest().mean)
    of_bert = MOVING.to_frame().query("volunteer == 'bert'")
    assert of_bert["mean"].tolist() == history["mean"].tolist()
    assert of_bert["time"].tolist() == history["time"].tolist()
    assert history["time"].iloc[-1].isoformat() == "2026-03-11T10:00:00+00:00"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567, "1,234,567"), (0.0004, "0"), (1234.5, "1,234.5"), (float("nan"), ""), (True, "True"), ("<x>", "<x>")],
)
def test_cells(value, text):
    assert cell_text(value) == text
