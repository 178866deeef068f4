"""The notebook that is running: showing something in it, and the names of its cells."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_CELL = r"(?:{folder}[\\/]|\S*\b)(ipykernel_\d+)[\\/](\d+\.py):(\d+)"
"""A line of a cell: IPython compiles each cell as a file of its own, in a folder for temporary files. Paths of Windows
have backslashes, and often spaces."""


def _shell() -> Any:
    """IPython's shell, if there is one. IPython is not imported for the answer."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def in_notebook() -> bool:
    """True in a cell of Jupyter, VS Code or Colab: in IPython with a kernel."""
    return hasattr(_shell(), "kernel")


def naming_cells(text: str) -> str:
    """The text with cells of the notebook in place of their files, as in IPython's tracebacks: ``In[2], line 3``."""
    if "ipykernel_" not in text:
        return text
    return re.sub(_CELL.format(folder=re.escape(tempfile.gettempdir())), _cell, text)


def _cell(found: re.Match[str]) -> str:
    folder, file, line = found.groups()
    compiler = getattr(_shell(), "compile", None)
    named = compiler and compiler.format_code_name(str(Path(tempfile.gettempdir(), folder, file)))
    return f"{named[1]}, line {line}" if named else found[0]


def show(text: Callable[[], str], html: Callable[[], str]) -> None:
    """Show something below the cell that runs: `html`, and `text` where there is no browser."""
    display: Any = import_module("IPython.display").display
    display({"text/plain": text(), "text/html": html()}, raw=True)
