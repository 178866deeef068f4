"""Other dtypes of the same values (`astype`), and of the same bits (`view`, `byteswap`).

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..hlo.element_type import element_type_of
from ..tracer import dtypes
from ..tracer.arrays.array import Array, as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.sharding.placement import in_asked_place
from .promotion import (
    ensure_arraylike,
)
from .unary_ufuncs import to_bool


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Value:
    """x with another dtype, strongly typed. Floats are cut towards 0 on the way to integers, and those that do not fit
    become the nearest that does.

    Complex numbers drop their imaginary part, but for bool, which says whether they are not 0. float64 and int64 are
    narrowed, with a warning, unless x64 is on. `copy`: another array also where nothing changes.

    >>> jnp.astype(jnp.array([1.7, -1.7, 0.0]), int)
    Array([ 1, -1,  0], dtype=int32)
    >>> jnp.astype(jnp.array([1.7, -1.7, 0.0]), bool)
    Array([ True,  True, False], dtype=bool)
    """
    value = ensure_arraylike("astype", x)
    target = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "astype")
    found = to_bool(value) if target == dtypes.bool_ else lax.convert_element_type(value, target)
    return in_asked_place(copied(value) if copy and found is value else found, device, None, "astype")


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
        raise UnsupportedError("view: there is one class of arrays, so that type must be None")
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
            f"whole elements of {width} bits",
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
