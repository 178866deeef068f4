"""The configuration of Sphinx. Nothing in a page comes from outside of the site: Furo uses the fonts of the system."""

from __future__ import annotations

from pathlib import Path

from hloom.version import __version__

project = "hloom"
copyright = "the authors of hloom, Apache 2.0"
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # `page.md#a-heading`, as the pages write it
exclude_patterns: list[str] = []
suppress_warnings = [
    "myst.header",  # a page may begin with a second level
    "ref.python",  # a signature names a type without its namespace, and several namespaces have it
]

html_theme = "furo"
html_title = f"hloom {__version__}"
html_static_path = ["_static"]
html_css_files = ["hloom.css"]
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_search_summary = False  # it fetches the pages that it found, which a browser refuses for files

add_module_names = False  # the title of a page of the reference is the namespace
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100
highlight_language = "text"
