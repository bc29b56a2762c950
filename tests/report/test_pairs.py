"""The pairs of a small crowd: the numbers are those of the networks and of the answers."""

import numpy as np
import pytest
from builders import fitted, network_of

import crowdgraph as cg
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


def test_those_who_err_together_have_the_correlation(panel):
    network = panel.network("error_correlation")
    assert f"errors correlate by {network.pairs()[2].max():.2f} (" in lists(panel)["Who errs together"][0]


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
