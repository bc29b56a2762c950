"""Showing the page: in a notebook, or in a browser."""

from __future__ import annotations

import sys
import webbrowser
from html import escape
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

from crowdgraph.core.graph import CrowdGraph
from crowdgraph.report._results import AnalysisLike
from crowdgraph.report.write import write

__all__ = ["show"]

# The height of the page in a notebook, in pixels.
HEIGHT = 800


def show(crowd: CrowdGraph | AnalysisLike, *, title: str | None = None) -> Path:
    """Show the page about a crowd: below the cell of a notebook, or else in a browser; returns its file.

    The page is that of `write`, in a temporary file that only you can read and that stays. A notebook holds a copy of
    the page, with the ids of volunteers and items.

    Parameters
    ----------
    crowd
        An analysis, as `crowdgraph.analysis.analyse` returns it, or a graph annotated with results.
    title
        The page's title.
    """
    path = Path(mkdtemp(prefix="crowdgraph-")) / "report.html"
    write(crowd, path, title=title)
    if _is_notebook():
        # A notebook may not show local files, but what stands in the frame itself.
        page = escape(path.read_text(encoding="utf-8"))
        frame = f'<iframe srcdoc="{page}" width="100%" height="{HEIGHT}" style="border:0"></iframe>'
        import_module("IPython.display").display({"text/html": frame, "text/plain": str(path)}, raw=True)
    else:
        webbrowser.open(path.as_uri())
    return path


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
