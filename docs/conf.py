"""Sphinx settings."""

import crowdgraph

project = "crowdgraph"
author = "The crowdgraph authors"
copyright = "2026, the crowdgraph authors"
version = release = crowdgraph.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "matplotlib.sphinxext.plot_directive"]
html_theme = "pydata_sphinx_theme"
html_title = "crowdgraph"
html_static_path = ["_static"]
html_sidebars = {"**": []}
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
exclude_patterns = ["_build"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 120)]
plot_rcparams = {"figure.constrained_layout.use": True}
plot_apply_rcparams = True
nitpicky = False
default_role = "obj"
