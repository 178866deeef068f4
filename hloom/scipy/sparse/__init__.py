"""`hloom.scipy.sparse`: solvers of linear systems. Sparse arrays are in `hloom.experimental.sparse`."""

import typing as _typing

from ...namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import linalg

__all__ = ["linalg"]

_publish(__name__, "linalg")
