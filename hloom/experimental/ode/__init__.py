"""`hloom.experimental.ode`: ordinary differential equations."""

from ...namespaces import publish as _publish
from . import dopri
from .dopri import (
    odeint as odeint,
)

__all__: list[str] = []
__all__ += dopri.__all__

del dopri

_publish(__name__)
