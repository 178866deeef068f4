"""`hloom.scipy.spatial.transform`: rotations of space."""

from ....namespaces import publish as _publish
from . import quaternions, rotation, slerp
from .rotation import (
    Rotation as Rotation,
)
from .slerp import (
    Slerp as Slerp,
)

__all__: list[str] = []
__all__ += rotation.__all__
__all__ += slerp.__all__

del quaternions, rotation, slerp

_publish(__name__)
