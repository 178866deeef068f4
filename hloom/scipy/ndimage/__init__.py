"""`hloom.scipy.ndimage`: arrays as samples of functions of space."""

from ...namespaces import publish as _publish
from . import interpolation
from .interpolation import (
    map_coordinates as map_coordinates,
)

__all__: list[str] = []
__all__ += interpolation.__all__

del interpolation

_publish(__name__)
