"""Independent Bayesian classifier combination by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._parameters import check_integer, check_positive, progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit, PosteriorDraws
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError
from crowdgraph.models._priors import (
    ClassPrior,
    ConfusionPrior,
    checked_class_prior,
    checked_confusion_prior,
    crowd_prior,
    volunteer_priors,
)
from crowdgraph.models.base import Job, Model, Outcome
from crowdgraph.models.voting import Votes, check_mapping

if TYPE_CHECKING:
    from crowdgraph.kernels.gibbs import Chain, Draws
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["GibbsIBCC", "check_draws_memory", "drop_early_draws", "posterior_draws", "stack_chains"]

# How many bytes the draws that are kept of everything may take.
MOST_KEPT = 10**9


def check_draws_memory(n_kept: int, n_chains: int, n_items: int, shape: tuple[int, int, int]) -> None:
    """Raise if the draws that are to be kept, with confusion tables of the given shape, would take too much memory."""
    each = n_chains * (2 * n_items + 4 * int(np.prod(shape)))
    if n_kept * each > MOST_KEPT:
        raise ParameterError(
            f"keep_draws={n_kept} of {n_chains} chains would take {n_kept * each / 1e9:.1f} GB; at most "
            f"{MOST_KEPT / 1e9:g} are allowed. Use keep_draws={MOST_KEPT // each} or less for this graph, or fewer "
            "chains."
        )


def stack_chains(blocks: list[list[Draws]], what: str) -> Array:
    """Draws of all chains, of shape (chains, draws, ...)."""
    chains = zip(*blocks, strict=True)
    return np.stack([np.concatenate([getattr(draws, what) for draws in chain]) for chain in chains])


def drop_early_draws(blocks: list[list[Draws]], n_kept: int) -> None:
    """Forget what was kept of the first draws as soon as later ones suffice."""
    n_later = 0
    for block in reversed(blocks):
        if n_later >= n_kept:
            for draws in block:
                draws.classes, draws.confusion = draws.classes[:0].copy(), draws.confusion[:0].copy()
        n_later += len(block[0].log_joint)


def posterior_draws(
    graph: CrowdGraph, tensors: AnswerTensors, blocks: list[list[Draws]], *, watched: Array, n_kept: int
) -> PosteriorDraws:
    """The last `n_kept` draws of everything or, if that is 0, all draws of what was watched."""
    log_joint = stack_chains(blocks, "log_joint")
    n_chains, n_drawn = log_joint.shape
    n_last = min(n_kept, n_drawn) if n_kept else n_drawn
    if n_kept:
        full = [block for block in blocks if len(block[0].classes)]
        order = np.argsort(tensors.volunteers)
        items, volunteers = np.arange(len(graph.items)), tensors.volunteers[order]
        item_classes = stack_chains(full, "classes")[:, -n_last:]
        confusion = stack_chains(full, "confusion")[:, -n_last:, order].swapaxes(-1, -2)
    else:
        items, volunteers, item_classes = watched, np.zeros(0, dtype=np.int64), stack_chains(blocks, "watched")
        confusion = np.zeros((n_chains, n_drawn, 0, len(graph.classes), len(graph.labels)), dtype=np.float32)
    return PosteriorDraws(
        classes=graph.classes,
        labels=graph.labels,
        class_probs=stack_chains(blocks, "class_probs")[:, -n_last:],
        log_joint=log_joint[:, -n_last:],
        items=graph.items.ids[items],
        item_classes=lock(item_classes),
        volunteers=graph.volunteers.ids[volunteers],
        confusion=lock(confusion),
        first=n_drawn - n_last,
    )


# Draws between two looks at whether the chains have settled, and items whose classes are watched for that.
BLOCK, WATCHED = 100, 100


@dataclass(frozen=True, kw_only=True)
class GibbsIBCC(Model):
    r"""The model of `IBCC`, by Gibbs sampling.

    Classes, confusion matrices and class proportions are drawn in turn, each given the others; means over draws
    converge to the exact posterior, where variational Bayes is an approximation. It is much slower.

    The chains stop when the mean of the sampled classes has changed by at most `stop_change`, summed over all items,
    in `stop_for` successive draws of every chain (the paper's rule; beyond a thousand items the limit grows with their
    number), *and* R-hat of everything watched is below `r_hat`: running means settle even in a chain that is stuck.
    Watched are the class proportions, the log joint probability and the classes of the hundred items that are least
    certain after burn-in.

    ``fit.draws`` holds all draws of what is watched or, with `keep_draws`, the last draws of the classes of all items
    and of the confusion matrices of all volunteers with answers; `ModelFit.to_arviz` hands them to ArviZ. To keep one
    draw of one chain takes two bytes for each item and four for each entry of a matrix. More than 1 GB in all is
    refused; while fitting it may take three times as much.

    ``fit.diagnostics`` holds the worst `r_hat` and `ess` (bulk effective sample size) of what is watched, and its
    `draws`: arrays of shape (chains, draws, ...), as ArviZ's ``from_dict`` takes them; `watched_items` are the items of
    the last axis of ``draws["item_classes"]``. Confusion matrices are given as the Dirichlets with the sampled means
    and the sampled spread of each row.

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
    keep_draws
        How many draws of each chain to keep of everything, as told above; by default of what is watched only.

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
    keep_draws: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion_prior", checked_confusion_prior(self.confusion_prior))
        check_mapping("votes", self.votes)
        object.__setattr__(self, "class_prior", checked_class_prior(self.class_prior))
        for name, least in (("chains", 1), ("burn_in", 1), ("max_draws", 20), ("stop_for", 1), ("keep_draws", 0)):
            check_integer(name, getattr(self, name), minimum=least)
        check_positive("stop_change", self.stop_change)
        check_positive("r_hat", self.r_hat)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Load, or compile, the sweep and the sampler."""
        from crowdgraph.kernels.gibbs import compile_sampler
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph)
        compile_sampler()

    def _fit(self, job: Job) -> Outcome:
        from crowdgraph.kernels._runtime import in_parallel
        from crowdgraph.models._tensors import AnswerTensors

        graph = job.answers.graph
        self.warm_up(graph)
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        tensors = AnswerTensors(job.answers)
        check_draws_memory(self.keep_draws, self.chains, len(graph.items), tensors.shape)
        chains = self._chains(tensors, prior, job)
        with progress_bar("Gibbs-IBCC", visible=job.progress, total=self.burn_in + self.max_draws, unit="draws") as bar:
            nothing = np.zeros(0, dtype=np.int64)
            in_parallel(partial(drawn, chains, self.burn_in, nothing), self.chains)
            bar.update(self.burn_in)
            watched = least_certain(chains)
            for chain in chains:
                chain.reset_sums()
            blocks: list[list[Draws]] = []
            next_look = 0.0
            while (so_far := chains[0].n_draws) < self.max_draws:
                n_draws = min(BLOCK, self.max_draws - so_far)
                blocks.append(
                    in_parallel(partial(drawn, chains, n_draws, watched, keep=self.keep_draws > 0), self.chains)
                )
                drop_early_draws(blocks, self.keep_draws)
                bar.update(n_draws)
                if so_far >= next_look and self._has_slowed(blocks, len(graph.items)):
                    if max(measured(blocks, "rhat", len(graph.classes)).values()) < self.r_hat:
                        break
                    # R-hat takes time to work out, and falls slowly.
                    next_look = 1.2 * so_far
        return self._outcome(job, tensors, prior, chains, blocks, watched)

    def _chains(self, tensors: AnswerTensors, prior: CrowdPrior, job: Job) -> list[Chain]:
        """Chains whose classes are drawn from what the prior (or the start) says of the answers."""
        import torch

        from crowdgraph.kernels.gibbs import Chain

        confusion = tensors.table(volunteer_priors(prior, job.answers.graph))
        probs, fixed = tensors.items()
        if job.start is None:
            means = (confusion / confusion.sum(1, keepdim=True)).expand(tensors.shape).log().contiguous()
            class_means = tensors.tensor(prior.class_concentration / prior.class_concentration.sum()).log()
            guess = probs.clone()
            tensors.kernels()[0](means, class_means, guess, fixed)
        else:
            guess = torch.where(fixed[:, None], probs, tensors.tensor(job.start.item_probs))
        sums = guess.numpy().cumsum(axis=1)
        return [
            Chain(
                starts=tensors.responses.starts.numpy(),
                codes=tensors.responses.codes.numpy(),
                prior=confusion.numpy(),
                class_prior=np.array(prior.class_concentration),
                gold=probs.numpy(),
                fixed=fixed.numpy(),
                classes=(rng.random((len(sums), 1)) > sums[:, :-1]).sum(axis=1),
                rng=rng,
                n_volunteers=tensors.shape[0],
            )
            for rng in np.random.default_rng(job.seed).spawn(self.chains)
        ]

    def _has_slowed(self, blocks: list[list[Draws]], n_items: int) -> bool:
        """Whether the mean of the sampled classes has hardly changed lately, in any chain (the paper's rule)."""
        changes = stack_chains(blocks, "change")[:, -self.stop_for :]
        return changes.shape[1] == self.stop_for and bool((changes <= self._limit(n_items)).all())

    def _limit(self, n_items: int) -> float:
        """The change at which to stop."""
        return self.stop_change * max(1.0, n_items / 1_000)

    def _outcome(
        self,
        job: Job,
        tensors: AnswerTensors,
        prior: CrowdPrior,
        chains: list[Chain],
        blocks: list[list[Draws]],
        watched: Array,
    ) -> Outcome:
        graph = job.answers.graph
        n_draws = sum(chain.n_draws for chain in chains)
        class_draws = stack_chains(blocks, "class_probs")
        r_hat = measured(blocks, "rhat", len(graph.classes))
        mean = sum_of(chains, "mean_sums") / n_draws
        class_probs = class_draws.mean(axis=(0, 1))
        return Outcome(
            item_probs=sum_of(chains, "prob_sums") / n_draws,
            class_probs=class_probs,
            class_concentration=matched(class_probs, (class_draws**2).mean(axis=(0, 1)), axis=0),
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=tensors.confusion(
                    tensors.tensor(matched(mean, sum_of(chains, "square_sums") / n_draws, axis=1)),
                    others=volunteer_priors(prior, graph),
                ),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=prior,
            converged=self._has_slowed(blocks, len(graph.items)) and max(r_hat.values()) < self.r_hat,
            n_iter=chains[0].n_draws,
            diagnostics={
                "r_hat": r_hat,
                "ess": measured(blocks, "ess", len(graph.classes)),
                "change": float(stack_chains(blocks, "change")[:, -1].max()),
                "draws": {
                    "class_probs": class_draws,
                    "log_joint": stack_chains(blocks, "log_joint"),
                    "item_classes": stack_chains(blocks, "watched"),
                },
                "watched_items": graph.items.ids[watched],
            },
            draws=posterior_draws(graph, tensors, blocks, watched=watched, n_kept=self.keep_draws),
        )

    def _convergence_message(self, fit: ModelFit) -> str:
        highest = max(fit.diagnostics["r_hat"].values())
        limit = self._limit(len(fit.items))
        return (
            f"GibbsIBCC did not settle in {fit.n_iter:,} draws: R-hat is {highest:.3f} (below {self.r_hat} wanted), "
            f"and the mean of the sampled classes still changes by {fit.diagnostics['change']:.2g} at a draw "
            f"(at most {limit:.2g} wanted). Raise max_draws or stop_change; if R-hat stays high, chains sit in "
            "different modes, or an item moves slowly between its classes."
        )


def drawn(chains: list[Chain], n_draws: int, watched: Array, number: int, *, keep: bool = False) -> Draws:
    """The next draws of one of the chains."""
    return chains[number].draw(n_draws, watched, keep=keep)


def least_certain(chains: list[Chain]) -> Array:
    """The items whose classes were least certain so far."""
    probs = sum_of(chains, "prob_sums")
    order = np.argsort(probs.max(axis=1) / probs.sum(axis=1), kind="stable")
    return np.sort(order[:WATCHED])


def sum_of(chains: list[Chain], what: str) -> Array:
    """A sum over the draws of all chains."""
    return np.asarray(np.sum([getattr(chain, what) for chain in chains], axis=0))


def measured(blocks: list[list[Draws]], what: str, n_classes: int) -> dict[str, float]:
    """The worst R-hat (`what` is "rhat") or effective sample size ("ess") of each kind of thing that is watched."""
    watched = stack_chains(blocks, "watched")[..., None]
    kinds = {
        "class_probs": stack_chains(blocks, "class_probs"),
        "log_joint": stack_chains(blocks, "log_joint"),
        # Codes of classes are no numbers: whether it is this class is, and of two classes one suffices.
        "item_classes": (watched == np.arange(1, n_classes)).astype(float),
    }
    return {name: worst(values.reshape(*values.shape[:2], -1), what) for name, values in kinds.items()}


def worst(values: Array, what: str) -> float:
    """The worst R-hat or effective sample size of quantities, of shape (chains, draws, quantities)."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    if len(values) == 1:
        # The halves of a single chain are compared with each other.
        values = np.stack(np.array_split(values[0, : values.shape[1] // 2 * 2], 2))
    # What never changes has no spread to compare: fine if it is the same in all chains.
    moving = np.ptp(values, axis=1).max(axis=0) > 0
    stuck = values[:, 0, ~moving]
    if stuck.size and np.ptp(stuck, axis=0).max() > 0:
        return np.inf if what == "rhat" else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = getattr(array_stats, what)(values[:, :, moving], chain_axis=0, draw_axis=1)
    if what == "rhat":
        return float(np.max(found, initial=1.0))
    return float(np.min(found, initial=float(values.shape[0] * values.shape[1])))


def matched(mean: Array, square: Array, *, axis: int) -> Array:
    """The Dirichlets along an axis with given means, whose entries vary as much in sum as the given squares say."""
    if mean.shape[axis] == 1:
        return mean  # a single label is certain, whatever its concentration
    spread = (square - mean**2).sum(axis=axis, keepdims=True)
    weight = (mean * (1 - mean)).sum(axis=axis, keepdims=True) / np.maximum(spread, 1e-12) - 1
    return np.asarray(np.maximum(mean * np.maximum(weight, 1e-6), 1e-12))
