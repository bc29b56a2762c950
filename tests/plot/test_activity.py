"""Pictures show what the arrays hold."""

import importlib

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import crowdgraph as cg
from crowdgraph.plot._style import HUES


def test_activity_draws_every_volunteer(graph):
    ax = cg.plot.activity(graph)
    assert ax.lines[0].get_ydata().tolist() == [3, 2, 1]
    assert [text.get_text() for text in ax.texts] == ["1 volunteer gave half", "3 volunteers gave nine tenths"]
    assert ax.get_title(loc="left") == "6 responses by 3 volunteers"


def test_responses_over_time_stack_up(graph):
    ax = cg.plot.responses_over_time(graph, n_bins=4)
    bars = [[patch.get_height() for patch in container] for container in ax.containers]
    assert bars == [[1, 1, 1, 0], [1, 1, 0, 1]]
    assert [to_hex(c.patches[0].get_facecolor()).upper() for c in ax.containers] == list(HUES[:2])


def test_of_many_labels_the_most_frequent_have_names(tmp_path):
    rng = np.random.default_rng(0)
    label = np.concatenate([np.repeat(np.arange(40), 2), np.repeat(np.arange(12, 23), 5)])
    n = len(label)
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": rng.integers(0, 9, n), "item": rng.integers(0, 30, n), "label": label}
    )
    ax = cg.plot.responses_over_time(graph)
    ax.figure.savefig(tmp_path / "picture.png")  # warnings are errors
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [*map(str, range(22, 11, -1)), "29 others"]
    assert sum(patch.get_height() for patch in ax.containers[0]) == 2 * 29
    assert sum(patch.get_height() for container in ax.containers for patch in container) == n


@pytest.mark.parametrize(
    "times", [None, [1.5, 2.5, 3.5], ["2026-01-01"] * 3, [7] * 3, ["2026-01-01", "2026-02-01", "2026-03-01"]]
)
def test_every_clock_can_be_drawn(times, tmp_path):
    columns = {"volunteer": ["a", "b", "a"], "item": ["x", "x", "y"], "label": [0, 1, 1]}
    graph = cg.CrowdGraph.from_responses(columns if times is None else {**columns, "time": times})
    for draw in (cg.plot.activity, cg.plot.responses_over_time):
        ax = draw(graph)
        ax.figure.savefig(tmp_path / "picture.png")
        draw(graph.first(0)).figure.savefig(tmp_path / "empty.png")
    assert sum(patch.get_height() for c in ax.containers for patch in c) == 3


def test_given_axes_are_used(graph):
    ax = Figure().subplots()
    assert cg.plot.activity(graph, ax=ax) is ax
    with pytest.raises(cg.errors.ParameterError, match="n_bins"):
        cg.plot.responses_over_time(graph, n_bins=0)


def test_plots_are_functions_where_a_module_has_the_same_name():
    for name in cg.plot.__all__:
        # Importing the module once more must not put it in the place of the function.
        importlib.import_module(getattr(cg.plot, name).__module__)
        assert callable(getattr(cg.plot, name)), name
