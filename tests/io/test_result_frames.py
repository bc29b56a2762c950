"""Everything with a `to_frame` becomes the same table in every kind, and is refused in any other."""

import importlib
import inspect
import pkgutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from builders import communities_of, track_of

import crowdgraph as cg
from crowdgraph.allocation.availability import Availability
from crowdgraph.allocation.campaign import CAMPAIGN_COLUMNS, Campaign
from crowdgraph.allocation.counterfactual import Counterfactual
from crowdgraph.allocation.next_steps import NextSteps
from crowdgraph.allocation.policy import Assignment
from crowdgraph.allocation.settling import SettlingForecast
from crowdgraph.allocation.training import TrainingPlan
from crowdgraph.core._arrays import is_null
from crowdgraph.errors import ParameterError

NAMES = ["anna", "bert", "cleo"]


@pytest.fixture(scope="module")
def graph():
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": NAMES * 4,
            "item": [1001] * 3 + [1002] * 3 + [1003] * 3 + [1004] * 3,
            "label": ["yes", "yes", "no", "no", "no", "yes", "yes", "no", "yes", "no", "no", "no"],
            "time": [f"2026-03-{day:02d}T12:00:00+02:00" for day in range(1, 13)],
            "odd": [True, None] * 6,
        },
        gold={1001: "yes", 1002: "no", 1003: "yes", 1004: "no"},
    )


@pytest.fixture(scope="module")
def fit(graph):
    return cg.IBCC().fit(graph)


@pytest.fixture(scope="module")
def moving(graph):
    return cg.DynIBCC(noise_scale=0.1).fit(graph).confusion


@pytest.fixture(scope="module")
def results(graph, fit, moving):
    """One result of each type that becomes a frame, by the name of its type."""
    groups = communities_of([[1, 0], [0.2, 0.8], [0, 1]], ids=NAMES, support=[4, 4, 4])
    folds = cg.evaluation.cross_validate(graph, [cg.MajorityVote()], folds=2, seed=0)
    findings = graph.diagnose()
    network = cg.networks.task_cooccurrence(graph, min_responses=1)
    track = track_of([[0, 0, 1]])
    everybody_together = partial(cg.networks.task_cooccurrence, min_responses=1)
    examples = [
        Assignment(
            volunteers=["anna", "bert"],
            items=[1001, 1002],
            gain=[0.1, 0.2],
            learning=[0, 0],
            cost=[0, -0.1],
            chance=[1, 0.5],
            rates=(1.0, 1.0),
            policy="mine",
        ),
        Availability(
            volunteers=NAMES,
            items=[1001],
            active=[0.5, 1, 0],
            finishes=[1, 1, 1],
            participation=groups.participation,
            lift=[[1, 1]],
            horizon=7,
        ),
        Campaign(
            policy="mine",
            **{name: np.arange(3) for name in CAMPAIGN_COLUMNS},
            loads=np.ones(3),
            retired_items=np.zeros(0),
        ),
        fit.changes(min_answers=2, false_discovery_rate=0.99),
        groups,
        track_of([[0, 0, 1], [0, 1, 1]]),
        cg.dynamics.networks_over_time(graph, counts=[6, 12], network=everybody_together),
        moving.of("anna"),
        fit.confusion.of("anna").latest(),
        fit.confusion.latest(),
        moving,
        Counterfactual(
            reason="nothing",
            fit=fit,
            other=fit,
            n_responses=12,
            n_left_out=0,
            truth=np.full(4, -1),
            retired_at=np.zeros(4, dtype=int),
        ),
        folds,
        next(finding for finding in findings if len(finding.ids)),
        findings,
        graph.gold,
        graph.items,
        graph.volunteers,
        fit.influence(volunteer="anna"),
        fit,
        NextSteps(
            volunteers=["anna", "bert"],
            items=[1001, 1002],
            likeliest=["yes", "no"],
            probability=[0.6, 0.7],
            expected=[0.7, 0.8],
            removed=[0.1, 0.2],
        ),
        cg.evaluation.predictive_checks(graph, fit, n_replicates=3),
        folds.reliability("majority_vote"),
        graph.responses,
        folds.roc("majority_vote"),
        SettlingForecast(
            targets=[0.9, 0.99],
            median=[10, np.inf],
            low=[5, 20],
            high=[20, np.inf],
            reached=[1, 0.4],
            n_items=4,
            n_settled=1,
            exhausted=0.0,
        ),
        TrainingPlan(
            volunteers=["cleo"],
            community=[1],
            information=[0.1],
            better=[0],
            gain=[0.2],
            n_responses=[4],
            teachers=[["anna"]],
            common=[[4]],
        ),
        network,
        network.edges,
        network.nodes,
        network["anna"],
        graph.annotate(fit).edges,
        graph.nodes,
        fit.expected_scores({"no": 0.0, "yes": 1.0}),
        graph.annotate(replace(track, ids=NAMES, snapshots=[groups])).volunteers["anna"].participation_over_time(),
    ]
    return {type(example).__name__: example for example in examples}


@pytest.fixture(scope="module")
def tables(graph, fit, moving, results):
    """What makes each table, by the name of a type or a method."""
    track = results["CommunityTrack"]
    return {
        **{name: result.to_frame for name, result in results.items()},
        "ModelFit.volunteers_to_frame": fit.volunteers_to_frame,
        "ModelFit.changes_to_frame": partial(fit.changes_to_frame, min_answers=2, false_discovery_rate=0.99),
        "ModelFit.predict_responses": partial(fit.predict_responses, graph),
        "ConfusionTrack.changes_to_frame": moving.changes_to_frame,
        "static ConfusionTrack": fit.confusion.to_frame,
        "static ConfusionHistory": fit.confusion.of("anna").to_frame,
        "CommunityTrack.events_to_frame": track.events_to_frame,
        "CommunityTrack.moves_to_frame": track.moves_to_frame,
        "Communities.describe": results["Communities"].describe,
    }


def test_every_type_with_a_frame_is_tried(results):
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
    assert with_frames - {"DirichletRows", "Nodes", "Result", "Tabular"} == set(results)


def comparable(values):
    """Values that compare as equal if they are: whatever stands for nothing is None."""
    return np.array([None if is_null(value) else value for value in values], dtype=object)


def test_every_kind_is_the_same_table(tables):
    for name, to_frame in tables.items():
        arrow, pandas, polars = (to_frame(kind=kind) for kind in ("arrow", "pandas", "polars"))
        assert list(pandas.columns) == polars.columns == arrow.column_names, name
        assert len(pandas) == len(polars) == arrow.num_rows, name
        for column in arrow.column_names:
            values = comparable(arrow[column].to_pylist())
            assert np.array_equal(comparable(polars[column].to_list()), values), (name, column)
            assert np.array_equal(comparable(pandas[column].tolist()), values), (name, column)
        header, *lines = to_frame(kind="text").splitlines()
        assert header.split("  ")[0].strip() == arrow.column_names[0], name
        assert all(column in header for column in arrow.column_names), name
        assert len(lines) == arrow.num_rows, name


def test_other_kinds_are_refused(tables):
    for to_frame in tables.values():
        with pytest.raises(ParameterError, match=r"kind='texts' is not a choice.*Did you mean 'text'"):
            to_frame(kind="texts")


def test_text_is_for_reading(graph):
    lines = graph.responses.to_frame(kind="text").splitlines()
    assert lines[0].split() == ["volunteer", "item", "label", "time", "odd"]
    # Ids that are numbers are names: no thousands apart. Nothing stands for null.
    assert lines[1].split()[:3] == ["anna", "1001", "yes"]
    assert lines[1].endswith("True")
    assert lines[2].split()[:3] == ["bert", "1001", "yes"]
    assert not lines[2].endswith("None")


def test_confusion_matrices_become_rows(fit, moving):
    matrix = cg.ConfusionMatrix(concentration=[[3.0, 1.0], [2.0, 2.0]], classes=["a", "b"], labels=["x", "y"])
    rows = matrix.to_frame(kind="arrow").to_pylist()
    assert rows[0] == {"class": "a", "label": "x", "mean": 0.75, "concentration": 3.0}
    assert [(row["class"], row["label"]) for row in rows] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    snapshot = fit.confusion.latest().to_frame()
    of_bert = snapshot[snapshot["volunteer"] == "bert"]["mean"].to_numpy().reshape(2, 2)
    assert np.allclose(of_bert, fit.confusion.of("bert").latest().mean)
    history = moving.of("bert").to_frame()
    assert np.allclose(history["mean"].to_numpy()[-4:].reshape(2, 2), moving.of("bert").latest().mean)
    of_bert = moving.to_frame().query("volunteer == 'bert'")
    assert of_bert["mean"].tolist() == history["mean"].tolist()
    assert of_bert["time"].tolist() == history["time"].tolist()
    assert history["time"].iloc[-1].isoformat() == "2026-03-11T10:00:00+00:00"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567, "1,234,567"), (0.0004, "0"), (1234.5, "1,234.5"), (float("nan"), ""), (True, "True"), ("<x>", "<x>")],
)
def test_cells_of_text_are_readable(value, text):
    columns = {"volunteer": ["anna"], "item": ["x"], "label": ["yes"], "note": [value]}
    _, line = cg.CrowdGraph.from_responses(columns).responses.to_frame(kind="text").splitlines()
    assert line.split() == ["anna", "x", "yes", *text.split()]
