"""A crowd made to order: sizes, behaviour, activity, tasks, drift, duplicates and gold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, lock, object_array, value_tuple
from crowdgraph.core.clock import Clock
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import probability_array
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.simulate.groups import Drift, Group, check_drift, check_groups, draw_course

__all__ = ["Drift", "Group", "SimulatedCrowd", "Stays", "Truth", "crowd"]

Stays = Literal["long"]

# A volunteer answers at most this share of the items that are open to them.
MOST_OF_POOL = 0.8
# How many responses casual volunteers give, over and over: 3 on average.
CASUAL = (1, 1, 1, 2, 2, 3, 4, 7, 9, 1, 2, 3, 1, 2, 5, 4)


class Truth(NamedTuple):
    """What a simulated crowd hides.

    Attributes
    ----------
    classes
        The code of each item's true class, of shape (N,).
    confusion
        The volunteer's true confusion at every response, of shape (R, J, L).
    group
        The code of each volunteer's group, of shape (V,).
    group_names
        The names of the groups.
    community
        The task community of each volunteer, of shape (V,).
    item_community
        The task community of each item, of shape (N,).
    difficulty
        How hard each item is, of shape (N,): 0 is answered as the confusion says, 1 as if the class could not be seen.
    shared
        The chance that decides the answers of a whole group about an item, of shape (G, N); NaN where everybody answers
        on their own.
    other_group
        The code of the group into which each volunteer drifts, of shape (V,); -1 for those who do not drift, and where
        the other behaviour is that of no group.
    acting
        The code of the group whose behaviour each response follows, of shape (R,), in the order of the graph's
        responses: the nearer one on a ramp, one's own while learning, -1 where the behaviour is that of no group.
    """

    classes: Array
    confusion: Array
    group: Array
    group_names: tuple[str, ...]
    community: Array
    item_community: Array
    difficulty: Array
    shared: Array
    other_group: Array
    acting: Array


class SimulatedCrowd(NamedTuple):
    """A simulated graph and the truth behind it."""

    graph: CrowdGraph
    truth: Truth

    def __repr__(self) -> str:
        return f"SimulatedCrowd with {len(self.truth.group_names)} groups\n{self.graph!r}"


def crowd(
    *,
    n_volunteers: int = 100,
    n_items: int = 500,
    n_responses: int | Sequence[int] = 5_000,
    n_casual: int = 0,
    classes: Sequence[Hashable] = ("no", "yes"),
    labels: Sequence[Hashable] | None = None,
    class_probs: ArrayLike | None = None,
    groups: Sequence[Group] | None = None,
    difficulty: float = 0.0,
    shared_errors: float = 0.0,
    n_communities: int = 1,
    mixing: float = 0.1,
    drift: Drift = "none",
    drifting: float = 1.0,
    drift_at: float | None = None,
    stays: Stays | None = None,
    duplicates: float = 0.0,
    gold: float = 1.0,
    start: str = "2026-01-01",
    days: float = 90.0,
    seed: int | None = None,
) -> SimulatedCrowd:
    """Simulate a crowd of volunteers who label items.

    Parameters
    ----------
    n_volunteers, n_items
        How many of each.
    n_responses
        How many responses in all, shared out with heavy tails so that everyone has at least one; or how many for each
        volunteer. Nobody answers more than four fifths of the items of a community.
    n_casual
        How many of the volunteers, drawn at random, just look in and give 1 to 9 responses, 3 on average; the others
        then give at least 10.
    classes, labels
        What items can be and what volunteers can say; labels are the classes if left out.
    class_probs
        How often each class occurs; equally often if left out.
    groups
        Behaviour groups; if left out, one group that is right in three of four cases.
    difficulty
        The mean difficulty of the items, from 0 to below 1.
    shared_errors
        The chance that all members of a group see an item alike: one draw then decides for them all, so that they are
        right or wrong together. How often each of them is right stays the same.
    n_communities, mixing
        Volunteers and items fall into this many task communities; a share `mixing` of a volunteer's items comes from
        anywhere, the rest from their own community.
    drift
        How volunteers change over their responses: ``"none"``; ``"ramp"``, steadily into another behaviour; ``"step"``,
        suddenly; ``"visit"``, suddenly after a third of their responses, and back after two thirds; ``"learning"``,
        from guessing to their group's behaviour. The other behaviour is that of another group or, if there is just
        one, of someone who cannot tell the classes apart.
    drifting
        The share of the volunteers, drawn at random, who drift at all; the others stay as they are.
    drift_at
        For ``drift="step"``: the share of the project's duration after which all who drift change at the same moment.
        If left out, each changes at a place of their own in their responses.
    stays
        How long volunteers stay: if left out, for some of the time that is left when they arrive; ``"long"``, all of
        them from the first tenth of the time that is open to their group until the end.
    duplicates
        The share of responses in which a volunteer meets an item again.
    gold
        The share of items whose class is known.
    start, days
        When the first volunteers arrive and how long the project runs.
    seed
        For the same crowd again.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph, truth = cg.simulate.crowd(n_volunteers=50, n_items=200, n_responses=2000, seed=1)
    >>> len(graph.responses), truth.confusion.shape
    (2000, (2000, 2, 2))
    """
    class_names = value_tuple(classes, what="classes")
    label_names = class_names if labels is None else value_tuple(labels, what="labels")
    shape = (len(class_names), len(label_names))
    behaviours = check_groups(groups, shape)
    _check_knobs(
        n_volunteers,
        n_items,
        n_casual,
        n_communities,
        difficulty,
        shared_errors,
        mixing,
        drifting,
        duplicates,
        gold,
        days,
    )
    check_drift(drift, drift_at)
    if stays is not None:
        check_choice("stays", stays, get_args(Stays))
    rng = np.random.default_rng(seed)
    shares = np.full(shape[0], 1 / shape[0]) if class_probs is None else class_probs
    true_class = rng.choice(shape[0], n_items, p=probability_array("class_probs", shares, shape=(shape[0],)))
    hardness = _difficulty(difficulty, n_items, rng)
    community = rng.permutation(np.arange(n_volunteers) % n_communities)
    item_community = rng.permutation(np.arange(n_items) % n_communities)
    group = rng.permutation(
        np.repeat(np.arange(len(behaviours)), _apportioned([g.share for g in behaviours], n_volunteers))
    )
    most = max(1, int(MOST_OF_POOL * n_items / n_communities))
    counts = _counts(n_responses, n_casual, behaviours, group, most, rng)
    volunteer = np.repeat(np.arange(n_volunteers), counts)
    item = _items(counts, community, item_community, mixing, duplicates, rng)
    course = draw_course(behaviours, group, drift, drifting, rng)
    shared = _shared(shared_errors, (len(behaviours), n_items), rng)
    alike, own = shared[group[volunteer], item], rng.random(len(item))
    chance = np.where(np.isnan(alike), own, alike)
    opens = np.array([g.arrives for g in behaviours])[group]
    seconds = _seconds(_moments(counts, opens, stays, rng), days)
    late = None if drift_at is None else seconds >= _seconds(drift_at, days)
    confusion, acting = course.at_responses(counts, late=late)
    rows = confusion[np.arange(len(item)), true_class[item]]
    blurred = confusion.mean(axis=1)
    label = _chosen(rows + hardness[item, None] * (blurred - rows), chance)
    time = np.datetime64(start, "s") + seconds.astype("timedelta64[s]")
    known = rng.random(n_items) < gold
    order = np.argsort(time, kind="stable")
    items = NodeTable("item", _ids("item", n_items))
    graph = CrowdGraph(
        NodeTable("volunteer", _ids("volunteer", n_volunteers)),
        items,
        ResponseTable(
            volunteer=lock(volunteer[order].astype(np.int32)),
            item=lock(item[order].astype(np.int32)),
            label=lock(label[order].astype(np.int16)),
            time=lock(time[order]),
            clock=Clock("datetime"),
        ),
        classes=class_names,
        labels=label_names,
        gold=Gold(items, class_names, np.where(known[:, None], np.eye(shape[0])[true_class], np.nan)),
    )
    truth = Truth(
        classes=true_class,
        confusion=confusion[order],
        group=group,
        group_names=tuple(g.name for g in behaviours),
        community=community,
        item_community=item_community,
        difficulty=hardness,
        shared=shared,
        other_group=course.other_group,
        acting=acting[order],
    )
    return SimulatedCrowd(graph, truth)


def _check_knobs(
    n_volunteers: int,
    n_items: int,
    n_casual: int,
    n_communities: int,
    difficulty: float,
    shared_errors: float,
    mixing: float,
    drifting: float,
    duplicates: float,
    gold: float,
    days: float,
) -> None:
    for name, count in (("n_volunteers", n_volunteers), ("n_items", n_items), ("n_communities", n_communities)):
        if count < 1:
            raise ParameterError(f"{name}={count!r} must be at least 1.")
    if not 0 <= n_casual < n_volunteers:
        raise ParameterError(f"n_casual={n_casual!r} must be from 0 to below the number of volunteers.")
    if n_communities > min(n_volunteers, n_items):
        raise ParameterError(f"n_communities={n_communities} is more than there are volunteers or items.")
    for name, share, top in (
        ("difficulty", difficulty, 1),
        ("duplicates", duplicates, 1),
        ("shared_errors", shared_errors, None),
        ("mixing", mixing, None),
        ("drifting", drifting, None),
        ("gold", gold, None),
    ):
        if not 0 <= share <= 1 or share == top:
            raise ParameterError(f"{name}={share!r} must be a share from 0 to {'below ' if top else ''}1.")
    if not 0 < days < np.inf:
        raise ParameterError(f"days={days!r} must be positive and finite.")


def _ids(kind: str, n: int) -> Array:
    width = len(str(n - 1))
    return object_array(f"{kind}-{code:0{width}d}" for code in range(n))


def _difficulty(mean: float, n_items: int, rng: np.random.Generator) -> Array:
    return np.asarray(rng.beta(4 * mean, 4 * (1 - mean), n_items)) if mean > 0 else np.zeros(n_items)


def _shared(share: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """The chance that decides for a whole group about an item, of shape (G, N); NaN where everybody is on their own."""
    # A source of its own, so that crowds without shared errors stay what they are.
    (own,) = rng.spawn(1)
    return np.where(own.random(shape) < share, own.random(shape), np.nan)


def _apportioned(weights: ArrayLike, total: int) -> Array:
    """Whole numbers in proportion to the weights that sum to the total: the largest remainders round up."""
    exact = np.asarray(weights, dtype=float) * total / np.sum(weights)
    counts: Array = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _counts(
    n_responses: int | Sequence[int],
    n_casual: int,
    groups: tuple[Group, ...],
    group: Array,
    most: int,
    rng: np.random.Generator,
) -> Array:
    """How many responses each volunteer gives."""
    n_volunteers = len(group)
    if not isinstance(n_responses, int | np.integer):
        given = np.asarray(n_responses, dtype=np.int64)
        if given.shape != (n_volunteers,) or given.min() < 0 or given.max() > most:
            raise ParameterError(
                f"n_responses must be {n_volunteers:,} numbers from 0 to {most:,} (a volunteer answers at most "
                f"{MOST_OF_POOL:.0%} of the items of a community)."
            )
        return given
    regular = rng.permutation(n_volunteers) >= n_casual
    counts = np.ones(n_volunteers, dtype=np.int64)
    counts[~regular] = np.resize(CASUAL, n_casual)
    if n_casual:
        counts[regular] = 10
    n_left = int(n_responses) - int(counts.sum())
    room = most - int(counts.max())
    if not 0 <= n_left <= np.count_nonzero(regular) * room:
        raise ParameterError(
            f"n_responses={n_responses:,} cannot be shared among {n_volunteers:,} volunteers who give at most {most:,} "
            f"each; expected {counts.sum():,} to {counts.sum() + np.count_nonzero(regular) * room:,}."
        )
    weights = _activity(groups, group, rng)
    counts[regular] += apportion_capped(weights[regular], n_left, room)
    return counts


def _activity(groups: tuple[Group, ...], group: Array, rng: np.random.Generator) -> Array:
    """How active each volunteer is: the quantiles of the group's Pareto distribution in random order.

    Quantiles, since a handful of draws from such heavy tails would make every seed another kind of crowd.
    """
    weights = np.empty(len(group))
    for code, behaviour in enumerate(groups):
        members = np.flatnonzero(group == code)
        quantiles = ((np.arange(len(members)) + 0.5) / max(len(members), 1)) ** (-1 / behaviour.tail)
        weights[rng.permutation(members)] = behaviour.activity * quantiles
    return weights


def apportion_capped(weights: Array, total: int, most: int) -> Array:
    """Whole numbers in proportion to the weights that sum to the total, none above `most`."""
    counts = np.zeros(len(weights), dtype=np.int64)
    open_to = np.ones(len(weights), dtype=bool)
    while True:
        counts[open_to] = _apportioned(weights[open_to], total - int(counts[~open_to].sum()))
        over = open_to & (counts > most)
        if not over.any():
            return counts
        counts[over] = most
        open_to &= ~over


def _items(
    counts: Array, community: Array, item_community: Array, mixing: float, duplicates: float, rng: np.random.Generator
) -> Array:
    """The items of every volunteer, one volunteer after another: distinct ones, some of them again."""
    pools = [np.flatnonzero(item_community == code) for code in range(int(community.max()) + 1)]
    drawn = []
    for count, home in zip(counts, community, strict=True):
        n_again = min(rng.binomial(count, duplicates), max(count - 1, 0))
        n_abroad = rng.binomial(count - n_again, mixing) if len(pools) > 1 else 0
        pool = pools[home]
        chosen = pool[rng.choice(len(pool), count - n_again - n_abroad, replace=False)]
        if n_abroad:
            # Drawn from all items; those met at home already are replaced by further ones of the home pool.
            abroad = np.setdiff1d(rng.choice(len(item_community), n_abroad, replace=False), chosen)
            rest = np.setdiff1d(pool, np.concatenate([chosen, abroad]))
            filled = rng.choice(rest, n_abroad - len(abroad), replace=False)
            chosen = np.concatenate([chosen, abroad, filled])
        again = rng.choice(chosen, n_again) if n_again else chosen[:0]
        drawn.append(rng.permutation(np.concatenate([chosen, again])))
    return np.concatenate(drawn)


def _chosen(rows: Array, chance: Array) -> Array:
    """One label from each row of probabilities, as chance (uniform from 0 to 1) has it."""
    edges = rows.cumsum(axis=1)
    labels: Array = (chance[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    return labels


def _moments(counts: Array, opens: Array, stays: Stays | None, rng: np.random.Generator) -> Array:
    """When every response is given, as a share of the project's duration.

    A volunteer arrives in the time that is open to them, stays for some of what is then left, and answers in it.
    """
    late = rng.uniform(0, 0.8, len(counts))
    patience = rng.beta(1, 2, len(counts))
    if stays == "long":
        late, patience = late / 8, np.ones(len(counts))
    arrival = opens + late * (1 - opens)
    stay = patience * (1 - arrival)
    volunteer = np.repeat(np.arange(len(counts)), counts)
    when = arrival[volunteer] + rng.random(len(volunteer)) * stay[volunteer]
    return np.asarray(when[np.lexsort((when, volunteer))])


def _seconds(when: ArrayLike, days: float) -> Array:
    """Shares of the project's duration in whole seconds since its start."""
    return np.floor(np.asarray(when) * days * 86_400)
