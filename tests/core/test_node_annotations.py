"""Tables of volunteers and items have what the latest annotations say of them."""

from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of
from pandas.testing import assert_frame_equal

import crowdgraph as cg


def test_volunteers_have_accuracy_interval_and_communities(graph, fit):
    groups = replace(communities_of([0, 1], ids=["bert", "anna"]), participation=[[0.7, 0.3], [0.0, 1.0]])
    frame = graph.annotate(fit).annotate(groups).volunteers.to_frame().set_index("volunteer")
    assert frame.index.tolist() == list(graph.volunteers)
    for volunteer, row in frame.iterrows():
        matrix = fit.confusion.of(volunteer).latest()
        low, high = matrix.accuracy_interval(0.9, class_probs=fit.class_probs)
        assert (row["accuracy"], row["low"], row["high"]) == pytest.approx(
            (matrix.accuracy(fit.class_probs), low, high), abs=1e-12
        )
        assert row["weight"] == matrix.concentration.sum()
        assert row["responses"] == graph.volunteers[volunteer].n_responses
    assert frame["community"].to_dict() == {"anna": 1, "bert": 0, "cleo": -1}
    assert frame["participation[0]"].to_dict() == {"anna": 0.0, "bert": 0.7, "cleo": 0.0}


def test_items_have_classes_and_probabilities(graph, fit):
    frame = graph.annotate(fit).items.to_frame()
    assert frame["responses"].tolist() == [graph.items[item].n_responses for item in graph.items]
    assert_frame_equal(frame.drop(columns="responses"), fit.to_frame())


def test_without_annotations_there_are_attributes_and_responses(graph):
    assert graph.volunteers.to_frame().columns.tolist() == ["volunteer", "responses"]
    assert graph.items.to_frame().columns.tolist() == ["item", "responses"]
    assert graph.first(0).items.to_frame()["responses"].tolist() == [0, 0, 0]


def test_attributes_keep_their_names_and_tables_read_back(columns, fit):
    extra = {"item": ["x", "y", "z"], "class": ["a", "b", "c"], "responses": [7, 8, 9]}
    graph = cg.CrowdGraph.from_responses(columns, items=extra, gold={"x": "yes", "y": "no"}).annotate(fit)
    frame = graph.items.to_frame()
    assert frame["class"].tolist() == ["a", "b", "c"]
    assert frame["responses"].tolist() == [7, 8, 9]
    assert frame["class_"].tolist() == ["yes", "no", "no"]
    assert frame["responses_"].sum() == len(graph.responses)
    assert graph.to_pandas(table="items").columns.tolist() == ["item", "class", "responses"]


def test_accuracy_is_left_out_where_right_labels_are_unknown(graph, fit):
    unsure = replace(fit, confusion=replace(fit.confusion, labels=("sure", "unsure")))
    assert not unsure.knows_correct_labels
    assert graph.annotate(replace(fit, confusion=None)).volunteers.to_frame().columns.tolist() == [
        "volunteer",
        "responses",
    ]


def test_numbers_of_one_matrix_are_floats(fit):
    matrix = fit.confusion.of("anna").latest()
    assert type(matrix.accuracy()) is float
    assert [type(end) for end in matrix.accuracy_interval()] == [float, float]
    code = fit.confusion.ids.tolist().index("anna")
    snapshot = fit.confusion.latest()
    assert matrix.accuracy() == snapshot.accuracy()[code]
    assert np.array_equal(matrix.accuracy_interval(), [ends[code] for ends in snapshot.accuracy_interval()])
