"""Sphinx settings."""

import sys
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode, math, math_block
from latex2mathml.converter import convert
from sphinx.util.math import wrap_displaymath

import crowdgraph

# gallery.py lies beside this file.
sys.path.insert(0, str(Path(__file__).parent))

project = "crowdgraph"
author = "The crowdgraph authors"
copyright = "2026, the crowdgraph authors"
version = release = crowdgraph.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_design",
    "myst_parser",
    "gallery",
]
html_theme = "pydata_sphinx_theme"
html_title = "crowdgraph"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
# Pages that have no pages beside or below them have no list of these at their side.
ALONE = ("index", "start", "concepts")
html_sidebars = {"**": ["sidebar-nav-bs"], **{page: [] for page in ALONE}}
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
}
exclude_patterns = ["_build"]

autodoc_typehints = "none"
# Names of methods fit into the list at the side without their class, which stands above them.
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 120)]
plot_rcparams = {"figure.constrained_layout.use": True}
plot_apply_rcparams = True
nitpicky = False
default_role = "obj"

html_math_renderer = "mathml"


def show_inline(writer: Any, node: math) -> None:
    """Formulas as MathML, which browsers draw themselves: pages need no network."""
    writer.body.append(convert(node.astext()))
    raise SkipNode


def show_block(writer: Any, node: math_block) -> None:
    """Displayed formulas likewise."""
    writer.body.append(
        f"<p>{convert(wrap_displaymath(node.astext(), label=None, numbering=False).strip(), display='block')}</p>"
    )
    raise SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (show_inline, None), (show_block, None))
