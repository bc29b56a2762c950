"""How stable and how right the verdict about communities is: planted and structureless crowds at six sizes.

Run ``python -m science.verdict`` in the folder ``tests`` (about half an hour on two cores; ``--seeds 10`` is quicker).
"""

import argparse
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from science.planted_crowds import draw_crowd
from science.scoring import table

import crowdgraph as cg
from crowdgraph.simulate.galaxy_zoo import CLASSES, GROUPS, LABELS
from crowdgraph.simulate.groups import Group

# Volunteers, and answers of each.
SIZES = ((60, 40), (120, 25), (200, 18), (200, 50), (400, 20), (800, 20))
PLANTED = tuple(replace(group, share=1, activity=1, tail=20.0) for group in GROUPS)
# Crowds of one kind: alike, of broadly different volunteers, skilled ones, and with a few who do nearly everything. The
# fifth kind, `of_skill`, is a continuum from those who guess to those who are always right.
STRUCTURELESS = (
    Group(name="alike", confusion=[[0.75, 0.15, 0.1], [0.15, 0.35, 0.5]], tail=20.0, concentration=30),
    Group(name="broad", confusion=[[0.6, 0.25, 0.15], [0.3, 0.4, 0.3]], tail=20.0, concentration=4),
    Group(name="skilled", confusion=[[0.9, 0.07, 0.03], [0.05, 0.15, 0.8]], tail=20.0, concentration=15),
    Group(name="heavy", confusion=[[0.75, 0.15, 0.1], [0.15, 0.35, 0.5]], tail=1.2, concentration=10),
)
# How many seeds of the detector see the same crowd where disagreement is measured.
SEEDS_PER_CROWD = 10


@dataclass(frozen=True)
class Run:
    """What one detection says: whether there are communities, how many, how certain it is, and what it cost."""

    structured: bool
    n_communities: int
    p_value: float
    certainty: float
    n_nulls: int
    seconds: float


def network_of(planted, size, crowd_seed):
    """The pi-similarity network of a simulated crowd with gold for three items in ten."""
    kind = crowd_seed % (len(STRUCTURELESS) + 1)
    is_skill = not planted and kind == len(STRUCTURELESS)
    graph = of_skill(size, crowd_seed) if is_skill else of_groups(planted, size, crowd_seed)
    no, yes = graph.classes
    return cg.networks.pi_similarity(
        graph.annotate(cg.IBCC(votes=dict(zip(LABELS, [no, yes, yes], strict=True))).fit(graph))
    )


def of_skill(size, seed):
    """A crowd that differs only by skill, which is anything from guessing to perfection."""
    n_volunteers, n_answers = size
    rng = np.random.default_rng(seed)
    right = rng.beta(4, 2, n_volunteers)[:, None, None]
    one_coin = right * [[1, 0, 0], [0, 0.4, 0.6]] + (1 - right) / 3
    n_items = max(n_volunteers * n_answers // 25, 60)
    crowd = draw_crowd(
        rng,
        one_coin,
        [n_answers] * n_volunteers,
        n_items=n_items,
        class_probs=[0.7, 0.3],
        n_gold=round(0.3 * n_items),
        labels=LABELS,
    )
    return crowd.graph


def of_groups(planted, size, crowd_seed):
    """A crowd of five groups, or of one."""
    n_volunteers, n_answers = size
    groups = PLANTED if planted else [STRUCTURELESS[crowd_seed % (len(STRUCTURELESS) + 1)]]
    return cg.simulate.crowd(
        n_volunteers=n_volunteers,
        n_items=max(n_volunteers * n_answers // 25, 60),
        n_responses=n_volunteers * n_answers,
        classes=CLASSES,
        labels=LABELS,
        class_probs=[0.7, 0.3],
        groups=groups,
        gold=0.3,
        seed=crowd_seed,
    ).graph


def run(planted, size, crowd_seed, seeds):
    """Detect the communities of one crowd with several seeds."""
    warnings.simplefilter("ignore")
    network = network_of(planted, size, crowd_seed)
    runs = []
    for seed in seeds:
        start = time.perf_counter()
        found = cg.BayesianNMF().detect(network, seed=seed)
        evidence = found.evidence
        seconds = time.perf_counter() - start
        certainty = getattr(evidence, "certainty", float("nan"))
        n_nulls = len(evidence.null_modularity)
        runs.append(Run(evidence.structured, len(found), evidence.p_value, certainty, n_nulls, seconds))
    return runs


def study(planted, size, n_seeds, pool):
    """One crowd for each seed, and few crowds seen with many seeds."""
    crowds = [pool.submit(run, planted, size, 1_000 + seed, [seed]) for seed in range(n_seeds)]
    n_repeated = max(n_seeds // SEEDS_PER_CROWD, 1)
    repeated = [pool.submit(run, planted, size, 5_000 + one, range(SEEDS_PER_CROWD)) for one in range(n_repeated)]
    return [job.result()[0] for job in crowds], [job.result() for job in repeated]


def disagreements(repeated):
    """How many seeds disagree with the majority of those that see the same crowd."""
    verdicts = [Counter(one.structured for one in runs) for runs in repeated]
    return sum(count.total() - max(count.values()) for count in verdicts)


def summary(planted, crowds, repeated):
    """A row of the table."""
    everything = [*crowds, *(one for runs in repeated for one in runs)]
    five = sum(one.n_communities == len(PLANTED) for one in crowds)
    return {
        "wrong": f"{sum(one.structured != planted for one in crowds)} of {len(crowds)}",
        "five groups": f"{five} of {len(crowds)}" if planted else "",
        "disagree": f"{disagreements(repeated)} of {sum(map(len, repeated))}",
        "p": f"{min(one.p_value for one in crowds):.2g} to {max(one.p_value for one in crowds):.2g}",
        "nulls": f"{np.mean([one.n_nulls for one in everything]):.1f}",
        "seconds": f"{np.mean([one.seconds for one in everything]):.2f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rows = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for planted in (True, False):
            for size in SIZES:
                name = f"{'five kinds' if planted else 'one kind'}, {size[0]} volunteers of {size[1]} answers"
                rows[name] = summary(planted, *study(planted, size, options.seeds, pool))
                print(name, rows[name], flush=True)
    print(table(rows, ["wrong", "five groups", "disagree", "p", "nulls", "seconds"], title="the verdict"))


if __name__ == "__main__":
    main()
