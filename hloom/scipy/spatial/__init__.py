"""`hloom.scipy.spatial`: geometry."""

import typing as _typing

from ...namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import transform

__all__ = ["transform"]

_publish(__name__, "transform")
