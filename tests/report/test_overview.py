"""The overview of the page: it says no more than is known, and begins with what matters most."""

import math
from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, crowd, fitted
from report.pages import VOTES

import crowdgraph as cg
from crowdgraph.diagnosis.findings import Finding, Findings
from crowdgraph.errors import AlignmentError, ParameterError
from crowdgraph.evaluation.model_checks import Calibration, probs_without_own_gold
from crowdgraph.report.write import payload


def sentences(graph, section=None, **options):
    """Return what the overview says that points to a section."""
    shown = payload(graph, **options)["overview"]["sentences"]
    return [sentence["words"] for sentence in shown if sentence["section"] == section]


def card(graph, name, **options):
    """Return the value and the note of a card."""
    shown = next(card for card in payload(graph, **options)["overview"]["cards"] if card["name"] == name)
    return shown["value"], shown["note"]


def finding(name, severity="info", **numbers):
    return Finding(topic="switching", name=name, severity=severity, what=f"Of {name}.", numbers=numbers)


def calibration(n_sure, sure_accuracy):
    """Return a calibration by 100 gold items, half of which a model is right about."""
    half = np.array([0.5])
    return Calibration(
        gold="unused",
        stated=half,
        observed=half,
        n_items=np.array([100]),
        accuracy=0.5,
        n_sure=n_sure,
        sure_accuracy=sure_accuracy,
        error=0.0,
        error_interval=(0.0, 0.1),
        log_loss=0.7,
        log_loss_interval=(0.6, 0.8),
        bias=0.0,
        p_value=0.5,
    )


# The size of the crowd


def test_cards_have_the_sizes(graph, data):
    cards = {card["name"]: card["value"] for card in data["overview"]["cards"]}
    assert cards["volunteers"] == "60"
    assert cards["communities"] == str(len(graph.communities()))
    assert cards["gold"] == str(len(graph.gold))


@pytest.mark.parametrize(("counts", "words"), [([1], "with 1 answer"), ([2, 3], "half gave 2 answers or more")])
def test_half_of_an_answer_is_never_counted(counts, words):
    volunteers, items = zip(*[(k, i) for k, n in enumerate(counts) for i in range(n)], strict=True)
    labels = ["yes", "no", "yes", "no", "no"][: len(items)]
    graph = cg.CrowdGraph.from_responses({"volunteer": volunteers, "item": items, "label": labels})
    assert card(graph, "volunteers")[1] == words


# Settled items


@pytest.mark.parametrize(("n_sure", "shown"), [(0, "0%"), (23, "28%"), (79, "98%"), (80, "100%")])
def test_only_all_items_are_a_hundred_percent(n_sure, shown, agreeing):
    best = np.where(np.arange(80) < n_sure, 0.95, 0.6)
    sure = replace(agreeing.fit(), item_probs=np.stack([best, 1 - best], axis=1))
    assert card(agreeing.annotate(sure, name="by hand"), "settled items")[0] == shown
    # Items with gold do not count.
    known = agreeing.with_gold({agreeing.items.ids[79]: agreeing.classes[0]}, classes=agreeing.classes)
    value, note = card(known.annotate(sure, name="by hand"), "settled items")
    assert value == f"{100 * min(n_sure, 79) // 79}%"
    assert note.startswith("of items without gold have a class that is at least 90% probable; ")


def test_settled_items_need_agreement(graph):
    graph = graph.with_gold(None)
    graph = graph.annotate(cg.IBCC(confusion_prior=(4, 1), votes=VOTES).fit(graph))
    assert "no agreement" in [finding.name for finding in graph.diagnose()]
    assert card(graph, "settled items") == ("\u2013", "too little agreement to tell")
    assert any("means little: too little agreement" in words for words in sentences(graph))


def test_settled_items_are_said_with_what_gold_says_of_them(agreeing):
    assert card(agreeing, "settled items")[1].endswith("; nobody checked how many of them are right")
    checked = card(agreeing, "settled items", calibration=calibration(40, 0.95))[1]
    assert checked.endswith("that were that sure, 95% were right")


def test_calibrated_probabilities_stand_beside_those_that_nobody_checked(agreeing):
    fit = agreeing.fit()
    data = payload(agreeing, calibrated_fit=fit.calibrated())
    shown = {one["name"]: one["value"] for one in data["overview"]["cards"]}
    share = (fit.calibrated().item_probs.max(axis=1) >= 0.9).mean()
    assert shown["settled items"] == f"{int(100 * share)}%"
    assert shown["settled by ibcc alone"] != shown["settled items"]
    assert any("Decide by the calibrated" in one["words"] for one in data["overview"]["sentences"])
    rows = [agreeing.items.ids.tolist().index(name) for name in data["items"]["id"]]
    np.testing.assert_allclose(data["items"]["calibrated"], fit.calibrated().item_probs[rows], atol=5e-5)
    alone = payload(agreeing)
    assert "calibrated" not in alone["items"]
    assert alone["items"]["warning"].endswith("write the page with calibrated_fit=graph.fit().calibrated().")
    assert alone["items"]["warning"] in [one["words"] for one in alone["overview"]["sentences"]]


@pytest.mark.parametrize(("n_sure", "words"), [(1, "of 1 gold item that was that sure"), (0, "no gold item was that")])
def test_what_gold_says_of_settled_items_is_counted(agreeing, n_sure, words):
    hidden = calibration(n_sure, 1.0 if n_sure else math.nan)._replace(gold="hidden")
    assert words in card(agreeing, "settled items", calibration=hidden)[1]
    assert "gold was hidden" in card(agreeing, "settled items", calibration=hidden)[1]


CERTAIN = "of items have a class that is at least 90% probable"
TOO_LITTLE = "too little agreement to tell"


@pytest.mark.parametrize(
    ("findings", "note"),
    [
        ([], CERTAIN),
        ([finding("agreement", kappa=0.4)], CERTAIN),
        ([finding("agreement", kappa=0.09)], TOO_LITTLE),
        ([finding("no agreement", "warning", kappa=0.2)], TOO_LITTLE),
    ],
)
def test_with_little_agreement_nothing_is_settled(findings, note, agreeing):
    assert card(agreeing, "settled items", findings=Findings(findings))[1].split(";")[0] == note


@pytest.mark.parametrize(
    ("n_sure", "share", "note"),
    [
        (30, 0.9, CERTAIN),
        (30, 0.89, "only 89% of the gold items that it is sure of are right"),
        (29, 1.0, TOO_LITTLE),
        (0, np.nan, TOO_LITTLE),
    ],
)
def test_enough_gold_decides_before_agreement(n_sure, share, note, agreeing):
    little = Findings([finding("no agreement", "warning", kappa=0.05)])
    assert (
        card(agreeing, "settled items", findings=little, calibration=calibration(n_sure, share))[1].split(";")[0]
        == note
    )


def test_of_lone_volunteers_nothing_is_known():
    columns = {"volunteer": ["anna"] * 6, "item": list("abcdef"), "label": ["yes", "no"] * 3}
    graph = cg.CrowdGraph.from_responses(columns)
    graph = graph.annotate(cg.IBCC().fit(graph))
    assert card(graph, "settled items")[1].startswith("most items have one answer")
    words = " ".join(sentences(graph))
    unknown = "How good the volunteers are is hardly known, and what is shown of it is mostly assumed: most items"
    assert unknown in words
    assert "are expected to be right" not in words


# Gold


def test_gold_follows_the_items(agreeing):
    graph = fitted(n_volunteers=20, n_items=80, n_responses=800, gold=0.5)
    begin, first = payload(graph)["overview"]["sentences"][:2]
    assert begin["words"].startswith("The items by their most probable class (ibcc): ")
    known = graph.gold.known & (graph.items.n_responses > 0)
    fit = graph.fit()
    probs = probs_without_own_gold(graph, fit, fit.confusion)[known]
    right, sure = probs.argmax(axis=1) == graph.gold.codes[known], probs.max(axis=1) >= 0.9
    assert first["section"] == "checks"
    assert f"right for {right.mean():.1%} of {known.sum()} items" in first["words"]
    assert f"Of {sure.sum()} gold items that" in first["words"]
    assert f"sure of, {right[sure].sum()} are right: {right[sure].mean():.0%}" in first["words"]
    assert "somewhat kind" in first["words"]
    (words,) = sentences(agreeing, "checks")
    assert words.startswith("The stated probabilities were not checked: no gold.")


def test_a_model_that_is_sure_of_everything_is_counted_once(agreeing):
    (words,) = sentences(agreeing, "checks", calibration=calibration(100, 0.5))
    assert "of 100 items. Of 100 gold items that the model is at least 90% sure of, 50 are right: 50%" in words


def test_a_model_that_is_sure_of_nothing_says_so(agreeing):
    (words,) = sentences(agreeing, "checks", calibration=calibration(0, np.nan))
    assert "of 100 items. The model is at least 90% sure of no gold item." in words


def test_the_overview_repeats_the_verdict_of_the_predictive_checks(agreeing):
    checks = cg.evaluation.predictive_checks(agreeing, n_replicates=20)
    assert sentences(agreeing, "checks", predictive=checks)[-1] == checks.verdict


def test_results_come_before_the_checks_of_the_model(stepping):
    fit = stepping.fit()
    checks = cg.evaluation.predictive_checks(stepping, n_replicates=20)
    shown = payload(stepping, predictive=checks, changes=fit.changes())["overview"]["sentences"]
    words = [one["words"] for one in shown]
    starts = ["The items by", "The stated probabilities", "The volunteers are expected", "There is evidence that"]
    starts += [checks.verdict, "The data doctor"]
    places = [next(n for n, one in enumerate(words) if one.startswith(start)) for start in starts]
    assert places == sorted(places)


# Findings


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        (
            [finding("a", "warning"), finding("b", "note"), finding("c")],
            ["The data doctor warns (a): Of a.", "The data doctor notes (b): Of b."],
        ),
        (
            [finding(name, "note") for name in "abcd"],
            [
                *(f"The data doctor notes ({name}): Of {name}." for name in "abc"),
                "The data doctor has 1 finding more to keep in mind.",
            ],
        ),
        ([finding("c")], ["The data doctor has nothing to warn of."]),
    ],
    ids=["two", "many", "none"],
)
def test_the_worst_findings_are_in_words(findings, words, agreeing):
    assert sentences(agreeing, "doctor", findings=Findings(findings)) == words


# Communities


def grouped(graph, sizes, *, mixed=0.0, evidence=None):
    """Annotate with communities of these sizes, whose members share themselves among all by some part."""
    member = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    ids = graph.volunteers.ids[: len(member)]
    return graph.annotate(communities_of((1 - mixed) * member + mixed / len(sizes), ids=ids, evidence=evidence))


def evidence(agreement, *, structured=True):
    return cg.Evidence(agreement=agreement, modularity=0.3, null_modularity=[0.1, 0.1, 0.1], structured=structured)


@pytest.mark.parametrize(
    ("modularity", "power", "words", "note"),
    [
        (0.1, np.nan, "no clear evidence for communities (p = 0.500)", "no clear evidence"),
        (
            0.12,
            1.0,
            "weak evidence for communities, not enough to call (p = 0.037)",
            "weak evidence, not enough to call",
        ),
        (
            0.1,
            1.0,
            "evidence against communities (p = 0.500): groups as different as these volunteers would have been seen",
            "evidence against communities",
        ),
    ],
)
def test_one_community_is_shown_with_its_verdict(modularity, power, words, note, agreeing):
    doubt = replace(evidence(0.4, structured=False), modularity=modularity, power=power)
    graph = grouped(agreeing, [20], evidence=doubt)
    assert f"There is {words}. The volunteers are shown as one group." in sentences(graph)
    assert card(graph, "communities") == ("\u2013", note)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evidence": evidence(0.9)}, "There is evidence for communities (p < 0.001)."),
        ({"evidence": evidence(0.9, structured=False)}, "may be chance."),
        ({"evidence": evidence(0.79)}, "shades rather than groups: several starts agree by 0.79 only (1 is the same)."),
        ({"mixed": 0.8}, "shades rather than groups: most members belong to several."),
        ({"mixed": 0.2, "evidence": evidence(float("nan"))}, "evidence for communities (p < 0.001)."),
    ],
)
def test_vague_communities_are_shades(options, words, agreeing):
    (sentence,) = [words for words in sentences(grouped(agreeing, [7, 3], **options)) if "communities" in words]
    assert sentence.startswith("There are 2 communities with 7, 3 volunteers.")
    assert sentence.endswith(words)


# Who changed


@pytest.fixture(scope="module")
def stepping():
    """Twelve volunteers of whom some break down suddenly, with a fit."""
    crowd = cg.simulate.crowd(
        n_volunteers=12, n_items=500, n_responses=[300] * 12, drift="step", drifting=0.5, gold=0, seed=4
    )
    return crowd.graph.annotate(cg.DynIBCC().fit(crowd.graph))


def test_who_changed_is_named_with_the_rate(stepping):
    changes = stepping.fit().changes()
    assert len(changes) > 3
    (words,) = sentences(stepping, "who-changed", changes=changes)
    assert words.startswith(f"There is evidence that {len(changes)} volunteers changed: {changes[0].volunteer}, ")
    assert all(change.volunteer in words for change in changes[:3])
    assert changes[3].volunteer not in words
    assert f"; and {len(changes) - 3} more. Of such reports at most 5% are false on average (" in words
    assert words.endswith("(12 volunteers were tested).")
    for change in changes[:3]:
        when = f"at {change.time:%Y-%m-%d}" if change.kind == "sudden" else f"from {change.low:%Y-%m-%d}"
        assert f"{change.volunteer}, {change.kind}ly {when}" in words
    assert f"{changes[0].before:.0%} right before, {changes[0].after:.0%} after" in words


def test_everybody_who_changed_is_listed(stepping):
    changes = stepping.fit().changes()
    listed = payload(stepping, changes=changes)["volunteers"]["changed"]
    assert listed["id"] == [change.volunteer for change in changes]
    assert listed["about"] == [change.true_class or "all classes" for change in changes]
    np.testing.assert_allclose(listed["before"], [change.before for change in changes], atol=5e-5)
    np.testing.assert_allclose(listed["after"], [change.after for change in changes], atol=5e-5)
    assert all(when.startswith(("suddenly at 2026-", "gradually from 2026-")) for when in listed["when"])
    assert "changed" not in payload(stepping)["volunteers"]


def test_no_evidence_is_not_no_change(stepping):
    none = replace(stepping.fit().changes(), changes=(), moments=np.zeros((0, 3), dtype="datetime64[us]"))
    (words,) = sentences(stepping, "volunteers", changes=none)
    assert words.startswith("There is no evidence that anybody changed, though small changes may be missed")
    (words,) = sentences(stepping, "volunteers", changes=stepping.fit().changes(min_answers=1_000))
    assert words == "Whether volunteers changed was not tested: nobody gave 1,000 answers or more."
    assert sentences(stepping, "volunteers") == []


def test_volunteers_and_histories_show_the_same_changes(stepping):
    changes = stepping.fit().changes(min_answers=10)
    data = payload(stepping, changes=changes)
    notes = dict(zip(data["volunteers"]["id"], data["volunteers"]["change"], strict=True))
    marks = dict(zip(data["volunteers"]["id"], data["histories"]["change"], strict=True))
    for name in changes.ids:
        change = changes.of(name)
        assert (notes[name] == "no evidence for a change") == (change is None) == (marks[name] is None)
    first = changes[0].volunteer
    time, low, high = marks[first]
    assert 0 <= low <= time <= high <= 1
    assert notes[first].startswith(("suddenly at 2026-", "gradually from 2026-"))
    untested = payload(stepping, changes=stepping.fit().changes(min_answers=1_000))["volunteers"]["change"]
    assert set(untested) == {"not tested: fewer than 1000 answers"}


def test_gradual_changes_are_worded_as_such():
    crowd = cg.simulate.crowd(n_volunteers=6, n_items=2_500, n_responses=[2_000] * 6, drift="ramp", seed=0)
    graph = crowd.graph.annotate(cg.IBCC().fit(crowd.graph))
    changes = graph.fit().changes()
    assert {change.kind for change in changes} == {"gradual"}
    assert "gradually from 2026-" in sentences(graph, "who-changed", changes=changes)[0]


def test_changes_of_another_graph_are_refused(stepping, agreeing):
    with pytest.raises(AlignmentError, match="What is known of changes was made for another graph"):
        payload(agreeing, changes=stepping.fit().changes())
    with pytest.raises(ParameterError, match=r"changes= takes what fit\.changes\(\) returns; got a dict"):
        cg.report.write(agreeing, "never.html", changes={})


@pytest.mark.parametrize(
    ("gold", "rho", "words"),
    [
        (0.0, None, "typical of real crowds; gold would show"),
        (0.5, None, " gold items)"),
        (0.0, 0.3, "(as asked for)"),
    ],
)
def test_how_many_independent_answers_there_are(gold, rho, words):
    graph = crowd(n_volunteers=20, n_items=80, n_responses=800, gold=gold).graph
    graph = graph.annotate(cg.Calibrated(rho=rho).fit(graph))
    (sentence,) = [words for words in sentences(graph) if "independent ones" in words]
    assert words in sentence
    effective = graph.fit().dependence.effective_answers(10)
    counted = f"so 10 answers, as many as a typical item has, count as about {float(effective):.1f} independent ones"
    assert sentence.startswith(f"Answers about one item depend on each other, {counted}")


def test_independent_answers_count_fully():
    graph = crowd(n_volunteers=20, n_items=80, n_responses=800, gold=0.0).graph
    graph = graph.annotate(cg.Calibrated(rho=0.0).fit(graph))
    assert "Answers about an item do not depend on each other, so that each counts fully (as asked for)." in sentences(
        graph
    )


def test_the_story_begins_with_what_an_update_changed():
    graph = crowd(0.9, 0.7, gold=0.0).graph
    update = ["The update added 3 responses, 1 new volunteer and 0 new items.", "No old item has another answer."]
    assert sentences(graph, run={"update": update})[:2] == update
