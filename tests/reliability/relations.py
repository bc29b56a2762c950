"""What cannot matter does not matter: metamorphic relations on random crowds.

Each relation says how far results may be apart that belong to equivalent crowds, and what promises it. A seed draws the
crowd, the model and the change, and failures print it: ``python tests/reliability/relations.py 17 42`` repeats seeds.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numba
import numpy as np
from reliability.attack import Row, Size
from reliability.random_crowds import random_communities, random_crowd, renamed
from results import same_graph
from science.backends import MAX_DIFFERENCE, MAX_SINGLE_DIFFERENCE, random_graph
from science.backends import MODELS as RANDOM_MODELS
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg
from crowdgraph.core import _arrays
from crowdgraph.errors import CrowdGraphWarning
from crowdgraph.kernels import cautious, dglm_compiled, dynibcc, nmf
from crowdgraph.models import _step_blocks, _tensors

SEEDS = {Size.SHORT: 200, Size.LONG: 50_000}

BITS = "the same bits (howto/reproducible)"
EQUIVALENT = "equivalent graphs give the same to 1e-6 (testing.check_model)"
CHUNKS = "a limit of memory changes nothing where fits settle (out_of_core)"
THREADS = "threads change rounding only (howto/reproducible)"


class Relation(NamedTuple):
    """What may differ by how much; `difference` draws a case and returns by how much its results differ."""

    name: str
    most: float
    promise: str
    difference: Callable
    before: str = ""
    is_slow: bool = False


RELATIONS = []
# How many rounds of the others come to one of those that are slow.
ROUNDS = 5


def relation(name, most, promise, *, before="", is_slow=False):
    """Put a function of random numbers, which returns a difference, among the relations."""

    def add(difference):
        RELATIONS.append(Relation(name, most, promise, difference, before, is_slow))
        return difference

    return add


def largest(one, other):
    """The largest difference of two arrays, infinite if they have other shapes or a value that is no number."""
    if one.shape != other.shape:
        return np.inf
    difference = np.abs(one - other).max(initial=0.0)
    return float(np.nan_to_num(difference, nan=np.inf))


# Models that have settled: what is left to iterate is less than what relations look for.
SCORES = {"c0": 0.0, "c1": 1.0}
COUNTING = (
    cg.MajorityVote(),
    cg.WeightedMajority(),
    cg.MeanScore(scores=SCORES),
    cg.WeightedSum(scores=SCORES),
)
STATIC = (
    cg.IBCC(tol=1e-9),
    cg.IBCC(confusion_prior=(4, 1), tol=1e-9),
    cg.IBCC(confusion_prior=(4, 1), tol=1e-9, accelerate=False, max_iter=5_000),
    cg.DawidSkene(tol=1e-9, smoothing=0.5),
    cg.Calibrated(model=cg.IBCC(tol=1e-9)),
)
DYNAMIC = (cg.DynIBCC(tol=1e-9), cg.DynIBCC(tol=1e-9, confusion_prior=(4, 1), inference="filtered"))
SAMPLING = cg.GibbsIBCC(chains=2, burn_in=10, max_draws=20)


def one_of(rng, models):
    return models[rng.integers(len(models))]


# Names and orders, for models


@relation("models: other names of volunteers and items", 0, BITS, before="0 of 1,953")
def rename(rng):
    crowd, model = random_crowd(rng, max_classes=2), one_of(rng, (*COUNTING, *STATIC, *DYNAMIC, SAMPLING))
    graphs = crowd.graph(), crowd.graph(volunteer=renamed, item=lambda code: -code)
    return largest(*(model.fit(graph, seed=0).item_probs for graph in graphs))


@relation("models: another order of simultaneous rows", 1e-6, EQUIVALENT, before="0 of 1,953")
def reorder_rows(rng):
    crowd = random_crowd(rng, max_classes=2).simultaneous()
    model, graph, other = one_of(rng, (*COUNTING, *STATIC, *DYNAMIC)), crowd.graph(), crowd.shuffled(rng).graph()
    probs = model.fit(other).item_probs[other.items.codes(graph.items.ids)]
    return largest(model.fit(graph).item_probs, probs)


@relation("models: another order of classes", 1e-6, EQUIVALENT, before="0 of 1,953")
def reorder_classes(rng):
    crowd, model = random_crowd(rng), one_of(rng, (cg.MajorityVote(), cg.WeightedMajority(), *STATIC, *DYNAMIC))
    order = rng.permutation(len(crowd.classes))
    other = crowd.graph(classes=[crowd.classes[code] for code in order])
    return largest(model.fit(crowd.graph()).item_probs[:, order], model.fit(other).item_probs)


@relation("models: another order of labels", 1e-6, EQUIVALENT, before="0 of 1,953")
def reorder_labels(rng):
    crowd, model = random_crowd(rng), one_of(rng, (cg.MajorityVote(), cg.WeightedMajority(), *STATIC, *DYNAMIC))
    labels = rng.permutation(crowd.classes).tolist()
    return largest(model.fit(crowd.graph()).item_probs, model.fit(crowd.graph(labels=labels)).item_probs)


@relation("models: volunteers without responses", 1e-6, EQUIVALENT, before="0 of 1,953")
def add_empty_volunteers(rng):
    crowd, model = random_crowd(rng), one_of(rng, (*STATIC, *DYNAMIC))
    other = crowd.graph(more_volunteers=["nobody", "no one"])
    return largest(model.fit(crowd.graph()).item_probs, model.fit(other).item_probs)


@relation("models: gold as a class or as probabilities of 0 and 1", 0, BITS)
def write_gold_as_probabilities(rng):
    graph, model = random_crowd(rng).graph(), one_of(rng, (*STATIC, *DYNAMIC))
    certain = {item: {name: float(name == known) for name in graph.classes} for item, known in graph.gold.items()}
    return largest(model.fit(graph).item_probs, model.fit(graph.with_gold(certain)).item_probs)


@relation(
    "DynIBCC: another unit of time", 0, "steps count, not time; drift is by time (models/dynibcc)", before="0 of 977"
)
def scale_times(rng):
    crowd, factor = random_crowd(rng), 2 ** int(rng.integers(1, 20))
    other = replace(crowd, time=crowd.time * factor + 5)
    drift = float(rng.choice([0, 0.01]))
    models = (cg.DynIBCC(drift_per_time=one) for one in (drift, drift / factor))
    graphs = crowd.graph(), other.graph()
    return largest(*(model.fit(graph).item_probs for model, graph in zip(models, graphs, strict=True)))


@relation("DynIBCC without noise and IBCC", 1e-9, "without noise it is IBCC (models/dynibcc)", before="0 of 1,953")
def remove_noise(rng):
    graph = random_crowd(rng).graph()
    prior = rng.uniform(0.5, 6, (len(graph.classes), len(graph.labels))).tolist()
    static = cg.IBCC(confusion_prior=prior, tol=1e-13, accelerate=False, max_iter=20_000).fit(graph)
    still = cg.DynIBCC(confusion_prior=prior, noise_scale=0, tol=1e-13, max_iter=20_000).fit(graph, start=static)
    return largest(static.item_probs, still.item_probs)


# Models: how and where they compute


# Whole fits are no measure: they end where a step changes little, which with slow steps may be far from where others
# end. So the same steps are compared, from the usual start and from the end of a fit.
N_STEPS = 10


def in_same_mode(model):
    """The model without a look at other starts than the one that is given."""
    return replace(model, compare_starts=False) if isinstance(model, cg.IBCC) else model


def probs_after_steps(model, graph, *, start):
    """The class probabilities after some plain steps."""
    steps = replace(in_same_mode(model), tol=1e-15, max_iter=N_STEPS, accelerate=False)
    return steps.fit(graph, seed=0, start=start).item_probs


def compare_steps(model, other, graph, *, end):
    """The largest difference after the same steps of two models, from the usual start and from where `end` ends."""
    starts = (None, end.fit(graph, seed=0))
    return max(largest(*(probs_after_steps(one, graph, start=start) for one in (model, other))) for start in starts)


def random_fit(rng):
    """A random crowd, and a model with random settings that runs on it."""
    graph = random_graph(rng, n_items=15, max_classes=3)
    return graph, one_of(rng, list(RANDOM_MODELS.values()))(rng, graph)


@relation(
    "models: compiled and tensors",
    MAX_DIFFERENCE,
    "1e-9 after the same steps (howto/reproducible)",
    before="0 of 1,953",
    is_slow=True,
)
def change_backend(rng):
    graph, model = random_fit(rng)
    backends = [replace(model, backend=backend) for backend in ("compiled", "torch")]
    return compare_steps(*backends, graph, end=one_of(rng, backends))


@relation(
    "models: single and double precision",
    MAX_SINGLE_DIFFERENCE,
    "0.001 after the same steps (howto/reproducible)",
    before="491 of 977",
    is_slow=True,
)
def change_precision(rng):
    graph, model = random_fit(rng)
    if isinstance(model, cg.DawidSkene) and not model.smoothing:
        # Single precision is refused for plain maximum likelihood.
        model = replace(model, smoothing=0.01)
    single = replace(model, backend=one_of(rng, ("compiled", "torch")), dtype="float32")
    return compare_steps(model, single, graph, end=single)


@contextmanager
def threads(number):
    """Compute with so many threads, also where there is too little to do for more than one."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(numba.config, "NUMBA_NUM_THREADS", number))
        for module, name in (
            (dynibcc, "MIN_STEPS_PER_THREAD"),
            (dglm_compiled, "MIN_STEPS_PER_THREAD"),
            (cautious, "MIN_ITEMS_PER_THREAD"),
            (nmf, "MIN_WEIGHTS_PER_THREAD"),
        ):
            stack.enter_context(mock.patch.object(module, name, 3))
        yield


@relation("models: one thread and two", 1e-6, THREADS, before="0 of 3")
def change_threads(rng):
    graph, model = random_crowd(rng).graph(), one_of(rng, (*STATIC, *DYNAMIC, cg.Cautious(tol=1e-8), SAMPLING))
    probs = []
    for number in (1, 2):
        with threads(number):
            probs.append(model.fit(graph, seed=0).item_probs)
    return largest(*probs)


@relation("models: within a limit of memory, block by block", 1e-9, CHUNKS)
def compute_in_blocks(rng):
    graph, model = random_crowd(rng).graph(), one_of(rng, (cg.MajorityVote(), *STATIC[:-1], *DYNAMIC))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        graph.save(Path(folder, "store"), format="columns")
        expected = model.fit(graph)
        for module, name, size in (
            (_tensors, "MAX_BLOCK", 7),
            (_step_blocks, "MAX_STEPS", 9),
            (_arrays, "ROWS_PER_BLOCK", 5),
        ):
            stack.enter_context(mock.patch.object(module, name, size))
        fit = model.fit(cg.load(Path(folder, "store")), memory="8GB")
        return largest(expected.item_probs, np.array(fit.item_probs))


# Files and growth of graphs


@relation("models: saved and loaded before, between and after", 0, BITS, before="0 of 488")
def save_and_load(rng):
    graph, model = random_crowd(rng).graph(), one_of(rng, (*STATIC, *DYNAMIC))
    annotated = graph.annotate(model.fit(graph))
    again = loaded(annotated)
    if not same_graph(again, annotated):
        return np.inf
    refits = (model.fit(one, start=one.fit()).item_probs for one in (annotated, again))
    return max(largest(*refits), largest(model.fit(again).item_probs, annotated.item_probs()))


def loaded(graph):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.crowd")
        graph.save(path)
        return cg.load(path)


@relation("graphs: split and extended", 0, "extend gives the graph of all rows (updates)")
def split_and_extend(rng):
    crowd = random_crowd(rng)
    crowd = replace(crowd, gold={})
    cut = int(rng.integers(1, len(crowd.time)))
    parts = (crowd.rows(slice(None, cut)).graph(), crowd.rows(slice(cut, None)).graph())
    return 0.0 if parts[0].extend(parts[1]).equals(crowd.graph()) else np.inf


@relation("models: an update ends where a fit stays", 1e-6, "an update is a fit in the same mode (updates)")
def update(rng):
    graph = random_crowd(rng).graph()
    model = one_of(rng, (*STATIC[1:4], cg.DynIBCC(tol=1e-9, confusion_prior=(4, 1)), cg.MajorityVote()))
    early = graph.first(int(rng.integers(len(graph.responses) // 2, len(graph.responses))))
    grown = early.extend(graph.to_arrow().slice(len(early.responses)), gold=dict(graph.gold))
    updated = model.update(model.fit(early), grown)
    return largest(updated.item_probs, in_same_mode(model).fit(grown, start=updated).item_probs)


# Networks


def networks(graph):
    """All kinds of networks of a graph that carries a fit."""
    yield cg.networks.pi_similarity(graph)
    yield cg.networks.pi_similarity(graph, distance="hellinger")
    yield cg.networks.task_cooccurrence(graph, min_responses=1)
    yield cg.networks.error_correlation(graph, min_responses=1, min_common=1)


def weights_of(network, volunteers):
    """The weights between these volunteers."""
    codes = network.table.codes(volunteers)
    weights = network.weights.toarray() if hasattr(network.weights, "toarray") else network.weights
    return weights[np.ix_(codes, codes)]


def fitted(graph):
    return graph.annotate(cg.IBCC(tol=1e-9).fit(graph))


@relation("networks: other names", 0, BITS)
def rename_in_networks(rng):
    crowd = random_crowd(rng)
    pairs = zip(networks(fitted(crowd.graph())), networks(fitted(crowd.graph(volunteer=renamed))), strict=True)
    return max(largest(weights_of(one, one.ids), weights_of(other, other.ids)) for one, other in pairs)


@relation("networks: another order of volunteers", 1e-6, EQUIVALENT)
def reorder_networks(rng):
    crowd = random_crowd(rng).simultaneous()
    pairs = zip(networks(fitted(crowd.graph())), networks(fitted(crowd.shuffled(rng).graph())), strict=True)
    return max(largest(weights_of(one, one.ids), weights_of(other, one.ids)) for one, other in pairs)


@relation("networks: saved and loaded", 0, BITS)
def save_networks(rng):
    graph = fitted(random_crowd(rng).graph())
    for number, network in enumerate(networks(graph)):
        graph = graph.annotate(network, name=f"network {number}")
    return 0.0 if same_graph(loaded(graph), graph) else np.inf


# Communities

DETECTORS = (cg.Leiden(), cg.BayesianNMF(nulls=0, restarts=2))


def random_network(rng):
    """A network that has links, and the crowd that it is of."""
    crowd = random_communities(rng)
    kind = one_of(rng, (cg.networks.pi_similarity, cg.networks.task_cooccurrence))
    return crowd, lambda graph: kind(fitted(graph), min_responses=1)


@relation("communities: other names", 0, BITS, before="0 of 400")
def rename_in_communities(rng):
    crowd, network = random_network(rng)
    detector = one_of(rng, DETECTORS)
    detections = (detector.detect(network(graph), seed=0) for graph in (crowd.graph(), crowd.graph(volunteer=renamed)))
    return largest(*(communities.participation for communities in detections))


@relation("communities: another order of volunteers", 0, "the same assignment (communities)", before="6 of 200")
def reorder_communities(rng):
    crowd, network = random_network(rng)
    detector, network = one_of(rng, DETECTORS), network(crowd.graph())
    other = network.subnetwork(rng.permutation(network.ids).tolist())
    mine, theirs = (detector.detect(one, seed=0) for one in (network, other))
    return 1 - adjusted_rand_score(mine.assignment, theirs.assignment[theirs.table.codes(mine.ids)])


@relation("communities: after save and load", 0, BITS, before="67 of 400")
def detect_in_loaded_networks(rng):
    crowd, network = random_network(rng)
    graph, detector = crowd.graph(), one_of(rng, DETECTORS)
    network = network(graph)
    again = loaded(graph.annotate(network)).network()
    return largest(*(detector.detect(one, seed=0).participation for one in (network, again)))


@relation(
    "communities: compiled and tensors",
    0,
    "the same assignment (detectors/bayesian_nmf)",
    before="0 of 200",
    is_slow=True,
)
def change_backend_of_communities(rng):
    crowd, network = random_network(rng)
    network, detector = network(crowd.graph()), cg.BayesianNMF(nulls=0, restarts=2)
    mine, theirs = (replace(detector, backend=one).detect(network, seed=0) for one in ("compiled", "torch"))
    return 1 - adjusted_rand_score(mine.assignment, theirs.assignment)


@relation("communities: one thread and two", 0, "the same assignment (howto/reproducible)", is_slow=True)
def change_threads_of_communities(rng):
    crowd, network = random_network(rng)
    network, found = network(crowd.graph()), []
    for number in (1, 2):
        with threads(number):
            found.append(cg.BayesianNMF(nulls=0, restarts=2).detect(network, seed=0).assignment)
    return 1 - adjusted_rand_score(*found)


# Trying


def attempt(seed):
    """Return the relation that a seed draws, and by how much its results differ: infinite if it raised an exception."""
    rounds = [chosen for number in range(ROUNDS) for chosen in RELATIONS if number == 0 or not chosen.is_slow]
    chosen = rounds[seed % len(rounds)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdGraphWarning)
        try:
            return chosen, chosen.difference(np.random.default_rng(seed)), ""
        except Exception as error:
            return chosen, np.inf, f"{type(error).__name__}: {str(error)[:200]}"


def attack(size):
    yield from rows(tries(range(SEEDS[size])))


def tries(seeds):
    """Yield seeds, the names of the relations that they draw, and by how much results differ; print failures."""
    for seed in seeds:
        chosen, difference, error = attempt(seed)
        if difference > chosen.most:
            print(f"seed {seed}, {chosen.name}: differ by {difference:.3g}. {error}", file=sys.stderr, flush=True)
        yield seed, chosen.name, difference


def rows(outcomes):
    """Yield the rows of the table of what was tried."""
    differences = {chosen.name: {} for chosen in RELATIONS}
    for seed, name, difference in outcomes:
        differences[name][seed] = difference
    for chosen in RELATIONS:
        own = differences[chosen.name]
        failed = [seed for seed, difference in own.items() if difference > chosen.most]
        note = f"at most {max(own.values()):.2g}; asked {chosen.most:g}: {chosen.promise}"
        if failed:
            note += f"; seeds {', '.join(map(str, failed[:5]))}"
        yield Row(chosen.name, len(own), len(failed), chosen.before, note)


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        chosen, difference, error = attempt(seed)
        print(f"seed {seed}, {chosen.name}: {difference:.3g}, asked {chosen.most:g}. {error}")
