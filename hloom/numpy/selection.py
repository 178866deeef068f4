"""Choosing elements, comparing arrays as a whole, and changing dtypes.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import builtins
from typing import Any, overload

import numpy as np

from .. import lax
from ..hlo.element_type import element_type_of
from ..tracer import dtypes
from ..tracer.arrays.array import Array, as_value, resolved
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.source import user_line
from .binary_ufuncs import equal, maximum, minimum
from .promotion import (
    broadcast_to_shape,
    check_arraylike,
    promote,
    promote_dtypes,
    promote_inexact,
    strong,
)
from .searching import nonzero
from .unary_ufuncs import abs, isfinite, isnan, isneginf, isposinf, to_bool


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Value: ...
@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Value, ...]: ...
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

    >>> import hloom.numpy as jnp
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
        raise OperandError(
            f"where: either both or neither of the x and y arguments should be provided\n  at {user_line()}", "where"
        )
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function: the result has the size of "
            f"its operands\n  at {user_line()}"
        )
    check_arraylike("where", condition, x, y)
    pred = to_bool(as_value(condition))
    a, b = promote_dtypes(x, y)
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

    >>> import hloom.numpy as jnp
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


@compound(static=("equal_nan",))
def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """|a - b| <= atol + rtol * |b| for each element, booleans; equal infinities are close, NaN only with `equal_nan`.

    >>> import hloom.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 1.1, jnp.nan]), jnp.array([1.000001, 1.0, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x, y = promote("isclose", a, b)
    if x.aval.is_extended:
        return equal(x, y)
    if not dtypes.is_inexact(x.aval.dtype):
        x, y = promote_inexact("isclose", x, y)
    near = isfinite(x) & isfinite(y) & (abs(x - y) <= abs(y) * rtol + atol)
    close = near | (x == y)
    return close | (isnan(x) & isnan(y)) if equal_nan else close


@compound(static=("equal_nan",))
def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """True if all elements are close, as a boolean array without dimensions. Arguments: see `isclose`.

    >>> import hloom.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    """
    close = isclose(a, b, rtol, atol, equal_nan)
    return lax.reduce_and(close, range(close.aval.ndim))


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Value:
    """x with another dtype, strongly typed. Floats are cut towards 0 on the way to integers, and those that do not fit
    become the nearest that does.

    Complex numbers drop their imaginary part, but for bool, which says whether they are not 0. float64 and int64 are
    narrowed, with a warning, unless x64 is on. `copy`: another array also where nothing changes.

    >>> import hloom.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.7, 0.0]), int)
    Array([ 1, -1,  0], dtype=int32)
    >>> jnp.astype(jnp.array([1.7, -1.7, 0.0]), bool)
    Array([ True,  True, False], dtype=bool)
    """
    check_arraylike("astype", x)
    value = as_value(x)
    target = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "astype")
    found = to_bool(value) if target == dtypes.bool_ else lax.convert_element_type(value, target)
    return copied(value) if copy and found is value else found


def copied(x: Value) -> Value:
    """Another array, with memory of its own; while a program is traced it is the same value."""
    return x.__copy__() if isinstance(x, Array) else x


def byteswap(x: ArrayLike) -> Value:
    """The same elements with their bytes in the opposite order; each part of a complex number separately."""
    value = as_value(x)
    dtype = value.aval.dtype
    if dtypes.is_complex(dtype):
        return lax.complex(byteswap(lax.real(value)), byteswap(lax.imag(value)))
    if dtype.itemsize == 1:
        return value
    swapped = lax.rev(lax.bitcast_convert_type(value, np.uint8), [value.aval.ndim])
    return lax.bitcast_convert_type(swapped, dtype)


def view(x: ArrayLike, dtype: Any = None, type: None = None) -> Value:
    """The same bits as another dtype; the last dimension changes size with the width.

    The low bits of an element come first. A boolean is a byte; one that is not 0 is true. ValueError if the bits of the
    last dimension do not make whole elements, or if there is none and the width changes.

    >>> import hloom.numpy as jnp
    >>> jnp.array([1.0, -2.0]).view(jnp.int32)
    Array([ 1065353216, -1073741824], dtype=int32)
    """
    if type is not None:
        raise UnsupportedError(f"view: there is one class of arrays, so that type must be None\n  at {user_line()}")
    value = as_value(x)
    if dtype is None:
        return value
    new, old = dtypes.requested_dtype(dtype, "view"), value.aval.dtype
    if new is old:
        return value
    width, shape = _bits(new), value.aval.shape
    if width != _bits(old) and (not shape or shape[-1] * _bits(old) % width):
        times = f", {shape[-1]} times," if shape else ""
        raise OperandError(
            f"view of {value.aval.str_short()} as {new.name}: the {_bits(old)} bits of an element{times} do not make "
            f"whole elements of {width} bits\n  at {user_line()}",
            "view",
        )
    if not shape:
        return lax.reshape(view(lax.reshape(value, (1,)), new), ())
    if old.kind == "b":
        value = lax.convert_element_type(value, np.uint8)
    elif old.kind == "c":
        both = [lax.expand_dims(part, [len(shape)]) for part in (lax.real(value), lax.imag(value))]
        value = _split_last(lax.concatenate(both, len(shape)))
    if new.kind == "b":
        return lax.ne(_same_bits(value, np.dtype(np.uint8)), np.uint8(0))
    if new.kind == "c":
        parts = _same_bits(value, dtypes.real_of(new))
        sizes = parts.aval.shape
        pairs = lax.reshape(parts, (*sizes[:-1], sizes[-1] // 2, 2))
        return lax.complex(*[lax.index_in_dim(pairs, k, len(sizes), False) for k in range(2)])
    return _same_bits(value, new)


def _bits(dtype: np.dtype[Any]) -> int:
    """The bits of an element in a view: a boolean has 8."""
    element = element_type_of(dtype)
    return 8 * element.byte_width if element.bit_width > 8 or dtype.kind in "bc" else element.bit_width


def _split_last(x: Value) -> Value:
    """The last two dimensions as one."""
    sizes = x.aval.shape
    return lax.reshape(x, (*sizes[:-2], sizes[-2] * sizes[-1]))


def _same_bits(x: Value, new: np.dtype[Any]) -> Value:
    """A view of numbers that are neither boolean nor complex as others that are neither."""
    before, after = _bits(x.aval.dtype), _bits(new)
    if before >= after:
        bits = lax.bitcast_convert_type(x, new)
        return bits if before == after else _split_last(bits)
    ratio, shape = after // before, x.aval.shape
    return lax.bitcast_convert_type(lax.reshape(x, (*shape[:-1], shape[-1] // ratio, ratio)), new)


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

    >>> import hloom.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=99.0)
    Array([ 1.,  0., 99.], dtype=float32)
    """
    check_arraylike("nan_to_num", x)
    value = as_value(x)
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

    >>> import hloom.numpy as jnp
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


@compound(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Value:
    """The polynomial with coefficients p, highest power first, at x: p[0] x**(n-1) + ... + p[n-1], in the shape of x.

    `unroll` is for JAX's sake: no loop is left.

    >>> import hloom.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 0, -1]), jnp.array([2, 3]))
    Array([3, 8], dtype=int32)
    """
    check_arraylike("polyval", p, x)
    coefficients, point = promote_dtypes(p, x)
    result = lax.full_like(point, 0)
    for k in range(coefficients.aval.shape[0]):
        result = result * point + lax.index_in_dim(coefficients, k, 0, False)
    return strong(result)
