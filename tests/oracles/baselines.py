"""The paper's baselines and an oracle, written out plainly, for measuring how hard a simulated crowd is.

They know nothing of crowdgraph's models: responses go through them one by one, in order of time.
"""

import numpy as np
from sklearn.metrics import roc_auc_score


def votes(labels):
    """Scores 1 and 3 vote for a supernova, -1 against."""
    return [label > 0 for label in labels]


def trained_weights(responses, true_class, training, beta):
    """Littlestone and Warmuth: a volunteer's weight falls by a factor at each mistake on a training item."""
    weights = {}
    for volunteer, item, label in responses:
        weights.setdefault(volunteer, 1.0)
        if item in training and (label > 0) != (true_class[item] == 1):
            weights[volunteer] *= beta
    return weights


def scores(responses, weights, *, vote):
    """For each item the weighted mean score or, with `vote`, 1 where most of the weight votes for a supernova."""
    totals, sums = {}, {}
    for volunteer, item, label in responses:
        weight = weights[volunteer]
        totals[item] = totals.get(item, 0.0) + weight
        sums[item] = sums.get(item, 0.0) + weight * ((label > 0) if vote else label)
    mean = {item: sums[item] / totals[item] for item in totals}
    return {item: float(value > 0.5) for item, value in mean.items()} if vote else mean


def oracle_scores(graph, truth):
    """Log odds of a supernova for someone who knows every volunteer's true confusion at every response."""
    rows = np.arange(len(graph.responses))
    log = np.log(truth.confusion)
    gain = log[rows, 1, graph.responses.label] - log[rows, 0, graph.responses.label]
    return np.bincount(graph.responses.item, gain, minlength=len(graph.items))


def cross_validated(graph, truth, *, beta=0.9, n_folds=5, seed=0):
    """Mean AUC over folds of each baseline and of the oracle."""
    labels = [graph.labels[code] for code in graph.responses.label]
    responses = list(zip(graph.responses.volunteer.tolist(), graph.responses.item.tolist(), labels, strict=True))
    folds = np.random.default_rng(seed).permutation(len(graph.items)) % n_folds
    known = oracle_scores(graph, truth)
    equal = dict.fromkeys(range(len(graph.volunteers)), 1.0)
    aucs = {"oracle": [], "mean score": [], "weighted sum": [], "majority": [], "weighted majority": []}
    for fold in range(n_folds):
        training = set(np.flatnonzero(folds != fold).tolist())
        hidden = np.flatnonzero(folds == fold)
        trained = trained_weights(responses, truth.classes, training, beta)
        outputs = {
            "oracle": known,
            "mean score": scores(responses, equal, vote=False),
            "weighted sum": scores(responses, trained, vote=False),
            "majority": scores(responses, equal, vote=True),
            "weighted majority": scores(responses, trained, vote=True),
        }
        for name, output in outputs.items():
            aucs[name].append(roc_auc_score(truth.classes[hidden], [output[item] for item in hidden]))
    return {name: float(np.mean(values)) for name, values in aucs.items()}
