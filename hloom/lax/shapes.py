"""Shapes of results without the results, and shapes as values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..tracer.arguments import ShapeDtypeStruct
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.jit import eval_shape
from .convolution import ConvGeneralDilatedDimensionNumbers, conv_general_dilated, conv_transpose
from .dot import dot_general
from .elementwise import convert_element_type
from .instructions import add
from .movement import broadcast_in_dim, canonical_shape, reshape
from .window import Padding, reduce_window

DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""Of `dot_general`: the contracting dimensions of both operands, and the batch dimensions."""


def broadcast_to_rank(x: Any, rank: int) -> Value:
    """x with dimensions of size 1 before its own, so that it has at least `rank` of them.

    >>> lax.broadcast_to_rank(jnp.zeros((2, 3)), 4).shape
    (1, 1, 2, 3)
    """
    value = as_value(x)
    missing = operator.index(rank) - value.aval.ndim
    return reshape(value, (*[1] * missing, *value.aval.shape)) if missing > 0 else value


def shape_as_value(shape: Any) -> Value:
    """A shape as an int32 array (int64 with 64-bit types) of its sizes.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_value(np.asarray(canonical_shape(shape), int))


def _shape(function: Any, *shapes: Sequence[int]) -> tuple[int, ...]:
    operands = [ShapeDtypeStruct(canonical_shape(s), np.float32) for s in shapes]
    return tuple(eval_shape(function, *operands).shape)


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of `conv(lhs, rhs, strides, pads)`: batch, features, space, as the operands have them.

    >>> lax.conv_shape_tuple((1, 3, 8, 8), (16, 3, 3, 3), (1, 1), [(0, 0), (0, 0)])
    (1, 16, 6, 6)
    """
    return _shape(
        lambda x, k: conv_general_dilated(
            x, k, strides, pads, feature_group_count=1, batch_group_count=batch_group_count
        ),
        lhs_shape,
        rhs_shape,
    )


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[int, ...]:
    """The shape of `conv_general_dilated` of operands of these shapes.

    >>> lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 16), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 4, 4, 16)
    """
    return _shape(
        lambda x, k: conv_general_dilated(x, k, window_strides, padding, dimension_numbers=dimension_numbers),
        lhs_shape,
        rhs_shape,
    )


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> tuple[int, ...]:
    """The shape of `conv_transpose` of operands of these shapes.

    >>> lax.conv_transpose_shape_tuple((1, 8, 8, 3), (3, 3, 3, 16), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 16, 16, 16)
    """
    return _shape(
        lambda x, k: conv_transpose(x, k, window_strides, padding, dimension_numbers=dimension_numbers),
        lhs_shape,
        rhs_shape,
    )


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of `reduce_window` of an operand of this shape.

    >>> lax.reduce_window_shape_tuple((6, 6), (2, 2), (2, 2), [(0, 0), (0, 0)])
    (3, 3)
    """
    return _shape(
        lambda x: reduce_window(
            x, np.float32(0), add, window_dimensions, window_strides, padding, base_dilation, window_dilation
        ),
        operand_shape,
    )


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Value:
    """``(lhs * lhs_scale) @ (rhs * rhs_scale)``, for numbers of a few bits with a scale for each block of them.

    A scale has the dimensions of its operand; each of its elements is for as many neighbours along a contracted
    dimension as the sizes say. None: 1. `dimension_numbers`: as of `dot_general`; for matrices and batches of matrices
    the product of matrices. The result has the type bfloat16 or `preferred_element_type`; sums are float32.

    >>> x, scale = jnp.ones((2, 4)), jnp.array([[1.0, 10.0], [2.0, 2.0]])  # a scale for two neighbours
    >>> lax.scaled_dot(x, jnp.ones((4, 1)), lhs_scale=scale, preferred_element_type=jnp.float32)
    Array([[22.],
           [ 8.]], dtype=float32)
    """
    x, y = as_value(lhs), as_value(rhs)
    if dimension_numbers is None:
        if x.aval.ndim not in (2, 3) or x.aval.ndim != y.aval.ndim:
            raise ValueError(
                f"scaled_dot of {x.aval.str_short()} and {y.aval.str_short()} needs dimension_numbers: only matrices "
                "and batches of matrices have some of their own"
            )
        batch = tuple(range(x.aval.ndim - 2))
        dimension_numbers = ((x.aval.ndim - 1,), (x.aval.ndim - 2,)), (batch, batch)
    left, right = _scaled(x, lhs_scale), _scaled(y, rhs_scale)
    product = dot_general(left, right, dimension_numbers, preferred_element_type=np.float32)
    return convert_element_type(product, "bfloat16" if preferred_element_type is None else preferred_element_type)


def _scaled(x: Value, scale: Any) -> Value:
    """x in float32, each block times its scale."""
    wide = convert_element_type(x, np.float32)
    if scale is None:
        return wide
    factors = convert_element_type(as_value(scale), np.float32)
    sizes, counts = x.aval.shape, factors.aval.shape
    if len(sizes) != len(counts) or any(not c or n % c for n, c in zip(sizes, counts)):
        raise ValueError(
            f"scaled_dot: the sizes of {x.aval.str_short()} are no multiples of those of its scale, "
            f"{factors.aval.str_short()}"
        )
    blocks = [d for n, c in zip(sizes, counts) for d in (c, n // c)]
    spread = broadcast_in_dim(factors, blocks, range(0, 2 * len(counts), 2))
    return wide * reshape(spread, sizes)
