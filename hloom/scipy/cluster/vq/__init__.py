"""`hloom.scipy.cluster.vq`: vector quantization."""

from ....namespaces import publish as _publish
from . import nearest
from .nearest import (
    vq as vq,
)

__all__: list[str] = []
__all__ += nearest.__all__

del nearest

_publish(__name__)
