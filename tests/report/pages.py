"""Small annotated crowds for the tests of the report."""

from functools import cache

import numpy as np

import crowdgraph as cg

GOOD = "A small crowd"
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ data }}</script><b>")
VOTES = {-1: "not supernova", 1: "supernova", 3: "supernova"}


@cache
def annotated():
    """Sixty volunteers of five groups with three labels, and all results that a page can tell of."""
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
    graph = graph.annotate(cg.IBCC(votes=VOTES).fit(graph)).annotate(cg.DynIBCC(votes=VOTES).fit(graph))
    graph = graph.annotate(cg.networks.pi_similarity(graph)).annotate(cg.networks.task_cooccurrence(graph))
    graph = graph.annotate(task_groups(graph), name="task communities")
    return graph.annotate(groups(graph, truth.group)).annotate(moving_groups(graph, truth.group))


@cache
def calibrated():
    """The calibration of that crowd's latest fit, measured while gold is hidden."""
    return cg.evaluation.calibration(annotated(), annotated().fit(), model=cg.DynIBCC(votes=VOTES))


def task_groups(graph):
    """Two communities of those who work on the same items: the first dozen, and the others."""
    ids = graph.network("task_cooccurrence").ids
    first = np.arange(len(ids)) < 12
    return cg.Communities(ids=ids, participation=np.eye(2)[first.astype(int)], modularity=0.2, method="by hand")


def groups(graph, group):
    """The groups of the simulator as communities; everybody belongs to the next one by a tenth."""
    shares = 0.9 * np.eye(5)[group] + 0.1 * np.eye(5)[(group + 1) % 5]
    return cg.Communities(
        ids=graph.volunteers.ids,
        participation=shares,
        modularity=0.3,
        method="by hand",
        evidence=cg.Evidence(agreement=0.9, modularity=0.45, null_modularity=[0.1, 0.12, 0.11], structured=True),
        support=graph.volunteers.n_responses,
        confusion=graph.confusion().latest(),
    )


def moving_groups(graph, group):
    """The same at three times: half of the crowd at first, then everybody, then without the last group."""
    late = np.arange(len(group)) % 2 == 1
    at_times = [np.where(late, -1, group), group, np.where(group == 4, 0, group)]
    made = {"ids": graph.volunteers.ids, "modularity": 0.2, "method": "by hand"}
    snapshots = [cg.Communities(participation=np.eye(6)[found][:, :5], **made) for found in at_times]
    times = graph.responses.time[[800, 1_600, 2_399]]
    return cg.CommunityTrack(
        ids=graph.volunteers.ids,
        times=times,
        counts=[801, 1_601, 2_400],
        snapshots=snapshots,
        clock=graph.responses.clock,
        method="by hand",
    )


def hostile():
    """A crowd whose volunteers, items and labels have names that would run if a page let them."""
    names = [*HOSTILE, "anna"]
    rows = [(who, what) for who in names for what in names]
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": [who for who, _ in rows],
            "item": [what for _, what in rows],
            "label": [HOSTILE[place % 2] for place in range(len(rows))],
        },
        gold={names[0]: HOSTILE[0]},
    )
    graph = graph.annotate(cg.IBCC().fit(graph))
    network = cg.networks.task_cooccurrence(graph, min_responses=1)
    return graph.annotate(network).annotate(cg.Leiden().detect(network, seed=0), name=HOSTILE[1])
