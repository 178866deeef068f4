"""Showing something in a notebook that is running, where a function prints otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def in_notebook() -> bool:
    """True in a cell of Jupyter, VS Code or Colab: in IPython with a kernel. IPython is not imported for the answer."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def show(text: Callable[[], str], html: Callable[[], str]) -> None:
    """Show something below the cell that runs: `html`, and `text` where there is no browser."""
    display: Any = import_module("IPython.display").display
    display({"text/plain": text(), "text/html": html()}, raw=True)
