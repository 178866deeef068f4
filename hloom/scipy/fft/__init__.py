"""`hloom.scipy.fft`: cosine transforms."""

from ...namespaces import publish as _publish
from . import cosine
from .cosine import (
    dct as dct,
    dctn as dctn,
    idct as idct,
    idctn as idctn,
)

__all__: list[str] = []
__all__ += cosine.__all__

del cosine

_publish(__name__)
