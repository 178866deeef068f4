"""jax._src.lax.lax."""

from typing import Any as _Any

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from .... import Array as _Array
from ....dtypes import result_type as _result_type
from ....numpy import asarray as _asarray
from ....tracer.ops import convert as _convert

__all__ = ["_const", "_convert_element_type", "ranges_like", "remaining"]


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
