"""Simulation of a crowd with given sizes, behaviour, activity, task communities, drift, duplicates and gold."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from crowdgraph.core._arrays import Array, lock, object_array, value_tuple
from crowdgraph.core._parameters import check_fraction, check_integer, check_number, check_seed
from crowdgraph.core.clock import Clock
from crowdgraph.core.gold import Gold
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.result import probability_array
from crowdgraph.core.tables import NodeTable, ResponseTable
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import argument
from crowdgraph.simulate.groups import Drift, Group, check_drift, check_groups, draw_course
from crowdgraph.simulate.queue import Queue, QueueName, check_queue, draw_visits, serve

__all__ = ["Drift", "Group", "Queue", "SimulatedCrowd", "Stays", "Truth", "crowd"]

Stays = Literal["long"]

# A volunteer answers at most this share of the items of a task community.
MAX_SHARE_OF_ITEMS = 0.8
# The numbers of responses of casual volunteers, cyclically: 3 on average.
CASUAL_COUNTS = (1, 1, 1, 2, 2, 3, 4, 7, 9, 1, 2, 3, 1, 2, 5, 4)


class Truth(NamedTuple):
    """The truth behind a simulated crowd, which its graph hides.

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
        How hard each item is, of shape (N,): answers follow the confusion at 0, and do not depend on the class at 1.
    shared
        The uniform draw that decides the answers of an entire group about an item, of shape (G, N); NaN where everybody
        answers independently.
    other_group
        The code of the group into which each volunteer drifts, of shape (V,); -1 for those who do not drift, and where
        the other behaviour is that of no group.
    acting
        The code of the group whose behaviour each response follows, of shape (R,), in the order of the graph's
        responses: the nearer of two on a ramp, the volunteer's own while learning, -1 for the behaviour of no group.
    drift
        How each volunteer changes, of shape (V,): ``"none"``, ``"ramp"``, ``"step"``, ``"visit"`` or ``"learning"``.
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
    drift: Array


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
    queue: QueueName | Queue | None = None,
    gold: float = 1.0,
    start: str = "2026-01-01",
    days: float = 90.0,
    seed: int | None = None,
) -> SimulatedCrowd:
    """Simulate a crowd of volunteers who label items.

    Parameters
    ----------
    n_volunteers, n_items
        How many there are of each.
    n_responses
        How many responses there are in all, distributed over volunteers with heavy tails so that everyone gives at
        least one; or how many each volunteer gives. Nobody answers more than four fifths of the items of a community.
    n_casual
        How many of the volunteers, drawn at random, are casual and give 1 to 9 responses, 3 on average; the others then
        give at least 10.
    classes, labels
        What items can be and what volunteers can say; labels are the classes if left out.
    class_probs
        How often each class occurs; equally often if left out.
    groups
        The groups of volunteers; if left out, one group that is right in three of four cases.
    difficulty
        The mean difficulty of the items, from 0 to below 1.
    shared_errors
        The probability that all members of a group see an item alike: one draw then decides for all of them, so that
        they are right or wrong together. How often each of them is right does not change.
    n_communities, mixing
        The number of task communities of volunteers and items; a share `mixing` of a volunteer's items comes from all
        communities, the rest from their own.
    drift
        How volunteers change over their responses: ``"none"``; ``"ramp"``, steadily into another behaviour; ``"step"``,
        suddenly; ``"visit"``, suddenly after a third of their responses and back after two thirds; ``"learning"``, from
        guessing to their group's behaviour. The other behaviour is that of another group or, if there is only one, of
        someone who cannot distinguish the classes. A `Group` can say how some of its own members change.
    drifting
        The share of the volunteers, drawn at random, who drift; the others do not change.
    drift_at
        For ``drift="step"``: the share of the project's duration after which all who drift change at the same moment.
        If left out, each changes after a random part of their responses.
    stays
        How long volunteers stay: if left out, for a random part of the time that remains when they arrive; ``"long"``,
        from the first tenth of the time since their group arrived until the end.
    duplicates
        The share of responses in which a volunteer meets an item again.
    queue
        How items are handed out. If left out, volunteers draw items at random. With ``"oldest"``, or a `Queue` with
        other settings, items arrive over time and whoever comes next gets the oldest that still lacks answers;
        volunteers then come in sessions, and stay the longer the more they answer. Nothing is planted, so
        `n_communities` and `duplicates` do not go with it.
    gold
        The share of items whose class is known.
    start, days
        When the project starts and for how long it runs.
    seed
        The same seed gives the same crowd.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph, truth = cg.simulate.crowd(n_volunteers=50, n_items=200, n_responses=2000, seed=1)
    >>> len(graph.responses), truth.confusion.shape
    (2000, (2000, 2, 2))
    """
    class_names = value_tuple(classes, what="classes")
    label_names = class_names if labels is None else value_tuple(labels, what="labels")
    n_classes = len(class_names)
    crowd_groups = check_groups(groups, (n_classes, len(label_names)))
    _check_sizes(n_volunteers, n_items, n_communities, n_casual)
    fractions = {"shared_errors": shared_errors, "mixing": mixing, "drifting": drifting, "gold": gold}
    for name, share in fractions.items():
        check_fraction(name, share)
    for name, share in (("difficulty", difficulty), ("duplicates", duplicates)):
        check_number(name, share, valid=lambda value: 0 <= value < 1, expected="be a share from 0 to below 1")
    check_number("days", days, valid=lambda value: 0 < value < np.inf, expected="be positive and finite")
    check_drift(drift, drift_at)
    check_seed(seed)
    _check_stays(stays)
    line = check_queue(queue, n_items, {"n_communities": n_communities > 1, "duplicates": duplicates > 0})

    # The order of the draws is part of what a seed means.
    rng = np.random.default_rng(seed)
    shares = [1 / n_classes] * n_classes if class_probs is None else class_probs
    true_class = rng.choice(n_classes, n_items, p=probability_array("class_probs", shares, shape=(n_classes,)))
    item_difficulty = _draw_difficulty(difficulty, n_items, rng)
    community = rng.permutation(np.arange(n_volunteers) % n_communities)
    item_community = rng.permutation(np.arange(n_items) % n_communities)
    sizes = _apportion([one.share for one in crowd_groups], n_volunteers)
    group = rng.permutation(np.repeat(np.arange(len(crowd_groups)), sizes))
    most = max(1, int(MAX_SHARE_OF_ITEMS * n_items / n_communities))
    counts = _draw_counts(n_responses, n_casual, crowd_groups, group, most, rng)
    volunteer = np.repeat(np.arange(n_volunteers), counts)
    arrives = np.array([one.arrives for one in crowd_groups])[group]
    if line is None:
        item = _draw_items(counts, community, item_community, mixing, duplicates, rng)
        rejected = np.zeros(len(item), dtype=bool)
    else:
        moments = draw_visits(line, counts, arrives, days=days, stays_long=stays is not None, rng=rng)
        item, rejected, moments = serve(line, volunteer, moments, n_items, rng)
    course = draw_course(crowd_groups, group, drift, drifting, counts, rng)
    shared = _draw_shared(shared_errors, (len(crowd_groups), n_items), rng)
    group_draw, own_draw = shared[group[volunteer], item], rng.random(len(item))
    draw = np.where(np.isnan(group_draw), own_draw, group_draw)
    if line is None:
        moments = _draw_moments(counts, arrives, stays, rng)
    seconds = _to_seconds(moments, days)
    is_late = None if drift_at is None else seconds >= _to_seconds(drift_at, days)
    confusion, acting = course.at_responses(counts, is_late=is_late)
    rows = confusion[np.arange(len(item)), true_class[item]]
    guessing = confusion.mean(axis=1)
    label = _draw_labels(rows + item_difficulty[item, None] * (guessing - rows), draw)
    has_gold = rng.random(n_items) < gold

    time = np.datetime64(start, "s") + seconds.astype("timedelta64[s]")
    order = np.argsort(time, kind="stable")
    items = NodeTable("item", _ids("item", n_items))
    graph = CrowdGraph(
        NodeTable("volunteer", _ids("volunteer", n_volunteers)),
        items,
        ResponseTable(
            volunteer=lock(volunteer[order].astype(np.int32)),
            item=lock(item[order].astype(np.int32)),
            label=lock(np.where(rejected, -1, label)[order].astype(np.int16)),
            time=lock(time[order]),
            clock=Clock("datetime"),
        ),
        classes=class_names,
        labels=label_names,
        gold=Gold(items, class_names, np.where(has_gold[:, None], np.eye(n_classes)[true_class], np.nan)),
    )
    truth = Truth(
        classes=true_class,
        confusion=confusion[order],
        group=group,
        group_names=tuple(one.name for one in crowd_groups),
        community=community,
        item_community=item_community,
        difficulty=item_difficulty,
        shared=shared,
        other_group=course.other_group,
        acting=acting[order],
        drift=course.drift,
    )
    return SimulatedCrowd(graph, truth)


def _check_stays(stays: object) -> None:
    if stays is not None:
        check_choice("stays", stays, get_args(Stays))


def _check_sizes(n_volunteers: int, n_items: int, n_communities: int, n_casual: int) -> None:
    for name, count in (("n_volunteers", n_volunteers), ("n_items", n_items), ("n_communities", n_communities)):
        check_integer(name, count)
    if not 0 <= n_casual < n_volunteers:
        raise ParameterError(argument("n_casual", n_casual) + " must be from 0 to below the number of volunteers.")
    if n_communities > min(n_volunteers, n_items):
        raise ParameterError(argument("n_communities", n_communities) + " is more than there are volunteers or items.")


def _ids(kind: str, n: int) -> Array:
    width = len(str(n - 1))
    return object_array(f"{kind}-{code:0{width}d}" for code in range(n))


def _draw_difficulty(mean: float, n_items: int, rng: np.random.Generator) -> Array:
    return np.asarray(rng.beta(4 * mean, 4 * (1 - mean), n_items)) if mean > 0 else np.zeros(n_items)


def _draw_shared(share: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Draw what decides for all of a group about an item, of shape (G, N); NaN where all answer independently."""
    # A generator of its own, so that shared errors leave all other draws as they are.
    (own,) = rng.spawn(1)
    return np.where(own.random(shape) < share, own.random(shape), np.nan)


def _apportion(weights: ArrayLike, total: int) -> Array:
    """Return whole numbers in proportion to the weights that sum to the total: the largest remainders round up."""
    exact = np.asarray(weights, dtype=float) * total / np.sum(weights)
    counts: Array = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _draw_counts(
    n_responses: int | Sequence[int],
    n_casual: int,
    groups: tuple[Group, ...],
    group: Array,
    most: int,
    rng: np.random.Generator,
) -> Array:
    """Draw how many responses each volunteer gives."""
    n_volunteers = len(group)
    if not isinstance(n_responses, int | np.integer):
        counts = np.asarray(n_responses, dtype=np.int64)
        if counts.shape != (n_volunteers,) or counts.min() < 0 or counts.max() > most:
            raise ParameterError(
                f"n_responses must be {n_volunteers:,} numbers from 0 to {most:,} (a volunteer answers at most "
                f"{MAX_SHARE_OF_ITEMS:.0%} of the items of a community)."
            )
        return counts
    regular = rng.permutation(n_volunteers) >= n_casual
    counts = np.ones(n_volunteers, dtype=np.int64)
    counts[~regular] = np.resize(CASUAL_COUNTS, n_casual)
    if n_casual:
        counts[regular] = 10
    n_left = int(n_responses) - int(counts.sum())
    room = most - int(counts.max())
    if not 0 <= n_left <= np.count_nonzero(regular) * room:
        raise ParameterError(
            argument("n_responses", int(n_responses))
            + f" cannot be shared among {n_volunteers:,} volunteers who give at most {most:,} each; expected "
            f"{counts.sum():,} to {counts.sum() + np.count_nonzero(regular) * room:,}."
        )
    counts[regular] += apportion_capped(_draw_activity(groups, group[regular], rng), n_left, room)
    return counts


def _draw_activity(groups: tuple[Group, ...], group: Array, rng: np.random.Generator) -> Array:
    """Return how active each volunteer is: the quantiles of their group's Pareto distribution in random order.

    These are quantiles because a handful of draws from such heavy tails would make crowds of different seeds very
    different.
    """
    weights = np.empty(len(group))
    for code, one in enumerate(groups):
        members = np.flatnonzero(group == code)
        quantiles = ((np.arange(len(members)) + 0.5) / max(len(members), 1)) ** (-1 / one.tail)
        weights[rng.permutation(members)] = one.activity * quantiles
    return weights


def apportion_capped(weights: Array, total: int, most: int) -> Array:
    """Return whole numbers in proportion to the weights that sum to the total, none above `most`."""
    counts = np.zeros(len(weights), dtype=np.int64)
    is_free = np.ones(len(weights), dtype=bool)
    while True:
        counts[is_free] = _apportion(weights[is_free], total - int(counts[~is_free].sum()))
        is_over = is_free & (counts > most)
        if not is_over.any():
            return counts
        counts[is_over] = most
        is_free &= ~is_over


def _draw_items(
    counts: Array, community: Array, item_community: Array, mixing: float, duplicates: float, rng: np.random.Generator
) -> Array:
    """Draw the items of each volunteer in turn: distinct ones, and some of them again."""
    pools = [np.flatnonzero(item_community == code) for code in range(int(community.max()) + 1)]
    draws = []
    for count, home in zip(counts, community, strict=True):
        n_repeats = min(rng.binomial(count, duplicates), max(count - 1, 0))
        n_abroad = rng.binomial(count - n_repeats, mixing) if len(pools) > 1 else 0
        pool = pools[home]
        items = pool[rng.choice(len(pool), count - n_repeats - n_abroad, replace=False)]
        if n_abroad:
            # From all items; those drawn at home already are replaced by further ones of the home pool.
            abroad = np.setdiff1d(rng.choice(len(item_community), n_abroad, replace=False), items)
            further = draw_others(pool, np.concatenate([items, abroad]), n_abroad - len(abroad), rng)
            items = np.concatenate([items, abroad, further])
        repeats = rng.choice(items, n_repeats) if n_repeats else items[:0]
        draws.append(rng.permutation(np.concatenate([items, repeats])))
    return np.concatenate(draws)


def draw_others(pool: Array, taken: Array, n: int, rng: np.random.Generator) -> Array:
    """Draw distinct items of a pool, whose codes ascend, other than those that are taken.

    Looking up positions takes no time that grows as the pool does, as leaving out items would, once a volunteer.
    """
    position = np.minimum(np.searchsorted(pool, taken), len(pool) - 1)
    position = np.sort(position[pool[position] == taken])
    drawn = rng.choice(len(pool) - len(position), n, replace=False)
    # Each item that is taken moves those behind it on by one.
    n_before = np.searchsorted(position - np.arange(len(position)), drawn, side="right")
    return np.asarray(pool[drawn + n_before])


def _draw_labels(rows: Array, draw: Array) -> Array:
    """Return one label from each row of probabilities by inversion of a uniform draw."""
    cumulative = rows.cumsum(axis=1)
    labels: Array = (draw[:, None] * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
    return labels


def _draw_moments(counts: Array, arrives: Array, stays: Stays | None, rng: np.random.Generator) -> Array:
    """Draw when each response is given, as a share of the project's duration.

    A volunteer arrives after their group does, stays for a part of the remaining time, and answers during that part.
    """
    delay = rng.uniform(0, 0.8, len(counts))
    patience = rng.beta(1, 2, len(counts))
    if stays == "long":
        delay, patience = delay / 8, np.ones(len(counts))
    arrival = arrives + delay * (1 - arrives)
    stay = patience * (1 - arrival)
    volunteer = np.repeat(np.arange(len(counts)), counts)
    moments = arrival[volunteer] + rng.random(len(volunteer)) * stay[volunteer]
    return np.asarray(moments[np.lexsort((moments, volunteer))])


def _to_seconds(moments: ArrayLike, days: float) -> Array:
    """Return shares of the project's duration as whole seconds since its start."""
    return np.floor(np.asarray(moments) * days * 86_400)
