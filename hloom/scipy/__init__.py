"""`hloom.scipy`: SciPy's functions on arrays and tracers. Its parts are loaded when they are first used."""

import typing as _typing

from ..namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import linalg

__all__ = ["linalg"]

_publish(__name__, "linalg")
