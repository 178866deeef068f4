"""Op cases of the movement family: every element type once, then the special shapes of each op."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from .op_case import ALL, INTEGERS, Array, E, O, OpCase, make_case, shape_of
from .op_values import small_integer


def _every_type() -> Iterator[OpCase]:
    for t in ALL:
        yield make_case(O.COPY, [Array(t, (3, 5))], shape_of(t, (3, 5)))
        yield make_case(O.BITCAST, [Array(t, (3, 4))], shape_of(t, (2, 6)))
        yield make_case(O.BROADCAST, [Array(t, (3, 2))], shape_of(t, (3, 4, 2)), BroadcastAttributes((0, 2)))
        yield make_case(
            O.CONCATENATE, [Array(t, (2, 3)), Array(t, (2, 4))], shape_of(t, (2, 7)), ConcatenateAttributes(1)
        )
        yield make_case(
            O.PAD, [Array(t, (2, 3)), Array(t)], shape_of(t, (5, 7)), PadAttributes((1, 0), (2, 0), (0, 2))
        )
        yield make_case(O.RESHAPE, [Array(t, (3, 4))], shape_of(t, (2, 6)))
        yield make_case(O.REVERSE, [Array(t, (3, 5, 2))], shape_of(t, (3, 5, 2)), ReverseAttributes((0, 2)))
        yield make_case(O.SLICE, [Array(t, (7, 9))], shape_of(t, (2, 3)), SliceAttributes((1, 2), (5, 9), (3, 3)))
        yield make_case(O.TRANSPOSE, [Array(t, (3, 5, 2))], shape_of(t, (5, 2, 3)), TransposeAttributes((1, 2, 0)))
        starts = [Array(E.S32, (), small_integer), Array(E.S32, (), small_integer)]
        sizes = DynamicSliceAttributes((3, 2))
        yield make_case(O.DYNAMIC_SLICE, [Array(t, (5, 9)), *starts], shape_of(t, (3, 2)), sizes)
        operands = [Array(t, (5, 9)), Array(t, (3, 2)), *starts]
        yield make_case(O.DYNAMIC_UPDATE_SLICE, operands, shape_of(t, (5, 9)))
        if t is not E.PRED:
            yield make_case(O.IOTA, [], shape_of(t, (300,)), IotaAttributes(0), note=t.value)


def _f32(*dims: int) -> Array:
    return Array(E.F32, dims)


def _broadcasts() -> Iterator[OpCase]:
    for operand, result, dims in [
        ((), (), ()),
        ((), (3, 5), ()),
        ((1,), (1, 4), (0,)),
        ((0,), (2, 0), (1,)),
        ((3,), (0, 3), (1,)),
        ((5,), (5, 3), (0,)),
        ((2, 3), (3, 4, 2), (2, 0)),
    ]:
        attributes = BroadcastAttributes(dims)
        note = f"to-{'x'.join(map(str, result))}-at-{'.'.join(map(str, dims))}"
        yield make_case(O.BROADCAST, [_f32(*operand)], shape_of(E.F32, result), attributes, note=note)


def _concatenations() -> Iterator[OpCase]:
    table: list[tuple[list[tuple[int, ...]], int]] = [
        ([(3,)], 0),
        ([(0, 2), (3, 2), (1, 2), (0, 2)], 0),
        ([(2, 0), (2, 0)], 1),
        ([(2, 1, 3)] * 5, 1),
    ]
    for parts, d in table:
        joined = list(parts[0])
        joined[d] = sum(p[d] for p in parts)
        operands = [_f32(*p) for p in parts]
        note = f"{len(parts)}-along-{d}"
        yield make_case(O.CONCATENATE, operands, shape_of(E.F32, joined), ConcatenateAttributes(d), note=note)


def _pads() -> Iterator[OpCase]:
    for dims, low, high, interior in [
        ((), (), (), ()),
        ((0,), (2,), (1,), (3,)),
        ((4,), (-1,), (-2,), (0,)),
        ((4,), (-2,), (3,), (2,)),
        ((4,), (-3,), (-3,), (1,)),
        ((2,), (-3,), (4,), (0,)),
        ((2,), (5,), (-4,), (0,)),
        ((3, 1), (0, 2), (0, 2), (0, 5)),
        ((5,), (-20,), (30,), (1,)),
    ]:
        result = [n + lo + hi + max(n - 1, 0) * i for n, lo, hi, i in zip(dims, low, high, interior, strict=True)]
        note = "_".join(f"{lo}.{hi}.{i}" for lo, hi, i in zip(low, high, interior, strict=True))
        attributes = PadAttributes(low, high, interior)
        yield make_case(O.PAD, [_f32(*dims), _f32()], shape_of(E.F32, result), attributes, note=note)


def _reshapes() -> Iterator[OpCase]:
    for dims, result in [((), (1, 1)), ((0, 3), (7, 0)), ((1,), ()), ((2, 3, 4), (24,)), ((6,), (2, 1, 3))]:
        yield make_case(O.RESHAPE, [_f32(*dims)], shape_of(E.F32, result), note=f"to-{'x'.join(map(str, result))}")


def _reverses() -> Iterator[OpCase]:
    for dims, reversed_dims in [((), ()), ((0, 3), (0, 1)), ((1, 4), (1,)), ((3, 4), ())]:
        attributes = ReverseAttributes(reversed_dims)
        yield make_case(O.REVERSE, [_f32(*dims)], shape_of(E.F32, dims), attributes, note=str(list(reversed_dims)))


def _slices() -> Iterator[OpCase]:
    for dims, start, limit, stride in [
        ((), (), (), ()),
        ((5,), (2,), (2,), (1,)),
        ((5,), (0,), (5,), (9,)),
        ((0, 4), (0, 1), (0, 4), (1, 2)),
        ((6, 1, 4), (2, 0, 1), (6, 1, 3), (1, 1, 1)),
    ]:
        result = [-(-(hi - lo) // step) for lo, hi, step in zip(start, limit, stride, strict=True)]
        attributes = SliceAttributes(start, limit, stride)
        yield make_case(O.SLICE, [_f32(*dims)], shape_of(E.F32, result), attributes, note=str(list(start)))


def _transposes() -> Iterator[OpCase]:
    for dims, order in [((), ()), ((4,), (0,)), ((0, 3), (1, 0)), ((1, 7), (1, 0)), ((33, 65), (1, 0))]:
        result = [dims[d] for d in order]
        yield make_case(O.TRANSPOSE, [_f32(*dims)], shape_of(E.F32, result), TransposeAttributes(order))
    yield make_case(O.TRANSPOSE, [_f32(2, 3, 4, 5)], shape_of(E.F32, (5, 3, 2, 4)), TransposeAttributes((3, 1, 0, 2)))


def _dynamic_slices() -> Iterator[OpCase]:
    for index, (dims, sizes) in product(INTEGERS, [((7,), (3,)), ((4, 6), (4, 1))]):
        starts = [Array(index, (), small_integer) for _ in dims]
        note = index.value
        slice_sizes = DynamicSliceAttributes(sizes)
        yield make_case(O.DYNAMIC_SLICE, [_f32(*dims), *starts], shape_of(E.F32, sizes), slice_sizes, note=note)
        operands = [_f32(*dims), _f32(*sizes), *starts]
        yield make_case(O.DYNAMIC_UPDATE_SLICE, operands, shape_of(E.F32, dims), note=note)
    for index in (E.S32, E.U32, E.S64, E.U64):
        extreme = Array(index, ())
        yield make_case(
            O.DYNAMIC_SLICE, [_f32(7), extreme], shape_of(E.F32, (3,)), DynamicSliceAttributes((3,)), note="edge"
        )
    for dims, sizes in [((), ()), ((0,), (0,)), ((3,), (0,)), ((1, 1), (1, 1))]:
        starts = [Array(E.S32, (), small_integer) for _ in dims]
        slice_sizes = DynamicSliceAttributes(sizes)
        yield make_case(O.DYNAMIC_SLICE, [_f32(*dims), *starts], shape_of(E.F32, sizes), slice_sizes, note="size")
        operands = [_f32(*dims), _f32(*sizes), *starts]
        yield make_case(O.DYNAMIC_UPDATE_SLICE, operands, shape_of(E.F32, dims), note="size")


def _iotas() -> Iterator[OpCase]:
    for dims, d in [((0,), 0), ((1,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 0, 3), 2), ((2, 3, 4), 1)]:
        note = f"f32x{'x'.join(map(str, dims))}-along-{d}"
        yield make_case(O.IOTA, [], shape_of(E.F32, dims), IotaAttributes(d), note=note)


def cases() -> Iterator[OpCase]:
    """The movement cases."""
    yield from _every_type()
    for family in (
        _broadcasts,
        _concatenations,
        _pads,
        _reshapes,
        _reverses,
        _slices,
        _transposes,
        _dynamic_slices,
        _iotas,
    ):
        yield from family()
