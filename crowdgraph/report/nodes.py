"""The items and volunteers of the page: classes of items, skill of volunteers, now and over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdgraph.core._arrays import Array
from crowdgraph.core.behaviour import behaviour
from crowdgraph.core.changes import Changes, VolunteerChange
from crowdgraph.core.confusion import ConfusionSnapshot
from crowdgraph.core.fit import ModelFit
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.messages import Message, wording
from crowdgraph.plot._style import short_times
from crowdgraph.report._results import MAX_NUMBERS, MAX_ROWS, GraphResults, most_active, to_numbers, to_texts
from crowdgraph.report.tables import INTERVAL_LEVEL, item_columns, skill, volunteer_columns

__all__ = [
    "calibration_warning",
    "change_sentences",
    "history_table",
    "item_table",
    "participation_pairs",
    "volunteer_table",
]

# Skill over time is read at this many moments, for at most this many volunteers.
N_MOMENTS = 40
MAX_HISTORIES = 2_000
# Longer attributes of items are cut.
MAX_LETTERS = 200
# Smaller participations are left out.
MIN_PARTICIPATION = 0.02


def item_table(results: GraphResults) -> dict[str, Any]:
    """Return the items, column by column, the most uncertain first; without a fit, those with the most responses."""
    graph, fit, better = results.graph, results.fit, results.better_fit
    columns = item_columns(results)
    max_items = min(MAX_ROWS, MAX_NUMBERS // (len(graph.labels) + len(graph.classes)))
    if fit is None:
        rows = most_active(columns["responses"], max_items)
    else:
        # Items with gold come last.
        rows = np.lexsort((-uncertainty((better or fit).item_probs).round(9), graph.gold.known))[:max_items]
    table: dict[str, Any] = {
        "total": len(graph.items),
        "id": to_texts(columns["item"][rows]),
        "responses": columns["responses"][rows].tolist(),
        "answers": _label_counts(graph)[rows].tolist(),
        "gold": [_gold(graph, code) for code in rows.tolist()],
        **_attributes(graph, rows),
    }
    if fit is None:
        advice = Message(
            "What the items are is not known yet: graph = graph.annotate(cg.IBCC().fit(graph)).",
            cli="What the items are is not known yet; use --model ibcc.",
        )
        return {**table, **results.advice(advice)}
    probs = fit.item_probs[rows]
    recommended = probs if better is None else better.item_probs[rows]
    return {
        **table,
        **({} if better is None else {"calibrated": to_numbers(recommended)}),
        **({"warning": calibration_warning(results, fit)} if results.is_doubtful else {}),
        "model": fit.model,
        "probs": to_numbers(probs),
        "class": probs.argmax(axis=1).tolist(),
        "uncertainty": to_numbers(uncertainty(recommended)),
    }


def calibration_warning(results: GraphResults, fit: ModelFit) -> str:
    """Return that a model tends to be too sure, and by what to decide instead, or how to get that."""
    reason = f"The model {fit.model} counts every answer as a new witness, or nearly so, and tends to be too sure."
    if results.calibrated_fit is not None:
        return f"{reason} Decide by the calibrated probabilities, which stand beside its own in the table of items."
    advice = " To see calibrated probabilities beside its own" + Message(
        ", write the page with calibrated_fit=graph.fit().calibrated().", cli=", leave --model out."
    )
    return reason + wording(advice, results.interface)


def uncertainty(probs: Array) -> Array:
    """Return how uncertain each row is: its entropy, as a share of that of classes that are all equally probable."""
    from scipy.special import entr

    # Rounding may leave a sum a hair outside of the range.
    return np.asarray(np.clip(entr(probs).sum(axis=1) / np.log(max(probs.shape[1], 2)), 0.0, 1.0))


def _attributes(graph: CrowdGraph, rows: Array) -> dict[str, Any]:
    """Return the attributes of items as text, name by name, as far as there is room; nothing where there are none."""
    most = MAX_NUMBERS // max(len(rows), 1)
    columns = list(graph.items.attributes.items())[:most]
    facts = {name: [_attribute_text(value) for value in column[rows].tolist()] for name, column in columns}
    return {"attributes": facts} if facts else {}


def _attribute_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None or value != value else str(value)[:MAX_LETTERS]


def _label_counts(graph: CrowdGraph) -> Array:
    """Return how often each item was given each label, of shape (N, L)."""
    n_labels = len(graph.labels)
    cells = graph.answers.item.astype(np.int64) * n_labels + graph.answers.label
    return np.bincount(cells, minlength=len(graph.items) * n_labels).reshape(-1, n_labels)


def _gold(graph: CrowdGraph, code: int) -> int | list[float] | None:
    """Return the code of an item's gold class, the class probabilities if gold is uncertain, or None without gold."""
    gold = graph.gold
    if not gold.known[code]:
        return None
    return int(gold.codes[code]) if gold.codes[code] >= 0 else to_numbers(gold.probs[code])


def volunteer_table(results: GraphResults) -> dict[str, Any]:
    """Return the volunteers, column by column, the most active first."""
    graph, snapshot, communities = results.graph, results.snapshot, results.several_communities
    columns, rows = volunteer_columns(results), _listed_volunteers(graph)
    table: dict[str, Any] = {
        "total": len(graph.volunteers),
        "id": to_texts(columns["volunteer"][rows]),
        "responses": columns["responses"][rows].tolist(),
    }
    if communities is not None:
        table["community"] = columns["community"][rows].tolist()
        table["participation"] = participation_pairs(communities.on(graph).participation[rows])
    if results.changes is not None:
        table["change"] = _change_notes(results.changes, graph, rows)
        table["changed"] = _changed(results.changes, graph)
    if snapshot is None:
        advice = Message(
            "How volunteers answer is not known yet: graph = graph.annotate(cg.IBCC().fit(graph)).",
            cli="How volunteers answer is not known yet; use --model ibcc.",
        )
        return {**table, **results.advice(advice)}
    mean = snapshot.mean[rows]
    return {
        **table,
        **{name: to_numbers(columns[name][rows]) for name in ("accuracy", "low", "high")},
        "level": INTERVAL_LEVEL,
        "right": correct_labels_note(results),
        "confusion": to_numbers(mean, 3),
        **_behaviours(graph, mean),
    }


def _listed_volunteers(graph: CrowdGraph) -> Array:
    """Return the codes of the volunteers who are listed one by one, the most active first."""
    numbers_each = len(graph.classes) * len(graph.labels) + 4
    return most_active(graph.volunteers.n_responses, min(MAX_ROWS, MAX_NUMBERS // numbers_each))


def participation_pairs(participation: Array) -> list[list[float]]:
    """Return, for each volunteer, community and participation in turn, without small participations."""
    pairs: list[list[float]] = [[] for _ in participation]
    for row, k in np.argwhere(participation >= MIN_PARTICIPATION).tolist():
        pairs[row] += [k, round(float(participation[row, k]), 3)]
    return pairs


def change_sentences(changes: Changes, graph: CrowdGraph) -> list[str]:
    """Return each change in words, without the volunteer: how, when, and from what to what."""
    return [
        f"{when}: {_about_class(change)}{change.before:.0%} right before, {change.after:.0%} after"
        for change, when in zip(changes, _change_times(changes, graph), strict=True)
    ]


def _about_class(change: VolunteerChange) -> str:
    return "" if change.true_class is None else f"about items of class {change.true_class} "


def _change_times(changes: Changes, graph: CrowdGraph) -> list[str]:
    """Return how and when each volunteer changed, in words."""
    times = graph.responses.time
    # Briefly, but so that times of this graph still differ.
    ends = times[[0, -1]] if len(times) else times
    words = []
    for change, moments in zip(changes, changes.moments, strict=True):
        time, low, high = short_times(changes.clock, np.concatenate([ends[:1], moments, ends[1:]]))[1:-1]
        span = "" if low == high else f" (90% interval: {low} to {high})"
        words.append(f"gradually from {low} to {high}" if change.kind == "gradual" else f"suddenly at {time}{span}")
    return words


def _changed(changes: Changes, graph: CrowdGraph) -> dict[str, Any]:
    """Return everybody for whose change there is evidence, column by column, the clearest first."""
    return {
        "id": to_texts(change.volunteer for change in changes),
        "when": _change_times(changes, graph),
        "about": ["all classes" if change.true_class is None else str(change.true_class) for change in changes],
        "before": to_numbers([change.before for change in changes]),
        "after": to_numbers([change.after for change in changes]),
    }


def _change_notes(changes: Changes, graph: CrowdGraph, rows: Array) -> list[str]:
    """Return what is known of the change of each volunteer."""
    words = dict(zip((change.volunteer for change in changes), change_sentences(changes, graph), strict=True))
    none = ("no evidence for a change", f"not tested: fewer than {changes.min_answers} answers")
    untested = np.isnan(changes.p_values)[rows].tolist()
    ids = changes.ids[rows].tolist()
    return [words.get(name, none[is_untested]) for name, is_untested in zip(ids, untested, strict=True)]


def correct_labels_note(results: GraphResults) -> str:
    """Return a sentence on which labels count as right, and how that is known."""
    correct, known_by = results.correct_labels
    if known_by == "names":
        return "Right is the label that names the class."
    clauses = [f"{' or '.join(to_texts(labels)) or 'no label'} for {name}" for name, labels in correct.items()]
    source = {
        "votes": "as the model's votes say",
        "crowd": "read off the crowd's own answers; to say otherwise, fit with votes={label: class, ...}",
    }[known_by]
    return f"Right is {', '.join(clauses)} ({source})."


def _behaviours(graph: CrowdGraph, means: Array) -> dict[str, Any]:
    """Return how volunteers answer in words: the distinct descriptions, and for each volunteer the index of one."""
    descriptions = [behaviour(mean, classes=graph.classes, labels=graph.labels) for mean in means]
    distinct = list(dict.fromkeys(descriptions))
    index = {description: number for number, description in enumerate(distinct)}
    return {"behaviours": distinct, "behaviour": [index[description] for description in descriptions]}


def history_table(results: GraphResults) -> dict[str, Any]:
    """Return the skill of the most active volunteers over time, in the order of the table; None before they began."""
    track, graph = results.confusion, results.graph
    if graph.responses.clock.kind == "order" and (track is None or track.inference == "static"):
        return results.advice(
            Message("The graph has no times", cli="The file has no times")
            + ", so nobody can be followed over time; with a column of times the page would show who changes, and when."
        )
    if track is None:
        return results.advice(
            Message(
                "Skill over time needs a model: graph = graph.annotate(cg.DynIBCC().fit(graph)).",
                cli="Skill over time needs a model; use --model dynibcc.",
            )
        )
    if track.inference == "static":
        return results.advice(
            "The model takes volunteers to be the same at all times. To follow everybody over time, whether or not the "
            "order of their answers shows a change"
            + Message(": graph = graph.annotate(cg.DynIBCC().fit(graph)).", cli=", use --model dynibcc.")
        )
    moments = _moments(graph.responses.time)
    n_cells = len(track.classes) * len(track.labels)
    rows = _listed_volunteers(graph)[: min(MAX_HISTORIES, MAX_NUMBERS // (n_cells * max(len(moments), 1)))]
    snapshots = [_subset(track.at(moment), rows) for moment in moments]
    begun = _begun(graph, rows, moments)
    skills = np.stack([skill(results, snapshot) for snapshot in snapshots], axis=2)
    means = np.stack([snapshot.mean.reshape(len(rows), n_cells) for snapshot in snapshots], axis=1)
    return {
        **({} if results.changes is None else {"change": _change_positions(results.changes, graph, rows)}),
        "times": short_times(graph.responses.clock, moments),
        "positions": to_numbers(_positions(moments)),
        "mean": [
            [mean if has_begun else None for mean, has_begun in zip(history, flags, strict=True)]
            for history, flags in zip((1000 * means).round().astype(int).tolist(), begun.tolist(), strict=True)
        ],
        **{
            name: to_numbers(np.where(begun, values, np.nan), 3)
            for name, values in zip(("accuracy", "low", "high"), skills, strict=True)
        },
    }


def _change_positions(changes: Changes, graph: CrowdGraph, rows: Array) -> list[list[float] | None]:
    """Return where each volunteer's change lies between the first time, 0, and the last, 1: its time, low and high."""
    ends = graph.responses.time[[0, -1]]
    since, span = (changes.moments - ends[0]).astype(np.float64), float((ends[1] - ends[0]).astype(np.float64))
    positions = dict(zip((change.volunteer for change in changes), to_numbers(since / max(span, 1e-300)), strict=True))
    return [positions.get(name) for name in changes.ids[rows].tolist()]


def _subset(snapshot: ConfusionSnapshot, codes: Array) -> ConfusionSnapshot:
    return ConfusionSnapshot(
        ids=snapshot.ids[codes],
        concentration=snapshot.concentration[codes],
        classes=snapshot.classes,
        labels=snapshot.labels,
    )


def _moments(times: Array) -> Array:
    """Return moments with about as many responses between any two, the first and the last time among them."""
    if not len(times):
        return times
    return np.unique(times[np.linspace(0, len(times) - 1, N_MOMENTS).round().astype(np.int64)])


def _positions(moments: Array) -> Array:
    """Return where the moments lie between the first, 0, and the last, 1."""
    since = (moments - moments[:1]).astype(np.float64)
    return since / max(since[-1], 1e-300) if len(since) else since


def _begun(graph: CrowdGraph, codes: Array, moments: Array) -> Array:
    """Return whether each volunteer had responded by each moment."""
    rows = graph.responses.by_volunteer
    active = np.flatnonzero(np.diff(rows.starts)[codes])
    begun = np.zeros((len(codes), len(moments)), dtype=bool)
    begun[active] = graph.responses.time[rows.order[rows.starts[codes[active]]]][:, None] <= moments
    return begun
