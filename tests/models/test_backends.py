"""What computes: compiled code and tensors give one fit, in double and in single precision, and errors come first."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import crowd
from science.backends import MAX_DIFFERENCE, MAX_RELATIVE_DIFFERENCE, MAX_SINGLE_DIFFERENCE, MODELS, compare

import crowdgraph as cg
from crowdgraph.errors import ParameterError

WITH_BACKENDS = (cg.IBCC, cg.DawidSkene, cg.DynIBCC)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(1_000, 1_008))
def test_backends_and_precisions_agree(name, seed):
    """On crowds and settings drawn at random; `science.test_backends` draws hundreds, with more classes."""
    result = compare(name, seed, n_items=15, max_classes=2)
    assert result.probs <= MAX_DIFFERENCE
    assert result.concentration <= MAX_RELATIVE_DIFFERENCE
    assert result.single_probs <= MAX_SINGLE_DIFFERENCE
    assert result.other_labels == 0


@pytest.mark.parametrize("model", WITH_BACKENDS)
def test_diagnostics_say_what_ran(model):
    graph = crowd(n_volunteers=8, n_items=20, n_responses=80, gold=0.1).graph
    names = ("backend", "device", "dtype")
    for settings, ran in (
        ({}, ("compiled", "cpu", "float64")),
        ({"backend": "torch", "dtype": "float32"}, ("torch", "cpu", "float32")),
    ):
        fit = model(**settings).fit(graph)
        assert tuple(fit.diagnostics[name] for name in names) == ran
        assert fit.item_probs.dtype == fit.confusion.latest().concentration.dtype == np.float64


@pytest.mark.parametrize("model", WITH_BACKENDS)
@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_single_precision_computes_in_single_precision(model, backend):
    """Bits differ from those of double precision, and class probabilities hardly."""
    graph = crowd(n_volunteers=20, n_items=60, n_responses=500, gold=0.1).graph
    single, double = (model(backend=backend, dtype=dtype).fit(graph).item_probs for dtype in ("float32", "float64"))
    assert (single != double).any()
    assert np.array_equal(single, single.astype(np.float32))
    assert np.abs(single - double).max() < MAX_SINGLE_DIFFERENCE


@pytest.mark.parametrize("seed", range(10))
def test_rounding_decides_nothing_where_everybody_answers_once(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 5)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": np.arange(5), "item": [0, 0, 0, 1, 1], "label": labels}, labels=[0, 1]
    )
    compiled, tensors = (cg.IBCC(tol=1e-9, backend=backend).fit(graph) for backend in ("compiled", "torch"))
    single = cg.IBCC(dtype="float32").fit(graph)
    assert np.abs(tensors.item_probs - compiled.item_probs).max() < MAX_DIFFERENCE
    assert np.abs(single.item_probs - compiled.item_probs).max() < MAX_SINGLE_DIFFERENCE


def test_single_precision_raises_a_tolerance_that_it_cannot_reach():
    graph = crowd(n_volunteers=20, n_items=60, n_responses=500, gold=0.1).graph
    for backend in ("compiled", "torch"):
        assert cg.IBCC(tol=1e-12, backend=backend, dtype="float32").fit(graph).converged


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "cuda"}, r"backend='cuda' is not a choice; use one of 'auto', 'compiled', 'torch'"),
        ({"dtype": "float16"}, r"dtype='float16' is not a choice; use one of 'float64', 'float32'"),
        ({"backend": "compiled", "device": "cuda"}, r"backend='compiled' runs on CPUs only; got device='cuda'.*torch"),
        ({"backend": "torch", "device": "nowhere"}, r"device='nowhere' is not available here .*use one of cpu"),
    ],
)
@pytest.mark.parametrize("model", WITH_BACKENDS)
def test_what_cannot_run_is_refused(model, settings, words):
    graph = crowd(n_volunteers=8, n_items=20, n_responses=80, gold=0.1).graph
    with pytest.raises(ParameterError, match=words):
        model(**settings).fit(graph)


def test_maximum_likelihood_needs_double_precision():
    with pytest.raises(ParameterError, match=r"dtype='float32' with smoothing=0: .*smoothing of 1e-06 or more"):
        cg.DawidSkene(dtype="float32", smoothing=0)
    assert cg.DawidSkene(dtype="float32", smoothing=1e-6).smoothing == 1e-6


def test_precisions_may_be_types_of_torch():
    assert cg.IBCC(dtype=torch.float32) == cg.IBCC(dtype="float32")
    with pytest.raises(ParameterError, match="dtype='float16' is not a choice"):
        cg.DynIBCC(dtype=torch.float16)


@pytest.mark.parametrize("outer", [cg.Cautious, cg.Calibrated])
def test_models_around_others_refuse_classifiers(outer):
    """Beside the answers there is a network, which they would throw away."""
    with pytest.raises(ParameterError, match="takes a model with confusion matrices, such as IBCC"):
        outer(model=cg.ClassifierIBCC(features="x"))


@pytest.mark.parametrize("model", [cg.IBCC(learn_prior=True), cg.DynIBCC(published=True)])
@pytest.mark.parametrize("prior", [(1, 1e-4), (1e6, 1)])
def test_extreme_priors_need_double_precision_where_more_is_computed_from_them(model, prior):
    graph = crowd(n_volunteers=8, n_items=20, n_responses=80, gold=0.1).graph
    single = replace(model, confusion_prior=prior, dtype="float32")
    with pytest.raises(ParameterError, match=r"=True needs pseudo-counts from 0.001 to 100000; those of the prior are"):
        single.fit(graph)
    assert replace(single, confusion_prior=(1, 1e-3)).fit(graph).item_probs.shape == (20, 2)
