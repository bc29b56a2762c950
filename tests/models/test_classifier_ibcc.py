"""IBCC with a classifier: it equals IBCC where the classifier knows nothing more, and learns from features."""

from functools import cache

import numpy as np
import pytest
import torch
from builders import crowd
from numpy.testing import assert_allclose, assert_array_equal

import crowdgraph as cg
from crowdgraph.errors import (
    ConvergenceWarning,
    CrowdGraphError,
    InputError,
    ParameterError,
    TrainingError,
    UntrainedClassifierWarning,
)

N_ITEMS = 120


class Constant(torch.nn.Module):
    """A frozen classifier that returns the same logits for all items."""

    def __init__(self, logits):
        super().__init__()
        self.register_buffer("logits", torch.as_tensor(logits))

    def forward(self, rows):
        return self.logits.expand(len(rows), -1)


@cache
def simulated(*, gold=0.0, n_responses=240, seed=0):
    return crowd(0.9, 0.75, 0.6, n_items=N_ITEMS, n_responses=n_responses, gold=gold, seed=seed)


def features_of(truth, *, distance=3.0, seed=0):
    return np.random.default_rng(seed).normal(size=(len(truth), 2)) + distance * truth[:, None]


@cache
def informed(**settings):
    """A crowd, and a fit with features that nearly show the class."""
    one = simulated()
    quick = {"learning_rate": 0.1, "min_gain": 0.01, **settings}
    model = cg.ClassifierIBCC("linear", features=features_of(one.truth.classes), **quick)
    return one, model.fit(one.graph, seed=0)


def accuracy(fit, truth):
    return (fit.item_probs.argmax(axis=1) == truth).mean()


@pytest.mark.parametrize("prior", [(4, 1), "crowd"])
@pytest.mark.parametrize("gold", [0.0, 0.2])
def test_frozen_at_the_class_proportions_it_is_ibcc(prior, gold):
    graph = simulated(gold=gold, n_responses=600).graph
    ibcc = cg.IBCC(confusion_prior=prior, tol=1e-10).fit(graph)
    bias = torch.digamma(torch.tensor(ibcc.class_concentration))
    model = cg.ClassifierIBCC(Constant(bias), features=np.zeros(N_ITEMS), confusion_prior=prior, tol=1e-10)
    fit = model.fit(graph, seed=0)
    assert_allclose(fit.item_probs, ibcc.item_probs, atol=1e-8)
    assert_allclose(fit.confusion.latest().concentration, ibcc.confusion.latest().concentration, rtol=1e-8)
    assert_allclose(fit.class_probs, ibcc.class_probs, atol=1e-8)


def test_features_that_say_nothing_leave_ibcc():
    graph = simulated(n_responses=600).graph
    noise = np.random.default_rng(1).normal(size=(N_ITEMS, 40))
    model = cg.ClassifierIBCC(features=noise, confusion_prior=(4, 1), tol=1e-9, learning_rate=1)
    with pytest.warns(UntrainedClassifierWarning, match="not learned anything.*bring them to a common scale"):
        fit = model.fit(graph, seed=0)
    assert repr(fit).endswith("; rounds of its classifier that were used: 0)")
    assert fit.diagnostics["classifier"]["rounds_used"] == 0
    assert_allclose(fit.item_probs, cg.IBCC(confusion_prior=(4, 1), tol=1e-9).fit(graph).item_probs, atol=1e-6)


def test_features_help():
    one, fit = informed()
    assert accuracy(fit, one.truth.classes) > accuracy(cg.IBCC().fit(one.graph), one.truth.classes) + 0.03
    assert (np.diff(fit.bound) >= -1e-9).all()
    assert fit.bound[-1] > fit.bound[0] + 10
    assert fit.diagnostics["backend"] == "torch"


def test_without_folds_it_is_surer():
    _, fit = informed()
    _, single = informed(folds=1)
    assert single.diagnostics["classifier"]["folds"] == 1
    assert single.bound[-1] > fit.bound[-1]


def test_items_without_answers_have_the_classifiers_probabilities():
    one = simulated()
    nodes = {"item": [*one.graph.items.ids, "new", "newer"]}
    graph = cg.CrowdGraph.from_responses(one.graph.to_pandas(), classes=one.graph.classes, items=nodes)
    rows = np.vstack([features_of(one.truth.classes), [[0.0, 0.0], [3.0, 3.0]]])
    fit = cg.ClassifierIBCC(features=rows, learning_rate=0.05).fit(graph, seed=0)
    with torch.no_grad():
        probs = torch.softmax(fit.classifier(torch.tensor(rows)), dim=1).numpy()
    codes = graph.items.codes(["new", "newer"])
    assert_allclose(fit.item_probs[codes], probs[codes], atol=1e-12)
    assert fit.item_probs[codes].argmax(axis=1).tolist() == [0, 1]


def test_one_answer_each_does_not_lose_classes():
    """IBCC ends with all items in one class here; the fit starts from equal proportions instead."""
    rng = np.random.default_rng(0)
    truth, volunteer = rng.integers(10, size=600), rng.integers(30, size=600)
    right = rng.random(600) < rng.uniform(0.2, 0.95, 30)[volunteer]
    table = {"volunteer": volunteer, "item": range(600), "label": np.where(right, truth, rng.integers(10, size=600))}
    graph = cg.CrowdGraph.from_responses(table, labels=range(10))
    assert len(np.unique(cg.IBCC().fit(graph).item_probs.argmax(axis=1))) == 1
    rows = 4 * np.eye(10)[truth] + rng.normal(size=(600, 10))
    model = cg.ClassifierIBCC(features=rows, learning_rate=0.05, min_gain=0.02)
    assert accuracy(model.fit(graph, seed=0), truth) > 0.9


def test_gold_teaches_the_classifier():
    """Also gold of items that nobody answered."""
    one = simulated(n_responses=60)
    truth = one.truth.classes
    gold = {item: one.graph.classes[code] for item, code in zip(one.graph.items.ids[:60], truth[:60], strict=True)}
    graph = one.graph.with_gold(gold)
    fit = cg.ClassifierIBCC(features=features_of(truth), learning_rate=0.05).fit(graph, seed=0)
    assert accuracy(fit, truth) > 0.95
    assert_array_equal(fit.item_probs[:60].argmax(axis=1), truth[:60])


def test_the_same_seed_gives_the_same_bits_and_the_module_is_unchanged():
    one = simulated()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    model = cg.ClassifierIBCC(net, features=features_of(one.truth.classes), epochs=10, min_gain=0.1)
    state = torch.random.get_rng_state()
    fit, again = model.fit(one.graph, seed=3), model.fit(one.graph, seed=3)
    assert torch.equal(state, torch.random.get_rng_state())
    assert_array_equal(fit.item_probs, again.item_probs)
    for name, value in fit.classifier.state_dict().items():
        assert torch.equal(value, again.classifier.state_dict()[name])
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not fit.classifier.training


def test_features_of_all_kinds_are_the_same():
    one = simulated()
    rows, table = features_of(one.truth.classes), one.graph.to_pandas()
    ids = one.graph.items.ids.tolist()
    position = {item: code for code, item in enumerate(ids)}
    graph = cg.CrowdGraph.from_responses(
        table, classes=one.graph.classes, items={"item": ids, "x": rows[:, 0], "y": rows[:, 1]}
    )
    order = [position[item] for item in graph.items.ids.tolist()]
    kinds = [
        ["x", "y"],
        rows[order],
        torch.tensor(rows[order]),
        dict(zip(ids, rows, strict=True)),
        lambda items: rows[[position[item] for item in items]],
        torch.utils.data.TensorDataset(torch.tensor(rows[order]), torch.zeros(len(ids))),
    ]
    quick = {"learning_rate": 0.1, "batch_size": 60, "min_gain": 0.05}
    fits = [cg.ClassifierIBCC(features=kind, **quick).fit(graph, seed=0) for kind in kinds]
    for fit in fits[1:]:
        assert_array_equal(fit.item_probs, fits[0].item_probs)
    assert fits[0].params["features"] == ["x", "y"]
    assert fits[1].params["features"] == "ndarray of shape (120, 2)"


def test_other_networks_and_optimisers():
    one = simulated()
    truth = one.truth.classes
    pictures = torch.tensor(features_of(truth), dtype=torch.float32)[:, None, :, None]
    torch.manual_seed(0)
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 2))
    model = cg.ClassifierIBCC(
        flat,
        features=pictures,
        optimiser=lambda parameters: torch.optim.LBFGS(parameters, max_iter=5, line_search_fn="strong_wolfe"),
        batch_size=500,
    )
    fit = model.fit(one.graph, seed=0)
    assert accuracy(fit, truth) > 0.93
    fit = cg.ClassifierIBCC(torch.nn.Linear, features=pictures[:, 0, :, 0], learning_rate=0.05).fit(one.graph, seed=0)
    assert accuracy(fit, truth) > 0.93
    assert fit.params["classifier"] == "Linear"


def test_networks_with_norms_over_batches_learn_where_one_item_is_left_over():
    one = crowd(0.9, 0.8, n_items=17, n_responses=68, seed=0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    settings = {"features": features_of(one.truth.classes), "folds": 1, "batch_size": 8, "min_gain": 10.0}
    fit = cg.ClassifierIBCC(network, **settings).fit(one.graph, seed=0)
    assert len(one.graph.items) % settings["batch_size"] == 1
    assert int(fit.classifier[1].num_batches_tracked) == 2 * fit.diagnostics["classifier"]["epochs"]


def test_bounds_in_single_precision_hold_under_strong_priors():
    one = simulated()
    settings = {"features": features_of(one.truth.classes), "confusion_prior": (1e7, 1e6), "learning_rate": 0.1}
    double, single = (
        cg.ClassifierIBCC(**settings, min_gain=0.01, dtype=dtype).fit(one.graph, seed=0)
        for dtype in ("float64", "float32")
    )
    assert_allclose(single.bound[-1], double.bound[-1], rtol=1e-3)
    assert_allclose(single.item_probs, double.item_probs, atol=1e-3)


def test_single_precision_is_close():
    _, fit = informed()
    _, other = informed(dtype="float32")
    assert_allclose(other.item_probs, fit.item_probs, atol=1e-3)


def test_saved_fits_lack_the_classifier(tmp_path):
    one, fit = informed()
    path = tmp_path / "crowd.crowd"
    one.graph.annotate(fit).save(path)
    loaded = cg.load(path).annotations["classifier_ibcc"]
    assert loaded.classifier is None
    assert_array_equal(loaded.item_probs, fit.item_probs)
    assert loaded.params["features"] == "ndarray of shape (120, 2)"


def test_a_loss_that_is_nan_offers_the_last_good_weights():
    class Failing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.calls = torch.nn.Linear(2, 2, dtype=torch.float64), 0

        def forward(self, rows):
            self.calls += self.training
            return self.linear(rows) * (torch.nan if self.calls > 12 else 1.0)

    one = simulated()
    model = cg.ClassifierIBCC(Failing(), features=features_of(one.truth.classes), folds=1, batch_size=100)
    with pytest.raises(
        TrainingError, match=r"loss of the classifier became nan in round 2, epoch 2, batch 1\."
    ) as info:
        model.fit(one.graph, seed=0)
    assert set(info.value.state_dict) == {"linear.weight", "linear.bias"}
    assert all(value.isfinite().all() for value in info.value.state_dict.values())
    model.classifier.load_state_dict(info.value.state_dict)


def test_too_few_rounds_warn():
    one = simulated()
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 rounds.*max_rounds"):
        cg.ClassifierIBCC(features=features_of(one.truth.classes), max_rounds=1).fit(one.graph, seed=0)


def test_a_fit_starts_from_an_earlier_one_and_measures_influence():
    one, fit = informed()
    again = fit.source.model.fit(one.graph, seed=0, start=fit)
    assert accuracy(again, one.truth.classes) >= accuracy(fit, one.truth.classes) - 0.02
    assert again.diagnostics["start"] == "classifier_ibcc"
    assert fit.influence(volunteer=one.graph.volunteers.ids[0]).n_responses > 0


def rows_with(value):
    rows = np.zeros((N_ITEMS, 2))
    rows[3, 1] = value
    return rows


def mapping(*, without=(), extra=()):
    ids = [item for item in simulated().graph.items.ids.tolist() if item not in without]
    return {item: [0.0] for item in [*ids, *extra]}


BAD = [
    ({}, ParameterError, "needs features="),
    ({"features": np.zeros((3, 2))}, InputError, "has 3 rows, and the graph 120 items"),
    ({"features": 3.0}, InputError, "has 1 rows"),
    ({"features": torch.utils.data.TensorDataset(torch.zeros(3, 2))}, InputError, "has 3 rows"),
    ({"features": rows_with(np.nan)}, InputError, "NaN or infinite for 1 of 120 items: 'item-"),
    ({"features": rows_with(np.inf)}, InputError, "NaN or infinite for 1"),
    ({"features": mapping(without=["item-010"])}, InputError, "misses 1 of 120 items: 'item-010'"),
    ({"features": mapping(extra=["item-9999"])}, InputError, "1 items that are not in the graph: 'item-9999'"),
    ({"features": {**mapping(), "item-010": [0.0, 1.0]}}, InputError, "rows of different shapes"),
    ({"features": [[1.0], [1.0, 2.0]]}, InputError, "rows of different shapes"),
    ({"features": [["a"]] * N_ITEMS}, ParameterError, "must be numbers"),
    ({"features": "brightnes"}, ParameterError, "no attribute of the items; .* Did you mean 'brightness'"),
    ({"features": ["brightness", "size"]}, ParameterError, "names 'size'"),
    ({"features": "colour"}, ParameterError, "'colour' is not made of numbers"),
    ({"classifier": "lineer", "features": "brightness"}, ParameterError, "classifier='lineer' must be 'linear'"),
    ({"classifier": 3, "features": "brightness"}, ParameterError, "classifier=3"),
    ({"classifier": torch.nn.Linear(1, 7), "features": "brightness"}, ParameterError, "expected logits of shape .2, 2"),
    ({"classifier": torch.nn.Linear(5, 2), "features": "brightness"}, ParameterError, "cannot take features of shape"),
    ({"classifier": lambda n, m: None, "features": "brightness"}, ParameterError, "returned a NoneType"),
    ({"optimiser": 1, "features": "brightness"}, ParameterError, "optimiser=1"),
    ({"folds": 0, "features": "brightness"}, ParameterError, "folds=0"),
    ({"batch_size": 0, "features": "brightness"}, ParameterError, "batch_size=0"),
    ({"epochs": 0, "features": "brightness"}, ParameterError, "epochs=0"),
    ({"learning_rate": 0, "features": "brightness"}, ParameterError, "learning_rate=0"),
    ({"device": "toaster", "features": "brightness"}, CrowdGraphError, "toaster"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input(settings, kind, message):
    graph = simulated().graph
    ids = graph.items.ids.tolist()
    nodes = {"item": ids, "brightness": np.linspace(0, 1, len(ids)), "colour": ["red"] * len(ids)}
    graph = cg.CrowdGraph.from_responses(graph.to_pandas(), classes=graph.classes, items=nodes)
    with pytest.raises(kind, match=message):
        cg.ClassifierIBCC(**settings).fit(graph, seed=0)


def test_a_fit_with_a_classifier_is_not_calibrated():
    with pytest.raises(ParameterError, match="has a classifier beside the answers"):
        informed()[1].calibrated()


def test_models_are_equal_only_to_themselves():
    model = cg.ClassifierIBCC(features="brightness")
    assert model == model
    assert model != cg.ClassifierIBCC(features="darkness")
    assert len({model, model}) == 1
