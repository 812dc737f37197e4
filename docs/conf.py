"""Sphinx configuration: MyST pages, stored notebook outputs, references generated from the code."""

from __future__ import annotations

from exactsel import __version__

project = "exactsel"
author = "the exactsel authors"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
exclude_patterns = ["_build", "jupyter_execute", "example_plugin"]
suppress_warnings = [
    "myst.header",  # the pages of experiments have tables under small headings
    "myst.xref_missing",  # links to files of the repository outside docs/; tests/use/test_docs.py follows all of them
]

# Docstrings mean the absolute value, not a substitution.
rst_prolog = ".. |upper| replace:: \\|upper\\|\n"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # options begin with two hyphens
nb_execution_mode = "off"  # the notebooks hold their outputs; `make notebooks` runs them anew

autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"exactsel {__version__}"
html_show_copyright = False
