"""Results as frames: fits, predictions, influence, confusion, communities and networks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from crowdgraph.core.assignment import Assignment
from crowdgraph.core.availability import Availability
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.campaign import FIGURES, Campaign
from crowdgraph.core.changes import Leg, confusion_legs
from crowdgraph.core.columns import Array, id_array, object_array
from crowdgraph.core.communities import Communities, main_community
from crowdgraph.core.community_track import CommunityTrack
from crowdgraph.core.confusion import ConfusionHistory, ConfusionSnapshot, ConfusionTrack, Correct, DirichletRows
from crowdgraph.core.counterfactual import Counterfactual
from crowdgraph.core.evaluation import ReliabilityCurve, RocCurve
from crowdgraph.core.findings import Finding, Findings
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.core.influence import Influence
from crowdgraph.core.network import VolunteerNetwork
from crowdgraph.core.training import TrainingPlan
from crowdgraph.errors import ParameterError
from crowdgraph.io.columns import Coded, Timed, native_frame

__all__ = [
    "assignment_frame",
    "availability_frame",
    "campaign_frame",
    "changes_frame",
    "communities_frame",
    "confusion_frame",
    "counterfactual_frame",
    "curve_frame",
    "described_columns",
    "described_communities",
    "evidence_frame",
    "findings_frame",
    "fit_frame",
    "influence_frame",
    "lifelines_frame",
    "movers_frame",
    "network_frame",
    "predicted_frame",
    "track_frame",
    "training_frame",
    "volunteers_frame",
]

# Pairs of volunteers and items for which a table of predictions may be asked.
MOST_PAIRS = 10_000_000
# Volunteers of whom fewer responses are known than this are counted apart: their behaviour is hardly known.
FEW_RESPONSES = 10


def fit_frame(fit: ModelFit, *, kind: str) -> Any:
    """One row for each item: its most probable class and the probability of every class."""
    best = Coded(fit.item_probs.argmax(axis=1), id_array(fit.classes))
    probs = {f"p({name})": fit.item_probs[:, code] for code, name in enumerate(fit.classes)}
    return native_frame({"item": fit.items, "class": best, **probs}, kind=kind)


def predicted_frame(
    fit: ModelFit,
    graph: CrowdGraph,
    *,
    volunteers: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None,
    kind: str,
) -> Any:
    """One row for each pair that has not been answered: the most probable label and the probability of every label."""
    track = fit._tracked()
    people = np.arange(len(graph.volunteers)) if volunteers is None else graph.volunteers.codes(volunteers)
    things = np.arange(len(graph.items)) if items is None else graph.items.codes(items)
    if len(people) * len(things) > MOST_PAIRS:
        raise ParameterError(
            f"{len(people):,} volunteers and {len(things):,} items make {len(people) * len(things):,} pairs; choose at "
            f"most {MOST_PAIRS:,} with volunteers=[...] and items=[...]."
        )
    n_items = len(graph.items)
    asked = (np.zeros(len(graph.volunteers), dtype=bool), np.zeros(n_items, dtype=bool))
    asked[0][people], asked[1][things] = True, True
    responses = graph.responses
    chosen = (responses.label >= 0) & asked[0][responses.volunteer] & asked[1][responses.item]
    seen = responses.volunteer[chosen].astype(np.int64) * n_items + responses.item[chosen]
    pairs = np.setdiff1d((people[:, None] * n_items + things).ravel(), seen)
    volunteer, item = pairs // n_items, pairs % n_items
    mean, probs = track.latest().mean, np.zeros((len(pairs), len(track.labels)))
    for code in range(len(fit.classes)):
        probs += fit.item_probs[item, code, None] * mean[volunteer, code]
    names = id_array(track.labels)
    columns = {
        "volunteer": Coded(volunteer, graph.volunteers.ids),
        "item": Coded(item, graph.items.ids),
        "label": Coded(probs.argmax(axis=1), names),
    }
    return native_frame({**columns, **{f"p({name})": probs[:, k] for k, name in enumerate(track.labels)}}, kind=kind)


def volunteers_frame(fit: ModelFit, *, level: float, correct: Correct | None, kind: str) -> Any:
    """One row for each volunteer, the best first."""
    track = fit._tracked()
    snapshot = track.latest()
    accuracy = snapshot.accuracy(fit.class_probs, correct=correct)
    low, high = snapshot.accuracy_interval(level, class_probs=fit.class_probs, correct=correct)
    order = np.argsort(-accuracy, kind="stable")
    weight = snapshot.concentration.sum(axis=(1, 2))
    columns = {"volunteer": track.ids[order], "accuracy": accuracy[order], "low": low[order], "high": high[order]}
    return native_frame({**columns, "weight": weight[order]}, kind=kind)


def curve_frame(curve: RocCurve | ReliabilityCurve, *, kind: str) -> Any:
    """One row for each point of a curve."""
    columns = {name: column for name, column in curve._asdict().items() if isinstance(column, np.ndarray)}
    return native_frame(columns, kind=kind)


def influence_frame(influence: Influence, *, kind: str) -> Any:
    """One row for each item: its most probable class with and without, and the change of every class's probability."""
    columns = _side_by_side(influence.fit, {"without": influence.without}, influence.item_change)
    return native_frame(columns, kind=kind)


def counterfactual_frame(counterfactual: Counterfactual, *, kind: str) -> Any:
    """One row for each item: its most probable class as it was and as it would have been, and when it retired."""
    found = counterfactual
    more = {"retired_at": found.retired_at}
    return native_frame(_side_by_side(found.fit, {"instead": found.other}, found.item_change, **more), kind=kind)


def _side_by_side(fit: ModelFit, other: Mapping[str, ModelFit], change: Array, **more: Array) -> dict[str, Any]:
    """Items, those that change most first: both classes, the change of every class's probability, and more columns."""
    order = np.argsort(-np.abs(change).max(axis=1), kind="stable")
    names = id_array(fit.classes)
    best = {name: Coded(one.item_probs[order].argmax(axis=1), names) for name, one in {"class": fit, **other}.items()}
    changes = {f"change of p({name})": change[order, code] for code, name in enumerate(fit.classes)}
    return {"item": fit.items[order], **best, **changes, **{name: column[order] for name, column in more.items()}}


def confusion_frame(rows: DirichletRows, *, kind: str) -> Any:
    """One row for each volunteer, step, class and label; of one matrix for each class and label."""
    concentration = _concentration(rows)
    mean = concentration / concentration.sum(axis=-1, keepdims=True)
    n_classes, n_labels = concentration.shape[-2:]
    n_steps, cells = concentration[..., 0, 0].size, n_classes * n_labels
    columns: dict[str, Array | Coded | Timed] = {}
    if isinstance(rows, ConfusionSnapshot | ConfusionTrack):
        columns["volunteer"] = Coded(np.repeat(_owners(rows), cells), rows.ids)
    if isinstance(rows, ConfusionHistory | ConfusionTrack) and rows.inference != "static":
        columns["time"] = Timed(np.repeat(rows.times, cells), rows.clock)
    columns["class"] = Coded(np.tile(np.repeat(np.arange(n_classes), n_labels), n_steps), id_array(rows.classes))
    columns["label"] = Coded(np.tile(np.arange(n_labels), n_steps * n_classes), id_array(rows.labels))
    return native_frame({**columns, "mean": mean.ravel(), "concentration": concentration.ravel()}, kind=kind)


def _concentration(rows: DirichletRows) -> Array:
    """The matrices; those of a static model hold from the start."""
    static = isinstance(rows, ConfusionHistory | ConfusionTrack) and rows.inference == "static"
    return rows.initial if static else rows.concentration  # type: ignore[attr-defined]


def _owners(rows: ConfusionSnapshot | ConfusionTrack) -> Array:
    """The place of the volunteer to whom each matrix belongs."""
    if isinstance(rows, ConfusionTrack) and rows.inference != "static":
        return np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    return np.arange(len(rows))


def changes_frame(track: ConfusionTrack, *, level: float, min_size: float, kind: str) -> Any:
    """One row for each change of each volunteer, the largest first."""
    found = [
        (code, leg)
        for code, volunteer in enumerate(track.ids.tolist())
        for leg in confusion_legs(track.of(volunteer), level=level, min_size=min_size)
    ]
    found.sort(key=lambda owned: -abs(owned[1].size))
    owner = np.array([code for code, _ in found], dtype=np.int64)
    codes = {name: np.array([getattr(leg, name) for _, leg in found], dtype=np.int64) for name in Leg._fields[:5]}
    columns: dict[str, Array | Coded | Timed] = {
        "volunteer": Coded(owner, track.ids),
        "class": Coded(codes["row"], id_array(track.classes)),
        "label": Coded(codes["column"], id_array(track.labels)),
    }
    for name, step in (("start", "start"), ("stop", "stop"), ("time", "half")):
        columns[name] = Timed(track.times[track.starts[owner] + codes[step]], track.clock)
    return native_frame({**columns, "size": np.array([leg.size for _, leg in found])}, kind=kind)


def communities_frame(communities: Communities, *, kind: str) -> Any:
    """One row for each volunteer: the community of assignment, and the participation in each."""
    shares = {f"participation[{k}]": communities.participation[:, k] for k in range(len(communities))}
    return native_frame({"volunteer": communities.ids, "community": communities.assignment, **shares}, kind=kind)


def assignment_frame(assignment: Assignment, *, kind: str) -> Any:
    """One row for each question, in the order of decisions: who, about what, what it is expected to tell."""
    columns = {
        "volunteer": assignment.volunteers,
        "item": assignment.items,
        "gain": assignment.gain,
        "learning": assignment.learning,
        "cost": assignment.cost,
        "chance": assignment.chance,
        "value": assignment.value,
        "already": assignment.already,
        "others": object_array([", ".join(map(str, others)) for others in assignment.others]),
        "policy": object_array([assignment.policy] * len(assignment)),
    }
    return native_frame(columns, kind=kind)


def availability_frame(availability: Availability, *, kind: str) -> Any:
    """One row for each volunteer, the most likely to be active first."""
    order = np.argsort(-availability.active, kind="stable")
    columns = {
        "volunteer": availability.volunteers[order],
        "active": availability.active[order],
        "finishes": availability.finishes[order],
        "community": main_community(availability.participation)[order],
    }
    return native_frame(columns, kind=kind)


def training_frame(plan: TrainingPlan, *, kind: str) -> Any:
    """One row for each volunteer who would gain, those who would gain most first."""
    names = ("community", "information", "better", "gain", "n_responses")
    listed = {
        name: object_array(", ".join(map(str, row)) for row in getattr(plan, name)) for name in ("teachers", "common")
    }
    numbers = {name: getattr(plan, name) for name in names}
    return native_frame({"volunteer": plan.volunteers, **numbers, **listed}, kind=kind)


def campaign_frame(campaign: Campaign, *, kind: str) -> Any:
    """One row for each update of a campaign."""
    columns = {"policy": object_array([campaign.policy] * len(campaign.spent))}
    return native_frame({**columns, **{name: getattr(campaign, name) for name in FIGURES}}, kind=kind)


def track_frame(track: CommunityTrack, *, kind: str) -> Any:
    """One row for each snapshot, volunteer who has communities then, and community."""
    snapshot, volunteer = np.nonzero(track.assignment >= 0)
    rows = np.repeat(np.arange(len(snapshot)), track.width)
    columns = {
        **_when(track, snapshot[rows]),
        "volunteer": Coded(volunteer[rows], track.ids),
        "community": np.tile(np.arange(track.width), len(snapshot)),
        "participation": track.participations[snapshot, volunteer].ravel(),
    }
    return native_frame(columns, kind=kind)


def movers_frame(track: CommunityTrack, *, min_change: float, kind: str) -> Any:
    """One row for each time that a volunteer changed communities."""
    found = track.moves(min_change=min_change)
    snapshot, volunteer, source, target = (
        np.array([move[part] for move in found], dtype=np.int64) for part in range(4)
    )
    columns = {
        "volunteer": Coded(volunteer, track.ids),
        **_when(track, snapshot),
        "from": source,
        "to": target,
        "change": np.array([move.change for move in found], dtype=np.float64),
    }
    return native_frame(columns, kind=kind)


def lifelines_frame(track: CommunityTrack, *, kind: str) -> Any:
    """One row for each event in the life of a community."""
    events = track.events
    numbers = {
        name: np.array([getattr(event, name) for event in events], dtype=np.int64)
        for name in ("snapshot", "community", "other", "before", "after", "volunteers")
    }
    snapshot = numbers.pop("snapshot")
    sure = np.full((len(track), track.width), np.nan) if track.confidence is None else track.confidence
    columns = {
        **_when(track, snapshot),
        "event": object_array(event.event for event in events),
        **numbers,
        "confidence": sure[snapshot, numbers["community"]],
    }
    return native_frame(columns, kind=kind)


def _when(track: CommunityTrack, snapshot: Array) -> dict[str, Any]:
    return {"time": Timed(track.times[snapshot], track.clock), "count": track.counts[snapshot]}


def described_communities(communities: Communities, confusion: ConfusionSnapshot | None, *, kind: str) -> Any:
    """One row for each community, and one for those who belong to none; the columns are those of `describe`."""
    return native_frame(described_columns(communities, confusion), kind=kind)


def described_columns(communities: Communities, confusion: ConfusionSnapshot | None) -> dict[str, Array]:
    """The columns of `describe`."""
    numbers = [*range(len(communities)), *([-1] if communities.unassigned else [])]
    n_rows = len(numbers)
    members = [np.flatnonzero(communities.assignment == k) for k in numbers]
    sizes = np.array([len(codes) for codes in members], dtype=np.int64)
    columns: dict[str, Array] = {
        "community": np.array(numbers, dtype=np.int64),
        "volunteers": sizes,
        "share": np.append(communities.sizes / max(communities.sizes.sum(), 1), np.nan)[:n_rows].round(3),
        "participation": np.append(communities.participation.sum(axis=0), 0.0)[:n_rows].round(1),
        "mixed": np.array([communities.entropy[codes].mean() if len(codes) else np.nan for codes in members]).round(2),
        "centroid": object_array([*communities.centroids, None][:n_rows]),
    }
    if communities.support is not None:
        support = [communities.support[codes] for codes in members]
        columns["responses"] = np.array([part.sum() for part in support]).round().astype(np.int64)
        columns["median_responses"] = np.array([np.median(part) if len(part) else np.nan for part in support])
        columns["few_responses"] = np.array([(part < FEW_RESPONSES).sum() for part in support], dtype=np.int64)
    if confusion is not None:
        columns["behaviour"] = object_array([*_behaviours(communities, confusion), "belongs to none"][:n_rows])
    return columns


def _behaviours(communities: Communities, confusion: ConfusionSnapshot) -> list[str]:
    """How each community answers, in words."""
    names = {"classes": confusion.classes, "labels": confusion.labels}
    means = communities.mean_confusion(confusion, by_responses=communities.support is not None)
    return ["nothing is known of it" if np.isnan(mean).any() else behaviour(mean, **names) for mean in means]


def network_frame(network: VolunteerNetwork, *, kind: str) -> Any:
    """One row for each linked pair."""
    left, right, weights = network.edges()
    ends = {"volunteer": Coded(left, network.ids), "neighbour": Coded(right, network.ids)}
    return native_frame({**ends, "weight": weights}, kind=kind)


def findings_frame(findings: Findings, *, kind: str) -> Any:
    """One row for each finding of the data doctor."""
    words = ("severity", "topic", "name", "what", "why", "advice", "subject")
    columns = {word: object_array(getattr(finding, word) for finding in findings) for word in words}
    n_ids = np.array([len(finding.ids) for finding in findings], dtype=np.int64)
    return native_frame({**columns, "n_ids": n_ids}, kind=kind)


def evidence_frame(finding: Finding, *, kind: str) -> Any:
    """One row for each id that a finding concerns."""
    columns = {name: np.asarray(column) for name, column in finding.evidence.items()}
    return native_frame({finding.subject: finding.ids, **columns}, kind=kind)
