"""The pairs of a small crowd: the numbers are those of the networks and of the answers."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from builders import fitted, network_of

import crowdgraph as cg
from crowdgraph.evaluation.predictive import ErrorPair
from crowdgraph.report.write import payload


@pytest.fixture(scope="module")
def panel():
    """Six volunteers who answered most of sixty items, with three networks."""
    graph = fitted(n_volunteers=6, n_items=60, n_responses=[48] * 6, gold=0.0)
    make = cg.networks
    networks = make.pi_similarity(graph), make.error_correlation(graph), make.task_cooccurrence(graph)
    for network in networks:
        graph = graph.annotate(network)
    return graph


def lists(graph, **options):
    return {part["title"]: part["pairs"] for part in payload(graph, **options)["pairs"]["lists"]}


def test_the_most_and_the_least_alike_are_those_of_the_network(panel):
    network, shown = panel.network("pi_similarity"), lists(panel)
    one, other, weights = network.pairs()
    for title, best in (("Who behaves most alike", weights.argmax()), ("Who behaves least alike", weights.argmin())):
        a, b = network.ids[one[best]], network.ids[other[best]]
        assert shown[title][0].startswith(f"{a} and {b}: likeness {weights[best]:.2f}; ")
        label = [{r.item: r.label for r in panel.volunteers[name].responses} for name in (a, b)]
        common = label[0].keys() & label[1].keys()
        same = np.mean([label[0][item] == label[1][item] for item in common])
        assert f"the same answer to {same:.0%} of {len(common)} items in common" in shown[title][0]
        assert len(shown[title]) == 5
    assert "They differ most about " in shown["Who behaves least alike"][0]
    words = [one["words"] for one in payload(panel)["overview"]["sentences"] if one["section"] == "communities"]
    assert len(words) == 1
    assert f"least alike are {network.ids[one[weights.argmin()]]} and" in words[0]


def test_what_differs_is_what_the_network_compares(panel):
    """The fit's matrices lie around each volunteer's own accuracy, those that the network compares do not."""
    network = panel.network("pi_similarity")
    for words in lists(panel)["Who behaves least alike"]:
        a, b = words.split(":")[0].split(" and ")
        means = [network.model.confusion.of(name).mean for name in (a, b)]
        j, label = np.unravel_index(np.abs(means[0] - means[1]).argmax(), means[0].shape)
        about, said = panel.classes[j], panel.labels[label]
        shares = f"{a} says {said} to {means[0][j, label]:.0%} of such items, {b} to {means[1][j, label]:.0%}."
        assert words.endswith(f"They differ most about {about}: {shares}")
    unknown = panel.annotate(replace(network, model=None))
    assert "differ most" not in str(lists(unknown)["Who behaves least alike"])


def test_ties_have_the_same_order_everywhere(panel):
    ids = panel.volunteers.ids[:3].tolist()
    for weight, shown in ((0.9, "0.90"), (0.9991, "0.999")):
        network = network_of(weight * (1 - np.eye(3)), ids=ids, method="pi_similarity")
        graph = panel.annotate(network)
        best, worst = (lists(graph)[f"Who behaves {which} alike"][0] for which in ("most", "least"))
        (words,) = [one["words"] for one in payload(graph)["overview"]["sentences"] if one["section"] == "communities"]
        first, last = (one.split(":")[0] for one in (best, worst))
        assert words == f"Most alike in how they answer are {first}; least alike are {last}."
        assert f"likeness {shown};" in best


def test_those_who_are_always_right_do_not_err_together():
    """Two who are right about the few items that both answered have residuals that correlate by nearly 1."""
    graph = fitted(n_volunteers=20, n_items=200, n_responses=[30] * 20, gold=1.0)
    network = cg.networks.error_correlation(graph)
    assert network.pairs()[2].max() > 0.9
    graph = graph.annotate(network)
    assert "cg.evaluation.predictive_checks" in lists(graph)["Who errs together"][0]
    checks = cg.evaluation.predictive_checks(graph, n_replicates=20)
    told = ["Whether anybody errs together was not checked: no two volunteers have 20 items in common."]
    assert lists(graph, predictive=checks)["Who errs together"] == told


def test_those_who_err_together_have_their_errors_counted(panel):
    checks = cg.evaluation.predictive_checks(panel, n_replicates=20)
    assert checks.pairs == ()
    nobody = "Nobody errs together more than chance explains."
    assert lists(panel, predictive=checks)["Who errs together"] == [nobody]
    truth = panel.fit().predict()
    numbers = set()
    for a, b in combinations(panel.volunteers.ids.tolist(), 2):
        label = [{r.item: r.label for r in panel.volunteers[name].responses} for name in (a, b)]
        common = label[0].keys() & label[1].keys()
        n = sum(truth[item] not in (label[0][item], label[1][item]) for item in common)
        # There are two labels, so that two who are wrong say the same.
        told = (
            f"{a} and {b}: both err about {n} of {len(common)} items in common, with the same answer to {n} of them; "
            "that is more than chance explains."
        )
        clear = replace(checks, pairs=(ErrorPair(a, b, len(common), 0.9),))
        assert lists(panel, predictive=clear)["Who errs together"] == [told if n else nobody]
        numbers.add(n)
    assert 0 in numbers
    assert len(numbers) > 1


def test_who_works_together_is_counted(panel):
    (words,) = lists(panel)["Who works together most"]
    assert words.startswith("Nobody stands out: any two of them answered ")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], "All 3 answered the same 2 items."),
        ([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]], "a and b: 2 items in common, 50% of what each of them answered"),
    ],
)
def test_common_items_have_words(weights, words):
    columns = {"volunteer": list("aabbcc"), "item": list("xyxyxy"), "label": ["yes", "no"] * 3}
    graph = cg.CrowdGraph.from_responses(columns)
    network = network_of(np.array(weights, dtype=float), ids=list("abc"), method="task_cooccurrence")
    assert lists(graph.annotate(network))["Who works together most"][0].startswith(words)


def test_larger_crowds_have_no_pairs(graph):
    assert payload(graph)["pairs"] is None


def test_without_networks_the_page_says_how_to_compare(bare):
    pairs = payload(bare)["pairs"]
    assert pairs["reason"].startswith("3 volunteers are too few for communities, which need 30.")
    assert "cg.networks.pi_similarity(graph)" in pairs["missing"]
    assert "lists" not in pairs
