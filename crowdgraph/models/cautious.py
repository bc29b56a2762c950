"""Cautious: another model's confusion, with items that differ in difficulty and communities that err together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import boolean, choice, converted, instance, integer, positive, precision, setting
from crowdgraph.core._progress import progress_bar
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC

if TYPE_CHECKING:
    from crowdgraph.kernels.backends import Backend
    from crowdgraph.kernels.cautious import ItemLikelihoods

__all__ = ["Cautious"]

# The difficulties that items may have: at 0 confusion matrices apply as they are, at 1 labels carry no information.
DIFFICULTIES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
# How many items a community is assumed to have answered independently beforehand.
PRIOR_STRENGTH = 10.0


def _check_model(name: str, value: object) -> None:
    if not isinstance(value, Model) or value.name in ("cautious", "calibrated", "classifier_ibcc"):
        raise ParameterError(f"{name}= takes a model with confusion matrices, such as IBCC(); got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class Cautious(Model):
    r"""Another model's confusion matrices, with class probabilities that are not overconfident.

    Models such as IBCC assume that all items are equally difficult and all answers independent. Where that is wrong
    they are overconfident. This model takes the confusion of another fit as it is, and computes the classes again:

    .. math:: p(t_i = j \mid c) \propto \kappa_j \sum_h w_h \prod_g \Big( (1 - \rho_g) \prod_{k \in g} p_h(c_k \mid j) +
              \rho_g \, \big| \textstyle\bigcap_{k \in g} I_h(c_k \mid j) \big| \Big).

    An item of difficulty `h` blurs everybody's rows, :math:`p_h(l \mid j) = (1 - h) \pi_{jl} + h \sum_m \kappa_m
    \pi_{ml}`, so that labels carry less information about it. About each item the members of a community `g` agree with
    probability :math:`\rho_g`: then one draw between 0 and 1 decides for all of them, and everybody gives the label in
    whose interval :math:`I_h` it falls. The shares of difficulties and the probabilities to err together are learned by
    expectation maximisation, from items with and without gold; a likelihood that never falls is in ``fit.bound``, and
    the learned values are in ``fit.diagnostics``.

    Parameters
    ----------
    model
        The model that estimates the confusion and the class proportions.
    communities
        Who errs together, such as ``Leiden().detect(networks.error_correlation(graph))``. Volunteers in none of them
        decide independently, as all do if this is left out.
    difficulty
        Whether items may differ in difficulty.
    max_iter, tol
        When to stop: after so many steps, or when no class probability changes by more.
    backend, device, dtype
        What takes these steps, where, and in which precision; ``fit.diagnostics`` says what did. ``backend="auto"`` is
        compiled code on CPUs and PyTorch on other devices, and ``"torch"`` is PyTorch on any. The model that estimates
        the confusion has such settings of its own. With ``dtype="float32"`` class probabilities are within 0.001 of
        those in double precision, and changes below rounding count as none.

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

    model: Model = setting(IBCC(), _check_model)
    communities: Communities | None = instance(None, Communities, expected="the Communities that a detector finds")
    difficulty: bool = boolean(True)
    max_iter: int = integer(500, minimum=2)
    tol: float = positive(1e-4)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, what this model and the one that estimates the confusion need."""
        from crowdgraph.kernels.backends import choose_backend, warm_up_cautious

        warm_up_cautious(choose_backend(self.backend, device=self.device, dtype=self.dtype))
        self.model.warm_up(graph)

    @property
    def _sequential(self) -> bool:
        return self.model._sequential

    def settings(self) -> dict[str, Any]:
        """Return the settings by name, as a fit can carry them: model and communities as text, and the votes."""
        communities = None if self.communities is None else repr(self.communities)
        votes = getattr(self.model, "votes", None)
        settings = {**super().settings(), "model": repr(self.model), "communities": communities}
        return settings if votes is None else {**settings, "votes": votes}

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.kernels._runtime import single_threaded_torch
        from crowdgraph.kernels.backends import cautious_map, choose_backend
        from crowdgraph.kernels.fixed_point import squarem

        backend = choose_backend(self.backend, device=self.device, dtype=self.dtype)
        base = self.model._fit(graph, seed=seed, start=start, progress=progress)
        if base.confusion is None:
            raise ParameterError(
                f"model={self.model!r} has no confusion matrices, so it does not say how likely volunteers' labels "
                "are.",
                hint="Use IBCC(), or DynIBCC() where volunteers change.",
            )
        with progress_bar("Cautious", visible=progress) as bar, single_threaded_torch():
            em = cautious_map(
                self._likelihoods(graph, base.class_probs, base.confusion, backend),
                n_communities=0 if self.communities is None else len(self.communities),
                strength=PRIOR_STRENGTH,
                backend=backend,
            )
            trace = squarem(
                em,
                em.start(),
                max_iter=self.max_iter,
                tol=em.reachable(self.tol),
                accelerate=True,
                on_step=lambda _: bar.update(),
                give_up=is_interrupted,
            )
        learned = em.parameters(trace.state)
        return self._result(
            graph,
            seed=seed,
            item_probs=np.where(graph.gold.known[:, None], graph.gold.probs, em.probs.cpu().double().numpy()),
            class_probs=base.class_probs,
            class_concentration=base.class_concentration,
            confusion=base.confusion,
            prior=base.prior,
            bound=np.array(trace.objectives),
            converged=base.converged and trace.converged,
            n_iter=base.n_iter + trace.n_steps,
            diagnostics={
                "model": dict(base.diagnostics),
                # Its confusion lies around a prior that was learned from the crowd, if that of the model does.
                **{name: base.diagnostics[name] for name in ("crowd_prior",) if name in base.diagnostics},
                "change": trace.change,
                "difficulties": dict(zip(self._difficulties, learned.shares.tolist(), strict=True)),
                "chances": learned.chances.cpu().double().numpy(),
                **backend.facts(),
            },
        )

    @property
    def _difficulties(self) -> tuple[float, ...]:
        return DIFFICULTIES if self.difficulty else DIFFICULTIES[:1]

    def _likelihoods(
        self, graph: CrowdGraph, class_probs: Array, confusion: ConfusionTrack, backend: Backend
    ) -> ItemLikelihoods:
        """Return the likelihoods of the answers in double precision, where the device has it."""
        import torch

        from crowdgraph.kernels.cautious import cell_likelihoods, item_likelihoods
        from crowdgraph.tensors.devices import limits_of

        device = backend.device if limits_of(backend.device).float64 else torch.device("cpu")
        exact = backend._replace(device=device, dtype=torch.float64)
        cell, item, community = map(exact.column, _cells(graph, self.communities))
        row, start = map(exact.values, _label_intervals(graph, confusion))
        likelihoods = cell_likelihoods(
            row, start, exact.values(class_probs), exact.values(np.array(self._difficulties)), cell, len(item)
        )
        prior_probs = np.where(graph.gold.known[:, None], graph.gold.probs, np.asarray(class_probs))
        log_prior = exact.values(prior_probs).log()
        return item_likelihoods(likelihoods, item=item, community=community, log_prior=log_prior)


def _cells(graph: CrowdGraph, communities: Communities | None) -> tuple[Array, Array, Array]:
    """Group the answers by item and community.

    Return the cell of each answer, (R,), and the item and the community of each cell, (C,); community -1 for cells in
    which nothing is shared.
    """
    answers = graph.answers
    member = np.full(len(graph.volunteers), -1) if communities is None else communities.on(graph).assignment
    n_groups = 1 + (0 if communities is None else len(communities))
    keys = answers.item.astype(np.int64) * n_groups + member[answers.volunteer] + 1
    unique_keys, cell, size = np.unique(keys, return_inverse=True, return_counts=True)
    community = unique_keys % n_groups - 1
    # A single answer has the same likelihood alone and from a shared draw.
    return cell, unique_keys // n_groups, np.where(size > 1, community, -1)


def _label_intervals(graph: CrowdGraph, track: ConfusionTrack) -> tuple[Array, Array]:
    """Return the probabilities of each answer and of all labels before it, given the class, both of shape (R, J)."""
    answers = graph.answers
    confusion = answers.of_responses(track.at_responses(graph))
    confusion = confusion / confusion.sum(axis=2, keepdims=True)
    label = answers.label[:, None, None].astype(np.int64)
    row = np.take_along_axis(confusion, label, axis=2)[:, :, 0]
    return row, np.take_along_axis(confusion.cumsum(axis=2), label, axis=2)[:, :, 0] - row
