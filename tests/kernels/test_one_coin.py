"""One accuracy for each volunteer: the posterior against enumeration, the end against a general optimiser."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from crowdgraph.kernels.one_coin import CodedAnswers, class_posterior, fit_one_coin, one_coin_confusion

N_ITEMS, N_CLASSES, ACCURACIES = 60, 3, np.array([0.9, 0.75, 0.6, 0.4])


@pytest.fixture
def crowd():
    """Everybody answers every item, as the model says."""
    rng = np.random.default_rng(5)
    classes = rng.choice(N_CLASSES, p=[0.5, 0.3, 0.2], size=N_ITEMS)
    wrong = (classes[:, None] + rng.integers(1, N_CLASSES, (N_ITEMS, len(ACCURACIES)))) % N_CLASSES
    labels = np.where(rng.random(wrong.shape) < ACCURACIES, classes[:, None], wrong)
    items, volunteers = np.indices(labels.shape)
    return CodedAnswers(volunteers.ravel(), items.ravel(), labels.ravel(), N_ITEMS)


def log_likelihood(crowd, accuracy, class_probs):
    """The log likelihood, one class and one volunteer after another."""
    labels = crowd.label.reshape(N_ITEMS, len(ACCURACIES))
    terms = np.tile(np.log(class_probs), (N_ITEMS, 1))
    for name in range(N_CLASSES):
        for who in range(len(ACCURACIES)):
            wrong = np.log((1 - accuracy[who]) / (N_CLASSES - 1))
            terms[:, name] += np.where(labels[:, who] == name, np.log(accuracy[who]), wrong)
    return float(logsumexp(terms, axis=1).sum())


def shares(crowd):
    counts = np.zeros((crowd.n_items, N_CLASSES))
    np.add.at(counts, (crowd.item, crowd.label), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def test_posterior_is_that_of_enumeration():
    """The probability of every joint assignment of classes, summed."""
    rng = np.random.default_rng(0)
    crowd = CodedAnswers(np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 2, 2]), np.array([1, 0, 2, 1, 0]), 3)
    confusion, class_probs = rng.dirichlet(np.ones(3), size=(2, 2)), np.array([0.3, 0.7])
    expected, total = np.zeros((3, 2)), 0.0
    for classes in itertools.product(range(2), repeat=3):
        joint = np.prod(class_probs[list(classes)])
        for who, item, label in zip(*crowd[:3], strict=True):
            joint *= confusion[who, classes[item], label]
        total += joint
        expected[range(3), classes] += joint
    np.testing.assert_allclose(class_posterior(crowd, confusion, class_probs), expected / total, rtol=1e-12)


def test_confusion_of_one_coin():
    confusion = one_coin_confusion(np.array([0.7, 1.0]), 3)
    np.testing.assert_allclose(confusion[0], [[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]])
    np.testing.assert_array_equal(confusion[1], np.eye(3))


def test_ends_at_the_maximum_of_the_likelihood(crowd):
    fit = fit_one_coin(crowd, shares(crowd), n_volunteers=4, max_iter=5_000, tol=1e-12, least=1e-10)

    def loss(free):
        return -log_likelihood(crowd, expit(free[:4]), softmax([*free[4:], 0.0]))

    best = minimize(loss, np.array([1.0, 1, 1, 0, 0, 0]), tol=1e-9)
    np.testing.assert_allclose(log_likelihood(crowd, fit.accuracy, fit.class_probs), -best.fun, rtol=1e-9)
    np.testing.assert_allclose(fit.accuracy, expit(best.x[:4]), atol=1e-3)


def test_no_sweep_lowers_the_likelihood(crowd):
    fits = [fit_one_coin(crowd, shares(crowd), n_volunteers=4, max_iter=n, tol=0.0, least=1e-10) for n in range(8)]
    values = [log_likelihood(crowd, fit.accuracy, fit.class_probs) for fit in fits]
    assert np.all(np.diff(values) > 0)
    assert [fit.n_iter for fit in fits] == list(range(8))
