"""Op cases of dot between element types, ragged-dot and scaled-dot. (Shapes of plain dots: op_cases_reduce.py.)"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..hlo import ElementType
from ..hlo.ops.dot import DOT_ALGORITHMS, DotAttributes, RaggedDotAttributes
from .op_case import Array, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, Values, any_value, fixed

_MATRICES = DotAttributes((), (), (1,), (0,))

_TYPES: tuple[tuple[ElementType, ElementType, ElementType], ...] = (
    (E.S8, E.S8, E.S32), (E.U8, E.U8, E.S32), (E.S8, E.U8, E.S32), (E.S8, E.S16, E.S64), (E.S32, E.S32, E.S8),
    (E.U8, E.U8, E.F32), (E.S8, E.S8, E.BF16), (E.S8, E.F32, E.F32), (E.PRED, E.PRED, E.S32), (E.PRED, E.PRED, E.F32),
    (E.S32, E.S32, E.PRED), (E.BF16, E.BF16, E.F32), (E.F16, E.F16, E.F32), (E.F32, E.BF16, E.F32),
    (E.F32, E.F32, E.BF16), (E.F32, E.F32, E.F64), (E.F64, E.F32, E.F64), (E.F32, E.F32, E.S32), (E.F32, E.F32, E.U8),
    (E.F32, E.F32, E.PRED), (E.F32, E.F32, E.C64), (E.C64, E.C64, E.F32), (E.F32, E.C64, E.C128),
    (E.F8E5M2, E.F8E4M3FN, E.F32), (E.F8E4M3FN, E.F8E4M3FN, E.BF16), (E.F8E4M3FN, E.F8E4M3FN, E.F8E4M3FN),
    (E.F8E5M2FNUZ, E.F8E4M3FNUZ, E.F16), (E.S4, E.S4, E.S32), (E.U4, E.U4, E.U4), (E.S4, E.BF16, E.BF16),
)  # fmt: skip


def _small(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Halves between -2 and 2, or small integers: all sums are exact."""
    if not t.is_inexact:
        return rng.integers(-2 if t.is_signed else 0, 2 if t is E.PRED else 3, dims).astype(t.dtype)
    values = rng.integers(-4, 5, dims) / 2
    return (values + (1j * rng.integers(-4, 5, dims) / 2 if t.is_complex else 0)).astype(t.dtype)


def _dot() -> Iterator[OpCase]:
    for left, right, result in _TYPES:
        for dims in ((5, 7, 6), (1, 1, 1), (3, 0, 2)) if result is E.S32 else ((5, 7, 6),):
            m, k, n = dims
            is_exact = left.is_integral and right.is_integral and result.is_integral
            values: Values = any_value if is_exact else _small
            operands = [Array(left, (m, k), values), Array(right, (k, n), values)]
            yield make_case(O.DOT, operands, shape_of(result, (m, n)), _MATRICES, note=result.value)
    for algorithm in sorted(DOT_ALGORITHMS):
        attributes = DotAttributes((), (), (1,), (0,), ("highest", "default"), algorithm)
        operands = [Array(E.F32, (4, 5), _small), Array(E.F32, (5, 3), _small)]
        yield make_case(O.DOT, operands, shape_of(E.F32, (4, 3)), attributes, note=algorithm)
    batched = DotAttributes((1,), (0,), (0, 3), (3, 1))
    operands = [Array(E.S8, (3, 2, 4, 5)), Array(E.S8, (2, 5, 6, 3))]
    yield make_case(O.DOT, operands, shape_of(E.S32, (2, 4, 6)), batched, note="batched")


def _ragged() -> Iterator[OpCase]:
    one = Array(E.S32, (3,), fixed([2, 0, 3]))
    two = Array(E.S64, (2, 3), fixed([[2, 0, 3], [1, 1, 4]]))
    M = DotAttributes

    def case(
        lhs: tuple[int, ...], rhs: tuple[int, ...], groups: Array, dot: DotAttributes, ragged: int,
        group_dims: tuple[int, ...], result: tuple[int, ...], note: str, t: ElementType = E.F32,
    ) -> OpCase:  # fmt: skip
        attributes = RaggedDotAttributes(dot, (ragged,), group_dims)
        operands = [Array(t, lhs, _small), Array(t, rhs, _small), groups]
        return make_case(O.RAGGED_DOT, operands, shape_of(t, result), attributes, note=note)

    for t in (E.F32, E.BF16, E.S32):
        yield case((6, 4), (3, 4, 5), one, M((), (), (1,), (1,)), 0, (0,), (6, 5), f"free-{t.value}", t)
    yield case((2, 6, 4), (2, 3, 4, 5), two, M((0,), (0,), (2,), (2,)), 1, (1,), (2, 6, 5), "free-batch")
    yield case((2, 6, 4), (4, 5, 3), two, M((), (), (2,), (0,)), 1, (2,), (2, 6, 5), "free-prefix")
    yield case((4, 6), (6, 5), one, M((), (), (1,), (0,)), 1, (), (3, 4, 5), "contracted")
    yield case((2, 4, 6), (2, 6, 5), two, M((0,), (0,), (2,), (1,)), 2, (), (3, 2, 4, 5), "contracted-batch")
    yield case((2, 4, 6), (2, 6, 5), one, M((0,), (0,), (2,), (1,)), 2, (), (3, 2, 4, 5), "contracted-shared")
    yield case((6, 4, 2), (6, 2, 5), one, M((0,), (0,), (2,), (1,)), 0, (), (6, 4, 5), "batch")


def _scaled() -> Iterator[OpCase]:
    types = ((E.F8E4M3FN, E.F8E8M0FNU, E.F32), (E.F4E2M1FN, E.F8E8M0FNU, E.BF16), (E.F32, E.F32, E.F32))
    for t, scale, result in types:
        powers = _powers if scale is E.F8E8M0FNU else _small
        operands = [Array(t, (4, 64), _small), Array(t, (64, 3), _small)]
        scales = [Array(scale, (4, 2), powers), Array(scale, (2, 3), powers)]
        yield make_case(O.SCALED_DOT, [*operands, *scales], shape_of(result, (4, 3)), _MATRICES)


def _powers(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    return np.exp2(rng.integers(-2, 3, dims)).astype(t.dtype)


def cases() -> Iterator[OpCase]:
    """The cases of these ops."""
    yield from _dot()
    yield from _ragged()
    yield from _scaled()
