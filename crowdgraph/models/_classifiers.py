"""Classifiers that are trained on what a crowd's answers say about items, and predict items they were not trained on.

This module imports torch; models import it only when they are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from crowdgraph.errors import ParameterError, TrainingError
from crowdgraph.messages import with_article
from crowdgraph.tensors import log_evidence
from crowdgraph.tensors.devices import limits_of

Optimiser = Callable[[Any], torch.optim.Optimizer]
# Rows that are predicted together.
ROWS_PER_PREDICTION = 4096


class Standardised(nn.Module):
    """Flattens features and brings each to mean 0 and standard deviation 1; those that never vary become 0."""

    mean: Tensor
    scale: Tensor

    def __init__(self, rows: Tensor, dtype: torch.dtype) -> None:
        super().__init__()
        flat = rows.flatten(1).double()
        spread = flat.std(0, correction=0)
        self.register_buffer("mean", flat.mean(0).to(dtype))
        self.register_buffer("scale", torch.where(spread > 0, spread, 1.0).to(dtype))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features, standardised."""
        standardised: Tensor = (rows.flatten(1).to(self.mean.dtype) - self.mean) / self.scale
        return standardised


def linear_classifier(rows: Tensor, n_classes: int, dtype: torch.dtype) -> nn.Module:
    """Return multinomial logistic regression on standardised features, with weights of zero."""
    linear = nn.Linear(rows.flatten(1).shape[1], n_classes, dtype=dtype)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(Standardised(rows, dtype), linear)


def build_classifier(spec: Any, rows: Tensor, n_classes: int, *, dtype: torch.dtype) -> nn.Module:
    """Return a new classifier: a copy of a module, what a function returns, or the linear one in a precision."""
    if isinstance(spec, str):
        return linear_classifier(rows, n_classes, dtype)
    if isinstance(spec, nn.Module):
        return deepcopy(spec)
    n_features = rows.shape[1] if rows.ndim == 2 else tuple(rows.shape[1:])
    module = spec(n_features, n_classes)
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"classifier= is a function that returned {with_article(type(module))}; expected a torch.nn.Module.",
            hint="Such as classifier=lambda n_features, n_classes: torch.nn.Linear(n_features, n_classes).",
        )
    return module


def check_precision(classifier: nn.Module, device: torch.device) -> None:
    """Raise if a classifier computes in double precision and the device does not."""
    if type_of(classifier) == torch.float64 and not limits_of(device).float64:
        raise ParameterError(
            f"The classifier is in double precision, which device={str(device)!r} does not have.",
            hint="Convert it with classifier.float().",
        )


def check_output(classifier: nn.Module, rows: Tensor, n_classes: int) -> None:
    """Raise unless a classifier turns features into a logit for each class."""
    first = rows[:2]
    try:
        with torch.no_grad():
            logits = classifier.eval()(first)
    except RuntimeError as error:
        raise ParameterError(
            f"The classifier cannot take features of shape {tuple(first.shape)} and type {first.dtype}: {error}",
            hint="Features have a row for each item.",
        ) from error
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else with_article(type(logits))
    if shape != (len(first), n_classes):
        raise ParameterError(
            f"The classifier returned {shape} for {len(first)} items; expected logits of shape "
            f"({len(first)}, {n_classes}), a column for each of the graph's {n_classes} classes."
        )


def type_of(classifier: nn.Module) -> torch.dtype:
    """Return the type in which a classifier computes."""
    return next((one.dtype for one in classifier.parameters() if one.is_floating_point()), torch.get_default_dtype())


def is_trainable(classifier: nn.Module) -> bool:
    """Return whether some of a classifier's weights may change."""
    return any(one.requires_grad for one in classifier.parameters())


def log_probs(classifier: nn.Module, rows: Tensor) -> Tensor:
    """Return the logarithms of a classifier's probabilities, of shape (N, J)."""
    classifier.eval()
    parts = torch.split(rows, ROWS_PER_PREDICTION)
    with torch.no_grad():
        return torch.cat([torch.log_softmax(classifier(part), dim=1) for part in parts])


@contextmanager
def seeded(seed: int | None, device: torch.device) -> Iterator[torch.Generator]:
    """Seed PyTorch's random numbers, for dropout and first weights, and restore them; yield another generator."""
    seed = int(np.random.default_rng(seed).integers(2**31))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield torch.Generator().manual_seed(seed)


class Targets(NamedTuple):
    """What is known about items' classes: log probabilities of their answers and gold (NaN if none), each (N, J)."""

    evidence: Tensor
    gold: Tensor

    @classmethod
    def from_probs(cls, probs: Tensor) -> Targets:
        """Return class probabilities as targets."""
        return cls(torch.zeros_like(probs), probs)


def _batches(order: Tensor, size: int) -> list[Tensor]:
    """Return batches of items; one that is left over joins the last batch, since norms over batches need two."""
    batches = list(torch.split(order, size))
    if len(batches) > 1 and len(batches[-1]) == 1 < size:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


class Learner:
    """A classifier, its optimiser and the items it is trained on.

    Parameters
    ----------
    classifier, optimiser
        The classifier and a function that makes an optimiser of its parameters.
    rows, members
        The features of all items, and the codes of those to train on.
    batch_size, generator
        How many items a batch has, and what shuffles them.
    name
        Completes the sentence "The loss of ..." of an error.
    """

    def __init__(
        self,
        classifier: nn.Module,
        optimiser: Optimiser,
        *,
        rows: Tensor,
        members: Tensor,
        batch_size: int,
        generator: torch.Generator,
        name: str,
    ) -> None:
        self.classifier = classifier
        self._optimiser = optimiser([one for one in classifier.parameters() if one.requires_grad])
        self._rows, self._members, self._name = rows, members, name
        self._batch_size, self._generator = batch_size, generator
        self._last_good = deepcopy(classifier.state_dict())

    def train(self, targets: Targets, *, epochs: int, period: str) -> None:
        """Raise the bound by some epochs; `period` says when, for errors."""
        self.classifier.train()
        for epoch in range(epochs):
            order = torch.randperm(len(self._members), generator=self._generator)
            for number, positions in enumerate(_batches(order, self._batch_size)):
                items = self._members[positions.to(self._members.device)]
                self._step(items, targets, when=f"{period}, epoch {epoch + 1}, batch {number + 1}")
        self._last_good = deepcopy(self.classifier.state_dict())

    def _step(self, items: Tensor, targets: Targets, *, when: str) -> None:
        rows, evidence, gold = self._rows[items], targets.evidence[items], targets.gold[items]

        def loss() -> float:
            self._optimiser.zero_grad()
            logits = torch.log_softmax(self.classifier(rows), dim=1)
            value = -log_evidence(evidence + logits, gold) / len(items)
            if not value.isfinite():
                raise self._error(float(value.detach()), when)
            value.backward()  # type: ignore[no-untyped-call]
            return float(value.detach())

        self._optimiser.step(loss)

    def _error(self, value: float, when: str) -> TrainingError:
        return TrainingError(
            f"The loss of {self._name} became {value} in {when}.",
            hint="Lower learning_rate, or bring the features to a common scale. This error's state_dict has the last "
            "good weights.",
            state_dict=self._last_good,
        )
