"""Reductions over dimensions, and cumulative ones along a dimension. Names and semantics follow jax.lax."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff.placed_results import computed_in
from ..extend.primitive import Primitive
from ..hlo.builder import make_instruction, make_parameter
from ..hlo.element_type import ElementType, element_type_of
from ..hlo.ir import Attributes, HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import ComparisonDirection
from ..hlo.ops.reduce import ReduceAttributes
from ..hlo.ops.window import ReduceWindowAttributes
from ..hlo.shape import Shape
from ..hlo.sizes import is_symbolic
from ..hlo.support.loading import load
from ..hlo.support.tracebacks import inner
from ..hlo.window import WindowDimension
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value
from ..tracer.callers import is_call_of_user
from ..tracer.compound import compound
from ..tracer.core import ShapedArray, Value, bind, bind_multi
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.ops import convert, scalar_like, unary
from ..tracer.recording import returns_element, trace_to_computation
from ..tracer.settings.context import current_context
from ..tracer.source import function_line
from ..tracer.trees import tree
from . import instructions as ew
from .movement import broadcast_in_dim, broadcasted_iota, canonical_axis, full_like, reshape, rev
from .prefixes import prefixes


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The lowest and highest value of a dtype: infinities for floats that have them, False and True for bool.

    Complex numbers are ordered by real part, then imaginary part.
    """
    if dtype == np.bool_:
        return False, True
    if dtypes.is_complex(dtype):
        return complex(-math.inf, 0), complex(math.inf, 0)
    if dtypes.is_floating(dtype):
        if not np.isinf(np.array(math.inf, dtype).astype(np.float64)):
            numbers = dtypes.finfo(dtype)
            return float(numbers.min), float(numbers.max)
        return -math.inf, math.inf
    if dtypes.is_integer(dtype):
        return element_type_of(dtype).limits
    raise OperandError(f"{dtype.name} has no order", "order")


@lru_cache(maxsize=256)
def _monoid(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """The computation that applies one binary op to scalars."""
    a, b = (make_parameter(k, Shape.array(element_type)) for k in range(2))
    root = make_instruction(opcode, (a, b))
    return HloComputation(f"{opcode.value}_{element_type.value}", (a, b, root), root)


def reduce_monoid(opcode: Opcode, operand: Any, init: Any, axes: Sequence[int]) -> Value:
    """Reduce by one binary opcode from a scalar `init`."""
    x = as_value(operand)
    dims = tuple(sorted(operator.index(a) for a in axes))
    start = scalar_like(x, init)
    attributes = ReduceAttributes(dims, _monoid(opcode, element_type_of(x.aval.dtype)))
    return bind(Opcode.REDUCE, (x, start), attributes, weak_type=x.aval.weak_type)


def _numbers(name: str, operand: Any) -> Value:
    """The operand; OperandError unless it holds numbers."""
    x = as_value(operand)
    if x.aval.dtype.kind == "b" or x.aval.is_extended:
        raise OperandError(
            f"lax.{name} does not accept {x.aval.str_short()}, which holds no numbers\n  hloom.numpy functions "
            "convert booleans.",
            name,
        )
    return x


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Value:
    """The sum over `axes`; not of booleans.

    >>> lax.reduce_sum(jnp.array([[1, 5], [7, 2]]), (0,))
    Array([8, 7], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(out_sharding, "reduce_sum", lambda x: reduce_sum(x, axes), operand)
    x = _numbers("reduce_sum", operand)
    if not current_context().allow_f16_reductions:
        _check_half(x, axes)
    return reduce_monoid(Opcode.ADD, x, 0, axes)


def _check_half(x: Value, axes: Sequence[int]) -> None:
    """ValueError if a user sums floats of 16 bits where the setting jax_allow_f16_reductions forbids it."""
    sizes = [x.aval.shape[d] for d in axes]
    if x.aval.dtype in (dtypes.float16, dtypes.bfloat16) and any(n != 1 for n in sizes) and is_call_of_user():
        raise ValueError(
            f"reduce_sum on operand {x.aval.str_short(True)} is not allowed when jax_allow_f16_reductions=False.\n"
            "  Convert it to float32 before, or use hloom.numpy.sum, which sums in float32."
        )


def reduce_prod(operand: Any, axes: Sequence[int]) -> Value:
    """The product over `axes`; not of booleans.

    >>> lax.reduce_prod(jnp.array([[1, 5], [7, 2]]), (0, 1))
    Array(70, dtype=int32)
    """
    return reduce_monoid(Opcode.MULTIPLY, _numbers("reduce_prod", operand), 1, axes)


def reduce_max(operand: Any, axes: Sequence[int]) -> Value:
    """The largest value over `axes`; NaN if there is one. Complex numbers: by real, then imaginary part.

    >>> lax.reduce_max(jnp.array([[1, 5], [7, 2]]), (1,))
    Array([5, 7], dtype=int32)
    """
    x = as_value(operand)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_extremum(x, axes, ew.max)
    return reduce_monoid(Opcode.MAXIMUM, x, limits(x.aval.dtype)[0], axes)


def reduce_min(operand: Any, axes: Sequence[int]) -> Value:
    """The smallest value over `axes`; NaN if there is one. Complex numbers: by real, then imaginary part.

    >>> lax.reduce_min(jnp.array([[1, 5], [7, 2]]), (1,))
    Array([1, 2], dtype=int32)
    """
    x = as_value(operand)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_extremum(x, axes, ew.min)
    return reduce_monoid(Opcode.MINIMUM, x, limits(x.aval.dtype)[1], axes)


def _complex_extremum(x: Value, axes: Sequence[int], combine: Any) -> Value:
    dims = tuple(sorted(canonical_axis(a, x.aval.ndim) for a in axes))
    result: Value = _EXTREMA[combine].bind(x, axes=dims)
    return convert(result, x.aval.dtype, x.aval.weak_type)


def _define_extremum(combine: Callable[[Any, Any], Value], which: int, direction: ComparisonDirection) -> Primitive:
    extremum = Primitive(f"complex_reduce_{combine.__name__}")

    @extremum.def_meaning
    def reduced(x: Value, *, axes: tuple[int, ...]) -> Value:
        def choose(values: list[Value]) -> list[Value]:
            a, b = values
            return [ew.select(ew.precedes(a, b, direction), a, b)]

        scalars = [ShapedArray((), x.aval.dtype)] * 2
        reducer = returns_element(trace_to_computation(choose, scalars, extremum.name).computation)
        worst = array_from_scalar(limits(x.aval.dtype)[which], x.aval.dtype)
        return bind(Opcode.REDUCE, (x, worst), ReduceAttributes(axes, reducer))

    @extremum.def_jvp
    def reduced_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        """The mean of the tangents of all elements that are the extremum."""
        (x,), (t,) = primals, tangents
        result = extremum.bind(x, axes=axes)
        kept = [d for d in range(x.aval.ndim) if d not in axes]
        chosen = ew.eq(x, broadcast_in_dim(result, x.aval.shape, kept))
        count = reduce_sum(convert(chosen, x.aval.dtype), axes)
        return result, ew.div(reduce_sum(ew.select(chosen, t, full_like(t, 0)), axes), count)

    return extremum


_EXTREMA = {
    ew.max: _define_extremum(ew.max, 0, ComparisonDirection.GT),
    ew.min: _define_extremum(ew.min, 1, ComparisonDirection.LT),
}


def reduce_and(operand: Any, axes: Sequence[int]) -> Value:
    """Bitwise (for bool: logical) and over `axes`.

    >>> lax.reduce_and(jnp.array([[True, False], [True, True]]), (1,))
    Array([False,  True], dtype=bool)
    """
    x = as_value(operand)
    return _strong(reduce_monoid(Opcode.AND, x, all_bits(x.aval.dtype), axes))


def _strong(x: Value) -> Value:
    return convert(x, x.aval.dtype, False)


def all_bits(dtype: np.dtype[Any]) -> int:
    """The element of an integer or boolean dtype in which all bits are set."""
    return limits(dtype)[1] if dtype == np.bool_ or dtypes.is_unsigned(dtype) else -1


def reduce_or(operand: Any, axes: Sequence[int]) -> Value:
    """Bitwise (for bool: logical) or over `axes`.

    >>> lax.reduce_or(jnp.array([[True, False], [False, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return _strong(reduce_monoid(Opcode.OR, operand, 0, axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Value:
    """Bitwise (for bool: logical) exclusive or over `axes`.

    >>> lax.reduce_xor(jnp.array([0b1100, 0b1010]), (0,))
    Array(6, dtype=int32)
    """
    return _strong(reduce_monoid(Opcode.XOR, operand, 0, axes))


_MONOIDS: dict[Any, Opcode] = {
    ew.add: Opcode.ADD,
    ew.mul: Opcode.MULTIPLY,
    ew.max: Opcode.MAXIMUM,
    ew.min: Opcode.MINIMUM,
    ew.bitwise_and: Opcode.AND,
    ew.bitwise_or: Opcode.OR,
    ew.bitwise_xor: Opcode.XOR,
}


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduce arrays (a pytree, of equal shapes) over `dimensions` by `computation(accumulators, elements)`.

    `init_values` and the results of `computation` have the same structure; it must be associative, and may not use
    traced values or arrays from outside (UnsupportedError).

    >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 1, lax.mul, (1,))
    Array([ 2, 12], dtype=int32)
    """
    leaves, treedef = tree.flatten(operands)
    inits, init_treedef = tree.flatten(init_values)
    if treedef != init_treedef:
        raise OperandError(
            f"Operands must have the same tree structure as init_values: {treedef} and "
            f"{init_treedef}",
            "reduce_c1",
        )
    arrays = [as_value(a) for a in leaves]
    starts = [convert(as_value(i), a.aval.dtype, a.aval.weak_type) for i, a in zip(inits, arrays, strict=True)]
    dims = tuple(canonical_axis(d, arrays[0].aval.ndim) for d in dimensions)
    if _MONOIDS.get(inner(computation)) is Opcode.ADD and not current_context().allow_f16_reductions:
        _check_half(arrays[0], dims)
    reducer = reducer_of("reduce", computation, treedef, [a.aval.dtype for a in arrays])
    attributes = ReduceAttributes(dims, reducer)
    return tree.unflatten(treedef, bind_reduction(Opcode.REDUCE, arrays, starts, attributes))


def bind_reduction(
    opcode: Opcode, arrays: Sequence[Value], starts: Sequence[Value], attributes: Attributes
) -> list[Value]:
    """The reductions of several arrays at once; of one array, HLO has no tuple."""
    if len(arrays) == 1:
        return [bind(opcode, (*arrays, *starts), attributes, weak_type=arrays[0].aval.weak_type)]
    return bind_multi(opcode, (*arrays, *starts), attributes)


def reducer_of(
    name: str, computation: Callable[[Any, Any], Any], treedef: Any, types: Sequence[np.dtype[Any]]
) -> HloComputation:
    """`computation` on scalars of `types` as a reducer of HLO: one op, or traced. `name`: of the function."""
    ordered = computation in _EXTREMA and dtypes.is_complex(types[0])  # HLO's op is not this function
    if computation in _MONOIDS and len(types) == 1 and not ordered:
        return _monoid(_MONOIDS[computation], element_type_of(types[0]))
    return _traced_reducer(name, computation, treedef, [ShapedArray((), t) for t in types])


def _traced_reducer(
    name: str, computation: Callable[[Any, Any], Any], treedef: Any, scalars: Sequence[ShapedArray]
) -> HloComputation:
    count = len(scalars)

    def flat(values: list[Value]) -> list[Value]:
        result = computation(tree.unflatten(treedef, values[:count]), tree.unflatten(treedef, values[count:]))
        found, out_treedef = tree.flatten(result)
        if out_treedef != treedef:
            raise OperandError(
                f"{name} output must have the same tree structure as the operands: {out_treedef}, not {treedef}",
                "reduce_c6",
            )
        return [convert(as_value(r), s.dtype, False) for r, s in zip(found, scalars, strict=True)]

    traced = trace_to_computation(flat, [*scalars, *scalars], getattr(computation, "__name__", "reducer"))
    if traced.captured:
        raise UnsupportedError(
            f"the reducer {function_line(computation)} uses values from outside; it may use constants only"
        )
    return returns_element(traced.computation) if count == 1 else traced.computation


# ---- arg-reductions


@lru_cache(maxsize=64)
def _arg_reducer(opcode: Opcode, value: np.dtype[Any], index: np.dtype[Any]) -> HloComputation:
    """Of two (value, index) pairs the one with the larger (smaller) value; NaN wins, then the lower index."""
    better = ew.gt if opcode is Opcode.MAXIMUM else ew.lt

    def choose(values: list[Value]) -> list[Value]:
        a, i, b, j = values
        first = better(a, b) | (a != a)
        tie = (a == b) & (i < j)
        both_nan = (a != a) & (b != b) & (j < i)
        take_first = (first | tie) & ~both_nan
        return [ew.select(take_first, a, b), ew.select(take_first, i, j)]

    scalars = [ShapedArray((), value), ShapedArray((), index)]
    return trace_to_computation(choose, [*scalars, *scalars], f"arg_{opcode.value}").computation


def _arg_reduce(opcode: Opcode, operand: Any, axis: int, index_dtype: DTypeLike) -> Value:
    x, dtype = as_value(operand), dtypes.requested_dtype(index_dtype, "argmin or argmax")
    if not dtypes.is_integer(dtype):
        raise OperandError(f"index_dtype must be an integer type, but got {dtype.name}", "argmax")
    name = "argmax" if opcode is Opcode.MAXIMUM else "argmin"
    if not 0 <= axis < x.aval.ndim:
        raise ValueError(f"Invalid axis {axis} for operand of shape {x.aval.shape}")
    if x.aval.shape[axis] == 0:
        raise ValueError(
            f"attempt to get {name} of an empty sequence: lax.argmin and lax.argmax require non-empty reduced "
            f"dimension, and axis {axis} has size 0"
        )
    if dtypes.is_complex(x.aval.dtype):
        return _complex_arg_reduce(opcode, x, axis, dtype)
    worst = limits(x.aval.dtype)[0 if opcode is Opcode.MAXIMUM else 1]
    index = broadcasted_iota(dtype, x.aval.shape, axis)
    starts = [array_from_scalar(worst, x.aval.dtype), array_from_scalar(0, dtype)]
    reducer = _arg_reducer(opcode, x.aval.dtype, dtype)
    return bind_multi(Opcode.REDUCE, (x, index, *starts), ReduceAttributes((axis,), reducer))[1]


def _complex_arg_reduce(opcode: Opcode, x: Value, axis: int, dtype: np.dtype[Any]) -> Value:
    """By the real parts, and by the imaginary parts where these are equal: the first place where both are extreme, or
    the first NaN."""
    extremum, end = (reduce_max, -math.inf) if opcode is Opcode.MAXIMUM else (reduce_min, math.inf)
    best: Value | None = None
    for part in (unary(Opcode.REAL, x), unary(Opcode.IMAG, x)):
        candidates = part if best is None else ew.select(best, part, full_like(part, end))
        value = keep_dimensions(extremum(candidates, (axis,)), x.aval.shape, (axis,))
        same = candidates == broadcast_in_dim(value, x.aval.shape, range(x.aval.ndim))
        best = same if best is None else best & same
    assert best is not None, "a complex number has two parts"
    no_number = x != x
    first = keep_dimensions(reduce_or(no_number, (axis,)), x.aval.shape, (axis,))
    wanted = ew.select(broadcast_in_dim(first, x.aval.shape, range(x.aval.ndim)), no_number, best)
    return _arg_reduce(Opcode.MAXIMUM, wanted, axis, dtype)


@compound(static=("axis", "index_dtype"))
def argmax(operand: Any, axis: int, index_dtype: DTypeLike) -> Value:
    """The index of the first largest value along an axis; of the first NaN if there is one.

    >>> lax.argmax(jnp.array([[1, 5, 5], [7, 2, 0]]), 1, jnp.int32)
    Array([1, 0], dtype=int32)
    """
    return _arg_reduce(Opcode.MAXIMUM, operand, axis, index_dtype)


@compound(static=("axis", "index_dtype"))
def argmin(operand: Any, axis: int, index_dtype: DTypeLike) -> Value:
    """The index of the first smallest value along an axis; of the first NaN if there is one.

    >>> lax.argmin(jnp.array([[1, 5, 5], [7, 2, 0]]), 1, jnp.int32)
    Array([0, 2], dtype=int32)
    """
    return _arg_reduce(Opcode.MINIMUM, operand, axis, index_dtype)


# ---- cumulative


def _cumulative(kind: Primitive, name: str, operand: Any, axis: int, reverse: bool) -> Value:
    x = _numbers(name, operand)
    result: Value = kind.bind(x, axis=canonical_axis(axis, x.aval.ndim), reverse=bool(reverse))
    return result


def _as_tree(op: Callable[[Value, Value], Value], x: Value, axis: int, reverse: bool) -> Value:
    """Prefixes as a tree: in about 2 log2(n) steps, of 2 n uses of `op` in all."""
    if reverse:
        x = rev(x, [axis])
    (found,) = prefixes(lambda a, b: [op(a[0], b[0])], [x], [axis])
    return rev(found, [axis]) if reverse else found


def _as_window(
    op: Callable[[Value, Value], Value], x: Value, axis: int, reverse: bool, start: Any, name: str
) -> Value:
    """Prefixes as a window that reaches from one end to its own position. `start`: the identity of `op`."""
    size, dtype = x.aval.shape[axis], x.aval.dtype
    low, high = (0, size - 1) if reverse else (size - 1, 0)
    whole = WindowDimension(size, 1, low, high)
    window = tuple([whole if d == axis else WindowDimension() for d in range(x.aval.ndim)])
    reducer = trace_to_computation(lambda pair: [op(*pair)], [ShapedArray((), dtype)] * 2, f"{name}_step").computation
    attributes = ReduceWindowAttributes(window, returns_element(reducer))
    operands = (x, array_from_scalar(start, dtype))
    return bind(Opcode.REDUCE_WINDOW, operands, attributes, weak_type=x.aval.weak_type)


def _define_cumulative(name: str, op: Callable[[Any, Any], Value], start: Callable[[np.dtype[Any]], Any]) -> Primitive:
    """A cumulative function, as a window. `start`: the identity of `op`.

    Its derivative is a tree's derivative, except for a sum, which is linear, and along an axis of a symbolic size.
    """
    cumulative = Primitive(name)

    @cumulative.def_meaning
    def meaning(x: Value, *, axis: int, reverse: bool) -> Value:
        dtype = x.aval.dtype
        if not x.aval.size or (dtypes.is_complex(dtype) and op is not ew.add):  # which has no identity, nor order
            return _as_tree(op, x, axis, reverse)
        return _as_window(op, x, axis, reverse, start(dtype), name)

    @cumulative.def_jvp
    def derivative(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        if op is ew.add:
            return cumulative.bind(x, axis=axis, reverse=reverse), cumulative.bind(t, axis=axis, reverse=reverse)
        form = lambda x: _as_tree(op, x, axis, reverse)  # noqa: E731
        if is_symbolic(x.aval.shape[axis]):  # the derivative of a window chooses the extremum
            form = lambda x: _as_window(op, x, axis, reverse, start(x.aval.dtype), name)  # noqa: E731
        found: tuple[Any, Any] = load("..autodiff.api", __package__).jvp(form, (x,), (t,))
        return found

    return cumulative


def _zero(dtype: np.dtype[Any]) -> Any:
    """The neutral element of addition: -0.0 for floats."""
    if dtypes.is_complex(dtype):
        return complex(-0.0, -0.0)
    return -0.0 if dtypes.is_floating(dtype) else 0


_SUMS = _define_cumulative("cumsum", ew.add, _zero)
_PRODUCTS = _define_cumulative("cumprod", ew.mul, lambda dtype: 1)
_MAXIMA = _define_cumulative("cummax", ew.max, lambda dtype: limits(dtype)[0])
_MINIMA = _define_cumulative("cummin", ew.min, lambda dtype: limits(dtype)[1])


@compound(static=("axis", "reverse"))
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Value:
    """Sums of prefixes (of suffixes if `reverse`) along an axis.

    >>> lax.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    >>> lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
    Array([6, 5, 3], dtype=int32)
    """
    return _cumulative(_SUMS, "cumsum", operand, axis, reverse)


@compound(static=("axis", "reverse"))
def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Value:
    """Products of prefixes along an axis.

    >>> lax.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumulative(_PRODUCTS, "cumprod", operand, axis, reverse)


@compound(static=("axis", "reverse"))
def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Value:
    """Largest values of prefixes along an axis.

    >>> lax.cummax(jnp.array([1, 3, 2, 5]))
    Array([1, 3, 3, 5], dtype=int32)
    """
    return _cumulative(_MAXIMA, "cummax", operand, axis, reverse)


@compound(static=("axis", "reverse"))
def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Value:
    """Smallest values of prefixes along an axis.

    >>> lax.cummin(jnp.array([4, 3, 5, 1]))
    Array([4, 3, 3, 1], dtype=int32)
    """
    return _cumulative(_MINIMA, "cummin", operand, axis, reverse)


@compound(static=("axis", "reverse"))
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Value:
    """log(sum(exp(prefix))) along an axis, of floats or complex numbers. Along an axis of a symbolic size it is one
    window, which has no derivative.

    >>> lax.cumlogsumexp(jnp.log(jnp.array([1.0, 2.0, 3.0]))).round(3)  # log 1, log 3, log 6
    Array([0.   , 1.099, 1.792], dtype=float32)
    """
    x = as_value(operand)
    if not dtypes.is_inexact(x.aval.dtype):
        raise OperandError(
            f"lax.cumlogsumexp takes floats or complex numbers, not {x.aval.str_short()}\n  Convert it: "
            "x.astype(float).",
            "cumlogsumexp",
        )

    def logaddexp(a: Value, b: Value) -> Value:
        top = ew.max(a, b)
        # the maximum that keeps exp from overflow is real; the log gives the angle
        if dtypes.is_complex(top.aval.dtype):
            length = bind(Opcode.REAL, (top,))
            length = ew.select(ew.is_finite(length), length, full_like(length, 0))
            safe = bind(Opcode.COMPLEX, (length, full_like(length, 0)))
            return ew.log(ew.exp(a - safe) + ew.exp(b - safe)) + safe
        safe = ew.select(ew.is_finite(top), top, full_like(top, 0))
        return ew.log(ew.exp(a - safe) + ew.exp(b - safe)) + safe

    place = canonical_axis(axis, x.aval.ndim)
    if is_symbolic(x.aval.shape[place]):  # the number of steps of a tree depends on the size
        return _as_window(logaddexp, x, place, reverse, -np.inf, "cumlogsumexp")
    return _as_tree(logaddexp, x, place, reverse)


def keep_dimensions(reduced: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
    """A reduction's result with the reduced `axes` of `shape` back as dimensions of size 1."""
    return reshape(reduced, [1 if d in axes else s for d, s in enumerate(shape)])
