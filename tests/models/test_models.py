"""Every model keeps the promises that all models make."""

import dataclasses

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.models import Model
from crowdgraph.testing import _crowd, check_model

MODELS = [
    getattr(cg.models, name)
    for name in cg.models.__all__
    if isinstance(getattr(cg.models, name), type)
    and issubclass(getattr(cg.models, name), Model)
    and getattr(cg.models, name) is not Model
]
# Features that nearly show the classes of the items of `check_model`.
CHECKED = _crowd(0)
FEATURES = dict(
    zip(
        CHECKED.graph.items.ids.tolist(),
        (CHECKED.truth.classes + np.random.default_rng(0).normal(0, 0.5, len(CHECKED.graph.items)))[:, None],
        strict=True,
    )
)
# Models that draw: settings that keep the test short, and how far sampling may move their answers. Settings they need.
SETTINGS = {
    "GibbsIBCC": ({"stop_change": 0.2}, 0.1),
    "ClassifierIBCC": ({"features": lambda items: [FEATURES[item] for item in items]}, 1e-6),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_every_model_keeps_the_promises_of_all(kind):
    settings, atol = SETTINGS.get(kind.__name__, ({}, 1e-6))
    check_model(kind(**settings), atol=atol)


@pytest.mark.parametrize(
    "model",
    [
        cg.MajorityVote(output="winner"),
        cg.WeightedMajority(output="winner", factor=0.5),
        cg.IBCC(learn_prior=True, tol=1e-8),
        cg.IBCC(confusion_prior="gold", tol=1e-8),
        cg.IBCC(confusion_prior=(2, 0.5), accelerate=False, class_prior=3),
        cg.IBCC(restarts=2, tol=1e-9),
        cg.DawidSkene(smoothing=0),
        cg.Cautious(difficulty=False),
    ],
    ids=lambda model: model.name,
)
def test_other_settings_keep_the_promises_too(model):
    check_model(model)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_models_are_frozen_and_take_keywords_only(kind):
    """And they are found at the top level under their own name."""
    assert getattr(cg, kind.__name__) is kind
    needed = {"features": "brightness"} if kind is cg.ClassifierIBCC else {}
    with pytest.raises(TypeError):
        # Only a classifier is no keyword.
        kind(*["linear", 1][not needed :], **needed)
    model = kind(**needed)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "another"
    assert needed or model == kind()
    assert list(model.settings()) == [field.name for field in dataclasses.fields(kind)]


def test_every_model_file_is_exported():
    names = {kind.__name__ for kind in Model.__subclasses__() if kind.__module__.startswith("crowdgraph.models")}
    assert names == {kind.__name__ for kind in MODELS}


def broken(spoil):
    """A model that breaks a promise: it returns a majority vote, spoiled."""

    class Broken(Model):
        name = "broken"

        def _fit(self, graph, **options):
            return spoil(cg.MajorityVote()._fit(graph, **options), graph)

    return Broken()


def test_the_check_fails_models_that_are_wrong():
    """The contract can fail: each of these breaks one promise."""
    draws = iter(range(1000))
    wrong = {
        "the bound fell": lambda fit, graph: dataclasses.replace(fit, bound=[1.0, 0.5]),
        "gave other probabilities": lambda fit, graph: dataclasses.replace(
            fit, item_probs=_mixed(fit.item_probs, 1e-3 * next(draws))
        ),
        "did more": lambda fit, graph: dataclasses.replace(fit, item_probs=_toward_first(fit.item_probs)),
        "the majority for": lambda fit, graph: dataclasses.replace(fit, item_probs=fit.item_probs[:, ::-1]),
    }
    names = {}

    def by_name(fit, graph):
        first = min(graph.volunteers.ids.tolist())
        share = names.setdefault(first, 0.01 * len(names))
        return dataclasses.replace(fit, item_probs=_mixed(fit.item_probs, share))

    wrong["other names of volunteers changed the probabilities"] = by_name
    for message, spoil in wrong.items():
        with pytest.raises(AssertionError, match=message):
            check_model(broken(spoil))


def test_the_check_sees_a_volunteer_who_left_the_prior():
    class Forgetful(cg.IBCC):
        name = "forgetful"

        def _fit(self, graph, **options):
            fit = super()._fit(graph, **options)
            return dataclasses.replace(fit, prior=dataclasses.replace(fit.prior, shared=fit.prior.shared * 2))

    with pytest.raises(AssertionError, match="a volunteer without responses left the prior"):
        check_model(Forgetful())


def _mixed(probs, share):
    return (1 - share) * probs + share / probs.shape[1]


def _toward_first(probs):
    pushed = probs.copy()
    pushed[:, 0] += 0.1
    return pushed / pushed.sum(axis=1, keepdims=True)
