"""Changes of volunteers: who began to answer differently, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, ReadOnlyArrays, lock, object_array, read_only
from crowdgraph.core._parameters import check_integer, check_number, check_seed
from crowdgraph.core._random import child_seed
from crowdgraph.core._text import quantity
from crowdgraph.core.clock import Clock
from crowdgraph.core.confusion import Correct, correct_labels
from crowdgraph.core.result import Columns, Tabular, TimeColumn, VolunteerIndexed, real_array, unique_ids
from crowdgraph.core.soft_answers import warn_of_most_probable_labels
from crowdgraph.errors import ResultError

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph
    from crowdgraph.kernels.change import Alternatives

__all__ = ["ChangeSource", "Changes", "VolunteerChange"]

# The probability of the interval of a change's time.
TIME_LEVEL = 0.9
# How many changes are listed where a result is shown.
MAX_LISTED = 3


class VolunteerChange(NamedTuple):
    """The change of one volunteer, as `crowdgraph.ModelFit.changes` returns it.

    Attributes
    ----------
    volunteer
        The volunteer.
    classes
        The classes about whose items the volunteer clearly answers differently, each on its own; empty if only all
        classes together are clear.
    true_class
        The class that `time`, `before` and `after` are about, the clearest; None for all classes together.
    kind
        ``"sudden"`` if a step, somewhere, is likelier than a ramp, else ``"gradual"``. A hundred answers hardly tell.
    time, low, high
        When: the first answer after the step that fits best, the median of its posterior. Of a sudden change `low` and
        `high` are the ends of a 90 % interval, of a gradual one they are where the likeliest ramp begins and ends.
    before, after
        The share of right answers before and after a sudden change, or at the ends of the ramp.
    n_before, n_answers
        How many of the volunteer's answers were before `time`, and how many there are.
    p_value
        The probability of a sequence of answers that changes as much, if their order does not matter.
    q_value
        The smallest false-discovery rate at which the change would be reported.
    log_bayes_factor
        How much likelier the answers are with a change than without one, as a natural logarithm.
    """

    volunteer: Hashable
    classes: tuple[Hashable, ...]
    true_class: Hashable | None
    kind: Literal["sudden", "gradual"]
    time: Any
    low: Any
    high: Any
    before: float
    after: float
    n_before: int
    n_answers: int
    p_value: float
    q_value: float
    log_bayes_factor: float

    @property
    def about(self) -> str:
        """The classes that changed, in words."""
        return ", ".join(map(str, self.classes)) or "all classes"

    def __str__(self) -> str:
        which = "" if self.true_class is None else f"about items of class {self.true_class} "
        return (
            f"{self.volunteer}: {self.kind} change after {self.n_before:,} of {self.n_answers:,} answers, "
            f"{which}{self.before:.0%} right before, {self.after:.0%} after"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Changes(ReadOnlyArrays, Tabular, VolunteerIndexed):
    """The volunteers for whose change there is evidence, the clearest first.

    It is a sequence of `VolunteerChange`, and `to_frame` has a row for each. That a volunteer is not among them means
    that there is no evidence for a change, not that they did not change.

    Attributes
    ----------
    ids
        All volunteers, of shape (V,).
    n_answers
        How many answers each gave, of shape (V,).
    p_values, q_values
        As for `VolunteerChange`, of shape (V,); NaN for volunteers with too few answers, who were not tested.
    changes
        The changes, C of them.
    moments
        The time, the low and the high end of each change, of shape (C, 3), on the graph's clock.
    clock
        The kind of times.
    false_discovery_rate
        The share of the changes that are false, on average over crowds, at most.
    min_answers
        Volunteers with fewer answers were not tested.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> crowd = cg.simulate.crowd(
    ...     n_volunteers=40, n_items=400, n_responses=[200] * 40, drift="step", drifting=0.2, seed=1)
    >>> changes = cg.IBCC().fit(crowd.graph).changes()
    >>> changes.n_tested, len(changes)
    (40, 6)
    >>> first = changes[0]
    >>> first.kind, first.before > first.after
    ('sudden', True)
    """

    ids: Array
    n_answers: Array
    p_values: Array
    q_values: Array
    changes: tuple[VolunteerChange, ...]
    moments: Array
    clock: Clock
    false_discovery_rate: float
    min_answers: int

    def __post_init__(self) -> None:
        self._set(ids=unique_ids(self.ids, kind="volunteer"), changes=tuple(self.changes))
        self._set(n_answers=real_array("n_answers", self.n_answers, shape=(len(self.ids),)).astype(np.int64))
        for name in ("p_values", "q_values"):
            values = read_only(getattr(self, name), dtype=np.float64)
            if values.shape != (len(self.ids),):
                raise ResultError(f"{name} has shape {values.shape}; expected {(len(self.ids),)}, one per volunteer.")
            self._set(**{name: values})
        self._set(moments=read_only(self.moments))
        if self.moments.shape != (len(self.changes), 3):
            raise ResultError(f"moments has shape {self.moments.shape}; expected {(len(self.changes), 3)}.")

    @property
    def n_tested(self) -> int:
        """How many volunteers have enough answers to be tested."""
        return int(np.count_nonzero(~np.isnan(self.p_values)))

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[VolunteerChange]:
        return iter(self.changes)

    def __getitem__(self, index: int) -> VolunteerChange:
        return self.changes[index]

    def of(self, volunteer: Hashable) -> VolunteerChange | None:
        """Return the change of a volunteer; None if there is no evidence for one, or they were not tested."""
        self.table.code(volunteer)
        return next((change for change in self.changes if change.volunteer == volunteer), None)

    def _columns(self) -> Columns:
        changes = self.changes
        numbers = {
            name: np.array([getattr(change, name) for change in changes], dtype=kind)
            for name, kind in (
                ("before", np.float64),
                ("after", np.float64),
                ("n_before", np.int64),
                ("n_answers", np.int64),
                ("p_value", np.float64),
                ("q_value", np.float64),
                ("log_bayes_factor", np.float64),
            )
        }
        return {
            "volunteer": object_array(change.volunteer for change in changes),
            "classes": object_array(change.about for change in changes),
            "kind": object_array(change.kind for change in changes),
            **{
                name: TimeColumn(self.moments[:, column], self.clock)
                for column, name in enumerate(("time", "low", "high"))
            },
            **numbers,
        }

    def __repr__(self) -> str:
        n_few = len(self.ids) - self.n_tested
        tested = f"{quantity(self.n_tested, 'tested volunteer')} (false-discovery rate {self.false_discovery_rate:.0%})"
        lines = [f"Changes: evidence for {quantity(len(self), 'change')} among {tested}"]
        if n_few:
            lines.append(f"  not tested: {quantity(n_few, 'volunteer')} with fewer than {self.min_answers} answers")
        lines += [f"  {change}" for change in self.changes[:MAX_LISTED]]
        more = len(self) - MAX_LISTED
        return "\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])])


@dataclass(frozen=True, eq=False)
class ChangeSource:
    """What changes are computed from: a graph, the class probabilities of its items, and which labels are correct.

    Attributes
    ----------
    graph
        The graph.
    item_probs
        The probability of each class for each item, of shape (N, J).
    correct
        For each class, the label (or labels) that count as correct; None for the class's own name.
    """

    graph: CrowdGraph
    item_probs: Array
    correct: Correct | None = None
    # Changes that were computed before, by their settings.
    _computed: dict[tuple[float, int, int, bytes], Changes] = field(default_factory=dict, init=False, repr=False)

    def changes(
        self, *, false_discovery_rate: float, min_answers: int, seed: int | None, correct: Correct | None
    ) -> Changes:
        """Test every volunteer for a change; see `crowdgraph.ModelFit.changes`."""
        check_number(
            "false_discovery_rate",
            false_discovery_rate,
            valid=lambda rate: 0 < rate < 1,
            expected="be a share above 0 and below 1, such as 0.05",
        )
        check_integer("min_answers", min_answers, minimum=2)
        check_seed(seed)
        seed = child_seed(np.random.default_rng()) if seed is None else int(seed)
        correct = self.correct if correct is None else correct
        mask = correct_labels(self.graph.classes, self.graph.labels, correct)
        settings = (float(false_discovery_rate), int(min_answers), seed)
        key = (*settings, mask.tobytes())
        if key not in self._computed:
            self._computed[key] = self._test(mask, *settings)
        return self._computed[key]

    def _test(self, correct: Array, rate: float, min_answers: int, seed: int) -> Changes:
        from crowdgraph.kernels.change import Sequences, permutation_test

        graph, answers = self.graph, self.graph.answers
        warn_of_most_probable_labels(graph, "the test for changes")
        n_answers = answers.n_by_volunteer
        tested = np.flatnonzero(n_answers >= min_answers)
        order = answers.by_volunteer.order
        rows = order[(n_answers >= min_answers)[answers.volunteer[order]]]
        certain = graph.gold.codes >= 0
        probs = np.where(certain[:, None], np.nan_to_num(graph.gold.probs), self.item_probs)
        sequences = Sequences(
            probs=probs[answers.item[rows]],
            label=answers.label[rows],
            correct=correct,
            starts=np.concatenate([[0], np.cumsum(n_answers[tested])]),
        )
        test = permutation_test(sequences, rate=rate, seed=seed)
        q_values = benjamini_hochberg(test.p_values)
        strength = test.statistics.max(axis=1, initial=-np.inf)
        flagged = np.flatnonzero(q_values <= rate)
        flagged = flagged[np.lexsort((-strength[flagged], test.p_values[flagged]))]
        names = graph.volunteers.ids[tested].tolist()
        changes, moments = [], np.zeros((len(flagged), 3), dtype=answers.time.dtype)
        for row, number in enumerate(flagged.tolist()):
            own = rows[sequences.starts[number] : sequences.starts[number + 1]]
            description = describe(*sequences.one(number), correct, p_values=test.series_p_values[number], level=rate)
            moments[row] = answers.time[own[list(description.answers)]]
            classes, lead = description.classes, description.lead
            changes.append(
                VolunteerChange(
                    volunteer=names[number],
                    classes=tuple(graph.classes[code] for code in classes),
                    true_class=None if lead is None else graph.classes[lead],
                    kind=description.kind,
                    **dict(zip(("time", "low", "high"), graph.responses.clock.to_python(moments[row]), strict=True)),
                    before=description.before,
                    after=description.after,
                    n_before=description.answers[0],
                    n_answers=len(own),
                    p_value=float(test.p_values[number]),
                    q_value=float(q_values[number]),
                    log_bayes_factor=description.log_bayes_factor,
                )
            )
        everybody = np.full((2, len(n_answers)), np.nan)
        everybody[:, tested] = test.p_values, q_values
        return Changes(
            ids=graph.volunteers.ids,
            n_answers=n_answers,
            p_values=lock(everybody[0].copy()),
            q_values=lock(everybody[1].copy()),
            changes=tuple(changes),
            moments=moments,
            clock=graph.responses.clock,
            false_discovery_rate=rate,
            min_answers=min_answers,
        )


class Description(NamedTuple):
    """What changed in one sequence: codes of classes, and numbers of answers for the time and its interval."""

    classes: list[int]
    lead: int | None
    kind: Literal["sudden", "gradual"]
    answers: tuple[int, int, int]
    before: float
    after: float
    log_bayes_factor: float


def describe(probs: Array, label: Array, correct: Array, *, p_values: Array, level: float) -> Description:
    """Describe the change of a sequence of answers for which there is evidence.

    The classes are those whose own p-value, corrected by Holm for their number, is at most `level`; `p_values` are
    those of all classes together, then of each. The clearest of them says when it was, or all together if none is.
    """
    from crowdgraph.kernels.change import RAMPS, alternatives

    bayes = alternatives(probs, label, correct)
    classes = np.flatnonzero(holm(p_values[1:]) <= level).tolist()
    clearest = int(bayes.total.argmax())
    if clearest and clearest - 1 not in classes:
        classes = sorted([*classes, clearest - 1])
    together = not classes or (clearest == 0 and len(classes) == len(correct))
    series = 0 if together else 1 + max(classes, key=lambda code: float(bayes.total[code + 1]))
    right = probs * correct[:, label].T
    weights = np.ones(len(probs)) if together else probs[:, series - 1]
    rights = right.sum(axis=1) if together else right[:, series - 1]
    answers = step_interval(bayes, series)
    if bayes.sudden[series] >= bayes.gradual[series]:
        kind: Literal["sudden", "gradual"] = "sudden"
        parts = slice(None, answers[0]), slice(answers[0], None)
        before, after = (rights[part].sum() / max(weights[part].sum(), 1e-300) for part in parts)
    else:
        kind, ramp = "gradual", RAMPS[bayes.ramps[:, series].argmax()] * len(probs)
        low, high = int(ramp[0]), min(int(np.ceil(ramp[1])), len(probs) - 1)
        answers = (min(max(answers[0], low), high), low, high)
        height = ((np.arange(len(probs)) + 0.5 - ramp[0]) / (ramp[1] - ramp[0])).clip(0, 1)
        before, after = line_ends(height, rights, weights)
    return Description(
        classes=classes,
        lead=None if together else series - 1,
        kind=kind,
        answers=answers,
        before=float(before),
        after=float(after),
        log_bayes_factor=float(bayes.total[series]),
    )


def step_interval(bayes: Alternatives, series: int) -> tuple[int, int, int]:
    """Return the first answer after a step: the median of its posterior, and the ends of the central interval."""
    steps = bayes.steps[:, series]
    posterior = np.exp(steps - np.logaddexp.reduce(steps)).cumsum()
    quantiles = np.array([0.5, (1 - TIME_LEVEL) / 2, (1 + TIME_LEVEL) / 2])
    median, low, high = (np.searchsorted(posterior, quantiles).clip(max=len(steps) - 1) + 1).tolist()
    return median, low, high


def line_ends(height: Array, rights: Array, weights: Array) -> tuple[float, float]:
    """Return the shares of right answers at the foot and at the top of a ramp, by weighted least squares."""
    middle = np.average(height, weights=weights)
    share = rights.sum() / weights.sum()
    centred = height - middle
    slope = (centred * (rights - share * weights)).sum() / (weights * centred**2).sum()
    return tuple(np.clip([share - slope * middle, share + slope * (1 - middle)], 0, 1).tolist())


def benjamini_hochberg(p_values: Array, *, n_tests: int | None = None) -> Array:
    """Return q-values: for each p-value the smallest false-discovery rate at which it is rejected.

    With `n_tests`, so many tests were made, and those whose p-values are not given had 1.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.8, 0.02])).round(3).tolist()
    [0.03, 0.8, 0.03]
    """
    n, order = len(p_values), np.argsort(-p_values, kind="stable")
    q_values = np.empty(n)
    q_values[order] = np.minimum.accumulate(p_values[order] * (n_tests or n) / np.arange(n, 0, -1))
    return np.minimum(q_values, 1.0)


def holm(p_values: Array) -> Array:
    """Return p-values corrected for their number by Holm's method.

    Examples
    --------
    >>> holm(np.array([0.01, 0.8, 0.02])).round(3).tolist()
    [0.03, 0.8, 0.04]
    """
    n, order = len(p_values), np.argsort(p_values, kind="stable")
    corrected = np.empty(n)
    corrected[order] = np.maximum.accumulate(p_values[order] * np.arange(n, 0, -1))
    return np.minimum(corrected, 1.0)
