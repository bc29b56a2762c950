"""The results that a page shows: the latest of each kind on the graph, and the calibration of its fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.allocation.next_steps import NextSteps
from crowdgraph.core._arrays import Array
from crowdgraph.core.changes import Changes
from crowdgraph.core.communities import MIN_CROWD, Communities
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionSnapshot, ConfusionTrack
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import Result
from crowdgraph.diagnosis.findings import Findings
from crowdgraph.evaluation.model_checks import SURE_PROBABILITY, Calibration, Unmeasured, calibration
from crowdgraph.evaluation.predictive import PredictiveChecks
from crowdgraph.messages import Interface, wording

# A table holds at most this many rows, and a section of the page about this many numbers: some megabytes in all.
MAX_ROWS = 20_000
MAX_NUMBERS = 600_000
# An item is settled if its most probable class is at least this probable.
SETTLED_PROBABILITY = SURE_PROBABILITY
# The methods of networks of volunteers who behave alike, err together, or work on the same items.
ALIKE_METHOD, ERROR_METHOD, TASK_METHOD = "pi_similarity", "error_correlation", "task_cooccurrence"

Kind = TypeVar("Kind", bound=Result)
CorrectLabels = dict[Hashable, list[Hashable]]


@runtime_checkable
class AnalysisLike(Protocol):
    """What a page uses of a `crowdgraph.analysis.Analysis`, which cannot be imported here."""

    @property
    def graph(self) -> CrowdGraph: ...
    @property
    def findings(self) -> Findings: ...
    @property
    def calibration(self) -> Calibration | Unmeasured | None: ...
    @property
    def changes(self) -> Changes | None: ...
    @property
    def predictive(self) -> PredictiveChecks | None: ...
    @property
    def plan(self) -> NextSteps | None: ...
    @property
    def calibrated_fit(self) -> ModelFit | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def skipped(self) -> Mapping[str, str]: ...
    @property
    def timings(self) -> Mapping[str, float]: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class GraphResults:
    """The results on a graph, of each kind the latest, in the words of one interface.

    Attributes
    ----------
    graph
        The annotated graph.
    measured
        The calibration, as far as it was measured before; else what can be measured without a fit.
    predictive
        The predictive checks, if they were made.
    interface
        For whom advice is worded.
    changes
        The volunteers who changed, as far as that was tested before.
    plan
        What to do next, if that was computed.
    calibrated_fit
        The shown fit with calibrated class probabilities, where its own are not.
    """

    graph: CrowdGraph
    measured: Calibration | Unmeasured | None = None
    predictive: PredictiveChecks | None = None
    interface: Interface = "python"
    changes: Changes | None = None
    plan: NextSteps | None = None
    calibrated_fit: ModelFit | None = None

    def all_of(self, kind: type[Kind]) -> dict[str, Kind]:
        """Return the results of a kind by name, in the order in which the graph was annotated."""
        return {name: result for name, result in self.graph.annotations.items() if isinstance(result, kind)}

    def latest(self, kind: type[Kind]) -> Kind | None:
        """Return the latest result of a kind."""
        return next(reversed(self.all_of(kind).values()), None)

    def advice(self, text: str) -> dict[str, Any]:
        """Return a section that has nothing to show but how to get it."""
        return {"missing": wording(text, self.interface)}

    @property
    def fit(self) -> ModelFit | None:
        """The fit whose class probabilities of items are shown."""
        return self.latest(ModelFit)

    @property
    def calibration(self) -> Calibration | Unmeasured | None:
        """The calibration of the fit: as measured before, or what can be measured without fitting."""
        if self.measured is not None or self.fit is None:
            return self.measured
        return calibration(self.graph, self.fit)

    @property
    def better_fit(self) -> ModelFit | None:
        """The calibrated fit, where the shown one is surer than gold confirms, or nobody checked it."""
        return self.calibrated_fit if self.is_doubtful else None

    @cached_property
    def is_doubtful(self) -> bool:
        """Whether the shown fit is not calibrated, and gold contradicts how sure it is, or nobody checked."""
        fit = self.fit
        if fit is None or fit.dependence is not None or fit.confusion is None or "classifier" in fit.diagnostics:
            return False
        measured = self.calibration
        return not (isinstance(measured, Calibration) and (measured.holds or measured.bias >= 0))

    @property
    def communities(self) -> Communities | None:
        """The communities of volunteers who behave alike, which give volunteers their colours."""
        alike = [result for name, result in self.all_of(Communities).items() if not self._of_tasks(name, result)]
        return alike[-1] if alike else None

    @property
    def several_communities(self) -> Communities | None:
        """The same if there are two or more: a single community is the crowd itself."""
        return self.communities if self.communities is not None and len(self.communities) > 1 else None

    @property
    def task_communities(self) -> Communities | None:
        """The communities of volunteers who work on the same items."""
        of_tasks = [result for name, result in self.all_of(Communities).items() if self._of_tasks(name, result)]
        return of_tasks[-1] if of_tasks else None

    @property
    def community_track(self) -> CommunityTrack | None:
        """The communities over time."""
        return self.latest(CommunityTrack)

    @property
    def networks(self) -> dict[str, VolunteerNetwork]:
        """The networks of volunteers."""
        return self.all_of(VolunteerNetwork)

    @property
    def is_small(self) -> bool:
        """Whether the volunteers who can be compared are too few for communities."""
        linked = [len(network) for network in self.networks.values()]
        return max(linked, default=len(self.graph.volunteers)) < MIN_CROWD

    @cached_property
    def confusion_and_fit(self) -> tuple[ConfusionTrack | None, ModelFit | None]:
        """The latest confusion matrices, and the fit that they belong to, if they belong to one."""
        for result in reversed([*self.graph.annotations.values()]):
            if isinstance(result, ConfusionTrack):
                return result, None
            if isinstance(result, ModelFit) and result.confusion is not None:
                return result.confusion, result
        return None, None

    @property
    def confusion(self) -> ConfusionTrack | None:
        """The latest confusion matrices."""
        return self.confusion_and_fit[0]

    @cached_property
    def snapshot(self) -> ConfusionSnapshot | None:
        """The confusion of all volunteers after their last response."""
        return None if self.confusion is None else self.confusion.latest()

    @property
    def class_probs(self) -> Array:
        """The proportions of the classes, as far as they are known."""
        fit = self.fit if self.confusion_and_fit[1] is None else self.confusion_and_fit[1]
        n_classes = len(self.graph.classes)
        return np.full(n_classes, 1 / n_classes) if fit is None else fit.class_probs

    @cached_property
    def correct_labels(self) -> tuple[CorrectLabels, str]:
        """The labels that are right for each class, and how that is known: by ``votes``, ``names`` or the ``crowd``."""
        graph, fit = self.graph, self.confusion_and_fit[1]
        by_votes = None if fit is None else fit.correct_labels
        if by_votes is not None:
            return {
                name: [label for label in graph.labels if label in by_votes[name]] for name in graph.classes
            }, "votes"
        if set(graph.classes) <= set(graph.labels):
            return {name: [name] for name in graph.classes}, "names"
        return self._crowd_labels(), "crowd"

    def _of_tasks(self, name: str, communities: Communities) -> bool:
        """Whether communities are of volunteers who work on the same items, by their name or by their volunteers.

        Communities do not know in which network they were detected.
        """
        networks = [network for network in self.networks.values() if network.method == TASK_METHOD]
        same = any(network.ids.tolist() == communities.ids.tolist() for network in networks)
        return "task" in name.lower() or (communities.confusion is None and same)

    def _crowd_labels(self) -> CorrectLabels:
        """Count each label as right for the class under which the crowd, on average, gives it most often."""
        snapshot, graph = self.snapshot, self.graph
        if snapshot is None:
            return {name: [] for name in graph.classes}
        target = np.average(snapshot.mean, axis=0, weights=graph.volunteers.n_responses + 1e-9).argmax(axis=0)
        return {
            name: [label for label, likeliest in zip(graph.labels, target, strict=True) if likeliest == code]
            for code, name in enumerate(graph.classes)
        }


def most_active(n_responses: Array, max_nodes: int) -> Array:
    """Return the codes of the nodes with the most responses, the most active first, at most `max_nodes`."""
    return np.argsort(-n_responses, kind="stable")[:max_nodes]


def to_numbers(values: ArrayLike, digits: int = 4) -> Any:
    """Return an array as nested lists of rounded numbers; None stands for NaN."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    rounded = array.round(digits)
    finite = np.isfinite(rounded)
    if finite.all():
        return rounded.tolist()
    with_gaps = rounded.astype(object)
    with_gaps[~finite] = None
    return with_gaps.tolist()


def to_texts(values: Any) -> list[str]:
    """Return ids, classes or labels as text."""
    return [str(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
