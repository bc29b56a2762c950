"""Bayesian NMF: overlapping communities, as many as the network asks for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from crowdgraph.communities._nmf_weights import PreparedWeights, is_similarity, prepare_weights
from crowdgraph.communities.base import Detection, Detector
from crowdgraph.communities.quality import modularity_of
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool, check_integer, check_positive, child_seed, is_number, progress_bar
from crowdgraph.core.communities import Communities, Evidence, main_community
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ConvergenceWarning, CrowdGraphWarning, ParameterError

__all__ = ["BayesianNMF"]

# How many communities there may be unless the user says otherwise: of similar behaviour, and of common tasks.
FEW, MANY = 20, 60
# The powers of similarities that are tried, the one for networks of which no null is known, and their strength.
SHARPNESSES, USUAL_SHARPNESS, USUAL_STRENGTH = (8.0, 12.0, 18.0, 27.0), 12.0, 100.0
# The strengths that are tried in sparse networks: more communities need more, fewer are split by chance.
STRENGTHS = (30.0, 75.0, 150.0, 300.0)
# Sharpness and evidence of similarities are found with so many volunteers.
SAMPLE = 500
# How improbable a modularity must be without communities, and, if no null is known, how well restarts must agree.
CHANCE, AGREED = 0.01, 0.7


@dataclass(frozen=True, kw_only=True)
class BayesianNMF(Detector):
    r"""Overlapping communities by Bayesian non-negative matrix factorisation (Psorakis et al., 2011).

    Weights are taken for Poisson counts with means :math:`W W^\top`, where :math:`w_{ik}` says how much volunteer `i`
    takes part in community `k`. A prior shrinks communities that explain little to nothing, so that only their largest
    number need be chosen. Participation is :math:`w_{ik}` as a share of the volunteer's sum.

    Communities are found in any network, so they are examined: with ``nulls`` networks of the same making but
    without communities (`VolunteerNetwork.null`). Unless modularity is clearly higher than there, one group is
    reported; `Communities.evidence` tells.

    Parameters
    ----------
    max_communities
        How many communities there may be; 20 in networks of similarity and 60 in sparse ones if left out.
    shape, rate
        The Gamma prior of the precision of each community.
    sharpness
        The power of the weights that is searched. ``"auto"`` tries 8, 12, 18 and 27 in networks of similarity and takes
        the one at which modularity goes furthest from what chance gives towards 1; it is 1 in sparse networks.
    strength
        What the weights of a volunteer sum to on average, once scaled. More strength finds more communities. ``"auto"``
        tries 30, 75, 150 and 300 in sparse networks and takes the one with the highest soft modularity; it is 100 in
        networks of similarity.
    restarts
        How many times to start; the communities of the highest posterior are kept.
    symmetric
        Whether both factors are the same, which is right for networks without direction, and faster.
    nulls
        How many networks without communities to compare with, at least 3; 0 examines nothing.
    tol
        The change of participations in a step, on average, at which a start is over.
    max_iter
        How many steps a start may take.
    device
        Where to compute; on CPUs in compiled code.
    published
        Whether to search in the weights as they are (sharpness and strength do nothing), by the updates as printed,
        without merging; see `as_published`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> found = cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> found
    Communities(bayesian_nmf: 3 of sizes 20, 20, 20; modularity 0.612)
    >>> found.evidence.structured
    True
    """

    name: ClassVar[str] = "bayesian_nmf"

    max_communities: int | None = None
    shape: float = 5.0
    rate: float = 2.0
    sharpness: float | Literal["auto"] = "auto"
    strength: float | Literal["auto"] = "auto"
    restarts: int = 4
    symmetric: bool = True
    nulls: int = 9
    tol: float = 1e-3
    max_iter: int = 500
    device: str = "cpu"
    published: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", str(self.device))
        if self.max_communities is not None:
            check_integer("max_communities", self.max_communities)
        for name in ("shape", "rate", "tol"):
            check_positive(name, getattr(self, name))
        for name in ("restarts", "max_iter"):
            check_integer(name, getattr(self, name))
        for name in ("symmetric", "published"):
            check_bool(name, getattr(self, name))
        if self.shape < 1:
            raise ParameterError(f"shape={self.shape!r} must be at least 1, so that precisions stay above zero.")
        for name in ("sharpness", "strength"):
            value = getattr(self, name)
            if value != "auto" and not (is_number(value) and 0 < value < np.inf):
                raise ParameterError(f"{name}={value!r} must be a number above zero, or 'auto'.")
        check_integer("nulls", self.nulls, minimum=0)
        if self.nulls in (1, 2):
            raise ParameterError(f"nulls={self.nulls!r} are too few to compare with; give 3 or more, or 0 for none.")
        if self.published and self.symmetric:
            raise ParameterError("published=True has two factors; give symmetric=False, or use as_published().")

    @classmethod
    def as_published(cls, *, max_communities: int | None = None) -> BayesianNMF:
        """The algorithm as printed: the network's own weights, two factors, the printed updates, one random start.

        Its updates may lower the posterior, and it finds other than the planted groups in networks of similarity; see
        the documentation. It is here to compare with.
        """
        return cls(
            max_communities=max_communities,
            sharpness=1.0,
            strength=1.0,
            restarts=1,
            symmetric=False,
            nulls=0,
            published=True,
        )

    def _detect(self, network: VolunteerNetwork, *, seed: int | None, progress: bool) -> Detection:
        similar = is_similarity(network)
        k = self._most(len(network), FEW if similar else MANY)
        with progress_bar("Bayesian NMF", visible=progress, unit="starts") as bar:
            run = Run(self, k, np.random.default_rng(seed), bar)
            sample = run.sample(network) if similar and not self.published else network
            tuned = run.tuned(sample)
            weights = run.prepare_weights(network, tuned)
            starts = list(run.starts(weights, n=self.restarts))
            best = likeliest(starts)
            own = _modularity(weights, best.assignment) if sample is network else run.judged(sample, tuned)
            evidence = run.evidence(sample, tuned, starts, own)
            if not evidence.structured and best.participation.shape[1] > 1:
                best = replace(run, k=1).start(weights)
        floor = np.full(k - len(best.relevance), self._floor(len(network)))
        chosen = {"max_communities": k, "sharpness": tuned.sharpness, "strength": tuned.strength}
        return Detection(best.participation, np.concatenate([best.relevance, floor]), evidence, chosen)

    def again(self, found: Communities) -> BayesianNMF:
        """One start with the sharpness and strength that were chosen, without examination."""
        chosen = {name: found.params[name] for name in ("sharpness", "strength")}
        return replace(self, **chosen, restarts=1, nulls=0)

    def _most(self, n_volunteers: int, usual: int) -> int:
        """How many communities may be found."""
        if self.max_communities is None:
            return min(usual, n_volunteers)
        if self.max_communities > n_volunteers:
            warnings.warn(
                f"max_communities={self.max_communities:,} are more than the {n_volunteers:,} linked volunteers; "
                "looking for as many as volunteers.",
                CrowdGraphWarning,
                stacklevel=4,
            )
        return int(min(self.max_communities, n_volunteers))

    def _floor(self, n_volunteers: int) -> float:
        """The variance that the prior leaves to a community without members."""
        count = n_volunteers / 2 if self.symmetric else n_volunteers
        return self.rate / (count + self.shape - 1)


class Tuned(NamedTuple):
    """How weights are searched: the power of them, and what a volunteer's sum to on average."""

    sharpness: float
    strength: float


class Start(NamedTuple):
    """What one start found: participations, of shape (V, K), the log posterior, and the variance of each community."""

    participation: Array
    objective: float
    relevance: Array

    @property
    def assignment(self) -> Array:
        """The community of each volunteer."""
        return main_community(self.participation)


@dataclass(frozen=True, eq=False)
class Run:
    """One detection: a detector at work, with at most `k` communities, random numbers and a progress bar."""

    detector: BayesianNMF
    k: int
    rng: np.random.Generator
    bar: Any

    def sample(self, network: VolunteerNetwork) -> VolunteerNetwork:
        """Some of the volunteers of a large network."""
        if len(network) <= SAMPLE:
            return network
        return network.subnetwork(network.ids[np.sort(self.rng.choice(len(network), SAMPLE, replace=False))])

    def prepare_weights(self, network: VolunteerNetwork, tuned: Tuned) -> PreparedWeights:
        """The weights to search in."""
        if self.detector.published:
            return PreparedWeights(network.weights, network.weights)
        return prepare_weights(network, sharpness=tuned.sharpness, strength=tuned.strength)

    def tuned(self, network: VolunteerNetwork) -> Tuned:
        """The sharpness and the strength asked for, or those that show communities best."""
        similar = is_similarity(network)
        settings = self.detector.settings()
        asked = {name: settings[name] for name in Tuned._fields if settings[name] != "auto"}
        usual = Tuned(USUAL_SHARPNESS if similar else 1.0, USUAL_STRENGTH)._replace(**asked)
        null = None
        if similar and "sharpness" not in asked and network.has_null:
            tried = [usual._replace(sharpness=value) for value in SHARPNESSES]
            null = self._null(network)
        elif not similar and "strength" not in asked:
            tried = [usual._replace(strength=value) for value in STRENGTHS]
        else:
            return usual
        gains = []
        for choice in tried:
            if null is None:
                # Soft modularity: the hard one cannot tell that members of two communities are not a third.
                weights = self.prepare_weights(network, choice)
                gains.append(_soft_modularity(weights, self.start(weights).participation))
            else:
                # Sharpened weights always have more modularity, also without communities.
                chance = self.judged(null, choice)
                gains.append((self.judged(network, choice) - chance) / (1 - chance))
        # Without any gain (one group everywhere) none is better than another; of equal ones rounding does not decide.
        most = max(gains)
        return (
            next(choice for choice, gain in zip(tried, gains, strict=True) if gain > most - 1e-9) if most > 0 else usual
        )

    def evidence(self, sample: VolunteerNetwork, tuned: Tuned, starts: list[Start], own: float) -> Evidence:
        """Whether there are communities, from what was found and from networks like the sample without any.

        `own` is the modularity of the sample.
        """
        n_nulls = self.detector.nulls if sample.has_null else 0
        null = np.array([self.judged(self._null(sample), tuned) for _ in range(n_nulls)])
        agreement = _agreement([start.assignment for start in starts])
        several = likeliest(starts).participation.shape[1] > 1
        evidence = Evidence(agreement=agreement, modularity=own, null_modularity=null, structured=several)
        doubtful = evidence.p_value >= CHANCE if n_nulls else self.detector.nulls > 0 and agreement < AGREED
        return replace(evidence, structured=several and not doubtful)

    def starts(self, weights: PreparedWeights, *, n: int) -> Iterator[Start]:
        """What some starts find in the weights."""
        import torch

        from crowdgraph.communities._factoriser import Factoriser
        from crowdgraph.kernels.nmf import Prior

        detector = self.detector
        prior = Prior(detector.shape, detector.rate)
        factoriser = Factoriser(weights.weights, prior, device=detector.device, symmetric=detector.symmetric)
        search = factoriser.published if detector.published else factoriser.search
        for _ in range(n):
            draw = torch.Generator().manual_seed(self._seed())
            found = search(self.k, draw, tol=detector.tol, max_iter=detector.max_iter)
            self.bar.update()
            if not found.converged:
                warnings.warn(
                    f"A start had not settled after {found.n_steps:,} steps: participations still changed by "
                    f"{found.change:.2g} in the last. Raise max_iter (now {detector.max_iter:,}) or tol "
                    f"({detector.tol:g}).",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            participation, relevance = factoriser.participation(found.factors), factoriser.relevance(found.factors)
            yield _inhabited(Start(participation, found.objective, relevance))

    def start(self, weights: PreparedWeights) -> Start:
        """What one start finds in the weights."""
        return next(self.starts(weights, n=1))

    def judged(self, network: VolunteerNetwork, tuned: Tuned) -> float:
        """The modularity that one start finds in a network."""
        weights = self.prepare_weights(network, tuned)
        return _modularity(weights, self.start(weights).assignment)

    def _null(self, network: VolunteerNetwork) -> VolunteerNetwork:
        return network.null(seed=self._seed())

    def _seed(self) -> int:
        return child_seed(self.rng)


def likeliest(starts: list[Start]) -> Start:
    """The start that found the highest posterior."""
    return max(starts, key=lambda start: start.objective)


def _inhabited(start: Start) -> Start:
    """Without communities to which nobody belongs most: columns for a single link between two others."""
    kept = np.unique(start.assignment)
    shares = start.participation[:, kept]
    return Start(shares / shares.sum(axis=1, keepdims=True), start.objective, start.relevance[kept])


def _modularity(weights: PreparedWeights, assignment: Array) -> float:
    """Modularity of an assignment of everybody, in the weights that are judged."""
    return _soft_modularity(weights, np.eye(int(assignment.max()) + 1)[assignment])


def _soft_modularity(weights: PreparedWeights, participation: Array) -> float:
    return modularity_of(weights.judged, np.asarray(weights.judged.sum(axis=1)).ravel(), participation)


def _agreement(assignments: list[Array]) -> float:
    """The mean adjusted Rand index of all pairs; NaN of a single assignment."""
    from sklearn.metrics import adjusted_rand_score

    pairs = [adjusted_rand_score(first, second) for first, second in combinations(assignments, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")
