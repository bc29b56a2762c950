"""Comparison of two networks: whether volunteers behave alike because they worked on the same items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdgraph.communities.agreement import agreement
from crowdgraph.communities.base import Detector
from crowdgraph.communities.bayesian_nmf import BayesianNMF
from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock
from crowdgraph.core._parameters import check_integer, check_seed
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.communities import Communities
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import AlignmentError, ParameterError
from crowdgraph.messages import with_article

__all__ = ["NetworkComparison", "compare_networks"]

# Above this number of volunteers the weights of all pairs are not compared.
MAX_PAIRED_VOLUNTEERS = 3_000
# Sums of the same numbers in another order differ by less than this.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkComparison(ReadOnlyArrays):
    """How much of shared behaviour shared exposure explains.

    Attributes
    ----------
    behaviour, exposure
        The communities that were compared.
    n_volunteers
        How many volunteers have a community in both.
    ari, nmi
        The adjusted Rand index and the normalised mutual information of the two assignments; see `agreement`.
    p_value
        The share of permuted crowds whose `nmi` is at least as large, counting this one.
    null
        The `nmi` of each permuted crowd, of shape (B,).
    explained, explained_by_chance
        The share of the entropy of behaviour that exposure explains, and that it explains on average in a permuted
        crowd; NaN where all behave alike.
    weight_correlation, weight_p_value
        The correlation of the weights of all pairs of volunteers in both networks, and the share of permuted crowds in
        which it is at least as large (Mantel's test). NaN if communities were passed instead of networks, if all
        weights of one network are the same, and for more than 3,000 volunteers.
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
        """The result in a sentence; "more than chance" means a p value of at most 0.05."""
        if np.isnan(self.explained):
            return "all volunteers behave alike, so there is nothing to explain"
        if self.explained_by_chance <= ROUNDING:
            return "all volunteers share items, so items cannot explain how volunteers differ"
        than = "more" if self.p_value <= 0.05 else "no more"
        return (
            f"shared items explain {max(self.explained, 0.0):.0%} of behaviour, "
            f"{self.explained_by_chance:.0%} by chance: {than} "
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
    """Test whether shared exposure explains shared behaviour.

    It compares the communities of volunteers who behave alike with those of volunteers who worked on the same items,
    over the volunteers who have both, and permutes the volunteers of one of them to learn what chance gives.
    Communities may also agree because both depend on something else, such as the number of answers.

    Parameters
    ----------
    behaviour
        Who behaves alike, such as from `networks.pi_similarity`: a network, or communities found in one.
    exposure
        Who worked on the same items, such as from `networks.task_cooccurrence`, likewise.
    detector
        The detector of communities in networks; `BayesianNMF` if left out.
    n_permutations
        How many random permutations to compare with.
    seed
        The same seed gives the same result.
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
    shared items explain 1% of behaviour, 3% by chance: no more than chance (p = 0.69)
    """
    check_integer("n_permutations", n_permutations)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    groups = [
        _communities(subject, detector, name, child_seed(rng), progress=progress)
        for name, subject in (("behaviour", behaviour), ("exposure", exposure))
    ]
    one, other = _assignments(*groups)
    hard = agreement(one, other)
    information, entropies = _information(one, other)
    null = _permuted(lambda order: information(one[order]), len(one), n_permutations, rng, progress=progress)
    observed = information(one)
    scale = sum(entropies) / 2
    correlation, weight_p_value = float("nan"), float("nan")
    if isinstance(behaviour, VolunteerNetwork) and isinstance(exposure, VolunteerNetwork):
        correlation, weight_p_value = _weight_correlation(behaviour, exposure, n_permutations, rng, progress=progress)
    return NetworkComparison(
        behaviour=groups[0],
        exposure=groups[1],
        n_volunteers=len(one),
        ari=hard.ari,
        nmi=hard.nmi,
        p_value=_p_value(observed, null),
        # Two divisions without information are the same in any permutation.
        null=lock(null / scale if scale else np.ones(n_permutations)),
        explained=observed / entropies[0] if entropies[0] else float("nan"),
        explained_by_chance=float(null.mean()) / entropies[0] if entropies[0] else float("nan"),
        weight_correlation=correlation,
        weight_p_value=weight_p_value,
    )


def _communities(
    subject: VolunteerNetwork | Communities, detector: Detector | None, name: str, seed: int, *, progress: bool
) -> Communities:
    """Return the communities themselves, or detect those of a network."""
    if detector is not None and not isinstance(detector, Detector):
        raise ParameterError(f"detector= takes a detector such as Leiden(); got {detector!r}.")
    if isinstance(subject, Communities):
        return subject
    if not isinstance(subject, VolunteerNetwork):
        raise ParameterError(f"{name} must be a VolunteerNetwork or Communities; got {with_article(type(subject))}.")
    return (detector or BayesianNMF()).detect(subject, seed=seed, progress=progress)


def _assignments(behaviour: Communities, exposure: Communities) -> tuple[Array, Array]:
    """Return both communities of the volunteers who have one in each."""
    common = [name for name in behaviour.ids.tolist() if name in exposure.table]
    one = behaviour.assignment[behaviour.table.codes(common)]
    other = exposure.assignment[exposure.table.codes(common)]
    both = (one >= 0) & (other >= 0)
    if np.count_nonzero(both) < 2:
        raise AlignmentError(
            f"{np.count_nonzero(both)} volunteers have both a community of behaviour and one of exposure; a comparison "
            "needs two or more. Build both networks from the same graph."
        )
    return one[both], other[both]


def _information(one: Array, other: Array) -> tuple[Callable[[Array], float], tuple[float, float]]:
    """Return a function that gives the mutual information of `one`, permuted, with `other`; and both entropies."""
    n, width = len(one), int(other.max()) + 1
    # k ln k for all counts k that a cell of the table may hold.
    terms = np.arange(n + 1) * np.log(np.maximum(np.arange(n + 1), 1))
    margins = [float(terms[np.bincount(codes)].sum()) for codes in (one, other)]

    def information(order: Array) -> float:
        cells = terms[np.bincount(order * width + other)].sum()
        return float(np.log(n) + (cells - sum(margins)) / n)

    entropies = [float(np.log(n) - margin / n) for margin in margins]
    # The entropy of a single community is a rounding error.
    first, second = (entropy if entropy > ROUNDING else 0.0 for entropy in entropies)
    return information, (first, second)


def _weight_correlation(
    behaviour: VolunteerNetwork,
    exposure: VolunteerNetwork,
    n_permutations: int,
    rng: np.random.Generator,
    *,
    progress: bool,
) -> tuple[float, float]:
    """Return the correlation of the weights of all pairs of volunteers in both networks, and its p value."""
    common = [name for name in behaviour.ids.tolist() if name in exposure.table]
    n = len(common)
    if n > MAX_PAIRED_VOLUNTEERS or n < 3:
        return float("nan"), float("nan")
    parts = [network.subnetwork(common) for network in (behaviour, exposure)]
    fewer, more = sorted(parts, key=lambda part: part.n_edges)
    left, right, values = fewer.pairs()
    dense = more.weights if isinstance(more.weights, np.ndarray) else more.weights.toarray()
    n_pairs = n * (n - 1) / 2
    # Permutations change neither means nor standard deviations, only the products.
    means = [part.strength.sum() / 2 / n_pairs for part in parts]
    deviations = [_standard_deviation(part.pairs()[2], n_pairs) for part in parts]
    if min(deviations) <= 0:
        return float("nan"), float("nan")

    def correlation(order: Array) -> float:
        product = float(values @ dense[order[left], order[right]]) / n_pairs
        return float((product - means[0] * means[1]) / (deviations[0] * deviations[1]))

    observed = correlation(np.arange(n))
    return observed, _p_value(observed, _permuted(correlation, n, n_permutations, rng, progress=progress))


def _standard_deviation(values: Array, n_pairs: float) -> float:
    """Return the standard deviation of the weights of all pairs, those not in `values` being zero.

    It is zero where it would be a rounding error.
    """
    mean = values.sum() / n_pairs
    variance = (((values - mean) ** 2).sum() + (n_pairs - len(values)) * mean**2) / n_pairs
    return float(np.sqrt(variance)) if variance > ROUNDING * mean**2 else 0.0


def _permuted(
    statistic: Callable[[Array], float], n: int, n_permutations: int, rng: np.random.Generator, *, progress: bool
) -> Array:
    """Return a statistic of the volunteers in random orders."""
    null = np.empty(n_permutations)
    with progress_bar("Permutations", visible=progress, total=n_permutations, unit="permutations") as bar:
        for number in range(n_permutations):
            null[number] = statistic(rng.permutation(n))
            bar.update()
    return null


def _p_value(observed: float, null: Array) -> float:
    return float((1 + np.count_nonzero(null >= observed - ROUNDING)) / (1 + len(null)))
