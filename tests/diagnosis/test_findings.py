"""The result types, and the doctor on graphs that are hardly there."""

import copy
import datetime as dt
import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import graphs

import crowdgraph as cg
from crowdgraph import diagnosis
from crowdgraph.diagnosis import CHECKS, diagnose
from crowdgraph.diagnosis.doctor import finding_names
from crowdgraph.diagnosis.findings import SEVERITIES, Finding, Findings
from crowdgraph.messages import wording

EVIL = "<script>alert(1)</script>"


def finding(**fields):
    return Finding(**{"topic": "bots", "name": "fast answers", "severity": "note", "what": "One is fast.", **fields})


@pytest.fixture
def three():
    return Findings((
        finding(severity="info", topic="counts", name="counts"),
        finding(severity="warning", ids=["anna", EVIL], evidence={"seconds": [0.1, 0.2]}, numbers={"share": 0.5}),
        finding(name="constant answers", why="It tells nothing.", advice="Leave it out."),
    ))  # fmt: skip


def test_the_worst_come_first(three):
    assert [one.severity for one in three] == ["warning", "note", "info"]
    assert three.worst == "warning"
    assert Findings(()).worst is None
    assert [one.name for one in three[1:]] == ["constant answers", "counts"]
    assert isinstance(three[:1], Findings)


def test_options_are_not_broken_at_hyphens():
    words = repr(finding(advice=f"{'word ' * 13}with --min-responses and more words that follow."))
    assert "--min-responses" in words


def test_one_answer_is_one():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"], "item": ["x"], "label": ["yes"]}, classes=["no", "yes"]
    )
    sentences = [one.what for one in diagnose(graph)]
    assert "The only answer says yes." in sentences
    assert "Items were answered by 1 volunteer each." in sentences
    assert repr(graph).startswith("CrowdGraph: 1 volunteer, 1 item, 1 response\n")


def test_access_by_topic_name_and_severity(three):
    assert len(three.of("bots")) == 2
    assert three.of("constant answers")[0].why == "It tells nothing."
    assert len(three.of("copied answers")) == 0
    assert len(three.at_least("note")) == 2
    with pytest.raises(cg.errors.ParameterError, match="Nothing called 'robots' was examined"):
        three.of("robots")
    with pytest.raises(cg.errors.ParameterError, match="severity='bad' is not a choice"):
        three.at_least("bad")


def test_text(three):
    assert repr(three).splitlines() == [
        "Findings: 1 warning, 1 note, 1 for information",
        "WARNING  bots: fast answers",
        "         One is fast.",
        "NOTE     bots: constant answers",
        "         One is fast.",
        "         Why it matters: It tells nothing.",
        "         What to do: Leave it out.",
        "INFO     counts",
        "         One is fast.",
    ]
    assert repr(Findings(())) == "Findings: none"
    assert all(len(line) <= 100 for line in repr(finding(what="many words " * 50)).splitlines())


def test_html_shows_ids_as_text(three):
    page = Findings((*three, finding(what=EVIL, why=EVIL, name=EVIL)))._repr_html_()
    assert EVIL not in page
    assert page.count("&lt;script&gt;") == 4
    assert "and 5 more" in finding(ids=np.arange(15))._repr_html_()


def test_frames(three):
    frame = three.to_frame()
    assert frame["severity"].tolist() == ["warning", "note", "info"]
    assert frame["n_ids"].tolist() == [2, 0, 0]
    assert three.to_frame(kind="arrow").num_rows == 3
    assert len(Findings(()).to_frame(kind="polars")) == 0
    evidence = three[0].to_frame()
    assert evidence.columns.tolist() == ["volunteer", "seconds"]
    assert evidence["volunteer"].tolist() == ["anna", EVIL]
    assert "seconds" in three[0].to_frame(kind="text")
    with pytest.raises(cg.errors.ParameterError, match="kind='excel'"):
        three.to_frame(kind="excel")


def test_json():
    odd = finding(
        ids=[("a", 1), dt.date(2026, 1, 2), 3, "x"],
        evidence={"share": [0.5, np.nan, np.inf, 1.0]},
        numbers={"share": np.float64(0.25), "n": np.int64(3), "none": np.nan},
    )
    values = json.loads(json.dumps(Findings((odd,)).to_dict(), allow_nan=False))["findings"][0]
    assert values["ids"] == ["('a', 1)", "2026-01-02", 3, "x"]
    assert values["evidence"] == {"share": [0.5, None, None, 1.0]}
    assert values["numbers"] == {"share": 0.25, "n": 3, "none": None}
    short = odd.to_dict(most_ids=1)
    assert (len(short["ids"]), len(short["evidence"]["share"]), short["n_ids"]) == (1, 1, 4)


def test_findings_cannot_be_changed(three):
    again = pickle.loads(pickle.dumps(three))  # noqa: S301
    for one in (three[0], copy.deepcopy(three)[0], again[0]):
        with pytest.raises(ValueError, match="read-only"):
            one.ids[0] = "bert"
    with pytest.raises(AttributeError):
        three[0].what = "nothing"
    assert again.to_dict() == three.to_dict()


def test_bad_findings():
    with pytest.raises(cg.errors.ParameterError, match="severity='bad' is not a choice"):
        finding(severity="bad")
    with pytest.raises(cg.errors.ParameterError, match="subject='person' is not a choice"):
        finding(subject="person")
    with pytest.raises(cg.errors.ResultError, match=r"Evidence 'seconds' has shape \(1,\); expected \(2,\)"):
        finding(ids=["a", "b"], evidence={"seconds": [1.0]})
    with pytest.raises(cg.errors.ResultError, match="made of Finding objects; got a str"):
        Findings(("fast",))


def test_bad_calls(graph):
    with pytest.raises(cg.errors.ParameterError, match="examines a CrowdGraph; got a dict"):
        diagnose({})
    with pytest.raises(cg.errors.ParameterError, match="progress='yes' must be True or False"):
        graph.diagnose(progress="yes")
    with pytest.raises(TypeError):
        graph.diagnose(True)


def test_the_registry_is_complete():
    """Every check of the package is called once, reports one topic, and no two findings share a name."""
    modules = (diagnosis.bots, diagnosis.labels, diagnosis.responses, diagnosis.volunteers)
    checks = {id(getattr(module, name)) for module in modules for name in module.__all__}
    assert {id(check) for check in CHECKS} == checks
    assert len(CHECKS) == len(checks)
    assert all(kind.topic == check.topic for check in CHECKS for kind in check.types)
    names = [name for names in finding_names().values() for name in names]
    assert len(names) == len(set(names))


def test_advice_for_the_command_line_speaks_of_options():
    """No advice sends somebody at a command line to a call, unless it says that this is Python."""
    call = re.compile(r"\w[(]|\w=(?!CLASS)|\bcg\.|\bgraph\.\w")
    advice = [kind.advice for check in CHECKS for kind in check.types]
    assert any(call.search(text) for text in advice)
    assert [text for text in advice if call.search(wording(text, "cli"))] == []
    graph = cg.simulate.crowd(n_volunteers=40, n_items=100, n_responses=200, gold=0.1, seed=0).graph
    (prior,) = graph.diagnose().wording("cli").of("hardly known")
    assert "--min-responses" in prior.advice
    assert "min_responses" not in repr(prior)


def test_progress_shows_and_changes_nothing(graph, capsys, every_line):
    assert graph.diagnose(progress=True).to_dict() == graph.diagnose().to_dict()
    assert "Diagnosis" in capsys.readouterr().err


def built(volunteers, items, said, **options):
    return cg.CrowdGraph.from_responses({"volunteer": volunteers, "item": items, "label": said}, **options)


SMALL = {
    "one response": built(["anna"], ["x"], ["yes"]),
    "one volunteer": built(["anna"] * 300, range(300), ["yes", "no"] * 150),
    "two volunteers": built(["anna", "bert"] * 150, np.repeat(np.arange(150), 2), ["yes", "no", "no"] * 100),
    "one label": built(["anna", "bert"] * 100, np.repeat(np.arange(100), 2), ["yes"] * 200),
    "one item": built(range(50), ["x"] * 50, ["yes", "no"] * 25),
    "nothing answered": built(["anna"] * 3, range(3), [None] * 3, labels=["no", "yes"], missing="keep"),
    "soft gold": built(["anna", "bert"], ["x", "x"], ["a", "b"], gold={"x": {"a": 0.3, "b": 0.7}}),
    "no responses": built(["anna"], ["x"], ["yes"]).first(0),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_graphs(name):
    findings = SMALL[name].diagnose()
    json.dumps(findings.to_dict(), allow_nan=False)
    assert repr(findings)
    assert findings.of("counts")
    assert not findings.of("bots").at_least("note")


def test_a_graph_without_answers_says_so():
    for name in ("no responses", "nothing answered"):
        assert [one.name for one in SMALL[name].diagnose().at_least("warning")] == ["no answers"]


def test_without_times_nothing_is_said_of_pace():
    (finding,) = SMALL["two volunteers"].diagnose().of("times")
    assert (finding.name, finding.severity) == ("no times", "info")


def test_numbers_have_no_pace(graph):
    assert [one.name for one in graph.diagnose().of("times")] == ["times without a unit"]


@settings(max_examples=25)
@given(graphs())
def test_any_graph(graph):
    """Whatever the ids and times are, findings can be printed and written, and concern what is there."""
    findings = graph.diagnose()
    json.dumps(findings.to_dict(), allow_nan=False)
    assert repr(findings)
    assert findings._repr_html_()
    ranks = [SEVERITIES.index(one.severity) for one in findings]
    assert ranks == sorted(ranks, reverse=True)
    ids = {
        "volunteer": set(graph.volunteers),
        "item": set(graph.items),
        "label": set(graph.labels),
        "class": set(graph.classes),
    }
    for one in findings:
        assert one.name in finding_names()[one.topic]
        assert set(one.ids.tolist()) <= ids[one.subject]
        assert one.severity == "info" or (one.why and one.advice)
