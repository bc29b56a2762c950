"""Whether volunteers behave alike because they worked on the same things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdgraph.communities.agreement import agreement
from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed, child_seed
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, ParameterError

__all__ = ["NetworkComparison", "compare_networks"]

# Weights are compared pair by pair of at most so many volunteers.
MOST_WEIGHED = 3_000
# Sums of the same numbers in another order differ by less.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkComparison(ReadOnlyArrays):
    """How much shared exposure tells about shared behaviour.

    Attributes
    ----------
    behaviour, exposure
        The communities that were compared.
    n_volunteers
        How many volunteers have a community in both.
    ari, nmi
        The adjusted Rand index and the normalised mutual information of the two assignments; see `agreement`.
    p_value
        The share of shuffled crowds whose `nmi` is at least as large, this one counted among them.
    null
        The `nmi` of each shuffled crowd, of shape (B,).
    explained, explained_by_chance
        What share of the entropy of behaviour exposure tells, and what it tells on average in a shuffled crowd; NaN
        where all behave alike.
    weight_correlation, weight_p_value
        The correlation of the weights of all pairs of volunteers in both networks, and the share of shuffled crowds
        in which it is at least as large (Mantel's test). NaN where communities were given instead of networks, where
        all weights of one are the same, and for more than 3,000 volunteers.
    """

    behaviour: Communities
    exposure: Communities
    n_volunteers: int
    ari: float
    nmi: float
    p_value: float
    null: Array
    explained: float
    explained_by_chance: float
    weight_correlation: float
    weight_p_value: float

    @property
    def verdict(self) -> str:
        """What was found, in a sentence; more than chance is a p value of at most 0.05."""
        if np.isnan(self.explained):
            return "all volunteers behave alike, so that there is nothing to explain"
        if self.explained_by_chance <= ROUNDING:
            return "all volunteers share items, so that these cannot explain how they differ"
        than = "more" if self.p_value <= 0.05 else "no more"
        return (
            f"shared items tell {self.explained:.0%} about behaviour, {self.explained_by_chance:.0%} by chance: {than} "
            f"than chance (p = {self.p_value:.2g})"
        )

    def __repr__(self) -> str:
        return f"NetworkComparison({self.n_volunteers:,} volunteers: {self.verdict})"


def compare_networks(
    behaviour: VolunteerNetwork | Communities,
    exposure: VolunteerNetwork | Communities,
    *,
    detector: Detector | None = None,
    n_permutations: int = 999,
    seed: int | None = None,
    progress: bool = False,
) -> NetworkComparison:
    """Tell whether shared exposure explains shared behaviour.

    The communities of volunteers who behave alike are compared with those of volunteers who worked on the same items,
    over volunteers who have both. What chance gives is found by shuffling the volunteers of one of them. Communities
    may also agree because both depend on something else, such as how much somebody answered.

    Parameters
    ----------
    behaviour
        Who behaves alike, such as `networks.pi_similarity` gives: a network, or communities found in one.
    exposure
        Who worked on the same things, such as `networks.task_cooccurrence` gives, likewise.
    detector
        What finds the communities of networks; `BayesianNMF` if left out.
    n_permutations
        How often to shuffle.
    seed
        The same seed gives the same answer.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = [cg.simulate.Group(name=name, confusion=rows)
    ...           for name, rows in {"able": [[0.9, 0.1], [0.1, 0.9]], "timid": [[0.9, 0.1], [0.8, 0.2]]}.items()]
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=6_000, groups=groups, n_communities=3, seed=1).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> alike, together = cg.networks.pi_similarity(graph), cg.networks.task_cooccurrence(graph)
    >>> print(compare_networks(alike, together, seed=0).verdict)
    shared items tell 1% about behaviour, 3% by chance: no more than chance (p = 0.69)
    """
    check_integer("n_permutations", n_permutations)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    groups = [
        _communities(given, detector, name, child_seed(rng), progress=progress)
        for name, given in (("behaviour", behaviour), ("exposure", exposure))
    ]
    one, other = _assignments(*groups)
    found = agreement(one, other)
    information, entropies = _information(one, other)
    shuffled = _shuffled(lambda order: information(one[order]), len(one), n_permutations, rng, progress=progress)
    known = information(one)
    scale = sum(entropies) / 2
    correlation, weight_p_value = float("nan"), float("nan")
    if isinstance(behaviour, VolunteerNetwork) and isinstance(exposure, VolunteerNetwork):
        correlation, weight_p_value = _weights(behaviour, exposure, n_permutations, rng, progress=progress)
    return NetworkComparison(
        behaviour=groups[0],
        exposure=groups[1],
        n_volunteers=len(one),
        ari=found.ari,
        nmi=found.nmi,
        p_value=_p_value(known, shuffled),
        # Two divisions of no information are the same one, however shuffled.
        null=lock(shuffled / scale if scale else np.ones(n_permutations)),
        explained=known / entropies[0] if entropies[0] else float("nan"),
        explained_by_chance=float(shuffled.mean()) / entropies[0] if entropies[0] else float("nan"),
        weight_correlation=correlation,
        weight_p_value=weight_p_value,
    )


def _communities(
    given: VolunteerNetwork | Communities, detector: Detector | None, name: str, seed: int, *, progress: bool
) -> Communities:
    if detector is not None and not isinstance(detector, Detector):
        raise ParameterError(f"detector= takes a detector such as Leiden(); got {detector!r}.")
    if isinstance(given, Communities):
        return given
    if not isinstance(given, VolunteerNetwork):
        raise ParameterError(f"{name} must be a VolunteerNetwork or Communities; got a {type(given).__name__}.")
    return (detector or BayesianNMF()).detect(given, seed=seed, progress=progress)


def _assignments(behaviour: Communities, exposure: Communities) -> tuple[Array, Array]:
    """The communities of volunteers who have one in both."""
    common = [name for name in behaviour.ids.tolist() if name in exposure.table]
    one = behaviour.assignment[behaviour.table.codes(common)]
    other = exposure.assignment[exposure.table.codes(common)]
    both = (one >= 0) & (other >= 0)
    if np.count_nonzero(both) < 2:
        raise AlignmentError(
            f"{np.count_nonzero(both)} volunteers have both a community of behaviour and one of exposure; a comparison "
            "needs two or more. Make both networks from the same graph."
        )
    return one[both], other[both]


def _information(one: Array, other: Array) -> tuple[Callable[[Array], float], tuple[float, float]]:
    """A function of `one` in any order that gives its mutual information with `other`; and the entropies of both."""
    n, width = len(one), int(other.max()) + 1
    # The sum of k ln k over cells of a table, for whole k.
    terms = np.arange(n + 1) * np.log(np.maximum(np.arange(n + 1), 1))
    margins = [float(terms[np.bincount(codes)].sum()) for codes in (one, other)]

    def information(order: Array) -> float:
        cells = terms[np.bincount(order * width + other)].sum()
        return float(np.log(n) + (cells - sum(margins)) / n)

    entropies = [float(np.log(n) - margin / n) for margin in margins]
    # A single community has an entropy of rounding.
    first, second = (entropy if entropy > ROUNDING else 0.0 for entropy in entropies)
    return information, (first, second)


def _weights(
    behaviour: VolunteerNetwork,
    exposure: VolunteerNetwork,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    progress: bool,
) -> tuple[float, float]:
    """The correlation of the weights of all pairs of volunteers in both networks, and its p value."""
    common = [name for name in behaviour.ids.tolist() if name in exposure.table]
    n = len(common)
    if n > MOST_WEIGHED or n < 3:
        return float("nan"), float("nan")
    parts = [network.subnetwork(common) for network in (behaviour, exposure)]
    fewer, more = sorted(parts, key=lambda part: part.n_edges)
    left, right, values = fewer.edges()
    whole = more.weights if isinstance(more.weights, np.ndarray) else more.weights.toarray()
    n_pairs = n * (n - 1) / 2
    # Means and spreads stay the same however volunteers are shuffled; only the products change.
    means = [part.strength.sum() / 2 / n_pairs for part in parts]
    spreads = [_spread(part.edges()[2], n_pairs) for part in parts]
    if min(spreads) <= 0:
        return float("nan"), float("nan")

    def correlation(order: Array) -> float:
        product = float(values @ whole[order[left], order[right]]) / n_pairs
        return float((product - means[0] * means[1]) / (spreads[0] * spreads[1]))

    known = correlation(np.arange(n))
    return known, _p_value(known, _shuffled(correlation, n, n_permutations, rng, progress=progress))


def _spread(values: Array, n_pairs: float) -> float:
    """The standard deviation of the weights of all pairs, of which those not given are zero; zero if it is rounding."""
    mean = values.sum() / n_pairs
    variance = (((values - mean) ** 2).sum() + (n_pairs - len(values)) * mean**2) / n_pairs
    return float(np.sqrt(variance)) if variance > ROUNDING * mean**2 else 0.0


def _shuffled(
    statistic: Callable[[Array], float], n: int, n_permutations: int, rng: np.random.Generator, *, progress: bool
) -> Array:
    """A statistic of the volunteers in random orders."""
    from tqdm.auto import trange

    rounds = trange(n_permutations, desc="shuffling", disable=not progress, leave=False)
    return np.array([statistic(rng.permutation(n)) for _ in rounds])


def _p_value(known: float, shuffled: Array) -> float:
    return float((1 + np.count_nonzero(shuffled >= known - ROUNDING)) / (1 + len(shuffled)))
