"""A model made cautious: items differ in difficulty, and members of a community err together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import check_bool, check_integer, check_positive, progress_bar
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.models.base import Answers, Job, Model, Outcome
from crowdgraph.models.ibcc import IBCC

if TYPE_CHECKING:
    from crowdgraph.kernels.cautious import CautiousEM

__all__ = ["Cautious"]

# The difficulties that items may have: 0 is as the confusion matrices say, at 1 labels would tell nothing.
DIFFICULTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
# How many items a community is taken to have answered alone beforehand.
STRENGTH = 10.0


@dataclass(frozen=True, kw_only=True)
class Cautious(Model):
    r"""Another model's confusion matrices, with class probabilities that are not too sure.

    Models such as IBCC take all items for equally difficult and all answers for independent. Where that is not so they
    are too sure. This model takes the confusion that another has found as it is, and works out the classes again:

    .. math:: p(t_i = j \mid c) \propto \kappa_j \sum_h w_h \prod_g \Big( (1 - \rho_g) \prod_{k \in g} p_h(c_k \mid j) +
              \rho_g \, \big| \textstyle\bigcap_{k \in g} I_h(c_k \mid j) \big| \Big).

    An item of difficulty `h` blurs everybody's rows, :math:`p_h(l \mid j) = (1 - h) \pi_{jl} + h \sum_m \kappa_m
    \pi_{ml}`, so that labels tell less of it. About each item the members of a community `g` see things alike with the
    chance :math:`\rho_g`: then one draw between 0 and 1 decides for all of them, and everybody says the label in whose
    interval :math:`I_h` it falls. How many items are of which difficulty and how often communities err together is
    learned by expectation maximisation, from items with and without gold; a likelihood that never falls is in
    ``fit.bound``, and what was learned in ``fit.diagnostics``.

    Parameters
    ----------
    model
        The model that finds the confusion, and what classes are usual.
    communities
        Who errs together, such as ``Leiden().detect(networks.error_correlation(graph))``. Volunteers of none of them
        decide alone, and if left out all do.
    difficulty
        Whether items may differ in difficulty.
    max_iter, tol
        When to stop: after so many steps, or when no class probability changes by more.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(n_volunteers=60, n_responses=6_000, shared_errors=0.5, gold=0.3, seed=0)
    >>> graph = crowd.graph.annotate(cg.IBCC().fit(crowd.graph))
    >>> together = cg.Leiden().detect(cg.networks.error_correlation(graph), seed=0)
    >>> fit = cg.Cautious(communities=together).fit(graph)
    >>> bool((fit.diagnostics["chances"] > 0.3).all())
    True
    """

    name: ClassVar[str] = "cautious"

    model: Model = IBCC()  # noqa: RUF009 - models cannot be changed
    communities: Communities | None = None
    difficulty: bool = True
    max_iter: int = 500
    tol: float = 1e-4

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model) or isinstance(self.model, Cautious):
            raise ParameterError(f"model= takes a model with confusion matrices, such as IBCC(); got {self.model!r}.")
        if self.communities is not None and not isinstance(self.communities, Communities):
            raise ParameterError(
                f"communities= takes the Communities that a detector finds; got a {type(self.communities).__name__}."
            )
        check_bool("difficulty", self.difficulty)
        check_integer("max_iter", self.max_iter, minimum=2)
        check_positive("tol", self.tol)

    def warm_up(self, graph: CrowdGraph) -> None:
        """As the model that finds the confusion."""
        self.model.warm_up(graph)

    def settings(self) -> dict[str, Any]:
        """The settings by name, as a fit can carry them: the model and the communities as text, and its votes."""
        communities = None if self.communities is None else repr(self.communities)
        votes = getattr(self.model, "votes", None)
        told = {**super().settings(), "model": repr(self.model), "communities": communities}
        return told if votes is None else {**told, "votes": votes}

    def _fit(self, job: Job) -> Outcome:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.kernels.fixed_point import squarem

        found = self.model._fit(job)
        if found.confusion is None:
            raise ParameterError(
                f"model={self.model!r} has no confusion matrices, so nobody knows what volunteers say of items of a "
                "class; use IBCC(), or DynIBCC() where volunteers change."
            )
        step = self._step(job.answers, found, found.confusion)
        with progress_bar("Cautious", visible=job.progress) as bar, single_threaded_torch():
            trace = squarem(
                step,
                step.start(),
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=True,
                on_step=lambda _: bar.update(),
            )
        gold = job.answers.graph.gold
        learned = step.read(trace.state)
        return replace(
            found,
            item_probs=np.where(gold.known[:, None], gold.probs, step.probs.numpy()),
            bound=np.array(trace.objectives),
            converged=found.converged and trace.converged,
            n_iter=found.n_iter + trace.n_steps,
            diagnostics={
                "model": dict(found.diagnostics),
                "change": trace.change,
                "difficulties": dict(zip(self._difficulties, learned.shares.tolist(), strict=True)),
                "chances": learned.chances.numpy(),
            },
            draws=None,
        )

    @property
    def _difficulties(self) -> tuple[float, ...]:
        return DIFFICULTIES if self.difficulty else DIFFICULTIES[:1]

    def _step(self, answers: Answers, found: Outcome, track: ConfusionTrack) -> CautiousEM:
        """The map to climb by."""
        import torch

        from crowdgraph.kernels.cautious import CautiousEM, cell_likelihoods

        graph = answers.graph
        where = _places(answers, self.communities)
        row, start = (torch.from_numpy(part) for part in _rows(answers, track))
        told = cell_likelihoods(
            row,
            start,
            torch.from_numpy(np.array(found.class_probs)),
            torch.tensor(self._difficulties, dtype=torch.float64),
            torch.from_numpy(where.cell),
            len(where.item),
        )
        before = np.where(graph.gold.known[:, None], graph.gold.probs, np.asarray(found.class_probs))
        return CautiousEM(
            told,
            item=torch.from_numpy(where.item),
            community=torch.from_numpy(where.community),
            log_prior=torch.from_numpy(before).log(),
            n_communities=0 if self.communities is None else len(self.communities),
            strength=STRENGTH,
        )


class Places(NamedTuple):
    """The cell of each answer, (R,), and the item and community of each cell, (C,); -1 where nothing is shared."""

    cell: Array
    item: Array
    community: Array


def _places(answers: Answers, communities: Communities | None) -> Places:
    """Gather the answers of each community about each item, and those of volunteers of none of them."""
    graph = answers.graph
    member = np.full(len(graph.volunteers), -1) if communities is None else communities.on(graph).assignment
    n_kinds = 1 + (0 if communities is None else len(communities))
    keys = answers.item.astype(np.int64) * n_kinds + member[answers.volunteer] + 1
    found, cell, size = np.unique(keys, return_inverse=True, return_counts=True)
    community = found % n_kinds - 1
    # One answer is the same alone and by a draw.
    return Places(cell, found // n_kinds, np.where(size > 1, community, -1))


def _rows(answers: Answers, track: ConfusionTrack) -> tuple[Array, Array]:
    """The probability of each answer, and that of all labels before it, given the class, both of shape (R, J)."""
    confusion = track.at_responses(answers.graph)[answers.rows]
    confusion = confusion / confusion.sum(axis=2, keepdims=True)
    chosen = answers.label[:, None, None].astype(np.int64)
    row = np.take_along_axis(confusion, chosen, axis=2)[:, :, 0]
    return row, np.take_along_axis(confusion.cumsum(axis=2), chosen, axis=2)[:, :, 0] - row
