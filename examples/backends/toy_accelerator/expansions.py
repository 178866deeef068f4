"""Rules of the pass `expand` that this backend adds: what a matrix and a vector unit do in place of a library.

Each replaces an instruction by an expression of simpler ones, which the passes after it simplify.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from hloom.hlo import ElementType, HloInstruction, Opcode, Shape, make_constant, make_instruction
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.linalg import FftType, TransposeKind
from hloom.hlo.ops.movement import ConcatenateAttributes, PadAttributes, ReverseAttributes, SliceAttributes
from hloom.hlo.passes.expand.dot import dot_in_one_type, dot_of_integers
from hloom.hlo.passes.expand.expand import EXPANSIONS
from hloom.hlo.passes.patterns import broadcast, convert, make_splat, make_zeros, reshape, transpose
from hloom.hlo.passes.rules import RuleSet, rule
from numpy.typing import NDArray

_O, _E = Opcode, ElementType


def _op(opcode: Opcode, *operands: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, operands)


def _pad(x: HloInstruction, low: Sequence[int], high: Sequence[int], inside: Sequence[int]) -> HloInstruction:
    zero = make_zeros(Shape.array(x.shape.element))
    return make_instruction(_O.PAD, (x, zero), PadAttributes(tuple(low), tuple(high), tuple(inside)))


def _slice(
    x: HloInstruction, first: Sequence[int], limit: Sequence[int], step: Sequence[int] | None = None
) -> HloInstruction:
    attributes = SliceAttributes(tuple(first), tuple(limit), tuple(step or [1] * len(first)))
    return make_instruction(_O.SLICE, (x,), attributes)


def _total(terms: Sequence[HloInstruction]) -> HloInstruction:
    found = terms[0]
    for term in terms[1:]:
        found = _op(_O.ADD, found, term)
    return found


# ---- convolution


def convolution_as_dots(convolution: HloInstruction) -> HloInstruction:
    """The sum, over the elements of the kernel's window, of products of matrices: each of a strided slice of the padded
    input with the kernel at that element. After the rules for reversed windows and for batch groups."""
    a = convolution.attributes
    numbers, groups, window = a.dimension_numbers, a.feature_group_count, a.window
    x, kernel = convolution.operands
    x = transpose(x, [numbers.input_batch, *numbers.input_spatial, numbers.input_feature])
    kernel = transpose(kernel, [*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature])
    batch, *_, features = x.shape.dimensions
    outputs = kernel.shape.dimensions[-1]
    places = [convolution.shape.dimensions[d] for d in numbers.output_spatial]
    padded = _pad(
        x,
        [0, *(w.padding_low for w in window), 0],
        [0, *(w.padding_high for w in window), 0],
        [0, *(w.base_dilation - 1 for w in window), 0],
    )
    spatial = len(window)
    contract = DotAttributes((spatial + 1,), (1,), (spatial + 2,), (0,))
    terms = []
    for offsets in product(*(range(w.size) for w in window)):
        first = [o * w.window_dilation for o, w in zip(offsets, window, strict=True)]
        limit = [f + (n - 1) * w.stride + 1 for f, n, w in zip(first, places, window, strict=True)]
        steps = [1, *(w.stride for w in window), 1]
        part = _slice(padded, [0, *first, 0], [batch, *limit, features], steps)
        part = reshape(part, (batch, *places, groups, features // groups))
        at = _slice(kernel, [*offsets, 0, 0], [*(o + 1 for o in offsets), *kernel.shape.dimensions[-2:]])
        weights = reshape(at, (features // groups, groups, outputs // groups))
        shape = Shape.array(convolution.shape.element, (groups, batch, *places, outputs // groups))
        terms.append(make_instruction(_O.DOT, (part, weights), contract, shape))
    summed = transpose(_total(terms), [*range(1, spatial + 2), 0, spatial + 2])
    result = reshape(summed, (batch, *places, outputs))
    order = [0] * (spatial + 2)
    for source, target in enumerate((numbers.output_batch, *numbers.output_spatial, numbers.output_feature)):
        order[target] = source
    return transpose(result, order)


# ---- factorisations: one column or row after the other, in expressions that become smaller


def _in_f32(function: Callable[[HloInstruction], HloInstruction], i: HloInstruction) -> HloInstruction | None:
    """f16 and bf16 are computed in f32 and rounded once."""
    if i.shape.element not in (_E.F16, _E.BF16):
        return None
    wide = make_instruction(i.opcode, [convert(o, _E.F32) for o in i.operands], i.attributes)
    return convert(function(wide), i.shape.element)


def _transposed(x: HloInstruction) -> HloInstruction:
    rank = x.shape.rank
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _conjugate(x: HloInstruction) -> HloInstruction:
    if not x.shape.element.is_complex:
        return x
    return _op(_O.COMPLEX, _op(_O.REAL, x), _op(_O.NEGATE, _op(_O.IMAG, x)))


def _part(x: HloInstruction, rows: tuple[int, int], columns: tuple[int, int]) -> HloInstruction:
    batch = x.shape.dimensions[:-2]
    return _slice(x, [0] * len(batch) + [rows[0], columns[0]], [*batch, rows[1], columns[1]])


def _outer(column: HloInstruction, row: HloInstruction) -> HloInstruction:
    """column [..., m, 1] times row [..., 1, n]."""
    *batch, m, _ = column.shape.dimensions
    n = row.shape.dimensions[-1]
    shape, kept = Shape.array(column.shape.element, (*batch, m, n)), list(range(len(batch)))
    left = broadcast(reshape(column, (*batch, m)), shape, [*kept, len(batch)])
    right = broadcast(reshape(row, (*batch, n)), shape, [*kept, len(batch) + 1])
    return _op(_O.MULTIPLY, left, right)


def _like(scalar: HloInstruction, like: HloInstruction) -> HloInstruction:
    """[..., 1, 1] repeated over the matrices of `like`."""
    batch = like.shape.dimensions[:-2]
    shape = Shape.array(scalar.shape.element, like.shape.dimensions)
    return broadcast(reshape(scalar, batch), shape, list(range(len(batch))))


def cholesky(i: HloInstruction) -> HloInstruction:
    """Column by column, each subtracted from what remains. NaN everywhere if a pivot is not positive."""
    half = _in_f32(cholesky, i)
    if half is not None:
        return half
    (a,) = i.operands
    n, element = a.shape.dimensions[-1], a.shape.element
    if not a.shape.num_elements:
        return a
    rest = a if i.attributes.lower else _conjugate(_transposed(a))
    batch = rest.shape.dimensions[:-2]
    zero = make_zeros(Shape.array(element.real, (*batch, 1, 1)))
    positive = make_splat(True, Shape.array(_E.PRED, (*batch, 1, 1)))
    columns = []
    for k in range(n):
        size = n - k
        corner = _part(rest, (0, 1), (0, 1))
        pivot = _op(_O.SQRT, _op(_O.REAL, corner) if element.is_complex else corner)
        above = make_instruction(_O.COMPARE, (pivot, zero), CompareAttributes(ComparisonDirection.GT))
        positive = _op(_O.AND, positive, above)
        column = _part(rest, (1, size), (0, 1))
        divisor = convert(pivot, element)
        below = _op(_O.DIVIDE, column, _like(divisor, column)) if size > 1 else column
        whole = make_instruction(_O.CONCATENATE, (divisor, below), ConcatenateAttributes(len(batch)))
        columns.append(_pad(whole, [*[0] * len(batch), k, 0], [0] * (len(batch) + 2), [0] * (len(batch) + 2)))
        if size > 1:
            rest = _op(_O.SUBTRACT, _part(rest, (1, size), (1, size)), _outer(below, _conjugate(_transposed(below))))
    factor = make_instruction(_O.CONCATENATE, columns, ConcatenateAttributes(len(batch) + 1))
    nan = make_splat(element.dtype.type(np.nan), factor.shape)
    factor = _op(_O.SELECT, _like(positive, factor), factor, nan)
    return factor if i.attributes.lower else _conjugate(_transposed(factor))


def triangular_solve(i: HloInstruction) -> HloInstruction:
    """Row by row, each subtracted from the rows that remain. All forms become a lower triangle on the left side."""
    half = _in_f32(triangular_solve, i)
    if half is not None:
        return half
    attributes, (a, b) = i.attributes, i.operands
    if not b.shape.num_elements:
        return b
    lower = attributes.lower
    if attributes.transpose_a is TransposeKind.ADJOINT:
        a = _conjugate(a)
    if attributes.transpose_a is not TransposeKind.NO_TRANSPOSE:
        a, lower = _transposed(a), not lower
    if not attributes.left_side:
        a, b, lower = _transposed(a), _transposed(b), not lower
    rank, n = a.shape.rank, a.shape.dimensions[-1]
    rows, both = ReverseAttributes((rank - 2,)), ReverseAttributes((rank - 2, rank - 1))
    if not lower:
        a, b = make_instruction(_O.REVERSE, (a,), both), make_instruction(_O.REVERSE, (b,), rows)
    width, found = b.shape.dimensions[-1], []
    for k in range(n):
        row = _part(b, (0, 1), (0, width))
        if not attributes.unit_diagonal:
            row = _op(_O.DIVIDE, row, _like(_part(a, (k, k + 1), (k, k + 1)), row))
        found.append(row)
        if k < n - 1:
            column = _part(a, (k + 1, n), (k, k + 1))
            b = _op(_O.SUBTRACT, _part(b, (1, n - k), (0, width)), _outer(column, row))
    x = make_instruction(_O.CONCATENATE, found, ConcatenateAttributes(rank - 2))
    if not lower:
        x = make_instruction(_O.REVERSE, (x,), rows)
    return x if attributes.left_side else _transposed(x)


# ---- Fourier transforms: a product with a matrix for each dimension


def fourier(i: HloInstruction) -> HloInstruction:
    """In c128: a transform by its definition adds up more roundings than a fast one."""
    lengths, kind = i.attributes.fft_length, i.attributes.fft_type
    (x,) = i.operands
    if 0 in i.shape.dimensions:
        return make_zeros(i.shape)
    first = x.shape.rank - len(lengths)
    x = convert(x, _E.C128)
    for d, length in reversed(list(enumerate(lengths, first))):
        is_last = d == x.shape.rank - 1
        if kind is FftType.IRFFT and is_last:
            continue  # after the others: it returns real numbers
        x = _transformed(x, d, _matrix(length, i.shape.dimensions[d], kind))
    if kind is FftType.IRFFT:
        x = _op(_O.REAL, _transformed(x, x.shape.rank - 1, _from_half(lengths[-1], x.shape.dimensions[-1])))
    return convert(x, i.shape.element)


def _matrix(length: int, kept: int, kind: FftType) -> NDArray[np.complex128]:
    turns = np.outer(np.arange(length), np.arange(kept)) % length
    forward = kind in (FftType.FFT, FftType.RFFT)
    found: NDArray[np.complex128] = np.exp((-2j if forward else 2j) * math.pi / length * turns)
    return found if forward else found / length


def _from_half(length: int, kept: int) -> NDArray[np.complex128]:
    """Each frequency that was kept stands for its conjugate too, except the first one and the one in the middle."""
    weights = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == length), 1, 2)
    return weights[:, None] * _matrix(length, length, FftType.IFFT)[:kept]


def _transformed(x: HloInstruction, dimension: int, matrix: NDArray[np.complex128]) -> HloInstruction:
    rank = x.shape.rank
    dot = make_instruction(_O.DOT, (x, make_constant(matrix)), DotAttributes((), (), (dimension,), (0,)))
    order = [*range(dimension), rank - 1, *range(dimension, rank - 1)]
    return transpose(dot, order)


TOY_EXPANSIONS = RuleSet(
    (
        *EXPANSIONS,
        rule(convolution_as_dots, _O.CONVOLUTION),  # after the rules of EXPANSIONS, which leave fewer forms of it
        rule(cholesky, _O.CHOLESKY),
        rule(triangular_solve, _O.TRIANGULAR_SOLVE),
        rule(fourier, _O.FFT),
        rule(dot_in_one_type, _O.DOT),  # the matrix unit multiplies numbers of one type
        rule(dot_of_integers, _O.DOT),  # and no integers
    )
)
"""In the order in which they are tried."""
