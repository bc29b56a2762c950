"""Other people's models of crowds, written out from their papers' equations: EBCC, BWA, and two simple rules.

They know nothing of crowdgraph's models. Answers come as `Answers`: plain arrays of codes. All of them return class
probabilities of shape (N, J).
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, softmax


@dataclass(frozen=True)
class Answers:
    """Who said what of which item, and which class each label votes for (-1 for none).

    `gold` has the class of each item, or -1 where it is not known.
    """

    item: np.ndarray
    volunteer: np.ndarray
    label: np.ndarray
    targets: np.ndarray
    gold: np.ndarray
    n_volunteers: int
    n_classes: int

    @classmethod
    def of(cls, graph, votes=None):
        """Return the answers of a graph; without `votes`, labels vote for the classes that they name."""
        votes = {label: label if label in graph.classes else None for label in graph.labels} if votes is None else votes
        answers = graph.answers
        return cls(
            item=np.asarray(answers.item, dtype=np.int64),
            volunteer=np.asarray(answers.volunteer, dtype=np.int64),
            label=np.asarray(answers.label, dtype=np.int64),
            targets=np.array([-1 if votes[x] is None else graph.classes.index(votes[x]) for x in graph.labels]),
            gold=np.asarray(graph.gold.codes),
            n_volunteers=len(graph.volunteers),
            n_classes=len(graph.classes),
        )

    def unique(self):
        """Return the answers without those that a volunteer repeats word for word, as the papers' authors do."""
        rows = np.unique(np.stack([self.item, self.volunteer, self.label]), axis=1)
        return Answers(*rows, self.targets, self.gold, self.n_volunteers, self.n_classes)

    @property
    def vote_counts(self):
        """How many votes each item has for each class, (N, J)."""
        target = self.targets[self.label]
        cells = (self.item * self.n_classes + target)[target >= 0]
        return np.bincount(cells, minlength=len(self.gold) * self.n_classes).reshape(-1, self.n_classes)

    @property
    def log_gold(self):
        """0 where a class is possible, minus infinity where gold rules it out, (N, J)."""
        possible = (self.gold[:, None] < 0) | (self.gold[:, None] == np.arange(self.n_classes))
        return np.where(possible, 0.0, -np.inf)


def smoothed_votes(answers, *, added=1.0):
    """Shares of the votes, with `added` votes for each class."""
    counts = answers.vote_counts + added
    return counts / counts.sum(axis=1, keepdims=True)


def design_effect(answers, concentration, class_probs, *, rho=0.5):
    r"""Class probabilities for answers that have the intraclass correlation `rho` given the class.

    .. math:: \ln p_{ij} = T_i (\ln E[\kappa_j] + \sum_r \ln E[\pi^{(k_r)}_{j, l_r}]) + const, \quad
              T_i = 1 / (1 + \rho (n_i - 1)),

    with posterior means of a fit's `concentration`, (K, J, L); an item's n answers count as n T of them.
    """
    mean = concentration / concentration.sum(axis=2, keepdims=True)
    rows = np.log(mean[answers.volunteer, :, answers.label])
    evidence = np.stack([np.bincount(answers.item, row, minlength=len(answers.gold)) for row in rows.T], axis=1)
    n_answers = np.bincount(answers.item, minlength=len(answers.gold))
    power = 1 / (1 + rho * np.maximum(n_answers - 1, 0))
    return softmax(power[:, None] * (np.log(class_probs) + evidence) + answers.log_gold, axis=1)


@dataclass(frozen=True)
class EBCCFit:
    probs: np.ndarray
    bounds: list[float]
    n_iter: int


def ebcc(
    answers,
    *,
    n_groups=10,
    group_prior=0.1,
    pair=(4.0, 1.0),
    class_prior=None,
    restarts=1,
    max_iter=500,
    tol=1e-3,
    seed=0,
):
    r"""Enhanced Bayesian classifier combination: Li, Rubinstein and Cohn (ICML 2019), by mean-field variational Bayes.

    An item of class k belongs to one of M subtypes, and volunteers' confusion depends on the subtype, so that answers
    are correlated given the class:

    .. math::
        \tau \sim Dir(\alpha), \quad z_i \sim \tau, \quad \pi_k \sim Dir(a_\pi / M), \quad g_i \mid z_i = k \sim \pi_k,
        \quad v_{jkm} \sim Dir(\beta_k), \quad y_{ij} \mid z_i = k, g_i = m \sim v_{jkm}.

    The authors' settings: ten subtypes, :math:`a_\pi = .1`, pseudo-counts (4, 1), :math:`\alpha_k` the sum over items
    of the share of votes for class k, the start with the highest bound (they try forty). Items with gold keep their
    class; their subtype is inferred.
    """
    answers = answers.unique()
    fits = [
        _ebcc_once(
            answers, n_groups, group_prior, pair, class_prior, max_iter, tol, np.random.default_rng(seed + start)
        )
        for start in range(restarts)
    ]
    return max(fits, key=lambda fit: fit.bounds[-1])


def _ebcc_once(answers, n_groups, group_prior, pair, class_prior, max_iter, tol, rng):
    n_items, n_classes, n_labels = len(answers.gold), answers.n_classes, len(answers.targets)
    n_volunteers = answers.n_volunteers
    cells = (answers.item, answers.volunteer * n_labels + answers.label)
    said = csr_array((np.ones(len(answers.item)), cells), shape=(n_items, n_volunteers * n_labels))
    heard = csr_array(said.T)
    prior = np.where(answers.targets == np.arange(n_classes)[:, None], *pair)  # beta, (J, L)
    # A table of what each volunteer's labels say of each class and subtype, (K, L, J, M).
    table_prior = np.broadcast_to(prior.T[None, :, :, None], (n_volunteers, n_labels, n_classes, n_groups))
    log_gold = answers.log_gold
    votes = np.where(np.isfinite(log_gold), answers.vote_counts + 1e-12, 0.0)
    probs = votes / votes.sum(axis=1, keepdims=True)  # q(z)
    class_prior = probs.sum(axis=0) if class_prior is None else np.broadcast_to(class_prior, n_classes)
    joint = rng.dirichlet(np.ones(n_groups), (n_items, n_classes)) * probs[:, :, None]  # q(z, g)
    bounds = []
    for _ in range(max_iter):
        # q(pi), q(tau) and q(v), given q(z, g).
        groups = group_prior / n_groups + joint.sum(axis=0)
        classes = class_prior + probs.sum(axis=0)
        table = table_prior + (heard @ joint.reshape(n_items, -1)).reshape(table_prior.shape)
        log_groups = digamma(groups) - digamma(groups.sum(axis=1, keepdims=True))
        log_classes = digamma(classes) - digamma(classes.sum())
        log_table = digamma(table) - digamma(table.sum(axis=1, keepdims=True))
        # q(z, g), given these.
        weights = (said @ log_table.reshape(n_volunteers * n_labels, -1)).reshape(joint.shape)
        weights += (log_groups + log_classes[:, None])[None] + log_gold[:, :, None]
        top = weights.max(axis=(1, 2), keepdims=True)
        joint = np.exp(weights - top)
        total = joint.sum(axis=(1, 2), keepdims=True)
        joint /= total
        # After the update of q(z, g), its terms of the bound are its normalisers.
        bounds.append(
            float((top + np.log(total)).sum())
            - _divergence(groups, group_prior / n_groups, axis=1)
            - _divergence(classes, class_prior, axis=0)
            - _divergence(table, table_prior, axis=1)
        )
        previous, probs = probs, joint.sum(axis=2)
        if np.abs(probs - previous).max() < tol:
            break
    return EBCCFit(probs, bounds, len(bounds))


def _divergence(posterior, prior, *, axis):
    """The sum of the Kullback-Leibler divergences of Dirichlet distributions from their priors."""
    prior = np.broadcast_to(prior, posterior.shape)
    total, prior_total = posterior.sum(axis=axis), prior.sum(axis=axis)
    logs = digamma(posterior) - np.expand_dims(digamma(total), axis)
    constants = (gammaln(total) - gammaln(prior_total)).sum() - (gammaln(posterior) - gammaln(prior)).sum()
    return float(constants + ((posterior - prior) * logs).sum())


def bwa(answers, *, shape=15.0, strength=1.0, max_iter=500, tol=1e-3):
    """Bayesian weighted average: Li, Rubinstein and Cohn (WWW 2019), class by class, then normalised.

    Whether an item is of a class is a real number z, a priori normal around the crowd's mean mu with precision
    `strength`; whether a volunteer says so is normal around z with the volunteer's precision v. v has a Gamma prior of
    strength `shape` whose mean is the precision that votes have around their items' shares, corrected by 4 (1 - 1 / J).
    The fit is the mode of the joint density of z, v and mu (`bwa_log_density`), by coordinate ascent. Labels that vote
    for no class are left out. Items with gold keep z at 0 or 1.
    """
    voting = answers.targets[answers.label] >= 0
    item, volunteer, target = answers.item[voting], answers.volunteer[voting], answers.targets[answers.label[voting]]
    item, volunteer, target = np.unique(np.stack([item, volunteer, target]), axis=1)
    n_items = len(answers.gold)
    columns = []
    for code in range(answers.n_classes):
        y = (target == code).astype(float)
        fixed = np.where(answers.gold >= 0, answers.gold == code, np.nan).astype(float)
        z, *_ = _bwa_class(item, volunteer, y, fixed, (n_items, answers.n_volunteers), answers.n_classes,
                           shape, strength, max_iter, tol)  # fmt: skip
        columns.append(z)
    probs = np.stack(columns, axis=1)
    total = probs.sum(axis=1, keepdims=True)
    return np.where(total > 0, probs / np.where(total > 0, total, 1.0), 1 / answers.n_classes)


def _bwa_class(item, volunteer, y, fixed, size, n_classes, shape, strength, max_iter, tol):
    """Return z, v, mu and the rate of v's prior."""
    n_items, n_volunteers = size
    n_by_item, n_by_volunteer = np.bincount(item, minlength=n_items), np.bincount(volunteer, minlength=n_volunteers)
    shares = np.bincount(item, y, minlength=n_items) / np.maximum(n_by_item, 1)
    rate = shape * (n_by_item @ (shares * (1 - shares))) / len(y) * 4 * (1 - 1 / n_classes)
    known = ~np.isnan(fixed)
    z = np.where(known, fixed, shares)
    for _ in range(max_iter):
        mu = z.mean()
        squares = np.bincount(volunteer, (y - z[item]) ** 2, minlength=n_volunteers)
        v = (shape + n_by_volunteer) / np.maximum(rate + squares, 1e-300)
        weight, sums = (np.bincount(item, x, minlength=n_items) for x in (v[volunteer], v[volunteer] * y))
        previous, z = z, np.where(known, fixed, (strength * mu + sums) / (strength + weight))
        if np.allclose(previous, z, rtol=tol):
            break
    return z, v, mu, rate


def bwa_log_density(z, v, mu, *, item, volunteer, y, shape, rate, strength):
    """The logarithm of the joint density that BWA maximises, up to a constant."""
    noise = np.sum(np.log(v[volunteer]) - v[volunteer] * (y - z[item]) ** 2) / 2
    return noise + np.sum(shape * np.log(v) - rate * v) / 2 - strength * np.sum((z - mu) ** 2) / 2
