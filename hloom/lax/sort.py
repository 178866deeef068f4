"""Sorting, and the k largest. Names and the meaning of arguments follow jax.lax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..hlo.element_type import element_type_of
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from ..hlo.ops.sort import SortAttributes, TopKAttributes
from ..hlo.shape import Shape
from ..hlo.sizes import as_size, exceeds
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.compound import compound
from ..tracer.core import Value, bind, bind_multi
from ..tracer.errors import OperandError
from ..tracer.ops import compare, convert, full_like, reinterpret_weak, select, unary
from ..tracer.recording import returns_element, trace_to_computation
from .instructions import neg
from .movement import canonical_axis, transpose

_D = ComparisonDirection


@lru_cache(maxsize=256)
def _by_keys(types: tuple[np.dtype[Any], ...], num_keys: int) -> HloComputation:
    """Is a before b, for operands (a0, b0, a1, b1, ...)? By the first `num_keys`, one after the other."""

    def before(values: list[Value]) -> list[Value]:
        pairs = [pair for k in range(num_keys) for pair in _compared(values[2 * k], values[2 * k + 1])]
        found: Value | None = None
        for a, b in reversed(pairs):
            less = _in_order(a, _D.LT, b)
            if found is not None:
                less = bind(Opcode.OR, (less, bind(Opcode.AND, (_in_order(a, _D.EQ, b), found))))
            found = less
        assert found is not None, "there is a key"
        return [found]

    scalars = [ShapedArray((), t) for t in types for _ in range(2)]
    return returns_element(trace_to_computation(before, scalars, "by_keys").computation)


def _compared(a: Value, b: Value) -> list[tuple[Value, Value]]:
    """The compared values, one after the other: real and imaginary parts; one zero and one NaN instead of several."""
    if dtypes.is_complex(a.aval.dtype):
        return [(_canonical(unary(o, a)), _canonical(unary(o, b))) for o in (Opcode.REAL, Opcode.IMAG)]
    return [(_canonical(a), _canonical(b)) if dtypes.is_floating(a.aval.dtype) else (a, b)]


def order_keys(x: Value) -> Value:
    """For floats, integers that are in the order of `sort`; integers and complex numbers as they are. One instruction
    compares integers; six compare floats in their total order."""
    dtype = x.aval.dtype
    if not dtypes.is_floating(dtype):
        return x
    if dtype.itemsize == 1:  # the bits of NaN are those of -0 in some of these types
        x = convert(x, np.dtype(np.float32), False)
    integer = np.dtype(f"int{8 * x.aval.dtype.itemsize}")
    shape = Shape.array(element_type_of(integer), x.aval.shape)
    bits = bind(Opcode.BITCAST_CONVERT, (_canonical(x),), shape=shape, weak_type=False)
    turned = bind(Opcode.XOR, (bits, full_like(bits, np.iinfo(integer).max)))  # negative floats grow away from 0
    return select(compare(bits, "LT", full_like(bits, 0)), turned, bits)


def _canonical(x: Value) -> Value:
    zero = full_like(x, 0)
    number = select(compare(x, "EQ", zero), zero, x)
    return select(compare(x, "NE", x), full_like(x, math.nan), number)


def ordered_before(a: Value, b: Value) -> Value:
    """Whether a is before b in the order of `sort`, element by element, for arrays of one dtype and shape."""
    found: Value | None = None
    for x, y in reversed(_compared(a, b)):
        less = _in_order(x, _D.LT, y)
        found = less if found is None else less | (_in_order(x, _D.EQ, y) & found)
    assert found is not None, "there is a part to compare"
    return found


def _in_order(a: Value, direction: ComparisonDirection, b: Value) -> Value:
    """Floats in their total order: NaN is last."""
    kind = ComparisonType.TOTALORDER if dtypes.is_floating(a.aval.dtype) else None
    return bind(Opcode.COMPARE, (a, b), CompareAttributes(direction, kind))


@compound(static=("dimension", "is_stable", "num_keys"), small=True)
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements along a dimension in ascending order; -0.0 is 0.0, NaN is last, complex numbers as pairs.

    Several arrays of equal dimensions are permuted in the same way: by the first one, equal elements by the second and
    so on, up to `num_keys`.

    >>> lax.sort(jnp.array([3.0, jnp.nan, 1.0, 2.0]))
    Array([ 1.,  2.,  3., nan], dtype=float32)
    >>> lax.sort((jnp.array([2, 1, 2]), jnp.array([9, 8, 7])), num_keys=2)
    (Array([1, 2, 2], dtype=int32), Array([8, 7, 9], dtype=int32))
    """
    if not isinstance(operand, Sequence):
        if num_keys != 1:
            raise ValueError(f"num_keys={num_keys} must be 1 for a single operand")
        return _sorted([operand], dimension, is_stable, 1)[0]
    if not operand:
        raise TypeError("sort needs at least one operand")
    if not 1 <= num_keys <= len(operand):
        raise ValueError(f"num_keys={num_keys} must be between 1 and {len(operand)}")
    return tuple(_sorted(operand, dimension, is_stable, num_keys))


def _sorted(operands: Sequence[Any], dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    arrays = [as_value(x) for x in operands]
    comparator = _by_keys(tuple([x.aval.dtype for x in arrays]), num_keys)
    attributes = SortAttributes(canonical_axis(dimension, arrays[0].aval.ndim), comparator, bool(is_stable))
    if len(arrays) == 1:
        return [bind(Opcode.SORT, arrays, attributes)]
    results = bind_multi(Opcode.SORT, arrays, attributes)
    return [reinterpret_weak(r, x.aval.weak_type) for r, x in zip(results, arrays, strict=True)]


@compound(static=("dimension", "is_stable"), small=True)
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Value, Value]:
    """`keys` in ascending order along a dimension, and `values` permuted in the same way.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
    (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    found = _sorted([keys, values], dimension, is_stable, 1)
    return found[0], found[1]


@compound(static=("k", "axis"), small=True)
def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Value]:
    """The k largest elements along an axis, the largest first, and their indices (int32), in a list; NaN counts as
    largest.

    Of equal elements those with lower indices come first.

    >>> lax.top_k(jnp.array([1.0, 5.0, 3.0, 5.0]), 2)
    [Array([5., 5.], dtype=float32), Array([1, 3], dtype=int32)]
    """
    x, k = as_value(operand), as_size(k)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if not x.aval.ndim:
        raise OperandError("top_k needs an array of one dimension at least", "topk_c1")
    axis = canonical_axis(axis, x.aval.ndim)
    if k > x.aval.shape[axis]:
        raise ValueError(
            f"k argument to top_k must be no larger than size along axis; got k={k} with shape={x.aval.shape} and "
            f"axis={axis}"
        )
    if exceeds(x.aval.shape[axis], np.iinfo(np.int32).max):
        raise ValueError(f"top_k returns int32 indices, which will overflow for the shape {x.aval.shape}, axis {axis}")
    order = [d for d in range(x.aval.ndim) if d != axis] + [axis]
    back = [order.index(d) for d in range(x.aval.ndim)]
    values, indices = bind_multi(Opcode.TOPK, (transpose(x, order),), TopKAttributes(k))
    return [reinterpret_weak(transpose(values, back), x.aval.weak_type), transpose(indices, back)]


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Value]:
    """The k largest elements along a dimension, and their indices. The exact ones: a recall of 1, in order.

    >>> lax.approx_max_k(jnp.array([1.0, 5.0, 3.0, 4.0]), 2)
    [Array([5., 4.], dtype=float32), Array([1, 3], dtype=int32)]
    """
    _check_approximate("approx_max_k", operand, recall_target)
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Value]:
    """The k smallest elements along a dimension, and their indices. The exact ones: a recall of 1, in order.

    >>> lax.approx_min_k(jnp.array([1.0, 5.0, 3.0, 4.0]), 2)
    [Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    _check_approximate("approx_min_k", operand, recall_target)
    values, indices = top_k(neg(operand), k, axis=reduction_dimension)
    return [neg(values), indices]


def _check_approximate(name: str, operand: Any, recall_target: float) -> None:
    x = as_value(operand)
    if not dtypes.is_floating(x.aval.dtype):
        raise OperandError(f"lax.{name} takes floats, not {x.aval.str_short()}", name)
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target={recall_target} must be above 0 and at most 1")


