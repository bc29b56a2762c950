"""Figures are pyplot's where pyplot is in use, and nobody's elsewhere; each script is a process of its own."""

import json
import os
import subprocess
import sys

import matplotlib as mpl
import pytest

from crowdgraph.plot import _style

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


def test_a_plot_restores_nothing_but_how_text_is_read():
    @_style.plain_text
    def load_backend():
        assert not mpl.rcParams["text.parse_math"]
        mpl.rcParams["interactive"] = True

    with mpl.rc_context({"interactive": False, "text.parse_math": True}):
        load_backend()
        assert mpl.rcParams["interactive"]
        assert mpl.rcParams["text.parse_math"]


START = """
import crowdgraph as cg
graph = cg.simulate.crowd(n_volunteers=12, n_items=30, n_responses=200, seed=0).graph
graph = graph.annotate(cg.MajorityVote().fit(graph))
cg.plot.activity(graph)
"""
CELLS = [
    START,
    "ax = cg.plot.responses_over_time(graph)",
    "import matplotlib.pyplot as plt\ncg.plot.activity(graph)\nplt.savefig('mine.png')",
    "graph.items",
    "path = cg.report.show(graph)",
    "print(len(plt.get_fignums()))",
]


@pytest.mark.slow
def test_a_notebook_has_pictures_and_tables(tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    # The kernel chooses its backend, and leaves nothing outside this folder.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    for variable in ("TMPDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [
        {kind for output in cell.outputs for kind in output.get("data", ()) if kind != "text/plain"}
        for cell in notebook.cells
    ]
    assert shown == [{"image/png"}, {"image/png"}, {"image/png"}, {"text/html"}, {"text/html"}, set()]
    assert notebook.cells[-1].outputs[0].text == "0\n"  # each picture was shown and closed
    assert (tmp_path / "mine.png").stat().st_size > 5_000
