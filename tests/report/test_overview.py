"""The overview says no more than is known, and what was found comes first."""

from dataclasses import replace

import numpy as np
import pytest
from report.pages import VOTES, annotated

import crowdgraph as cg
from crowdgraph.diagnosis.findings import Finding
from crowdgraph.evaluation.model_checks import calibration, probs_without_own_gold
from crowdgraph.report._results import GraphResults
from crowdgraph.report.overview import _about_communities, _about_findings, _about_gold, _doubt, _settled
from crowdgraph.report.write import payload


@pytest.fixture(scope="module")
def graph():
    return annotated()


@pytest.fixture(scope="module")
def told(graph):
    return payload(graph)


def crowd(**options):
    """A crowd of good volunteers who agree, with a fit."""
    settings = {"n_volunteers": 20, "n_items": 80, "n_responses": 800, "gold": 0.0, "seed": 0, **options}
    graph = cg.simulate.crowd(**settings).graph
    return graph.annotate(cg.IBCC().fit(graph))


def sentences(graph, section=None):
    """What the overview says that points to a section."""
    return [one["words"] for one in payload(graph)["overview"]["sentences"] if one["section"] == section]


def card(graph, name):
    return next(one for one in payload(graph)["overview"]["cards"] if one["name"] == name)


def finding(name, severity="info", **numbers):
    return Finding(topic="switching", name=name, severity=severity, what=f"Of {name}.", numbers=numbers)


@pytest.mark.parametrize(("n_sure", "shown"), [(0, "0%"), (23, "28%"), (79, "98%"), (80, "100%")])
def test_only_all_items_are_a_hundred_percent(n_sure, shown):
    graph = crowd()
    best = np.where(np.arange(80) < n_sure, 0.95, 0.6)
    sure = replace(graph.fit(), item_probs=np.stack([best, 1 - best], axis=1))
    assert card(graph.annotate(sure, name="made up"), "settled items")["value"] == shown
    assert _settled(sure, np.arange(80) >= 79, None)[0] == f"{100 * min(n_sure, 79) // 79}%"


def test_settled_items_need_agreement(graph):
    graph = graph.with_gold(None)
    graph = graph.annotate(cg.IBCC(votes=VOTES).fit(graph))
    told = card(graph, "settled items")
    assert "no agreement" in [found.name for found in graph.diagnose()]
    assert (told["value"], told["note"]) == ("\u2013", "too little agreement to tell")
    assert any("means little: too little agreement" in words for words in sentences(graph))
    alone = crowd(n_volunteers=2, n_items=60, n_responses=60)
    alone = alone.subgraph(volunteers=alone.volunteers.ids[:1].tolist())
    assert card(alone.annotate(cg.IBCC().fit(alone)), "settled items")["note"].startswith("most items have one answer")


@pytest.mark.parametrize(
    ("findings", "doubted"),
    [
        ([], False),
        ([finding("agreement", kappa=0.4)], False),
        ([finding("agreement", kappa=0.09)], True),
        ([finding("no agreement", "warning", kappa=0.2)], True),
    ],
)
def test_little_agreement_is_doubted(findings, doubted):
    assert (_doubt(crowd(), findings, None) is not None) == doubted


@pytest.mark.parametrize(
    ("n_sure", "share", "doubt"),
    [
        (30, 0.9, None),
        (30, 0.89, "only 89% of the gold items that it is sure of are right"),
        (29, 1.0, "too little agreement to tell"),
        (0, None, "too little agreement to tell"),
    ],
)
def test_enough_gold_decides_before_agreement(n_sure, share, doubt):
    little = [finding("no agreement", "warning", kappa=0.05)]
    assert _doubt(crowd(), little, {"sure": n_sure, "sure_accuracy": share}) == doubt


def test_of_lone_volunteers_nothing_is_known():
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": ["anna"] * 6, "item": list("abcdef"), "label": ["yes", "no"] * 3}
    )
    words = " ".join(sentences(graph.annotate(cg.IBCC().fit(graph))))
    assert (
        "How good the volunteers are is hardly known, and what is shown of it is mostly the prior: most items" in words
    )
    assert "are expected to be right" not in words


def test_the_overview_begins_with_gold():
    graph = crowd(gold=0.5)
    first = payload(graph)["overview"]["sentences"][0]
    known = graph.gold.known & (graph.items.n_responses > 0)
    fit = graph.fit()
    probs, truth = (
        probs_without_own_gold(graph, fit.confusion, class_probs=fit.class_probs)[known],
        graph.gold.codes[known],
    )
    right, sure = probs.argmax(axis=1) == truth, probs.max(axis=1) >= 0.9
    assert first["section"] == "checks"
    assert f"right for {right.mean():.1%} of {known.sum()} items" in first["words"]
    assert f"of the {sure.sum()} that" in first["words"]
    assert f"sure of, {right[sure].mean():.1%} are right." in first["words"]
    assert "somewhat kind" in first["words"]
    assert sentences(crowd(), "checks") == []


@pytest.mark.parametrize("model", [cg.DynIBCC(), cg.Cautious()], ids=lambda model: model.name)
def test_models_that_are_no_products_are_judged_while_gold_is_hidden(model):
    # Volunteers who guess: whoever is right more often than half of the time has seen the gold.
    rng = np.random.default_rng(0)
    who, what = np.divmod(np.arange(4_000), 200)
    said = np.array(["no", "yes"])[rng.integers(2, size=4_000)]
    truth = {int(item): str(name) for item, name in enumerate(np.array(["no", "yes"])[rng.integers(2, size=200)])}
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": who, "item": what, "label": said, "time": rng.permutation(4_000)}, gold=truth
    )
    graph = graph.annotate(model.fit(graph))
    measured = calibration(graph, graph.fit(), model=model)
    found = payload(graph, calibration=measured)["checks"]["calibration"]
    assert (found["without_gold"], found["hidden"]) == (True, True)
    assert sum(found["items"]) == 200
    assert 0.4 < found["accuracy"] < 0.6
    first = payload(graph, calibration=measured)["overview"]["sentences"][0]["words"]
    assert f"right for {found['accuracy']:.1%} of 200 items, each judged while its gold was hidden" in first
    assert "kind" not in first


@pytest.mark.parametrize("why", ["not fitted again", "large", "little gold"])
def test_what_was_not_measured_is_not_shown(why, graph, monkeypatch):
    model = None if why == "not fitted again" else cg.DynIBCC(votes=VOTES)
    if why == "large":
        monkeypatch.setattr("crowdgraph.evaluation.model_checks.MAX_RESPONSES_TO_REFIT", 2_399)
    if why == "little gold":
        graph = graph.with_gold({item: graph.gold[item] for item in list(graph.gold)[:2]}, classes=graph.classes)
        graph = graph.annotate(model.fit(graph))
    data = payload(graph, calibration=calibration(graph, graph.fit(), model=model))
    assert list(data["checks"]["calibration"]) == ["missing"]
    words = {
        "not fitted again": "must be fitted again while gold is hidden",
        "large": "over 2,399 responses",
        "little gold": "Gold covers the class",
    }
    assert words[why] in data["checks"]["calibration"]["missing"]
    # It needs gold of all classes as well.
    assert ("crowdgraph evaluate" in data["checks"]["calibration"]["missing"]) == (why != "little gold")
    assert not any("Against gold" in sentence["words"] for sentence in data["overview"]["sentences"])


def test_a_page_fits_nothing(graph, monkeypatch):
    def fit(*args, **options):
        raise AssertionError("a page fits nothing")

    monkeypatch.setattr(cg.models.Model, "fit", fit)
    data = payload(graph)
    assert "crowdgraph.analysis.analyse(graph) does it" in data["checks"]["calibration"]["missing"]
    assert data == payload(graph, findings=graph.diagnose(), calibration=calibration(graph, graph.fit()))


def test_a_model_that_is_sure_of_nothing_says_so():
    found = {"items": [3], "accuracy": 0.5, "sure": 0, "sure_accuracy": None, "without_gold": False, "hidden": False}
    assert _about_gold(found).endswith("of 3 items; of none is the model at least 90% sure.")


def test_the_worst_findings_are_told_in_words():
    told = list(_about_findings([finding("a", "warning"), finding("b", "note"), finding("c")]))
    assert told == ["The data doctor warns (a): Of a.", "The data doctor notes (b): Of b."]
    many = list(_about_findings([finding(name, "note") for name in "abcd"]))
    assert len(many) == 4
    assert many[3] == "The data doctor has 1 finding more to keep in mind."
    assert list(_about_findings([finding("c")])) == ["The data doctor has nothing to warn of."]


@pytest.mark.parametrize(("counts", "words"), [([1], "1 answer or more"), ([2, 3], "2 answers or more")])
def test_half_gave_whole_answers(counts, words):
    rows = [(f"volunteer {k}", f"item {i}") for k, n in enumerate(counts) for i in range(n)]
    who, what = zip(*rows, strict=True)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": who, "item": what, "label": ["yes", "no", "yes", "no", "no"][: len(rows)]}
    )
    assert card(graph, "volunteers")["note"] == f"half gave {words}"


# Communities in words


def made(sizes, *, mixed=0.0, evidence=None, ids=None):
    """Communities of these sizes, whose members share themselves among all by some part."""
    member = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    shares = (1 - mixed) * member + mixed / len(sizes)
    ids = [f"volunteer-{k}" for k in range(len(shares))] if ids is None else ids
    return cg.Communities(ids=ids, participation=shares, modularity=0.1, method="by hand", evidence=evidence)


def seen(agreement, *, structured=True):
    return cg.Evidence(agreement=agreement, modularity=0.3, null_modularity=[0.1, 0.1, 0.1], structured=structured)


def test_one_community_is_one_crowd():
    graph = crowd()
    graph = graph.annotate(made([20], ids=graph.volunteers.ids, evidence=seen(0.4, structured=False)), name="groups")
    assert "No groups were found: the volunteers are one crowd." in sentences(graph)
    assert card(graph, "communities") == {"name": "communities", "value": "none", "note": "one crowd"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evidence": seen(0.9)}, "chance gives."),
        ({"evidence": seen(0.9, structured=False)}, "may be chance."),
        ({"evidence": seen(0.79)}, "shades rather than groups: several starts agree by 0.79 only (1 is the same)."),
        ({"mixed": 0.8}, "shades rather than groups: most members belong to several."),
        ({"mixed": 0.2, "evidence": seen(float("nan"))}, "chance gives."),
    ],
)
def test_vague_communities_are_shades(options, words):
    told = _about_communities(made([7, 3], **options))
    assert told.startswith("There are 2 communities with 7, 3 volunteers.")
    assert told.endswith(words)


def test_task_communities_colour_their_network(graph, told):
    alike, tasks = told["networks"]["pictures"]
    assert (alike["noun"], tasks["noun"]) == ("community", "task community")
    assert alike["community"] == graph.communities().assignment[graph.volunteers.table.codes(alike["id"])].tolist()
    assert tasks["community"] == [1] * 12 + [0] * (len(tasks["id"]) - 12)
    assert told["communities"]["others"] == []
    words = f"form 2 task communities with {len(tasks['id']) - 12}, 12 volunteers."
    assert any(sentence.endswith(words) for sentence in sentences(graph))


def test_task_communities_are_known_by_name_or_volunteers(graph):
    tasks, alike = graph.annotations["task communities"], graph.communities()
    bare = graph.first(len(graph.responses)).annotate(graph.network("task_cooccurrence"))
    for name in ("Groups by task", "groups"):
        parts = GraphResults(bare.annotate(alike, name="alike").annotate(tasks, name=name))
        assert parts.task_communities is tasks
        assert parts.communities is alike
    only = GraphResults(bare.annotate(tasks, name="groups"))
    assert (only.communities, only.task_communities) == (None, tasks)
    assert GraphResults(bare.annotate(alike, name="alike")).task_communities is None


def test_task_communities_are_never_told_as_those_of_behaviour(graph):
    bare = graph.first(len(graph.responses)).annotate(graph.network("task_cooccurrence"))
    told = payload(bare.annotate(graph.annotations["task communities"], name="task communities"))
    assert told["networks"]["pictures"][0]["noun"] == "task community"
    assert "missing" in told["communities"]
    assert "community" not in told["volunteers"]
    assert "communities" not in [one["name"] for one in told["overview"]["cards"]]
    words = [one["words"] for one in told["overview"]["sentences"]]
    assert sum("task communities with" in sentence for sentence in words) == 1
    assert not any(sentence.startswith("There are") for sentence in words)


def test_more_task_communities_than_others_have_colours():
    graph = crowd()
    graph = graph.annotate(made([4] * 5, ids=graph.volunteers.ids), name="task communities")
    graph = graph.annotate(made([10, 10], ids=graph.volunteers.ids), name="groups")
    assert len(payload(graph)["colours"]["communities"]) == 5


# What is uncertain comes first


def test_uncertain_items_come_first(told):
    items = told["items"]
    has_gold = [gold is not None for gold in items["gold"]]
    assert has_gold == sorted(has_gold)
    for kind in (False, True):
        bits = [bit for bit, known in zip(items["entropy"], has_gold, strict=True) if known == kind]
        assert bits == sorted(bits, reverse=True)
        assert len(bits) > 40


# Names of files without their directories


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("crowdgraph analyse /home/anna/a.csv --gold /data/g.csv", "crowdgraph analyse a.csv --gold g.csv"),
        ("crowdgraph analyse '/home/anna b/a c.csv' --gold=/x/g.csv", "crowdgraph analyse 'a c.csv' --gold=g.csv"),
        ('graph = cg.read_csv("/home/anna b/a.csv")', 'graph = cg.read_csv("a.csv")'),
        (r"crowdgraph analyse C:\Users\anna\a.csv", "crowdgraph analyse a.csv"),
        ("/home/anna b/a.csv", "a.csv"),
        ("crowdgraph analyse data/a.csv --out ./results/b", "crowdgraph analyse data/a.csv --out ./results/b"),
        ("see https://example.org/a/b and/or 1 / 2", "see https://example.org/a/b and/or 1 / 2"),
    ],
)
def test_directories_are_nobodys_business(given, shown, columns):
    run = {"commands": given, "source": {"responses": given}}
    provenance = payload(cg.CrowdGraph.from_responses(columns), run=run)["provenance"]
    assert provenance["commands"] == [shown]
    assert provenance["run"] == [["source", [["responses", shown]]]]
