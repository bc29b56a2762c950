"""Graphs, fits, tracks and networks as PyTorch tensors: the same numbers, copied."""

import itertools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from builders import crowd, mirrored
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import answered_graphs, graphs

import crowdgraph as cg
from crowdgraph.errors import ParameterError


@pytest.fixture(scope="module")
def answered():
    return crowd(n_volunteers=6, n_items=15, n_responses=60, gold=0.2).graph


def seconds(times):
    return (times - np.datetime64(0, "s")) / np.timedelta64(1, "s") if times.dtype.kind == "M" else times


@given(graphs())
def test_tensors_are_the_columns(graph):
    tensors = graph.to_torch()
    for name in ("volunteer", "item", "label"):
        column = getattr(tensors, name)
        assert column.dtype == torch.int64
        assert column.tolist() == getattr(graph.responses, name).tolist()
    np.testing.assert_allclose(tensors.time.numpy(), seconds(graph.responses.time), rtol=1e-15)
    np.testing.assert_array_equal(tensors.gold.numpy(), graph.gold.probs)
    assert len(tensors) == len(graph.responses)
    assert (tensors.n_volunteers, tensors.n_items) == (len(graph.volunteers), len(graph.items))
    assert (tensors.n_classes, tensors.n_labels) == (len(graph.classes), len(graph.labels))
    for name in ("volunteer", "item", "label"):
        assert getattr(tensors.answers, name).tolist() == getattr(graph.answers, name).tolist()


@given(graphs(time_kinds=("none", "int", "naive", "zoned")), st.sampled_from([0.0, 1e-9, 0.5]))
def test_steps_are_those_of_each_volunteer_in_order_of_time(graph, drift):
    responses = graph.responses
    steps = graph.to_torch().steps(drift=drift)
    assert steps.starts[0] == 0
    for code in range(len(graph.volunteers)):
        rows = np.flatnonzero(responses.volunteer == code)
        own = slice(int(steps.starts[code]), int(steps.starts[code + 1]))
        assert steps.item[own].tolist() == responses.item[rows].tolist()
        assert steps.label[own].tolist() == responses.label[rows].tolist()
        times = responses.time[rows].astype(np.int64).tolist()
        per_second = 10**6 if responses.time.dtype.kind == "M" else 1
        elapsed = [0, *(later - earlier for earlier, later in itertools.pairwise(times))][: len(rows)]
        expected = [min(gap / per_second * drift, 1e6) for gap in elapsed]
        # Times are compared as real numbers, which cannot tell all integers beyond 2**53.
        assert steps.drift[own].tolist() == pytest.approx(expected, rel=1e-9, abs=1e4 * drift)
    assert steps.weight.tolist() == [1.0] * len(responses)


def test_items_that_were_not_answered_are_steps_but_no_answers():
    columns = {"volunteer": ["a", "a", "b"], "item": ["x", "y", "x"], "label": ["yes", None, "no"], "time": [1, 3, 4]}
    tensors = cg.CrowdGraph.from_responses(columns, missing="keep").to_torch()
    assert tensors.label.tolist() == [1, -1, 0]
    assert tensors.answers.item.tolist() == [0, 0]
    steps = tensors.steps(drift=0.5)
    assert steps.label.tolist() == [1, -1, 0]
    assert steps.drift.tolist() == [0, 1, 0]


@given(graphs(time_kinds=("float",)))
def test_times_at_the_ends_of_the_real_numbers_drift_no_further_than_oblivion(graph):
    for dtype in ("float64", "float32"):
        drift = graph.to_torch(dtype=dtype).steps(drift=1.0).drift
        assert ((drift >= 0) & (drift <= 1e6)).all()
        assert (graph.to_torch(dtype=dtype).steps().drift == 0).all()


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CollapsedFitWarning")
@given(answered_graphs(), st.booleans())
def test_the_bound_of_a_fit_is_that_of_its_tensors(graph, own):
    everybody = 1.0 + np.arange(len(graph.classes) * len(graph.labels)).reshape(len(graph.classes), -1) % 3
    prior = {0: everybody * 2, None: everybody} if own else everybody
    fit = cg.IBCC(confusion_prior=prior, tol=1e-9).fit(graph)
    responses, estimate = graph.to_torch(), fit.to_torch()
    assert estimate.confusion_prior.shape[0] == (len(graph.volunteers) if own else 1)
    bound = cg.tensors.lower_bound(
        responses.answers,
        confusion=estimate.confusion,
        classes=estimate.classes,
        confusion_prior=estimate.confusion_prior,
        class_prior=estimate.class_prior,
        gold=responses.gold,
    )
    assert bound.item() == pytest.approx(fit.bound[-1], rel=1e-6, abs=1e-6)


def test_fits_have_what_their_model_has(answered):
    fit = cg.IBCC().fit(answered)
    tensors = fit.to_torch(dtype="float32")
    assert torch.equal(tensors.item_probs, torch.tensor(fit.item_probs, dtype=torch.float32))
    assert torch.equal(tensors.class_probs, torch.tensor(fit.class_probs, dtype=torch.float32))
    assert torch.equal(tensors.classes, torch.tensor(fit.class_concentration, dtype=torch.float32))
    assert torch.equal(tensors.confusion, torch.tensor(fit.confusion.latest().concentration, dtype=torch.float32))
    assert torch.equal(tensors.confusion_prior[0], torch.tensor(fit.prior.shared, dtype=torch.float32))
    assert torch.equal(tensors.class_prior, torch.tensor(fit.prior.class_concentration, dtype=torch.float32))
    voted = cg.MajorityVote().fit(answered).to_torch()
    assert [voted.classes, voted.confusion, voted.confusion_prior, voted.class_prior] == [None] * 4
    assert repr(voted) == "FitTensors(item_probs (15, 2), class_probs (2,); float64, cpu)"


@pytest.mark.parametrize("model", [cg.IBCC(), cg.DynIBCC()])
def test_tracks_keep_steps_times_and_matrices(answered, model):
    track = model.fit(answered).confusion
    tensors = track.to_torch()
    assert tensors.starts.tolist() == track.starts.tolist()
    assert tensors.times.tolist() == seconds(track.times).tolist()
    assert np.array_equal(tensors.concentration.numpy(), track.concentration)
    assert np.array_equal(tensors.initial.numpy(), track.initial)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("dense", [True, False, None])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_networks_become_matrices(is_sparse, dense, dtype):
    weights = mirrored(np.random.default_rng(0).poisson(0.5, (7, 7)) / 3)
    network = cg.VolunteerNetwork(ids=range(7), weights=csr_array(weights) if is_sparse else weights, method="by hand")
    tensor = network.to_torch(dense=dense, dtype=dtype)
    is_dense = not is_sparse if dense is None else dense
    assert tensor.layout == (torch.strided if is_dense else torch.sparse_csr)
    assert tensor.dtype == dtype
    assert torch.equal(tensor.to_dense(), torch.tensor(weights, dtype=dtype))


def test_a_network_without_links_becomes_a_matrix():
    network = cg.VolunteerNetwork(ids=["a", "b"], weights=csr_array((2, 2)), method="by hand")
    assert network.to_torch().to_dense().tolist() == [[0, 0], [0, 0]]


def test_tensors_are_copies(graph, fit):
    before = fit.confusion.concentration.copy()
    tensors, estimate, track = graph.to_torch(device="cpu"), fit.to_torch(), fit.confusion.to_torch()
    network = cg.VolunteerNetwork(ids=["a", "b"], weights=[[0, 1.0], [1.0, 0]], method="by hand")
    for group in (tensors, estimate, track):
        for tensor in group._tensors().values():
            tensor.fill_(5)
    network.to_torch().fill_(5)
    network.to_torch(dense=False).values().fill_(5)
    assert graph.responses.label.max() == 1
    assert np.nanmax(graph.gold.probs) == 1
    assert fit.item_probs.max() == 0.9
    assert np.array_equal(fit.confusion.concentration, before)
    assert network.weights.max() == 1


def test_groups_of_tensors_are_frozen_and_change_precision(graph):
    tensors = graph.to_torch()
    with pytest.raises(FrozenInstanceError):
        tensors.gold = tensors.time
    single = tensors.to(dtype="float32")
    assert (tensors.dtype, single.dtype) == (torch.float64, torch.float32)
    assert single.steps().drift.dtype == torch.float32
    assert single.label.dtype == torch.int64
    assert repr(single) == (
        "ResponseTensors(6 responses of 3 volunteers about 3 items, 2 classes, 2 labels; float32, cpu)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "nowhere"}, "device='nowhere' is not available here"),
        ({"device": "mps"}, "device='mps' is not available here"),
        ({"device": 3.5}, "device=3.5 is not available here"),
        ({"dtype": "float16"}, r"dtype='float16' is not a precision.*dtype='float32'"),
        ({"dtype": "double"}, "dtype='double' is not a precision"),
        ({"dtype": torch.int64}, "dtype=torch.int64 is not a precision"),
        ({"dtype": 64}, "dtype=64 is not a precision"),
        ({"dtype": None}, "dtype=None is not a precision"),
    ],
)
def test_unknown_devices_and_precisions_are_refused(graph, fit, options, message):
    network = cg.VolunteerNetwork(ids=["a", "b"], weights=[[0, 1], [1, 0]], method="by hand")
    for subject in (graph, fit, fit.confusion, network):
        with pytest.raises(ParameterError, match=message):
            subject.to_torch(**options)
    if options.get("dtype", "") is not None:
        with pytest.raises(ParameterError, match=message):
            graph.to_torch().to(**options)


@pytest.mark.parametrize("drift", [-1, float("nan"), float("inf"), "fast", None])
def test_drift_is_a_variance(graph, drift):
    with pytest.raises(ParameterError, match=r"drift=.*finite number of at least 0"):
        graph.to_torch().steps(drift=drift)
