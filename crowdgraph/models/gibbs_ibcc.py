"""Independent Bayesian classifier combination by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core._parameters import converted, integer, positive, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit, PosteriorDraws
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError
from crowdgraph.messages import Hint, Message
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._priors import (
    CROWD,
    ClassPrior,
    ConfusionPrior,
    crowd_prior,
    normalise_class_prior,
    normalise_confusion_prior,
    volunteer_priors,
)
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC, prior_of_newcomers
from crowdgraph.models.label_votes import Votes, check_mapping

if TYPE_CHECKING:
    from crowdgraph.kernels.gibbs import Chain, Draws
    from crowdgraph.models._tensors import AnswerTensors

__all__ = ["GibbsIBCC"]

# Draws between two checks of convergence.
DRAWS_PER_BLOCK = 100
# Items whose classes are watched for convergence.
N_WATCHED_ITEMS = 100
# The bytes that the stored draws of everything may take.
MAX_DRAW_BYTES = 10**9


@dataclass(frozen=True, kw_only=True)
class GibbsIBCC(Model):
    r"""The model of `IBCC`, fitted by Gibbs sampling.

    Classes, confusion matrices and class proportions are drawn in turn, each given the others; means over draws
    converge to the exact posterior, where variational Bayes is an approximation. It is much slower.

    The chains stop when the mean of the sampled classes has changed by at most `stop_change`, summed over all items,
    in `stop_for` successive draws of every chain (the paper's rule; beyond a thousand items the limit grows with their
    number), *and* R-hat of all watched quantities is below `r_hat`: running means converge even in a chain that is
    stuck. Watched are the class proportions, the log joint probability and the classes of the hundred items that are
    least certain after burn-in.

    ``fit.draws`` holds all draws of the watched quantities or, with `keep_draws`, the last draws of the classes of all
    items and of the confusion matrices of all volunteers with answers; `ModelFit.to_arviz` converts them for ArviZ. One
    stored draw of one chain takes two bytes for each item and four for each entry of a matrix. More than 1 GB in all is
    refused; while fitting it may take three times as much.

    ``fit.diagnostics`` holds the worst `r_hat` and `ess` (bulk effective sample size) of the watched quantities, and
    their `draws`: arrays of shape (chains, draws, ...), as ArviZ's ``from_dict`` takes them; `watched_items` are the
    items of the last axis of ``draws["item_classes"]``. Confusion matrices are returned as the Dirichlets with the
    sampled means and the sampled variance of each row.

    Parameters
    ----------
    confusion_prior, class_prior, votes
        As for `IBCC`. With ``"crowd"`` the prior of all volunteers is what an `IBCC` fit says the crowd is like on
        average.
    chains
        How many chains to run, from different random numbers.
    burn_in
        Draws of each chain to discard.
    max_draws
        Draws of each chain after which to stop in any case.
    stop_change, stop_for, r_hat
        When to stop, as described above.
    keep_draws
        How many draws of each chain to store of everything, as described above; by default only watched quantities are
        stored.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=10, n_items=30, n_responses=200, seed=0).graph
    >>> fit = cg.GibbsIBCC(stop_change=0.1).fit(graph, seed=0)
    >>> fit.diagnostics["draws"]["class_probs"].shape[::2]
    (4, 2)
    """

    name: ClassVar[str] = "gibbs_ibcc"

    confusion_prior: ConfusionPrior = converted(CROWD, normalise_confusion_prior)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    votes: Votes | None = setting(None, check_mapping)
    chains: int = integer(4)
    burn_in: int = integer(500)
    max_draws: int = integer(10_000, minimum=20)
    stop_change: float = positive(0.01)
    stop_for: int = integer(20)
    r_hat: float = positive(1.01)
    keep_draws: int = integer(0, minimum=0)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, the sweep and the sampler."""
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.kernels.gibbs import compile_sampler
        from crowdgraph.models._tensors import compile_sweep_for

        compile_sweep_for(graph, choose_backend())
        compile_sampler()

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.kernels._runtime import in_parallel
        from crowdgraph.kernels.backends import choose_backend
        from crowdgraph.models._tensors import AnswerTensors

        self.warm_up(graph)
        prior = crowd_prior(graph, self.confusion_prior, self.class_prior, self.votes)
        if self.confusion_prior == CROWD:
            static = IBCC(class_prior=self.class_prior, votes=self.votes)
            first = static._fit(graph, seed=seed, start=start, progress=progress)
            prior = prior_of_newcomers(graph, prior, first, votes=self.votes)
        tensors = AnswerTensors(graph, choose_backend())
        check_draws_memory(self.keep_draws, self.chains, len(graph.items), tensors.shape)
        chains = self._start_chains(tensors, prior, graph, seed=seed, start=start)
        with progress_bar("Gibbs-IBCC", visible=progress, total=self.burn_in + self.max_draws, unit="draws") as bar:
            no_items = np.zeros(0, dtype=np.int64)
            in_parallel(partial(_draw, chains, self.burn_in, no_items), self.chains)
            bar.update(self.burn_in)
            watched = _least_certain_items(chains)
            for chain in chains:
                chain.reset_sums()
            blocks: list[list[Draws]] = []
            next_check = 0.0
            while (n_drawn := chains[0].n_draws) < self.max_draws:
                n_draws = min(DRAWS_PER_BLOCK, self.max_draws - n_drawn)
                blocks.append(
                    in_parallel(partial(_draw, chains, n_draws, watched, keep=self.keep_draws > 0), self.chains)
                )
                _drop_early_draws(blocks, self.keep_draws)
                bar.update(n_draws)
                if is_interrupted():
                    break
                if n_drawn >= next_check and self._means_are_stable(blocks, len(graph.items)):
                    if max(worst_diagnostics(blocks, "rhat", len(graph.classes)).values()) < self.r_hat:
                        break
                    # R-hat takes time to compute, and falls slowly.
                    next_check = 1.2 * n_drawn
        return self._summarise(graph, tensors, prior, chains, blocks, watched, seed=seed)

    def _start_chains(
        self,
        tensors: AnswerTensors,
        prior: CrowdPrior,
        graph: CrowdGraph,
        *,
        seed: int | None,
        start: ModelFit | None,
    ) -> list[Chain]:
        """Return chains whose classes are drawn from the probabilities that the prior, or the start, gives them."""
        import torch

        from crowdgraph.kernels.gibbs import Chain

        confusion = tensors.table(volunteer_priors(prior, graph))
        gold, fixed = tensors.items()
        if start is None:
            means = (confusion / confusion.sum(1, keepdim=True)).expand(tensors.shape).log().contiguous()
            class_means = tensors.tensor(prior.class_concentration / prior.class_concentration.sum()).log()
            probs = gold.clone()
            tensors.kernels()[0](means, class_means, probs, fixed)
        else:
            probs = torch.where(fixed[:, None], gold, tensors.tensor(start.item_probs))
        cumulative = probs.numpy().cumsum(axis=1)
        return [
            Chain(
                starts=tensors.responses.starts.numpy(),
                codes=tensors.responses.codes.numpy(),
                prior=confusion.numpy(),
                class_prior=np.array(prior.class_concentration),
                gold=gold.numpy(),
                fixed=fixed.numpy(),
                classes=(rng.random((len(cumulative), 1)) > cumulative[:, :-1]).sum(axis=1),
                rng=rng,
                n_volunteers=tensors.shape[0],
            )
            for rng in np.random.default_rng(seed).spawn(self.chains)
        ]

    def _means_are_stable(self, blocks: list[list[Draws]], n_items: int) -> bool:
        """Return whether the mean of the sampled classes has hardly changed lately in any chain (the paper's rule)."""
        changes = _stack_chains(blocks, "change")[:, -self.stop_for :]
        return changes.shape[1] == self.stop_for and bool((changes <= self._change_limit(n_items)).all())

    def _change_limit(self, n_items: int) -> float:
        """Return the change at which to stop."""
        return self.stop_change * max(1.0, n_items / 1_000)

    def _summarise(
        self,
        graph: CrowdGraph,
        tensors: AnswerTensors,
        prior: CrowdPrior,
        chains: list[Chain],
        blocks: list[list[Draws]],
        watched: Array,
        *,
        seed: int | None,
    ) -> ModelFit:
        """Return the posterior means and diagnostics of all chains as a fit."""
        n_draws = sum(chain.n_draws for chain in chains)
        class_draws = _stack_chains(blocks, "class_probs")
        r_hat = worst_diagnostics(blocks, "rhat", len(graph.classes))
        mean = _sum_over_chains(chains, "mean_sums") / n_draws
        class_probs = class_draws.mean(axis=(0, 1))
        return self._result(
            graph,
            seed=seed,
            item_probs=_sum_over_chains(chains, "prob_sums") / n_draws,
            class_probs=class_probs,
            class_concentration=match_moments(class_probs, (class_draws**2).mean(axis=(0, 1)), axis=0),
            confusion=ConfusionTrack.static(
                ids=graph.volunteers.ids,
                concentration=tensors.confusion(
                    tensors.tensor(match_moments(mean, _sum_over_chains(chains, "square_sums") / n_draws, axis=1)),
                    others=volunteer_priors(prior, graph),
                ),
                classes=graph.classes,
                labels=graph.labels,
            ),
            prior=prior,
            converged=self._means_are_stable(blocks, len(graph.items)) and max(r_hat.values()) < self.r_hat,
            n_iter=chains[0].n_draws,
            diagnostics={
                "r_hat": r_hat,
                "ess": worst_diagnostics(blocks, "ess", len(graph.classes)),
                "change": float(_stack_chains(blocks, "change")[:, -1].max()),
                "draws": {
                    "class_probs": class_draws,
                    "log_joint": _stack_chains(blocks, "log_joint"),
                    "item_classes": _stack_chains(blocks, "watched"),
                },
                "watched_items": graph.items.ids[watched],
            },
            draws=_posterior_draws(graph, tensors, blocks, watched=watched, n_stored=self.keep_draws),
        )

    def _convergence_message(self, fit: ModelFit) -> Message:
        highest = max(fit.diagnostics["r_hat"].values())
        limit = self._change_limit(len(fit.items))
        return Message(
            f"GibbsIBCC did not converge in {fit.n_iter:,} draws: R-hat is {highest:.3f} (it should be below "
            f"{self.r_hat}), and the mean of the sampled classes still changes by {fit.diagnostics['change']:.2g} at a "
            f"draw (it should change by at most {limit:.2g}). "
        ) + Hint(
            "Raise max_draws or stop_change; if R-hat stays high, chains are in different modes, or an item moves "
            "slowly between its classes.",
            cli="In Python, raise max_draws or stop_change; if R-hat stays high, chains are in different modes, or an "
            "item moves slowly between its classes.",
        )


def check_draws_memory(n_stored: int, n_chains: int, n_items: int, shape: tuple[int, int, int]) -> None:
    """Raise if the draws to be stored, with confusion tables of the given shape, would take too much memory."""
    bytes_per_draw = n_chains * (2 * n_items + 4 * int(np.prod(shape)))
    if n_stored * bytes_per_draw > MAX_DRAW_BYTES:
        raise ParameterError(
            f"keep_draws={n_stored} of {n_chains} chains would take {n_stored * bytes_per_draw / 1e9:.1f} GB; at most "
            f"{MAX_DRAW_BYTES / 1e9:g} are allowed.",
            hint=f"Use keep_draws={MAX_DRAW_BYTES // bytes_per_draw} or less for this graph, or fewer chains.",
        )


def worst_diagnostics(blocks: list[list[Draws]], statistic: str, n_classes: int) -> dict[str, float]:
    """Return the worst R-hat ("rhat") or effective sample size ("ess") of each kind of watched quantity."""
    watched = _stack_chains(blocks, "watched")[..., None]
    quantities = {
        "class_probs": _stack_chains(blocks, "class_probs"),
        "log_joint": _stack_chains(blocks, "log_joint"),
        # Codes of classes are not numbers: whether an item is of a class is, and of two classes one suffices.
        "item_classes": (watched == np.arange(1, n_classes)).astype(float),
    }
    return {name: _worst(values.reshape(*values.shape[:2], -1), statistic) for name, values in quantities.items()}


def match_moments(mean: Array, square: Array, *, axis: int) -> Array:
    """Return the Dirichlets along an axis with given means, and with the summed variance that the squares imply."""
    if mean.shape[axis] == 1:
        return mean  # a single label is certain, whatever its concentration
    variance = (square - mean**2).sum(axis=axis, keepdims=True)
    total = (mean * (1 - mean)).sum(axis=axis, keepdims=True) / np.maximum(variance, 1e-12) - 1
    return np.asarray(np.maximum(mean * np.maximum(total, 1e-6), 1e-12))


def _draw(chains: list[Chain], n_draws: int, watched: Array, number: int, *, keep: bool = False) -> Draws:
    """Return the next draws of one of the chains."""
    return chains[number].draw(n_draws, watched, keep=keep)


def _least_certain_items(chains: list[Chain]) -> Array:
    """Return the codes of the items whose classes were least certain so far."""
    probs = _sum_over_chains(chains, "prob_sums")
    order = np.argsort(probs.max(axis=1) / probs.sum(axis=1), kind="stable")
    return np.sort(order[:N_WATCHED_ITEMS])


def _sum_over_chains(chains: list[Chain], name: str) -> Array:
    """Return the sum over chains of one of their sums over draws."""
    return np.asarray(np.sum([getattr(chain, name) for chain in chains], axis=0))


def _stack_chains(blocks: list[list[Draws]], name: str) -> Array:
    """Return the draws of all chains, of shape (chains, draws, ...)."""
    chains = zip(*blocks, strict=True)
    return np.stack([np.concatenate([getattr(draws, name) for draws in chain]) for chain in chains])


def _drop_early_draws(blocks: list[list[Draws]], n_stored: int) -> None:
    """Discard the stored draws of early blocks as soon as later ones suffice."""
    n_later = 0
    for block in reversed(blocks):
        if n_later >= n_stored:
            for draws in block:
                draws.classes, draws.confusion = draws.classes[:0].copy(), draws.confusion[:0].copy()
        n_later += len(block[0].log_joint)


def _worst(values: Array, statistic: str) -> float:
    """Return the worst R-hat or effective sample size of quantities, of shape (chains, draws, quantities)."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    if len(values) == 1:
        # The halves of a single chain are compared with each other.
        values = np.stack(np.array_split(values[0, : values.shape[1] // 2 * 2], 2))
    # What never changes has no variance to compare: fine if it is the same in all chains.
    varies = np.ptp(values, axis=1).max(axis=0) > 0
    constant = values[:, 0, ~varies]
    if constant.size and np.ptp(constant, axis=0).max() > 0:
        return np.inf if statistic == "rhat" else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = getattr(array_stats, statistic)(values[:, :, varies], chain_axis=0, draw_axis=1)
    if statistic == "rhat":
        return float(np.max(statistics, initial=1.0))
    return float(np.min(statistics, initial=float(values.shape[0] * values.shape[1])))


def _posterior_draws(
    graph: CrowdGraph, tensors: AnswerTensors, blocks: list[list[Draws]], *, watched: Array, n_stored: int
) -> PosteriorDraws:
    """Return the last `n_stored` draws of everything or, if that is 0, all draws of the watched quantities."""
    log_joint = _stack_chains(blocks, "log_joint")
    n_chains, n_drawn = log_joint.shape
    n_last = min(n_stored, n_drawn) if n_stored else n_drawn
    if n_stored:
        complete = [block for block in blocks if len(block[0].classes)]
        order = np.argsort(tensors.volunteers)
        items, volunteers = np.arange(len(graph.items)), tensors.volunteers[order]
        item_classes = _stack_chains(complete, "classes")[:, -n_last:]
        confusion = _stack_chains(complete, "confusion")[:, -n_last:, order].swapaxes(-1, -2)
    else:
        items, volunteers, item_classes = watched, np.zeros(0, dtype=np.int64), _stack_chains(blocks, "watched")
        confusion = np.zeros((n_chains, n_drawn, 0, len(graph.classes), len(graph.labels)), dtype=np.float32)
    return PosteriorDraws(
        classes=graph.classes,
        labels=graph.labels,
        class_probs=_stack_chains(blocks, "class_probs")[:, -n_last:],
        log_joint=log_joint[:, -n_last:],
        items=graph.items.ids[items],
        item_classes=lock(item_classes),
        volunteers=graph.volunteers.ids[volunteers],
        confusion=lock(confusion),
        first=n_drawn - n_last,
    )
