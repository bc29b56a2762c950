"""Who would gain most from training, and from whom they could learn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crowdgraph.allocation._beliefs import Beliefs, believed, found_communities
from crowdgraph.allocation._information_gain import single_gains
from crowdgraph.core._arrays import Array, ReadOnlyArrays, object_array, read_only
from crowdgraph.core._parameters import check_integer
from crowdgraph.core.communities import Communities
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import Columns, Tabular, real_array, unique_ids
from crowdgraph.errors import ResultError

__all__ = ["TrainingPlan", "training_candidates"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPlan(ReadOnlyArrays, Tabular):
    """Volunteers who would gain from training, those who would gain most first, and from whom they could learn.

    Attributes
    ----------
    volunteers
        Their ids, of shape (M,).
    community
        The community of each, of shape (M,); -1 for none.
    information
        How much a label of each tells about an item of average class, in nats, of shape (M,).
    better
        The community from which each could learn, of shape (M,); it may be their own.
    gain
        How much more a label would tell, in nats, if they answered as that community does on average, of shape (M,).
    n_responses
        How many answers each gave, of shape (M,): how much the gain would matter, and how surely it is known.
    teachers
        For each, the members of the better community to learn from, the best first; it may be nobody.
    common
        For each of these, how many items both answered.
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
        """One row for each volunteer; teachers, and how many items they have in common, as text."""
        numbers = ("community", "information", "better", "gain", "n_responses")
        lists = ("teachers", "common")
        return {
            "volunteer": self.volunteers,
            **{name: getattr(self, name) for name in numbers},
            **{name: object_array(", ".join(map(str, row)) for row in getattr(self, name)) for name in lists},
        }

    def __repr__(self) -> str:
        taught = sum(map(bool, self.teachers))
        most = f"; at most {self.gain.max():.3g} nats more for each label" if len(self) else ""
        return f"TrainingPlan({len(self):,} volunteers would gain, {taught:,} of them have teachers{most})"


def training_candidates(
    graph: CrowdGraph,
    *,
    communities: Communities | str | None = None,
    fit: ModelFit | str | None = None,
    n_teachers: int = 3,
) -> TrainingPlan:
    r"""Who would gain most from training, and from whom they could learn.

    What a volunteer's label tells is the information between it and the class of an item, in nats, before anything is
    known of the item but how frequent the classes are (`class_probs` of the fit). What a community's label would tell
    follows likewise from the mean confusion of its members, who count by participation and, where the communities know
    it, by their answers.

    Volunteers who tell less than some community are candidates. Their better community is the one that tells most among
    those with teachers for them: members by assignment who tell at least as much as their community and answered at
    least one of the same items, about which both can talk. Where no community has teachers it is the one that tells
    most.

    Candidates are ordered by gain: what the better community tells more, for each label. It is an upper end, reached if
    they come to answer as that community does; nothing here shows that training works. Of volunteers with few answers
    (``n_responses``) the fit knows little, and they look like its prior.

    Parameters
    ----------
    graph
        The graph, annotated with a fit that has confusion matrices.
    communities
        Communities of volunteers who behave alike, or the name under which the graph carries them; the latest that it
        carries if left out.
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
    TrainingPlan(30 volunteers would gain, 30 of them have teachers; at most 0.314 nats more for each label)
    """
    check_integer("n_teachers", n_teachers, minimum=0)
    beliefs = believed(graph, fit)
    groups = found_communities(graph, communities, network="pi_similarity")
    told = _told(graph, beliefs, groups)
    met = _met(graph)
    met_by = met.T.tocsr()
    candidates = np.flatnonzero(told.volunteers < told.communities.max(initial=0.0))
    lessons = [_lesson(told, int(code), (met[[code]] @ met_by).toarray()[0]) for code in candidates]
    better = np.array([lesson.better for lesson in lessons], dtype=np.int64)
    gain = told.communities[better] - told.volunteers[candidates]
    order = np.argsort(-gain, kind="stable")
    chosen = [lessons[place] for place in order]
    codes = candidates[order]
    return TrainingPlan(
        volunteers=graph.volunteers.ids[codes],
        community=told.assignment[codes],
        information=told.volunteers[codes],
        better=better[order],
        gain=gain[order],
        n_responses=_n_answers(graph)[codes],
        teachers=[graph.volunteers.ids[lesson.teachers[:n_teachers]].tolist() for lesson in chosen],
        common=[lesson.common[:n_teachers].tolist() for lesson in chosen],
    )


class Told(NamedTuple):
    """What a label of each volunteer, (V,), and each community, (K,), tells, and who belongs to which community."""

    volunteers: Array
    communities: Array
    assignment: Array
    participation: Array


class Lesson(NamedTuple):
    """The better community, and the codes of all teachers in it with the number of items in common, the best first."""

    better: int
    teachers: Array
    common: Array


def _lesson(told: Told, code: int, common: Array) -> Lesson:
    """From whom a volunteer could learn who has so many items in common with each of all, (V,)."""
    ranked = np.argsort(-told.communities, kind="stable")
    for better in ranked[told.communities[ranked] > told.volunteers[code]]:
        able = (told.assignment == better) & (told.volunteers >= told.communities[better])
        teachers = np.flatnonzero(able & (common > 0))
        if len(teachers):
            order = np.lexsort((-told.participation[teachers, better], -common[teachers]))
            return Lesson(int(better), teachers[order], common[teachers[order]])
    nobody = np.zeros(0, dtype=np.int64)
    return Lesson(int(ranked[0]), nobody, nobody)


def _told(graph: CrowdGraph, beliefs: Beliefs, groups: Communities) -> Told:
    """What labels tell about an item of average class."""
    average = beliefs.class_probs[None]
    snapshot = ConfusionSnapshot(
        ids=graph.volunteers.ids, classes=graph.classes, labels=graph.labels, concentration=beliefs.concentration
    )
    prototypes = groups.mean_confusion(snapshot, by_responses=groups.support is not None)
    lived = ~np.isnan(prototypes).any(axis=(1, 2))
    by_community = np.zeros(len(groups))
    by_community[lived] = single_gains(average, prototypes[lived])[0]
    places = graph.volunteers.codes(groups.ids)
    assignment = np.full(len(graph.volunteers), -1)
    participation = np.zeros((len(graph.volunteers), len(groups)))
    assignment[places], participation[places] = groups.assignment, groups.participation
    return Told(single_gains(average, beliefs.confusion)[0], by_community, assignment, participation)


def _met(graph: CrowdGraph) -> Any:
    """Which volunteers answered which items, a sparse matrix of ones, (V, N)."""
    from scipy.sparse import csr_array

    responses = graph.responses
    answered = responses.label >= 0
    pairs = (responses.volunteer[answered], responses.item[answered])
    shape = (len(graph.volunteers), len(graph.items))
    met = csr_array((np.ones(len(pairs[0]), dtype=np.int64), pairs), shape=shape)
    met.sum_duplicates()
    met.data[:] = 1
    return met


def _n_answers(graph: CrowdGraph) -> Array:
    """How many answers each volunteer gave, of shape (V,)."""
    responses = graph.responses
    return np.bincount(responses.volunteer[responses.label >= 0], minlength=len(graph.volunteers))
