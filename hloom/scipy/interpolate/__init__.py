"""`hloom.scipy.interpolate`: functions between points where they are known."""

from ...namespaces import publish as _publish
from . import grids
from .grids import (
    RegularGridInterpolator as RegularGridInterpolator,
)

__all__: list[str] = []
__all__ += grids.__all__

del grids

_publish(__name__)
