"""IBCC for ordered classes, such as scores from 1 to 5: volunteers are graders with a bias and noise of their own."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core._parameters import boolean, choice, converted, integer, positive, precision, setting
from crowdgraph.core.answers import expected_counts
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.item_scores import name_scores
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.errors import ParameterError
from crowdgraph.kernels.backend_names import BACKENDS, PRECISIONS, BackendName, Precision
from crowdgraph.messages import quote, suggestion
from crowdgraph.models._interruption import is_interrupted
from crowdgraph.models._priors import ClassPrior, normalise_class_prior
from crowdgraph.models.base import Model
from crowdgraph.models.ibcc import IBCC, MIN_ITER
from crowdgraph.models.label_votes import Scores, check_mapping

__all__ = ["OrdinalIBCC"]

# How often the crowd's biases and noises are learned; the fit with those of the last round is returned.
ROUNDS = 2
# A first guess of what volunteers are like: no bias, a noise in units of the distance between classes, and a weight.
START_SCALE, START_WEIGHT = 0.6, 4.0


@dataclass(frozen=True, kw_only=True)
class OrdinalIBCC(Model):
    r"""IBCC for classes and labels that are numbers, such as scores from 1 to 5: near labels are likelier than far.

    Every volunteer is a grader, who perceives an item's score :math:`x_j` with a bias :math:`b_k` and normal noise
    :math:`s_k` of their own, and says the nearest label. The rows of their confusion matrix lie around those of such a
    grader, with the weight of a few answers, so that whoever answers much may differ from any grader:

    .. math::
        \pi^{(k)}_j \sim \mathrm{Dirichlet}(w\, T_j(b_k, s_k)), \qquad
        T_{jl}(b, s) \propto \Phi\Big(\frac{\tau_{l+1} - x_j - b}{s}\Big) - \Phi\Big(\frac{\tau_l - x_j - b}{s}\Big),

    where the thresholds :math:`\tau` lie midway between neighbouring labels, and one answer in twenty is of any label
    alike. How frequent biases and noises are, and the weight `w`, are learned from the crowd (empirical Bayes);
    everything else is `IBCC`.

    ``fit.expected_scores()`` has the expected score of each item, with an interval.

    Parameters
    ----------
    scores
        The numbers that classes and labels stand for; those that are numbers, or spell one, stand for themselves.
    class_prior
        Pseudo-counts of the classes, as for `IBCC`.
    max_iter, tol, backend, device, dtype, accelerate
        As for `IBCC`.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.CrowdGraph.from_responses(
    ...     {"volunteer": ["anna", "bert", "cleo"] * 2, "item": ["x"] * 3 + ["y"] * 3, "label": [4, 5, 4, 1, 2, 1]},
    ...     labels=[1, 2, 3, 4, 5])
    >>> fit = cg.OrdinalIBCC().fit(graph)
    >>> scores = fit.expected_scores(level=0.8)
    >>> 3.5 < scores["x"] < 5, 1 < scores["y"] < 2.5
    (True, True)
    """

    name: ClassVar[str] = "ordinal_ibcc"
    soft_answers: ClassVar[bool] = True

    scores: Scores | None = setting(None, check_mapping)
    class_prior: ClassPrior = converted(None, normalise_class_prior)
    max_iter: int = integer(1_000, minimum=MIN_ITER)
    tol: float = positive(1e-5)
    backend: BackendName = choice("auto", BACKENDS)
    device: str = converted("cpu", str)
    dtype: Precision = precision("float64", PRECISIONS)
    accelerate: bool = boolean(True)

    def warm_up(self, graph: CrowdGraph) -> None:
        """Compile, or load from disk, what IBCC needs."""
        self._ibcc((4.0, 1.0), max_iter=self.max_iter).warm_up(graph)

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        return self.fit(graph, seed=seed, start=start)

    def _fit(self, graph: CrowdGraph, *, seed: int | None, start: ModelFit | None, progress: bool) -> ModelFit:
        from crowdgraph.kernels.ordinal import grader_rows, learn_graders

        class_scores, label_scores = self._scores(graph)
        unit = float(np.diff(np.sort(class_scores)).mean())
        first = grader_rows(class_scores, label_scores, np.zeros(1), np.full(1, START_SCALE * unit))[0]
        fit = self._ibcc(START_WEIGHT * first, max_iter=self.max_iter)._fit(
            graph, seed=seed, start=None if start is None else _probs_alone(start), progress=progress
        )
        fits = [fit]
        for _ in range(ROUNDS):
            graders = learn_graders(expected_counts(graph, fit.item_probs), class_scores, label_scores)
            prior = CrowdPrior(
                ids=graph.volunteers.ids,
                confusion=graders.own,
                shared=graders.typical,
                class_concentration=fit.prior.class_concentration,  # type: ignore[union-attr]
                classes=graph.classes,
                labels=graph.labels,
            )
            left = max(self.max_iter - sum(one.n_iter for one in fits), MIN_ITER)
            fit = self._ibcc(prior, max_iter=left)._fit(graph, seed=seed, start=_probs_alone(fit), progress=progress)
            fits.append(fit)
            if is_interrupted():
                break
        return self._result(
            graph,
            seed=seed,
            item_probs=fit.item_probs,
            class_probs=fit.class_probs,
            class_concentration=fit.class_concentration,
            confusion=fit.confusion,
            prior=fit.prior,
            bound=fit.bound,
            converged=all(one.converged for one in fits),
            n_iter=sum(one.n_iter for one in fits),
            diagnostics={
                **fit.diagnostics,
                "visited": sum(one.diagnostics["visited"] for one in fits),
                "weight": graders.weight,
                "bias": unit * graders.bias,
                "noise": unit * graders.scale,
            },
        )

    def _ibcc(self, prior: Any, *, max_iter: int) -> IBCC:
        return IBCC(
            confusion_prior=prior,
            class_prior=self.class_prior,
            compare_starts=False,
            max_iter=max_iter,
            tol=self.tol,
            backend=self.backend,
            device=self.device,
            dtype=self.dtype,
            accelerate=self.accelerate,
        )

    def _scores(self, graph: CrowdGraph) -> tuple[Array, Array]:
        """Return the numbers that classes and labels stand for, of shape (J,) and (L,), all different."""
        names: list[Hashable] = [*graph.classes, *graph.labels]
        unknown = [name for name in self.scores or {} if name not in names]
        if unknown:
            raise ParameterError(
                f"scores= names {quote(unknown)}, which is neither a class nor a label; these are "
                f"{quote(dict.fromkeys(names), most=20)}.{suggestion(unknown[0], names)}"
            )
        both = []
        for what, part in (("classes", graph.classes), ("labels", graph.labels)):
            values = name_scores(part, self.scores, what=what)
            if len(set(values.tolist())) < len(values):
                raise ParameterError(f"Several {what} have the same score: {dict(zip(part, values, strict=True))}.")
            both.append(values)
        return both[0], both[1]


def _probs_alone(fit: ModelFit) -> ModelFit:
    """Return a fit of which only the class probabilities count."""
    return ModelFit(
        model=fit.model, items=fit.items, classes=fit.classes, item_probs=fit.item_probs, class_probs=fit.class_probs
    )
