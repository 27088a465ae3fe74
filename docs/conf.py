"""Sphinx's settings: Markdown pages, built without warnings (``make docs``)."""

from scheduler import __version__

project = "Podium"
author = "the Podium authors"
copyright = "the Podium authors, Apache-2.0"  # noqa: A001  Sphinx's name for it
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "generate"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = True
napoleon_use_ivar = True
default_role = "literal"  # names stand in single backquotes in docstrings

html_theme = "furo"
html_title = f"Podium {release}"
html_static_path = ["_static"]
