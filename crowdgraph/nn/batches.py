"""The answers about the items of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdgraph.errors import ParameterError
from crowdgraph.tensors import AnswerMatrix

__all__ = ["AnswersByItem"]


class AnswersByItem:
    """The answers of a crowd, gathered by item, so that those about a batch are picked quickly.

    Parameters
    ----------
    answers
        All answers.

    Examples
    --------
    >>> import torch
    >>> from crowdgraph.tensors import AnswerMatrix
    >>> answers = AnswerMatrix(*torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 1]]), n_volunteers=2, n_items=2, n_labels=2)
    >>> AnswersByItem(answers).about(torch.tensor([1]))
    AnswerMatrix(1 answers of 2 volunteers about 1 items, 2 labels, cpu)
    """

    def __init__(self, answers: AnswerMatrix) -> None:
        self._n_volunteers, n_items, self._n_labels = answers.sizes
        order = torch.argsort(answers.item, stable=True)
        self._cell = (answers.volunteer * self._n_labels + answers.label)[order]
        self._weight = None if answers.weight is None else answers.weight[order]
        self._counts = torch.bincount(answers.item, minlength=n_items)
        self._starts = self._counts.cumsum(0) - self._counts

    def about(self, items: Tensor) -> AnswerMatrix:
        """Return the answers about some items, in which the code of an item is its position in `items`.

        Parameters
        ----------
        items
            Codes of items, of shape (B,), as a loader of batches yields them.
        """
        n_items = len(self._counts)
        items = items.to(self._cell.device)
        if items.is_floating_point() or items.ndim != 1 or ((items < 0) | (items >= n_items)).any():
            raise ParameterError(f"items= must be codes from 0 to {n_items - 1}, of shape (B,); got {items!r}.")
        counts = self._counts[items]
        position = torch.repeat_interleave(torch.arange(len(items), device=items.device), counts)
        within = torch.arange(len(position), device=items.device) - (counts.cumsum(0) - counts)[position]
        rows = self._starts[items][position] + within
        return AnswerMatrix.from_cells(
            self._cell[rows],
            position,
            n_volunteers=self._n_volunteers,
            n_items=len(items),
            n_labels=self._n_labels,
            weight=None if self._weight is None else self._weight[rows],
        )
