"""Op cases of sort and topk: comparators as JAX writes them and others, every element type, and odd sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_parameter,
)
from ..hlo.ops.elementwise import ComparisonType
from ..hlo.ops.sort import SortAttributes, TopKAttributes
from .computations import D, compare, computation, op
from .op_case import ALL, COMPLEX, FLOATS, INTEGERS, Array, Dimensions, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, Values, any_value, small_floats, small_integer

TOTAL = ComparisonType.TOTALORDER


def canonical(x: HloInstruction) -> HloInstruction:
    """As JAX does it: zeros of either sign are equal, and so are all NaN."""
    zero, nan = (make_constant(np.asarray(v, x.shape.element.dtype)) for v in (0, np.nan))
    number = make_instruction(O.SELECT, [compare(D.EQ, x, zero), zero, x])
    return make_instruction(O.SELECT, [compare(D.NE, x, x), nan, number])


def parts(x: HloInstruction) -> list[HloInstruction]:
    """The values that JAX compares, one after the other."""
    if x.shape.element.is_complex:
        return [canonical(make_instruction(o, [x])) for o in (O.REAL, O.IMAG)]
    return [canonical(x) if x.shape.element.is_floating else x]


def comparator(types: Sequence[ElementType], keys: int = 1) -> HloComputation:
    """JAX's comparator: by the first `keys` operands, one after the other."""
    parameters = [make_parameter(n, shape_of(types[n // 2]), f"p{n}") for n in range(2 * len(types))]
    pairs = [
        pair
        for k in range(keys)
        for pair in zip(parts(parameters[2 * k]), parts(parameters[2 * k + 1]), strict=True)
    ]
    root: HloInstruction | None = None
    for x, y in reversed(pairs):
        kind = TOTAL if x.shape.element.is_floating else None
        less = compare(D.LT, x, y, kind)
        if root is not None:
            tied = make_instruction(O.AND, [compare(D.EQ, x, y, kind), root])
            less = make_instruction(O.OR, [less, tied])
        root = less
    assert root is not None
    return make_computation("by_keys", root, parameters)


def plain(
    types: Sequence[ElementType], direction: D, key: int = 0, kind: ComparisonType | None = None
) -> HloComputation:
    """One comparison of one operand."""
    parameters = [make_parameter(n, shape_of(types[n // 2]), f"p{n}") for n in range(2 * len(types))]
    first, second = parameters[2 * key : 2 * key + 2]
    return make_computation("plain", compare(direction, first, second, kind), parameters)


def _by_magnitude() -> HloComputation:
    """|x| < |y| for numbers of s32."""
    return computation("by_magnitude", lambda x, y: compare(D.LT, op(O.ABS, x), op(O.ABS, y)), E.S32, E.S32)


def _by_sum() -> HloComputation:
    """By the sum of two operands: a key that is no operand's own."""
    return computation("by_sum", lambda x, y, p, q: compare(D.LT, op(O.ADD, x, p), op(O.ADD, y, q)), *[E.S32] * 4)


def _odd_first() -> HloComputation:
    """Odd numbers before even ones, each descending: no lexicographic comparison of keys."""

    def body(x: HloInstruction, y: HloInstruction) -> HloInstruction:
        one = make_constant(np.int32(1))
        p, q = (op(O.AND, v, one) for v in (x, y))
        return op(O.SELECT, compare(D.EQ, p, q), compare(D.GT, x, y), compare(D.GT, p, q))

    return computation("odd_first", body, E.S32, E.S32)


def few(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Edge values and many equal ones, among them zeros of both signs and NaN."""
    values = any_value(t, dims, 0, rng).reshape(-1)
    some = values[rng.integers(0, max(min(values.size, 23), 1), values.size)] if values.size else values
    return rng.permutation(some).reshape(dims)


def places(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """0, 1, 2, ...: shows where each element came from."""
    return np.arange(int(np.prod(dims))).astype(t.dtype).reshape(dims)


def shuffled(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """0, 1, 2, ... in any order."""
    return rng.permutation(int(np.prod(dims))).astype(t.dtype).reshape(dims)


_SIZES: tuple[tuple[Dimensions, int], ...] = (
    ((0,), 0), ((1,), 0), ((2,), 0), ((3,), 0), ((17,), 0), ((33,), 0), ((64,), 0), ((100,), 0), ((1000,), 0),
    ((0, 3), 0), ((3, 0), 0), ((3, 1), 1), ((5, 37), 1), ((37, 5), 0), ((3, 40, 4), 1), ((1, 70), 1), ((70, 1), 0),
    ((2, 300), 1), ((300, 2), 0),
)  # fmt: skip


def _sort(
    types: Sequence[ElementType], dims: Dimensions, axis: int, by: HloComputation, values: Sequence[Values], note: str,
    *, stable: bool = True,
) -> OpCase:  # fmt: skip
    operands = [Array(t, dims, v) for t, v in zip(types, values, strict=True)]
    results = [shape_of(t, dims) for t in types]
    result = results[0] if len(results) == 1 else Shape.tuple(results)
    return make_case(O.SORT, operands, result, SortAttributes(axis, by, stable), note=f"along-{axis}-{note}")


def _sorts() -> Iterator[OpCase]:
    for t in ALL:
        yield _sort([t], (3, 61), 1, comparator([t]), [few], "jax")
        yield _sort([t, E.S32], (3, 61), 1, comparator([t, E.S32]), [few, places], "jax")
        yield _sort([E.S32, t], (3, 61), 1, comparator([E.S32, t]), [small_integer, any_value], "payload")
        yield _sort([t], (300,), 0, comparator([t]), [few], "jax")
        yield _sort([t, E.S32], (300,), 0, comparator([t, E.S32]), [few, places], "jax")
    for t in (E.PRED, *INTEGERS):
        for direction in (D.LT, D.GT):
            by = plain([t, E.S32], direction)
            yield _sort([t, E.S32], (130,), 0, by, [few, places], f"plain-{direction.value}")
    for t in FLOATS:
        for direction in (D.LT, D.GT):
            by = plain([t, E.S32], direction, kind=TOTAL)
            yield _sort([t, E.S32], (130,), 0, by, [few, places], f"total-{direction.value}")
            by = plain([t, E.S32], direction)
            yield _sort([t, E.S32], (130,), 0, by, [small_floats, places], f"plain-{direction.value}")
    for t in COMPLEX:
        yield _sort([t], (40,), 0, comparator([t]), [small_floats], "ties")
    for dims, axis in _SIZES:
        yield _sort([E.F32], dims, axis, comparator([E.F32]), [few], "size")
        yield _sort([E.F32, E.S32], dims, axis, comparator([E.F32, E.S32]), [few, places], "size")
        yield _sort([E.S32], dims, axis, _odd_first(), [any_value], "size-odd-first")
    pair = [E.S32, E.S32]
    yield _sort([E.S32], (3, 61), 1, _by_magnitude(), [small_integer], "by-magnitude")
    yield _sort(pair, (3, 61), 1, _by_sum(), [small_integer, small_integer], "by-sum")
    yield _sort([E.S32], (3, 61), 1, _odd_first(), [small_integer], "odd-first")
    yield _sort(pair, (3, 61), 1, plain(pair, D.LT, key=1), [places, small_integer], "second-operand")
    yield _sort([E.F32], (61,), 0, comparator([E.F32]), [shuffled], "unstable", stable=False)
    three = [E.S16, E.F32, E.U8]
    yield _sort(three, (3, 61), 1, comparator(three, 2), [small_integer, small_floats, any_value], "two-keys")
    yield _sort(three, (3, 61), 1, comparator(three, 3), [small_integer, small_floats, any_value], "three-keys")
    seven = [E.S8, E.U16, E.F32, E.F64, E.C64, E.PRED, E.BF16]
    kinds: list[Values] = [small_integer, small_integer, *[any_value] * 5]
    yield _sort(seven, (200,), 0, comparator(seven, 2), kinds, "seven")


def _topks() -> Iterator[OpCase]:
    for t in (E.PRED, *INTEGERS, *FLOATS):
        for largest in (True, False):
            note = f"{'largest' if largest else 'smallest'}"
            result = Shape.tuple([shape_of(t, (3, 5)), shape_of(E.S32, (3, 5))])
            yield make_case(O.TOPK, [Array(t, (3, 61), few)], result, TopKAttributes(5, largest), note=note)
    for dims, k in [
        ((1,), 0), ((1,), 1), ((0,), 0), ((7,), 7), ((2, 0), 0), ((0, 5), 3), ((2, 3, 40), 1), ((500,), 3),
        ((300,), 150), ((2, 300), 33),
    ]:  # fmt: skip
        result = Shape.tuple([shape_of(E.F32, (*dims[:-1], k)), shape_of(E.S32, (*dims[:-1], k))])
        yield make_case(O.TOPK, [Array(E.F32, dims, few)], result, TopKAttributes(k), note=f"{k}-of-all")


def cases() -> Iterator[OpCase]:
    """The cases of sort and topk."""
    yield from _sorts()
    yield from _topks()
