"""The treatment of arguments by functions that draw: the dtype, the shape, the parameters of a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from ..lax.movement import canonical_shape
from ..numpy.promotion import broadcast_to_shape
from ..tracer import dtypes
from ..tracer.arrays.array import shape_of
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .keys import single_key


def float_dtype(dtype: DTypeLike | None, what: str) -> np.dtype[Any]:
    """The dtype of the numbers that `what` draws, which are floating-point; OperandError (a ValueError) for others."""
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "random")
    if not dtypes.is_floating(found):
        raise OperandError(
            f"{what} makes floating-point numbers: dtype argument to `{what}` must be a float dtype, got {found.name}",
            what,
        )
    return found


def integer_dtype(dtype: DTypeLike | None, what: str) -> np.dtype[Any]:
    """The dtype of the integers that `what` draws; OperandError (a TypeError and a ValueError) for others."""
    found = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, what)
    if not dtypes.is_integer(found):
        raise OperandError(
            f"{what} makes integers: dtype argument to `{what}` must be an int dtype, got {found.name}", what
        )
    return found


def sized(what: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The result's shape: the given one, if the parameters broadcast to it, or else the parameters' broadcast shape."""
    own = lax.broadcast_shapes(*[shape_of(p) for p in parameters])
    if shape is None:
        return own
    sizes = canonical_shape(shape)
    if lax.broadcast_shapes(own, sizes) != sizes:
        raise OperandError(
            f"{what}: parameters of shape {own} do not broadcast to {sizes}: the shape argument must be the result of "
            "broadcasting, and parameter shapes must be broadcast-compatible with it",
            what,
        )
    return sizes


def of_parameters(
    what: str, key: Any, dtype: DTypeLike | None, shape: Any, *parameters: Any
) -> tuple[Value, np.dtype[Any], tuple[int, ...], list[Value]]:
    """One key, the dtype and the shape of the numbers that `what` draws, and its parameters in that dtype and shape."""
    one, found, sizes = single_key(what, key), float_dtype(dtype, what), sized(what, shape, *parameters)
    return one, found, sizes, spread(found, sizes, *parameters)


def spread(dtype: np.dtype[Any], sizes: tuple[int, ...], *parameters: Any) -> list[Value]:
    """Parameters as arrays of one dtype and shape."""
    return [broadcast_to_shape(lax.convert_element_type(p, dtype), sizes) for p in parameters]
