"""Turn the priors that users specify, of confusion and of classes, into Dirichlet concentrations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, FrozenMapping, same_values
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.result import missing_ids
from crowdgraph.errors import AlignmentError, GoldError, ParameterError
from crowdgraph.messages import Hint, Message, quote, suggestion
from crowdgraph.models._resources import current_resources
from crowdgraph.models.label_votes import Votes, gold_counts, vote_mask

ConfusionPrior: TypeAlias = (
    "tuple[float, float] | ArrayLike | Mapping[Hashable, ArrayLike] | CrowdPrior | ModelFit | str | None"
)
ClassPrior: TypeAlias = "float | ArrayLike | Mapping[Hashable, float] | None"

# The words that a confusion prior can be.
CROWD, GOLD = "crowd", "gold"
# Pseudo-counts of right and wrong labels: mild, but enough to say which class is which.
DEFAULT_PSEUDO_COUNTS = (4.0, 1.0)
# A class needs this many gold items before their answers say how the crowd labels it.
MIN_GOLD_ITEMS = 5
# How many volunteers such a start is learned from; more hardly change where the fit ends.
MAX_START_VOLUNTEERS = 1_000
# Beyond these, sums of digamma functions are no longer exact enough for a bound that never falls.
MIN_PSEUDO_COUNT, MAX_PSEUDO_COUNT = 1e-8, 1e8
# Beyond these, what is computed from priors that are learned, or as published, needs double precision.
SINGLE_PRECISION_RANGE = (1e-3, 1e5)


def normalise_confusion_prior(spec: Any) -> Any:
    """Check a confusion prior as far as possible without a graph, and return it in the form in which models hold it."""
    if isinstance(spec, ModelFit):
        return spec.as_prior()
    if spec is None:
        return CROWD
    if isinstance(spec, CrowdPrior):
        return spec
    if isinstance(spec, str):
        if spec not in (CROWD, GOLD):
            raise ParameterError(
                f"confusion_prior={spec!r} is not a choice; the words it can be are {CROWD!r} and {GOLD!r}.",
                hint="Or give pseudo-counts: a pair (right, wrong), or a matrix of classes by labels.",
            )
        return spec
    if isinstance(spec, Mapping):
        return FrozenMapping(
            {name: _pair_or_matrix(f"The confusion prior of {name!r}", value) for name, value in spec.items()}
        )
    return _pair_or_matrix("confusion_prior", spec)


def normalise_class_prior(spec: Any) -> Any:
    """Check a class prior as far as possible without a graph, and return it in the form in which models hold it."""
    if spec is None:
        return None
    if isinstance(spec, Mapping):
        return FrozenMapping(
            {name: float(_pseudo_counts(f"class_prior of {name!r}", value)) for name, value in spec.items()}
        )
    values = _pseudo_counts("class_prior", spec)
    return float(values) if values.ndim == 0 else tuple(values.ravel().tolist())


def crowd_prior(graph: CrowdGraph, spec: Any, class_spec: ClassPrior, votes: Votes | None) -> CrowdPrior:
    """Return the prior of a graph's volunteers and classes, from normalised specifications."""
    if isinstance(spec, CrowdPrior):
        _check_prior_matches(spec, graph)
        for part in ("confusion", "shared"):
            _pseudo_counts(f"The prior's {part}", getattr(spec, part))
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
        forward=spec.forward if isinstance(spec, CrowdPrior) else None,
    )


def check_single_precision(prior: CrowdPrior, dtype: str, *, because: str) -> None:
    """Raise if single precision was asked for and does not hold what follows from such pseudo-counts."""
    counts = np.concatenate([prior.shared.ravel(), prior.confusion.ravel()])
    lowest, highest = SINGLE_PRECISION_RANGE
    if dtype == "float32" and (counts.min() < lowest or counts.max() > highest):
        raise ParameterError(
            f"dtype='float32' with {because} needs pseudo-counts from {lowest:g} to {highest:g}; those of the prior "
            f"are from {counts.min():g} to {counts.max():g}.",
            hint="Use dtype='float64' for such a prior.",
        )


def volunteer_priors(prior: CrowdPrior, graph: CrowdGraph) -> Array:
    """Return the prior concentration of each volunteer's confusion, (K, J, L), or (1, J, L) if all share it."""
    return prior.of_all(graph.volunteers.ids.tolist()) if len(prior.ids) else prior.shared[None]


def _own_and_shared(graph: CrowdGraph, spec: Any, votes: Votes | None) -> tuple[Any, Array, Array]:
    """Return ids and priors of the volunteers with a prior of their own, and the prior of all others."""
    shape = (len(graph.classes), len(graph.labels))
    nobody: tuple[Any, Array] = ([], np.zeros((0, *shape)))
    if spec == CROWD:
        return *nobody, _start_of_crowd(graph, votes)
    if spec == GOLD:
        return *nobody, _from_gold(graph, votes)
    if isinstance(spec, Mapping):
        unknown = missing_ids([name for name in spec if name is not None], graph.volunteers.table)
        if unknown:
            raise ParameterError(
                f"confusion_prior= names {len(unknown):,} volunteers who are not in the graph: {quote(unknown)}."
                f"{suggestion(unknown[0], graph.volunteers.ids[:10_000].tolist())}"
            )
        priors = {
            name: _concentration(graph, value, votes, name=f"The confusion prior of {name!r}")
            for name, value in spec.items()
        }
        shared = priors.pop(None) if None in priors else _from_pair(graph, DEFAULT_PSEUDO_COUNTS, votes)
        return list(priors), np.array(list(priors.values())).reshape(-1, *shape), shared
    return *nobody, _concentration(graph, spec, votes, name="confusion_prior")


def _concentration(graph: CrowdGraph, value: Any, votes: Votes | None, *, name: str) -> Array:
    """Return pseudo-counts of shape (J, L) from a pair or a matrix."""
    if np.shape(value) == (2,):
        return _from_pair(graph, value, votes)
    return _check_shape(value, (len(graph.classes), len(graph.labels)), name)


def _from_pair(graph: CrowdGraph, pair: tuple[float, float], votes: Votes | None) -> Array:
    """Return pseudo-counts of shape (J, L): one number where a label votes for the class, another elsewhere."""
    matrix = (
        f"confusion_prior= as a matrix of shape ({len(graph.classes)}, {len(graph.labels)}), pseudo-counts of each "
        "label given each class (for volunteers who are not in a mapping, under the key None)."
    )
    alternative = Hint(f" Or give {matrix}", cli=f" Or, in Python, give {matrix}")
    return np.where(vote_mask(graph, votes, alternative=alternative), *pair)


def _start_of_crowd(graph: CrowdGraph, votes: Votes | None) -> Array:
    """Return the rows from which learning a prior from the crowd starts: mild ones, and gold's where it has enough."""
    mild = _from_pair(graph, DEFAULT_PSEUDO_COUNTS, votes)
    answered = graph.gold.known & (graph.answers.n_by_item > 0)
    enough = (current_resources().total(graph.gold.probs[answered].sum(axis=0)) >= MIN_GOLD_ITEMS)[:, None]
    return (
        np.where(enough, _from_gold(graph, votes, max_volunteers=MAX_START_VOLUNTEERS), mild) if enough.any() else mild
    )


def check_gold_for_prior(graph: CrowdGraph) -> None:
    """Raise unless there are answers to items with gold, from which a prior can be learned."""
    n_answers = np.array([np.count_nonzero(graph.gold.known[graph.answers.item])])
    if not current_resources().total(n_answers).any():
        raise GoldError(
            Message("confusion_prior='gold'", cli="--prior gold")
            + " is learned from answers to items with gold, and there are none.",
            hint=Hint(
                "Add gold with graph.with_gold({item: class, ...}), or leave confusion_prior out: it is then learned "
                "from the crowd.",
                cli="Add gold with --gold FILE, or leave --prior out: it is then learned from the crowd.",
            ),
        )


def _from_gold(graph: CrowdGraph, votes: Votes | None, *, max_volunteers: int | None = None) -> Array:
    """Estimate the shared Dirichlet rows under which the labels given to gold items are most probable.

    One pseudo-volunteer distributed according to the default prior keeps them finite. Of more than `max_volunteers` a
    sample counts.
    """
    import torch

    from crowdgraph.kernels._runtime import single_threaded_torch
    from crowdgraph.kernels.dirichlet import empirical_bayes_concentration

    check_gold_for_prior(graph)
    counts, _ = gold_counts(graph)
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    labels_have_classes = votes is not None or set(graph.labels) <= set(graph.classes)
    prior = (
        _from_pair(graph, DEFAULT_PSEUDO_COUNTS, votes)
        if labels_have_classes
        else np.ones((len(graph.classes), len(graph.labels)))
    )
    if max_volunteers is not None:
        counts = counts[:: 1 + len(counts) // max_volunteers].copy()
    with single_threaded_torch():
        return empirical_bayes_concentration(torch.from_numpy(counts), torch.from_numpy(prior.astype(float))).numpy()


def _class_concentration(graph: CrowdGraph, spec: Any) -> Array:
    """Return pseudo-counts of the classes, of shape (J,)."""
    n_classes = len(graph.classes)
    if isinstance(spec, Mapping):
        missing = [name for name in graph.classes if name not in spec]
        unknown = [name for name in spec if name not in graph.classes]
        if missing or unknown:
            raise ParameterError(
                f"class_prior= must name the classes {quote(graph.classes)}; it "
                + (f"misses {quote(missing)}." if missing else f"names {quote(unknown)}.")
            )
        spec = [spec[name] for name in graph.classes]
    values = _pseudo_counts("class_prior", 1.0 if spec is None else spec)
    if values.ndim == 0:
        values = np.full(n_classes, float(values))
    return _check_shape(values, (n_classes,), "class_prior")


def _check_prior_matches(prior: CrowdPrior, graph: CrowdGraph) -> None:
    for what in ("classes", "labels"):
        got, expected = getattr(prior, what), getattr(graph, what)
        if not same_values(got, expected):
            raise AlignmentError(
                f"The prior was made for the {what} {quote(got)}; the graph has {quote(expected)}.",
                hint=f"Build the graph with {what}={list(got)!r}, if these are the same.",
            )


def _pseudo_counts(name: str, values: Any) -> Array:
    """Return values as an array, or raise unless all of them are possible pseudo-counts."""
    try:
        if np.array(values).dtype.kind not in "iuf":
            raise TypeError("not all of it is numbers")
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be made of numbers; got {values!r} ({error}).") from error
    valid = (array >= MIN_PSEUDO_COUNT) & (array <= MAX_PSEUDO_COUNT)
    if not valid.all():
        raise ParameterError(
            f"{name} must be made of numbers above zero (pseudo-counts), between {MIN_PSEUDO_COUNT:g} and "
            f"{MAX_PSEUDO_COUNT:g}; got {quote(array[~valid].ravel().tolist())}."
        )
    return array


def _pair_or_matrix(name: str, values: Any) -> tuple[Any, ...]:
    """Return a pair or a matrix as tuples, so that models can be compared and cannot be changed."""
    array = _pseudo_counts(name, values)
    if array.shape == (2,):
        return tuple(array.tolist())
    if array.ndim != 2:
        raise ParameterError(
            f"{name} has shape {array.shape}; expected a pair (right, wrong), or a matrix of classes by labels."
        )
    return tuple(map(tuple, array.tolist()))


def _check_shape(values: Any, shape: tuple[int, ...], name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != shape:
        meaning = "classes by labels" if len(shape) == 2 else "one for each class"
        raise ParameterError(f"{name} has shape {array.shape}; expected {shape}, {meaning}.")
    return array
