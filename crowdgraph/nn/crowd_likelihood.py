"""The bound of IBCC with a classifier as the prior of each item's class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crowdgraph.errors import ParameterError
from crowdgraph.tensors import (
    AnswerMatrix,
    dirichlet_divergence,
    expected_log,
    item_log_weights,
    item_posteriors,
    log_evidence,
    sufficient_counts,
)

__all__ = ["CrowdLikelihood"]


class CrowdLikelihood(nn.Module):
    r"""The lower bound on the log probability of a crowd's answers, given a classifier's logits for their items.

    The classifier's probabilities take the part that the class proportions have in IBCC. For a batch of B of N items,

    .. math:: \mathcal{L} = \sum_{i \in \text{batch}} \ln \sum_j \text{softmax}(f_i)_j \exp \Big(
              \sum_{\text{answers about } i} E[\ln \pi^{(k)}_{j, \text{label}}] \Big)
              - \frac{B}{N} \text{KL}(q(\Pi) \,\|\, p(\Pi)),

    so that the batches of an epoch add up to the bound of all items. Maximise it by any optimiser: its gradient with
    respect to the logits is :math:`q(t_i) - \text{softmax}(f_i)`.

    The volunteers' confusion is no parameter of the optimiser. It is a buffer of Dirichlet concentrations, which
    `update` moves in closed form; the forward pass leaves it alone, so it may be called as often as an optimiser likes.
    Call `update` after each step of the optimiser.

    Parameters
    ----------
    confusion_prior
        Pseudo-counts of labels given classes: of shape (J, L) if all volunteers share them, or (K, J, L).
    n_volunteers, n_items
        K and N, of all the batches together.
    delay, power
        The step of update `t`, counted from zero, is :math:`\rho_t = (t + \text{delay})^{-\text{power}}`. A power above
        0.5 and up to 1 lets mini-batches converge (Hoffman et al. 2013).

    Attributes
    ----------
    confusion
        Concentrations of :math:`q(\Pi)`, of shape (K, J, L); at first those of the prior.
    n_updates
        How often it was moved, `t`.

    Examples
    --------
    >>> import torch
    >>> import crowdgraph as cg
    >>> answers = cg.tensors.AnswerMatrix(
    ...     *torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 1]]), n_volunteers=2, n_items=2, n_labels=2)
    >>> crowd = cg.nn.CrowdLikelihood(torch.tensor([[4.0, 1.0], [1.0, 4.0]]), n_volunteers=2, n_items=2)
    >>> logits = torch.zeros(2, 2, requires_grad=True)
    >>> crowd(logits, answers).backward()
    >>> logits.grad.round(decimals=2)
    tensor([[-0.4800,  0.4800],
            [ 0.3600, -0.3600]])
    >>> crowd.update(logits, answers)
    >>> crowd.posteriors(logits, answers).argmax(1)
    tensor([1, 0])
    """

    confusion: Tensor
    confusion_prior: Tensor
    n_updates: Tensor

    def __init__(
        self, confusion_prior: Tensor, *, n_volunteers: int, n_items: int, delay: float = 1.0, power: float = 0.7
    ) -> None:
        super().__init__()
        prior = _checked_prior(confusion_prior, n_volunteers)
        if not (isinstance(n_items, int) and n_items > 0):
            raise ParameterError(f"n_items={n_items!r} must be a whole number from 1 up: how many items there are.")
        if not (delay >= 1 and 0.5 < power <= 1):
            raise ParameterError(
                f"delay={delay!r} must be a number from 1 up, and power={power!r} one above 0.5 and up to 1."
            )
        self.n_items, self.delay, self.power = n_items, delay, power
        self.register_buffer("confusion_prior", prior.clone())
        self.register_buffer("confusion", prior.expand(n_volunteers, -1, -1).clone())
        self.register_buffer("n_updates", torch.zeros((), dtype=torch.int64, device=prior.device))

    def forward(self, logits: Tensor, answers: AnswerMatrix, *, gold: Tensor | None = None) -> Tensor:
        """Return the bound's part of a batch, a scalar; minimise its negative.

        Parameters
        ----------
        logits
            What the classifier returns for the items of the batch, of shape (B, J).
        answers
            The answers about these items, of all K volunteers; an item's code is its position in the batch.
            `AnswersByItem` picks them.
        gold
            Class probabilities of items whose class is known, of shape (B, J), NaN for all others.
        """
        log_weights = self._log_weights(logits, answers, gold)
        divergence = dirichlet_divergence(self.confusion, self.confusion_prior).sum()
        return log_evidence(log_weights, gold) - len(logits) / self.n_items * divergence

    def posteriors(self, logits: Tensor, answers: AnswerMatrix, *, gold: Tensor | None = None) -> Tensor:
        """Return the class probabilities of the batch's items given classifier, answers and gold, of shape (B, J)."""
        return item_posteriors(self._log_weights(logits, answers, gold), gold)

    @torch.no_grad()
    def update(
        self, logits: Tensor, answers: AnswerMatrix, *, gold: Tensor | None = None, step: float | None = None
    ) -> None:
        r"""Move the volunteers' confusion towards what the batch says about it, in closed form.

        It is :math:`\alpha \leftarrow (1 - \rho) \alpha + \rho \, (\alpha_0 + \frac{N}{B} \text{counts})`: stochastic
        variational inference.

        Parameters
        ----------
        logits, answers, gold
            As for the forward pass.
        step
            The step :math:`\rho`, from 0 to 1. If left out it is 1 for a batch of all N items, which is exact and never
            lowers the bound, and :math:`\rho_t` for a smaller one.
        """
        if step is None:
            step = 1.0 if len(logits) == self.n_items else (int(self.n_updates) + self.delay) ** -self.power
        if not 0 <= step <= 1:
            raise ParameterError(f"step={step!r} must be a number from 0 to 1.")
        if not logits.isfinite().all():
            raise ParameterError(
                "The classifier returned logits that are NaN or infinite; the confusion was left as it is.",
                hint="Lower the learning rate, or bring the features to a common scale.",
            )
        counts = sufficient_counts(answers, self.posteriors(logits, answers, gold=gold).to(self.confusion.dtype))
        self.confusion.lerp_(self.confusion_prior + self.n_items / len(logits) * counts, step)
        self.n_updates += 1

    def extra_repr(self) -> str:
        """Return the sizes for the module's repr."""
        n_volunteers, n_classes, n_labels = self.confusion.shape
        return f"{n_volunteers} volunteers, {self.n_items} items, {n_classes} classes, {n_labels} labels"

    def _log_weights(self, logits: Tensor, answers: AnswerMatrix, gold: Tensor | None) -> Tensor:
        n_volunteers, n_classes, n_labels = self.confusion.shape
        if logits.ndim != 2 or logits.shape[1] != n_classes or not len(logits):
            raise ParameterError(
                f"The classifier returned logits of shape {tuple(logits.shape)}; expected (B, {n_classes}), a column "
                "for each class."
            )
        if answers.sizes != (n_volunteers, len(logits), n_labels):
            raise ParameterError(
                f"The answers are of {answers.sizes[0]:,} volunteers about {answers.sizes[1]:,} items, with "
                f"{answers.sizes[2]:,} labels; expected {n_volunteers:,}, {len(logits):,} (the batch), "
                f"{n_labels:,}.",
                hint="AnswersByItem(answers).about(items) picks the answers about a batch.",
            )
        if gold is not None and gold.shape != logits.shape:
            raise ParameterError(f"gold= has the shape {tuple(gold.shape)}; expected {tuple(logits.shape)}.")
        return item_log_weights(answers, expected_log(self.confusion), class_logs=torch.log_softmax(logits, dim=1))


def _checked_prior(prior: Tensor, n_volunteers: int) -> Tensor:
    """Return the prior of shape (1 or K, J, L), or raise if it is none."""
    if not isinstance(n_volunteers, int) or n_volunteers < 1:
        raise ParameterError(f"n_volunteers={n_volunteers!r} must be a whole number from 1 up.")
    if not isinstance(prior, Tensor) or not prior.is_floating_point():
        raise ParameterError("confusion_prior= must be a tensor of floating-point pseudo-counts.")
    if prior.ndim not in (2, 3) or (prior.ndim == 3 and len(prior) not in (1, n_volunteers)):
        raise ParameterError(
            f"confusion_prior= has the shape {tuple(prior.shape)}; expected (J, L), classes by labels, or "
            f"({n_volunteers}, J, L)."
        )
    if not ((prior > 0) & prior.isfinite()).all():
        raise ParameterError("confusion_prior= must be made of numbers above zero (pseudo-counts).")
    # Buffers have no gradients, whatever the prior was computed from.
    return (prior if prior.ndim == 3 else prior[None]).detach()
