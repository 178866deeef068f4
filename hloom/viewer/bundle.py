"""The page: its files, and the page with data, scripts and styles in one file.

The modules of JavaScript are written so that they can be put one after the other: imports are single lines at the top,
exports are words before declarations, and names at the top level differ. `docs/viewer.md` and the comments in
`page/index.html` say the same. Nothing in the single file comes from elsewhere, and its Content-Security-Policy lets
only these very texts run. The data is text in an element that no browser executes; every `<` in it is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
"""The media types of the files that a server sends; it sends no others."""
_IMPORT = re.compile(r'^import .* from "\./([a-z_]+\.js)";$', re.MULTILINE)
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="[^"]*">')
_STYLE = '<link rel="stylesheet" href="view.css">'
_LIBRARY = '<script src="dagre.min.js"></script>'
_MAIN = '<script type="module" src="main.js"></script>'


def read(name: str) -> str:
    """The text of one file of the page."""
    return (FOLDER / name).read_text(encoding="utf-8")


@lru_cache(1)
def names() -> frozenset[str]:
    """The files of the page that a browser may ask for."""
    return frozenset(path.name for path in FOLDER.iterdir() if path.suffix in TYPES)


def single_file(data: str, title: str) -> str:
    """The page as one file. `data`: JSON, as `model.to_text` writes it."""
    style, library, code = read("view.css"), read("dagre.min.js"), modules()
    for name, text in (("view.css", style), ("dagre.min.js", library), ("the modules", code)):
        end = "</style" if name == "view.css" else "</script"
        assert end not in text.lower() and "<!--" not in text, f"{name} cannot be a part of a page"
    policy = (
        f"default-src 'none'; script-src '{_hash(library)}' '{_hash(code)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        _STYLE: f"<style>{style}</style>",
        _LIBRARY: f"<script>{library}</script>",
        _MAIN: f'<script type="application/json" id="data">{inline(data)}</script>\n'
        f'<script type="module">{code}</script>',
        "<title>hloom view</title>": f"<title>{html.escape(title)} - hloom view</title>",
    }
    page = read("index.html")
    assert len(_POLICY.findall(page)) == 1 and all(page.count(part) == 1 for part in parts)
    page = _POLICY.sub(lambda _: f'<meta http-equiv="Content-Security-Policy" content="{policy}">', page)
    # One walk: a text that is put in is not looked at again.
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], page)


def inline(data: str) -> str:
    """JSON as the text of a script element: the same JSON, in which no tag or comment can begin or end."""
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def modules() -> str:
    """All modules one after the other, those that others import first."""
    order: dict[str, str] = {}

    def add(name: str, around: tuple[str, ...]) -> None:
        assert name not in around, f"the page's modules import each other: {' '.join((*around, name))}"
        if name in order:
            return
        text = read(name)
        for needed in _IMPORT.findall(text):
            add(needed, (*around, name))
        text = _IMPORT.sub("", text)
        order[name] = re.sub(r"^export ", "", text, flags=re.MULTILINE)

    add("main.js", ())
    return "\n".join(order.values())


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
