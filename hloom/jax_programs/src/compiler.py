"""jax._src.compiler: a function that is called before each program is compiled. Libraries put another there."""

import sys as _sys
from types import SimpleNamespace as _SimpleNamespace
from typing import Any as _Any

from ...namespaces import publish as _publish
from ...tracer.execution import BEFORE_COMPILING as _BEFORE_COMPILING

__all__ = ["backend_compile_and_load"]


def backend_compile_and_load(backend: _Any) -> None:
    """Called before a program is compiled; `backend.platform` is "cpu". A replacement of it may raise an error."""


_HERE = _sys.modules[__name__]
_CPU = _SimpleNamespace(platform="cpu")


def _ask() -> None:
    """Call the function, or its replacement. Where JAX itself is imported, its module has that name."""
    found = _sys.modules.get("jax._src.compiler", _HERE)
    if found is _HERE or type(found).__module__.startswith(__name__.partition(".")[0]):
        found.backend_compile_and_load(_CPU)


_BEFORE_COMPILING.append(_ask)

_publish(__name__)
