"""The figures of single volunteers: how a confusion matrix moves as its volunteer answers."""

import numpy as np
from entry import AUTHORS_PRIOR, CORRECT, busiest, write_entry

import crowdgraph as cg

# How a volunteer changes in the simulated crowd, and what the paper says of its four.
STORIES = {
    "learning": "some drift early, small fluctuations later",
    "ramp": "sustained drift away from scores of 3",
    "visit": "very significant change, then back",
    "step": "little change, a sudden one, then stable",
    "none": "",
}
NAMES = {
    "learning": "learns",
    "ramp": "drifts",
    "visit": "changes and returns",
    "step": "changes and stays",
    "none": "steady",
}


def main():
    """Print what is seen of each volunteer, and write it with the traces for the page."""
    graph, truth = crowd = cg.simulate.galaxy_zoo_supernovae()
    fit = cg.DynIBCC(**AUTHORS_PRIOR, noise_scale="auto").fit(graph)
    static = cg.IBCC(**AUTHORS_PRIOR).fit(graph).confusion.latest()
    changes = fit.changes(graph, correct=CORRECT)
    rows, pictures = [], {}
    for drift, published in STORIES.items():
        volunteer = busiest(crowd, drift)
        history, change = fit.confusion.of(volunteer), changes.of(volunteer)
        code = int(graph.volunteers.codes([volunteer])[0])
        own = truth.confusion[graph.responses.volunteer == code]
        off, off_static = (np.abs(one - own).sum(axis=2).mean() / 2 for one in (history.mean, static.mean[code]))
        said = "no evidence for a change" if change is None else f"a {change.kind} change"
        seen = f"{volunteer}: {said}; off the truth by {off:.3f} (IBCC, which does not move: {off_static:.3f})"
        rows.append((f"{NAMES[drift]}, {len(history):,} answers", published, seen))
        caption = f"{volunteer}, who {NAMES[drift]}" if drift != "none" else f"{volunteer}, who is steady"
        pictures[caption] = cg.plot.confusion_history(history)
    is_flagged = np.isin(graph.volunteers.ids, [change.volunteer for change in changes])
    changed, tested = truth.drift != "none", graph.volunteers.n_responses >= 8
    rows.append(("flagged by changes(), of those who change", "", ratio(is_flagged & changed, changed)))
    rows.append(
        ("flagged though steady, of those tested", "", ratio(is_flagged & ~changed & tested, ~changed & tested))
    )
    rows.append(("scale of the noise, chosen by prediction", "1", f"{fit.diagnostics['noise_scale']:.2f}"))
    write_entry(
        "figure_volunteers",
        "Figures: dynamics of four volunteers",
        paper="Triangles in which each line is a row of a volunteer's confusion matrix, inferred by DynIBCC; stars on "
        "both lines carry the number of observations at that time. The four gave 20,869 to 29,651 classifications "
        "each; the two sudden changes are in the row of what is no supernova.",
        rows=rows,
        pictures=pictures,
        side_by_side=True,
        remark="These are the busiest volunteer of each story and the busiest steady one, with about four hundred "
        "answers each, in the crowd whose communities are shown above and below; all items have gold. The changes are "
        "planted, in both rows: where the paper's volunteer drifts away from the score 3, ours drifts towards it. "
        "Kind and moment of a change are told by a test of the answers, not by the trace.",
    )


def ratio(part, whole):
    """Return how many of how many, as text."""
    return f"{np.count_nonzero(part):,} of {np.count_nonzero(whole):,}"


if __name__ == "__main__":
    main()
