"""jax._src.lax.lax."""

from typing import Any as _Any

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from .... import Array as _Array
from ....dtypes import result_type as _result_type
from ....lax import eq as _eq
from ....lax import full_like as _full_like
from ....lax import ne as _ne
from ....numpy import asarray as _asarray
from ....numpy import copy as _copy
from ....tracer.ops import convert as _convert

__all__ = [
    "_array_copy",
    "_const",
    "_convert_element_type",
    "_eq_meet",
    "_isnan",
    "_one",
    "_ones",
    "_zero",
    "_zeros",
    "ranges_like",
    "remaining",
]


def _array_copy(arr: _Any) -> _Array:
    """A copy."""
    return _copy(arr)


def _zeros(x: _Any, **options: _Any) -> _Array:
    """An array of zeros with the shape and dtype of another, or others."""
    return _full_like(x, 0, **options)


def _ones(x: _Any, **options: _Any) -> _Array:
    """An array of ones with the shape and dtype of another, or others."""
    return _full_like(x, 1, **options)


def _zero(x: _Any) -> _Array:
    """0 of the dtype of an array."""
    return _full_like(x, 0, shape=())


def _one(x: _Any) -> _Array:
    """1 of the dtype of an array."""
    return _full_like(x, 1, shape=())


def _isnan(x: _Any) -> _Array:
    """Where elements are NaN."""
    return _ne(x, x)


def _eq_meet(a: _Any, b: _Any) -> _Array:
    """Where elements are equal after both have the lower of their dtypes."""
    a, b = _asarray(a), _asarray(b)
    if _result_type(a, b) == a.dtype:
        return _eq(a.astype(b.dtype), b)
    return _eq(a, b.astype(a.dtype))


def _convert_element_type(
    operand: _Any, new_dtype: _DTypeLike | None = None, weak_type: bool = False, sharding: _Any = None
) -> _Array:
    """The operand as an array of a dtype, its own by default, weak or not."""
    if sharding is not None:
        raise ValueError("_convert_element_type: sharding is not None")
    operand = _asarray(operand)
    dtype = operand.dtype if new_dtype is None else _result_type(_np.dtype(new_dtype))
    return _convert(operand, _np.dtype(dtype), bool(weak_type))


def _const(example: _Any, val: _Any) -> _Any:
    """A number of the dtype of an example: a NumPy scalar, unless that is a Python number."""
    return type(example)(val) if type(example) in (int, float, complex, bool) else _np.array(val, example.dtype)


def ranges_like(*xs: _Any) -> _Any:
    """Ranges of the lengths of sequences, one after the other."""
    start = 0
    for x in xs:
        yield range(start, start + len(x))
        start += len(x)


def remaining(original: _Any, *removed: _Any) -> list[_Any]:
    """The elements that are in none of the others."""
    taken = {x for each in removed for x in each}
    return [x for x in original if x not in taken]
