"""`hloom.experimental.jet`: derivatives of higher order along a curve."""

from ...namespaces import publish as _publish
from . import taylor
from .taylor import (
    fact as fact,
    jet as jet,
    jet2 as jet2,
)

__all__: list[str] = []
__all__ += taylor.__all__

del taylor

_publish(__name__)
