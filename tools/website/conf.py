"""The configuration of Sphinx. Nothing in a page comes from outside of the site: Furo uses the fonts of the system."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment

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


def setup(app: Sphinx) -> None:
    """Two steps of Sphinx took most of the time of a build, and gave the same for each page."""
    app.connect("html-page-context", _short_navigation, priority=100)  # before Furo's
    app.add_domain(Python, override=True)


def _short_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give Furo a function for its navigation that copies titles alone. Sphinx' own copies the contents of all pages,
    thousands of functions, for each page, and removes what is no title."""
    whole = context["toctree"]

    def toctree(**options: Any) -> Any:
        contents = app.env.tocs
        app.env.tocs = _titles(app.env)
        try:
            return whole(**options)
        finally:
            app.env.tocs = contents

    context["toctree"] = toctree


@cache
def _titles(env: BuildEnvironment) -> dict[str, nodes.bullet_list]:
    """The contents of each page, reduced to its title and to the pages below it."""
    found = {page: contents.deepcopy() for page, contents in env.tocs.items()}
    for contents in found.values():
        for item in contents.children:
            below = [tree for inner in item.children[1:] for tree in inner.findall(addnodes.toctree)]
            del item[1:]
            if below:
                item += nodes.bullet_list("", *below)
    return found


class Python(PythonDomain):
    """Names of Python, of which each is looked up once. Most are types in signatures that no page describes: Sphinx
    compares such a name with the ends of all names."""

    def find_obj(self, env: BuildEnvironment, *wanted: Any, **options: Any) -> list[tuple[str, ObjectEntry]]:
        key = (*wanted, *options.items())
        if key not in _found:
            _found[key] = super().find_obj(env, *wanted, **options)
        return _found[key]


_found: dict[Any, list[tuple[str, ObjectEntry]]] = {}
"""What `Python` found. It is asked when all pages have been read."""
