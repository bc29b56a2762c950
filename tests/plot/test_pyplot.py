"""Figures are pyplot's where pyplot is in use, and nobody's elsewhere; each script is a process of its own."""

import json
import os
import subprocess
import sys

import pytest

CROWD = """
import json, sys
import crowdgraph as cg
crowd = cg.simulate.crowd(n_volunteers=12, n_items=30, n_responses=200, seed=0)
graph = crowd.graph
graph = graph.annotate(cg.MajorityVote().fit(graph))
"""


def run(script, folder):
    """Run a script that prints JSON in its last line, and return that."""
    env = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", CROWD + script], check=False, capture_output=True, text=True, cwd=folder, env=env
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("header", "opened"),
    [
        ("import matplotlib.pyplot as plt", 1),
        ("from matplotlib.pyplot import savefig", 1),
        # igraph loads pyplot, but nobody asked for it.
        ("import igraph", 0),
    ],
)
def test_figures_are_pyplots_where_it_is_in_use(header, opened, tmp_path):
    script = f"""
{header}
ax = cg.plot.activity(graph)
import matplotlib.pyplot as pyplot
print(json.dumps([pyplot.get_fignums(), bool(opened := pyplot.get_fignums()) and pyplot.gcf() is ax.figure]))
"""
    assert run(script, tmp_path) == [[1], True] if opened else [[], False]


def test_pyplot_saves_what_was_drawn_last(tmp_path):
    script = """
def main():
    import matplotlib.pyplot as plt
    cg.plot.activity(graph)
    plt.savefig("mine.png")
    figure = plt.gcf()
    plt.figure()
    plt.savefig("empty.png")
    try:
        cg.plot.activity(graph, ax="no axes")
    except Exception:
        pass
    _, axes = plt.subplots()
    print(json.dumps([cg.plot.activity(graph, ax=axes) is axes, plt.get_fignums()]))
main()
"""
    assert run(script, tmp_path) == [True, [1, 2, 3]]
    assert (tmp_path / "mine.png").stat().st_size > 2 * (tmp_path / "empty.png").stat().st_size


def test_a_plot_that_fails_leaves_no_figure(tmp_path):
    script = """
import matplotlib.pyplot as plt
from crowdgraph.plot import _style
@_style.plain_text
def fails():
    _style.ensure_axes(None)
    raise ValueError
plt.figure()
try:
    fails()
except ValueError:
    print(json.dumps(plt.get_fignums()))
"""
    assert run(script, tmp_path) == [1]


def test_the_figures_of_an_analysis_stay_out_of_pyplot(tmp_path):
    script = """
import matplotlib.pyplot as plt
from pathlib import Path
from crowdgraph.analysis.output import draw_figures
from crowdgraph.report._results import GraphResults
draw_figures(GraphResults(graph), Path("figures"))
print(json.dumps([plt.get_fignums(), Path("figures/activity.png").is_file()]))
"""
    assert run(script, tmp_path) == [[], True]
