"""Sphinx configuration: MyST pages, stored notebook outputs, references generated from the code."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

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
exclude_patterns = ["_build", "jupyter_execute", "example_plugin", "development"]
suppress_warnings = [
    "myst.xref_missing",  # links to files of the repository outside docs/; tests/use/test_docs.py follows all of them
]

# Docstrings mean absolute values, not substitutions.
rst_prolog = ".. |upper| replace:: \\|upper\\|\n.. |value| replace:: \\|value\\|\n"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # options begin with two hyphens
nb_execution_mode = "off"  # the notebooks hold their outputs; `make notebooks` runs them anew

autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_typehints_description_target = "documented_params"  # docstrings say what a field or a result is
autodoc_type_aliases = {name: name for name in ("FloatArray", "IntArray", "BoolArray", "StateArray", "GroupSpec")}
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_use_param = False  # parameters that share a description stay in one line

html_theme = "furo"
html_title = f"exactsel {__version__}"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # which browsers draw by themselves, without a script and without a network


def setup(app: Any) -> None:
    """Formulas as MathML."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_writes("inline"), None), block_renderers=(_writes("block"), None)
    )


def _writes(display: str) -> Any:
    """What writes a formula and leaves its text alone."""

    def write(translator: Any, node: Any) -> None:
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return write
