"""Fits that a graph carries already, such as several processes wrote them: which of them an analysis goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from crowdgraph.core._arrays import FrozenMapping
from crowdgraph.core.fit import FitSource, ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.errors import ParameterError
from crowdgraph.messages import with_article
from crowdgraph.models import IBCC, Calibrated, DawidSkene, DynIBCC, Model
from crowdgraph.models.calibrated import calibrated

__all__ = ["ChosenFit", "adopt", "choose_fit", "model_around", "model_of"]

# The models whose fits are analysed without fitting them again, by name.
KINDS: Mapping[str, Any] = FrozenMapping({kind.name: kind for kind in (IBCC, DynIBCC, DawidSkene)})

LEAVE_OUT = "Leave that out to use the fit."


class ChosenFit(NamedTuple):
    """The fit that an analysis goes on from, or None; the name of the model; and a note on why, if there is a fit."""

    fit: ModelFit | None
    model: str
    note: str | None = None


def model_of(fit: ModelFit) -> Model | None:
    """Return the model that made a fit, by its name and settings; None if they do not say.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> model_of(cg.IBCC(tol=1e-4).fit(cg.simulate.crowd(seed=0).graph)) == cg.IBCC(tol=1e-4)
    True
    """
    kind = KINDS.get(fit.model)
    return kind(**fit.params) if kind is not None and set(fit.params) == set(kind().settings()) else None


def choose_fit(
    graph: CrowdGraph,
    *,
    model: str | None = None,
    votes: Mapping[Any, Any] | None = None,
    confusion_prior: Any = None,
) -> ChosenFit:
    """Return the fit that a graph carries if it is what the options ask for; otherwise a note says why not.

    Parameters
    ----------
    graph
        The graph.
    model
        The name of the model that was asked for; None for any.
    votes, confusion_prior
        What was asked for; None for any.
    """
    fits = [result for result in graph.annotations.values() if isinstance(result, ModelFit)]
    if not fits:
        return ChosenFit(None, model or Calibrated.name)
    fit = fits[-1]
    reason = _difference(fit, model=model, votes=votes, confusion_prior=confusion_prior)
    if reason is not None:
        note = f"The fit that comes with the responses is not used, and the model is fitted anew: {reason}"
        return ChosenFit(None, model or Calibrated.name, note)
    note = f"No model is fitted: the fit of {fit.model} that comes with the responses is analysed."
    return ChosenFit(fit, model or (Calibrated.name if fit.model == IBCC.name else fit.model), note)


def _difference(
    fit: ModelFit, *, model: str | None, votes: Mapping[Any, Any] | None, confusion_prior: Any
) -> str | None:
    """Return in what a fit is not what was asked for; None if it is."""
    own = model_of(fit)
    if own is None:
        return f"it is of {fit.model}, and only fits of {', '.join(KINDS)} are gone on from."
    names = (Calibrated.name, IBCC.name) if fit.model == IBCC.name else (fit.model,)
    if model is not None and model not in names:
        return f"it is of {fit.model}, and {model} was asked for. {LEAVE_OUT}"
    for name, value in (("votes", votes), ("confusion_prior", confusion_prior)):
        if value is None:
            continue
        if name not in own.settings():
            return f"it is of {fit.model}, which has no {name}. {LEAVE_OUT}"
        asked = replace(own, **{name: value}).settings()[name]
        if repr(asked) != repr(own.settings()[name]):
            return f"it was made with {name}={own.settings()[name]!r}, and {asked!r} was asked for. {LEAVE_OUT}"
    return None


def model_around(fit: ModelFit, name: str) -> Model:
    """Return the model of a finished fit, calibrated if it is IBCC and that was asked for; or raise."""
    own = model_of(fit) if isinstance(fit, ModelFit) else None
    if own is None:
        kind = f"a fit of {fit.model!r}" if isinstance(fit, ModelFit) else with_article(type(fit))
        raise ParameterError(
            f"fit= takes a fit of {', '.join(KINDS)}; got {kind}.", hint="Leave it out to fit a model."
        )
    if name == Calibrated.name:
        return Calibrated(model=own) if isinstance(own, IBCC) else own
    if name != fit.model:
        raise ParameterError(
            f"model={name!r} is not the model of fit=, which is {fit.model!r}.", hint="Leave one of both out."
        )
    return own


def adopt(fit: ModelFit, model: Model, graph: CrowdGraph) -> ModelFit:
    """Return a finished fit as if `model` had just been fitted to the graph, calibrated if the model is."""
    fit.check_matches(graph)
    inner = model.model if isinstance(model, Calibrated) else model
    fit = replace(fit, source=FitSource(inner, graph.replace()))
    return calibrated(fit, graph, rho=model.rho) if isinstance(model, Calibrated) else fit
