"""Matching: which communities of one time are which of an earlier one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdgraph.core._arrays import Array, lock
from crowdgraph.core.communities import Communities
from crowdgraph.core.tables import NodeTable

__all__ = ["CommunityProfile", "Matching", "community_profiles", "match"]

# Communities are matched only if they are more similar than this; otherwise one ended and the other is new.
MIN_SIMILARITY = 0.3
# How fast the similarity of behaviours falls with the distance of mean confusion matrices.
SHARPNESS = 8.0


class CommunityProfile(NamedTuple):
    """A community as it is compared with others: its members and its behaviour.

    Attributes
    ----------
    participation
        How much each volunteer takes part in it, of shape (V,); NaN for volunteers who have no community.
    confusion
        The mean confusion of its members, of shape (J, L); None if it is not known.
    """

    participation: Array
    confusion: Array | None


class Matching(NamedTuple):
    """Which communities are which earlier ones.

    Attributes
    ----------
    previous
        For each community the index of the earlier community that it is matched with, of shape (K,); -1 for new ones.
    similarity
        The similarity of every earlier community and every later one, of shape (earlier, later), from 0 to 1.
    confidence
        The share of restarts in which each community, found again, is matched with the same earlier one, of shape (K,);
        NaN without restarts.
    """

    previous: Array
    similarity: Array
    confidence: Array


def community_profiles(communities: Communities, volunteers: NodeTable) -> list[CommunityProfile]:
    """Return the profile of every community over all volunteers of a table."""
    assigned = communities.assignment >= 0
    participation = np.full((len(volunteers), len(communities)), np.nan)
    participation[volunteers.codes(communities.ids[assigned])] = communities.participation[assigned]
    behaviours: list[Array | None] = [None] * len(communities)
    if communities.confusion is not None and assigned.any():
        means = communities.mean_confusion(by_responses=communities.support is not None)
        # The behaviour of members who never answered is not known.
        behaviours = [mean if np.isfinite(mean).all() else None for mean in means]
    return [CommunityProfile(*profile) for profile in zip(participation.T, behaviours, strict=True)]


def match(
    before: list[CommunityProfile],
    after: list[CommunityProfile],
    *,
    restarts: list[list[CommunityProfile]] | None = None,
) -> Matching:
    """Match communities with earlier ones so that their total similarity is highest.

    Two communities are similar as far as they share members (the overlap of participations divided by their union,
    among the volunteers who had communities both times) and behave the same (:math:`e^{-8 d}` for the Bhattacharyya
    distance `d` of their mean confusion); where both are known, similarity is the mean of the two. Communities with a
    similarity of 0.3 or less are not matched: one ended and the other is new.

    Parameters
    ----------
    before
        The earlier communities.
    after
        The communities to match.
    restarts
        The later communities as found by other starts of the detector.
    """
    similarity = _similarities(before, after)
    previous = _best_assignment(similarity)
    n_agreeing = np.zeros(len(after))
    for other in restarts or []:
        same = _best_assignment(_similarities(after, other), min_similarity=0.0)
        previous_of_other = _best_assignment(_similarities(before, other))
        # Which community of the restart is each community, and which earlier one is that matched with?
        counterpart = {int(own): index for index, own in enumerate(same) if own >= 0}
        n_agreeing += [k in counterpart and previous_of_other[counterpart[k]] == previous[k] for k in range(len(after))]
    confidence = n_agreeing / len(restarts) if restarts else np.full(len(after), np.nan)
    return Matching(lock(previous), lock(similarity), lock(confidence))


def _best_assignment(similarity: Array, *, min_similarity: float = MIN_SIMILARITY) -> Array:
    """Return for each later community the earlier one that it is matched with, -1 for none; all at once."""
    from scipy.optimize import linear_sum_assignment

    n_before, n_after = similarity.shape
    gain = np.zeros((n_before + n_after, n_after))
    gain[:n_before] = similarity - min_similarity
    # The lower rows stand for new communities, which gain nothing.
    rows, columns = linear_sum_assignment(gain, maximize=True)
    previous = np.full(n_after, -1)
    matched = (rows < n_before) & (gain[rows, columns] > 0)
    previous[columns[matched]] = rows[matched]
    return previous


def _similarities(before: list[CommunityProfile], after: list[CommunityProfile]) -> Array:
    return np.array([[_similarity(old, new) for new in after] for old in before]).reshape(len(before), len(after))


def _similarity(old: CommunityProfile, new: CommunityProfile) -> float:
    parts = []
    both = ~np.isnan(old.participation) & ~np.isnan(new.participation)
    union = np.maximum(old.participation[both], new.participation[both]).sum()
    if union > 0:
        parts.append(np.minimum(old.participation[both], new.participation[both]).sum() / union)
    if old.confusion is not None and new.confusion is not None:
        distance = (1 - np.sqrt(old.confusion * new.confusion).sum(axis=1)).sum()
        parts.append(np.exp(-SHARPNESS * max(distance, 0.0)))
    return float(np.mean(parts)) if parts else 0.0
