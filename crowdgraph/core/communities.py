"""Communities of volunteers with soft participation, and the evidence that there are any."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock, object_array, plain
from crowdgraph.core._parameters import check_bool, is_integer, is_number
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.evidence import Evidence
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.result import (
    Columns,
    Result,
    VolunteerIndexed,
    check_ids,
    check_ids_known,
    frozen_copy,
    real_array,
    to_frame,
    unique_ids,
)
from crowdgraph.errors import NotAnnotatedError, ParameterError, ResultError
from crowdgraph.messages import with_article

if TYPE_CHECKING:
    from crowdgraph.core.graph import CrowdGraph

__all__ = ["MIN_CROWD", "Communities", "Membership"]

# Fewer volunteers are too few for communities; they are compared pair by pair instead.
MIN_CROWD = 30
# The participation from which on volunteers are members, where they may be members of several communities.
COVER_THRESHOLD = 0.25
# Volunteers with fewer responses than this are counted separately, since their behaviour is uncertain.
FEW_RESPONSES = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class Communities(VolunteerIndexed, Result):
    """Overlapping communities of volunteers.

    `to_frame` has a row for each volunteer: the community of assignment (-1 for none) and the participation in each.

    Attributes
    ----------
    ids
        The volunteers, of shape (V,); they may be some of a graph's.
    participation
        How much each volunteer belongs to each community, of shape (V, K). Rows sum to one; a volunteer who belongs to
        none (isolated in the network) has a row of zeros.
    modularity
        Newman's weighted modularity of the hard assignment in the network; NaN if it is not known.
    method, params
        How the communities were detected. Communities that were brought in have their names, in the order of their
        numbers, as ``params["names"]``.
    soft_modularity
        Modularity with participations instead of the hard assignment; None if it was not computed.
    relevance
        The variance that the detector's prior leaves to each community, of shape (at least K,): the communities first,
        then those that turned out empty. None from detectors without such a prior.
    evidence
        Whether there are communities at all; None if that was not tested.
    support
        The number of answers of each volunteer, of shape (V,); None if it is not known.
    confusion
        The confusion matrices that the network compares, if it does.

    Examples
    --------
    >>> groups = Communities(ids=["anna", "bert", "cleo"], method="by hand", modularity=0.1,
    ...                      participation=[[1.0, 0.0], [0.3, 0.7], [0.0, 0.0]])
    >>> groups.assignment
    array([ 0,  1, -1])
    >>> groups.members(1)
    ['bert']
    """

    ids: Array
    participation: Array
    modularity: float = float("nan")
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    soft_modularity: float | None = None
    relevance: Array | None = None
    evidence: Evidence | None = None
    support: Array | None = None
    confusion: ConfusionSnapshot | None = None

    def __post_init__(self) -> None:
        ids = unique_ids(self.ids, kind="volunteer")
        participation = real_array("participation", self.participation, shape=(len(ids), None))
        if (participation < 0).any():
            raise ResultError(f"participation must not be negative; its smallest value is {participation.min():g}.")
        sums = participation.sum(axis=1)
        if not (np.isclose(sums, 1.0, rtol=0, atol=1e-6) | (sums == 0)).all():
            worst = sums[(np.abs(sums - 1) * (sums > 0)).argmax()]
            raise ResultError(
                "Rows of participation must sum to one (or to zero, for volunteers of no community); one sum is "
                f"{worst:g}."
            )
        if self.modularity < -1.0 or self.modularity > 1.0:
            raise ResultError(f"modularity={self.modularity!r} must lie between -1 and 1.")
        self._set(ids=ids, participation=participation, params=frozen_copy(self.params))
        if self.relevance is not None:
            self._set(relevance=real_array("relevance", self.relevance, shape=(None,)))
        if self.support is not None:
            self._set(support=real_array("support", self.support, shape=(len(ids),)))

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        *,
        network: VolunteerNetwork | None = None,
        ids: Iterable[Hashable] | None = None,
        names: Iterable[Hashable] | None = None,
        strangers: str = "error",
        method: str = "by hand",
        params: Mapping[str, Any] | None = None,
    ) -> Communities:
        """Bring in communities that somebody or some other program found, with one community for each volunteer.

        Communities are numbered by size; ``params["names"]`` has their names. A volunteer whom several communities
        list belongs to them in equal shares. Volunteers of the network (or of `ids`) without a community belong to
        none, with a warning if `labels` does not mention them; so does a warning say which communities are empty and
        left out.

        Parameters
        ----------
        labels
            One of:

            - a mapping, or a pandas series, from volunteers to the name or number of their community; None, NaN and -1
              stand for none;
            - a list of sets or lists of volunteers, such as the functions of `networkx.community` return;
            - a clustering or cover of igraph or leidenalg, whose vertices have their ids as ``name`` or ``id``;
            - a clustering of cdlib;
            - a table with columns ``volunteer`` and ``community``, such as that of `to_frame`;
            - an array or list with the community of each volunteer of `ids`, or of the network.
        network
            The network of the volunteers, to compute modularity; support and confusion come from it.
        ids
            All volunteers, in the order of the rows if `labels` is an array. With a network, they are the network's.
        names
            The names of communities that have none, such as those of a list of sets, in their order.
        strangers
            What to do with volunteers who are not in the network, or not in `ids`: ``"error"`` or ``"drop"``.
        method, params
            Where the communities come from.

        Examples
        --------
        >>> Communities.from_labels({"anna": "expert", "bert": "novice", "cleo": "novice", "dora": None})
        Communities(by hand: 2 of sizes 2, 1; 1 unassigned)
        >>> groups = Communities.from_labels([{"anna"}, {"bert", "cleo"}], names=["expert", "novice"])
        >>> groups.params["names"], groups.members(1)
        (('novice', 'expert'), ['anna'])
        """
        from crowdgraph.core._partitions import build_communities, read_labels

        shares = read_labels(labels, network=network, ids=ids, names=names)
        return build_communities(shares, network=network, ids=ids, strangers=strangers, method=method, params=params)

    @classmethod
    def from_memberships(
        cls,
        memberships: Any,
        *,
        network: VolunteerNetwork | None = None,
        ids: Iterable[Hashable] | None = None,
        names: Iterable[Hashable] | None = None,
        normalise: bool = False,
        strangers: str = "error",
        method: str = "by hand",
        params: Mapping[str, Any] | None = None,
    ) -> Communities:
        """Bring in overlapping communities, with a share of each community for each volunteer.

        Shares sum to one, or to zero for volunteers of no community. All else is as for `from_labels`.

        Parameters
        ----------
        memberships
            One of:

            - a mapping from volunteers to shares: a mapping from communities, or a sequence as long for everybody;
            - a table with a column ``volunteer`` and one of shares for each community, such as that of `to_frame`;
            - an array of shape (V, K), in the order of `ids` or of the network.
        normalise
            Whether to divide the shares of each volunteer by their sum, rather than to refuse sums other than one.
        network, ids, names, strangers, method, params
            As for `from_labels`.

        Examples
        --------
        >>> groups = Communities.from_memberships({"anna": {"birds": 1.0}, "bert": {"birds": 0.3, "bats": 0.7}})
        >>> groups.params["names"], groups.of("bert")
        (('birds', 'bats'), array([0.3, 0.7]))
        """
        from crowdgraph.core._partitions import build_communities, read_memberships

        check_bool("normalise", normalise)
        shares = read_memberships(memberships, network=network, ids=ids, names=names, normalise=normalise)
        return build_communities(shares, network=network, ids=ids, strangers=strangers, method=method, params=params)

    @property
    def name(self) -> str:
        """The method that detected the communities."""
        return self.method

    def __len__(self) -> int:
        return int(self.participation.shape[1])

    def __iter__(self) -> Iterator[list[Hashable]]:
        return (self.members(k) for k in range(len(self)))

    @cached_property
    def assignment(self) -> Array:
        """The community in which each volunteer participates most, of shape (V,); -1 for none."""
        return lock(main_community(self.participation))

    def on(self, subject: CrowdGraph | VolunteerNetwork) -> Membership:
        """Return the communities that all volunteers of a graph or a network belong to, in their order.

        Volunteers of a graph who are not among `ids` belong to none: their assignment is -1, their participation zero.
        Volunteers of a network must all be among `ids`.

        Examples
        --------
        >>> import crowdgraph as cg
        >>> graph = cg.CrowdGraph.from_responses({"volunteer": ["anna", "bert"], "item": [1, 1], "label": ["a", "b"]})
        >>> groups = Communities(ids=["bert"], participation=[[0.2, 0.8]], modularity=0.0, method="by hand")
        >>> groups.on(graph).assignment
        array([-1,  1])
        """
        if isinstance(subject, VolunteerNetwork):
            check_ids(
                subject.ids,
                self.table,
                lacking="The communities lack {} of the network's volunteers",
                hint="Detect them in this network, or take network.subnetwork(communities.ids).",
            )
            codes = self.table.codes(subject.ids)
            return Membership(self.assignment[codes], self.participation[codes])
        self.check_matches(subject)
        codes = subject.volunteers.codes(self.ids)
        assignment = np.full(len(subject.volunteers), -1)
        participation = np.zeros((len(subject.volunteers), len(self)))
        assignment[codes], participation[codes] = self.assignment, self.participation
        return Membership(assignment, participation)

    @property
    def sizes(self) -> Array:
        """The number of volunteers assigned to each community, of shape (K,)."""
        return np.bincount(self.assignment[self.assignment >= 0], minlength=len(self))

    @property
    def centroids(self) -> list[Hashable | None]:
        """The volunteer who participates most in each community; None for an empty one."""
        best = self.participation.argmax(axis=0) if len(self.ids) else np.zeros(len(self), dtype=int)
        has_members = self.participation.sum(axis=0) > 0
        return [plain(self.ids[code]) if occupied else None for code, occupied in zip(best, has_members, strict=True)]

    @property
    def order(self) -> Array:
        """The numbers of the communities, the largest first, of shape (K,).

        Of communities of equal size, the one with more participation comes first, then the one with the earlier first
        member. Detectors already number their communities in this order.
        """
        return largest_first(self.participation)

    @property
    def unassigned(self) -> list[Hashable]:
        """The volunteers who belong to no community."""
        return list(self.ids[self.assignment < 0].tolist())

    @cached_property
    def entropy(self) -> Array:
        """The entropy of each volunteer's participations, divided by log K, of shape (V,).

        It is 0 for a volunteer of one community, even if there is only one, and 1 for one who takes part equally in all
        K; NaN for a volunteer of none.
        """
        from scipy.special import entr

        most = np.log(len(self)) if len(self) > 1 else np.inf
        share = np.clip(entr(self.participation).sum(axis=1) / most, 0.0, 1.0)
        return lock(np.where(self.assignment >= 0, share, np.nan))

    def overlap(self) -> Array:
        """Return how many volunteers every two communities share, (K, K): the sum of the products of participations.

        If each volunteer is put into one community at random by participation, twice, entry (k, l) is the expected
        number who are in `k` the first time and in `l` the second. A row sums to the participation in its community;
        the matrix is diagonal if communities share nobody.

        Examples
        --------
        >>> groups = Communities(ids=["anna", "bert"], participation=[[1.0, 0.0], [0.5, 0.5]], modularity=0.0,
        ...                      method="by hand")
        >>> groups.overlap()
        array([[1.25, 0.25],
               [0.25, 0.25]])
        """
        return np.asarray(self.participation.T @ self.participation)

    def members(self, k: int, *, threshold: float | None = None) -> list[Hashable]:
        """Return the volunteers of community `k`: those assigned to it, or who participate by at least `threshold`."""
        check_community(k, len(self))
        if threshold is None:
            return list(self.ids[self.assignment == k].tolist())
        check_threshold(threshold)
        return list(self.ids[self.participation[:, k] >= threshold].tolist())

    def cover(self, *, threshold: float = COVER_THRESHOLD) -> list[list[Hashable]]:
        """Return the volunteers of every community, who may be in several.

        Volunteers are in all communities in which they participate by at least `threshold`, and always in that of
        their assignment.

        Examples
        --------
        >>> groups = Communities(ids=["anna", "bert", "cleo"], method="by hand", modularity=0.1,
        ...                      participation=[[1.0, 0.0], [0.3, 0.7], [0.1, 0.9]])
        >>> groups.cover()
        [['anna', 'bert'], ['bert', 'cleo']]
        """
        return [list(self.ids[column].tolist()) for column in cover_mask(self.participation, threshold).T]

    def to_sets(self) -> list[set[Hashable]]:
        """Return the volunteers assigned to each community as sets, as networkx and cdlib take partitions.

        Volunteers of no community are in none; `cover` lists volunteers in all of their communities.

        Examples
        --------
        >>> Communities.from_labels({"anna": "expert", "bert": "novice"}).to_sets()
        [{'anna'}, {'bert'}]
        """
        return [set(members) for members in self]

    def to_labels(self) -> dict[Hashable, int]:
        """Return the number of the community that each volunteer is assigned to, -1 for none.

        Examples
        --------
        >>> Communities.from_labels({"anna": "expert", "bert": "novice", "cleo": None}).to_labels()
        {'anna': 0, 'bert': 1, 'cleo': -1}
        """
        return dict(zip(self.ids.tolist(), self.assignment.tolist(), strict=True))

    def of(self, volunteer: Hashable) -> Array:
        """Return how much one volunteer participates in each community, of shape (K,)."""
        return np.asarray(self.participation[self.table.code(volunteer)])

    def mean_confusion(self, snapshot: ConfusionSnapshot | None = None, *, by_responses: bool = False) -> Array:
        """Return the participation-weighted mean confusion of each community, of shape (K, J, L); NaN for empty ones.

        Parameters
        ----------
        snapshot
            The confusion of the volunteers, such as ``fit.confusion.latest()``; volunteers of no community may be
            missing. If left out, the matrices in `confusion`.
        by_responses
            Whether to weight volunteers by their `support`, too. Volunteers with few answers look like the prior rather
            than like their community, and may be its majority.
        """
        check_bool("by_responses", by_responses)
        confusion = self._resolve_confusion(snapshot)
        if by_responses and self.support is None:
            raise NotAnnotatedError(
                f"The communities {self.method!r} do not know how many answers the volunteers gave; leave out "
                "by_responses=True, or pass support= when you make them."
            )
        assigned = self.assignment >= 0
        shares = self.participation[assigned]
        if by_responses:
            shares = shares * self.support[assigned, None]  # type: ignore[index]
        mean = confusion.mean[confusion.table.codes(self.ids[assigned])]
        totals = shares.sum(axis=0)
        return np.asarray(np.tensordot(shares, mean, axes=(0, 0)) / np.where(totals > 0, totals, np.nan)[:, None, None])

    def _resolve_confusion(self, snapshot: ConfusionSnapshot | None) -> ConfusionSnapshot:
        """Return the snapshot, or the communities' own, once it holds everybody who belongs to a community."""
        confusion = self.confusion if snapshot is None else snapshot
        if confusion is None:
            raise NotAnnotatedError(
                f"The communities {self.method!r} were not detected from confusion matrices; pass some, such as "
                "fit.confusion.latest()."
            )
        if not isinstance(confusion, ConfusionSnapshot):
            raise ParameterError(
                f"Expected a ConfusionSnapshot, such as fit.confusion.latest(); got {with_article(type(confusion))}."
            )
        check_ids(
            self.ids[self.assignment >= 0],
            confusion.table,
            lacking="The snapshot lacks {} of the volunteers who belong to communities",
            hint="Take it from a fit of the same graph.",
        )
        return confusion

    def describe(self, snapshot: ConfusionSnapshot | None = None, *, kind: str = "pandas") -> Any:
        """Return a row for each community: its size, its centroid, the answers it rests on and its behaviour.

        The columns, without those that are not known:

        - ``community``: its number; the last row, -1, is of the volunteers who belong to none, if there are any.
        - ``name``: its name, if the communities were brought in with names.
        - ``volunteers``, ``share``: how many are assigned to it, also as a share of all who are assigned.
        - ``participation``: the sum of all participations in it.
        - ``mixed``: the mean `entropy` of its volunteers, from 0 (all in this one only) to 1.
        - ``centroid``: who participates most.
        - ``responses``, ``median_responses``, ``few_responses``: the total and the median number of answers of its
          volunteers, and how many of them gave fewer than 10: distrust a community in which most did.
        - ``behaviour``: how its members answer on average, in words by the rule of
          `crowdgraph.core.behaviour.behaviour`; members are weighted by their number of answers, if known.

        Numbers are rounded; `to_frame` and the properties have them in full.

        Parameters
        ----------
        snapshot
            The confusion of the volunteers, as for `mean_confusion`.
        kind
            As for `to_frame`; ``"text"`` to print.

        Examples
        --------
        >>> snapshot = ConfusionSnapshot(ids=["anna", "bert", "cleo"], classes=["cat", "dog"], labels=["cat", "dog"],
        ...                              concentration=[[[9, 1], [1, 9]], [[8, 1], [1, 9]], [[9, 1], [9, 1]]])
        >>> groups = Communities(ids=["anna", "bert", "cleo", "dora"], method="by hand", modularity=0.1,
        ...                      participation=[[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.0, 0.0]])
        >>> print(groups.describe(snapshot, kind="text"))
        community  volunteers  share  participation  mixed  centroid  behaviour
                0           2  0.667            1.9   0.23  anna      mostly right
                1           1  0.333            1.1      0  cleo      says "cat" to most things
               -1           1                     0                   belongs to none
        """
        confusion = None if snapshot is None and self.confusion is None else self._resolve_confusion(snapshot)
        return to_frame(self._description(confusion), kind=kind)

    def _description(self, confusion: ConfusionSnapshot | None) -> dict[str, Array]:
        """Return the columns of `describe`."""
        numbers = [*range(len(self)), *([-1] if self.unassigned else [])]
        n_rows = len(numbers)
        members = [np.flatnonzero(self.assignment == k) for k in numbers]
        columns: dict[str, Array] = {
            "community": np.array(numbers, dtype=np.int64),
            **self._name_column(n_rows),
            "volunteers": np.array([len(codes) for codes in members], dtype=np.int64),
            "share": np.append(self.sizes / max(self.sizes.sum(), 1), np.nan)[:n_rows].round(3),
            "participation": np.append(self.participation.sum(axis=0), 0.0)[:n_rows].round(1),
            "mixed": np.array([self.entropy[codes].mean() if len(codes) else np.nan for codes in members]).round(2),
            "centroid": object_array([*self.centroids, None][:n_rows]),
        }
        if self.support is not None:
            support = [self.support[codes] for codes in members]
            columns["responses"] = np.array([part.sum() for part in support]).round().astype(np.int64)
            columns["median_responses"] = np.array([np.median(part) if len(part) else np.nan for part in support])
            columns["few_responses"] = np.array([(part < FEW_RESPONSES).sum() for part in support], dtype=np.int64)
        if confusion is not None:
            columns["behaviour"] = object_array([*self._behaviours(confusion), "belongs to none"][:n_rows])
        return columns

    def _name_column(self, n_rows: int) -> dict[str, Array]:
        """Return the names of the communities as a column of `describe`, unless they are mere numbers."""
        names = self.params.get("names", ())
        if not any(isinstance(name, str) for name in names):
            return {}
        return {"name": object_array([*map(str, names), None][:n_rows])}

    def _behaviours(self, confusion: ConfusionSnapshot) -> list[str]:
        """Return how each community answers, in words."""
        names = {"classes": confusion.classes, "labels": confusion.labels}
        means = self.mean_confusion(confusion, by_responses=self.support is not None)
        return ["nothing is known of it" if np.isnan(mean).any() else behaviour(mean, **names) for mean in means]

    def _columns(self) -> Columns:
        shares = {f"participation[{k}]": self.participation[:, k] for k in range(len(self))}
        return {"volunteer": self.ids, "community": self.assignment, **shares}

    def check_matches(self, graph: CrowdGraph) -> None:
        """Raise unless all volunteers of the communities are in the graph."""
        check_ids_known(f"The set of communities {self.method!r}", self.ids, graph.volunteers.table)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{size:,}" for size in self.sizes[:8])
        more = ", ..." if len(self) > 8 else ""
        communities = f"{len(self)} of sizes {sizes}{more}" if len(self) else "none"
        n_unassigned = np.count_nonzero(self.assignment < 0)
        unassigned = f"; {n_unassigned:,} unassigned" if n_unassigned else ""
        doubt = "" if self.evidence is None or self.evidence.structured else f"; {self.evidence.verdict}"
        quality = "" if np.isnan(self.modularity) else f"; modularity {self.modularity:.3f}"
        return f"Communities({self.method}: {communities}{unassigned}{quality}{doubt})"

    def _repr_html_(self) -> str:
        from crowdgraph.core._html import communities_html

        return communities_html(self)


class Membership(NamedTuple):
    """The communities that each of V volunteers belongs to.

    Attributes
    ----------
    assignment
        The community in which each volunteer participates most, of shape (V,); -1 for those of none.
    participation
        How much each volunteer belongs to each community, of shape (V, K); zero for those of none.
    """

    assignment: Array
    participation: Array


def main_community(participation: Array) -> Array:
    """Return the community in which each volunteer participates most, the first of equals, (V,); -1 for none."""
    if not participation.shape[1]:
        return np.full(len(participation), -1)
    return np.where(participation.any(axis=1), participation.argmax(axis=1), -1)


def largest_first(participation: Array) -> Array:
    """Return the order of the communities, of shape (K,): by volunteers, then by participation, then by first member.

    Parameters
    ----------
    participation
        How much each volunteer belongs to each community, of shape (V, K).

    Examples
    --------
    >>> largest_first(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]]))
    array([1, 0])
    """
    main = main_community(participation)
    members = np.flatnonzero(main >= 0)
    sizes = np.bincount(main[members], minlength=participation.shape[1])
    first = np.zeros(len(sizes), dtype=np.int64)
    # In reverse, so that the first member is written last.
    first[main[members[::-1]]] = members[::-1]
    if len(participation):
        # Where nobody is assigned, the volunteer who participates most.
        first[sizes == 0] = participation[:, sizes == 0].argmax(axis=0)
    # Rounded, so that the order of summation does not matter.
    return np.lexsort((first, -participation.sum(axis=0).round(9), -sizes))


def cover_mask(participation: Array, threshold: float = COVER_THRESHOLD) -> Array:
    """Return memberships, of shape (V, K): participation of at least `threshold`, or the volunteer's largest."""
    check_threshold(threshold)
    member = participation >= threshold
    main = main_community(participation)
    assigned = np.flatnonzero(main >= 0)
    member[assigned, main[assigned]] = True
    return np.asarray(member)


def check_community(k: Any, n_communities: int) -> None:
    """Raise unless `k` is the number of one of so many communities."""
    if not is_integer(k) or not 0 <= k < n_communities:
        numbers = f"communities are numbered 0 to {n_communities - 1}" if n_communities else "there are none at all"
        raise ParameterError(f"There is no community {k!r}; {numbers}.")


def check_threshold(threshold: object) -> None:
    """Raise unless the threshold is a participation above 0."""
    if not is_number(threshold) or not 0 < threshold <= 1:  # type: ignore[operator]
        raise ParameterError(
            f"threshold={threshold!r} must be a participation above 0, at most 1, such as {COVER_THRESHOLD}."
        )
