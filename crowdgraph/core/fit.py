"""ModelFit: what a model inferred about items, classes and volunteers; with its posterior draws and influence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, ReadOnlyArrays, id_array, lock, read_only, value_tuple
from crowdgraph.core._other_names import AdvisesOnNames
from crowdgraph.core._parameters import check_instance, check_number
from crowdgraph.core.changes import Changes, ChangeSource
from crowdgraph.core.clock import Moment
from crowdgraph.core.confusion import ConfusionTrack, Correct
from crowdgraph.core.dependence import Dependence
from crowdgraph.core.forward_state import ForwardState
from crowdgraph.core.item_scores import ItemScores, expected_scores, name_scores
from crowdgraph.core.prior import CrowdPrior
from crowdgraph.core.result import (
    CodedColumn,
    Columns,
    Result,
    Tabular,
    TimeColumn,
    check_ids_match,
    check_values_match,
    finite_array,
    frozen_copy,
    positive_array,
    probability_array,
    real_array,
    to_frame,
    unique_ids,
)
from crowdgraph.core.tables import NodeTable
from crowdgraph.errors import NotAnnotatedError, ParameterError, ResultError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.io.tensors import FitTensors

__all__ = ["FitSource", "FitStage", "FitState", "Influence", "ModelFit", "PosteriorDraws"]

# The largest number of pairs of volunteers and items in a table of predictions.
MAX_PAIRS = 10_000_000


class Refittable(Protocol):
    """A model that can be fitted again, starting from an earlier fit."""

    def _refit(self, graph: CrowdGraph, *, start: ModelFit, seed: int | None = None) -> ModelFit:
        """Fit a graph in the mode of an earlier fit."""
        ...


class FitSource(NamedTuple):
    """The model, the graph and the seed that a fit comes from."""

    model: Refittable
    graph: CrowdGraph
    seed: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class FitStage(ReadOnlyArrays):
    """Where one stage of an iteration ended.

    Attributes
    ----------
    item_probs
        Class probabilities of the items, of shape (N, J).
    counts
        The expected number of answers by volunteer, class and label that they imply, of shape (K, J, L).
    """

    item_probs: Array
    counts: Array

    def __post_init__(self) -> None:
        self._set(
            item_probs=finite_array("item_probs", self.item_probs, shape=(None, None)),
            counts=finite_array("counts", self.counts, shape=(None, np.shape(self.item_probs)[1], None)),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FitState(ReadOnlyArrays):
    """Where an iteration ended, from which `Model.update` goes on.

    Attributes
    ----------
    n_answers
        How many answers each item had, of shape (N,).
    stages
        The stages of the fit: IBCC that learns its prior from the crowd has two, with the prior's start and with the
        prior; others have one.
    """

    n_answers: Array
    stages: tuple[FitStage, ...]

    def __post_init__(self) -> None:
        n_answers = finite_array("n_answers", self.n_answers, shape=(None,), kinds="iu")
        self._set(n_answers=read_only(n_answers, dtype=np.int64), stages=tuple(self.stages))
        for stage in self.stages:
            if len(stage.item_probs) != len(n_answers):
                raise ResultError(f"A stage has {len(stage.item_probs):,} items; expected {len(n_answers):,}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelFit(AdvisesOnNames, Result):
    """What a model inferred from a graph.

    `to_frame` has a row for each item: its most probable class and the probability of every class.

    Attributes
    ----------
    model
        The model's name, such as ``"ibcc"``.
    items
        Item ids, of shape (N,).
    classes
        The true classes, J of them.
    item_probs
        The probability of each class for each item, of shape (N, J).
    class_probs
        The proportion of each class, of shape (J,).
    confusion
        The volunteers' confusion over time; None for models without confusion matrices.
    bound
        The lower bound (or score) after each iteration; empty for models that have none.
    converged, n_iter
        Whether the fit converged, and after how many iterations it stopped.
    params
        The model's settings.
    class_concentration
        The Dirichlet concentration of the classes, of shape (J,); None for models that have none.
    prior
        The prior; None for models that have none.
    diagnostics
        More about the fit, such as the bounds of several starts.
    draws
        Samples of the posterior; None for models that do not sample.
    state
        Where the iteration ended, from which `Model.update` goes on; None for models that do not need it.
    forward
        Where the filter of `DynIBCC` ended for each volunteer, so that later responses can be filtered from there; None
        for other models.
    source
        The model, the graph and the seed that the fit comes from. It is not saved with a graph.
    classifier
        The trained network of `ClassifierIBCC`, a ``torch.nn.Module`` from features to logits; None for other models.
        It is not saved with a graph: keep its ``state_dict()``.

    Examples
    --------
    >>> fit = ModelFit(model="mine", items=["x", "y"], classes=("no", "yes"), item_probs=[[0.9, 0.1], [0.3, 0.7]],
    ...                class_probs=[0.6, 0.4])
    >>> fit.predict()
    {'x': 'no', 'y': 'yes'}
    """

    model: str
    items: Array
    classes: tuple[Hashable, ...]
    item_probs: Array
    class_probs: Array
    confusion: ConfusionTrack | None = None
    bound: Array = field(default_factory=lambda: np.zeros(0))
    converged: bool = True
    n_iter: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    class_concentration: Array | None = None
    prior: CrowdPrior | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    draws: PosteriorDraws | None = field(default=None, repr=False)
    state: FitState | None = field(default=None, repr=False, metadata={"saved": "unless default"})
    forward: ForwardState | None = field(default=None, repr=False, metadata={"saved": "unless default"})
    source: FitSource | None = field(default=None, repr=False, metadata={"saved": False})
    classifier: Any = field(default=None, repr=False, metadata={"saved": False})

    def __post_init__(self) -> None:
        items = unique_ids(self.items, kind="item")
        classes = value_tuple(self.classes, what="classes")
        self._set(
            items=items,
            classes=classes,
            item_probs=probability_array("item_probs", self.item_probs, shape=(len(items), len(classes))),
            class_probs=probability_array("class_probs", self.class_probs, shape=(len(classes),)),
            bound=real_array("bound", self.bound, shape=(None,)),
            params=frozen_copy(self.params),
            diagnostics=frozen_copy(self.diagnostics),
        )
        if self.class_concentration is not None:
            shape = (len(classes),)
            self._set(class_concentration=positive_array("class_concentration", self.class_concentration, shape=shape))
        if self.n_iter < 0:
            raise ResultError(f"n_iter={self.n_iter!r} cannot be negative.")
        if self.confusion is not None and self.confusion.classes != classes:
            raise ResultError(f"The confusion has the classes {self.confusion.classes}, the fit {classes}.")
        self._check_state()
        if self.confusion is not None and self.source is not None:
            self._set(confusion=self.confusion.with_source(self._change_source))

    def _check_state(self) -> None:
        """Raise unless the state is of the items, volunteers, classes and labels of this fit."""
        if self.state is None:
            return
        if len(self.state.n_answers) != len(self.items):
            raise ResultError(f"The state is of {len(self.state.n_answers):,} items; expected {len(self.items):,}.")
        for stage in self.state.stages:
            track = self.confusion
            labels = stage.counts.shape[2] if track is None else len(track.labels)
            volunteers = len(stage.counts) if track is None else len(track)
            expected = (volunteers, len(self.classes), labels)
            if stage.counts.shape != expected:
                raise ResultError(f"A stage counts answers in shape {stage.counts.shape}; expected {expected}.")

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def dependence(self) -> Dependence | None:
        """The dependence between answers that the class probabilities allow for; None if they take none into account.

        `calibrated` makes a fit that has one.
        """
        facts = self.diagnostics.get("dependence")
        return None if facts is None else Dependence(float(facts["rho"]), str(facts["source"]), int(facts["n_gold"]))

    def calibrated(self, graph: CrowdGraph | None = None, *, rho: float | None = None) -> ModelFit:
        r"""Return a fit whose class probabilities allow for dependence between answers about one item.

        Models with confusion matrices take answers for independent once the class is known, but what makes an item
        hard is shared by all who answer; so they are too sure. If two answers about an item have the correlation
        :math:`\rho`, `n` of them carry as much information as :math:`n / (1 + \rho (n - 1))` independent ones, the
        *effective number of answers*. The evidence about each item is discounted accordingly, once,

        .. math:: \ln p_{ij} = T_i \Big( \ln \kappa_j + \sum_{\text{answers}} \ln E[\pi^{(k)}_{j, \text{label}}]
                  \Big) + \text{const}, \qquad T_i = \frac{1}{1 + \rho (n_i - 1)},

        with class proportions a third of the way to equal ones. The volunteers' confusion and the class proportions
        are then estimated again from these probabilities, and the intervals of confusion allow for the classes that are
        not known. ``fit.dependence`` says what was allowed for. Hard labels hardly change.

        Parameters
        ----------
        graph
            The graph that was fitted; needed only if the fit was loaded from a file or made by hand.
        rho
            The correlation, from 0 to 1. If left out, it is learned from gold if ten answered items or more have some,
            each judged by confusion that has not counted its own gold; otherwise it is 0.5, which suits real crowds of
            many kinds. For `Cautious`, which allows for difficulty already, it is always 0.2.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> crowd = cg.simulate.crowd(difficulty=0.3, gold=0, seed=0)
        >>> fit = cg.IBCC().fit(crowd.graph)
        >>> calibrated = fit.calibrated()
        >>> calibrated.dependence
        Dependence(rho=0.5, source='assumed', n_gold=0)
        >>> bool(calibrated.item_probs.max(axis=1).mean() < fit.item_probs.max(axis=1).mean())
        True
        """
        from crowdgraph.models.calibrated import calibrated, check_uncalibrated

        check_uncalibrated(self)
        return calibrated(self, self._require_source().graph if graph is None else graph, rho=rho)

    def effective_answers(self, graph: CrowdGraph | None = None) -> Array:
        """Return how many independent answers carry as much information about each item as those given, (N,).

        Without a calibration, every answer counts as one.
        """
        from crowdgraph.core.graph import CrowdGraph

        graph = self._require_source().graph if graph is None else graph
        check_instance("graph", graph, CrowdGraph)
        self.check_nodes(graph)
        dependence = Dependence(0.0, "given", 0) if self.dependence is None else self.dependence
        return lock(dependence.effective_answers(graph.answers.n_by_item))

    def predict(self) -> dict[Hashable, Hashable]:
        """Return the most probable class of each item; of equally probable ones the first."""
        best = self.item_probs.argmax(axis=1)
        return {item: self.classes[code] for item, code in zip(self.items.tolist(), best, strict=True)}

    def expected_scores(self, scores: Mapping[Hashable, float] | None = None, *, level: float = 0.9) -> ItemScores:
        """Return the expected score of each item, for classes that are numbers, with an interval.

        Parameters
        ----------
        scores
            The numbers that classes stand for. If left out, those with which the model was fitted, and classes that are
            numbers, or spell one, stand for themselves.
        level
            The least probability of the intervals. Their ends are scores of classes.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": ["x", "x"], "label": [1, 3]})
        >>> print(cg.MajorityVote().fit(graph).expected_scores().to_frame(kind="text"))
        item  expected  deviation  low  high
        x            2          1    1     3
        """
        check_number(
            "level", level, valid=lambda value: 0 < value < 1, expected="be a probability below 1, such as 0.9"
        )
        stated = self.params.get("scores") if scores is None else scores
        values = name_scores(self.classes, stated, what="classes")
        return expected_scores(self.items, self.item_probs, values, level=float(level))

    def predict_response(
        self, volunteer: Hashable, item: Hashable, *, at: Moment | None = None
    ) -> dict[Hashable, float]:
        """Return the probability of each label that a volunteer would give an item.

        Parameters
        ----------
        volunteer
            A volunteer of the graph; a new volunteer is predicted from the prior.
        item
            An item of the graph.
        at
            The moment at which the volunteer would answer; after their last response if left out.
        """
        probs = self.item_probs[self._items_table.code(item)]
        return dict(
            zip(self._require_confusion().labels, (probs @ self._confusion(volunteer, at)).tolist(), strict=True)
        )

    def predict_responses(
        self,
        graph: CrowdGraph | None = None,
        *,
        volunteers: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
        kind: str = "pandas",
    ) -> Any:
        """Return a table of the responses, with probabilities, that volunteers would give to unanswered items.

        Parameters
        ----------
        graph
            The graph, of which answered pairs are left out; the one that was fitted if left out.
        volunteers, items
            Which volunteers and items; all if left out. All pairs of a large graph are too many: choose some.
        kind
            As for `to_frame`.
        """
        graph = self._require_source().graph if graph is None else graph
        self.check_matches(graph)
        return to_frame(self._predictions(graph, volunteers, items), kind=kind)

    def _predictions(
        self, graph: CrowdGraph, volunteers: Iterable[Hashable] | None, items: Iterable[Hashable] | None
    ) -> Columns:
        """Return a row for each unanswered pair: the most probable label, and the probability of each."""
        track, answers, n_items = self._require_confusion(), graph.answers, len(graph.items)
        rows = np.arange(len(graph.volunteers)) if volunteers is None else graph.volunteers.codes(volunteers)
        columns = np.arange(n_items) if items is None else graph.items.codes(items)
        if len(rows) * len(columns) > MAX_PAIRS:
            raise ParameterError(
                f"{len(rows):,} volunteers and {len(columns):,} items make {len(rows) * len(columns):,} pairs; choose "
                f"at most {MAX_PAIRS:,} with volunteers=[...] and items=[...]."
            )
        has_volunteer, has_item = np.zeros(len(graph.volunteers), dtype=bool), np.zeros(n_items, dtype=bool)
        has_volunteer[rows], has_item[columns] = True, True
        answered = answers.where(has_volunteer[answers.volunteer] & has_item[answers.item])
        answered_pairs = answered.volunteer.astype(np.int64) * n_items + answered.item
        pairs = np.setdiff1d((rows[:, None] * n_items + columns).ravel(), answered_pairs)
        volunteer, item = pairs // n_items, pairs % n_items
        mean, probs = track.latest().mean, np.zeros((len(pairs), len(track.labels)))
        for code in range(len(self.classes)):
            probs += self.item_probs[item, code, None] * mean[volunteer, code]
        return {
            "volunteer": CodedColumn(volunteer, graph.volunteers.ids),
            "item": CodedColumn(item, graph.items.ids),
            "label": CodedColumn(probs.argmax(axis=1), id_array(track.labels)),
            **{f"p({name})": probs[:, k] for k, name in enumerate(track.labels)},
        }

    def as_prior(self, strength: float = 1.0) -> CrowdPrior:
        """Turn today's posterior into tomorrow's prior.

        Parameters
        ----------
        strength
            How much of the evidence to keep: 1 for all of it, 0 for the prior that the fit began with. In between, the
            evidence counts as that fraction of its responses. With 1, `DynIBCC` goes on from where its filter ended.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> first = cg.simulate.crowd(seed=0).graph
        >>> later = cg.simulate.crowd(seed=1).graph
        >>> fit = cg.IBCC(confusion_prior=cg.IBCC().fit(first).as_prior(0.5)).fit(later)
        """
        if self.confusion is None or self.prior is None or self.class_concentration is None:
            raise NotAnnotatedError(f"The model {self.model!r} has no posterior that could become a prior; fit IBCC.")
        if not isinstance(strength, int | float | np.number) or not 0 <= strength <= 1:
            raise ParameterError(f"strength={strength!r} must be a number from 0 to 1.")
        ids, posterior = self.confusion.ids.tolist(), self.confusion.latest().concentration
        prior = self.prior.of_all(ids)
        # Volunteers who are not in the graph keep their prior.
        absent = [volunteer for volunteer in self.prior.ids.tolist() if volunteer not in self.confusion.table]
        return CrowdPrior(
            ids=id_array([*ids, *absent]),
            confusion=np.concatenate([prior + strength * (posterior - prior), self.prior.of_all(absent)]),
            shared=self.prior.shared,
            class_concentration=(1 - strength) * self.prior.class_concentration + strength * self.class_concentration,
            classes=self.classes,
            labels=self.confusion.labels,
            # Confusion that was discounted is not where the filter ended.
            forward=self.forward.joined(self.prior.forward)
            if self.forward is not None and strength == 1 and self.dependence is None
            else None,
        )

    def influence(self, *, volunteer: Hashable | None = None, item: Hashable | None = None) -> Influence:
        """Measure what the responses of a volunteer, about an item, or of a volunteer about an item change.

        The model is fitted again without them, starting from this fit and with the same seed. Leaving out an item
        leaves out its gold, too.
        """
        source = self._require_source()
        rest = graph_without(source.graph, volunteer, item)
        return Influence(
            volunteer=volunteer,
            item=item,
            n_responses=len(source.graph.responses) - len(rest.responses),
            fit=self,
            without=source.model._refit(rest, start=self, seed=source.seed),
        )

    def _columns(self) -> Columns:
        best = CodedColumn(self.item_probs.argmax(axis=1), id_array(self.classes))
        probs = {f"p({name})": self.item_probs[:, code] for code, name in enumerate(self.classes)}
        return {"item": self.items, "class": best, **probs}

    def accuracy_columns(self, *, level: float = 0.9, correct: Correct | None = None) -> dict[str, Array]:
        """Return the columns of `volunteers_to_frame`, with the volunteers in their own order."""
        track = self._require_confusion()
        snapshot, correct = track.latest(), self.correct_labels if correct is None else correct
        low, high = snapshot.accuracy_interval(level, class_probs=self.class_probs, correct=correct)
        return {
            "volunteer": track.ids,
            "accuracy": snapshot.accuracy(self.class_probs, correct=correct),
            "low": low,
            "high": high,
            "weight": snapshot.concentration.sum(axis=(1, 2)),
        }

    def volunteers_to_frame(self, *, level: float = 0.9, correct: Correct | None = None, kind: str = "pandas") -> Any:
        """Return a row for each volunteer, the best first: the expected share of correct labels, and its interval.

        Parameters
        ----------
        level
            The probability of the interval.
        correct
            For each class, the label (or labels) that count as correct. If left out, those that vote for it in the
            model's settings, or the class's own name.
        kind
            As for `to_frame`.
        """
        columns = self.accuracy_columns(level=level, correct=correct)
        order = np.argsort(-columns["accuracy"], kind="stable")
        return to_frame({name: column[order] for name, column in columns.items()}, kind=kind)

    def changes(
        self,
        graph: CrowdGraph | None = None,
        *,
        false_discovery_rate: float = 0.05,
        min_answers: int = 8,
        seed: int | None = 0,
        correct: Correct | None = None,
    ) -> Changes:
        """Test which volunteers began to answer differently, suddenly or gradually.

        A volunteer's answers, in order of time, are compared with the class probabilities of their items: is the share
        of right answers, to items of all classes or of one, the same throughout? The statistic is a Bayes factor of
        steps and ramps against no change. Its p-value comes from permutations of the volunteer's answers, and the
        false-discovery rate over the crowd is controlled by Benjamini and Hochberg's method. It works for any model,
        also for those that take volunteers to be the same at all times. Without times, the order of the rows counts.

        Parameters
        ----------
        graph
            The graph; the one that was fitted if left out.
        false_discovery_rate
            Which share of the reported changes may be false, on average.
        min_answers
            Volunteers with fewer answers are not tested.
        seed
            The same seed gives the same permutations; None draws one.
        correct
            As for `volunteers_to_frame`.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> crowd = cg.simulate.crowd(
        ...     n_volunteers=40, n_items=400, n_responses=[200] * 40, drift="step", drifting=0.2, seed=1)
        >>> cg.IBCC().fit(crowd.graph).changes()[0].kind
        'sudden'
        """
        from crowdgraph.core.graph import CrowdGraph

        if graph is None:
            source = self._change_source
        else:
            check_instance("graph", graph, CrowdGraph)
            self.check_matches(graph)
            source = ChangeSource(graph, self.probs_before_discount(graph), self.correct_labels)
        return source.changes(
            false_discovery_rate=false_discovery_rate, min_answers=min_answers, seed=seed, correct=correct
        )

    def changes_to_frame(
        self,
        graph: CrowdGraph | None = None,
        *,
        false_discovery_rate: float = 0.05,
        min_answers: int = 8,
        seed: int | None = 0,
        correct: Correct | None = None,
        kind: str = "pandas",
    ) -> Any:
        """Return `changes` as a table, a row for each volunteer who changed, the clearest first.

        Parameters
        ----------
        graph, false_discovery_rate, min_answers, seed, correct
            As for `changes`.
        kind
            As for `to_frame`.
        """
        changes = self.changes(
            graph, false_discovery_rate=false_discovery_rate, min_answers=min_answers, seed=seed, correct=correct
        )
        return changes.to_frame(kind=kind)

    def to_arviz(self) -> Any:
        """Return the posterior draws for ArviZ: a tree of xarray datasets with named dimensions.

        The group ``posterior`` holds ``class_probs`` (chain, draw, class), ``item_class`` (chain, draw, item: indices
        into `classes`) and, if the model kept draws of it, ``confusion`` (chain, draw, volunteer, class,
        response_label); ``sample_stats`` holds ``lp``, the log joint probability. Coordinates are ids, classes and
        labels; ids other than numbers and text become text. It needs the package arviz-base.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(n_volunteers=10, n_items=30, n_responses=200, seed=0).graph
        >>> fit = cg.GibbsIBCC(stop_change=0.1, keep_draws=100).fit(graph, seed=0)
        >>> dict(fit.to_arviz()["posterior"]["confusion"].sizes)
        {'chain': 4, 'draw': 100, 'volunteer': 10, 'class': 2, 'response_label': 2}
        """
        from crowdgraph.io.tensors import fit_to_arviz

        return fit_to_arviz(self)

    def to_camtrap_dp(
        self,
        path: str | PathLike[str],
        *,
        items: Any,
        types: Mapping[Hashable, str] | None = None,
        names: Mapping[Hashable, str] | None = None,
    ) -> None:
        """Write the table of observations of a Camtrap DP 1.0, with the probability of each classification.

        There is an observation for each item, of its most probable class. It belongs to a file if `items` has a
        `mediaID` for it, and to an event otherwise. The other tables of the package are yours.

        Parameters
        ----------
        path
            The CSV file, such as ``observations.csv``.
        items
            A table with the columns ``item``, ``deploymentID``, ``eventStart`` and ``eventEnd`` (times with a zone),
            and perhaps ``mediaID`` and ``eventID``. It has a row for each item of the fit; further rows are not used.
        types
            Classes that are not animals, such as ``{"nothing here": "blank", "person": "human"}``.
        names
            The scientific names of classes that are called otherwise.

        Examples
        --------
        >>> import crowdgraph as cg, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "observations.csv"
        >>> fit = ModelFit(model="ibcc", items=["x", "y"], classes=("fox", "none"), item_probs=[[0.9, 0.1], [0.3, 0.7]],
        ...                class_probs=[0.6, 0.4])
        >>> times = ["2026-03-21T05:00:00Z", "2026-03-21T06:00:00Z"]
        >>> items = {"item": ["x", "y"], "deploymentID": ["d1", "d1"], "eventStart": times, "eventEnd": times}
        >>> fit.to_camtrap_dp(path, items=items, types={"none": "blank"}, names={"fox": "Vulpes vulpes"})
        >>> path.read_text().splitlines()[1].split(",")[7:9]
        ['"animal"', '"Vulpes vulpes"']
        """
        from crowdgraph.io.occurrences import write_camtrap_dp

        write_camtrap_dp(self, path, items=items, types=types, names=names)

    def to_darwin_core(
        self,
        path: str | PathLike[str],
        *,
        items: Any,
        names: Mapping[Hashable, str | None] | None = None,
        basis: str = "HumanObservation",
    ) -> None:
        """Write a Darwin Core table of occurrences: what each item most probably is, and the probability.

        Darwin Core has no term for the probability, so it is in ``dynamicProperties``, as JSON, and in
        ``identificationRemarks``.

        Parameters
        ----------
        path
            The CSV file, such as ``occurrence.csv``.
        items
            A table with the columns ``item`` and ``eventDate``; further columns, such as ``decimalLatitude``, are
            written as they are. It has a row for each item of the fit; further rows are not used.
        names
            The scientific names of classes that are called otherwise; None for classes that are no occurrence. Items of
            those are left out with a warning that counts them.
        basis
            The ``basisOfRecord``, such as ``"MachineObservation"`` for pictures of camera traps.
        """
        from crowdgraph.io.occurrences import write_darwin_core

        write_darwin_core(self, path, items=items, names=names, basis=basis)

    def to_json_lines(self, path: str | PathLike[str]) -> None:
        """Write a line of JSON for each item: its most probable class, and the probability of every class.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "items.jsonl"
        >>> ModelFit(model="mine", items=["x"], classes=("no", "yes"), item_probs=[[0.9, 0.1]],
        ...          class_probs=[0.6, 0.4]).to_json_lines(path)
        >>> print(path.read_text().strip())
        {"item": "x", "class": "no", "probability": 0.9, "probabilities": {"no": 0.9, "yes": 0.1}}
        """
        from crowdgraph.io.occurrences import write_json_lines

        write_json_lines(self, path)

    def to_torch(self, *, device: Any = None, dtype: Any = "float64") -> FitTensors:
        """Return copies of what was inferred as tensors, which `crowdgraph.tensors` takes.

        They are `item_probs`, `class_probs` and, where the model has them, the concentrations `classes`, `confusion`
        (after each volunteer's last response), `confusion_prior` and `class_prior`.

        `crowdgraph.tensors.lower_bound` of these is ``fit.bound[-1]`` for IBCC with an explicit prior, such as
        ``confusion_prior=(4, 1)``. It is another number where the concentrations are not the state in which variational
        Bayes ended: with the default ``confusion_prior="crowd"`` and after `calibrated` they are widened on purpose, to
        allow for what is uncertain about the classes. With ``learn_prior=True`` the fit's bound also counts how
        probable the learned prior is.

        Parameters
        ----------
        device, dtype
            As in `CrowdGraph.to_torch`.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=300, seed=0).graph
        >>> cg.MajorityVote().fit(graph).to_torch(dtype="float32")
        FitTensors(item_probs (60, 2), class_probs (2,); float32, cpu)
        """
        from crowdgraph.io.tensors import fit_to_torch

        return fit_to_torch(self, device=device, dtype=dtype)

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless the fit belongs to the graph's items, volunteers, classes, labels and responses."""
        self.check_nodes(graph)
        if self.confusion is not None:
            self.confusion.check_responses(graph)

    def check_nodes(self, graph: CrowdGraph) -> None:
        """Raise unless the fit belongs to the graph's nodes, classes and labels; its responses may differ."""
        check_ids_match(f"The fit {self.model!r}", self.items, graph.items.table)
        check_values_match(f"The fit {self.model!r}", "classes", self.classes, graph.classes)
        if self.confusion is not None:
            self.confusion.check_nodes(graph)

    @property
    def correct_labels(self) -> dict[Hashable, list[Hashable]] | None:
        """The labels that vote for each class in the model's settings; None if these do not say."""
        votes = self.params.get("votes")
        if not votes:
            return None
        return {name: [label for label, target in votes.items() if target == name] for name in self.classes}

    @property
    def knows_correct_labels(self) -> bool:
        """Whether there is confusion, and it is known which labels are right for which class."""
        track = self.confusion
        return track is not None and (self.correct_labels is not None or set(self.classes) <= set(track.labels))

    def _require_source(self) -> FitSource:
        if self.source is None:
            raise NotAnnotatedError(
                "This fit does not know the graph it comes from (it was loaded from a file or made by hand). Pass the "
                "graph, as in fit.calibrated(graph), fit.effective_answers(graph) or fit.changes(graph), or fit the "
                "model again."
            )
        return self.source

    @cached_property
    def _change_source(self) -> ChangeSource:
        graph = self._require_source().graph
        return ChangeSource(graph, self.probs_before_discount(graph), self.correct_labels)

    def probs_before_discount(self, graph: CrowdGraph) -> Array:
        """Return the class probabilities as they would be if answers were independent, of shape (N, J).

        They are those of a calibrated fit with its discount undone; other fits have none. The discount blurs all
        classes alike, which would hide how a volunteer's answers change.
        """
        if self.dependence is None:
            return self.item_probs
        discount = 1 + self.dependence.rho * (np.maximum(graph.answers.n_by_item, 1) - 1)
        logs = np.log(np.maximum(self.item_probs, np.finfo(float).tiny)) * discount[:, None]
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.where(graph.gold.known[:, None], self.item_probs, odds / odds.sum(axis=1, keepdims=True))

    @cached_property
    def _items_table(self) -> NodeTable:
        return NodeTable("item", self.items)

    def _require_confusion(self) -> ConfusionTrack:
        if self.confusion is None:
            raise NotAnnotatedError(
                f"The model {self.model!r} has no confusion matrices; fit IBCC to predict responses."
            )
        return self.confusion

    def _confusion(self, volunteer: Hashable, at: Moment | None) -> Array:
        track = self._require_confusion()
        if volunteer not in track.table and self.prior is not None:
            concentration = self.prior.of(volunteer)
            return np.asarray(concentration / concentration.sum(axis=1, keepdims=True))
        history = track.of(volunteer)
        return (history.latest() if at is None else history.at(at)).mean

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        last = f", bound {self.bound[-1]:,.4f}" if len(self.bound) else ""
        return (
            f"ModelFit({self.model}: {len(self.items):,} items, {state} after {self.n_iter:,} iterations{last}"
            f"{self._assumption()})"
        )

    def _assumption(self) -> str:
        """Return what the class probabilities take for granted about answers, as the end of a sentence."""
        if self.dependence is not None:
            return f"; allows for dependence between answers ({self.dependence.words})"
        if "classifier" in self.diagnostics:
            return f"; rounds of its classifier that were used: {self.diagnostics['classifier']['rounds_used']}"
        if self.confusion is None or "difficulties" in self.diagnostics:
            return ""
        return "; takes answers for independent, see calibrated()"

    def _repr_html_(self) -> str:
        from crowdgraph.core._html import fit_html

        return fit_html(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Influence(ReadOnlyArrays, Tabular):
    """The difference between a fit and a fit without some responses.

    `to_frame` has a row for each item, those that change most first.

    Attributes
    ----------
    volunteer, item
        Whose responses, or the responses about which item, were left out; None for all.
    n_responses
        How many responses were left out.
    fit, without
        The fit with and without them. The second starts from the first, so that both lie in the same mode.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.simulate.crowd(n_volunteers=10, n_items=50, n_responses=300, seed=1).graph
    >>> fit = cg.IBCC().fit(graph)
    >>> busiest = graph.volunteers.ids[graph.volunteers.n_responses.argmax()]
    >>> influence = fit.influence(volunteer=busiest)
    >>> influence.item_change.shape
    (50, 2)
    """

    volunteer: Hashable | None
    item: Hashable | None
    n_responses: int
    fit: ModelFit
    without: ModelFit

    @cached_property
    def item_change(self) -> Array:
        """What the responses add to each item's class probabilities, of shape (N, J)."""
        return lock(self.fit.item_probs - self.without.item_probs)

    @cached_property
    def confusion_change(self) -> Array:
        """What the responses add to each volunteer's expected confusion, of shape (K, J, L)."""
        if self.fit.confusion is None or self.without.confusion is None:
            raise NotAnnotatedError(f"The model {self.fit.model!r} has no confusion matrices that could change.")
        return lock(self.fit.confusion.latest().mean - self.without.confusion.latest().mean)

    @property
    def flipped(self) -> list[Hashable]:
        """The items whose most probable class depends on the responses."""
        differs = self.fit.item_probs.argmax(axis=1) != self.without.item_probs.argmax(axis=1)
        return list(self.fit.items[differs].tolist())

    def _columns(self) -> Columns:
        return compared_columns(self.fit, self.item_change, without=self.without)

    def __repr__(self) -> str:
        parts = [
            f"of volunteer {self.volunteer!r}" if self.volunteer is not None else "",
            f"about item {self.item!r}" if self.item is not None else "",
        ]
        return (
            f"Influence of the {self.n_responses:,} responses {' '.join(part for part in parts if part)}: "
            f"{len(self.flipped):,} items change their most probable class, "
            f"the largest change of a probability is {np.abs(self.item_change).max():.3f}"
        )


def graph_without(graph: CrowdGraph, volunteer: Hashable | None, item: Hashable | None) -> CrowdGraph:
    """Return the graph without the responses of a volunteer, about an item, or of that volunteer about that item.

    Leaving out an item leaves out its gold, too.
    """
    if volunteer is None and item is None:
        raise ParameterError("Say whose influence to measure: volunteer=..., item=..., or both for one response.")
    dropped = np.ones(len(graph.responses), dtype=bool)
    if volunteer is not None:
        dropped &= graph.responses.volunteer == graph.volunteers.table.code(volunteer)
    if item is not None:
        dropped &= graph.responses.item == graph.items.table.code(item)
    if not dropped.any():
        raise ParameterError(f"There is no response with volunteer={volunteer!r} and item={item!r} in the graph.")
    drop_gold = [] if volunteer is not None or item is None else [graph.items.table.code(item)]
    return drop_responses(graph, dropped, drop_gold=drop_gold)


def drop_responses(graph: CrowdGraph, dropped: Array, *, drop_gold: ArrayLike = ()) -> CrowdGraph:
    """Return the graph without the responses of a mask, of shape (R,), and without the gold of some items (codes)."""
    has_gold = np.ones(len(graph.items), dtype=bool)
    has_gold[np.asarray(drop_gold, dtype=np.int64)] = False
    return graph.replace(
        responses=graph.responses.table.take(np.flatnonzero(~dropped)), gold=graph.gold.where(has_gold)
    )


def compared_columns(fit: ModelFit, change: Array, *, retired_at: Array | None = None, **other: ModelFit) -> Columns:
    """Return the columns that compare a fit with another one: a row for each item, those that change most first.

    They are the most probable class in both fits, that of the other under its name, and the change of every class's
    probability.
    """
    order = np.argsort(-np.abs(change).max(axis=1), kind="stable")
    names = id_array(fit.classes)
    fits = {"class": fit, **other}
    columns: dict[str, Array | CodedColumn | TimeColumn] = {
        "item": fit.items[order],
        **{name: CodedColumn(one.item_probs[order].argmax(axis=1), names) for name, one in fits.items()},
        **{f"change of p({name})": change[order, code] for code, name in enumerate(fit.classes)},
    }
    return columns if retired_at is None else {**columns, "retired_at": retired_at[order]}


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorDraws(ReadOnlyArrays):
    """Samples of the posterior: C chains of D draws each.

    Attributes
    ----------
    classes, labels
        The true classes, J of them, and the labels, L of them.
    class_probs
        The proportion of each class, of shape (C, D, J).
    log_joint
        The log probability of answers and classes given the draw, of shape (C, D).
    items, item_classes
        Some items, or all, of shape (N,), and the codes of their classes, of shape (C, D, N).
    volunteers, confusion
        Some volunteers, or none, of shape (V,), and their confusion matrices, of shape (C, D, V, J, L).
    first
        The number of the first of these draws; earlier ones were discarded.
    """

    classes: tuple[Hashable, ...]
    labels: tuple[Hashable, ...]
    class_probs: Array
    log_joint: Array
    items: Array
    item_classes: Array
    volunteers: Array
    confusion: Array
    first: int = 0

    def __post_init__(self) -> None:
        classes, labels = value_tuple(self.classes, what="classes"), value_tuple(self.labels, what="labels")
        items, volunteers = unique_ids(self.items, kind="item"), unique_ids(self.volunteers, kind="volunteer")
        lead = np.shape(self.log_joint)
        shapes = {
            "class_probs": (len(classes),),
            "log_joint": (),
            "item_classes": (len(items),),
            "confusion": (len(volunteers), len(classes), len(labels)),
        }
        values = {"classes": classes, "labels": labels, "items": items, "volunteers": volunteers}
        arrays = {name: _shaped(name, getattr(self, name), (*lead, *rest)) for name, rest in shapes.items()}
        finite_array("item_classes", arrays["item_classes"], shape=(None,) * 3, below=len(classes), kinds="iu")
        finite_array("confusion", arrays["confusion"], shape=(None,) * 5)
        finite_array("class_probs", arrays["class_probs"], shape=(None,) * 3)
        real_array("log_joint", arrays["log_joint"], shape=(None, None))
        for name, value in {**values, **arrays}.items():
            object.__setattr__(self, name, value)

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self.log_joint)

    def __len__(self) -> int:
        return int(self.log_joint.shape[1])

    def __repr__(self) -> str:
        return (
            f"PosteriorDraws({self.n_chains} chains of {len(self):,} draws: classes of {len(self.items):,} items, "
            f"confusion of {len(self.volunteers):,} volunteers)"
        )


def _shaped(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    """Return a read-only array of the expected shape, in its own precision."""
    array = read_only(values)
    if len(shape) < 2 or array.shape != shape:
        raise ResultError(f"{name} has shape {array.shape}; expected {shape}, the first two for chains and draws.")
    return array
