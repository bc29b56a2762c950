"""IBCC as functions of tensors: class probabilities of items, counts of volunteers, and the lower bound.

K is the number of volunteers, N that of items, J that of classes and L that of labels. Confusion has the shape
(K, J, L) everywhere, as in ``fit.confusion``.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article
from crowdgraph.tensors.devices import limits_of, most_precise, total
from crowdgraph.tensors.dirichlet import dirichlet_divergence, expected_log

__all__ = [
    "AnswerMatrix",
    "item_log_weights",
    "item_posteriors",
    "log_evidence",
    "lower_bound",
    "sufficient_counts",
]


class AnswerMatrix:
    """The answers as a matrix: a row for each item, a column for each pair of volunteer and label, and counts.

    Its two products are all that inference needs: sums over the answers about each item, and sums over the answers of
    each volunteer. Gradients pass through both. They are products with a sparse matrix where the device has these, and
    sums by index elsewhere.

    Parameters
    ----------
    volunteer, item, label
        Codes of the answers, whole numbers from 0, each of shape (R,). Rows with the label -1 are items that were shown
        and not answered; they are left out.
    n_volunteers, n_items, n_labels
        K, N and L.
    weight
        How much each answer counts, of shape (R,); one if left out. A soft answer is a row for each of its labels.
    sparse
        Whether to multiply by a sparse matrix. If left out, wherever the device and the type allow it, and outside of
        autocasting. Sums by index are slower on CPUs; ``torch.func`` and ``vmap`` need them.

    Examples
    --------
    >>> import torch
    >>> answers = AnswerMatrix(*torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 1]]), n_volunteers=2, n_items=2, n_labels=2)
    >>> answers
    AnswerMatrix(3 answers of 2 volunteers about 2 items, 2 labels, cpu)
    >>> answers.sum_by_volunteer(torch.tensor([[0.9, 0.1], [0.5, 0.5]]))[0]
    tensor([[0.5000, 0.9000],
            [0.5000, 0.1000]])
    """

    def __init__(
        self,
        volunteer: Tensor,
        item: Tensor,
        label: Tensor,
        *,
        n_volunteers: int,
        n_items: int,
        n_labels: int,
        weight: Tensor | None = None,
        sparse: bool | None = None,
    ) -> None:
        sizes = {"volunteer": n_volunteers, "item": n_items, "label": n_labels}
        columns = dict(zip(sizes, (volunteer, item, label), strict=True))
        volunteer, item, label = (
            _checked_codes(name, column, sizes[name], len(volunteer)) for name, column in columns.items()
        )
        answered = label >= 0
        if weight is not None:
            if weight.shape != label.shape:
                raise ParameterError(f"weight= has the shape {tuple(weight.shape)}; expected {tuple(label.shape)}.")
            weight = weight[answered]
        volunteer, item, label = volunteer[answered], item[answered], label[answered]
        self._set(volunteer * n_labels + label, item, (n_volunteers, n_items, n_labels), weight, sparse=sparse)

    @classmethod
    def from_cells(
        cls,
        cell: Tensor,
        item: Tensor,
        *,
        n_volunteers: int,
        n_items: int,
        n_labels: int,
        weight: Tensor | None = None,
    ) -> AnswerMatrix:
        """Return the matrix of answers that are coded as volunteer * L + label, unchecked."""
        matrix = cls.__new__(cls)
        matrix._set(cell.long(), item.long(), (n_volunteers, n_items, n_labels), weight)
        return matrix

    def _set(
        self,
        cell: Tensor,
        item: Tensor,
        sizes: tuple[int, int, int],
        weight: Tensor | None,
        *,
        sparse: bool | None = None,
    ) -> None:
        self._cell, self._item, self._sizes, self._weight, self._prefer_sparse = cell, item, sizes, weight, sparse
        self._sparse: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def __getstate__(self) -> dict[str, object]:
        # Sparse tensors can be neither copied nor pickled; they are computed again.
        return {**self.__dict__, "_sparse": {}}

    def to(self, device: torch.device | str) -> AnswerMatrix:
        """Return the answers on another device."""
        matrix = AnswerMatrix.__new__(AnswerMatrix)
        weight = None if self._weight is None else self._weight.to(device)
        matrix._set(self._cell.to(device), self._item.to(device), self._sizes, weight, sparse=self._prefer_sparse)
        return matrix

    def _multiplies(self, values: Tensor) -> bool:
        """Return whether to multiply values by a sparse matrix."""
        if self._prefer_sparse is not None:
            return self._prefer_sparse
        return (
            limits_of(values.device).sparse
            and values.dtype in (torch.float32, torch.float64)
            and not torch.is_autocast_enabled(values.device.type)
        )

    def __repr__(self) -> str:
        n_volunteers, n_items, n_labels = self._sizes
        return (
            f"AnswerMatrix({len(self):,} answers of {n_volunteers:,} volunteers about {n_items:,} items, "
            f"{n_labels:,} labels, {self._cell.device})"
        )

    def __len__(self) -> int:
        return len(self._cell)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers of volunteers, items and labels, K, N and L."""
        return self._sizes

    @property
    def volunteer(self) -> Tensor:
        """The codes of who answered, of shape (R,)."""
        return self._cell // self._sizes[2]

    @property
    def item(self) -> Tensor:
        """The codes of the items, of shape (R,)."""
        return self._item

    @property
    def label(self) -> Tensor:
        """The codes of the labels, of shape (R,)."""
        return self._cell % self._sizes[2]

    @property
    def weight(self) -> Tensor | None:
        """How much each answer counts, of shape (R,); None if all count one."""
        return self._weight

    def _weighted(self, values: Tensor) -> Tensor:
        """Return values of the answers, (R, J), times the answers' weights."""
        return values if self._weight is None else values * self._weight.to(values.dtype)[:, None]

    def sum_by_item(self, values: Tensor) -> Tensor:
        """Return for each item the sum of ``values[volunteer, :, label]`` over its answers, of shape (N, J).

        `values` has the shape (K, J, L).
        """
        n_volunteers, n_items, n_labels = self._sizes
        table = values.transpose(1, 2).reshape(n_volunteers * n_labels, values.shape[1])
        if self._multiplies(table):
            return self._matrices(table.dtype)[0] @ table
        return table.new_zeros(n_items, table.shape[1]).index_add(0, self._item, self._weighted(table[self._cell]))

    def sum_by_volunteer(self, probs: Tensor) -> Tensor:
        """Return for each volunteer and label the sum of ``probs[item]`` over their answers, of shape (K, J, L).

        `probs` has the shape (N, J).
        """
        n_volunteers, _, n_labels = self._sizes
        if self._multiplies(probs):
            table = self._matrices(probs.dtype)[1] @ probs
        else:
            n_cells = n_volunteers * n_labels
            weighted = self._weighted(probs[self._item])
            table = probs.new_zeros(n_cells, probs.shape[1]).index_add(0, self._cell, weighted)
        return table.reshape(n_volunteers, n_labels, probs.shape[1]).transpose(1, 2)

    def _matrices(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the matrix and its transpose, which is a matrix of its own: a view is several times slower."""
        if dtype not in self._sparse:
            n_volunteers, n_items, n_labels = self._sizes
            size = (n_items, n_volunteers * n_labels)
            self._sparse[dtype] = (
                _sparse_matrix(self._item, self._cell, self._weight, size, dtype),
                _sparse_matrix(self._cell, self._item, self._weight, size[::-1], dtype),
            )
        return self._sparse[dtype]


def check_answers(answers: object) -> None:
    """Raise unless answers are a matrix of them."""
    if not isinstance(answers, AnswerMatrix):
        raise ParameterError(
            f"The answers must be an AnswerMatrix; got {with_article(type(answers))}.",
            hint="graph.to_torch().answers is one.",
        )


def _check_shape(name: str, tensor: Tensor, shape: tuple[int | str, ...]) -> None:
    """Raise unless a tensor has a shape, in which letters stand for any size."""
    sizes = tuple(tensor.shape)
    matches = len(sizes) == len(shape) and all(
        isinstance(wanted, str) or size == wanted for size, wanted in zip(sizes, shape, strict=True)
    )
    if not matches:
        wanted = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ParameterError(f"{name}= has the shape {sizes}; expected ({wanted}).")


def _checked_codes(name: str, column: Tensor, size: int, n_answers: int) -> Tensor:
    """Return codes as int64, or raise if they are none."""
    lowest = -1 if name == "label" else 0
    if column.is_floating_point() or column.shape != (n_answers,):
        raise ParameterError(
            f"{name}= must be whole numbers of shape ({n_answers},); got {column.dtype} of shape {tuple(column.shape)}."
        )
    # Widened first: small types hold neither -1 nor large sizes, and would compare with another number.
    column = column.long()
    wrong = (column < lowest) | (column >= size)
    if wrong.any():
        raise ParameterError(
            f"{name}= must be codes from {lowest} to {size - 1}; got {column[wrong][:5].tolist()}.",
            hint=f"n_{name}s={size:,} says how many there are.",
        )
    return column


def _sparse_matrix(
    row: Tensor, column: Tensor, weight: Tensor | None, size: tuple[int, int], dtype: torch.dtype
) -> Tensor:
    order = torch.argsort(row, stable=True)
    starts = torch.cat([row.new_zeros(1), torch.bincount(row, minlength=size[0]).cumsum(0)])
    values = torch.ones(len(row), dtype=dtype, device=row.device) if weight is None else weight[order].to(dtype)
    with warnings.catch_warnings():
        # torch warns once that sparse tensors may change; our tests cover what is used of them.
        warnings.filterwarnings("ignore", message="Sparse")
        return torch.sparse_csr_tensor(starts, column[order], values, size, check_invariants=False)


def item_log_weights(answers: AnswerMatrix, logs: Tensor, *, class_logs: Tensor) -> Tensor:
    r"""Return :math:`\ln \rho_{ij} = \ln \kappa_j + \sum_{\text{answers about } i} \ln \pi^{(k)}_{j, \text{label}}`.

    Parameters
    ----------
    answers
        The answers.
    logs
        Expected logarithms of confusion, of shape (K, J, L).
    class_logs
        Expected logarithms of the class proportions, of shape (J,); or what is known of each item's class beforehand,
        such as the log probabilities of a classifier, of shape (N, J).
    """
    check_answers(answers)
    return answers.sum_by_item(logs) + class_logs  # eq:VB_lnqstar_ti


def item_posteriors(log_weights: Tensor, gold: Tensor | None = None) -> Tensor:
    r"""Return the class probabilities :math:`q(t_i = j) = \rho_{ij} / \sum_m \rho_{im}`, of shape (N, J).

    Items keep their `gold`, class probabilities of shape (N, J), unless it is NaN.
    """
    # "Variational Equations for IBCC".
    probs = torch.softmax(log_weights, dim=1)
    return probs if gold is None else torch.where(gold.isnan(), probs, gold)


def sufficient_counts(answers: AnswerMatrix, probs: Tensor) -> Tensor:
    r"""Return how often each volunteer is expected to have given each label to items of each class, of shape (K, J, L).

    That is :math:`N^{(k)}_{jl} = \sum_i q(t_i = j) \, [c^{(k)}_i = l]`.
    """
    check_answers(answers)
    return answers.sum_by_volunteer(probs)  # eq:decisionCount


def log_evidence(log_weights: Tensor, gold: Tensor | None = None) -> Tensor:
    r"""Return :math:`\sum_i \ln \sum_j \rho_{ij}`, the bound but for the divergences of the Dirichlets.

    These are the three terms :math:`E[\ln p(c | t, \Pi)] + E[\ln p(t | \kappa)] - E[\ln q(t)]` at the best q(t). Items
    with `gold` have :math:`\sum_j q_{ij} (\ln \rho_{ij} - \ln q_{ij})` instead.
    """
    log_norms = torch.logsumexp(log_weights, dim=1)
    if gold is None:
        return total(log_norms)
    known = ~gold.isnan().any(1)
    truth = torch.where(known[:, None], gold, 0.0)
    return total(torch.where(known, (truth * log_weights + torch.special.entr(truth)).sum(1), log_norms))


def lower_bound(
    answers: AnswerMatrix,
    *,
    confusion: Tensor,
    classes: Tensor,
    confusion_prior: Tensor,
    class_prior: Tensor,
    gold: Tensor | None = None,
) -> Tensor:
    r"""Return the lower bound on the log evidence of IBCC, all seven terms, as a tensor.

    It is the bound at the best q(t), so that its gradient with respect to anything else is the bound's.

    Parameters
    ----------
    answers
        The answers.
    confusion, classes
        Concentrations of :math:`q(\Pi)`, of shape (K, J, L), and of :math:`q(\kappa)`, of shape (J,).
    confusion_prior, class_prior
        Concentrations of the priors: (K, J, L), or (1, J, L) if all volunteers share it, and (J,).
    gold
        Class probabilities of items whose class is known, of shape (N, J), NaN for all others.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=400, gold=0.2, seed=0).graph
    >>> fit = cg.IBCC(confusion_prior=(4, 1), tol=1e-9).fit(graph)
    >>> responses, estimate = graph.to_torch(), fit.to_torch()
    >>> bound = cg.tensors.lower_bound(
    ...     responses.answers,
    ...     confusion=estimate.confusion,
    ...     classes=estimate.classes,
    ...     confusion_prior=estimate.confusion_prior,
    ...     class_prior=estimate.class_prior,
    ...     gold=responses.gold,
    ... )
    >>> bool(abs(float(bound) - fit.bound[-1]) < 1e-6)
    True
    """
    check_answers(answers)
    n_volunteers, _, n_labels = answers.sizes
    _check_shape("confusion", confusion, (n_volunteers, "J", n_labels))
    n_classes = confusion.shape[1]
    _check_shape("classes", classes, (n_classes,))
    _check_shape("confusion_prior", confusion_prior, (len(confusion_prior), n_classes, n_labels))
    _check_shape("class_prior", class_prior, (n_classes,))
    # sec:staticLowerBound: E[ln p(c|t,Pi)] + E[ln p(t|kappa)] - E[ln q(t)], then E[ln p(Pi)] - E[ln q(Pi)] and
    # E[ln p(kappa)] - E[ln q(kappa)].
    log_weights = item_log_weights(answers, expected_log(confusion), class_logs=expected_log(classes))
    return (
        log_evidence(log_weights, gold)
        - total(dirichlet_divergence(confusion, confusion_prior))
        - dirichlet_divergence(most_precise(classes), class_prior)
    )
