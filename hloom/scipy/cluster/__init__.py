"""`hloom.scipy.cluster`: clusters of points."""

import typing as _typing

from ...namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import vq

__all__ = ["vq"]

_publish(__name__, "vq")
