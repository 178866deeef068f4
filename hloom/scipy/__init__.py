"""`hloom.scipy`: SciPy's functions on arrays and tracers. Its parts are loaded when they are first used."""

import typing as _typing

from ..namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from . import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]

_publish(__name__, *__all__)
