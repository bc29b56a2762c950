"""Nothing on the tensor path needs the CPU: whole fits on simulated devices, which catch what would fail on real ones.

See `simulated_device` for the rules that are checked and for what no simulation can show.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import crowd, network_of
from scipy.sparse import csr_array
from simulated_device import simulated_device

import crowdgraph as cg
from crowdgraph import tensors
from crowdgraph.errors import ParameterError

# Devices, with the precision in which fits run there and how close they come to compiled code in double precision.
CLOSE = {("cuda", "float64"): 1e-9, ("cuda", "float32"): 1e-3, ("mps", "float32"): 1e-3}

MODELS = {
    "IBCC": cg.IBCC(confusion_prior=(4, 1)),
    "IBCC without acceleration": cg.IBCC(confusion_prior=(4, 1), accelerate=False),
    "IBCC, crowd's prior": cg.IBCC(),
    "IBCC, learned prior": cg.IBCC(learn_prior=True),
    "Dawid-Skene": cg.DawidSkene(),
    "Cautious": cg.Cautious(),
    "DynIBCC": cg.DynIBCC(),
    "DynIBCC as published": cg.DynIBCC(published=True),
}


@pytest.fixture(scope="module")
def answered():
    return crowd(n_volunteers=8, n_items=20, n_responses=100, gold=0.2).graph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [(name, "mps", "float32") for name in MODELS]
    + [(name, "cuda", "float64") for name in ("IBCC, crowd's prior", "Cautious", "DynIBCC")],
)
def test_fits_run_on_devices(answered, name, kind, dtype):
    model = MODELS[name]
    expected = model.fit(answered, seed=0)
    with simulated_device(kind) as device:
        fit = replace(model, device=kind, dtype=dtype).fit(answered, seed=0)
    assert device.operations.total() > 100
    assert np.abs(fit.item_probs - expected.item_probs).max() < CLOSE[kind, dtype]
    means = [one.confusion.latest().mean for one in (fit, expected)]
    assert np.abs(means[0] - means[1]).max() < CLOSE[kind, dtype]


@pytest.mark.slow
def test_a_classifier_learns_on_devices():
    simulated = crowd(n_volunteers=10, n_items=60, n_responses=200, gold=0.1)
    features = np.random.default_rng(0).normal(size=(60, 2)) + 2 * simulated.truth.classes[:, None]
    model = cg.ClassifierIBCC("linear", features=features, dtype="float32", batch_size=60, learning_rate=0.2, folds=2)
    expected = model.fit(simulated.graph, seed=0)
    with simulated_device("mps"):
        fit = replace(model, device="mps").fit(simulated.graph, seed=0)
        assert next(fit.classifier.parameters()).device.type == "mps"
        double = replace(model, classifier=torch.nn.Linear(2, 2).double(), device="mps")
        with pytest.raises(ParameterError, match="classifier is in double precision, which device='mps' does not have"):
            double.fit(simulated.graph, seed=0)
    assert fit.diagnostics["classifier"]["rounds_used"] > 0
    assert np.abs(fit.item_probs - expected.item_probs).max() < 1e-3


@pytest.mark.slow
def test_the_noise_is_chosen_on_devices():
    answered = crowd(n_volunteers=6, n_items=12, n_responses=36, gold=0.2).graph
    model = cg.DynIBCC(noise_scale="auto", max_iter=20, published_bound=0.1)
    expected = model.fit(answered)
    with simulated_device("mps"):
        fit = replace(model, device="mps", dtype="float32").fit(answered)
    for name in ("noise_scale", "published_bound"):
        assert fit.diagnostics[name] == pytest.approx(expected.diagnostics[name], rel=1e-3)
    assert np.abs(fit.item_probs - expected.item_probs).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "dense", "kind"),
    [({}, True, "cuda"), ({}, False, "cuda"), ({}, False, "mps"), ({"symmetric": False}, False, "mps")]
    + [({"symmetric": False, "published": True}, dense, "mps") for dense in (True, False)],
)
def test_communities_are_detected_on_devices(settings, dense, kind):
    """In double precision where the device has it: that is the default."""
    rng = np.random.default_rng(0)
    block = np.kron(np.eye(2), np.ones((6, 6))) * rng.uniform(0.5, 1.5, (12, 12))
    weights = np.triu(block + 0.05, 1)
    weights = weights + weights.T
    network = network_of(weights if dense else csr_array(weights))
    detector = cg.BayesianNMF(nulls=0, restarts=2, **settings)
    expected = replace(detector, backend="torch").detect(network, seed=0)
    with simulated_device(kind) as device:
        communities = replace(detector, device=kind).detect(network, seed=0)
    assert device.operations.total() > 100
    assert communities.params["dtype"] == ("float32" if kind == "mps" else "float64")
    assert communities.assignment.tolist() == expected.assignment.tolist()
    assert np.allclose(communities.participation, expected.participation, atol=1e-9 if kind == "cuda" else 1e-3)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["IBCC", "DynIBCC"])
def test_iterations_copy_nothing(answered, name):
    """What is copied from and to the device does not depend on the number of iterations."""
    model = replace(MODELS[name], device="cuda", tol=1e-12)
    n_copies, n_operations = set(), []
    for max_iter in (4, 7):
        with simulated_device("cuda") as device:
            replace(model, max_iter=max_iter).fit(answered)
        n_copies.add(device.n_copies)
        n_operations.append(device.operations.total())
    assert len(n_copies) == 1
    assert n_operations[0] < n_operations[1]


@pytest.mark.parametrize(("kind", "dtype"), CLOSE)
def test_the_functions_of_ibcc_run_on_devices(answered, kind, dtype):
    """Some sweeps of variational Bayes, and the bound with its gradient; on Metal without CSR matrices."""

    def sweeps(device, dtype):
        responses = answered.to_torch(device=device, dtype=dtype)
        prior = torch.tensor([[[4.0, 1.0], [1.0, 4.0]]], dtype=responses.dtype, device=device).requires_grad_()
        class_prior = torch.ones(2, dtype=responses.dtype, device=device)
        confusion, classes = prior.expand(responses.n_volunteers, 2, 2), class_prior
        for _ in range(5):
            logs, class_logs = tensors.expected_log(confusion), tensors.expected_log(classes)
            weights = tensors.item_log_weights(responses.answers, logs, class_logs=class_logs)
            probs = tensors.item_posteriors(weights, responses.gold)
            confusion = prior + tensors.sufficient_counts(responses.answers, probs)
            classes = class_prior + probs.sum(0)
        bound = tensors.lower_bound(
            responses.answers,
            confusion=confusion,
            classes=classes,
            confusion_prior=prior,
            class_prior=class_prior,
            gold=responses.gold,
        )
        (gradient,) = torch.autograd.grad(bound, prior)
        return probs.detach().cpu(), bound.item(), gradient.cpu()

    expected = sweeps("cpu", "float64")
    with simulated_device(kind) as device:
        probs, bound, gradient = sweeps(kind, dtype)
    assert ("index_add" in device.operations) is (kind == "mps")
    assert torch.allclose(probs.double(), expected[0], atol=CLOSE[kind, dtype])
    assert bound == pytest.approx(expected[1], rel=1e-4)
    assert torch.allclose(gradient.double(), expected[2], rtol=1e-3, atol=1e-3)


def test_double_precision_is_refused_before_anything_is_computed(answered):
    with simulated_device("mps") as device:
        with pytest.raises(ParameterError, match="no double precision"):
            answered.to_torch(device="mps")
        network = cg.VolunteerNetwork(ids=[0, 1], weights=[[0, 1], [1, 0]], method="by hand")
        with pytest.raises(ParameterError, match=r"no sparse matrices.*dense=True"):
            network.to_torch(device="mps", dtype="float32", dense=False)
        assert network.to_torch(device="mps", dtype="float32").tolist() == [[0, 1], [1, 0]]
    assert set(device.operations) <= {"sum"}


def test_tensors_move_between_devices(answered):
    expected = answered.to_torch()
    with simulated_device("mps"):
        there = expected.to("mps", "float32")
        assert (there.device.type, there.dtype) == ("mps", torch.float32)
        # The times of dates lose minutes where there is no double precision; what passed between responses does not.
        assert there.time.dtype == torch.float32
        assert torch.allclose(there.elapsed.cpu().double(), expected.elapsed, rtol=1e-6)
        assert there.answers.label.tolist() == expected.answers.label.tolist()
        steps = there.steps(drift=0.5)
        assert steps.drift.device.type == "mps"
        back = there.to("cpu", "float64")
        assert expected.to("cpu", "float32").time.dtype == torch.float64
    assert torch.allclose(back.gold, expected.gold, atol=1e-6, equal_nan=True)
    assert torch.equal(back.item, expected.item)
