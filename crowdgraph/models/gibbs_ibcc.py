"""Independent Bayesian classifier combination by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdgraph.core.columns import Array
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.models.base import Findings, Job, Model, check_positive, check_whole
from crowdgraph.models.priors import (
    ClassPrior,
    ConfusionPrior,
    checked_class_prior,
    checked_confusion_prior,
    crowd_prior,
    own_confusion,
)
from crowdgraph.models.progress import progress_bar
from crowdgraph.models.votes import Votes, check_mapping

if TYPE_CHECKING:
    from crowdgraph.kernels.gibbs import Chain, Draws
    from crowdgraph.models.tables import Tables

__all__ = ["GibbsIBCC"]

# Draws between two looks at whether the chains have settled, and items whose classes are watched for that.
BLOCK, WATCHED = 100, 100


@dataclass(frozen=True, kw_only=True, eq=False)
class GibbsIBCC(Model):
    r"""The model of `IBCC`, by Gibbs sampling.

    Classes, confusion matrices and class proportions are drawn in turn, each given the others; means over draws
    converge to the exact posterior, where variational Bayes is an approximation. It is much slower.

    The chains stop when the mean of the sampled classes has changed by at most `stop_change`, summed over all items,
    in `stop_for` successive draws of every chain (the paper's rule), *and* R-hat of everything watched is below
    `r_hat`: running means settle even in a chain that is stuck. Watched are the class proportions, the log joint
    probability and the classes of the hundred items that are least certain after burn-in.

    ``fit.diagnostics`` holds the worst `r_hat` and `ess` (bulk effective sample size) of what is watched, and `draws`:
    arrays of shape (chains, draws, ...), as ArviZ's ``from_dict`` takes them. Confusion matrices are given as the
    Dirichlets with the sampled means and the sampled spread of each row.

    Parameters
    ----------
    confusion_prior, class_prior, votes
        As for `IBCC`.
    chains
        How many chains to run, from different random numbers.
    burn_in
        Draws of each chain that are not counted.
    max_draws
        Draws of each chain after which to stop in any case.
    stop_change, stop_for, r_hat
        When to stop, as told above.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=10, n_items=30, n_responses=200, seed=0).graph
    >>> fit = cg.GibbsIBCC(stop_change=0.1).fit(graph, seed=0)
    >>> fit.diagnostics["draws"]["class_probs"].shape[::2]
    (4, 2)
    """

    name: ClassVar[str] = "gibbs_ibcc"

    confusion_prior: ConfusionPrior = None
    class_prior: ClassPrior = None
    votes: Votes | None = None
    chains: int = 4
    burn_in: int = 500
    max_draws: int = 10_000
    stop_change: float = 0.01
    stop_for: int = 20
    r_hat: float = 1.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion_prior", checked_confusion_prior(self.confusion_prior))
        check_mapping("votes", self.votes)
        object.__setattr__(self, "class_prior", checked_class_prior(self.class_prior))
        for name, least in (("chains", 1), ("burn_in", 1), ("max_draws", 20), ("stop_for", 1)):
            check_whole(name, getattr(self, name), least=least)
        check_positive("stop_change", self.stop_change)
        check_positive("r_hat", self.r_hat)

    def prepare(self, graph: CrowdGraph) -> None:
        """Load, or compile, the sweep and the sampler."""
        from crowdgraph.kernels.gibbs import ready as sampler_ready
        from crowdgraph.kernels.sweep_compiled import ready

        ready(len(graph.classes), np.dtype(np.uint32))
        sampler_ready()

    def _fit(self, job: Job) -> Findings:
        from crowdgraph.kernels.threads import in_parallel
        from crowdgraph.models.tables import Tables

        graph = job.answers.graph
        self.prepare(graph)
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        tables = Tables(job.answers)
        chains = self._chains(tables, prior, job)
        with progress_bar("Gibbs-IBCC", shown=job.progress, total=self.burn_in + self.max_draws, unit="draw") as bar:
            nothing = np.zeros(0, dtype=np.int64)
            in_parallel(partial(drawn, chains, self.burn_in, nothing), self.chains)
            bar.update(self.burn_in)
            watched = least_certain(chains)
            for chain in chains:
                chain.forget()
            blocks: list[list[Draws]] = []
            next_look = 0.0
            while (so_far := chains[0].n_draws) < self.max_draws:
                n_draws = min(BLOCK, self.max_draws - so_far)
                blocks.append(in_parallel(partial(drawn, chains, n_draws, watched), self.chains))
                bar.update(n_draws)
                if so_far >= next_look and self._has_slowed(blocks):
                    if max(measured(blocks, "rhat").values()) < self.r_hat:
                        break
                    # R-hat takes time to work out, and falls slowly.
                    next_look = 1.2 * so_far
        return self._findings(job, tables, prior, chains, blocks)

    def _chains(self, tables: Tables, prior: CrowdPrior, job: Job) -> list[Chain]:
        """Chains whose classes are drawn from what the prior (or the start) says of the answers."""
        import torch

        from crowdgraph.kernels.gibbs import Chain

        confusion = tables.table(own_confusion(prior, job.answers.graph))
        probs, fixed = tables.items()
        if job.start is None:
            means = (confusion / confusion.sum(1, keepdim=True)).expand(tables.shape).log().contiguous()
            class_means = tables.tensor(prior.class_concentration / prior.class_concentration.sum()).log()
            guess = probs.clone()
            tables.kernels()[0](means, class_means, guess, fixed)
        else:
            guess = torch.where(fixed[:, None], probs, tables.tensor(job.start.item_probs))
        sums = guess.numpy().cumsum(axis=1)
        return [
            Chain(
                starts=tables.responses.starts.numpy(),
                codes=tables.responses.codes.numpy(),
                prior=confusion.numpy(),
                class_prior=np.array(prior.class_concentration),
                gold=probs.numpy(),
                fixed=fixed.numpy(),
                classes=(rng.random((len(sums), 1)) > sums[:, :-1]).sum(axis=1),
                rng=rng,
                n_volunteers=tables.shape[0],
            )
            for rng in np.random.default_rng(job.seed).spawn(self.chains)
        ]

    def _has_slowed(self, blocks: list[list[Draws]]) -> bool:
        """Whether the mean of the sampled classes has hardly changed lately, in any chain (the paper's rule)."""
        changes = together(blocks, "change")[:, -self.stop_for :]
        return changes.shape[1] == self.stop_for and bool((changes <= self.stop_change).all())

    def _findings(
        self, job: Job, tables: Tables, prior: CrowdPrior, chains: list[Chain], blocks: list[list[Draws]]
    ) -> Findings:
        graph = job.answers.graph
        n_draws = sum(chain.n_draws for chain in chains)
        class_draws = together(blocks, "class_probs")
        r_hat = measured(blocks, "rhat")
        mean = sum_of(chains, "mean_sums") / n_draws
        class_probs = class_draws.mean(axis=(0, 1))
        return Findings(
            item_probs=sum_of(chains, "prob_sums") / n_draws,
            class_probs=class_probs,
            class_concentration=matched(class_probs, (class_draws**2).mean(axis=(0, 1)), axis=0),
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=tables.confusion(
                    tables.tensor(matched(mean, sum_of(chains, "square_sums") / n_draws, axis=1)),
                    others=own_confusion(prior, graph),
                ),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=prior,
            converged=self._has_slowed(blocks) and max(r_hat.values()) < self.r_hat,
            n_iter=chains[0].n_draws,
            diagnostics={
                "r_hat": r_hat,
                "ess": measured(blocks, "ess"),
                "change": float(together(blocks, "change")[:, -1].max()),
                "draws": {"class_probs": class_draws, "log_joint": together(blocks, "log_joint")},
            },
        )

    def _not_settled(self, fit: ModelFit) -> str:
        worst = max(fit.diagnostics["r_hat"].values())
        return (
            f"GibbsIBCC did not settle in {fit.n_iter:,} draws: R-hat is {worst:.3f} (below {self.r_hat} wanted), and "
            f"the mean of the sampled classes still changes by {fit.diagnostics['change']:.2g} at a draw "
            f"(stop_change={self.stop_change}). Raise max_draws; if R-hat stays high, chains sit in different modes."
        )


def drawn(chains: list[Chain], n_draws: int, watched: Array, number: int) -> Draws:
    """The next draws of one of the chains."""
    return chains[number].draw(n_draws, watched)


def least_certain(chains: list[Chain]) -> Array:
    """The items whose classes were least certain so far."""
    probs = sum_of(chains, "prob_sums")
    order = np.argsort(probs.max(axis=1) / probs.sum(axis=1), kind="stable")
    return np.sort(order[:WATCHED])


def together(blocks: list[list[Draws]], what: str) -> Array:
    """Draws of all chains, of shape (chains, draws, ...)."""
    chains = zip(*blocks, strict=True)
    return np.stack([np.concatenate([getattr(draws, what) for draws in chain]) for chain in chains])


def sum_of(chains: list[Chain], what: str) -> Array:
    """A sum over the draws of all chains."""
    return np.asarray(np.sum([getattr(chain, what) for chain in chains], axis=0))


def measured(blocks: list[list[Draws]], what: str) -> dict[str, float]:
    """The worst R-hat (`what` is "rhat") or effective sample size ("ess") of each kind of thing that is watched."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    worst = {}
    for name in ("class_probs", "log_joint", "watched"):
        values = together(blocks, name).astype(float)
        values = values.reshape(*values.shape[:2], -1)
        if len(values) == 1:
            # The halves of a single chain are compared with each other.
            values = np.stack(np.array_split(values[0, : values.shape[1] // 2 * 2], 2))
        # What never changes has no spread to compare: fine if it is the same in all chains.
        moving = np.ptp(values, axis=1).max(axis=0) > 0
        stuck = values[:, 0, ~moving]
        differs = stuck.size > 0 and bool(np.ptp(stuck, axis=0).max() > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = getattr(array_stats, what)(values[:, :, moving], chain_axis=0, draw_axis=1)
        if what == "rhat":
            worst[name] = np.inf if differs else float(np.max(found, initial=1.0))
        else:
            worst[name] = 0.0 if differs else float(np.min(found, initial=float(values.shape[0] * values.shape[1])))
    return worst


def matched(mean: Array, square: Array, *, axis: int) -> Array:
    """The Dirichlets along an axis with given means, whose entries vary as much in sum as the given squares say."""
    if mean.shape[axis] == 1:
        return mean  # a single label is certain, whatever its concentration
    spread = (square - mean**2).sum(axis=axis, keepdims=True)
    weight = (mean * (1 - mean)).sum(axis=axis, keepdims=True) / np.maximum(spread, 1e-12) - 1
    return np.asarray(np.maximum(mean * np.maximum(weight, 1e-6), 1e-12))
