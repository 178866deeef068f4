"""The parts of the library above this folder that arrays and stages use. `hloom/array_functions.py` says where they
are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Library:
    """Functions that import a part when it is first needed."""

    load_functions: Callable[[], object]
    """Imports the functions behind operators and methods of arrays, which `use_functions` then receives."""
    load_jaxpr_view: Callable[[], Callable[..., Any]]
    """Returns view(computation, its captured values, types of its arguments, types of its results) -> a ClosedJaxpr."""


LIBRARY = Library()
