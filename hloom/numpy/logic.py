"""Questions about arrays and dtypes that are answered while tracing: sizes and kinds. And the kinds of elements, and
whether all are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, resolved, shape_of
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .array_creation import asarray
from .binary_ufuncs import equal
from .promotion import (
    canonical_axes,
    check_arraylike,
    ensure_arraylike,
    promote,
    promote_inexact,
)
from .unary_ufuncs import abs, isfinite, isnan


def ndim(a: Any) -> int:
    """The number of dimensions of an array, a number or a nested sequence, as a Python integer.

    >>> jnp.ndim(jnp.ones((2, 3))), jnp.ndim(5)
    (2, 0)
    """
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of all dimensions, a tuple of Python integers: known while tracing too.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return a.shape if hasattr(a, "shape") else shape_of(a)


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or of those along one axis or several axes, as a Python integer. ValueError for an axis
    that is none.

    >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
    (6, 3)
    """
    sizes = shape(a)
    return math.prod([sizes[d] for d in canonical_axes(axis, len(sizes))])


def isscalar(element: Any) -> bool:
    """True for numbers and arrays without dimensions, where NumPy says False of the latter.

    >>> jnp.isscalar(1.5), jnp.isscalar(jnp.array(1.5)), jnp.isscalar(jnp.ones(1))
    (True, True, False)
    """
    if isinstance(element, list | tuple):
        return False
    return bool(np.isscalar(element)) or getattr(resolved(element), "ndim", None) == 0


def iscomplexobj(x: Any) -> bool:
    """True if the dtype of an array, a number or a sequence is complex, for any imaginary parts.

    >>> jnp.iscomplexobj(jnp.array([1, 2], complex)), jnp.iscomplexobj(jnp.ones(2))
    (True, False)
    """
    if x is None:
        return False
    try:
        dtype = x.dtype
    except AttributeError:
        dtype = asarray(x).aval.dtype  # a sequence may hold traced values
    return bool(dtype.kind == "c")


def isrealobj(x: Any) -> bool:
    """True if the dtype of an array, a number or a sequence is not complex.

    >>> jnp.isrealobj(jnp.ones(2)), jnp.isrealobj(1j)
    (True, False)
    """
    return not iscomplexobj(x)


@compound(small=True)
def iscomplex(x: ArrayLike) -> Value:
    """True where the imaginary part is not 0. Booleans of the shape of x.

    >>> jnp.iscomplex(jnp.array([1 + 1j, 2]))
    Array([ True, False], dtype=bool)
    """
    value = ensure_arraylike("iscomplex", x)
    if not dtypes.is_complex(value.aval.dtype):
        return lax.full_like(value, False, np.bool_)
    return lax.ne(lax.imag(value), lax.full_like(lax.imag(value), 0))


@compound(small=True)
def isreal(x: ArrayLike) -> Value:
    """True where the imaginary part is 0. Booleans of the shape of x.

    >>> jnp.isreal(jnp.array([1 + 1j, 2]))
    Array([False,  True], dtype=bool)
    """
    check_arraylike("isreal", x)
    return lax.bitwise_not(iscomplex(x))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Value:
    """True if shapes and all elements are equal, as a boolean array without dimensions; NaN equals NaN only with
    `equal_nan`.

    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1.0, 2.0])), jnp.array_equal(jnp.ones(2), jnp.ones((1, 2)))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    x, y = asarray(a1), asarray(a2)
    if x.aval.shape != y.aval.shape:
        return as_value(np.asarray(False))
    same = equal(x, y)
    if equal_nan:
        same = same | (isnan(x) & isnan(y))
    return lax.reduce_and(same, range(same.aval.ndim))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Value:
    """True if the shapes broadcast to one another and all elements are then equal, as a boolean array without
    dimensions.

    >>> jnp.array_equiv(jnp.array([1, 1]), 1), jnp.array_equiv(jnp.ones(2), jnp.ones(3))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    x, y = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(x.aval.shape, y.aval.shape)
    except ValueError:
        return as_value(np.asarray(False))
    same = equal(x, y)
    return lax.reduce_and(same, range(same.aval.ndim))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether NumPy converts one dtype, or the dtype of an array, to another under a rule ("safe", "same_kind", ...).

    >>> jnp.can_cast(jnp.int32, jnp.int64), jnp.can_cast(jnp.float32, jnp.int32)
    (True, False)
    """
    given = from_.dtype if isinstance(from_, ArrayBase) else from_
    return bool(np.can_cast(given, np.dtype(to), casting))  # type: ignore[arg-type]


_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", another dtype, or one of a tuple of these.

    >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int8, ("bool", "unsigned integer"))
    (True, False)
    """
    own = np.dtype(dtype)
    found = False
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, str) and each in _KINDS:
            found |= any(dtypes.issubdtype(own, k) for k in _KINDS[each])
            continue
        try:
            found |= own == np.dtype(each)
        except TypeError:
            raise OperandError(
                f"isdtype: a kind is a dtype, or one of {sorted(_KINDS)}, not {each!r}", "isdtype"
            ) from None
    return found


@compound(static=("equal_nan",))
def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """|a - b| <= atol + rtol * |b| for each element, booleans; equal infinities are close, NaN only with `equal_nan`.

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

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.0]))
    Array(True, dtype=bool)
    """
    close = isclose(a, b, rtol, atol, equal_nan)
    return lax.reduce_and(close, range(close.aval.ndim))
