"""`where`, `select`, `clip` and `nan_to_num`: elements chosen by conditions.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import builtins
from typing import Any, overload

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, resolved
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError, OperandError
from .binary_ufuncs import maximum, minimum
from .promotion import (
    broadcast_to_shape,
    check_arraylike,
    ensure_arraylike,
    promote_dtypes,
)
from .searching import nonzero
from .unary_ufuncs import isnan, isneginf, isposinf, to_bool


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Value: ...
@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Value, ...]: ...
@compound(static=("size",), frequent=True)
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of x where the condition is true, else of y. Shapes broadcast, dtypes of x and y promote.

    Without x and y: `nonzero(condition)`, with `size` and `fill_value`.

    Derivatives pass through the chosen elements only; but NaN times 0 is NaN, so an operation that is not defined for
    the others must not see them: ``where(x > 0, log(where(x > 0, x, 1)), 0)``.

    >>> x = jnp.array([-1.5, 0.5, 2.5])
    >>> jnp.where(x > 0, x, 0)
    Array([0. , 0.5, 2.5], dtype=float32)
    >>> jnp.where(x > 0)
    (Array([1, 2], dtype=int32),)
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise OperandError("where: either both or neither of the x and y arguments should be provided", "where")
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function: the result has the size of "
            "its operands"
        )
    check_arraylike("where", condition, x, y)
    try:
        pred = to_bool(as_value(condition))
        a, b = promote_dtypes(x, y)
    except ConcretizationTypeError as error:
        return error.of_elements(where, condition, x, y)
    if not pred.aval.shape:
        shape = lax.broadcast_shapes(a.aval.shape, b.aval.shape)
        a, b = broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)
    else:
        shape = lax.broadcast_shapes(pred.aval.shape, a.aval.shape, b.aval.shape)
        pred, a, b = (broadcast_to_shape(v, shape) for v in (pred, a, b))
    return lax.select(pred, a, b)


@compound(small=True)
def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Value:
    """Limited to [min, max]; either may be None or an array: shapes broadcast, dtypes promote. Not for complex numbers.

    >>> jnp.clip(jnp.array([-2, 0, 5]), 0, 3)
    Array([0, 0, 3], dtype=int32)
    >>> jnp.clip(jnp.array([-2, 0, 5]), min=jnp.array([-1, 1, 1]))
    Array([-1,  1,  5], dtype=int32)
    """
    check_arraylike("clip", *(v for v in (arr, min, max) if v is not None))
    result = as_value(arr)
    if builtins.any(dtypes.is_complex(dtypes.type_of(v)[0]) for v in (arr, min, max) if v is not None):
        raise ValueError("clip: Complex values have no ordering and cannot be clipped: clip their parts")
    if min is not None:
        result = maximum(min, result)
    if max is not None:
        result = minimum(max, result)
    return result


@compound(static=("copy",))
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Value:
    """NaN replaced by `nan`, infinities by `posinf` and `neginf` (default: the largest finite values). Integers stay.

    `copy` has no effect: arrays are immutable.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=99.0)
    Array([ 1.,  0., 99.], dtype=float32)
    """
    value = ensure_arraylike("nan_to_num", x)
    if not dtypes.is_inexact(value.aval.dtype):
        return value
    if dtypes.is_complex(value.aval.dtype):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (lax.real(value), lax.imag(value))]
        return lax.complex(*parts)
    largest = float(dtypes.finfo(value.aval.dtype).max)
    value = where(isnan(value), nan, value)
    value = where(isposinf(value), largest if posinf is None else posinf, value)
    result = where(isneginf(value), -largest if neginf is None else neginf, value)
    return lax.convert_element_type(result, result.aval.dtype)


@compound()
def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Value:
    """For each element, the choice with the first true condition; `default` if none is. Shapes broadcast, dtypes of the
    choices promote.

    condlist: boolean arrays; choicelist: as many arrays.

    >>> x = jnp.array([1, 5, 20])
    >>> jnp.select([x < 3, x < 10], [x, 10 * x], default=-1)
    Array([ 1, 50, -1], dtype=int32)
    """
    condlist, choicelist = resolved(condlist), resolved(choicelist)
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return as_value(result)
