"""HLO ops by short names, on values under the current trace: control flow and derivative rules are written in them.

Nothing here promotes dtypes or broadcasts: operands have the dtypes and shapes that HLO requires. The users' functions
are in `hloom/lax` and `hloom/numpy`, above autodiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..hlo.builder import make_computation, make_instruction, make_parameter
from ..hlo.element_type import ElementType, element_type_of
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..hlo.ops.reduce import ReduceAttributes
from ..hlo.shape import Shape
from ..hlo.sizes import is_symbolic
from . import dtypes
from .arrays.array import Array, array_from_scalar, capturing_block, is_absent, is_placed, is_younger
from .arrays.overlay import overlaid, storage_of
from .aval import ShapedArray
from .core import Tracer, Value, bind, bind_declared
from .errors import OperandError


def array_shape(dtype: np.dtype[Any], dimensions: Sequence[int]) -> Shape:
    """The HLO shape of an array of `dtype`."""
    return ShapedArray(tuple(dimensions), dtype).hlo


is_inexact = dtypes.is_inexact


def is_complex(value: Value) -> bool:
    return value.aval.dtype.kind == "c"


# --- constants


def scalar(value: complex, dtype: np.dtype[Any], weak_type: bool = False) -> Value:
    """A concrete scalar; of a symbolic size, one of the program that is traced."""
    if is_symbolic(value):
        return reinterpret_weak(value.as_value(dtype), weak_type)  # type: ignore[attr-defined]
    return Array(ShapedArray((), dtype, weak_type), np.asarray(value, dtype))


def full(aval: ShapedArray, value: complex) -> Value:
    """An array of `aval`'s type filled with `value`."""
    return broadcast(scalar(value, aval.dtype, aval.weak_type), aval.shape, ())


def full_like(like: Value, value: complex) -> Value:
    """An array of `like`'s type filled with `value`."""
    return full(like.aval, value)


def zeros(aval: ShapedArray) -> Value:
    return full(aval, 0)


def unwritten(aval: ShapedArray) -> Value:
    """An array whose elements may be anything: each must be written before it is read."""
    found = bind_declared(Opcode.CUSTOM_CALL, (), CustomCallAttributes("hloom.unwritten"), aval.hlo)
    assert not isinstance(found, list), "it is one array"
    return found


# --- arithmetic


def add(x: Value, y: Value) -> Value:
    return bind(Opcode.ADD, (x, y))


def sub(x: Value, y: Value) -> Value:
    return bind(Opcode.SUBTRACT, (x, y))


def mul(x: Value, y: Value) -> Value:
    return bind(Opcode.MULTIPLY, (x, y))


def div(x: Value, y: Value) -> Value:
    return bind(Opcode.DIVIDE, (x, y))


def neg(x: Value) -> Value:
    return bind(Opcode.NEGATE, (x,))


def unary(opcode: Opcode, x: Value) -> Value:
    return bind(opcode, (x,))


def scale(x: Value, factor: float) -> Value:
    """`x` times a number."""
    return mul(x, full_like(x, factor))


def shift(x: Value, term: float) -> Value:
    """`x` plus a number."""
    return add(x, full_like(x, term))


def square(x: Value) -> Value:
    return mul(x, x)


def make_complex(real: Value, imag: Value) -> Value:
    return bind(Opcode.COMPLEX, (real, imag))


def conjugate(x: Value) -> Value:
    return make_complex(unary(Opcode.REAL, x), neg(unary(Opcode.IMAG, x)))


def compare(x: Value, direction: str, y: Value) -> Value:
    """`x` EQ, NE, GT, GE, LT or LE `y`."""
    return bind(Opcode.COMPARE, (x, y), CompareAttributes(ComparisonDirection(direction)))


def clamp(low: Value, x: Value, high: Value) -> Value:
    return bind(Opcode.CLAMP, (low, x, high))


def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    return bind(Opcode.SELECT, (pred, on_true, on_false))


# --- types


def convert(x: Value, dtype: np.dtype[Any], weak_type: bool | None = None) -> Value:
    """x with a canonical dtype, weakly typed or not (None: as x is); x itself if nothing changes.

    Floats become integers by truncation, saturating; complex numbers drop their imaginary part.
    """
    aval = x.aval
    if weak_type is None:
        weak_type = aval.weak_type
    if aval.dtype is dtype:
        return x if aval.weak_type is weak_type else reinterpret_weak(x, weak_type)
    if aval.dtype.kind == "c" and dtype.kind != "c":
        x = unary(Opcode.REAL, x)
        if x.aval.dtype is dtype:
            return x
    if isinstance(x, Array) and x.aval.size == 1 and not x.aval.shape:
        folded = _convert_scalar(x, dtype, weak_type)
        if folded is not None:
            return folded
    if aval.is_extended or dtypes.is_extended(dtype):
        return _between_elements_and_storage(x, dtype)
    return bind(Opcode.CONVERT, (x,), shape=ShapedArray(aval.shape, dtype).hlo, weak_type=weak_type)


def _between_elements_and_storage(x: Value, dtype: Any) -> Value:
    """The elements of an extended dtype that `x` stores, or their storage, where the dtype's rules allow that."""
    old, shape = x.aval.dtype, x.aval.shape
    inwards, outwards = dtypes.is_extended(dtype), dtypes.is_extended(old)
    extended: Any = dtype if inwards else old
    if not getattr(getattr(extended, "_rules", None), "allow_conversion", False):
        raise OperandError(f"Cannot convert_element_type from {old.name} to {dtype.name}", "convert")
    if inwards and outwards:
        raise ValueError(f"cannot directly convert between extended dtypes: from {old.name} to {dtype.name}")
    stored = f"{extended.storage_dtype} with last dimensions {extended.storage_shape}"
    if outwards:
        if dtype != extended.storage_dtype:
            raise ValueError(f"can only convert from {old.name} to its representation, {stored}, not to {dtype}")
        return storage_of(x)
    rank = max(0, len(shape) - len(extended.storage_shape))
    if old != extended.storage_dtype or shape[rank:] != extended.storage_shape:
        given = x.aval.str_short()
        raise ValueError(f"can only convert to {dtype.name} from its representation, {stored}, not from {given}")
    return overlaid(reinterpret_weak(x, False) if x.aval.weak_type else x, ShapedArray(shape[:rank], dtype))


def _convert_scalar(x: Array, dtype: np.dtype[Any], weak_type: bool) -> Array | None:
    """A concrete weak scalar converts while tracing, so that `x + 1` has one constant and no conversion."""
    if not x.aval.weak_type or dtypes.is_extended(dtype) or is_placed(x) or is_absent(x):
        return None
    if not is_younger(x, capturing_block()):
        return None  # it is captured
    number = x._view
    if dtypes.is_floating(x.aval.dtype) and dtypes.is_integer(dtype):  # NumPy does not saturate
        low, high = element_type_of(dtype).limits
        number = np.asarray(0 if number != number else int(max(low, min(high, number.item()))))
    with np.errstate(all="ignore"):
        return Array(ShapedArray((), dtype, weak_type), np.asarray(number.astype(dtype)))


def reinterpret_weak(x: Value, weak_type: bool) -> Value:
    """The same value, weakly typed or not."""
    if isinstance(x, Array):
        return x.with_aval(x.aval.with_weak_type(weak_type))
    assert isinstance(x, Tracer), f"{x!r} is no value"
    return x._trace.with_weak_type(x, weak_type)


def scalar_like(x: Value, number: float) -> Array:
    """A Python number as a scalar of x's dtype and weak type."""
    scalar = array_from_scalar(number, x.aval.dtype)
    return scalar.with_aval(scalar.aval.with_weak_type(True)) if x.aval.weak_type else scalar


# --- movement


def broadcast(x: Value, sizes: Sequence[int], dimensions: Sequence[int]) -> Value:
    """`x` repeated to `sizes`; its dimension i becomes dimension `dimensions[i]`."""
    if tuple(sizes) == x.aval.shape and tuple(dimensions) == tuple(range(len(sizes))):
        return x
    return bind(Opcode.BROADCAST, (x,), BroadcastAttributes(tuple(dimensions)), shape=array_shape(x.aval.dtype, sizes))


def reshape(x: Value, sizes: Sequence[int]) -> Value:
    if tuple(sizes) == x.aval.shape:
        return x
    return bind(Opcode.RESHAPE, (x,), shape=array_shape(x.aval.dtype, sizes))


def transpose(x: Value, permutation: Sequence[int]) -> Value:
    """Dimension i of the result is dimension `permutation[i]` of `x`."""
    if tuple(permutation) == tuple(range(len(permutation))):
        return x
    return bind(Opcode.TRANSPOSE, (x,), TransposeAttributes(tuple(permutation)))


def reverse(x: Value, dimensions: Sequence[int]) -> Value:
    return bind(Opcode.REVERSE, (x,), ReverseAttributes(tuple(dimensions)))


def slice_(x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None) -> Value:
    strides = tuple(strides) if strides is not None else (1,) * len(starts)
    starts, limits = tuple(starts), tuple(limits)
    if limits == x.aval.shape and all(s == 0 for s in starts) and all(s == 1 for s in strides):
        return x
    return bind(Opcode.SLICE, (x,), SliceAttributes(starts, limits, strides))


def slice_along(x: Value, d: int, start: int, stop: int) -> Value:
    """The elements from `start` to `stop` along dimension d."""
    starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
    starts[d], limits[d] = start, stop
    return slice_(x, starts, limits)


def pad(x: Value, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Value:
    if all(n == 0 for n in (*low, *high, *interior)):
        return x
    return bind(Opcode.PAD, (x, value), PadAttributes(tuple(low), tuple(high), tuple(interior)))


def read_block(x: Value, starts: Sequence[Value], sizes: tuple[int, ...]) -> Value:
    """The block of `sizes` at `starts`: scalars of one integer dtype, not negative."""
    return bind(Opcode.DYNAMIC_SLICE, (x, *starts), DynamicSliceAttributes(sizes), weak_type=x.aval.weak_type)


def write_block(x: Value, block: Value, starts: Sequence[Value]) -> Value:
    """x with `block` written at `starts`: scalars of one integer dtype, not negative."""
    return bind(Opcode.DYNAMIC_UPDATE_SLICE, (x, block, *starts), weak_type=x.aval.weak_type)


def concatenate(operands: Sequence[Value], dimension: int) -> Value:
    """Arrays of one dtype after one another along `dimension`."""
    if len(operands) == 1:
        return operands[0]
    return bind(Opcode.CONCATENATE, tuple(operands), ConcatenateAttributes(dimension))


# --- reductions


@lru_cache
def scalar_reducer(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """The computation that reduces scalars by `opcode`."""
    shape = Shape.array(element_type)
    x, y = make_parameter(0, shape, "x"), make_parameter(1, shape, "y")
    return make_computation(f"{opcode.value}_{element_type.value}", make_instruction(opcode, (x, y)), (x, y))


@lru_cache
def last_of_two(element_type: ElementType) -> HloComputation:
    """The computation of a scatter that overwrites: the update replaces the element."""
    old, new = (make_parameter(k, Shape.array(element_type)) for k in range(2))
    return make_computation(f"update_{element_type.value}", new, (old, new))


def reduce_with(opcode: Opcode, x: Value, init: Value, dimensions: Sequence[int]) -> Value:
    """`x` reduced over `dimensions` by a binary op, starting from the scalar `init`."""
    if not dimensions:
        return x
    reducer = scalar_reducer(opcode, element_type_of(x.aval.dtype))
    return bind(Opcode.REDUCE, (x, init), ReduceAttributes(tuple(dimensions), reducer))


def reduce_sum(x: Value, dimensions: Sequence[int]) -> Value:
    return reduce_with(Opcode.ADD, x, scalar(0, x.aval.dtype), dimensions)


def sum_all(x: Value) -> Value:
    """The sum of all elements: a scalar."""
    return reduce_sum(x, tuple(range(len(x.aval.shape))))


