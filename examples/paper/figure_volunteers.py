"""The figures of single volunteers: how a confusion matrix moves as its volunteer answers."""

import numpy as np
from entry import write_entry

import crowdgraph as cg

STORIES = {
    "steady": ("none", "some drift early, small fluctuations later"),
    "sustained drift": ("ramp", "sustained drift away from scores of 3"),
    "sudden change and return": ("visit", "very significant change, then back"),
    "sudden change and stay": ("step", "little change, a sudden one, then stable"),
}


def volunteer(drift):
    """Return the history of one volunteer who drifts in this way, and its mean distance from the truth."""
    crowd = cg.simulate.crowd(
        n_volunteers=8,
        n_items=4_000,
        n_responses=[2_000] * 8,
        classes=("not supernova", "supernova"),
        labels=(-1, 1, 3),
        groups=cg.simulate.galaxy_zoo.GROUPS,
        drift=drift,
        seed=3,
    )
    no, yes = crowd.graph.classes
    fit = cg.DynIBCC(confusion_prior=(4, 1), votes={-1: no, 1: yes, 3: yes}).fit(crowd.graph)
    history = fit.confusion.of("volunteer-0")
    own = crowd.graph.responses.volunteer == 0
    return history, float(np.abs(history.mean - crowd.truth.confusion[own]).sum(axis=2).mean() / 2)


rows, pictures = [], {}
for story, (drift, published) in STORIES.items():
    history, error = volunteer(drift)
    said = [f"a {change.kind} change" for change in history.changes()] or ["no evidence for a change"]
    rows.append((story, published, f"{said[0]}; {error:.3f} from the truth on average"))
    pictures[f"A volunteer with 2,000 responses: {story}"] = cg.plot.confusion_history(history)
write_entry(
    "figure_volunteers",
    "Figures: dynamics of four volunteers",
    paper="Triangles in which each line is a row of a volunteer's confusion matrix, inferred by DynIBCC.",
    rows=rows,
    pictures=pictures,
    remark="The paper's four volunteers gave 20,869 to 29,651 classifications each, more than there are responses in "
    "its table; these are simulated, with 2,000 responses each, and gold for all items.",
)
