"""Notebooks of examples/notebooks: executed, and as pages for a browser."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
_NETWORK = re.compile(
    r"<script[^>]*\bsrc=.*?</script>|<!-- Load mathjax -->.*?<!-- End of mathjax configuration -->", re.DOTALL
)
"""Parts of nbconvert's page that load scripts from the network: formulas and widgets, which these notebooks lack."""


@cache
def executed(name: str) -> Any:
    """The notebook with the outputs of its cells. CellExecutionError if a cell raises."""
    import nbclient
    import nbformat

    notebook = nbformat.read(FOLDER / name, as_version=4)
    place = {"metadata": {"path": FOLDER}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    return notebook


def page_of(name: str, theme: str) -> str:
    """The executed notebook as HTML that looks as in JupyterLab; `theme`: "light" or "dark"."""
    from nbconvert import HTMLExporter

    html: str = HTMLExporter(template_name="lab", theme=theme).from_notebook_node(executed(name))[0]
    return _NETWORK.sub("", html)
