"""The items and volunteers of the page: what the results hold, the uncertain first, and how large crowds are cut."""

import numpy as np
import pytest
from report.pages import by_id

import crowdgraph as cg
from crowdgraph.report import nodes
from crowdgraph.report.nodes import uncertainty
from crowdgraph.report.write import payload

# Items


def test_items_are_the_fit(graph, data):
    fit, ids = graph.fit(), graph.items.ids.tolist()
    assert by_id(data["items"], "responses", ids) == graph.items.n_responses.tolist()
    np.testing.assert_allclose(by_id(data["items"], "probs", ids), fit.item_probs, atol=5e-5)
    assert by_id(data["items"], "class", ids) == fit.item_probs.argmax(axis=1).tolist()
    golds = by_id(data["items"], "gold", ids)
    assert [-1 if gold is None else gold for gold in golds] == graph.gold.codes.tolist()
    probs = np.clip(fit.item_probs, 1e-300, 1)
    # Of two classes, entropy in bits is at most 1.
    shares = by_id(data["items"], "uncertainty", ids)
    np.testing.assert_allclose(shares, -(probs * np.log2(probs)).sum(axis=1), atol=1e-4)


def test_answers_of_an_item_are_counted(graph, data):
    item = graph.items.ids[3]
    answers = [response.label for response in graph.items[item].responses]
    assert by_id(data["items"], "answers", [item]) == [[answers.count(label) for label in graph.labels]]


def test_uncertain_items_come_first(data):
    items = data["items"]
    has_gold = [gold is not None for gold in items["gold"]]
    assert has_gold == sorted(has_gold)
    for kind in (False, True):
        shares = [share for share, known in zip(items["uncertainty"], has_gold, strict=True) if known == kind]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) > 40


def test_uncertainty_is_a_share_of_the_most_there_can_be():
    assert uncertainty(np.array([[1.0, 0.0, 0.0], [1 / 3] * 3])).tolist() == pytest.approx([0, 1])
    assert uncertainty(np.array([[1.0]])).tolist() == [0]


def test_soft_gold_is_shown_as_probabilities(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": {"yes": 0.75, "no": 0.25}})
    assert by_id(payload(graph)["items"], "gold", ["x", "y"]) == [[0.25, 0.75], None]


# Volunteers


def test_volunteers_are_the_confusion(graph, data):
    table, snapshot, ids = data["volunteers"], graph.confusion().latest(), graph.volunteers.ids.tolist()
    np.testing.assert_allclose(by_id(table, "confusion", ids), snapshot.mean, atol=5e-4)
    frame = graph.fit().volunteers_to_frame(level=0.9)
    for column in ("accuracy", "low", "high"):
        np.testing.assert_allclose(by_id(table, column, frame["volunteer"]), frame[column], atol=5e-5)
    assert table["responses"] == sorted(table["responses"], reverse=True)
    assert by_id(table, "community", ids) == graph.communities().assignment.tolist()
    shares = graph.communities().of(ids[0])
    flat = by_id(table, "participation", ids[:1])[0]
    assert dict(zip(flat[::2], flat[1::2], strict=True)) == {
        k: round(share, 3) for k, share in enumerate(shares.tolist()) if share >= 0.02
    }


def test_histories_are_the_track_at_their_moments(graph, data):
    history, track, times = data["histories"], graph.confusion(), graph.responses.time
    moments = times[np.linspace(0, len(times) - 1, 40).round().astype(int)]
    assert len(history["times"]) == 40
    positions = (moments - moments[0]) / (moments[-1] - moments[0])
    np.testing.assert_allclose(history["positions"], positions, atol=5e-5)
    for row in (0, 17, len(track.ids) - 1):
        name = data["volunteers"]["id"][row]
        first = next(iter(graph.volunteers[name].responses)).time
        for step in (0, 20, 39):
            if graph.responses.clock.to_python(moments[step : step + 1])[0] < first:
                assert history["mean"][row][step] is history["accuracy"][row][step] is None
            else:
                matrix = track.of(name).at(moments[step])
                np.testing.assert_allclose(history["mean"][row][step], 1000 * matrix.mean.ravel(), atol=0.51)
                right = matrix.accuracy(graph.fit().class_probs, correct={"not supernova": -1, "supernova": [1, 3]})
                assert history["accuracy"][row][step] == pytest.approx(float(right), abs=6e-4)


def test_volunteers_are_seen_from_their_first_response_on(graph, data):
    first = data["volunteers"]["id"].index(graph.responses[0].volunteer)
    assert data["histories"]["mean"][first][0] is not None
    assert sum(history[0] is not None for history in data["histories"]["mean"]) == 1


def test_static_models_have_no_history(graph):
    data = payload(graph.annotate(graph.fit("ibcc"), name="again"))
    assert "DynIBCC" in data["histories"]["missing"]
    assert "accuracy" in data["volunteers"]


def test_without_times_a_column_of_times_is_the_advice(agreeing):
    columns = {name: agreeing.to_arrow()[name] for name in ("volunteer", "item", "label")}
    untimed = cg.CrowdGraph.from_responses(columns)
    for crowd in (untimed, untimed.annotate(cg.IBCC().fit(untimed))):
        for interface, start in (("python", "The graph has no times"), ("cli", "The file has no times")):
            words = payload(crowd, interface=interface)["histories"]["missing"]
            assert words.startswith(f"{start}, so nobody can be followed over time; with a column of times ")
            assert "ibcc" not in words.lower()


def test_bare_confusion_without_a_fit(graph):
    track = graph.fit("ibcc").confusion
    data = payload(graph.first(len(graph.responses)).annotate(track))
    assert "missing" in data["items"]
    assert len(data["volunteers"]["accuracy"]) == 60


def test_right_labels_are_named_voted_or_read_off(graph, data, agreeing):
    assert payload(agreeing)["volunteers"]["right"] == "Right is the label that names the class."
    assert "-1 for not supernova, 1 or 3 for supernova (as the model's votes" in data["volunteers"]["right"]
    unvoted = cg.IBCC(confusion_prior=[[5, 1, 1], [1, 3, 3]]).fit(graph)
    read_off = payload(graph.annotate(unvoted))["volunteers"]["right"]
    assert "-1 for not supernova, 1 or 3 for supernova (read off" in read_off


# Large crowds


def test_of_large_crowds_the_most_active_are_listed(graph, monkeypatch):
    monkeypatch.setattr(nodes, "MAX_ROWS", 10)
    monkeypatch.setattr(nodes, "MAX_HISTORIES", 5)
    data = payload(graph)
    assert (len(data["volunteers"]["id"]), data["volunteers"]["total"]) == (10, 60)
    assert min(data["volunteers"]["responses"]) >= np.sort(graph.volunteers.n_responses)[-10]
    assert (len(data["items"]["id"]), data["items"]["total"]) == (10, 100)
    assert len(data["histories"]["mean"]) == 5


def test_many_classes_leave_fewer_rows(monkeypatch, graph):
    monkeypatch.setattr(nodes, "MAX_NUMBERS", 100)
    data = payload(graph)
    assert len(data["items"]["id"]) == 100 // 5
    assert len(data["volunteers"]["id"]) == 100 // 10
