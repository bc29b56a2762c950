"""Writing the page: one file, whole or not at all, which runs nothing but its own scripts and asks nobody."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.pages import HOSTILE, TITLE, hostile_graph, page_data

import crowdgraph as cg
from crowdgraph import report
from crowdgraph.analysis import analyse
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.plot._style import HUES
from crowdgraph.report.write import page, payload

SECTIONS = ("items", "volunteers", "histories", "networks", "communities", "track", "checks")

# What the page holds


def test_the_page_has_the_findings_and_how_results_came_about(graph, data):
    assert data["doctor"] == graph.diagnose().to_dict(most_ids=20)
    provenance = data["provenance"]
    assert provenance["commands"] == ["crowdgraph demo"]
    assert provenance["run"] == [["seed", "7"], ["seconds", [["fit", "0.5"]]]]
    assert [result["name"] for result in provenance["results"]] == list(graph.annotations)
    assert provenance["results"][0]["code"].startswith("cg.IBCC(")


def test_the_page_of_an_analysis(columns):
    graph = cg.CrowdGraph.from_responses(columns, gold={"x": "yes"})
    # No volunteer has as many answers, so that nothing is detected.
    analysis = analyse(graph, model="ibcc", snapshots=0, min_responses=9)
    data = payload(analysis)
    record = {name: getattr(analysis, name) for name in ("parameters", "notes", "skipped", "timings")}
    run = {name: value for name, value in record.items() if value}
    options = {
        name: getattr(analysis, name)
        for name in ("findings", "calibration", "changes", "predictive", "plan", "calibrated_fit")
    }
    expected = payload(analysis.graph, **options, run=run)
    assert data == expected
    assert data["provenance"]["run"][0][0] == "parameters"


# What is missing


def test_a_bare_graph_says_what_to_do(tmp_path, bare):
    report.write(bare, tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    for section in SECTIONS:
        assert "graph = graph.annotate(" in data[section]["missing"], section
    assert data["items"]["responses"] == [3, 2, 1]
    assert data["provenance"]["run"] is None


def test_sections_say_why_they_were_skipped(graph, bare):
    skipped = {"model": "No model.", "pi_similarity": "No links.", "communities": "No groups."}
    steps = {"items": "model", "volunteers": "model", "networks": "pi_similarity", "track": "communities"}
    data = payload(bare, run={"skipped": skipped})
    for section, step in {**steps, "communities": "communities", "checks": "model"}.items():
        assert data[section]["missing"] == f"This was skipped. {skipped[step]}"
    # What is there is shown, whatever else was skipped.
    data = payload(graph, run={"skipped": skipped})
    assert not any("missing" in data[section] for section in SECTIONS)


def test_advice_for_the_command_line(bare):
    data = payload(bare, interface="cli")
    for section in SECTIONS:
        assert "graph = " not in data[section]["missing"], section
    assert data["items"]["missing"] == "What the items are is not known yet; use --model ibcc."
    assert data["doctor"] == bare.diagnose().wording("cli").to_dict(most_ids=20)
    assert any("--gold FILE" in finding["advice"] for finding in data["doctor"]["findings"])


def test_no_responses_at_all(tmp_path, bare):
    report.write(bare.first(0), tmp_path / "page.html")
    assert page_data(tmp_path / "page.html")["items"]["responses"] == [0, 0, 0]


# Ids that would run


def test_hostile_ids_are_data(tmp_path):
    graph = hostile_graph()
    report.write(graph, tmp_path / "page.html", title=HOSTILE[0])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = page_data(tmp_path / "page.html")
    assert set(HOSTILE) <= set(data["volunteers"]["id"])
    assert set(HOSTILE) & set(data["items"]["id"])
    assert not any(bad in text for bad in HOSTILE)
    assert text.count("<script") == 2
    assert "<title>&lt;script&gt;" in text


@given(st.text(max_size=30))
def test_any_text_survives(text):
    data = {"text": text, "braces": "{{ script }}"}
    written = re.search(r'<script id="data" type="application/json">(.*?)</script>', page(text, data), flags=re.DOTALL)
    assert json.loads(written[1]) == data
    assert "<" not in written[1]


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


# Files


def test_same_graph_same_page(tmp_path, graph):
    report.write(graph, tmp_path / "one.html", title=TITLE)
    report.write(graph, tmp_path / "two.html", title=TITLE)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_pages_are_written_completely_or_not_at_all(tmp_path, bare, monkeypatch):
    path = tmp_path / "page.html"
    report.write(bare, path, title="old")
    before = path.read_bytes()

    def write_text(self, text, **options):
        self.write_bytes(text.encode()[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(StoreError, match=r"No space left on device.*What was there is unchanged"):
        report.write(bare, path, title="new")
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"crowd": "responses.csv"}, ParameterError, "written of a CrowdGraph or an Analysis; got a str"),
        ({"path": 5}, ParameterError, "path=5 must name a file"),
        ({"path": "."}, StoreError, "is a directory"),
        ({"path": "missing/page.html"}, StoreError, "No such file or directory"),
        ({"title": 5}, ParameterError, "title=5 must be text"),
        ({"run": [1]}, ParameterError, r"run=\[1\] must be a mapping"),
        (
            {"run": {"skipped": "model"}},
            ParameterError,
            r"run\['skipped'\]='model' must be a mapping from steps to reasons",
        ),
        ({"findings": []}, ParameterError, "findings= takes what graph.diagnose"),
        ({"interface": "short"}, ParameterError, "interface='short' is not a choice"),
        ({"progress": "yes"}, ParameterError, "progress='yes' must be True or False"),
    ],
)
def test_bad_input(options, error, words, tmp_path, bare, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        report.write(**{"crowd": bare, "path": "page.html", **options})
    assert list(tmp_path.iterdir()) == []


def test_a_plan_must_be_of_the_graph(tmp_path):
    graph = cg.simulate.crowd(n_volunteers=30, n_items=80, n_responses=300, gold=0.2, seed=0).graph
    plan = cg.allocation.next_steps(graph.annotate(cg.Calibrated().fit(graph)), seed=0)
    with pytest.raises(cg.errors.UnknownIdError, match="volunteer-"):
        cg.report.write(graph.subgraph(volunteers=graph.volunteers.ids[:1].tolist()), tmp_path / "page.html", plan=plan)
    assert not list(tmp_path.iterdir())
