"""What takes the steps of Cautious: compiled code and tensors give one fit, in double and in single precision."""

from dataclasses import replace

import numpy as np
import pytest
from builders import communities_of, crowd, planted
from numpy.testing import assert_allclose

import crowdgraph as cg
from crowdgraph.errors import ParameterError
from crowdgraph.kernels import _runtime, cautious


def random_graph(rng, n_classes, n_labels):
    """Some volunteers answer some items, or do not; some gold is certain, some is not."""
    n_volunteers, n_items = int(rng.integers(3, 12)), int(rng.integers(4, 25))
    n_pairs = n_volunteers * n_items
    pairs = rng.choice(n_pairs, size=min(int(rng.integers(10, 200)), n_pairs), replace=False)
    truth, skill = rng.integers(n_classes, size=n_items), rng.random(n_volunteers)
    right = rng.random(len(pairs)) < skill[pairs // n_items]
    labels = np.where(right, truth[pairs % n_items] % n_labels, rng.integers(n_labels, size=len(pairs)))
    unanswered = rng.random(len(pairs)) < 0.1
    unanswered[0] = False
    gold = {item: int(truth[item]) for item in range(n_items) if rng.random() < 0.15}
    soft = {item: rng.dirichlet(np.ones(n_classes)) for item in range(n_items) if rng.random() < 0.1}
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": (pairs // n_items).tolist(),
            "item": (pairs % n_items).tolist(),
            "label": [None if missing else int(label) for missing, label in zip(unanswered, labels, strict=True)],
            "time": np.sort(rng.random(len(pairs))).tolist(),
        },
        gold={**gold, **{item: dict(enumerate(probs.tolist())) for item, probs in soft.items()}} or None,
        classes=range(n_classes),
        labels=range(n_labels),
        volunteers={"volunteer": range(n_volunteers)},
        items={"item": range(n_items)},
        missing="keep",
    )


def random_case(seed):
    """A graph and a model with random settings."""
    rng = np.random.default_rng(seed)
    n_classes, n_labels = map(int, rng.integers(2, 5, 2))
    graph = random_graph(rng, n_classes, n_labels)
    prior = rng.uniform(0.5, 5, (n_classes, n_labels))
    votes = None if n_classes == n_labels else {label: label % n_classes for label in range(n_labels)}
    inner = (cg.IBCC(confusion_prior=prior), cg.DawidSkene(votes=votes), cg.DynIBCC(confusion_prior=prior))
    member = np.append(rng.integers(-1, 3, len(graph.volunteers) - 1), 0)
    communities = communities_of(member, ids=graph.volunteers.ids) if rng.random() < 0.7 else None
    model = cg.Cautious(
        model=inner[rng.integers(3)], communities=communities, difficulty=bool(rng.random() < 0.6), max_iter=60
    )
    return graph, model


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.science) for first in (50, 100, 150))])
def test_compiled_code_and_tensors_agree(first):
    """In random crowds, with random settings."""
    for seed in range(first, first + 50):
        graph, model = random_case(seed)
        compiled, tensors = (replace(model, backend=backend).fit(graph) for backend in ("compiled", "torch"))
        assert_allclose(compiled.item_probs, tensors.item_probs, rtol=0, atol=1e-9)
        assert_allclose(compiled.bound, tensors.bound, rtol=1e-9)
        assert_allclose(compiled.diagnostics["chances"], tensors.diagnostics["chances"], rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_single_precision_gives_nearly_the_same(backend):
    """The same labels, but for ties."""
    largest = 0.0
    for seed in range(40):
        graph, model = random_case(seed)
        single, double = (
            replace(model, backend=backend, dtype=dtype).fit(graph).item_probs for dtype in ("float32", "float64")
        )
        assert_allclose(single, double, rtol=0, atol=1e-3)
        least, most = np.sort(double, axis=1)[:, -2:].T
        clear = most - least > 1e-3
        assert (single.argmax(axis=1) == double.argmax(axis=1))[clear].all()
        largest = max(largest, np.abs(single - double).max())
    assert largest > 0


@pytest.fixture(scope="module")
def three_groups():
    simulated = crowd(0.9, 0.75, 0.6, n_volunteers=60, n_items=800, n_responses=8_000, shared_errors=0.4, gold=0.2)
    return simulated.graph, cg.Cautious(communities=planted(simulated))


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_give_the_same(n_threads, three_groups, monkeypatch):
    graph, model = three_groups
    expected = model.fit(graph)
    monkeypatch.setattr(cautious, "MIN_ITEMS_PER_THREAD", 1)
    monkeypatch.setattr(_runtime.config, "NUMBA_NUM_THREADS", n_threads)
    first, second = model.fit(graph), model.fit(graph)
    assert (first.item_probs == second.item_probs).all()
    assert_allclose(first.item_probs, expected.item_probs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_diagnostics_say_what_ran(backend, dtype, three_groups):
    graph, model = three_groups
    fit = replace(model, backend=backend, dtype=dtype).fit(graph)
    assert tuple(fit.diagnostics[name] for name in ("backend", "device", "dtype")) == (backend, "cpu", dtype)
    assert fit.diagnostics["model"]["backend"] == "compiled"


def test_single_precision_raises_a_tolerance_that_it_cannot_reach(three_groups):
    graph, model = three_groups
    assert replace(model, backend="torch", dtype="float32", tol=1e-12).fit(graph).converged


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "compiled", "device": "cuda"}, "backend='compiled' runs on CPUs only; got device='cuda'"),
        ({"device": "meta"}, "device='meta' is not available here"),
    ],
)
def test_what_cannot_run_is_refused(settings, words, three_groups):
    graph, model = three_groups
    with pytest.raises(ParameterError, match=words):
        replace(model, **settings).fit(graph)
