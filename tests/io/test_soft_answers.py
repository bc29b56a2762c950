"""Soft answers: every form in which they are read, what is wrong with wrong ones, and every door out and back in."""

import json
import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from cli.commands import run
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.errors import ColumnError, LabelError, MissingValueError, ParameterError

WHO = {"volunteer": ["net", "anna", "net"], "item": ["x", "x", "y"]}
PROBS = [[0.2, 0.7, 0.1], [0, 0, 1], [0.5, 0.25, 0.25]]
LABELS = ("maybe", "no", "yes")


def read(table, **options):
    return cg.CrowdGraph.from_responses({**WHO, **table}, **options)


def soft_table(**more):
    return read({label: [row[code] for row in PROBS] for code, label in enumerate(LABELS)} | more, probability=LABELS)


OBJECTS = [dict(zip(LABELS, row, strict=True)) for row in PROBS]
COLUMNS = {f"p_{label}": [row[code] for row in PROBS] for code, label in enumerate(LABELS)}
FORMS = {
    "columns": ({label: [row[code] for row in PROBS] for code, label in enumerate(LABELS)}, list(LABELS)),
    "mapping": (COLUMNS, {label: f"p_{label}" for label in LABELS}),
    "own names": ({f"probability[{label}]": [row[code] for row in PROBS] for code, label in enumerate(LABELS)}, None),
    "JSON": ({"probs": [json.dumps(row) for row in OBJECTS]}, "probs"),
    "dicts": ({"probs": OBJECTS}, "probs"),
    "structs": ({"probs": pa.array(OBJECTS)}, "probs"),
    "sparse": ({"probs": [{key: value for key, value in row.items() if value} for row in OBJECTS]}, "probs"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same(form):
    columns, option = FORMS[form]
    graph = read(columns, probability=option)
    assert graph.labels == LABELS
    assert_allclose(graph.label_probs, PROBS)
    assert [response.label for response in graph.responses] == ["no", "yes", "maybe"]
    assert graph.equals(soft_table())
    assert "2 of 3 answers are probabilities of labels" in repr(graph)


@pytest.mark.parametrize("form", ["columns", "mapping", "JSON", "dicts", "sparse"])
def test_logarithms_are_read_as_what_they_are_of(form):
    def log(value):
        if isinstance(value, dict):
            return {key: log(number) for key, number in value.items()}
        if isinstance(value, str):
            return json.dumps(log(json.loads(value)))
        return math.log(value) if value else -math.inf

    columns, option = FORMS[form]
    columns = {name: [log(value) for value in values] for name, values in columns.items()}
    assert_allclose(read(columns, log_probability=option).label_probs, PROBS)


def test_a_confidence_leaves_the_rest_to_the_other_labels():
    graph = read({"label": ["yes", "no", "maybe"], "sure": [0.8, None, 1]}, probability="sure")
    assert_allclose(graph.label_probs, [[0.1, 0.1, 0.8], [0, 1, 0], [1, 0, 0]])
    logs = read({"label": ["yes", "no", "maybe"], "sure": [math.log(0.8), None, 0]}, log_probability="sure")
    assert_allclose(logs.label_probs, graph.label_probs)


def test_labels_without_a_column_share_the_rest():
    graph = read({"p": [0.4, 1.0, 0.1]}, probability={"yes": "p"}, labels=LABELS)
    assert_allclose(graph.label_probs, [[0.3, 0.3, 0.4], [0, 0, 1], [0.45, 0.45, 0.1]])


def test_labels_that_are_numbers_are_known_by_their_text():
    table = {"label": [5, 1, 3], "p": ['{"1": 0.1, "3": 0.2, "5": 0.7}', None, '{"3": 1}']}
    graph = read(table, probability="p")
    assert graph.labels == (1, 3, 5)
    assert_allclose(graph.label_probs, [[0.1, 0.2, 0.7], [1, 0, 0], [0, 1, 0]])


def test_labels_that_are_never_the_most_probable_are_numbers_like_the_others():
    table = {"label": [5, 1, 5], "p": ['{"1": 0.1, "3": 0.2, "5": 0.7}', None, None]}
    graph = read(table, probability="p")
    assert graph.labels == (1, 3, 5)
    assert cg.CrowdGraph.from_responses(graph.to_arrow()).equals(graph)
    tenths = read(
        {"label": [0.5, 1.5, 0.5], "0.5": [0.6, 0, 1], "2.5": [0.4, 0, 0], "1.5": [0, 1, 0]},
        probability=["0.5", "1.5", "2.5"],
    )
    assert tenths.labels == (0.5, 1.5, 2.5)


def test_answers_without_a_label_follow_from_probabilities_or_are_none():
    table = {"label": ["no", None, None], "no": [None, 0.4, None], "yes": [None, 0.6, None]}
    graph = read(table, probability=["no", "yes"], missing="keep")
    assert graph.responses.label.tolist() == [0, 1, -1]
    assert_allclose(graph.label_probs, [[1, 0], [0.4, 0.6], [0, 0]])
    with pytest.raises(MissingValueError, match="Null label in rows 2"):
        read(table, probability=["no", "yes"])


def test_probabilities_are_scaled_to_their_sum():
    graph = read({"no": [0.333, 0.5, 0], "yes": [0.666, 0.5, 1]}, probability=["no", "yes"])
    assert (graph.label_probs.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("table", "option", "message"),
    [
        ({"no": [0.5, 1, 1], "yes": [0.4, 0, 0]}, ["no", "yes"], r"sum to one.*1 soft answers.*row 0 has \[0.5, 0.4\]"),
        ({"no": [1.5, 1, 1], "yes": [-0.5, 0, 0]}, ["no", "yes"], "between 0 and 1"),
        ({"no": [0.5, 1, math.nan], "yes": [0.5, 0, 0.5]}, ["no", "yes"], r"between 0 and 1.*row 2"),
        ({"no": [math.inf, 1, 1], "yes": [0, 0, 0]}, ["no", "yes"], "between 0 and 1"),
        ({"no": ["a", "b", "c"], "yes": [0, 0, 0]}, ["no", "yes"], "'no' must hold numbers"),
        ({"p": ['{"no": 1}', "no", None], "label": ["no"] * 3}, "p", "row 1 .* has 'no'"),
        ({"p": ['{"no": "1"}', None, None], "label": ["no"] * 3}, "p", "object from labels to probabilities"),
        ({"p": ["[1, 2]", None, None], "label": ["no"] * 3}, "p", "object from labels to probabilities"),
        ({"p": [0.9, 0.4, 1], "label": ["no", "yes", "no"]}, "p", "at least 0.5; 1 are lower, such as 0.4 in row 1"),
        ({"p": [0.9, 1.4, 1], "label": ["no", "yes", "no"]}, "p", "between 0 and 1"),
        ({"p": [0.9, 0.4, 1]}, "p", "no column of labels"),
        ({"label": ["no", "no", "no"], "no": [0.4, 1, 1], "yes": [0.6, 0, 0]}, ["no", "yes"], "not the most probable"),
        ({"label": ["no"] * 3}, "sure", "no column 'sure'"),
        ({"label": ["no"] * 3, "p": [1, 1, 1]}, {"never": "q"}, "no column 'q'"),
    ],
)
def test_wrong_probabilities_are_explained(table, option, message):
    with pytest.raises(ColumnError, match=message):
        read(table, probability=option)


def test_wrong_options_are_explained():
    table = {"label": ["no", "yes", "no"], "p": [0.9, 0.8, 1]}
    with pytest.raises(ParameterError, match="both given"):
        read(table, probability="p", log_probability="p")
    with pytest.raises(ParameterError, match="takes the name of a column"):
        read(table, probability=3)
    with pytest.raises(ParameterError, match="must name columns by text"):
        read(table, probability=[])
    with pytest.raises(LabelError, match="not among the labels"):
        read({"a": [1, 1, 1]}, probability=["a"], labels=["no", "yes"])
    with pytest.raises(ColumnError, match="name no label"):
        _ = (
            cg.CrowdGraph.from_responses({**WHO, "label": ["a"] * 3})
            .extend({"volunteer": ["z"], "item": ["x"], "label": ["a"]})
            .replace(responses=named_attribute())
            .label_probs
        )


def named_attribute():
    table = read({"label": ["a"] * 3}).responses.table
    return cg.core.tables.ResponseTable(
        table.volunteer, table.item, table.label, table.time, table.clock, {"probability[b]": np.ones(3)}
    )


@given(st.lists(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), min_size=1, max_size=8), st.data())
def test_what_is_read_is_what_was_there(weights, data):
    """Every row is read with its own probabilities, in whatever order of time, beside certain answers."""
    probs = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    n = len(probs)
    is_soft = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    time = np.array(data.draw(st.permutations(range(n))))
    label = probs.argmax(axis=1)
    columns = {f"p{code}": np.where(is_soft, probs[:, code], np.nan) for code in range(3)}
    table = {"volunteer": range(n), "item": ["x"] * n, "label": label, "time": time, **columns}
    graph = cg.CrowdGraph.from_responses(table, probability={code: f"p{code}" for code in range(3)}, labels=[0, 1, 2])
    expected = np.where(is_soft[:, None], probs, np.eye(3)[label])[np.argsort(time)]
    assert_allclose(graph.label_probs, expected, rtol=1e-12)
    assert graph.certain().label_probs is None
    assert all(a <= b for a, b in pairwise(graph.responses.time))


# Views and doors


def test_views_and_extension_keep_them():
    graph = soft_table()
    assert_allclose(graph.first(2).label_probs, PROBS[:2])
    assert_allclose(graph.subgraph(items=["y"]).label_probs, PROBS[2:])
    more = {"volunteer": ["bert", "net"], "item": ["x", "z"], "label": ["no", "yes"]}
    assert_allclose(graph.extend(more).label_probs, [*PROBS, [0, 1, 0], [0, 0, 1]])
    soft = graph.extend({**more, "sure": [0.6, None]}, probability="sure")
    assert_allclose(soft.label_probs, [*PROBS, [0.2, 0.6, 0.2], [0, 0, 1]])
    other = {"volunteer": ["bert"], "item": ["x"], "never": [0.6], "no": [0.4]}
    wider = graph.extend(other, probability=["never", "no"], new_labels=True)
    assert wider.labels == (*LABELS, "never")
    assert_allclose(wider.label_probs, [*([*row, 0] for row in PROBS), [0, 0.4, 0, 0.6]])
    merged = graph.certain().extend(soft_table(volunteer=["a", "b", "c"]))
    assert_allclose(merged.label_probs[3:], PROBS)


@pytest.mark.parametrize(
    "kind", ["crowd", "graphml", "gexf", "columns", "pandas", "polars", "arrow", "csv", "parquet", "networkx", "igraph"]
)
def test_every_door_keeps_them(kind, tmp_path):
    graph, path = soft_table(), tmp_path / f"g.{kind}"
    if kind == "crowd":
        graph.save(path)
        back = cg.load(path)
    elif kind == "columns":
        graph.save(path, format="columns")
        back = cg.open_store(path).graph()
    elif kind in ("graphml", "gexf"):
        getattr(graph, f"to_{kind}")(path)
        back = getattr(cg, f"read_{kind}")(path)
    elif kind in ("networkx", "igraph"):
        back = getattr(cg.CrowdGraph, f"from_{kind}")(getattr(graph, f"to_{kind}")())
    elif kind == "csv":
        graph.to_pandas().to_csv(path, index=False)
        back = cg.read_csv(path)
    elif kind == "parquet":
        pa.parquet.write_table(graph.to_arrow(), path)
        back = cg.read_parquet(path)
    else:
        back = cg.CrowdGraph.from_responses(getattr(graph, f"to_{kind}")())
    assert back.labels == graph.labels
    assert (back.label_probs == graph.label_probs).all()
    assert back.responses.label.tolist() == graph.responses.label.tolist()


def test_tensors_keep_them():
    tensors = soft_table().to_torch()
    assert tensors.answers.weight is not None
    assert_allclose(tensors.steps().shares, np.array(PROBS)[[0, 2, 1]])
    probs = tensors.gold.nan_to_num(0.5)
    assert_allclose(tensors.answers.sum_by_volunteer(probs)[0, 0], 0.5 * (np.array(PROBS[0]) + PROBS[2]), rtol=1e-12)


# The command line


def test_the_command_line_reads_them(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("volunteer,item,label,sure\nnet,x,yes,0.9\nanna,x,no,\nnet,y,no,0.7\n")
    result = run("inspect", path, "--probability", "sure")
    assert "2 answers (67%) are soft" in result.output
    path.write_text("volunteer,item,p,q\nnet,x,0.9,0.1\nanna,x,0,1\nnet,y,0.3,0.7\n")
    result = run("inspect", path, "--probability", "yes=p", "--probability", "no=q")
    assert "2 answers (67%) are soft" in result.output
    assert run("convert", path, "--store", tmp_path / "s", "--probability", "yes=p").exit_code == 1


def test_the_doctor_mentions_them():
    (finding,) = [finding for finding in soft_table().diagnose() if finding.name == "soft answers"]
    assert finding.numbers["soft"] == 2
