"""The semantics of dot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..element_type import ElementType, element_type_of
from ..opcode import Opcode
from ..ops.dot import DotAttributes, RaggedDotAttributes
from ..shape import Shape
from ..support.forking import PRODUCTS
from .elementwise import converted
from .table import EVALUATE, NDArray

_FLOATS = {False: ElementType.F32, True: ElementType.F64}
_COMPLEX = {False: ElementType.C64, True: ElementType.C128}


def _computed_type(attributes: DotAttributes, *types: ElementType) -> ElementType:
    """The type of products and sums. `types`: of operands, then of the result. Complex if one of them is, else a float
    if one is; of double precision if one is or the algorithm says so. Otherwise the result's integer type, because
    integers wrap around; for a pred result it is the wider operand's type."""
    inexact = [t for t in types if t.is_inexact]
    if inexact:
        is_double = any(t.real.bit_width == 64 for t in inexact) or attributes.algorithm == "dot_f64_f64_f64"
        return (_COMPLEX if any(t.is_complex for t in inexact) else _FLOATS)[is_double]
    return types[-1] if types[-1].is_integral else max(types[:-1], key=lambda t: t.bit_width)


@EVALUATE.register(Opcode.DOT)
def _dot(shape: Shape, attributes: DotAttributes, lhs: NDArray, rhs: NDArray) -> NDArray:
    """Sums of products over the contracting dimensions, for each batch, converted to the result's element type."""
    types = [element_type_of(lhs.dtype), element_type_of(rhs.dtype), shape.element]
    computed = _computed_type(attributes, *types)
    if computed.is_small:
        computed = ElementType.S8 if computed.is_signed else ElementType.U8  # the upper bits do not matter
    lhs, rhs = converted(lhs, computed), converted(rhs, computed)
    lhs_contracting, rhs_contracting = attributes.lhs_contracting_dims, attributes.rhs_contracting_dims
    if math.prod([lhs.shape[d] for d in lhs_contracting]) == 1:  # no sum, which would make 0.0 of -0.0
        left = _matrices(lhs, attributes.lhs_batch_dims, lhs_contracting)
        right = _matrices(rhs, attributes.rhs_batch_dims, rhs_contracting)
        product: NDArray = np.multiply(left, right.swapaxes(-1, -2)).reshape(shape.dimensions)
    elif lhs.ndim == rhs.ndim == 2 and len(lhs_contracting) == 1 and not attributes.lhs_batch_dims:
        # The same as below, for matrices: these are common in eager execution.
        left = lhs if lhs_contracting == (1,) else lhs.T
        right = rhs if rhs_contracting == (0,) else rhs.T
        with PRODUCTS.inside():
            product = _product(left, right)
    else:
        left = _matrices(lhs, attributes.lhs_batch_dims, lhs_contracting)
        right = _matrices(rhs, attributes.rhs_batch_dims, rhs_contracting).swapaxes(-1, -2)
        with PRODUCTS.inside():
            # Without contracting dimensions nothing is added: a product of -0.0 stays that.
            product = _product(left, right) if lhs_contracting else np.multiply(left, right)
        product = product.reshape(shape.dimensions)
    return np.asarray(converted(product, shape.element))  # of no dimensions, a small type would be a scalar


_BLOCK, _BLOCK_OF_VECTOR = 4096, 512
"""The number of products that BLAS adds up in its own order: one after the other, beside a vector."""


def _product(left: NDArray, right: NDArray) -> NDArray:
    """left @ right; long sums are made of blocks, so that rounding errors do not grow with the length."""
    rows, columns = left.shape[-2], right.shape[-1]
    if left.shape[-1] <= _BLOCK:
        return np.asarray(np.matmul(left, right))
    return _by_halves(left, right, _BLOCK_OF_VECTOR if rows * columns <= max(rows, columns, 16) else _BLOCK)


def _by_halves(left: NDArray, right: NDArray, block: int) -> NDArray:
    """The sum of the products of both halves, which are multiples of a block."""
    size = left.shape[-1]
    if size <= block:
        return np.asarray(np.matmul(left, right))
    half = -(-size // (2 * block)) * block
    found = _by_halves(left[..., :half], right[..., :half, :], block)
    found += _by_halves(left[..., half:], right[..., half:, :], block)
    return found


def _matrices(array: NDArray, batch: tuple[int, ...], contracting: tuple[int, ...]) -> NDArray:
    """The array as one (free, contracting) matrix for each batch index, in three dimensions."""
    free = [d for d in range(array.ndim) if d not in batch and d not in contracting]
    batches, rows, columns = (math.prod(array.shape[d] for d in group) for group in (batch, free, contracting))
    return array.transpose((*batch, *free, *contracting)).reshape(batches, rows, columns)


@EVALUATE.register(Opcode.RAGGED_DOT)
def _ragged_dot(
    shape: Shape, attributes: RaggedDotAttributes, lhs: NDArray, rhs: NDArray, group_sizes: NDArray
) -> NDArray:
    """For each group, its part of the lhs times its rhs, added up. Rows beyond the last group give zeros.

    Sizes are not checked: groups with negative sizes overlap others, as in XLA's RaggedDotRewriter.
    """
    dot, ragged = attributes.dot, attributes.lhs_ragged_dims[0]
    if ragged in dot.lhs_batch_dims:
        plain: NDArray = _dot(shape, dot, lhs, rhs)
        return plain
    ends = np.cumsum(group_sizes.astype(np.int64), axis=-1)
    places = np.arange(lhs.shape[ragged]).reshape([-1 if d == ragged else 1 for d in range(lhs.ndim)])
    is_contracted = ragged in dot.lhs_contracting_dims
    fixed = dot.lhs_contracting_dims if is_contracted else _free(lhs.ndim, dot)
    prefix = [*dot.lhs_batch_dims, *fixed[: fixed.index(ragged)]] if group_sizes.ndim > 1 else []
    results = []
    for group in range(group_sizes.shape[-1]):
        end, size = (_along(x[..., group], prefix, lhs.ndim) for x in (ends, group_sizes.astype(np.int64)))
        part = np.where((places >= end - size) & (places < end), lhs, lhs.dtype.type(0))
        if is_contracted:
            results.append(_dot(_without_first(shape), dot, part, rhs))
            continue
        (group_dim,) = attributes.rhs_group_dims
        own = replace(
            dot, rhs_batch_dims=tuple(d - (d > group_dim) for d in dot.rhs_batch_dims),
            rhs_contracting_dims=tuple(d - (d > group_dim) for d in dot.rhs_contracting_dims),
        )  # fmt: skip
        results.append(_dot(shape, own, part, rhs.take(group, axis=group_dim)))
    total = np.zeros(shape.dimensions, shape.element.dtype)
    if is_contracted:
        return np.stack(results) if results else total
    for result in results:  # of groups that do not overlap, at most one result is not zero at each index
        total = total + result
    return total


def _free(rank: int, dot: DotAttributes) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if d not in (*dot.lhs_batch_dims, *dot.lhs_contracting_dims))


def _without_first(shape: Shape) -> Shape:
    return Shape.array(shape.element, shape.dimensions[1:])


def _along(values: NDArray, dimensions: Sequence[int], rank: int) -> NDArray:
    """Dimension k of `values` at `dimensions[k]`, in an array of that rank."""
    order = np.argsort(dimensions).astype(int)
    sizes = [1] * rank
    for k in order:
        sizes[dimensions[k]] = values.shape[k]
    return values.transpose(order).reshape(sizes)


@EVALUATE.register(Opcode.SCALED_DOT)
def _scaled_dot(shape: Shape, attributes: DotAttributes, *operands: NDArray) -> NDArray:
    """The dot of the operands multiplied by their scales; each element of a scale is for a block."""
    wide = ElementType.F64 if shape.element is ElementType.F64 else ElementType.F32
    values = [converted(o, wide) for o in operands]
    for k in (0, 1):
        scale = values[k + 2]
        for d, size in enumerate(values[k].shape):
            scale = scale.repeat(size // max(scale.shape[d], 1), axis=d)
        values[k] = values[k] * scale
    product: NDArray = _dot(shape, attributes, *values[:2])
    return product
