"""From what a user says about confusion and classes to Dirichlet concentrations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, FrozenMapping, same_values
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import AlignmentError, GoldError, ParameterError, quote, suggestion
from crowdgraph.models.base import Answers
from crowdgraph.models.voting import Votes, vote_codes

ConfusionPrior: TypeAlias = (
    "tuple[float, float] | ArrayLike | Mapping[Hashable, ArrayLike] | CrowdPrior | ModelFit | str | None"
)
ClassPrior: TypeAlias = "float | ArrayLike | Mapping[Hashable, float] | None"

# Pseudo-counts of right and wrong labels: mild, but enough to say which class is which.
DEFAULT_PSEUDO_COUNTS = (4.0, 1.0)
# Beyond these, sums of their digamma functions are no longer exact enough for a bound that never falls.
LEAST, MOST = 1e-8, 1e8


def checked_confusion_prior(spec: Any) -> Any:
    """What can be checked of a confusion prior before there is a graph; arrays and fits come back as they are kept."""
    if isinstance(spec, ModelFit):
        return spec.as_prior()
    if spec is None or isinstance(spec, CrowdPrior):
        return spec
    if isinstance(spec, str):
        if spec != "gold":
            raise ParameterError(f"confusion_prior={spec!r} is not a choice; as a word it can only be 'gold'.")
        return spec
    if isinstance(spec, Mapping):
        return FrozenMapping(
            {name: _pair_or_matrix(f"The confusion prior of {name!r}", value) for name, value in spec.items()}
        )
    return _pair_or_matrix("confusion_prior", spec)


def checked_class_prior(spec: Any) -> Any:
    """What can be checked of a class prior before there is a graph; values come back as they are kept."""
    if spec is None:
        return None
    if isinstance(spec, Mapping):
        return FrozenMapping({name: float(_numbers(f"class_prior of {name!r}", value)) for name, value in spec.items()})
    values = _numbers("class_prior", spec)
    return float(values) if values.ndim == 0 else tuple(values.ravel().tolist())


def crowd_prior(graph: CrowdGraph, spec: Any, class_spec: ClassPrior, votes: Votes | None) -> CrowdPrior:
    """The prior of a graph's volunteers and classes, from specifications that have been checked."""
    if isinstance(spec, CrowdPrior):
        _check_made_for(spec, graph)
        for part in ("confusion", "shared"):
            _numbers(f"The prior's {part}", getattr(spec, part))
        ids, confusion, shared = spec.ids, spec.confusion, spec.shared
        class_spec = spec.class_concentration if class_spec is None else class_spec
    else:
        ids, confusion, shared = _own_and_shared(graph, spec, votes)
    return CrowdPrior(
        ids=ids,
        confusion=confusion,
        shared=shared,
        class_concentration=_class_concentration(graph, class_spec),
        classes=graph.classes,
        labels=graph.labels,
    )


def volunteer_priors(prior: CrowdPrior, graph: CrowdGraph) -> Array:
    """The prior concentration of each volunteer's confusion, (K, J, L), or (1, J, L) where all share it."""
    return prior.of_all(graph.volunteers.ids.tolist()) if len(prior.ids) else prior.shared[None]


def gold_counts(answers: Answers) -> tuple[Array, Array]:
    """How often volunteers gave labels to gold items of each class, (K, J, L), and how many there are, (J,).

    Soft gold counts by its probabilities.
    """
    graph = answers.graph
    gold = graph.gold
    shape = (len(graph.volunteers), len(graph.classes), len(graph.labels))
    rows = np.flatnonzero(gold.known[answers.item])
    cells = answers.volunteer[rows].astype(np.int64) * shape[2] + answers.label[rows]
    truth = gold.probs[answers.item[rows]]
    by_class = [np.bincount(cells, truth[:, j], minlength=shape[0] * shape[2]) for j in range(shape[1])]
    counts = np.stack([column.reshape(shape[0], shape[2]) for column in by_class], axis=1)
    return counts, gold.probs[gold.known].sum(axis=0)


def _own_and_shared(graph: CrowdGraph, spec: Any, votes: Votes | None) -> tuple[Any, Array, Array]:
    """Ids and concentrations of the volunteers with a prior of their own, and the concentration of all others."""
    shape = (len(graph.classes), len(graph.labels))
    nobody: tuple[Any, Array] = ([], np.zeros((0, *shape)))
    if isinstance(spec, str):
        return *nobody, _from_gold(graph, votes)
    if isinstance(spec, Mapping):
        strangers = [name for name in spec if name is not None and name not in graph.volunteers]
        if strangers:
            raise ParameterError(
                f"confusion_prior= names {len(strangers):,} volunteers who are not in the graph: {quote(strangers)}."
                f"{suggestion(strangers[0], graph.volunteers.ids[:10_000].tolist())}"
            )
        given = {
            name: _concentration(graph, value, votes, name=f"The confusion prior of {name!r}")
            for name, value in spec.items()
        }
        shared = given.pop(None) if None in given else _from_pair(graph, DEFAULT_PSEUDO_COUNTS, votes)
        return list(given), np.array(list(given.values())).reshape(-1, *shape), shared
    return *nobody, _concentration(
        graph, DEFAULT_PSEUDO_COUNTS if spec is None else spec, votes, name="confusion_prior"
    )


def _concentration(graph: CrowdGraph, value: Any, votes: Votes | None, *, name: str) -> Array:
    """Pseudo-counts of shape (J, L) from a pair or a matrix."""
    if np.shape(value) == (2,):
        return _from_pair(graph, value, votes)
    return _shaped(value, (len(graph.classes), len(graph.labels)), name)


def _from_pair(graph: CrowdGraph, pair: tuple[float, float], votes: Votes | None) -> Array:
    """One number where a label votes for the class, another elsewhere, of shape (J, L)."""
    shape = f"({len(graph.classes)}, {len(graph.labels)})"
    way = (
        f" Or give confusion_prior= as a matrix of shape {shape}, pseudo-counts of each label given each class (for "
        "volunteers who are in no mapping, under the key None)."
    )
    targets = vote_codes(graph, votes, or_else=way)
    return np.where(targets == np.arange(len(graph.classes))[:, None], *pair)


def _from_gold(graph: CrowdGraph, votes: Votes | None) -> Array:
    """The Dirichlet rows under which the labels given to gold items are most probable, shared by all volunteers.

    One more, imagined volunteer who is distributed as the usual prior says keeps it finite.
    """
    import torch

    from crowdgraph.kernels.dirichlet import empirical_bayes_concentration

    counts, _ = gold_counts(Answers(graph))
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    if not len(counts):
        raise GoldError(
            "confusion_prior='gold' is learned from answers to items with gold, and there are none. Add gold with "
            "graph.with_gold({item: class, ...}), or give the prior as numbers."
        )
    usual = votes is not None or set(graph.labels) <= set(graph.classes)
    given = (
        _from_pair(graph, DEFAULT_PSEUDO_COUNTS, votes) if usual else np.ones((len(graph.classes), len(graph.labels)))
    )
    return empirical_bayes_concentration(torch.from_numpy(counts), torch.from_numpy(given.astype(float))).numpy()


def _class_concentration(graph: CrowdGraph, spec: Any) -> Array:
    n_classes = len(graph.classes)
    if isinstance(spec, Mapping):
        missing = [name for name in graph.classes if name not in spec]
        strange = [name for name in spec if name not in graph.classes]
        if missing or strange:
            raise ParameterError(
                f"class_prior= must name the classes {quote(graph.classes)}; it "
                + (f"misses {quote(missing)}." if missing else f"names {quote(strange)}.")
            )
        spec = [spec[name] for name in graph.classes]
    values = _numbers("class_prior", 1.0 if spec is None else spec)
    if values.ndim == 0:
        values = np.full(n_classes, float(values))
    return _shaped(values, (n_classes,), "class_prior")


def _check_made_for(prior: CrowdPrior, graph: CrowdGraph) -> None:
    for what in ("classes", "labels"):
        got, expected = getattr(prior, what), getattr(graph, what)
        if not same_values(got, expected):
            raise AlignmentError(
                f"The prior was made for the {what} {quote(got)}; the graph has {quote(expected)}. Build the graph "
                f"with {what}={list(got)!r}, if these are the same."
            )


def _numbers(name: str, values: Any) -> Array:
    try:
        if np.array(values).dtype.kind not in "iuf":
            raise TypeError("not all of it is numbers")
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be made of numbers; got {values!r} ({error}).") from error
    good = (array >= LEAST) & (array <= MOST)
    if not good.all():
        raise ParameterError(
            f"{name} must be made of numbers above zero (pseudo-counts), between {LEAST:g} and {MOST:g}; got "
            f"{quote(array[~good].ravel().tolist())}."
        )
    return array


def _pair_or_matrix(name: str, values: Any) -> tuple[Any, ...]:
    """A pair or a matrix as tuples, so that models can be compared and not be changed."""
    array = _numbers(name, values)
    if array.shape == (2,):
        return tuple(array.tolist())
    if array.ndim != 2:
        raise ParameterError(
            f"{name} has shape {array.shape}; expected a pair (right, wrong), or a matrix of classes by labels."
        )
    return tuple(map(tuple, array.tolist()))


def _shaped(values: Any, shape: tuple[int, ...], name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != shape:
        meaning = "classes by labels" if len(shape) == 2 else "one for each class"
        raise ParameterError(f"{name} has shape {array.shape}; expected {shape}, {meaning}.")
    return array
