"""`hloom.numpy`: NumPy's functions on arrays and tracers, with JAX's promotion.

A family's file has the same name in every layer. Functions that need sort, gather, scatter or matrix decompositions are
missing, and using one raises an AttributeError that says so.
"""

from typing import Any as _Any

import numpy as _np

from ..lax import broadcast_shapes
from ..tracer.dtypes import finfo, iinfo, issubdtype, promote_types, result_type
from ..tracer.operators import ArrayBase as ndarray
from . import (
    binary,
    choose,
    creation,
    elementwise,
    indexing,
    linalg,
    methods,
    movement,
    promotion,
    queries,
    reduce,
    scalar_types,
)
from . import dot as _dot
from . import einsum as _einsum
from .binary import *
from .choose import *
from .creation import *
from .dot import *
from .einsum import *
from .elementwise import *
from .linalg.products import vecdot
from .movement import *
from .queries import *
from .reduce import *
from .scalar_types import *

__all__ = [
    "broadcast_shapes",
    "finfo",
    "iinfo",
    "issubdtype",
    "linalg",
    "ndarray",
    "promote_types",
    "result_type",
    "vecdot",
]
__all__ += binary.__all__
__all__ += choose.__all__
__all__ += creation.__all__
__all__ += _dot.__all__
__all__ += _einsum.__all__
__all__ += elementwise.__all__
__all__ += movement.__all__
__all__ += queries.__all__
__all__ += reduce.__all__
__all__ += scalar_types.__all__

del binary, choose, creation, elementwise, indexing, methods, movement, promotion, queries, reduce, scalar_types


def __getattr__(name: str) -> _Any:
    if not name.startswith("_") and hasattr(_np, name):
        raise AttributeError(
            f"hloom.numpy has no {name!r} in this version; numpy.{name} works on concrete arrays outside of traced code"
        )
    raise AttributeError(f"module 'hloom.numpy' has no attribute {name!r}")
