"""Training: how volunteers improve by answering, who would gain most from it, and from whom they could learn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.allocation._beliefs import Beliefs, current_beliefs
from crowdgraph.allocation._information_gain import single_gains
from crowdgraph.core._arrays import Array, ReadOnlyArrays, object_array, read_only
from crowdgraph.core._parameters import Configured, check_integer, fraction, instance
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.errors import ParameterError, ResultError

__all__ = ["Training", "TrainingPlan", "training_candidates"]


@dataclass(frozen=True, kw_only=True)
class Training(Configured):
    r"""An assumption about training: volunteers improve by meeting items of classes that they have rarely met.

    Meeting an item of class j closes a share of the gap between the information in a volunteer's label, on average, and
    that in the best volunteer's label. The more items of the class they have met, the smaller the share:

    .. math:: e_{kj} = \text{rate} \cdot \frac{\max_l g_l - g_k}{1 + m_{kj}}, \qquad
              \text{effect}(k, i) = \sum_j q(t_i = j) \Big( e_{kj} + \text{reach} \cdot \frac{1}{n_k}
              \sum_{l \sim k} e_{lj} \Big),

    in nats for each later label, where :math:`m_{kj}` is the number of items of the class that the volunteer has met,
    answered or not, and :math:`l \sim k` are the :math:`n_k` other members of the same community.

    Parameters
    ----------
    rate
        The share of the gap that the first item closes, from 0 to 1.
    reach
        How much of it other members of the community gain, from 0 to 1.
    communities
        The communities; nobody else gains if left out.
    """

    rate: float = fraction(0.1)
    reach: float = fraction(0.0)
    communities: Communities | None = instance(None, Communities, expected="Communities")

    def _check_settings(self) -> None:
        if self.reach and self.communities is None:
            raise ParameterError(f"reach={self.reach!r} needs communities=, to say whom it reaches.")


def training_effect(graph: CrowdGraph, beliefs: Beliefs, training: Training | None) -> Array:
    """Return what a volunteer, and their community, gain by meeting an item of each class, of shape (V, J)."""
    shape = beliefs.concentration.shape[:2]
    if training is None:
        return np.zeros(shape)
    information = single_gains(beliefs.class_probs[None], beliefs.confusion)[0]
    responses = graph.responses
    n_met = np.zeros(shape)
    np.add.at(n_met, responses.volunteer, beliefs.item_probs[responses.item])
    own = training.rate * (information.max(initial=0.0) - information)[:, None] / (1 + n_met)
    if training.communities is None:
        return np.asarray(own)
    community = training.communities.on(graph).assignment
    sums = np.zeros((len(training.communities) + 1, shape[1]))
    np.add.at(sums, community, own)
    n_others = np.bincount(community[community >= 0], minlength=len(sums))[community] - 1
    passed_on = np.where(community[:, None] >= 0, sums[community] - own, 0.0) / np.maximum(n_others, 1)[:, None]
    return np.asarray(own + training.reach * passed_on)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPlan(ReadOnlyArrays, Tabular):
    """Volunteers who would gain from training, largest gain first, and the teachers whom they could learn from.

    Attributes
    ----------
    volunteers
        Their ids, of shape (M,).
    community
        The community of each, of shape (M,); -1 for none.
    information
        How much a label of each reveals about an item of average class, in nats, of shape (M,).
    better
        The community from which each could learn, of shape (M,); it may be their own.
    gain
        How much more a label would reveal, in nats, if they answered as that community does on average, of shape (M,).
    n_responses
        How many answers each gave, of shape (M,): how much the gain would matter, and how certain it is.
    teachers
        For each, the members of the better community to learn from, the best first; it may be nobody.
    common
        For each teacher, how many items both have answered.
    """

    volunteers: Array
    community: Array
    information: Array
    better: Array
    gain: Array
    n_responses: Array
    teachers: Sequence[Sequence[Hashable]]
    common: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        volunteers = unique_ids(self.volunteers, kind="volunteer")
        checked: dict[str, Any] = {"volunteers": volunteers}
        for name in ("information", "gain"):
            checked[name] = real_array(name, getattr(self, name), shape=(len(volunteers),))
        for name in ("community", "better", "n_responses"):
            checked[name] = read_only(getattr(self, name), dtype=np.int64)
        for name in ("teachers", "common"):
            checked[name] = tuple(map(tuple, getattr(self, name)))
        lengths = {name: len(values) for name, values in checked.items()}
        if len(set(lengths.values())) > 1:
            raise ResultError(f"A training plan needs as many values as volunteers; got {lengths}.")
        if list(map(len, checked["teachers"])) != list(map(len, checked["common"])):
            raise ResultError("A training plan needs a number of common items for each teacher.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.volunteers)

    def _columns(self) -> Columns:
        """Return one row for each volunteer; teachers, and how many items they have in common, as text."""
        numbers = ("community", "information", "better", "gain", "n_responses")
        lists = ("teachers", "common")
        return {
            "volunteer": self.volunteers,
            **{name: getattr(self, name) for name in numbers},
            **{name: object_array(", ".join(map(str, row)) for row in getattr(self, name)) for name in lists},
        }

    def __repr__(self) -> str:
        n_taught = sum(map(bool, self.teachers))
        most = f"; at most {self.gain.max():.3g} nats more for each label" if len(self) else ""
        return f"TrainingPlan({len(self):,} volunteers would gain, {n_taught:,} of them have teachers{most})"


def training_candidates(
    graph: CrowdGraph,
    *,
    communities: Communities | str | None = None,
    fit: ModelFit | str | None = None,
    n_teachers: int = 3,
) -> TrainingPlan:
    r"""Find the volunteers who would gain most from training, and the teachers whom they could learn from.

    The information in a volunteer's label is that between label and class, in nats, for an item of which only the class
    frequencies (`class_probs` of the fit) are known. The information in a community's label follows likewise from the
    mean confusion of its members, weighted by participation and, where the communities know it, by their answers.

    Volunteers whose labels are less informative than those of some community are candidates. Their better community is
    the most informative one that has teachers for them: members by assignment whose labels are at least as informative
    as the community's and who have answered at least one of the same items, so that both can talk about it. Where no
    community has teachers, it is the most informative one.

    Candidates are ordered by gain: how much more informative each label would be if they answered as the better
    community does. This is an upper bound; nothing here shows that training works. The fit knows little about
    volunteers with few answers (``n_responses``), and they look like its prior.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        Communities of volunteers who behave alike, or the name under which the graph carries them; the latest if left
        out.
    fit
        The fit, or the name under which the graph carries it; the latest if left out.
    n_teachers
        How many teachers to name at most: those with most items in common and, of equals, the most central ones, who
        participate most in their community.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> groups = [cg.simulate.Group(name="good", confusion=[[0.9, 0.1], [0.1, 0.9]]),
    ...           cg.simulate.Group(name="poor", confusion=[[0.6, 0.4], [0.4, 0.6]])]
    >>> graph = cg.simulate.crowd(n_volunteers=40, groups=groups, seed=0).graph
    >>> graph = graph.annotate(cg.IBCC().fit(graph))
    >>> graph = graph.annotate(cg.Leiden().detect(cg.networks.pi_similarity(graph), seed=0))
    >>> training_candidates(graph)
    TrainingPlan(30 volunteers would gain, 30 of them have teachers; at most 0.316 nats more for each label)
    """
    check_integer("n_teachers", n_teachers, minimum=0)
    beliefs = current_beliefs(graph, fit)
    groups = graph.resolve_communities(communities)
    skills = _skills(graph, beliefs, groups)
    answered = _answered_items(graph)
    answered_by = answered.T.tocsr()
    candidates = np.flatnonzero(skills.volunteers < skills.communities.max(initial=0.0))
    lessons = [_lesson(skills, int(code), (answered[[code]] @ answered_by).toarray()[0]) for code in candidates]
    better = np.array([lesson.better for lesson in lessons], dtype=np.int64)
    gain = skills.communities[better] - skills.volunteers[candidates]
    order = np.argsort(-gain, kind="stable")
    lessons = [lessons[index] for index in order]
    codes = candidates[order]
    return TrainingPlan(
        volunteers=graph.volunteers.ids[codes],
        community=skills.assignment[codes],
        information=skills.volunteers[codes],
        better=better[order],
        gain=gain[order],
        n_responses=graph.answers.n_by_volunteer[codes],
        teachers=[graph.volunteers.ids[lesson.teachers[:n_teachers]].tolist() for lesson in lessons],
        common=[lesson.common[:n_teachers].tolist() for lesson in lessons],
    )


class _Skills(NamedTuple):
    """The information in a label of each volunteer, (V,), and community, (K,), and who belongs to which community."""

    volunteers: Array
    communities: Array
    assignment: Array
    participation: Array


class _Lesson(NamedTuple):
    """The better community, and the codes of its teachers with the number of items in common, the best first."""

    better: int
    teachers: Array
    common: Array


def _skills(graph: CrowdGraph, beliefs: Beliefs, communities: Communities) -> _Skills:
    """Measure the information in labels about an item of average class."""
    average = beliefs.class_probs[None]
    snapshot = ConfusionSnapshot(
        ids=graph.volunteers.ids, classes=graph.classes, labels=graph.labels, concentration=beliefs.concentration
    )
    means = communities.mean_confusion(snapshot, by_responses=communities.support is not None)
    inhabited = ~np.isnan(means).any(axis=(1, 2))
    by_community = np.zeros(len(communities))
    by_community[inhabited] = single_gains(average, means[inhabited])[0]
    by_volunteer = single_gains(average, beliefs.confusion)[0]
    return _Skills(by_volunteer, by_community, *communities.on(graph))


def _lesson(skills: _Skills, code: int, common: Array) -> _Lesson:
    """Find teachers for a volunteer, given how many items they have in common with everybody, of shape (V,)."""
    ranked = np.argsort(-skills.communities, kind="stable")
    for better in ranked[skills.communities[ranked] > skills.volunteers[code]]:
        able = (skills.assignment == better) & (skills.volunteers >= skills.communities[better])
        teachers = np.flatnonzero(able & (common > 0))
        if len(teachers):
            order = np.lexsort((-skills.participation[teachers, better], -common[teachers]))
            return _Lesson(int(better), teachers[order], common[teachers[order]])
    nobody = np.zeros(0, dtype=np.int64)
    return _Lesson(int(ranked[0]), nobody, nobody)


def _answered_items(graph: CrowdGraph) -> Any:
    """Return which volunteers answered which items, as a sparse matrix of ones, (V, N)."""
    from scipy.sparse import csr_array

    answers = graph.answers
    pairs = (answers.volunteer, answers.item)
    shape = (len(graph.volunteers), len(graph.items))
    answered = csr_array((np.ones(len(answers), dtype=np.int64), pairs), shape=shape)
    answered.sum_duplicates()
    answered.data[:] = 1
    return answered
