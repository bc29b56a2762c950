"""Simulations of the Galaxy Zoo Supernovae crowd, as far as the paper describes it.

The groups are those of the paper's figure of prototypes. Their activity was calibrated so that the crowd is as hard as
the real one: under five-fold cross validation the mean score, weighted sum, majority and weighted majority come near
the paper's AUCs, because pessimists, optimists and non-committal volunteers, whose answers hardly depend on the truth,
give six of seven responses (``make check-science`` measures it).
"""

from __future__ import annotations

from dataclasses import replace

from crowdgraph.simulate.crowd import SimulatedCrowd, crowd
from crowdgraph.simulate.groups import Drift, Group

__all__ = ["galaxy_zoo_supernovae", "galaxy_zoo_supernovae_full"]

CLASSES = ("not supernova", "supernova")
LABELS = (-1, 1, 3)

# Rows: not supernova, supernova; columns: the scores -1, 1, 3.
GROUPS = (
    Group(name="reasonable", share=225, activity=1, tail=0.75, confusion=[[0.88, 0.08, 0.04], [0.10, 0.46, 0.44]]),
    Group(name="extremists", share=225, activity=1, tail=0.75, confusion=[[0.92, 0.04, 0.04], [0.06, 0.05, 0.89]]),
    Group(name="pessimists", share=425, activity=12, tail=0.95, confusion=[[0.92, 0.06, 0.02], [0.92, 0.06, 0.02]]),
    Group(name="optimists", share=430, activity=7, tail=0.95, confusion=[[0.05, 0.35, 0.60], [0.05, 0.50, 0.45]]),
    Group(name="non-committal", share=400, activity=6, tail=0.95, confusion=[[0.20, 0.60, 0.20], [0.16, 0.78, 0.06]]),
)

# The shares of the project's duration that put the first response of a group at about the 3,000th and the 12,000th: at
# 2,935 and 12,019 on average of 16 seeds, from 1,868 to 4,485 and from 10,079 to 13,575.
ARRIVES = {"optimists": 0.25, "reasonable": 0.54}


def galaxy_zoo_supernovae(*, drift: Drift = "none", arriving: bool = False, seed: int | None = 0) -> SimulatedCrowd:
    """Simulate the paper's crowd: 963 items, 1,705 volunteers, 26,558 responses with scores -1, 1 and 3, all gold.

    With `drift`, volunteers change their behaviour into that of another group; see `crowd`.

    With `arriving`, optimists appear only after about 3,000 responses and reasonable volunteers only after about
    12,000. The paper found three communities at 3,000 responses, optimists first at 12,000 and reasonable volunteers
    last, at 26,558; that they arrived in between is our guess. Volunteers who drift may behave like a group before its
    own members arrive.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph, truth = cg.simulate.galaxy_zoo_supernovae()
    >>> len(graph.items), len(graph.volunteers), len(graph.responses)
    (963, 1705, 26558)
    """
    return crowd(
        n_volunteers=1_705,
        n_items=963,
        n_responses=26_558,
        classes=CLASSES,
        labels=LABELS,
        class_probs=[0.7, 0.3],
        groups=[replace(group, arrives=ARRIVES.get(group.name, 0.0)) for group in GROUPS] if arriving else GROUPS,
        drift=drift,
        start="2010-04-01",
        days=240,
        seed=seed,
    )


def galaxy_zoo_supernovae_full(*, drift: Drift = "none", seed: int | None = 0) -> SimulatedCrowd:
    """Simulate the full crowd: 493,048 responses, 2,131 volunteers with at least 10 of them, 32 task communities.

    The 44,263 items and the rare supernovae (322 of them on average) follow the paper's count of known examples. The
    number of casual volunteers, 4,000 with fewer than 10 responses each, is our guess. `drift` is as in `crowd`.
    """
    return crowd(
        n_volunteers=2_131 + 4_000,
        n_items=44_263,
        n_responses=493_048,
        n_casual=4_000,
        classes=CLASSES,
        labels=LABELS,
        class_probs=[43_941 / 44_263, 322 / 44_263],
        groups=GROUPS,
        n_communities=32,
        mixing=0.12,
        drift=drift,
        start="2010-04-01",
        days=480,
        seed=seed,
    )
