"""The notebooks of examples/notebooks: stored without outputs, executed, and opened in a browser in both themes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.browser import browser, needs_browser
from support.html_checks import Checked
from support.notebook_pages import FOLDER, executed, page_of

NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_notebooks() -> None:
    assert "look_inside.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(name: str) -> None:
    text = (FOLDER / name).read_text()
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "as Jupyter writes it"
    for cell in cells(notebook):
        assert cell["outputs"] == [] and cell["execution_count"] is None and "execution" not in cell["metadata"]
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3", "that which every Jupyter has"


@pytest.fixture
def jupyter() -> None:
    for library in ("nbclient", "ipykernel", "nbconvert"):
        pytest.importorskip(library)


@pytest.mark.slow
@pytest.mark.usefixtures("jupyter")
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own libraries
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run_and_show_pictures(name: str) -> None:
    shown = 0
    for cell in cells(executed(name)):
        for output in cell["outputs"]:
            assert output["output_type"] in ("execute_result", "display_data"), (cell["source"], output)
            assert output["data"]["text/plain"], "for a terminal"
            checked = Checked(output["data"]["text/html"])
            assert "ipykernel_" not in checked.text, "cells have names"
            shown += "svg" in checked.tags
    assert shown >= 3


@needs_browser
@pytest.mark.slow
@pytest.mark.usefixtures("jupyter")
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own libraries
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_look_right_in_light_and_dark_pages(name: str, tmp_path: Path) -> None:
    """Text is legible on both: its colour is far from the colour behind it; nothing is wider than its cell."""
    with browser() as window:
        window.resize(1000, 900)
        for theme in ("light", "dark"):
            page = tmp_path / f"{theme}.html"
            page.write_text(page_of(name, theme))
            window.open(page.as_uri())
            assert window.errors() == []
            window.ask("document.querySelectorAll('.hloom details').forEach(part => { part.open = true; })")
            count, least = window.ask(_CONTRAST)
            assert count > 200 and least >= 4.5, f"{theme}: the least contrast of {count} texts is {least}"
            assert window.ask("return document.body.scrollWidth <= window.innerWidth"), "no page is scrolled sideways"


_CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function bright(under, colour, opacity) {  // the relative luminance of a colour over another, as WCAG 2 has it
    canvas.globalAlpha = 1; canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.globalAlpha = opacity; canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255);
    const linear = parts.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
const page = getComputedStyle(document.body).backgroundColor;
const spans = [...document.querySelectorAll('.hloom span, .hloom td, .hloom th, .hloom summary')];
const contrasts = spans.filter(e => e.textContent.trim()).map(e => {
    let opacity = 1, behind = 'transparent';
    for (let up = e; up && up.classList && !up.classList.contains('hloom'); up = up.parentElement) {
        opacity *= +getComputedStyle(up).opacity;
        if (behind === 'transparent' && !/, 0\\)$/.test(getComputedStyle(up).backgroundColor))
            behind = getComputedStyle(up).backgroundColor;
    }
    const paper = bright(page, behind, 1), ink = bright(page, getComputedStyle(e).color, opacity);
    return (Math.max(paper, ink) + 0.05) / (Math.min(paper, ink) + 0.05);
});
return [contrasts.length, Math.min(...contrasts)];
"""
