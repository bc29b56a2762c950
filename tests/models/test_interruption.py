"""Ctrl-C during a fit: the error holds what was reached, as if the fit had been limited to as many iterations."""

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

import crowdgraph as cg
from crowdgraph.core import _progress
from crowdgraph.errors import FitInterrupted
from crowdgraph.models import _interruption

MODELS = {
    "DawidSkene": cg.DawidSkene(tol=1e-12),
    "IBCC": cg.IBCC(tol=1e-12),
    "IBCC with a learned prior": cg.IBCC(learn_prior=True, restarts=2, tol=1e-12),
    "DynIBCC": cg.DynIBCC(tol=1e-12),
    "DynIBCC of a chosen noise": cg.DynIBCC(noise_scale="auto", tol=1e-12),
    "GibbsIBCC": cg.GibbsIBCC(chains=2, burn_in=10, stop_change=1e-9),
    "Cautious": cg.Cautious(tol=1e-12),
}


@pytest.fixture(scope="module")
def graph():
    """Answers at random, about which no model is certain soon."""
    rng = np.random.default_rng(0)
    pairs = [(volunteer, item) for volunteer in range(12) for item in range(80) if rng.random() < 0.4]
    table = {
        "volunteer": [volunteer for volunteer, _ in pairs],
        "item": [item for _, item in pairs],
        "label": rng.integers(3, size=len(pairs)),
        "time": rng.permutation(len(pairs)).astype(float),
    }
    return cg.CrowdGraph.from_responses(table)


@pytest.fixture(autouse=True)
def _ctrl_c():
    """Ctrl-C as in a terminal, also where these tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C as soon as a progress bar has counted so many iterations since."""

    def after(n_iterations, *, times=1):
        counted = 0

        def update(_, n=1):
            nonlocal counted
            if counted < n_iterations <= counted + n:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            counted += n

        monkeypatch.setattr(_progress._LogLines, "update", update)

    return after


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_iterations", [1, 8])
def test_the_error_has_what_was_reached(name, n_iterations, graph, press, capfd):
    press(n_iterations)
    with pytest.raises(FitInterrupted, match="interrupted after") as raised:
        MODELS[name].fit(graph, seed=0, progress=True)
    assert "Press Ctrl-C again" in capfd.readouterr().err
    assert isinstance(raised.value, KeyboardInterrupt)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    fit = raised.value.fit
    assert not fit.converged
    np.testing.assert_allclose(fit.item_probs.sum(axis=1), 1.0)
    assert np.isfinite(fit.confusion.concentration).all()
    # It is a fit like any other: a graph carries it, and a model goes on from it.
    assert graph.annotate(fit).fit() is fit
    assert MODELS[name]._fit(graph, seed=0, start=fit, progress=False).item_probs.shape == fit.item_probs.shape


@pytest.mark.parametrize("n_iterations", [2, 5, 17])
def test_what_was_reached_is_that_of_as_many_iterations(n_iterations, graph, press):
    model = cg.DawidSkene(tol=1e-12, accelerate=False)
    press(n_iterations)
    with pytest.raises(FitInterrupted) as raised:
        model.fit(graph, progress=True)
    assert raised.value.fit.n_iter == n_iterations
    with pytest.warns(cg.errors.ConvergenceWarning):
        expected = replace(model, max_iter=n_iterations).fit(graph)
    np.testing.assert_array_equal(raised.value.fit.item_probs, expected.item_probs)


@pytest.mark.parametrize("n_iterations", [2, 5, 17])
def test_what_was_reached_lies_on_the_way_of_the_fit(n_iterations, graph, press):
    model = cg.DawidSkene(tol=1e-12)
    press(n_iterations)
    with pytest.raises(FitInterrupted) as raised:
        model.fit(graph, progress=True)
    reached = raised.value.fit
    # An extrapolation and the step after it belong together.
    assert n_iterations <= reached.n_iter <= n_iterations + 2
    np.testing.assert_array_equal(reached.bound, model.fit(graph).bound[: len(reached.bound)])


@pytest.mark.parametrize("n_iterations", [60, 64, 71])
def test_dynibcc_ends_after_a_plain_pass(n_iterations, graph, press):
    static = cg.IBCC().fit(graph)
    model = cg.DynIBCC(tol=1e-12, accelerate=False)
    press(n_iterations)
    with pytest.raises(FitInterrupted) as raised:
        model.fit(graph, start=static, progress=True)
    assert raised.value.fit.n_iter == n_iterations
    with pytest.warns(cg.errors.ConvergenceWarning):
        expected = replace(model, max_iter=n_iterations).fit(graph, start=static)
    np.testing.assert_array_equal(raised.value.fit.item_probs, expected.item_probs)


@pytest.mark.parametrize("model", [cg.IBCC(tol=1e-12), cg.DawidSkene(smoothing=1.0, tol=1e-12)])
def test_an_update_can_be_interrupted(model, graph, press):
    earlier = model.fit(graph.first(300))
    press(1)
    with pytest.raises(FitInterrupted) as raised:
        model.update(earlier, graph, progress=True)
    assert not raised.value.fit.converged
    assert raised.value.fit.item_probs.shape == (len(graph.items), 3)


def test_classifiers_are_complete_when_their_rounds_are_interrupted(graph, press):
    features = np.random.default_rng(0).normal(size=(len(graph.items), 2))
    model = cg.ClassifierIBCC(torch.nn.Linear(2, 3), features=features, min_gain=1e-12)
    press(1)
    with pytest.raises(FitInterrupted) as raised:
        model.fit(graph, seed=0, progress=True)
    assert raised.value.fit.n_iter == 1
    assert raised.value.fit.classifier is not None


def test_the_second_time_stops_at_once(graph, press):
    press(2, times=2)
    with pytest.raises(KeyboardInterrupt) as raised:
        cg.IBCC().fit(graph, progress=True)
    assert not isinstance(raised.value, FitInterrupted)
    assert not _interruption.is_interrupted()
    assert cg.IBCC().fit(graph).converged


def test_programs_that_handle_ctrl_c_themselves_are_left_alone(graph, press):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        press(2)
        assert cg.IBCC().fit(graph, progress=True).converged
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_threads_fit_without_signals(graph):
    fits = []
    thread = threading.Thread(target=lambda: fits.append(cg.IBCC().fit(graph)))
    thread.start()
    thread.join()
    assert fits[0].converged


def test_a_fit_that_was_complete_says_so(graph, monkeypatch):
    monkeypatch.setattr(cg.MajorityVote, "_fit", interrupted_afterwards(cg.MajorityVote._fit))
    with pytest.raises(FitInterrupted, match=r"interrupted after \d+ iterations\. ") as raised:
        cg.MajorityVote().fit(graph)
    assert raised.value.fit.converged


def interrupted_afterwards(fit):
    def fit_and_press(*arguments, **options):
        result = fit(*arguments, **options)
        signal.raise_signal(signal.SIGINT)
        return result

    return fit_and_press
