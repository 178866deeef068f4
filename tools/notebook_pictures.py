#!/usr/bin/env python3
"""The pictures of docs/notebooks.md: cells of an executed notebook, as a browser shows them.

    python tools/notebook_pictures.py

Needs Jupyter (`pip install -e ".[docs]"`), Chromium and chromedriver.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.browser import browser  # noqa: E402
from support.notebook_pages import page_of  # noqa: E402

PICTURES = {
    "compiled": ("light", "compiled = ", ("HLO:", "memory:")),
    "diff": ("dark", 'compiled.diff("algebraic', ()),
}
"""By name: the theme, the beginning of the cell, and the beginnings of the parts that are unfolded."""
WIDTH = 1000

ONLY = """
const [begins, parts] = GIVEN;
for (const cell of document.querySelectorAll('.jp-Cell')) {
    const code = cell.querySelector('.jp-InputArea pre');
    if (!code || !code.textContent.startsWith(begins)) { cell.remove(); continue; }
    for (const part of cell.querySelectorAll('details'))
        if (parts.some(begin => part.querySelector('summary').textContent.startsWith(begin))) part.open = true;
}
return document.querySelector('main').getBoundingClientRect().height;
"""


def main() -> None:
    folder = ROOT / "docs" / "images" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, browser() as window:
        for name, (theme, begins, parts) in PICTURES.items():
            page = Path(temporary, f"{theme}.html")
            page.write_text(page_of("look_inside.ipynb", theme))
            window.resize(WIDTH, 600)
            window.open(page.as_uri())
            height = window.ask(ONLY.replace("GIVEN", json.dumps([begins, parts])))
            window.resize(WIDTH, int(height) + 160)  # the window's own edges
            (folder / f"{name}.png").write_bytes(window.picture())
            print(f"{folder / name}.png", height)


if __name__ == "__main__":
    main()
