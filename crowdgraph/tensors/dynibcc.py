r"""DynIBCC as functions of tensors: a dynamic generalised linear model for every volunteer and label.

The log odds :math:`w_j` that a volunteer gives label `l` to items of class `j` follow a random walk from one of the
volunteer's steps to the next (eq:randomwalkstate). At each step the filter *predicts* (the variance grows by the
process noise) and *updates* (a Beta distribution with the mean and variance of the log odds counts the answer, and
linear Bayes carries the result back to the log odds; West, Harrison and Migon 1985). The smoother then goes backwards,
so that every step also learns from later ones (Rauch, Tung and Striebel 1965).

There are two ways to treat an item whose class is uncertain, with probabilities `h`. They agree where it is certain.

- *weighted*: the answer counts :math:`h_j` for class `j`, as in variational Bayes. Without noise this is static IBCC.
- *published*: the answer counts once, for the linear predictor :math:`h \cdot w`, as in the paper.

S is the number of steps. All volunteers take their first step together, then all who have one their second, and so on,
so that there are as many rounds as the busiest volunteer has steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.tensors.devices import total

__all__ = [
    "FilteredStates",
    "LastStates",
    "Rounds",
    "Stage",
    "States",
    "Steps",
    "confusion_over_time",
    "dirichlet_of_states",
    "dirichlet_rows",
    "expected_score",
    "filter_states",
    "last_states",
    "predict_states",
    "predictive_score",
    "prior_counts",
    "smooth_states",
    "state_counts",
    "step_feedback",
    "step_logs",
]

Stage = Literal["predicted", "filtered", "smoothed"]
# Log odds that gain this variance by drift are forgotten; more would only overflow.
MAX_DRIFT = 1e6
# Beyond these log odds a probability is 0 or 1 to the last bit.
MAX_LOG_ODDS = 300.0


class Steps(NamedTuple):
    """The responses as steps, one volunteer after another; the steps of `k` are ``starts[k]:starts[k + 1]``.

    Attributes
    ----------
    starts
        Where each volunteer's steps begin, of shape (K + 1,).
    item, label
        The codes of the item shown and of the label given, of shape (S,); the label is -1 where the item was not
        answered.
    weight
        How much the answer counts, of shape (S,): 1 for an ordinary one.
    drift
        The variance that the random walk gains before each step regardless of the answers, of shape (S,).
    shares
        The probability of each label in each answer, of shape (S, L), where some answers are soft; None otherwise. The
        label is then the most probable one.
    """

    starts: Tensor
    item: Tensor
    label: Tensor
    weight: Tensor
    drift: Tensor
    shares: Tensor | None = None

    def at(self, index: Tensor, starts: Tensor) -> Steps:
        """Return the steps with some indices, (n,), one volunteer after another, where `starts` says, (K + 1,)."""
        shares = None if self.shares is None else self.shares[index]
        return Steps(starts, self.item[index], self.label[index], self.weight[index], self.drift[index], shares)

    def reordered(self, order: Tensor) -> Steps:
        """Return the steps with items and answers in another order; the times between steps stay."""
        return self.at(order, self.starts)._replace(drift=self.drift)


class States(NamedTuple):
    """Gaussian states of the log odds by step and label.

    Attributes
    ----------
    mean
        Of shape (S, L, J).
    covariance
        Of shape (S, L, J, J); or (S, L, J), variances, where classes do not depend on each other (*weighted*).
    """

    mean: Tensor
    covariance: Tensor


class FilteredStates(NamedTuple):
    """The states after each step's own answer, and the process noise, (S, L), before it and that its answer causes."""

    states: States
    noise: Tensor
    next_noise: Tensor


class LastStates(NamedTuple):
    """The states in which a filter ended, from which it can go on: it takes them in place of a prior.

    Attributes
    ----------
    mean
        The log odds after each volunteer's last step, of shape (K, L, J).
    covariance
        Of shape (K, L, J, J); or (K, L, J), variances, as for `States`.
    noise
        The process noise that the last answer caused, which is added before the next step, of shape (K, L).
    """

    mean: Tensor
    covariance: Tensor
    noise: Tensor


class Rounds:
    """The order in which steps are taken: the first step of every volunteer, then the second, the busiest first.

    Attributes
    ----------
    volunteers
        The codes of the volunteers, the busiest first, of shape (K,).
    sizes
        How many volunteers take a step in each round.
    steps
        The indices of the steps, round by round, of shape (S,).
    """

    def __init__(self, starts: Tensor) -> None:
        counts = starts.diff()
        self.volunteers = torch.argsort(counts, descending=True, stable=True)
        rank = torch.empty_like(self.volunteers)
        rank[self.volunteers] = torch.arange(len(rank), device=rank.device)
        owner = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
        number = torch.arange(len(owner), device=owner.device) - starts[owner]
        sizes = torch.bincount(number)
        self.sizes: list[int] = sizes.tolist()
        position = (sizes.cumsum(0) - sizes)[number] + rank[owner]
        self.steps = torch.empty_like(position)
        self.steps[position] = torch.arange(len(position), device=position.device)
        self._position, self._is_first, self._owner = position, number == 0, owner

    def split(self, values: Tensor) -> tuple[Tensor, ...]:
        """Return values of the steps, (S, ...), by round."""
        return torch.split(values[self.steps], self.sizes)

    def join(self, values: list[Tensor], like: Tensor) -> Tensor:
        """Return values by round as values of the steps, of the shape and type of `like` where there are none."""
        return torch.cat([like[:0], *values])[self._position]

    def before(self, values: Tensor, initial: Tensor) -> Tensor:
        """Return the values of the volunteer's previous step; at the first step the initial ones, (1 or K, ...)."""
        first = initial[self._owner] if len(initial) > 1 else initial
        is_first = self._is_first.reshape(-1, *[1] * (values.ndim - 1))
        return torch.where(is_first, first, values.roll(1, 0))


def prior_counts(prior: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return the counts `a` for and `b` against every label under Dirichlet rows (..., J, L), each (..., L, J).

    The log odds have the mean :math:`\ln (a / b)` and the variance :math:`1 / a + 1 / b` ("Prior Distributions over the
    State Variables").
    """
    hits = prior.transpose(-1, -2)
    # Summed over the other labels, not subtracted from the total: a tiny rest must not be lost.
    others = 1 - torch.eye(hits.shape[-2], dtype=hits.dtype, device=hits.device)
    return hits, others @ hits


def filter_states(
    steps: Steps,
    prior: Tensor | LastStates,
    *,
    probs: Tensor,
    noise_scale: Tensor | float = 1.0,
    published: bool = False,
    rounds: Rounds | None = None,
) -> FilteredStates:
    """Return the states of all volunteers after each of their steps.

    Parameters
    ----------
    steps
        The volunteers' steps.
    prior
        Dirichlet rows of the confusion before the first step, of shape (K, J, L), or (1, J, L) if all volunteers share
        them. Or the states in which a filter over earlier steps ended: `last_states`.
    probs
        The class probabilities of the items, of shape (N, J).
    noise_scale
        The factor of the process noise that answers cause.
    published
        Whether an answer about an uncertain item counts once, for the mixture of its classes, or by their shares.
    rounds
        ``Rounds(steps.starts)``, if it is at hand.
    """
    rounds = Rounds(steps.starts) if rounds is None else rounds
    initial = _initial_states(prior, published=published)
    if len(initial.mean) > 1:
        mean, covariance, noise = (part[rounds.volunteers] for part in initial)
    else:
        n = max(rounds.sizes, default=0)
        mean, covariance, noise = (part.expand(n, *part.shape[1:]) for part in initial)
    label = steps.label[:, None]
    hits = _label_shares(steps, mean.shape[1])
    weights = torch.where(label >= 0, steps.weight[:, None], 0.0)
    columns = (probs[steps.item.long()][:, None, :], hits, weights, label >= 0, steps.drift[:, None])
    update = _update_published if published else _update_weighted
    means, covariances, noises, next_noises = [], [], [], []
    for truth, hit, weight, answered, drift in zip(*map(rounds.split, columns), strict=True):
        # Predict: eq:what_prior leaves the mean as it is, eq:P_prior adds q I.
        mean, covariance, noise = (part[: len(truth)] for part in (mean, covariance, noise))
        noise = noise + drift
        covariance = _add_noise(covariance, noise, mean)
        noises.append(noise)
        unanswered_noise = _unanswered_noise(mean, truth, published=published)
        # Update: "Forward Pass Filtering Steps".
        mean, covariance, noise = update(mean, covariance, truth, hit, weight)
        noise = noise_scale * torch.where(answered, noise, unanswered_noise)  # eq:q_tau
        means.append(mean)
        covariances.append(covariance)
        next_noises.append(noise)
    states = States(rounds.join(means, mean), rounds.join(covariances, covariance))
    return FilteredStates(states, rounds.join(noises, noise), rounds.join(next_noises, noise))


def last_states(steps: Steps, prior: Tensor | LastStates, *, filtered: FilteredStates) -> LastStates:
    """Return the states of all volunteers after their last step; of those without steps, the initial ones.

    `prior` is that of `filter_states`. A filter over further steps that starts from them continues as if all steps had
    been filtered at once.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=5, n_items=30, n_responses=100, seed=0).graph
    >>> steps, fit = graph.to_torch().steps(), cg.DynIBCC(confusion_prior=(4, 1)).fit(graph).to_torch()
    >>> filtered = filter_states(steps, fit.confusion_prior, probs=fit.item_probs)
    >>> last_states(steps, fit.confusion_prior, filtered=filtered).mean.shape
    torch.Size([5, 2, 2])
    """
    initial = _initial_states(prior, published=filtered.states.covariance.ndim > filtered.states.mean.ndim)
    has_steps = steps.starts.diff() > 0
    last = (steps.starts[1:] - 1)[has_steps]
    parts = []
    for first, values in zip(initial, (*filtered.states, filtered.next_noise), strict=True):
        part = first.expand(len(has_steps), *first.shape[1:]).clone()
        part[has_steps] = values[last]
        parts.append(part)
    return LastStates(*parts)


def predict_states(
    steps: Steps, prior: Tensor | LastStates, *, filtered: FilteredStates, rounds: Rounds | None = None
) -> States:
    """Return the states before each step's own answer, from the states after the previous one.

    `prior` is that of `filter_states`.
    """
    rounds = Rounds(steps.starts) if rounds is None else rounds
    states = filtered.states
    initial = _initial_states(prior, published=states.covariance.ndim > states.mean.ndim)
    mean = rounds.before(states.mean, initial.mean)
    covariance = rounds.before(states.covariance, initial.covariance)
    return States(mean, _add_noise(covariance, filtered.noise, mean))


def smooth_states(steps: Steps, filtered: FilteredStates, *, rounds: Rounds | None = None) -> States:
    """Return the states at each step given all answers of the volunteer.

    This is the recursion of Rauch, Tung and Striebel, which gives the same states as the adjoint recursion of "Backward
    Pass Smoothing Steps" with erratum 2 corrected, and adds only positive terms.
    """
    rounds = Rounds(steps.starts) if rounds is None else rounds
    means, covariances, noises = (
        list(rounds.split(part)) for part in (filtered.states.mean, filtered.states.covariance, filtered.noise)
    )
    smooth = _smooth_variances if filtered.states.covariance.ndim == filtered.states.mean.ndim else _smooth_covariances
    for number in range(len(means) - 2, -1, -1):
        # Those who take a further step stand in front.
        n = rounds.sizes[number + 1]
        mean, covariance = smooth(
            means[number][:n], covariances[number][:n], noises[number + 1], means[number + 1], covariances[number + 1]
        )
        means[number] = torch.cat([mean, means[number][n:]])
        covariances[number] = torch.cat([covariance, covariances[number][n:]])
    return States(rounds.join(means, filtered.states.mean), rounds.join(covariances, filtered.states.covariance))


def dirichlet_of_states(states: States) -> Tensor:
    """Return the Dirichlet of the confusion at every step, of shape (S, J, L); see `dirichlet_rows`."""
    published = states.covariance.ndim > states.mean.ndim
    variance = states.covariance.diagonal(dim1=-2, dim2=-1) if published else states.covariance
    hits, misses = state_counts(states.mean, variance)  # eq:DynVB_alpha
    return dirichlet_rows(hits.transpose(-1, -2), misses.transpose(-1, -2), published=published)


def dirichlet_rows(hits: Tensor, misses: Tensor, *, published: bool) -> Tensor:
    r"""Return the Dirichlet rows of counts for and against the labels, each of shape (..., J, L).

    As published, :math:`\alpha_l = a_l` (eq:DynVB_alpha). With noise, however, the counts :math:`n_l = a_l + b_l` of
    the labels differ: frequent labels forget more, and the mean of such a row is biased towards rare labels. Unless
    `published`, the mean is therefore proportional to :math:`p_l = a_l / n_l`, and the row's total is the harmonic mean
    of the :math:`n_l` weighted by :math:`p_l (1 - p_l)`, which preserves the sum of the labels' variances to first
    order. Where all :math:`n_l` are equal nothing changes.
    """
    if published:
        return hits
    counts = hits + misses
    share, variance = hits / counts, hits / counts * (misses / counts)
    row_total = variance.sum(-1, keepdim=True) / (variance / counts).sum(-1, keepdim=True)
    return row_total * share / share.sum(-1, keepdim=True)


def confusion_over_time(
    steps: Steps,
    prior: Tensor | LastStates,
    *,
    probs: Tensor,
    noise_scale: Tensor | float = 1.0,
    stage: Stage = "smoothed",
    published: bool = False,
    rounds: Rounds | None = None,
) -> Tensor:
    """Return the Dirichlet of the confusion at every step, of shape (S, J, L).

    Parameters
    ----------
    steps, prior, probs, noise_scale, published, rounds
        As for `filter_states`.
    stage
        ``"predicted"`` uses the answers before the step, ``"filtered"`` also its own, ``"smoothed"`` all answers of the
        volunteer.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=5, n_items=30, n_responses=100, seed=0).graph
    >>> responses, fit = graph.to_torch(), cg.DynIBCC(confusion_prior=(4, 1)).fit(graph)
    >>> estimate = fit.to_torch()
    >>> confusion = confusion_over_time(responses.steps(), estimate.confusion_prior, probs=estimate.item_probs)
    >>> bool(abs(confusion - fit.confusion.to_torch().concentration).max() < 1e-3)
    True
    """
    check_choice("stage", stage, get_args(Stage))
    rounds = Rounds(steps.starts) if rounds is None else rounds
    filtered = filter_states(steps, prior, probs=probs, noise_scale=noise_scale, published=published, rounds=rounds)
    if stage == "filtered":
        return dirichlet_of_states(filtered.states)
    if stage == "predicted":
        return dirichlet_of_states(predict_states(steps, prior, filtered=filtered, rounds=rounds))
    return dirichlet_of_states(smooth_states(steps, filtered, rounds=rounds))


def step_logs(steps: Steps, concentration: Tensor) -> Tensor:
    """Return the weighted expected log probability of each answer, by class, of shape (S, J).

    `concentration` has a Dirichlet for each step, of shape (S, J, L). Where an item was not answered, it is zero. A
    soft answer has the mean over its labels.
    """
    # E[ln pi_tau], below eq:DynVB_alpha.
    logs = _mean_of_labels(steps, concentration, torch.digamma) - torch.digamma(concentration.sum(-1))
    return _answer_weights(steps)[:, None] * logs


def step_feedback(steps: Steps, concentration: Tensor) -> Tensor:
    """Return the derivative of `step_logs` by the class probability with which each answer counts, of shape (S, J).

    An answer adds its share of the class to the Dirichlet at its own step. This is exact without noise, and hardly less
    so with noise, which shrinks what came before and after.
    """
    slopes = _mean_of_labels(steps, concentration, _trigamma, power=2) - _trigamma(concentration.sum(-1))
    return _answer_weights(steps)[:, None] ** 2 * slopes


def predictive_score(
    steps: Steps, predicted: Tensor, *, logs: Tensor, probs: Tensor, gold: Tensor | None = None
) -> Tensor:
    r"""Return the weighted sum over the answers of :math:`\ln \sum_j \tilde q_{ij} p_{jl}` (erratum 3).

    Here :math:`\tilde q_i` are the item's class probabilities with this very answer's contribution removed, and
    :math:`p_{jl} = \alpha_{jl} / \sum_m \alpha_{jm}` is the answer's probability before it was given. It scores the
    noise scale, since DynIBCC has no bound.

    Parameters
    ----------
    steps
        The volunteers' steps.
    predicted
        The Dirichlets before each answer, of shape (S, J, L): `confusion_over_time` with ``stage="predicted"``.
    logs
        What each answer contributed to `probs`, of shape (S, J): `step_logs` of the confusion with which these were
        inferred. Where other settings are scored, such as a noise scale, hold it constant.
    probs
        The class probabilities of the items, of shape (N, J).
    gold
        Class probabilities of items whose class is known, (N, J), NaN for all others: nothing is removed from these.
    """
    item = steps.item.long()
    own = probs[item]
    possible = own > 0
    # The inner choice keeps logarithms away from zero, such as that of gold, where their gradient is infinite.
    own_logs = torch.where(possible, torch.where(possible, own, 1.0).log(), -torch.inf)
    others = torch.softmax(own_logs - logs, dim=1)
    if gold is not None:
        others = torch.where(gold[item].isnan(), others, own)
    return total(_answer_weights(steps) * (others * _chances(steps, predicted)).sum(1).log())


def expected_score(steps: Steps, predicted: Tensor, *, probs: Tensor) -> Tensor:
    r"""Return the weighted sum over the answers of :math:`\sum_j q_{ij} \ln p_{jl}`; see `predictive_score`."""
    return total(_answer_weights(steps) * (probs[steps.item.long()] * _chances(steps, predicted).log()).sum(1))


def _initial_states(prior: Tensor | LastStates, *, published: bool) -> LastStates:
    """Return the states before the first step, of one volunteer if all share them, and the noise that awaits it."""
    if isinstance(prior, LastStates):
        return prior
    if prior.ndim != 3:
        raise ParameterError(
            f"prior= has the shape {tuple(prior.shape)}; expected (K, J, L), or (1, J, L) if all volunteers share it."
        )
    hits, misses = prior_counts(prior)
    variance = 1 / hits + 1 / misses
    covariance = torch.diag_embed(variance) if published else variance
    return LastStates(torch.log(hits / misses), covariance, torch.zeros_like(hits[..., 0]))


def _add_noise(covariance: Tensor, noise: Tensor, mean: Tensor) -> Tensor:
    """Return (co)variances with noise, (n, L), added to every variance, eq:P_prior."""
    if covariance.ndim == mean.ndim:
        return covariance + noise[..., None]
    return covariance + torch.diag_embed(noise[..., None].expand_as(mean))


def state_counts(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the counts for and against a label of the Beta distribution with these log odds, eq:Dyn_priorAlpha."""
    limit = min(MAX_LOG_ODDS, 0.45 * math.log(torch.finfo(mean.dtype).max))
    odds = mean.clamp(-limit, limit).exp()
    return (1 + odds) / variance, (1 + 1 / odds) / variance


def _unanswered_noise(mean: Tensor, truth: Tensor, *, published: bool) -> Tensor:
    """Return z of eq:q_tau, the process noise caused by an item that was shown and not answered."""
    predictor = (truth * mean).sum(-1, keepdim=True) if published else mean
    share = torch.sigmoid(predictor)  # eq:logistic
    return (share * (1 - share) * (1 if published else truth)).sum(-1)


def _update_beta(mean: Tensor, variance: Tensor, hit: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Condition log odds on an answer: return their shift, their posterior variance and the noise the answer causes.

    `hit` is the share of the answer that the label has: one or zero unless the answer is soft.
    """
    hits, misses = state_counts(mean, variance)
    # alpha + delta and beta + 1 - delta, "Forward Pass Filtering Steps".
    new_hits, new_misses = hits + weight * hit, misses + weight * (1 - hit)
    shift = torch.log1p(weight * hit / hits) - torch.log1p(weight * (1 - hit) / misses)
    # u before and after the answer, below eq:q_tau.
    counts, new_counts = hits + misses, new_hits + new_misses
    growth = new_hits / new_counts * (new_misses / new_counts) - hits / counts * (misses / counts)
    return shift, 1 / new_hits + 1 / new_misses, growth.clamp(min=0)


def _update_published(
    mean: Tensor, covariance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Update by an answer that counts once, for h . w; return the state and the noise the answer causes."""
    direction = (covariance @ truth[..., None])[..., 0]
    variance = (truth * direction).sum(-1)  # r = h' P h
    shift, new_variance, noise = _update_beta((truth * mean).sum(-1), variance, hit, weight)
    gain = direction / variance[..., None]  # K = P h / r
    rest = torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device) - gain[..., None] * truth[..., None, :]
    # P - (1 - r'/r) K h' P (erratum 1), as a sum of two terms that no rounding error makes negative.
    new_covariance = rest @ covariance @ rest.transpose(-1, -2) + (
        new_variance[..., None, None] * gain[..., None] * gain[..., None, :]
    )
    # w + K (eta' - eta).
    return mean + gain * shift[..., None], new_covariance, noise


def _update_weighted(
    mean: Tensor, variance: Tensor, truth: Tensor, hit: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Update by an answer that counts by shares of the classes; return the state and the noise the answer causes."""
    # Class j counts E[t_i = j] of the answer, its share of the expected log likelihood, where "Variational Update
    # Equations" puts E[t_i = j] into the linear predictor.
    shift, new_variance, noise = _update_beta(mean, variance, hit[..., None], weight[..., None] * truth)
    return mean + shift, new_variance, noise.sum(-1)


def _smooth_variances(
    mean: Tensor, variance: Tensor, noise: Tensor, next_mean: Tensor, next_variance: Tensor
) -> tuple[Tensor, Tensor]:
    """Smooth states of independent classes given the following ones, which have been smoothed already."""
    noise = noise[..., None]
    gain = variance / (variance + noise)
    return mean + gain * (next_mean - mean), gain * (noise + gain * next_variance)


def _smooth_covariances(
    mean: Tensor, covariance: Tensor, noise: Tensor, next_mean: Tensor, next_covariance: Tensor
) -> tuple[Tensor, Tensor]:
    """Smooth states of classes together given the following ones, which have been smoothed already."""
    noise = noise[..., None, None]
    identity = torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    # Without noise both steps are one, and the matrix to be solved need not be regular.
    no_noise = noise == 0
    gain = torch.linalg.solve(
        torch.where(no_noise, identity, covariance + noise * identity), torch.where(no_noise, identity, covariance)
    )
    if noise.requires_grad:
        # P (P + q I)^-1 is I - q (P + q I)^-1: without noise, q = 0, the second term counts for gradients alone.
        gain = gain - torch.where(no_noise, noise, 0.0) * _inverse_where(no_noise, covariance)
    shift = (gain @ (next_mean - mean)[..., None])[..., 0]
    return mean + shift, noise * gain + gain @ next_covariance @ gain.transpose(-1, -2)


def _inverse_where(chosen: Tensor, matrices: Tensor) -> Tensor:
    """Return the inverses of some matrices, (..., 1, 1); the identity for others and for those that have none."""
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    singular = torch.linalg.inv_ex(matrices.detach()).info != 0
    inverse: Tensor = torch.linalg.inv(torch.where(chosen & ~singular[..., None, None], matrices, identity))
    return inverse


def _answer_weights(steps: Steps) -> Tensor:
    """Return how much each step's answer counts, of shape (S,): nothing where there is none."""
    return torch.where(steps.label >= 0, steps.weight, 0.0)


def _of_labels(steps: Steps, table: Tensor) -> Tensor:
    """Return the entries of a table by step, class and label, (S, J, L), for the labels that were given, (S, J)."""
    index = steps.label.long().clamp(min=0)[:, None, None].expand(-1, table.shape[1], 1)
    return table.gather(2, index)[..., 0]


def _label_shares(steps: Steps, n_labels: int) -> Tensor:
    """Return the share of each label in each answer, of shape (S, L): one or zero unless the answer is soft."""
    if steps.shares is not None:
        return steps.shares
    return (steps.label[:, None] == torch.arange(n_labels, device=steps.label.device)).to(steps.weight.dtype)


def _trigamma(values: Tensor) -> Tensor:
    return torch.polygamma(1, values)


def _mean_of_labels(steps: Steps, table: Tensor, function: Callable[[Tensor], Tensor], *, power: int = 1) -> Tensor:
    """Return a function of the entries of a table, (S, J, L), averaged over the labels of each answer, (S, J).

    The labels count by powers of their shares.
    """
    if steps.shares is None:
        return function(_of_labels(steps, table))
    return (steps.shares[:, None, :].to(table.dtype) ** power * function(table)).sum(-1)


def _chances(steps: Steps, concentration: Tensor) -> Tensor:
    """Return the probability of each answer given each class, of shape (S, J); of a soft one the geometric mean."""
    chances = _of_labels(steps, concentration) / concentration.sum(-1)
    if steps.shares is None:
        return chances
    rows = concentration / concentration.sum(-1, keepdim=True)
    is_soft = (steps.shares > 0).sum(1, keepdim=True) > 1
    return torch.where(is_soft, _mean_of_labels(steps, rows, torch.log).exp(), chances)
