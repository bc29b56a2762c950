"""Specialists: what volunteers know of the items that their community answers most."""

import numpy as np
from builders import communities_of
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.allocation import specialisation, value


def test_specialists_tell_more_of_what_they_know():
    rng = np.random.default_rng(0)
    # Two teams, each right in nine of ten cases at home, and in six of ten abroad, where they answer less.
    rows = []
    for item in range(200):
        truth = item % 2
        for team, n in ((item // 100, 6), (1 - item // 100, 2)):
            for who in rng.choice(8, n, replace=False):
                right = rng.random() < (0.9 if team == item // 100 else 0.6)
                rows.append((f"v{team}-{who}", f"i{item:03d}", truth if right else 1 - truth))
    volunteer, item, label = zip(*rows, strict=True)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": volunteer, "item": item, "label": label},
        gold={f"i{item:03d}": item % 2 for item in range(0, 200, 3)},
    )
    graph = graph.annotate(cg.IBCC().fit(graph))
    teams = communities_of([int(name[1]) for name in graph.volunteers.ids], ids=graph.volunteers.ids)
    special = specialisation(graph, teams)
    assert special.kind[graph.items.table.codes(["i000", "i199"])].tolist() == [0, 1]
    open_items = [f"i{code:03d}" for code in (1, 2, 101, 103)]
    for name in open_items:
        home, abroad = ("v0-1", "v1-1") if name < "i100" else ("v1-1", "v0-1")
        plain = value.information_gain(graph, name, [home])
        assert value.information_gain(graph, name, [home], specialisation=special) > plain
        assert value.information_gain(graph, name, [abroad], specialisation=special) < value.information_gain(
            graph, name, [abroad]
        )
    assert "2 kinds of items" in repr(special)
    # By hand: what v0-1 said of items of the first kind, on top of 20 answers as they give on the whole.
    fit = graph.fit()
    code = graph.volunteers.table.code("v0-1")
    counts = 20 * fit.confusion.latest().mean[code]
    for who, what, label in zip(graph.responses.volunteer, graph.responses.item, graph.responses.label, strict=True):
        if who == code and special.kind[what] == 0:
            counts[:, label] += fit.item_probs[what]
    assert_allclose(special.confusion[0, code], counts / counts.sum(axis=1, keepdims=True))
    assert_allclose(special.confusion[2, code], fit.confusion.latest().mean[code])


def test_skipped_items_are_of_no_kind():
    rows = {
        "volunteer": ["a", "b", "c", "d", "b"],
        "item": ["x", "x", "x", "x", "y"],
        "label": ["n", None, None, None, "y"],
    }
    graph = cg.CrowdGraph.from_responses(rows, missing="keep", gold={"y": "y"}, classes=["n", "y"])
    graph = graph.annotate(cg.IBCC().fit(graph))
    groups = communities_of([0, 1, 1, 1], ids=["a", "b", "c", "d"])
    assert specialisation(graph, groups).kind.tolist() == [0, 1]
    nobody = communities_of(np.zeros((1, 0)), ids=["a"])
    assert specialisation(graph, nobody).kind.tolist() == [0, 0]
