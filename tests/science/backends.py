"""How far compiled code and tensors, double and single precision are apart: random crowds with random settings.

Run ``python -m science.backends`` in the folder ``tests`` (some minutes on two cores); ``--crowds 50`` is quicker.
"""

import argparse
import warnings
from dataclasses import dataclass, replace

import numpy as np
from science.scoring import table

import crowdgraph as cg
from crowdgraph.errors import CrowdGraphWarning

# How far class probabilities of the two backends may be apart, and concentrations, relative to themselves.
MAX_DIFFERENCE, MAX_RELATIVE_DIFFERENCE = 1e-9, 1e-8
# How far class probabilities in single precision may be from those in double precision, both as exact as they can be.
MAX_SINGLE_DIFFERENCE = 1e-3


@dataclass(frozen=True)
class Differences:
    """How far fits of one crowd are from that of compiled code in double precision.

    The concentrations of maximum likelihood may be zero, so that theirs are compared absolutely as well. Labels are
    those of items that are not within `MAX_SINGLE_DIFFERENCE` of a tie. `default_probs` is how far a fit in double
    precision with the default tolerance is from one that has converged.
    """

    probs: float
    concentration: float
    single_probs: float = 0.0
    other_labels: int = 0
    default_probs: float = 0.0


def random_graph(rng, *, n_items=40, max_classes=4):
    """A crowd with two classes or more, as many or other labels, missing labels, repeats, gold and soft gold."""
    n_classes = int(rng.integers(2, max_classes + 1))
    n_labels = n_classes if rng.random() < 0.5 else int(rng.integers(2, 6))
    n_volunteers, n_items = int(rng.integers(2, 12)), int(rng.integers(4, n_items))
    n_responses = int(rng.integers(n_items, 6 * n_items))
    confusion = rng.dirichlet(np.ones(n_labels), (n_volunteers, n_classes)) + 0.7 * np.eye(n_classes, n_labels)
    confusion /= confusion.sum(axis=2, keepdims=True)
    truth = rng.integers(0, n_classes, n_items)
    volunteer, item = rng.integers(0, n_volunteers, n_responses), rng.integers(0, n_items, n_responses)
    label = (confusion[volunteer, truth[item]].cumsum(axis=1) < rng.random((n_responses, 1))).sum(axis=1)
    labels = [f"label {code}" for code in range(n_labels)]
    classes = labels if n_classes == n_labels else [f"class {code}" for code in range(n_classes)]
    unanswered = rng.random(n_responses) < rng.choice([0, 0.1])
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": volunteer,
            "item": item,
            "label": [
                None if skipped else labels[min(code, n_labels - 1)]
                for skipped, code in zip(unanswered, label, strict=True)
            ],
            "time": np.sort(rng.integers(0, 10 * n_responses, n_responses)),
        },
        labels=labels,
        classes=classes,
        missing="keep",
        items={"item": np.arange(n_items)},
    )
    gold = {code: classes[truth[code]] for code in range(n_items) if rng.random() < 0.1}
    soft = {
        code: dict(zip(classes, rng.dirichlet(np.ones(n_classes)), strict=True))
        for code in range(n_items)
        if rng.random() < 0.05
    }
    return graph.with_gold({**gold, **soft}) if gold or soft else graph


def random_prior(rng, graph, *, of_volunteers):
    """A confusion prior: a matrix, one for a single volunteer, or what needs labels that are classes."""
    shape = (len(graph.classes), len(graph.labels))
    matrix = (rng.gamma(1, 2, shape) + 0.1 + 3 * np.eye(*shape)).tolist()
    choices = [matrix]
    if graph.labels == graph.classes:
        choices += ["crowd", (4, 1), (2, 0.5)]
    if of_volunteers:
        choices.append({graph.volunteers.ids[0]: matrix, None: matrix})
    return choices[rng.integers(len(choices))]


def random_ibcc(rng, graph):
    """IBCC with random settings."""
    learn_prior = bool(rng.random() < 0.3)
    return cg.IBCC(
        confusion_prior=random_prior(rng, graph, of_volunteers=not learn_prior),
        class_prior=float(rng.choice([0.5, 1, 5])),
        learn_prior=learn_prior,
        restarts=int(rng.choice([0, 0, 2])),
        accelerate=bool(rng.random() < 0.8),
        max_iter=30_000,
    )


def random_dawid_skene(rng, graph):
    """Dawid-Skene with random settings; half of them are plain maximum likelihood."""
    votes = {label: graph.classes[code % len(graph.classes)] for code, label in enumerate(graph.labels)}
    return cg.DawidSkene(
        votes=None if graph.labels == graph.classes else votes,
        smoothing=float(rng.choice([0, 0, 0.01, 1])),
        accelerate=bool(rng.random() < 0.8),
        max_iter=30_000,
    )


def random_dynibcc(rng, graph):
    """DynIBCC with random settings."""
    return cg.DynIBCC(
        confusion_prior=random_prior(rng, graph, of_volunteers=True),
        class_prior=float(rng.choice([0.5, 1, 5])),
        noise_scale=[0.0, 0.3, 1.0, 2.0, "auto"][rng.integers(5)],
        drift_per_time=float(rng.choice([0, 0.001])),
        inference=str(rng.choice(["smoothed", "filtered"])),
        repeat_span=[None, 10.0][rng.integers(2)],
        published=bool(rng.random() < 0.5),
        update_classes=bool(rng.random() < 0.8),
        max_iter=1_000,
    )


MODELS = {"IBCC": random_ibcc, "DawidSkene": random_dawid_skene, "DynIBCC": random_dynibcc}


def concentration_of(fit):
    """The Dirichlets of a fit, at all steps if they change."""
    track = fit.confusion
    return track.concentration if len(track.concentration) else track.latest().concentration


def compare(name, seed, *, single=True, **sizes):
    """Fit one random crowd with all backends and precisions."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, **sizes)
    model = MODELS[name](rng, graph)
    # Shared priors that are learned to more digits never settle.
    tol = 1e-8 if getattr(model, "learn_prior", False) else 1e-9 if name == "DynIBCC" else 1e-12
    exact = replace(model, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdGraphWarning)
        compiled, tensors = (replace(exact, backend=backend).fit(graph, seed=0) for backend in ("compiled", "torch"))
        ours, others = concentration_of(compiled), concentration_of(tensors)
        floor = 1.0 if getattr(model, "smoothing", 1.0) == 0 else 0.0
        result = Differences(
            probs=float(np.abs(compiled.item_probs - tensors.item_probs).max()),
            concentration=float((np.abs(ours - others) / (ours + floor)).max()),
        )
        double = compiled.item_probs
        default = float(np.abs(model.fit(graph, seed=0).item_probs - double).max())
        result = replace(result, default_probs=default)
        if not single or floor:
            return result
        for backend in ("compiled", "torch"):
            probs = replace(model, backend=backend, dtype="float32", tol=1e-6).fit(graph, seed=0).item_probs
            margin = np.diff(np.sort(double, axis=1)[:, -2:], axis=1)[:, 0]
            other = (probs.argmax(axis=1) != double.argmax(axis=1)) & (margin > MAX_SINGLE_DIFFERENCE)
            result = replace(
                result,
                single_probs=max(result.single_probs, float(np.abs(probs - double).max())),
                other_labels=result.other_labels + int(other.sum()),
            )
    return result


def main():
    """Print the largest differences for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowds", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    rows = {}
    for name in MODELS:
        results = [compare(name, seed) for seed in range(options.first_seed, options.first_seed + options.crowds)]
        rows[name] = {
            "probabilities": f"{max(result.probs for result in results):.1e}",
            "concentrations": f"{max(result.concentration for result in results):.1e}",
            "probabilities in float32": f"{max(result.single_probs for result in results):.1e}",
            "other labels": sum(result.other_labels for result in results),
            "float64, default tol": f"{max(result.default_probs for result in results if result.single_probs):.1e}",
        }
    print(table(rows, list(rows["IBCC"]), title=f"{options.crowds} crowds each"))


if __name__ == "__main__":
    main()
