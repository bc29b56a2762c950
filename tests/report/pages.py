"""Small annotated crowds for the tests of the report, and reading what a page holds."""

import json
import re

import numpy as np
from builders import communities_of

import crowdgraph as cg

TITLE = "A small crowd"
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ data }}</script><b>")
VOTES = {-1: "not supernova", 1: "supernova", 3: "supernova"}


def page_data(path):
    """Read the data of a written page, as a browser does."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, flags=re.DOTALL)[1])


def by_id(table, column, ids):
    """Return a column of a table of the page in the order of some ids."""
    rows = {name: row for row, name in enumerate(table["id"])}
    return [table[column][rows[str(name)]] for name in ids]


def annotated_graph():
    """Simulate sixty volunteers of five groups with three labels; annotate with all results that a page can show."""
    graph, truth = cg.simulate.crowd(
        n_volunteers=60,
        n_items=100,
        n_responses=2_400,
        classes=cg.simulate.galaxy_zoo.CLASSES,
        labels=(-1, 1, 3),
        groups=cg.simulate.galaxy_zoo.GROUPS,
        gold=0.5,
        seed=1,
    )
    graph = graph.annotate(cg.IBCC(confusion_prior=(4, 1), votes=VOTES).fit(graph)).annotate(
        cg.DynIBCC(confusion_prior=(4, 1), votes=VOTES).fit(graph)
    )
    graph = graph.annotate(cg.networks.pi_similarity(graph)).annotate(cg.networks.task_cooccurrence(graph))
    graph = graph.annotate(_task_communities(graph), name="task communities")
    return graph.annotate(_communities(graph, truth.group)).annotate(_track(graph, truth.group))


def _task_communities(graph):
    """Two communities of those who work on the same items: the first dozen, and the others."""
    ids = graph.network("task_cooccurrence").ids
    return communities_of((np.arange(len(ids)) < 12).astype(int), ids=ids, modularity=0.2)


def _communities(graph, group):
    """The groups of the simulator as communities; everybody belongs to the next one by a tenth."""
    return communities_of(
        0.9 * np.eye(5)[group] + 0.1 * np.eye(5)[(group + 1) % 5],
        ids=graph.volunteers.ids,
        modularity=0.3,
        evidence=cg.Evidence(agreement=0.9, modularity=0.45, null_modularity=[0.1, 0.12, 0.11], structured=True),
        support=graph.volunteers.n_responses,
        confusion=graph.confusion().latest(),
    )


def _track(graph, group):
    """The same at three times: half of the crowd at first, then everybody, then without the last group."""
    late = np.arange(len(group)) % 2 == 1
    at_times = [np.where(late, -1, group), group, np.where(group == 4, 0, group)]
    ids = graph.volunteers.ids
    return cg.CommunityTrack(
        ids=ids,
        times=graph.responses.time[[800, 1_600, 2_399]],
        counts=[801, 1_601, 2_400],
        snapshots=[communities_of(np.eye(6)[codes][:, :5], ids=ids, modularity=0.2) for codes in at_times],
        clock=graph.responses.clock,
        method="by hand",
    )


def hostile_graph():
    """Build a crowd whose volunteers, items and labels have names that would run if a page let them."""
    names = [*HOSTILE, "anna"]
    volunteers, items = np.repeat(names, 4), np.tile(names, 4)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": volunteers, "item": items, "label": np.tile(HOSTILE[:2], 8)}, gold={names[0]: HOSTILE[0]}
    )
    graph = graph.annotate(cg.IBCC().fit(graph))
    network = cg.networks.task_cooccurrence(graph, min_responses=1)
    return graph.annotate(network).annotate(cg.Leiden().detect(network, seed=0), name=HOSTILE[1])
