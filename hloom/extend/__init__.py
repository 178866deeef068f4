"""`hloom.extend`: for libraries that add operations. See docs/primitives.md."""

import typing as _typing

from ..namespaces import publish as _publish
from . import core, primitive, protocol
from .primitive import Linear, Primitive

if _typing.TYPE_CHECKING:
    from . import linear_util, random, source_info_util

__all__ = ["Linear", "Primitive", "core", "linear_util", "random", "source_info_util"]

del primitive, protocol

_publish(__name__, "linear_util", "random", "source_info_util")
