"""The sources of the site: the pages of docs/ with links that stay inside of it, and their order.

The pages of docs/ are read where they are, too, so they link to files of the repository (`../hlo/ir.py`). The site does
not have these: such a link becomes the name of the file.
"""

from __future__ import annotations

import os
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

from . import operations, reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OF_THE_ROOT = {
    "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
    "hloom/errors.md": "errors.md",  # `hloom explain` prints it
}  # fmt: skip
"""Pages that are not in docs/, and their names in the site."""
_ELSEWHERE = {
    **OF_THE_ROOT,
    "README.md": "index.md",  # the site has a front page of its own
    "tools/website/reference.py": "reference/index.md",  # the file that makes it
}
"""Files that a page links to, and the pages of the site to which these links lead."""
SECTIONS = (
    ("Start", "quickstart tour examples questions"),
    (
        "Tutorials",
        "tutorials/from_jax tutorials/loops tutorials/gradients tutorials/custom_derivatives tutorials/finding_nans "
        "tutorials/profiling tutorials/many_devices tutorials/shipping_to_c tutorials/shipping_to_the_browser "
        "tutorials/reading_hlo tutorials/writing_a_pass tutorials/layouts_and_tiles tutorials/schedules tutorials/*",
    ),
    ("Guides", "*"),
    ("How it works", "architecture architecture/*"),
    ("Reference", "reference/index operations/index errors differences namespaces ops settings"),
    ("The project", "measured public_api contributing changelog security"),
)
"""The sections, and patterns of the pages in each; a page is in that with the longest pattern, so a new one of docs/ is
a guide. The pages of one pattern are in the order of their names."""

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]\n]*(?:\n[^\]\n]+)?)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")


def with_links_inside(text: str, page: str) -> str:
    """A page of the repository, as a page of the site: `page` is its path in the repository."""

    def inside(link: re.Match[str]) -> str:
        picture, words, target, fragment = link.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if path == "README.md":
            fragment = ""
        if path in _ELSEWHERE:
            path = f"docs/{_ELSEWHERE[path]}"
        elif not path.startswith("docs/") or not (ROOT / path).is_file():
            return f"`{target}`" if words.strip("`") == target else f"{words} (`{path}`)"
        own = f"docs/{OF_THE_ROOT[page]}" if page in OF_THE_ROOT else page
        return f"{picture}[{words}]({os.path.relpath(path, os.path.dirname(own))}{fragment or ''})"

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(inside, part) for part in parts[::2]]
    return "".join(parts)


def sources() -> dict[str, str]:
    """The path of each page of the site, and its Markdown."""
    found = {p.relative_to(DOCS).as_posix(): f"docs/{p.relative_to(DOCS).as_posix()}" for p in DOCS.rglob("*.md")}
    found |= {site: page for page, site in OF_THE_ROOT.items()}
    made = {path: with_links_inside((ROOT / page).read_text(), page) for path, page in sorted(found.items())}
    made |= reference.pages() | operations.pages()
    made["index.md"] += _contents([path.removesuffix(".md") for path in made])
    return made


def sections(pages: list[str]) -> dict[str, list[str]]:
    """The pages of each section, in order, without the front page and those that the reference has below its own."""
    patterns = [(section, pattern) for section, several in SECTIONS for pattern in several.split()]
    order: dict[str, list[tuple[int, str]]] = {section: [] for section, _ in SECTIONS}
    for page in pages:
        if page == "index" or (page.startswith(("reference/", "operations/")) and not page.endswith("/index")):
            continue
        section, pattern = max((row for row in patterns if fnmatch(page, row[1])), key=lambda row: len(row[1]))
        order[section].append((patterns.index((section, pattern)), page))
    return {section: [page for _, page in sorted(rows)] for section, rows in order.items()}


def _contents(pages: list[str]) -> str:
    """The directives that make the navigation."""
    parts = [
        "\n".join([f"```{{toctree}}\n:hidden:\n:caption: {section}\n", *inner, "```"])
        for section, inner in sections(pages).items()
    ]
    return "\n" + "\n\n".join(parts) + "\n"


def write(folder: Path) -> None:
    """Write the sources to a folder; pages that did not change keep their times, so Sphinx does not read them again."""
    wanted = sources()
    for path, text in wanted.items():
        file = folder / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for file in folder.rglob("*.md"):
        if file.relative_to(folder).as_posix() not in wanted:
            file.unlink()
    shutil.copytree(DOCS / "images", folder / "images", dirs_exist_ok=True)
