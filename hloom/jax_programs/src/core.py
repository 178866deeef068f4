"""jax._src.core: sizes, and whether something is traced."""

import math as _math
import operator as _operator
from collections.abc import Hashable as _Hashable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from ...errors import InconclusiveDimensionOperation as _InconclusiveDimensionOperation
from ...hlo.sizes import as_size as _as_size
from ...hlo.sizes import is_symbolic as _is_symbolic
from ...hlo.sizes import larger as _larger
from ...jaxpr.nodes import Effect as _Effect
from ...tracer.arrays.extended import ExtendedDType as _ExtendedDType
from ...tracer.aval import ShapedArray as _ShapedArray
from ...tracer.core import EVAL, current_trace
from ...tracer.tracer import Tracer as _Tracer

__all__ = [
    "AxisName",
    "AxisSize",
    "Effects",
    "canonicalize_dim",
    "canonicalize_shape",
    "definitely_equal",
    "definitely_equal_one_of_dim",
    "dilate_dim",
    "dimension_as_value",
    "divide_shape_sizes",
    "full_lower",
    "is_concrete",
    "is_constant_dim",
    "is_constant_shape",
    "is_empty_shape",
    "is_symbolic_dim",
    "physical_aval",
    "stride_dim",
    "to_concrete_value",
    "trace_state_clean",
    "typecompat",
    "typematch",
]

AxisName = _Hashable
AxisSize = int
Effects = set[_Effect]


def trace_state_clean() -> bool:
    """Whether nothing is being traced, differentiated or batched."""
    return current_trace() is EVAL


def to_concrete_value(x: _Any) -> _Any:
    """The value; None of a tracer that has none."""
    return x.to_concrete_value() if isinstance(x, _Tracer) else x


def is_concrete(x: _Any) -> bool:
    """Whether the value is known."""
    return to_concrete_value(x) is not None


def full_lower(val: _Any) -> _Any:
    """The value itself."""
    return val


def is_symbolic_dim(v: _Any) -> bool:
    """Whether a size is an expression of variables."""
    return _is_symbolic(v)


def dimension_as_value(d: _Any) -> _Any:
    """A size as a number of the program; a number is itself."""
    return d.dimension_as_value() if _is_symbolic(d) else d


def is_constant_dim(d: _Any) -> bool:
    """Whether it is an integer whose value is known."""
    try:
        _operator.index(d)
    except Exception:  # a tracer says why it is no integer
        return False
    return True


def is_constant_shape(s: _Sequence[_Any]) -> bool:
    """Whether all sizes are integers whose values are known."""
    return all(map(is_constant_dim, s))


def canonicalize_shape(shape: _Any, context: str = "") -> tuple[int, ...]:
    """A tuple of integers; TypeError for anything else."""
    sizes = (shape,) if isinstance(shape, int) else shape
    try:
        return tuple(map(_as_size, sizes))
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}. {context}".rstrip()
        ) from None


def canonicalize_dim(d: _Any, context: str = "") -> int:
    """An integer; TypeError for anything else."""
    return canonicalize_shape((d,), context)[0]


def physical_aval(aval: _Any) -> _Any:
    """The type of the elements of an array of an extended dtype, such as keys; others are that themselves."""
    dtype = aval.dtype
    if not isinstance(dtype, _ExtendedDType):
        return aval
    return _ShapedArray((*aval.shape, *dtype.storage_shape), dtype.storage_dtype)


def definitely_equal(x: _Any, y: _Any) -> bool:
    """Whether two sizes are equal; tracers are if they are one."""
    return x is y or (not isinstance(x, _Tracer) and not isinstance(y, _Tracer) and bool(x == y))


def definitely_equal_one_of_dim(d1: _Any, dlist: _Any) -> bool:
    """Whether a size is equal to one of some."""
    return any(definitely_equal(d1, d) for d in dlist)


def is_empty_shape(s: _Sequence[_Any]) -> bool:
    """Whether a size is 0."""
    return any(definitely_equal(d, 0) for d in s)


def divide_shape_sizes(s1: _Sequence[int], s2: _Sequence[int]) -> int:
    """How many elements of the first shape there are for each of the second.

    InconclusiveDimensionOperation if that is no integer.
    """
    first, second = _math.prod(s1), _math.prod(s2)
    if first == second:
        return 1
    quotient, remainder = divmod(first, second)
    if remainder:
        raise _InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(s1)} and {tuple(s2)}. "
            f"The remainder {remainder} should be 0."
        )
    return quotient


def dilate_dim(d: int, dilation: int) -> int:
    """The size of a dimension with gaps between its elements."""
    return d if dilation == 1 else _larger(1 + dilation * (d - 1), 0)


def stride_dim(d: int, window_size: int, window_stride: int) -> int:
    """The number of windows on a dimension."""
    return _larger((d - window_size) // window_stride + 1, 0)  # type: ignore[no-any-return]


def typematch(t1: _Any, t2: _Any, no_dtype_check: bool = False) -> bool:
    """Whether two types are equal, except for being weak."""
    return bool(t1.shape == t2.shape and (no_dtype_check or t1.dtype == t2.dtype))


def typecompat(aval_ref: _Any, aval: _Any) -> bool:
    """Whether the second type conforms to the first: they are equal, except for being weak."""
    return typematch(aval_ref, aval)
