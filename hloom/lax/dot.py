"""Products over contracting dimensions. Names and the meaning of arguments follow jax.lax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff.placed_results import computed_in
from ..hlo.element_type import element_type_of
from ..hlo.opcode import Opcode
from ..hlo.ops import spec_of
from ..hlo.ops.dot import DotAttributes, RaggedDotAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError, TypePromotionError, UnsupportedError
from ..tracer.ops import convert
from .instructions import all_weak
from .precision import Algorithm, PrecisionLike, algorithm_of, operand_precision

DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""((lhs contracting, rhs contracting), (lhs batch, rhs batch))."""


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Sum of products over the contracting dimensions, for each index of the batch dimensions.

    The result has the batch dimensions, then lhs's free ones, then rhs's. Its dtype is the wider one of both (the one
    with the larger exponents, then the longer mantissa), or `preferred_element_type`, in which it is also summed.
    `precision` may name an algorithm, which says in which types it computes (`DotAlgorithm`).

    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, dimension_numbers=(([2], [1]), ([0], [0]))).shape
    (5, 2, 4)
    """
    if out_sharding is not None:
        given = dimension_numbers, precision, preferred_element_type
        return computed_in(out_sharding, "dot_general", lambda x, y: dot_general(x, y, *given), lhs, rhs)
    x, y = as_value(lhs), as_value(rhs)
    x, y, out, algorithm = _in_types(x, y, preferred_element_type, precision)
    attributes = _attributes(dimension_numbers, precision, algorithm)
    if out is None:
        return bind(Opcode.DOT, (x, y), attributes)
    summed = out if algorithm.sums is None else algorithm.sums
    shape = Shape.array(element_type_of(summed), _result_dimensions(x, y, attributes))
    return convert(bind(Opcode.DOT, (x, y), attributes, shape=shape, weak_type=False), out)


def _attributes(numbers: DotDimensionNumbers, precision: PrecisionLike, algorithm: Algorithm) -> DotAttributes:
    (lhs, rhs), (lhs_batch, rhs_batch) = numbers
    return DotAttributes(
        tuple(lhs_batch), tuple(rhs_batch), tuple(lhs), tuple(rhs), operand_precision(precision), algorithm.name
    )


def _in_types(
    x: Value, y: Value, preferred: DTypeLike | None, precision: PrecisionLike
) -> tuple[Value, Value, np.dtype[Any] | None, Algorithm]:
    """The operands in the types of the algorithm; the result's type (None: the operands'); the algorithm."""
    if x.aval.dtype is not y.aval.dtype:
        x, y, preferred = _mixed(x, y, preferred)
    out = None if preferred is None else dtypes.requested_dtype(preferred, "a product")
    algorithm = algorithm_of(precision, x.aval.dtype, y.aval.dtype, x.aval.dtype if out is None else out)
    if not algorithm.name:
        return x, y, out, algorithm
    out = x.aval.dtype if out is None else out
    assert algorithm.lhs is not None and algorithm.rhs is not None, f"{algorithm.name} without types"
    return convert(x, algorithm.lhs, False), convert(y, algorithm.rhs, False), out, algorithm


def _mixed(x: Value, y: Value, preferred: DTypeLike | None) -> tuple[Value, Value, DTypeLike | None]:
    """Operands of two dtypes, and the result's. The narrower one is converted if it promotes to the wider one; else
    HLO multiplies them as they are."""
    a, b = x.aval.dtype, y.aval.dtype
    wide_a, wide_b = (_width(v.aval.dtype, v.aval.str_short()) for v in (x, y))
    if wide_a == wide_b:
        raise OperandError(
            f"dot_general of {x.aval.str_short()} and {y.aval.str_short()}: neither dtype is wider than the other\n"
            f"  Convert one of them, as in x.astype({b.name!r}).",
            "dot_dtypes",
        )
    wider = a if wide_a > wide_b else b
    try:
        promoted, weak = dtypes.promote([dtypes.type_of(x), dtypes.type_of(y)])
    except TypePromotionError:
        promoted, weak = None, False
    if promoted is wider:
        return convert(x, wider, weak), convert(y, wider, weak), preferred
    return x, y, wider if preferred is None else preferred


def _width(dtype: np.dtype[Any], shown: str) -> tuple[bool, int, int, int, bool]:
    """Dtypes in the order of XLA: complex above real, then by exponent, mantissa, bits, sign."""
    if dtypes.is_extended(dtype):
        raise OperandError(f"dot_general does not accept {shown}", "dot_dtypes")
    element = element_type_of(dtype)
    if not element.is_inexact:
        return False, -1, -1, element.bit_width, element.is_signed or dtype.kind == "b"
    limits = dtypes.finfo(element.real.dtype)
    return element.is_complex, int(limits.maxexp), int(limits.nmant), element.real.bit_width, True


def _result_dimensions(x: Value, y: Value, attributes: DotAttributes) -> list[int]:
    """The result's sizes; the op's rule reports operands that do not fit."""
    a, b = x.aval.shape, y.aval.shape
    lhs_fixed = {*attributes.lhs_batch_dims, *attributes.lhs_contracting_dims}
    rhs_fixed = {*attributes.rhs_batch_dims, *attributes.rhs_contracting_dims}
    return [
        *(a[d] for d in attributes.lhs_batch_dims if d < len(a)),
        *(size for d, size in enumerate(a) if d not in lhs_fixed),
        *(size for d, size in enumerate(b) if d not in rhs_fixed),
    ]


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Value:
    """The product of vectors and matrices: the last dimension of lhs with the first of rhs.

    With `dimension_numbers`, `dot_general`.

    >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    x, y = as_value(lhs), as_value(rhs)
    if dimension_numbers is not None:
        given = dimension_numbers, precision, preferred_element_type
        return dot_general(x, y, *given, out_sharding=out_sharding)
    if out_sharding is not None:
        more: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return computed_in(out_sharding, "dot", lambda x, y: dot(x, y, **more), x, y)
    if not (1 <= x.aval.ndim <= 2 and 1 <= y.aval.ndim <= 2):
        raise OperandError(
            f"lax.dot takes vectors and matrices, not {x.aval.str_short()} and {y.aval.str_short()}", "dot_rank"
        )
    return dot_general(x, y, (((x.aval.ndim - 1,), (0,)), ((), ())), precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Value:
    """Matrix products over equal leading batch dimensions: [..., m, k] and [..., k, n] to [..., m, n].

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = as_value(lhs), as_value(rhs)
    rank = x.aval.ndim
    if rank < 2 or y.aval.ndim != rank:
        raise OperandError(
            f"lax.batch_matmul takes two arrays of one rank of at least 2, not {x.aval.str_short()} and "
            f"{y.aval.str_short()}",
            "batch_matmul_rank",
        )
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimensions of `dot_general`, the ragged dimension of the lhs, and the dimension of groups in the rhs, if the
    ragged one is neither contracting nor batch.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> lax.ragged_dot_general(jnp.ones((3, 2)), jnp.ones((2, 2, 1)), jnp.array([1, 2]), numbers).shape
    (3, 1)
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


_BASIC_RAGGED = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Value:
    """A product [m, k] x [g, k, n] to [m, n]: the first ``group_sizes[0]`` rows with the first matrix, and so on.

    Rows after the last group are zero.

    >>> rows, matrices = jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> lax.ragged_dot(rows, matrices, jnp.array([1, 2]))[:, 0]
    Array([ 2., 10., 10.], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _BASIC_RAGGED, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Value:
    """`dot_general` of groups that follow each other along one dimension of the lhs.

    If that is a free dimension, each group has a separate rhs; if it is contracted, the result has a first dimension of
    groups; if it is a batch dimension, groups make no difference.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> lax.ragged_dot_general(jnp.ones((3, 1)), jnp.ones((3, 1)), jnp.array([1, 2]), numbers).ravel()
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        given = (ragged_dot_dimension_numbers, precision, preferred_element_type, group_offset)
        return computed_in(
            out_sharding, "ragged_dot_general", lambda: ragged_dot_general(lhs, rhs, group_sizes, *given)
        )
    if group_offset is not None:
        raise UnsupportedError("ragged_dot with group_offset\n  Slice group_sizes and rhs.")
    x, y, sizes = as_value(lhs), as_value(rhs), as_value(group_sizes)
    x, y, out, algorithm = _in_types(x, y, preferred_element_type, precision)
    numbers = ragged_dot_dimension_numbers
    product = _attributes(numbers.dot_dimension_numbers, precision, algorithm)
    attributes = RaggedDotAttributes(product, tuple(numbers.lhs_ragged_dimensions), tuple(numbers.rhs_group_dimensions))
    if out is None:
        return bind(Opcode.RAGGED_DOT, (x, y, sizes), attributes, weak_type=all_weak(x, y))
    element = element_type_of(out if algorithm.sums is None else algorithm.sums)
    inputs, declared = [v.aval.hlo for v in (x, y, sizes)], Shape.array(element, ())
    shape = Shape.array(element, spec_of(Opcode.RAGGED_DOT).shape_rule(inputs, attributes, declared).dimensions)
    return convert(bind(Opcode.RAGGED_DOT, (x, y, sizes), attributes, shape=shape, weak_type=False), out)
