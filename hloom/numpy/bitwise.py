"""Counting and packing bits. Names and semantics follow NumPy."""

from __future__ import annotations

import numpy as np

from .. import lax
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .promotion import ensure_arraylike
from .unary_ufuncs import abs


@compound(small=True)
def bitwise_count(x: ArrayLike, /) -> Value:
    """The number of bits of |x| that are 1, as uint8.

    >>> jnp.bitwise_count(jnp.array([7, -3, 0]))
    Array([3, 2, 0], dtype=uint8)
    """
    value = ensure_arraylike("bitwise_count", x)
    if value.aval.dtype.kind == "b":
        return lax.convert_element_type(value, np.uint8)
    if not dtypes.is_integer(value.aval.dtype):
        what = value.aval.str_short()
        raise OperandError(f"bitwise_count takes integers, not {what}", "bitwise_count")
    return lax.convert_element_type(lax.population_count(abs(value)), np.uint8)


@compound(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Value:
    """Each 8 elements along an axis (of the flattened array if None) as the bits of a uint8; zeros at the end.

    bitorder: "big", the first element is the highest bit, or "little".

    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], dtype=uint8)
    """
    _check_bit_order("packbits", bitorder)
    x = ensure_arraylike("packbits", a)
    if not (dtypes.is_integer(x.aval.dtype) or x.aval.dtype.kind == "b"):
        what = x.aval.str_short()
        raise OperandError(f"Expected an input array of integer or boolean data type, not {what}", "bits")
    bits, place = _along(x != 0, axis)
    sizes = bits.aval.shape
    count = -(-sizes[place] // 8)
    wide = [(0, 8 * count - sizes[place] if d == place else 0, 0) for d in range(len(sizes))]
    padded = lax.pad(lax.convert_element_type(bits, np.uint8), np.uint8(0), wide)
    octets = lax.reshape(padded, (*sizes[:place], count, 8, *sizes[place + 1 :]))
    shifted = lax.shift_left(octets, _bit_numbers(octets.aval.shape, place + 1, bitorder))
    return lax.reduce_or(shifted, [place + 1])


@compound(static=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Value:
    """The bits of uint8 along an axis (of the flattened array if None), as uint8 with the values 0 and 1.

    count: how many to keep; if negative, how many to drop at the end. More than there are: zeros.

    >>> jnp.unpackbits(jnp.array([131], "uint8"))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    _check_bit_order("unpackbits", bitorder)
    x = ensure_arraylike("unpackbits", a)
    if x.aval.dtype != np.uint8:
        what = x.aval.str_short()
        raise OperandError(f"Expected an input array of unsigned byte data type, not {what}", "bits")
    octets, place = _along(x, axis)
    sizes = octets.aval.shape
    before, after = sizes[: place + 1], sizes[place + 1 :]
    bits = (*before, 8, *after)
    wide = lax.broadcast_in_dim(octets, bits, [d for d in range(len(bits)) if d != place + 1])
    apart = lax.shift_right_logical(wide, _bit_numbers(bits, place + 1, bitorder)) & np.uint8(1)
    size = 8 * sizes[place]
    flat = lax.reshape(apart, (*sizes[:place], size, *after))
    if count is None:
        return flat
    kept = count if count >= 0 else max(0, size + count)
    return lax.pad(flat, np.uint8(0), [(0, kept - size if d == place else 0, 0) for d in range(len(sizes))])


def _check_bit_order(name: str, order: str) -> None:
    if order not in ("little", "big"):
        raise ValueError(f"{name}: 'order' must be either 'little' or 'big', not {order!r}")


def _along(x: Value, axis: int | None) -> tuple[Value, int]:
    """The array, flattened if there is no axis, and the axis. The bits of a number go beside the axis, so that no
    element of the other axes moves."""
    if axis is None:
        return lax.reshape(x, (x.aval.size,)), 0
    return x, canonical_axis(axis, x.aval.ndim)


def _bit_numbers(shape: tuple[int, ...], axis: int, order: str) -> Value:
    index = lax.broadcasted_iota(np.uint8, shape, axis)
    return index if order == "little" else np.uint8(7) - index
