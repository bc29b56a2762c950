"""The page holds what the results hold, says what is missing, and is written whole or not at all."""

import json
import re
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.pages import GOOD, HOSTILE, VOTES, annotated, calibrated, hostile

import crowdgraph as cg
from crowdgraph import report
from crowdgraph.analysis import analyse
from crowdgraph.core.community_events import CommunityEvent
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.plot._style import HUES, colours
from crowdgraph.report import communities as pictures
from crowdgraph.report import nodes
from crowdgraph.report.communities import describe_event, ribbons
from crowdgraph.report.write import page, payload


@pytest.fixture(scope="module")
def graph():
    return annotated()


@pytest.fixture(scope="module")
def told(graph):
    run = {"seed": 7, "seconds": {"fit": 0.5}, "commands": ["crowdgraph demo"]}
    return payload(graph, calibration=calibrated(), run=run)


def read(path):
    """The data of a written page, as a browser reads them."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(found[1])


def by_id(table, column, ids):
    """A column of a table in the order of some ids."""
    place = {name: row for row, name in enumerate(table["id"])}
    return [table[column][place[str(name)]] for name in ids]


# What the page holds


def test_items_are_the_fit(graph, told):
    fit, ids = graph.fit(), graph.items.ids.tolist()
    assert by_id(told["items"], "responses", ids) == graph.items.n_responses.tolist()
    np.testing.assert_allclose(by_id(told["items"], "probs", ids), fit.item_probs, atol=5e-5)
    assert by_id(told["items"], "class", ids) == fit.item_probs.argmax(axis=1).tolist()
    golds = by_id(told["items"], "gold", ids)
    assert [-1 if gold is None else gold for gold in golds] == graph.gold.codes.tolist()
    probs = np.clip(fit.item_probs, 1e-300, 1)
    np.testing.assert_allclose(by_id(told["items"], "entropy", ids), -(probs * np.log2(probs)).sum(axis=1), atol=1e-4)


def test_answers_of_an_item_are_counted(graph, told):
    item = graph.items.ids[3]
    said = [response.label for response in graph.items[item].responses]
    assert by_id(told["items"], "answers", [item]) == [[said.count(label) for label in graph.labels]]


def test_volunteers_are_the_confusion(graph, told):
    table, snapshot, ids = told["volunteers"], graph.confusion().latest(), graph.volunteers.ids.tolist()
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


def test_histories_are_the_track_at_their_moments(graph, told):
    history, track, times = told["histories"], graph.confusion(), graph.responses.time
    moments = nodes._moments(times)
    assert len(history["times"]) == len(moments) == 40
    assert (history["positions"][0], history["positions"][-1]) == (0, 1)
    for row in (0, 17, len(track.ids) - 1):
        name = told["volunteers"]["id"][row]
        first = next(iter(graph.volunteers[name].responses)).time
        for place in (0, 20, 39):
            if graph.responses.clock.to_python(moments[place : place + 1])[0] < first:
                assert history["mean"][row][place] is history["accuracy"][row][place] is None
            else:
                matrix = track.of(name).at(moments[place])
                np.testing.assert_allclose(history["mean"][row][place], 1000 * matrix.mean.ravel(), atol=0.51)
                right = matrix.accuracy(graph.fit().class_probs, correct={"not supernova": -1, "supernova": [1, 3]})
                assert history["accuracy"][row][place] == pytest.approx(float(right), abs=6e-4)


def test_volunteers_are_seen_from_their_first_response_on(graph, told):
    first = told["volunteers"]["id"].index(graph.responses[0].volunteer)
    assert told["histories"]["mean"][first][0] is not None
    assert sum(history[0] is not None for history in told["histories"]["mean"]) == 1


def test_networks_are_the_networks(graph, told):
    found = told["networks"]["pictures"]
    assert [picture["title"] for picture in found] == ["Who behaves alike", "Who works on the same items"]
    for picture in found:
        network = graph.network(picture["name"])
        assert picture["id"] == [str(name) for name in network.ids]
        left, right = (picture["links"][start::2] for start in (0, 1))
        weights = np.asarray(network.weights.toarray() if hasattr(network.weights, "toarray") else network.weights)
        np.testing.assert_allclose(picture["weights"], weights[left, right] / weights.max(), atol=6e-4)
        assert np.abs([picture["x"], picture["y"]]).max() == pytest.approx(1)
        assert f"{len(left):,} of {network.n_edges:,} links" in picture["note"]


def test_communities_are_described(graph, told):
    groups, shown = graph.communities(), told["communities"]
    assert [row["volunteers"] for row in shown["rows"]] == groups.sizes.tolist()
    assert [row["behaviour"] for row in shown["rows"]] == groups.describe()["behaviour"].tolist()
    np.testing.assert_allclose(shown["mean"], groups.mean_confusion(by_responses=True), atol=5e-5)
    central = [groups.confusion.of(name).mean for name in groups.centroids]
    np.testing.assert_allclose(shown["central"], central, atol=5e-5)
    assert told["colours"]["communities"][: len(groups)] == colours(range(len(groups)))


def test_flow_moves_everybody_once(graph, told):
    track = graph.community_track()
    assert told["track"]["sizes"] == track.sizes.tolist()
    assert len(told["track"]["events"]) == len(track.events)
    groups = graph.communities()
    at_end = track.assignment[-1][graph.volunteers.table.codes(groups.ids.tolist())]
    assert told["track"]["renumbered"] == (at_end != groups.assignment).any()
    for flow in told["track"]["flows"]:
        both = (track.assignment[flow["from"]] >= 0) & (track.assignment[flow["to"]] >= 0)
        assert sum(n for *_, n in flow["ribbons"]) == np.count_nonzero(both)


def test_evidence_and_bound(graph, told):
    seen = graph.communities().evidence
    assert told["checks"]["evidence"]["structured"] == seen.structured
    np.testing.assert_allclose(told["checks"]["evidence"]["null"], seen.null_modularity, atol=5e-5)
    ibcc = told["checks"]["fits"][0]
    np.testing.assert_allclose(ibcc["bound"], graph.fit("ibcc").bound, rtol=1e-6)
    assert ibcc["steps"] == [*range(1, len(ibcc["bound"]) + 1)]


def test_doctor_and_provenance(graph, told):
    assert told["doctor"] == graph.diagnose().to_dict(most_ids=20)
    assert told["provenance"]["commands"] == ["crowdgraph demo"]
    assert told["provenance"]["run"] == [["seed", "7"], ["seconds", [["fit", "0.5"]]]]
    assert [result["name"] for result in told["provenance"]["results"]] == list(graph.annotations)
    assert told["provenance"]["results"][0]["code"].startswith("cg.IBCC(")


def test_overview_tells_the_sizes(graph, told):
    cards = {card["name"]: card["value"] for card in told["overview"]["cards"]}
    assert cards["volunteers"] == "60"
    assert cards["communities"] == str(len(graph.communities()))
    assert cards["gold"] == str(len(graph.gold))


# Checks of the model


def test_calibration_says_when_the_model_was_given_the_gold(graph, told):
    assert told["checks"]["calibration"]["without_gold"] is True
    assert sum(told["checks"]["calibration"]["items"]) == len(graph.gold)
    blind = graph.with_gold(None)
    fair = graph.with_gold(graph.gold).annotate(cg.IBCC(votes=VOTES).fit(blind))
    found = payload(fair)["checks"]["calibration"]
    known = graph.gold.known
    right = fair.item_probs()[known].argmax(axis=1) == graph.gold.codes[known]
    assert found["without_gold"] is False
    assert found["accuracy"] == pytest.approx(right.mean(), abs=5e-5)


def test_no_gold_no_calibration(graph):
    blind = graph.with_gold(None)
    assert payload(blind.annotate(cg.IBCC(votes=VOTES).fit(blind)))["checks"]["calibration"] is None


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=30))
def test_ribbons_count_pairs(pairs):
    before, after = np.array(pairs).T
    found = {(source, target): n for source, target, n in ribbons(before, after)}
    for source in range(4):
        for target in range(4):
            assert found.get((source, target), 0) == pairs.count((source, target))


@pytest.mark.parametrize("name", ["born", "split", "returned", "ended", "merged", "grew", "shrank", "moved"])
def test_every_event_has_words(name):
    words = describe_event(CommunityEvent(1, name, 2, 3, 10, 20, 1))
    assert "community 2" in words
    assert ("community 3" in words) == (name in ("split", "merged", "moved"))


def test_events_tell_the_sizes_and_who_moved():
    split = CommunityEvent(1, "split", 1, 0, before=0, after=79, volunteers=46)
    assert describe_event(split) == "community 1 (79 volunteers) splits off community 0, from which 46 came"
    merged = CommunityEvent(2, "merged", 2, 0, before=1, after=0, volunteers=1)
    assert describe_event(merged) == "community 2 (1 volunteer) merges into community 0, to which 1 went"


# Which labels are right


def test_right_labels_are_named_voted_or_read_off(graph):
    named = cg.simulate.crowd(n_volunteers=10, n_responses=200, seed=0).graph
    named = named.annotate(cg.IBCC().fit(named))
    assert payload(named)["volunteers"]["right"] == "Right is the label that names the class."
    assert "-1 for not supernova, 1 or 3 for supernova (as the model's votes" in payload(graph)["volunteers"]["right"]
    unvoted = cg.IBCC(confusion_prior=[[5, 1, 1], [1, 3, 3]]).fit(graph)
    read_off = payload(graph.annotate(unvoted))["volunteers"]["right"]
    assert "-1 for not supernova, 1 or 3 for supernova (read off" in read_off


# Ids that would run


def test_hostile_ids_are_data(tmp_path):
    graph = hostile()
    report.write(graph, tmp_path / "page.html", title=HOSTILE[0])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    told = read(tmp_path / "page.html")
    assert set(HOSTILE) <= set(told["volunteers"]["id"])
    assert set(HOSTILE) & set(told["items"]["id"])
    assert not any(bad in text for bad in HOSTILE)
    assert text.count("<script") == 2
    assert "<title>&lt;script&gt;" in text


@given(st.text(max_size=30))
def test_any_text_survives(text):
    written = page(text, {"text": text, "braces": "{{ script }}"})
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', written, flags=re.DOTALL)
    assert json.loads(found[1]) == {"text": text, "braces": "{{ script }}"}
    assert "<" not in found[1]


def test_the_page_asks_nobody(tmp_path, graph):
    report.write(graph, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert "innerHTML" not in text
    urls = set(re.findall(r"https?://[^\s\"'<)]+", text))
    # The name of SVG, which nobody fetches.
    assert urls == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=(?!\"data:)", text)
    assert f"--hue-0: {HUES[0]};" in text
    assert len(text) < 1_000_000


# Little, nothing and much


def test_a_bare_graph_says_what_to_do(tmp_path, columns):
    graph = cg.CrowdGraph.from_responses(columns)
    report.write(graph, tmp_path / "page.html")
    told = read(tmp_path / "page.html")
    for section in ("items", "volunteers", "histories", "networks", "communities", "track", "checks"):
        assert "graph = graph.annotate(" in told[section]["missing"], section
    assert told["items"]["responses"] == [3, 2, 1]
    assert told["provenance"]["run"] is None


def test_sections_say_why_they_were_skipped(graph, columns):
    skipped = {"model": "No model.", "pi_similarity": "No links.", "communities": "No groups."}
    told = payload(cg.CrowdGraph.from_responses(columns), run={"skipped": skipped})
    why = {"items": "model", "volunteers": "model", "networks": "pi_similarity", "track": "communities"}
    for section, step in {**why, "communities": "communities", "checks": "model"}.items():
        assert told[section]["missing"] == f"This was skipped. {skipped[step]}"
    # What is there is told, whatever else was skipped.
    told = payload(graph, run={"skipped": skipped})
    assert not any(
        "missing" in told[section] for section in ("items", "volunteers", "networks", "communities", "track")
    )


def test_advice_for_the_command_line(columns):
    graph = cg.CrowdGraph.from_responses(columns)
    data = payload(graph, interface="cli")
    for section in ("items", "volunteers", "histories", "networks", "communities", "track", "checks"):
        assert "graph = " not in data[section]["missing"], section
    assert data["items"]["missing"] == "What the items are is not known yet; use --model ibcc."
    assert data["doctor"] == graph.diagnose().wording("cli").to_dict(most_ids=20)
    assert any("--gold FILE" in finding["advice"] for finding in data["doctor"]["findings"])


def test_the_page_of_an_analysis(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": "yes"})
    analysis = analyse(graph, model="ibcc", snapshots=0, min_responses=1)
    data = payload(analysis)
    run = {"parameters": analysis.parameters, "notes": analysis.notes, "skipped": analysis.skipped}
    run = {name: value for name, value in {**run, "timings": analysis.timings}.items() if value}
    expected = payload(analysis.graph, findings=analysis.findings, calibration=analysis.calibration, run=run)
    assert data == expected
    assert data["provenance"]["run"][0][0] == "parameters"


def test_no_responses_at_all(tmp_path, columns):
    report.write(cg.CrowdGraph.from_responses(columns).first(0), tmp_path / "page.html")
    assert read(tmp_path / "page.html")["items"]["responses"] == [0, 0, 0]


def test_static_models_have_no_history(graph):
    told = payload(graph.annotate(graph.fit("ibcc"), name="again"))
    assert "DynIBCC" in told["histories"]["missing"]
    assert "accuracy" in told["volunteers"]


def test_bare_confusion_without_a_fit(graph):
    track = graph.fit("ibcc").confusion
    told = payload(graph.first(len(graph.responses)).annotate(track))
    assert "missing" in told["items"]
    assert len(told["volunteers"]["accuracy"]) == 60


def test_communities_of_some_volunteers(columns):
    graph = cg.CrowdGraph.from_responses(columns)
    some = cg.Communities(ids=["bert", "cleo"], participation=np.eye(2), modularity=0.0, method="by hand")
    network = cg.VolunteerNetwork(ids=["anna", "bert"], weights=np.zeros((2, 2)), method="by hand")
    told = payload(graph.annotate(some, name="groups").annotate(network))
    assert by_id(told["volunteers"], "community", ["anna", "bert", "cleo"]) == [-1, 0, 1]
    assert told["networks"]["pictures"][0]["community"] == [-1, 0]
    assert told["networks"]["pictures"][0]["title"] == "The network by hand"
    assert told["networks"]["pictures"][0]["links"] == []


def test_one_crowd_has_no_groups(graph):
    bare = graph.first(len(graph.responses)).annotate(graph.network("task_cooccurrence"))
    ids, made = graph.volunteers.ids, {"modularity": 0.0, "method": "by hand"}
    whole = cg.Communities(ids=ids, participation=np.ones((60, 1)), **made)
    track = cg.CommunityTrack(
        ids=ids, times=graph.responses.time[-1:], counts=[2_400], snapshots=[whole], clock=graph.responses.clock,
        method="by hand",
    )  # fmt: skip
    tasks = bare.network("task_cooccurrence").ids
    tasks = cg.Communities(ids=tasks, participation=np.ones((len(tasks), 1)), **made)
    told = payload(bare.annotate(tasks, name="task communities").annotate(whole, name="groups").annotate(track))
    assert "one crowd" in told["communities"]["missing"]
    assert "one crowd" in told["track"]["missing"]
    assert "community" not in told["volunteers"]
    assert told["networks"]["pictures"][0]["noun"] is None


def test_settings_are_told_in_words(columns):
    run = {"notes": ["One is.", "Two are."], "classes": None, "labels": ["no", "yes"], "sizes": [1, 2]}
    told = payload(cg.CrowdGraph.from_responses(columns), run=run)["provenance"]["run"]
    assert told == [["notes", "One is. Two are."], ["classes", "\u2013"], ["labels", "no, yes"], ["sizes", "[1, 2]"]]


def test_soft_gold_is_told_as_probabilities(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": {"yes": 0.75, "no": 0.25}})
    assert by_id(payload(graph)["items"], "gold", ["x", "y"]) == [[0.25, 0.75], None]


def test_large_crowds_are_cut_and_say_so(graph, monkeypatch):
    monkeypatch.setattr(nodes, "MAX_ROWS", 10)
    monkeypatch.setattr(nodes, "MAX_HISTORIES", 5)
    monkeypatch.setattr(pictures, "MAX_VOLUNTEERS", 20)
    monkeypatch.setattr(pictures, "MAX_LINKS", 15)
    told = payload(graph)
    assert (len(told["volunteers"]["id"]), told["volunteers"]["total"]) == (10, 60)
    assert min(told["volunteers"]["responses"]) >= np.sort(graph.volunteers.n_responses)[-10]
    assert (len(told["items"]["id"]), told["items"]["total"]) == (10, 100)
    assert len(told["histories"]["mean"]) == 5
    for picture in told["networks"]["pictures"]:
        assert len(picture["id"]) == 20
        assert picture["note"].startswith("The 20 of ")
        assert len(picture["weights"]) == 15
        assert "the strongest 15 of " in picture["note"]


def test_many_classes_leave_fewer_rows(monkeypatch, graph):
    monkeypatch.setattr(nodes, "MAX_NUMBERS", 100)
    told = payload(graph)
    assert len(told["items"]["id"]) == 100 // 5
    assert len(told["volunteers"]["id"]) == 100 // 10


# What cannot be written


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "responses.csv"}, "written of a CrowdGraph or an Analysis; got a str"),
        ({"path": 5}, "path=5 must name a file"),
        ({"title": 5}, "title=5 must be text"),
        ({"run": [1]}, r"run=\[1\] must be a mapping"),
        ({"run": {"skipped": "model"}}, r"run\['skipped'\]='model' must be a mapping from steps to reasons"),
        ({"findings": []}, "findings= takes what graph.diagnose"),
        ({"interface": "short"}, "interface='short' is not a choice"),
        ({"progress": "yes"}, "progress='yes' must be True or False"),
    ],
)
def test_bad_arguments(options, message, tmp_path, columns):
    given = {"graph": cg.CrowdGraph.from_responses(columns), "path": tmp_path / "page.html", **options}
    with pytest.raises(ParameterError, match=message):
        report.write(given.pop("graph"), given.pop("path"), **given)
    assert list(tmp_path.iterdir()) == []


def test_bad_places(tmp_path, columns):
    graph = cg.CrowdGraph.from_responses(columns)
    with pytest.raises(StoreError, match="is a directory"):
        report.write(graph, tmp_path)
    with pytest.raises(StoreError, match="No such file or directory"):
        report.write(graph, tmp_path / "missing" / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_written_whole_or_not_at_all(tmp_path, columns, monkeypatch):
    graph, path = cg.CrowdGraph.from_responses(columns), tmp_path / "page.html"
    report.write(graph, path, title="old")
    before = path.read_bytes()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(import_module("crowdgraph.report.write"), "page", broken)
    with pytest.raises(StoreError, match=r"No space left on device.*What was there is unchanged"):
        report.write(graph, path, title="new")
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == ["page.html"]


def test_same_graph_same_page(tmp_path, graph):
    report.write(graph, tmp_path / "one.html", title=GOOD)
    report.write(graph, tmp_path / "two.html", title=GOOD)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
