"""Who is who: which communities of one time are which of an earlier one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.communities import Communities
from crowdgraph.core.tables import NodeTable

__all__ = ["CommunityProfile", "Matching", "community_profiles", "match"]

# A community is taken for an earlier one if they are more alike than this; else the one ended and the other was born.
ALIKE = 0.3
# How fast the likeness of behaviours falls with the distance of mean confusion matrices.
SHARPNESS = 8.0


class CommunityProfile(NamedTuple):
    """A community as it was seen: who took part, of shape (V,), NaN for those who were not there; and its behaviour.

    Behaviour is the mean confusion of its members, of shape (J, L); None if that is not known.
    """

    participation: Array
    confusion: Array | None


class Matching(NamedTuple):
    """Which communities are which of those seen before.

    Attributes
    ----------
    number
        For each community the place of the one that it was, of shape (K,); -1 for those that are new.
    likeness
        How much alike every earlier community and every later one are, of shape (earlier, later), from 0 to 1.
    confidence
        The share of restarts in which each community, found again, is matched with the same one, of shape (K,); NaN if
        there were no restarts.
    """

    number: Array
    similarity: Array
    confidence: Array


def community_profiles(communities: Communities, volunteers: NodeTable) -> list[CommunityProfile]:
    """Every community as it is seen, in terms of all the volunteers there are."""
    there = communities.assignment >= 0
    shares = np.full((len(volunteers), len(communities)), np.nan)
    shares[volunteers.codes(communities.ids[there])] = communities.participation[there]
    behaviours: list[Array | None] = [None] * len(communities)
    if communities.confusion is not None and there.any():
        means = communities.mean_confusion(by_responses=communities.support is not None)
        # Of members who never answered no behaviour is known.
        behaviours = [mean if np.isfinite(mean).all() else None for mean in means]
    return [CommunityProfile(*seen) for seen in zip(shares.T, behaviours, strict=True)]


def match(
    before: list[CommunityProfile],
    after: list[CommunityProfile],
    *,
    restarts: list[list[CommunityProfile]] | None = None,
) -> Matching:
    """Match communities with earlier ones: together as much alike as can be, and none with one that is unlike it.

    Two communities are alike as far as they share members (the overlap of participations, over what either has, among
    the volunteers who were there both times) and behave the same (:math:`e^{-8 d}` for the Bhattacharyya distance `d`
    of their mean confusion); the mean of both, where both are known. Those not above 0.3 are not matched: an ending
    and a birth cost less.

    Parameters
    ----------
    before
        The communities seen earlier.
    after
        Those to be matched.
    restarts
        The later communities as other starts of the detector find them.
    """
    similarity = _likeness(before, after)
    number = _assigned(similarity)
    agreed = np.zeros(len(after))
    for other in restarts or []:
        same = _assigned(_likeness(after, other), least=0.0)
        theirs = _assigned(_likeness(before, other))
        # Who of the other start is each community, and which number would that have been given?
        found = {int(own): place for place, own in enumerate(same) if own >= 0}
        agreed += [k in found and theirs[found[k]] == number[k] for k in range(len(after))]
    confidence = agreed / len(restarts) if restarts else np.full(len(after), np.nan)
    return Matching(lock(number), lock(similarity), lock(confidence))


def _assigned(similarity: Array, *, least: float = ALIKE) -> Array:
    """For each later community the earlier one it is matched with, -1 for none: the best assignment of all at once."""
    from scipy.optimize import linear_sum_assignment

    n_before, n_after = similarity.shape
    gain = np.zeros((n_before + n_after, n_after))
    gain[:n_before] = similarity - least
    # The lower rows stand for births, which gain nothing, as endings do.
    rows, columns = linear_sum_assignment(gain, maximize=True)
    number = np.full(n_after, -1)
    kept = (rows < n_before) & (gain[rows, columns] > 0)
    number[columns[kept]] = rows[kept]
    return number


def _likeness(before: list[CommunityProfile], after: list[CommunityProfile]) -> Array:
    return np.array([[_alike(old, new) for new in after] for old in before]).reshape(len(before), len(after))


def _alike(old: CommunityProfile, new: CommunityProfile) -> float:
    parts = []
    both = ~np.isnan(old.participation) & ~np.isnan(new.participation)
    either = np.maximum(old.participation[both], new.participation[both]).sum()
    if either > 0:
        parts.append(np.minimum(old.participation[both], new.participation[both]).sum() / either)
    if old.confusion is not None and new.confusion is not None:
        apart = (1 - np.sqrt(old.confusion * new.confusion).sum(axis=1)).sum()
        parts.append(np.exp(-SHARPNESS * max(apart, 0.0)))
    return float(np.mean(parts)) if parts else 0.0
