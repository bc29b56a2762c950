"""Crowds drawn from known confusion matrices, and what the intervals and probabilities of fits are worth on them.

Run ``python -m science.planted_crowds`` in the folder ``tests``, or ``make check-science``.
"""

import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
from science.scoring import item_scores, table, uniformity
from scipy.stats import beta

import crowdgraph as cg


@dataclass(frozen=True)
class Crowd:
    """A graph, the true class of each item (by the graph's codes) and the true confusion of each volunteer."""

    graph: cg.CrowdGraph
    truth: np.ndarray
    confusion: np.ndarray


def draw_crowd(rng, confusion, n_answers, *, n_items, class_probs, n_gold=0, labels=None):
    """Draw a crowd whose volunteer k answers `n_answers[k]` different items, by the rows of ``confusion[k]``.

    Classes are "0", "1" and so on, and so are labels unless named; gold is that of the first items.
    """
    n_volunteers, n_classes, n_labels = confusion.shape
    labels = [str(code) for code in range(n_labels)] if labels is None else labels
    truth = rng.choice(n_classes, n_items, p=class_probs)
    item = np.concatenate([rng.choice(n_items, n, replace=False) for n in n_answers])
    volunteer = np.repeat(np.arange(n_volunteers), n_answers)
    cumulative = confusion[volunteer, truth[item]].cumsum(axis=1)
    said = np.minimum((rng.random(len(item))[:, None] > cumulative).sum(axis=1), n_labels - 1)
    order = rng.permutation(len(item))
    names = [f"v{code:04}" for code in range(n_volunteers)]
    classes = [str(code) for code in range(n_classes)]
    graph = cg.CrowdGraph.from_responses(
        {
            "volunteer": [names[code] for code in volunteer[order]],
            "item": item[order],
            "label": [labels[code] for code in said[order]],
        },
        gold={code: classes[truth[code]] for code in np.unique(item)[:n_gold].tolist()} or None,
        classes=classes,
        labels=labels,
    )
    place = [names.index(name) for name in graph.volunteers.ids.tolist()]
    return Crowd(graph, truth[graph.items.ids.astype(int)], confusion[place])


# Coverage of intervals on crowds of known accuracy.


def one_coin(accuracies, n_classes, *, unsure=0.0):
    """Confusion matrices (K, J, L) of volunteers who are equally good at all classes; `unsure` adds a label."""
    accuracies = np.asarray(accuracies)[:, None, None]
    wrong = (1 - accuracies - unsure) / (n_classes - 1)
    matrix = np.where(np.eye(n_classes) > 0, accuracies, wrong)
    return np.concatenate([matrix, np.full((*matrix.shape[:2], 1), unsure)], axis=2) if unsure else matrix


@dataclass(frozen=True)
class Planted:
    """80 volunteers who each answer `n_answers` of 300 items, 60 of them with gold."""

    accuracies: tuple[float, ...]
    n_classes: int
    n_answers: int
    unsure: float = 0.0

    @property
    def votes(self):
        """What labels vote for, where "can't tell" is one of them."""
        names = {str(code): str(code) for code in range(self.n_classes)}
        return {**names, "can't tell": None} if self.unsure else None

    def draw(self, seed):
        accuracies = np.resize(self.accuracies, 80)
        confusion = one_coin(accuracies, self.n_classes, unsure=self.unsure)
        labels = list(self.votes) if self.unsure else None
        classes = np.full(self.n_classes, 1 / self.n_classes)
        n_answers = np.full(80, self.n_answers)
        rng = np.random.default_rng(seed)
        return draw_crowd(rng, confusion, n_answers, n_items=300, class_probs=classes, n_gold=60, labels=labels)


PLANTED = {
    "2 labels, 15 answers": Planted((0.9,), 2, 15),
    "2 labels, 30 answers": Planted((0.9,), 2, 30),
    "2 classes and can't tell, 15": Planted((0.9,), 2, 15, unsure=0.05),
    "2 classes and can't tell, 30": Planted((0.9,), 2, 30, unsure=0.05),
    "2 classes and can't tell, 60": Planted((0.9,), 2, 60, unsure=0.05),
    "5 labels, 30 answers": Planted((0.9,), 5, 30),
    "5 labels, 100 answers": Planted((0.9,), 5, 100),
    "2 labels, .9 and .6, 10 answers": Planted((0.9, 0.6), 2, 10),
}
# A function from votes to the model, whether its fit is calibrated, and how many crowds to draw.
INTERVAL_ROWS = {
    "IBCC, prior (4, 1)": (lambda votes: cg.IBCC(votes=votes, confusion_prior=(4, 1)), False, 10),
    "IBCC": (lambda votes: cg.IBCC(votes=votes), False, 10),
    "IBCC, calibrated": (lambda votes: cg.IBCC(votes=votes), True, 10),
    "DynIBCC": (lambda votes: cg.DynIBCC(votes=votes), False, 10),
    "GibbsIBCC": (lambda votes: cg.GibbsIBCC(votes=votes, chains=2, max_draws=1_000), False, 2),
}


def fit_or_none(model, graph, *, calibrated=False):
    """Return the fit, calibrated if asked; None where fits cannot be calibrated yet."""
    fit = model.fit(graph, seed=0)
    if not calibrated:
        return fit
    return fit.calibrated() if hasattr(fit, "calibrated") else None


def planted_coverage(planted, model, calibrated, n_seeds):
    """Return the share of volunteers whose true accuracy lies in the 90 % interval of ``volunteers_to_frame``."""
    inside = []
    for seed in range(n_seeds):
        crowd = planted.draw(seed)
        fit = fit_or_none(model(planted.votes), crowd.graph, calibrated=calibrated)
        if fit is None:
            return np.nan
        frame = fit.volunteers_to_frame().set_index("volunteer").loc[crowd.graph.volunteers.ids.tolist()]
        true = crowd.confusion[:, range(planted.n_classes), range(planted.n_classes)].mean(axis=1)
        inside.append(((frame["low"] <= true) & (true <= frame["high"])).mean())
    return float(np.mean(inside))


def planted_table(rows=None):
    """Return {row: {planted crowd: coverage}}."""
    return {
        title: {name: planted_coverage(planted, *row) for name, planted in PLANTED.items()}
        for title, row in (rows or INTERVAL_ROWS).items()
    }


# Simulation-based calibration: truth drawn from the prior of the model itself.

N_BUSY, N_VOLUNTEERS, N_ITEMS = 10, 100, 500
ACTIVITY = np.r_[np.full(N_BUSY, 300), np.full(N_VOLUNTEERS - N_BUSY, 20)]
MATRIX = np.array([[6.0, 2.0], [2.0, 6.0]])


def draw_rows(rng, concentration):
    """Draw confusion matrices from Dirichlet distributions of their rows."""
    draws = rng.gamma(concentration) + 1e-300
    return draws / draws.sum(axis=-1, keepdims=True)


def from_matrix(rng):
    """Rows from a Dirichlet that all volunteers share."""
    return draw_rows(rng, np.broadcast_to(MATRIX, (N_VOLUNTEERS, 2, 2)))


def gibbs():
    """Gibbs sampling of the same model: exact but for chance, so what it fails is wrong with the check."""
    return cg.GibbsIBCC(confusion_prior=MATRIX, chains=2, burn_in=200, max_draws=500)


def from_coins(rng):
    """Each volunteer's own accuracy from Beta(9, 3), and rows around the one-coin matrix of it, with strength 8."""
    return draw_rows(rng, 8 * one_coin(rng.beta(9, 3, N_VOLUNTEERS), 2))


# Where the truth comes from, the model, whether its fit is calibrated, and how many crowds to draw.
SBC_ROWS = {
    "matrix prior: IBCC with it": (from_matrix, lambda: cg.IBCC(confusion_prior=MATRIX), False, 300),
    "matrix prior: the same, calibrated": (from_matrix, lambda: cg.IBCC(confusion_prior=MATRIX), True, 300),
    "matrix prior: GibbsIBCC with it": (from_matrix, gibbs, False, 60),
    "hierarchical prior: IBCC, prior (4, 1)": (from_coins, lambda: cg.IBCC(confusion_prior=(4, 1)), False, 300),
    "hierarchical prior: IBCC": (from_coins, cg.IBCC, False, 300),
    "hierarchical prior: IBCC, calibrated": (from_coins, cg.IBCC, True, 300),
}
SBC_COLUMNS = ("crowds", "coverage", "busiest", "KS distance", "p (KS)", "p (chi-square)")
SBC_ITEM_COLUMNS = ("stated", "right", "ECE", "log loss", "PIT coverage", "of unsure items", "KS distance", "p (KS)")


def simulation_based_calibration(draw, model, calibrated, n_crowds):
    """Return the scores of volunteers' posteriors and of items' probabilities where the truth is drawn from a prior.

    Class proportions are uniform on the simplex, as in the model. Of 100 volunteers, ten answer 300 of 500 items and 90
    answer 20. The PIT of a volunteer is the probability that the posterior of their accuracy (the Beta with its mean
    and variance, as in ``volunteers_to_frame``) gives to values below the true accuracy. The PIT of an item is a random
    number between the probabilities of the classes before its class, and of these and its class. Both are uniform where
    posteriors are honest; unsure items are those without a class of probability .9. Volunteers and items of one crowd
    depend on one another, so p-values are of one of them per crowd, drawn at random; the distance is of all.

    The busiest are the hardest: their intervals are so narrow that the class proportions, which ``volunteers_to_frame``
    takes as known, cost one per cent of coverage, and mean-field variational Bayes another (80 crowds: .893 by draws
    from the joint posterior, .883 by GibbsIBCC's Dirichlets, .869 by IBCC).
    """
    volunteers, items, scores, chosen_volunteers, chosen_items = [], [], [], [], []
    for seed in range(n_crowds):
        rng = np.random.default_rng([17, seed])
        class_probs = rng.dirichlet([1.0, 1.0])
        crowd = draw_crowd(rng, draw(rng), ACTIVITY, n_items=N_ITEMS, class_probs=class_probs)
        fit = fit_or_none(model(), crowd.graph, calibrated=calibrated)
        if fit is None:
            return None
        pit = accuracy_pit(fit, crowd, class_probs)
        busy = np.argsort(-crowd.graph.answers.n_by_volunteer, kind="stable")[:N_BUSY]
        volunteers.append((pit, pit[busy]))
        chosen_volunteers.append(rng.choice(pit))
        before = np.concatenate([np.zeros((len(crowd.truth), 1)), fit.item_probs.cumsum(axis=1)], axis=1)
        rows = np.arange(len(crowd.truth))
        items.append(before[rows, crowd.truth] + rng.random(len(rows)) * fit.item_probs[rows, crowd.truth])
        chosen_items.append(rng.choice(items[-1]))
        scores.append((fit.item_probs, crowd.truth))
    everybody, busiest = (np.concatenate(part) for part in zip(*volunteers, strict=True))
    all_items, all_probs = np.concatenate(items).clip(0, 1), np.concatenate([probs for probs, _ in scores])
    item = item_scores(all_probs, np.concatenate([truth for _, truth in scores]))
    ks, chi_square = uniformity(chosen_volunteers)
    return {
        "crowds": n_crowds,
        "coverage": inside(everybody),
        "busiest": inside(busiest),
        "KS distance": distance(everybody),
        "p (KS)": ks,
        "p (chi-square)": chi_square,
    }, {
        "stated": all_probs.max(axis=1).mean(),
        "right": item["accuracy"],
        "ECE": item["ECE"],
        "log loss": item["log loss"],
        "PIT coverage": inside(all_items),
        "of unsure items": inside(all_items[all_probs.max(axis=1) < 0.9]),
        "KS distance": distance(all_items),
        "p (KS)": uniformity(np.clip(chosen_items, 0, 1))[0],
    }


def accuracy_pit(fit, crowd, class_probs):
    """Where the true accuracy of each volunteer, with the true class proportions, lies in its posterior."""
    concentration = fit.confusion.latest().concentration
    classes = range(len(class_probs))
    total = concentration.sum(axis=2)
    share = concentration[:, classes, classes] / total
    mean = (share @ fit.class_probs).clip(1e-9, 1 - 1e-9)
    variance = (share * (1 - share) / (total + 1)) @ fit.class_probs**2
    strength = np.maximum(mean * (1 - mean) / variance - 1, 1e-9)
    true = crowd.confusion[:, classes, classes] @ class_probs
    return beta.cdf(true, strength * mean, strength * (1 - mean))


def inside(pit):
    """The share of values in the central 90 %."""
    return float(((pit >= 0.05) & (pit <= 0.95)).mean())


def distance(values):
    """The Kolmogorov-Smirnov distance from the uniform distribution."""
    values = np.sort(values)
    steps = np.arange(len(values) + 1) / len(values)
    return float(max((steps[1:] - values).max(), (values - steps[:-1]).max()))


# What calibration costs where answers really are independent.

INDEPENDENT = {
    "2 classes, 5 answers an item": (2, 5),
    "2 classes, 20 answers an item": (2, 20),
    "4 classes, 5 answers an item": (4, 5),
    "4 classes, 20 answers an item": (4, 20),
}
INDEPENDENT_ROWS = {
    "IBCC": (0.0, False),
    "calibrated, correlation assumed": (0.0, True),
    "IBCC, gold for 10 %": (0.1, False),
    "calibrated, gold for 10 %": (0.1, True),
    "IBCC, gold for 30 %": (0.3, False),
    "calibrated, gold for 30 %": (0.3, True),
}


def independent_table(*, n_seeds=5, n_items=600, n_volunteers=60):
    """Return {row: {crowd: (accuracy, log loss)}} for crowds whose answers are independent given the class.

    Accuracies are Beta(6, 3), so from .4 to .9 for most, the same for all classes. All rows are scored on the 70 % of
    items whose gold is never given.
    """
    scored = slice(round(0.3 * n_items), None)
    results = {title: {} for title in INDEPENDENT_ROWS}
    for name, (n_classes, per_item) in INDEPENDENT.items():
        for title, (share, calibrated) in INDEPENDENT_ROWS.items():
            runs = []
            for seed in range(n_seeds):
                rng = np.random.default_rng([23, seed])
                confusion = one_coin(rng.beta(6, 3, n_volunteers), n_classes)
                n_answers = np.full(n_volunteers, per_item * n_items // n_volunteers)
                classes = np.full(n_classes, 1 / n_classes)
                crowd = draw_crowd(
                    rng, confusion, n_answers, n_items=n_items, class_probs=classes, n_gold=round(share * n_items)
                )
                fit = fit_or_none(cg.IBCC(), crowd.graph, calibrated=calibrated)
                if fit is not None:
                    order = np.argsort(crowd.graph.items.ids.astype(int))[scored]
                    scores = item_scores(fit.item_probs[order], crowd.truth[order])
                    runs.append((scores["accuracy"], scores["log loss"]))
            if runs:
                results[title][name] = tuple(np.mean(runs, axis=0))
    return results


def describe_independent(results):
    cells = {
        title: {name: f"{accuracy:.3f}, {loss:.3f}" for name, (accuracy, loss) in row.items()}
        for title, row in results.items()
    }
    return table(cells, list(INDEPENDENT), title="independent answers: accuracy, log loss")


def main():
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    print(table(planted_table(), list(PLANTED), title="coverage of the true accuracy by the 90 % interval") + "\n")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    results = {title: simulation_based_calibration(*row) for title, row in SBC_ROWS.items()}
    results = {title: result for title, result in results.items() if result}
    volunteers = {title: result[0] for title, result in results.items()}
    print(table(volunteers, SBC_COLUMNS, title="truth from the prior: volunteers' accuracy") + "\n")
    items = {title: result[1] for title, result in results.items()}
    print(table(items, SBC_ITEM_COLUMNS, title="truth from the prior: items") + "\n")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(describe_independent(independent_table()))
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
