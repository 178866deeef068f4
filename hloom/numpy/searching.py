"""Where elements are not 0. Their number depends on values: outside of jit the result has that size, inside it is an
argument.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_numpy, as_value, rank_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.sharding.placement import beside
from ..tracer.tracer import Tracer
from .concrete_values import SIZE_ADVICE, known_size, unknown_array
from .promotion import ensure_arraylike, promote_dtypes
from .selections import Selection
from .unary_ufuncs import to_bool


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Value, ...]:
    """The indices of elements that are not 0, as an array for each dimension. Under jit, `size` is required, unless
    only functions of single elements and reductions, or an index, take the result.

    Args:
      size: how many there are in the result: those above it are cut off.
      fill_value: the fill value if there are fewer, a scalar or one for each dimension; by default 0.

    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]))[0].tolist()
    [1, 3]
    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]), size=3, fill_value=-1)[0].tolist()
    [1, 3, -1]
    """
    x = ensure_arraylike("nonzero", a)
    if not x.aval.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed\n  Use hloom.numpy.atleast_1d first.")
    if size is None:
        integer = dtypes.default_int()
        if isinstance(x, Tracer):
            known = x.to_concrete_value()
            if known is None:
                return _unknown(x, integer)
            x = as_value(known)
        parts = np.nonzero(np.asarray(to_bool(x)))
        return tuple(beside(array_from_numpy(part.astype(integer, copy=False)), x) for part in parts)
    count = known_size("nonzero", size)
    found = _of_size(x, count)
    return found if fill_value is None else _filled(x, found, _fill_values(fill_value, x.aval.ndim))


def _unknown(x: Tracer, integer: np.dtype[Any]) -> tuple[Any, ...]:
    """The indices as elements whose number is not known: Selections."""
    mask, error = to_bool(x), unknown_array("nonzero", x, SIZE_ADVICE)
    shape = x.aval.shape
    places = [lax.broadcasted_iota(integer, shape, d) for d in range(len(shape))]
    return tuple([Selection.of(p, 0, 0, mask, error) for p in places])


@compound(static=("size",))
def _of_size(x: Value, size: int) -> tuple[Value, ...]:
    """The rank of each element among those that are not 0 says where its index is written."""
    integer = dtypes.default_int()
    if not size or not x.aval.size:
        return tuple(lax.full((size,), 0, integer) for _ in x.aval.shape)
    mask = lax.reshape(to_bool(x), (x.aval.size,))
    rank = lax.cumsum(lax.convert_element_type(mask, np.int32)) - 1
    place = lax.select(mask, rank, lax.full_like(rank, size))
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    flat = lax.scatter(
        lax.full((size,), 0, integer), lax.expand_dims(place, [1]), lax.iota(integer, x.aval.size), numbers, mode="drop"
    )
    strides = [math.prod(x.aval.shape[d + 1 :]) for d in range(x.aval.ndim)]
    return tuple(flat // stride % n for stride, n in zip(strides, x.aval.shape, strict=True))


def _fill_values(fill_value: Any, rank: int) -> tuple[Any, ...]:
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * rank
    if len(values) != rank or any(rank_of(v) for v in values):
        raise ValueError(f"fill_value must be a scalar or a tuple of length {rank}; got {fill_value}")
    return values


@compound()
def _filled(x: Value, found: tuple[Value, ...], values: tuple[Any, ...]) -> tuple[Value, ...]:
    count = lax.reduce_sum(lax.convert_element_type(to_bool(x), np.int32), range(x.aval.ndim))
    result = []
    for index, value in zip(found, values, strict=True):
        entry, fill = promote_dtypes(index, value)
        beyond = lax.iota(np.int32, index.aval.size) >= count
        result.append(lax.select(beyond, lax.broadcast(fill, index.aval.shape), entry))
    return tuple(result)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Value:
    """The indices of elements that are not 0 in the flattened array, int32. `size` and `fill_value`: see `nonzero`.

    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    x = ensure_arraylike("flatnonzero", a)
    return nonzero(lax.reshape(x, (x.aval.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Value:
    """The indices of elements that are not 0, one a row. `size` and `fill_value`: see `nonzero`.

    >>> jnp.argwhere(jnp.eye(2))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    x = ensure_arraylike("argwhere", a)
    flat = x if x.aval.ndim else lax.reshape(x, (1,))
    columns = nonzero(flat, size=size, fill_value=fill_value)
    if not x.aval.ndim:
        return lax.full((columns[0].aval.size, 0), 0, dtypes.default_int())
    return lax.concatenate([lax.expand_dims(c, [1]) for c in promote_dtypes(*columns)], 1)
