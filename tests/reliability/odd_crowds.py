"""Odd crowds meet every model, network, detector, policy, track, export and the report.

Each of them answers or refuses with one of our errors; there is no other exception, and no warning but ours. Answers
are finite and probabilities sum to one. What is written comes back as it was.

``python tests/reliability/odd_crowds.py "one item" "the repeated hour"`` repeats crowds alone.
"""

import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from odd_crowds import ODD_CROWDS
from reliability.attack import Row, Size
from reliability.soundness import check
from results import same_graph

import crowdgraph as cg
from crowdgraph.analysis import analyse, write_results
from crowdgraph.errors import CrowdGraphError, CrowdGraphWarning, LeftOutFigureWarning, ResultError

# How many of the pairs of a crowd and a target the short form tries: one in so many.
SHORT_STRIDE = 60
# What one crowd may take in the long form, in seconds and in bytes of addresses.
MAX_SECONDS, MAX_MEMORY = 1_200, 24 * 2**30
# How many failures are named in the table.
MAX_NAMED = 3


class Subject:
    """An odd crowd, and what targets need of it, made when it is first asked for."""

    def __init__(self, graph, folder):
        self.graph, self.folder = graph, folder

    def votes(self):
        """The class that each label votes for, where labels are not classes."""
        labels, classes = self.graph.labels, self.graph.classes
        if set(labels) <= set(classes):
            return None
        return {label: classes[code % len(classes)] for code, label in enumerate(labels)}

    def scores(self):
        """A number for each label."""
        return {label: float(code) for code, label in enumerate(self.graph.labels)}

    @cached_property
    def fitted(self):
        """The graph with a fit of confusion that stays."""
        return self.graph.annotate(cg.IBCC(votes=self.votes()).fit(self.graph))

    @cached_property
    def moving(self):
        """The graph with a fit of confusion that changes."""
        return self.graph.annotate(cg.DynIBCC(votes=self.votes()).fit(self.graph))

    @cached_property
    def alike(self):
        return cg.networks.pi_similarity(self.fitted)

    @cached_property
    def together(self):
        return cg.networks.task_cooccurrence(self.graph, min_responses=1)

    @cached_property
    def annotated(self):
        """The graph with a result of every kind that it allows."""
        graph = self.fitted
        steps = (
            lambda: self.alike,
            lambda: cg.Leiden().detect(self.alike, seed=0),
            lambda: self.together,
            partial(over_time, self),
        )
        for step in steps:
            try:
                graph = graph.annotate(step())
            except ResultError:
                raise
            except CrowdGraphError:
                continue
        return graph


# Targets: functions of a subject, by kind and name


def fit_of(model):
    return lambda subject: model(subject).fit(subject.graph, seed=0)


def voting(kind, **settings):
    return fit_of(lambda subject: kind(votes=subject.votes(), **settings))


def features(ids):
    return np.random.default_rng(0).normal(size=(len(ids), 2))


MODELS = {
    "majority": voting(cg.MajorityVote),
    "winner": voting(cg.MajorityVote, output="winner"),
    "weighted majority": voting(cg.WeightedMajority),
    "mean score": fit_of(lambda subject: cg.MeanScore(scores=subject.scores())),
    "weighted sum": fit_of(lambda subject: cg.WeightedSum(scores=subject.scores(), votes=subject.votes())),
    "IBCC": voting(cg.IBCC),
    "IBCC, learned prior": voting(cg.IBCC, learn_prior=True),
    "IBCC, prior from gold": voting(cg.IBCC, confusion_prior="gold"),
    "IBCC, tensors in single precision": voting(cg.IBCC, backend="torch", dtype="float32"),
    "IBCC within a limit of memory": lambda subject: cg.IBCC(votes=subject.votes()).fit(subject.graph, memory="4GB"),
    "Dawid-Skene": voting(cg.DawidSkene),
    "maximum likelihood": voting(cg.DawidSkene, smoothing=0),
    "DynIBCC": voting(cg.DynIBCC),
    "DynIBCC, chosen noise": voting(cg.DynIBCC, noise_scale="auto", max_iter=50),
    "DynIBCC as published": voting(cg.DynIBCC, published=True, inference="filtered"),
    "DynIBCC without noise": voting(cg.DynIBCC, noise_scale=0),
    "DynIBCC with drift": voting(cg.DynIBCC, drift_per_time=1e-3),
    "Gibbs": voting(cg.GibbsIBCC, chains=2, burn_in=20, max_draws=60),
    "cautious": fit_of(lambda subject: cg.Cautious(model=cg.IBCC(votes=subject.votes()))),
    "calibrated": fit_of(lambda subject: cg.Calibrated(model=cg.IBCC(votes=subject.votes()))),
    "classifier": voting(cg.ClassifierIBCC, features=features, max_rounds=2, epochs=1),
    "stream": lambda subject: cg.StreamingIBCC(
        classes=subject.graph.classes, labels=subject.graph.labels, votes=subject.votes()
    ).update(subject.graph),
    "update": lambda subject: cg.IBCC(votes=subject.votes()).update(subject.fitted.fit(), subject.graph),
}
NETWORKS = {
    "who behave alike": lambda subject: subject.alike,
    "by Hellinger distance": lambda subject: cg.networks.pi_similarity(subject.fitted, distance="hellinger"),
    "nearest neighbours": lambda subject: cg.networks.pi_similarity(subject.moving, neighbours=3),
    "who work on the same items": lambda subject: subject.together,
    "tested links": lambda subject: cg.networks.task_cooccurrence(subject.graph, min_responses=1, validate=0.01),
    "backbone": lambda subject: subject.together.backbone(),
    "null": lambda subject: subject.together.null(seed=0),
    "who err together": lambda subject: cg.networks.error_correlation(subject.fitted, min_responses=1, min_common=1),
    "who err together, by default": lambda subject: cg.networks.error_correlation(subject.fitted),
    "contacts": lambda subject: cg.networks.contacts(subject.graph).to_frame(kind="arrow"),
}


def detected(detector, network):
    return lambda subject: detector.detect(getattr(subject, network), seed=0)


DETECTORS = {
    f"{name} of {network}": detected(detector, network)
    for network in ("alike", "together")
    for name, detector in {
        "NMF": cg.BayesianNMF(nulls=3, restarts=2),
        "published NMF": cg.BayesianNMF.as_published(),
        "Leiden": cg.Leiden(),
    }.items()
}


def assigned(kind):
    def assign(subject):
        communities = cg.Leiden().detect(subject.alike, seed=0)
        graph = subject.fitted.annotate(subject.alike).annotate(communities)
        return kind().assign(graph, budget=6, capacity=2, seed=0)

    return assign


POLICIES = {
    name: assigned(kind)
    for name, kind in vars(cg.allocation).items()
    if isinstance(kind, type) and issubclass(kind, cg.allocation.Policy) and kind is not cg.allocation.Policy
}
PLANS = {
    "what next": lambda subject: cg.allocation.next_steps(subject.fitted, seed=0),
    "availability": lambda subject: cg.allocation.availability(subject.graph),
    "forecast": lambda subject: cg.allocation.forecast_settled(subject.fitted, n_draws=5, seed=0),
    "training": lambda subject: cg.allocation.training_candidates(subject.annotated),
    "shared errors": lambda subject: cg.allocation.shared_errors(subject.annotated),
    "specialisation": lambda subject: cg.allocation.specialisation(subject.annotated),
    "retirement": lambda subject: cg.allocation.calibrated_retirement(
        subject.graph, cg.IBCC(votes=subject.votes()), updates=2, folds=2, seed=0
    ),
}


def over_time(subject, **options):
    n = len(subject.graph.responses)
    model = cg.IBCC(votes=subject.votes())
    counts = sorted({max(1, n // 3), max(1, n)})
    settings = {"model": model, "detector": cg.Leiden(), "restarts": 1, "seed": 0, **options}
    return cg.dynamics.over_time(subject.graph, counts=counts, **settings)


TRACKS = {
    "communities": over_time,
    "communities, in hindsight": lambda subject: over_time(
        subject, model=cg.DynIBCC(votes=subject.votes()), hindsight=True
    ),
    "networks": lambda subject: cg.dynamics.networks_over_time(
        subject.graph, counts=[max(1, len(subject.graph.responses))], seed=0
    ),
    "confusion": lambda subject: subject.moving.fit().confusion,
    "changes": lambda subject: subject.moving.fit().changes(),
    "snapshots": lambda subject: [view.n_items for view in subject.graph.snapshots(counts=[0, 1])],
}
EVALUATION = {
    "cross validation": lambda subject: cg.evaluation.cross_validate(
        subject.graph, cg.IBCC(votes=subject.votes()), folds=2
    ),
    "predictive checks": lambda subject: cg.evaluation.predictive_checks(subject.fitted, n_replicates=20),
    "data doctor": lambda subject: subject.graph.diagnose().to_dict(),
    "influence": lambda subject: subject.fitted.fit().influence(volunteer=subject.graph.volunteers.ids.tolist()[0]),
}


def comes_back(write, read, *, equal):
    """What is written is read as it was; `write` and `read` take a path."""

    def export(subject):
        path = subject.folder / "export"
        write(subject.annotated, path)
        again = read(path)
        assert equal(again, subject.annotated), "what was read is not what was written"

    return export


def same_table(again, graph):
    return again.equals(graph)


EXPORTS = {
    "file": comes_back(lambda graph, path: graph.save(path), cg.load, equal=same_graph),
    "columns": comes_back(lambda graph, path: graph.save(path, format="columns"), cg.load, equal=same_table),
    "GraphML": comes_back(
        lambda graph, path: graph.to_graphml(path, history="full"), cg.read_graphml, equal=same_table
    ),
    "GEXF": comes_back(lambda graph, path: graph.to_gexf(path), cg.read_gexf, equal=same_table),
    "pandas": lambda subject: [
        subject.annotated.to_pandas(table=name) for name in ("responses", "items", "volunteers")
    ],
    "polars": lambda subject: [
        subject.annotated.to_polars(table=name) for name in ("responses", "items", "volunteers")
    ],
    "tensors": lambda subject: subject.graph.to_torch(),
    "PyTorch Geometric": lambda subject: subject.annotated.to_pyg(),
    "tables of a fit": lambda subject: [
        subject.fitted.fit().to_frame(kind="arrow"),
        subject.fitted.fit().volunteers_to_frame(kind="text"),
    ],
    "words": lambda subject: [
        (repr(one), one._repr_html_()) for one in (subject.annotated, *subject.annotated.annotations.values())
    ],
}


def networkx_comes_back(subject):
    again = cg.CrowdGraph.from_networkx(subject.annotated.to_networkx(history="full"))
    assert again.equals(subject.graph), "what networkx holds is not what it got"


def igraph_comes_back(subject):
    again = cg.CrowdGraph.from_igraph(subject.annotated.to_igraph(history="full"))
    assert again.equals(subject.graph), "what igraph holds is not what it got"


EXPORTS |= {"networkx": networkx_comes_back, "igraph": igraph_comes_back}


def results_of(subject):
    """The whole analysis as files: tables, figures, page."""
    settings = {"snapshots": 2, "min_responses": 1, "votes": subject.votes()}
    analysis = analyse(subject.graph, detector=cg.BayesianNMF(nulls=3, restarts=1), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutFigureWarning)
        write_results(analysis, subject.folder / "results")


REPORT = {
    "page": lambda subject: cg.report.write(subject.annotated, subject.folder / "report.html"),
    "analysis": results_of,
}
KINDS = {
    "models": MODELS,
    "networks": NETWORKS,
    "detectors": DETECTORS,
    "policies": POLICIES,
    "plans": PLANS,
    "tracks": TRACKS,
    "evaluation": EVALUATION,
    "exports": EXPORTS,
    "report": REPORT,
}
TARGETS = [(kind, name) for kind, targets in KINDS.items() for name in targets]
# What the attack on version 0.1.0 counted, over all of these.
BEFORE = "11 of 4,507"


# Trying


class Outcome(NamedTuple):
    """How one target met one crowd."""

    crowd: str
    kind: str
    target: str
    failure: str
    refused: bool
    seconds: float

    def __str__(self):
        ended = self.failure or ("refused" if self.refused else "answered")
        return f"{self.crowd!r}, {self.target}: {ended}"


def meet(crowd, targets):
    """Yield how a crowd meets targets, each a kind and a name."""
    with tempfile.TemporaryDirectory() as folder:
        outcome, graph = attempt(crowd, ("crowds", "built"), ODD_CROWDS[crowd])
        yield outcome
        if graph is None:
            return
        for number, target in enumerate(targets):
            own = Path(folder, str(number))
            own.mkdir()
            subject = Subject(graph, own)
            yield attempt(crowd, target, partial(KINDS[target[0]][target[1]], subject))[0]


def attempt(crowd, target, action):
    """Return how an action went, and what it returned."""
    start = time.process_time()
    failure, refused, value = "", False, None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdGraphWarning)
        try:
            value = action()
            check(value)
        except CrowdGraphError as error:
            # A result that finds itself wrong is no refusal: some computation went wrong.
            refused = not isinstance(error, ResultError)
            failure = "" if refused else describe(error)
        except Exception as error:
            failure = describe(error)
    return Outcome(crowd, *target, failure, refused, time.process_time() - start), value


def describe(error):
    return f"{type(error).__name__}: {str(error)[:200]}".replace("\n", " ").replace("|", "/")


def attack(size):
    counts, failures, slowest = Counter(), {}, {}
    for outcome in tries(size):
        counts[outcome.kind, "tried"] += 1
        counts[outcome.kind, "refused"] += outcome.refused
        slowest[outcome.kind] = max(slowest.get(outcome.kind, outcome), outcome, key=lambda one: one.seconds)
        if outcome.failure:
            failures.setdefault(outcome.kind, []).append(outcome)
            print(outcome, file=sys.stderr, flush=True)
    for kind in ("crowds", *KINDS):
        failed, slow = failures.get(kind, []), slowest[kind]
        notes = [f"{counts[kind, 'refused']:,} refused", f"slowest {slow.crowd}, {slow.target}: {slow.seconds:.1f} s"]
        notes += [str(outcome) for outcome in failed[:MAX_NAMED]]
        yield Row(kind, counts[kind, "tried"], len(failed), BEFORE if kind == "models" else "", "; ".join(notes))


def tries(size):
    """Yield the outcomes: of some pairs in this process, or of all in another, whose death is a failure."""
    if size is Size.SHORT:
        for number, crowd in enumerate(ODD_CROWDS):
            yield from meet(crowd, TARGETS[number % SHORT_STRIDE :: SHORT_STRIDE])
        return
    crowds = list(ODD_CROWDS)
    while crowds:
        outcomes = []
        with subprocess.Popen(
            [sys.executable, __file__, "--json", *crowds], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout:
                outcomes.append(Outcome(*json.loads(line)))
                yield outcomes[-1]
        if not process.returncode:
            return
        # It goes on after the crowd that ended the process, before or at the target after the last one that it tried.
        last = crowds.index(outcomes[-1].crowd) if outcomes else 0
        target = outcomes[-1].target if outcomes else "start"
        yield Outcome(
            crowds[last], "crowds", f"after {target}", f"the process ended with {process.returncode}", False, 0.0
        )
        del crowds[: last + 1]


def main(arguments):
    """Let crowds meet all targets. Too long an attempt ends the process by a signal; too much memory is refused."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    for crowd in (argument for argument in arguments if argument != "--json"):
        signal.alarm(MAX_SECONDS)
        for outcome in meet(crowd, TARGETS):
            print(json.dumps(outcome) if "--json" in arguments else outcome, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
