"""Bayesian NMF: overlapping communities, as many as the network supports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from crowdgraph.communities._nmf_weights import PreparedWeights, has_lost_model, is_similarity, prepare_weights
from crowdgraph.communities._team import shared_map
from crowdgraph.communities.base import Detection, Detector
from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import boolean, choice, converted, integer, positive, precision
from crowdgraph.core._progress import progress_bar
from crowdgraph.core._random import child_seed
from crowdgraph.core.communities import Communities
from crowdgraph.core.evidence import MAX_P_VALUE, MIN_NULLS, MIN_SPREAD, Evidence
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.errors import ConvergenceWarning, CrowdGraphWarning, ParameterError, warn
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.messages import Hint

if TYPE_CHECKING:
    import torch

    from crowdgraph.communities._sample_starts import WarmFactoriser

__all__ = ["BayesianNMF"]

# The default of max_communities, in networks of similarities and in sparse networks.
MAX_SIMILARITY_COMMUNITIES, MAX_SPARSE_COMMUNITIES = 20, 60
# The usual power of similarities, a milder one and higher ones to try, and the strength of similarities.
DEFAULT_SHARPNESS, MILD_SHARPNESS, HIGH_SHARPNESSES, DEFAULT_STRENGTH = 12.0, 8.0, (18.0, 27.0), 100.0
# The strengths to try in sparse networks: many communities need more, few communities are split by chance.
STRENGTHS = (30.0, 75.0, 150.0, 300.0)
# Sharpness and evidence of similarities are worked out on a sample of this many volunteers.
SAMPLE_SIZE = 500
# How many null networks sharpness is chosen with, and how much of the modularity that the usual sharpness misses may
# be missing with another to choose that: luck would decide among settings that are about as good.
N_SHARPNESS_NULLS, CLEARLY_BETTER = 3, 0.85
# So many null networks are looked at first, which suffice where they leave no doubt.
FEW_NULLS = 4
# Null networks are added until the verdict is so certain, at most for so many rounds.
MIN_CERTAINTY, MAX_ROUNDS = 0.99, 5
# How many crowds of a few kinds are drawn to see whether communities would be recognised.
N_POWER_CROWDS = 3
# Without a null model, how well restarts must agree.
MIN_AGREEMENT = 0.7

Factorise = Callable[[PreparedWeights], Detection]
Prepare = Callable[[VolunteerNetwork], PreparedWeights]


@dataclass(frozen=True, kw_only=True)
class BayesianNMF(Detector):
    r"""Overlapping communities by Bayesian non-negative matrix factorisation (Psorakis et al., 2011).

    Weights are modelled as Poisson counts with means :math:`W W^\top`, where :math:`w_{ik}` says how much volunteer `i`
    takes part in community `k`. A prior shrinks communities that explain little to nothing, so that only their maximum
    number has to be chosen. Participation is :math:`w_{ik}` as a share of the volunteer's sum.

    Every network yields communities, so they are tested against a null model: ``nulls`` networks built the same way
    from a crowd without communities (`VolunteerNetwork.null`). Unless the highest modularity, found by Leiden's
    algorithm, is clearly higher than in these, one community is reported; see `Communities.evidence`, which also says
    how certain this verdict is.

    Parameters
    ----------
    max_communities
        The maximum number of communities; if left out, 20 in networks of similarities and 60 in sparse ones.
    shape, rate
        The Gamma prior of the precision of each community.
    sharpness
        The power to which weights are raised. In networks of similarities ``"auto"`` is 12, or 8 if modularity is then
        clearly further above that of several null networks, or 18 or 27 if 12 finds nothing; it is 1 in sparse ones.
    strength
        What the weights of a volunteer sum to on average, once scaled. More strength finds more communities. ``"auto"``
        tries 30, 75, 150 and 300 in sparse networks and takes the one with the highest soft modularity; it is 100 in
        networks of similarities.
    restarts
        How many times to start; the start with the highest posterior wins. In networks of similarities of more than 500
        volunteers, all but the first start begin with a sample of 500.
    symmetric
        Whether both factors are the same, which is right for undirected networks, and faster.
    nulls
        How many networks to draw from the null model, 9 or more (a warning says that fewer are too few); 0 skips the
        test. More are drawn, up to five times as many, while the verdict is not certain. Only 4 are drawn, of at most
        500 of the volunteers, where these leave no doubt (see `Evidence.is_overwhelming`).
    tol
        A start has converged when participations change by less than this in a step, on average.
    max_iter
        The maximum number of steps of a start.
    backend, device, dtype
        What runs, where, and in which precision; `Communities.params` says what did. ``backend="auto"`` is compiled
        code on CPUs and PyTorch on other devices, and wherever there are two factors (``symmetric=False``), for which
        there is no compiled code. ``dtype="auto"`` multiplies weights and factors in single precision in compiled code,
        which does everything else in double precision, and is ``"float64"`` in PyTorch. ``"float32"`` is single
        precision throughout in PyTorch but for sums of the objective; ``"float64"`` is double precision everywhere.
    published
        Whether to factorise the weights as they are (sharpness and strength have no effect), by the updates as printed,
        without merging communities; see `as_published`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=60, n_responses=4_000, n_communities=3, mixing=0.05, seed=0).graph
    >>> groups = cg.BayesianNMF().detect(cg.networks.task_cooccurrence(graph), seed=0)
    >>> groups
    Communities(bayesian_nmf: 3 of sizes 20, 20, 20; modularity 0.612)
    >>> groups.evidence.structured
    True
    """

    name: ClassVar[str] = "bayesian_nmf"

    max_communities: int | None = integer(None)
    shape: float = positive(5.0)
    rate: float = positive(2.0)
    sharpness: float | Literal["auto"] = positive("auto")
    strength: float | Literal["auto"] = positive("auto")
    restarts: int = integer(4)
    symmetric: bool = boolean(default=True)
    nulls: int = integer(9, minimum=0)
    tol: float = positive(1e-3)
    max_iter: int = integer(500)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision | Literal["auto"] = precision("auto", ("auto", *PRECISIONS))
    published: bool = boolean(default=False)

    def _check_settings(self) -> None:
        if self.shape < 1:
            raise ParameterError(f"shape={self.shape!r} must be at least 1, so that precisions stay above zero.")
        if self.nulls in (1, 2):
            raise ParameterError(f"nulls={self.nulls!r} are too few to compare with; give 3 or more, or 0 for none.")
        if self.published and self.symmetric:
            raise ParameterError("published=True has two factors; give symmetric=False, or use as_published().")

    @classmethod
    def as_published(cls, *, max_communities: int | None = None) -> BayesianNMF:
        """Return the algorithm as printed: unprepared weights, two factors, the printed updates, one random start.

        It is meant for comparison. Its updates may lower the posterior, and in networks of similarities it does not
        find planted communities; see the documentation.
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
        return self._detect_after(network, None, seed=seed, progress=progress)

    def _detect_after(
        self, network: VolunteerNetwork, previous: Communities | None, *, seed: int | None, progress: bool
    ) -> Detection:
        self._check_backend()
        similarities = is_similarity(network)
        k = self._limit(len(network), MAX_SIMILARITY_COMMUNITIES if similarities else MAX_SPARSE_COMMUNITIES)
        rng = np.random.default_rng(seed)
        if 0 < self.nulls < MIN_NULLS:
            warn(
                f"nulls={self.nulls} null networks give a verdict that depends on luck; use {MIN_NULLS} or more.",
                CrowdGraphWarning,
            )
        if self.nulls and not network.has_null and has_lost_model(network):
            warn(
                f"The network {network.method!r} has lost the data that it was computed from, as in a file of a "
                "network, so its communities are not compared with chance.",
                CrowdGraphWarning,
                hint="Build it anew from the graph, or pass nulls=0 if no comparison is meant.",
            )
        with progress_bar("Bayesian NMF", visible=progress, unit="starts") as bar:

            def factorise(weights: PreparedWeights) -> Detection:
                return self._starts(weights, k, 1, rng, bar)[0]

            sample = network if self.published else _sample(network, rng)
            sharpness, strength = self._choose_settings(
                sample if similarities else network, factorise, rng, previous=previous
            )
            weights = self._prepare(network, sharpness, strength)
            prepare = partial(self._prepare, sharpness=sharpness, strength=strength)
            verdict = self._judge(network, sample, prepare, rng) if self.nulls and network.has_null else None
            # Where the verdict is that there are none, communities are of interest only if there were some before.
            is_idle = verdict is not None and not verdict.is_positive and not _is_structured(previous)
            starts = self._starts(weights, 1, 1, rng, bar) if is_idle else []
            starts = starts or self._starts(weights, k, self.restarts, rng, bar)
            best = max(starts, key=lambda start: start.objective)
            agreement = _mean_rand_index([start.assignment for start in starts])
            is_split = best.participation.shape[1] > 1
            if verdict is not None:
                evidence = verdict.evidence(prepare, rng, agreement=agreement, is_split=is_split)
            else:
                evidence = self._untested(weights.modularity(best.assignment), agreement, is_split=is_split)
            candidate, others = best, [start.participation for start in starts if start is not best]
            if not evidence.structured and is_split:
                (best,) = self._starts(weights, 1, 1, rng, bar)
        relevance = np.asarray(best.relevance)
        floor = np.full(k - len(relevance), self._prior_variance(len(network)))
        return best._replace(
            relevance=np.concatenate([relevance, floor]),
            evidence=evidence,
            settings={**best.settings, "max_communities": k, "sharpness": sharpness, "strength": strength},
            candidate=candidate.participation,
            others=tuple(others),
        )

    def _with_settings_of(self, communities: Communities) -> BayesianNMF:
        """Return a detector with the sharpness and strength chosen before, one start and no test."""
        settings = {name: communities.params[name] for name in ("sharpness", "strength")}
        return replace(self, **settings, restarts=1, nulls=0)

    def _choose_settings(
        self,
        network: VolunteerNetwork,
        factorise: Factorise,
        rng: np.random.Generator,
        *,
        previous: Communities | None,
    ) -> tuple[float, float]:
        """Choose sharpness and strength: the user's values, or by grid search.

        The sharpness of similarities is chosen against null networks, the strength of sparse networks by soft
        modularity. Where the usual sharpness showed communities before, it is used again.
        """
        similarities = is_similarity(network)
        sharpness = (DEFAULT_SHARPNESS if similarities else 1.0) if self.sharpness == "auto" else self.sharpness
        strength = DEFAULT_STRENGTH if self.strength == "auto" else self.strength
        is_usual = previous is not None and _is_structured(previous) and previous.params["sharpness"] == sharpness
        if similarities and self.sharpness == "auto" and network.has_null and not is_usual:
            return self._choose_sharpness(network, strength, factorise, rng), strength
        if not similarities and self.strength == "auto":
            return sharpness, self._choose_strength(network, sharpness, factorise)
        return sharpness, strength

    def _choose_sharpness(
        self, network: VolunteerNetwork, strength: float, factorise: Factorise, rng: np.random.Generator
    ) -> float:
        """Choose the usual sharpness, unless a milder one is clearly better, or it finds nothing and a higher one does.

        A higher sharpness also finds parts of communities, so it is not tried where the usual one finds some.
        """
        nulls = [network.null(seed=child_seed(rng)) for _ in range(N_SHARPNESS_NULLS)]

        def missing(sharpness: float) -> float:
            # Relative to null networks, since sharpened weights always have more modularity.
            own = self._modularity_of(network, sharpness, strength, factorise)
            chance: list[float] = []
            for null in nulls:
                # Chance has as much even if the other null networks have none.
                if own <= sum(chance) / len(nulls):
                    return 1.0
                chance.append(self._modularity_of(null, sharpness, strength, factorise))
            return float((1 - own) / (1 - np.mean(chance)))

        usual = missing(DEFAULT_SHARPNESS)
        if usual < 1 - MIN_SPREAD:
            return MILD_SHARPNESS if missing(MILD_SHARPNESS) < CLEARLY_BETTER * usual else DEFAULT_SHARPNESS
        higher = {sharpness: missing(sharpness) for sharpness in HIGH_SHARPNESSES}
        best = min(higher, key=higher.__getitem__)
        return best if higher[best] < 1 else DEFAULT_SHARPNESS

    def _choose_strength(self, network: VolunteerNetwork, sharpness: float, factorise: Factorise) -> float:
        """Choose the strength of the highest soft modularity; the usual one where all are of one community."""
        gains = {}
        for strength in STRENGTHS:
            # Soft modularity: hard modularity cannot tell that members of two communities are not a third one.
            weights = self._prepare(network, sharpness, strength)
            gains[strength] = weights.soft_modularity(factorise(weights).participation)
        most = max(gains.values())
        # Of equal gains the first wins, not rounding.
        return next(one for one, gain in gains.items() if gain > most - 1e-9) if most > 0 else DEFAULT_STRENGTH

    def _judge(
        self, network: VolunteerNetwork, sample: VolunteerNetwork, prepare: Prepare, rng: np.random.Generator
    ) -> _Comparison:
        """Compare modularity with that of null networks, of more of them while the verdict is not certain.

        A few null networks of a sample suffice if these leave no doubt. Otherwise similarities are compared in the
        sample; sparse networks as a whole, since of some of their volunteers there are fewer links each.
        """
        comparison = _Comparison.of(sample, prepare, rng)
        if sample.has_null:
            comparison = comparison.with_nulls(min(FEW_NULLS, self.nulls), prepare, rng)
            if comparison.evidence_so_far.is_overwhelming:
                return comparison
        if sample is not network and not is_similarity(network):
            comparison = _Comparison.of(network, prepare, rng)
        for n_rounds in range(1, MAX_ROUNDS + 1):
            comparison = comparison.with_nulls(n_rounds * self.nulls, prepare, rng)
            if comparison.evidence_so_far.certainty >= MIN_CERTAINTY:
                break
        return comparison

    def _untested(self, modularity: float, agreement: float, *, is_split: bool) -> Evidence:
        """Return the evidence without a null model: the agreement of restarts."""
        doubtful = self.nulls > 0 and agreement < MIN_AGREEMENT
        return Evidence(
            agreement=agreement,
            modularity=modularity,
            null_modularity=np.zeros(0),
            structured=is_split and not doubtful,
        )

    def _modularity_of(
        self, network: VolunteerNetwork, sharpness: float, strength: float, factorise: Factorise
    ) -> float:
        """Return the modularity of the communities that one start finds in a network."""
        weights = self._prepare(network, sharpness, strength)
        return weights.modularity(factorise(weights).assignment)

    def _prepare(self, network: VolunteerNetwork, sharpness: float, strength: float) -> PreparedWeights:
        if self.published or not network.n_edges:
            return PreparedWeights(network.weights, network.weights)
        return prepare_weights(network, sharpness=sharpness, strength=strength)

    def _starts(
        self, weights: PreparedWeights, k: int, n_starts: int, rng: np.random.Generator, bar: Any
    ) -> list[Detection]:
        """Factorise the weights into at most `k` communities, from several random starts."""
        import torch

        factoriser = self._factoriser(weights.search)
        search = factoriser.published if self.published else factoriser.search
        # Of large networks of similarities, one start is of everybody and finds small communities as well.
        is_large = isinstance(weights.search, np.ndarray) and len(weights.search) > SAMPLE_SIZE and not self.published
        starts: list[Detection] = []
        for _ in range(n_starts):
            generator = torch.Generator().manual_seed(child_seed(rng))
            if starts and is_large:
                shares = self._shares_of_sample(weights.search, k, generator)
                result = factoriser.search_from(shares, tol=self.tol, max_iter=self.max_iter)
            else:
                result = search(k, generator, tol=self.tol, max_iter=self.max_iter)
            bar.update()
            if not result.converged:
                _warn_not_converged(result.n_steps, result.change, self.max_iter, self.tol)
            start = Detection(
                factoriser.participation(result.factors),
                relevance=factoriser.relevance(result.factors),
                objective=result.objective,
                settings=factoriser.backend.facts(),
            )
            starts.append(_without_empty_communities(start))
        return starts

    def _shares_of_sample(self, weights: Array, k: int, generator: torch.Generator) -> Array:
        """Return the shares of everybody, (V, K), in the communities that are found among some, drawn at random."""
        import torch

        from crowdgraph.communities._sample_starts import extend

        some = torch.randperm(len(weights), generator=generator)[:SAMPLE_SIZE].numpy()
        links = weights[:, some]
        between = links[some]
        between *= weights.sum(axis=1).mean() / between.sum(axis=1).mean()
        part = self._factoriser(between)
        return extend(
            links, part.participation(part.search(k, generator, tol=self.tol, max_iter=self.max_iter).factors)
        )

    def _factoriser(self, weights: Any) -> WarmFactoriser:
        from crowdgraph.communities._sample_starts import WarmFactoriser
        from crowdgraph.kernels.nmf import Prior

        return WarmFactoriser(
            weights,
            Prior(self.shape, self.rate),
            symmetric=self.symmetric,
            backend=self.backend,
            device=self.device,
            dtype=self.dtype,
        )

    def _check_backend(self) -> None:
        """Raise before anything is computed, if what the settings ask for cannot run here."""
        from crowdgraph.kernels.backends import choose_nmf_backend

        choose_nmf_backend(self.backend, device=self.device, dtype=self.dtype, symmetric=self.symmetric)

    def _limit(self, n_volunteers: int, default: int) -> int:
        """Return the maximum number of communities."""
        if self.max_communities is None:
            return min(default, n_volunteers)
        if self.max_communities > n_volunteers:
            warn(
                f"max_communities={self.max_communities:,} exceeds the number of linked volunteers, {n_volunteers:,}; "
                f"using {n_volunteers:,}.",
                CrowdGraphWarning,
            )
        return int(min(self.max_communities, n_volunteers))

    def _prior_variance(self, n_volunteers: int) -> float:
        """Return the variance that the prior leaves to a community without members."""
        count = n_volunteers / 2 if self.symmetric else n_volunteers
        return self.rate / (count + self.shape - 1)


def _sample(network: VolunteerNetwork, rng: np.random.Generator) -> VolunteerNetwork:
    """Draw some of the volunteers of a large network."""
    if len(network) <= SAMPLE_SIZE:
        return network
    return network.subnetwork(network.ids[np.sort(rng.choice(len(network), SAMPLE_SIZE, replace=False))])


class _Comparison(NamedTuple):
    """A network beside null networks: the evidence so far, as if the communities of some start had agreed."""

    network: VolunteerNetwork
    evidence_so_far: Evidence

    @classmethod
    def of(cls, network: VolunteerNetwork, prepare: Prepare, rng: np.random.Generator) -> _Comparison:
        """Begin a comparison, without null networks."""
        evidence = Evidence(
            agreement=float("nan"),
            modularity=prepare(network).highest_modularity(child_seed(rng)),
            null_modularity=np.zeros(0),
            null_mean_weight=np.zeros(0),
            structured=True,
            mean_weight=network.mean_weight,
        )
        return cls(network, evidence)

    def with_nulls(self, n_nulls: int, prepare: Prepare, rng: np.random.Generator) -> _Comparison:
        """Draw null networks until there are so many."""
        evidence = self.evidence_so_far
        seeds = [(child_seed(rng), child_seed(rng)) for _ in range(n_nulls - len(evidence.null_modularity))]
        nulls = np.reshape(shared_map(partial(_measure_null, self.network, prepare), seeds), (-1, 2))
        evidence = replace(
            evidence,
            null_modularity=np.append(evidence.null_modularity, nulls[:, 0]),
            null_mean_weight=np.append(evidence.null_mean_weight, nulls[:, 1]),  # type: ignore[arg-type]
        )
        return self._replace(evidence_so_far=evidence)

    @property
    def is_positive(self) -> bool:
        """Whether modularity is higher than chance explains."""
        return self.evidence_so_far.p_value < MAX_P_VALUE

    def evidence(self, prepare: Prepare, rng: np.random.Generator, *, agreement: float, is_split: bool) -> Evidence:
        """Return the evidence for what was detected; where that is one community, with the power of the comparison."""
        evidence = replace(self.evidence_so_far, agreement=agreement)
        if is_split and self.is_positive:
            return evidence
        return replace(evidence, structured=False, power=self._power(prepare, rng))

    def _power(self, prepare: Prepare, rng: np.random.Generator) -> float:
        """Return the share of crowds of a few kinds that are recognised as such; NaN if none can be drawn."""
        crowds = [self.network.of_kinds(seed=child_seed(rng)) for _ in range(N_POWER_CROWDS)]
        p_values = [
            replace(
                self.evidence_so_far,
                modularity=prepare(crowd).highest_modularity(child_seed(rng)),
                mean_weight=crowd.mean_weight,
            ).p_value
            for crowd in crowds
            if crowd is not None
        ]
        return float(np.mean(np.array(p_values) < MAX_P_VALUE)) if p_values else float("nan")


def _measure_null(network: VolunteerNetwork, prepare: Prepare, seeds: tuple[int, int]) -> tuple[float, float]:
    """Return the highest modularity and the mean weight of a null network."""
    null = network.null(seed=seeds[0])
    return prepare(null).highest_modularity(seeds[1]), null.mean_weight


def _is_structured(communities: Communities | None) -> bool:
    """Whether there is evidence for several communities."""
    return communities is not None and communities.evidence is not None and communities.evidence.structured


def _warn_not_converged(n_steps: int, change: float, max_iter: int, tol: float) -> None:
    remedy = f"raise max_iter (now {max_iter:,}) or tol ({tol:g})."
    warn(
        f"A start had not converged after {n_steps:,} steps: participations still changed by {change:.2g} in the last.",
        ConvergenceWarning,
        hint=Hint(remedy[0].upper() + remedy[1:], cli=f"In Python, {remedy}"),
    )


def _without_empty_communities(start: Detection) -> Detection:
    """Drop communities in which nobody participates most: columns for a single link between two others."""
    columns = np.unique(start.assignment)
    participation = start.participation[:, columns]
    return start._replace(
        participation=participation / participation.sum(axis=1, keepdims=True),
        relevance=np.asarray(start.relevance)[columns],
    )


def _mean_rand_index(assignments: list[Array]) -> float:
    """Return the mean adjusted Rand index of all pairs; NaN for a single assignment."""
    from sklearn.metrics import adjusted_rand_score

    pairs = [adjusted_rand_score(first, second) for first, second in combinations(assignments, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")
