"""`hloom.scipy.integrate`: integrals of samples."""

from ...namespaces import publish as _publish
from . import samples
from .samples import (
    trapezoid as trapezoid,
)

__all__: list[str] = []
__all__ += samples.__all__

del samples

_publish(__name__)
