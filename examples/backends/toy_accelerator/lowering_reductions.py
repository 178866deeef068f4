"""Ops that apply a computation: reduce, reduce-window, select-and-scatter, sort.

Each is a few passes of the vector unit over parts of arrays; how many depends on sizes alone, never on values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from hloom.hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_parameter,
    make_tuple,
)
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.passes.map_inliner import apply_to_arrays
from hloom.hlo.window import Window, dilated, is_plain

from .assembler import elements_of, not_elementwise
from .isa import View
from .lowering import LOWER, Lowering, spread

_O = Opcode
_PRED, _S32, _S64 = ElementType.PRED, ElementType.S32, ElementType.S64


@LOWER.register(_O.REDUCE)
def reduce(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """The reduced dimensions first; then neighbours are combined, so that half as many rows are left, until it is one.
    That keeps the order, and takes log n passes."""
    assembler, attributes = lowering.assembler, instruction.attributes
    count = len(results)
    arrays, inits = operands[:count], operands[count:]
    kept = [d for d in range(len(arrays[0].sizes)) if d not in attributes.dimensions]
    spread_inits = [init.broadcast((), r.sizes) for init, r in zip(inits, results, strict=True)]
    if not results[0].count:
        return
    if not arrays[0].count:
        for result, init in zip(results, spread_inits, strict=True):
            assembler.copy(result, init)
        return
    elements = [leaf.element for leaf in instruction.shape.leaves()]
    rows = []
    for array, element in zip(arrays, elements, strict=True):
        moved = array.transpose([*attributes.dimensions, *kept])
        dense = assembler.temporary(element, moved.sizes)
        assembler.copy(dense, moved)
        rows.append(dense.reshape(-(-dense.count // results[0].count), results[0].count))
    while (n := rows[0].sizes[0]) > 1:
        half = n // 2
        pairs = [[row.part(0, first, half, 2) for row in rows] for first in (0, 1)]
        # In place: pair i is read before, or together with, what overwrites it.
        assembler.apply(attributes.to_apply, [*pairs[0], *pairs[1]], [row.part(0, 0, half) for row in rows])
        if n % 2:
            for row in rows:
                assembler.copy(row.part(0, half, 1), row.part(0, n - 1, 1))
        rows = [row.part(0, 0, half + n % 2) for row in rows]
    last = [row.reshape(*r.sizes) for row, r in zip(rows, results, strict=True)]
    assembler.apply(attributes.to_apply, [*spread_inits, *last], results)


# ---- windows


def _padded(window: Window, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        max(0, w.padding_low + dilated(size, w.base_dilation) + w.padding_high)
        for w, size in zip(window, sizes, strict=True)
    )


def _positions(window: Window, area: View, sizes: Sequence[int]) -> Iterator[View]:
    """For each element of a window, in row-major order, the elements of `area` that it is on as the window moves."""
    for offsets in product(*(range(w.size) for w in window)):
        starts = [o * w.window_dilation for o, w in zip(offsets, window, strict=True)]
        yield area.slice(starts, [w.stride for w in window], sizes)


def _areas(lowering: Lowering, window: Window, arrays: Sequence[tuple[ElementType, View]]) -> tuple[list[View], View]:
    """Each array with its padding and holes, filled with zeros; and where there are elements (pred)."""
    assembler = lowering.assembler
    sizes = arrays[0][1].sizes
    area, low, steps = _padded(window, sizes), [w.padding_low for w in window], [w.base_dilation for w in window]
    found = []
    there = assembler.constant(b"\1", (), 1).broadcast((), sizes)
    for element, source in (*arrays, (_PRED, there)):
        itemsize = element.dtype.itemsize
        view = assembler.temporary(element, area)
        assembler.copy(view, assembler.constant(bytes(itemsize), (), itemsize).broadcast((), area))
        assembler.copy(*spread(view, source, low, steps))
        found.append(view)
    return found[:-1], found[-1]


@LOWER.register(_O.REDUCE_WINDOW)
def reduce_window(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """All windows at once, one of their elements after the other."""
    assembler, attributes = lowering.assembler, instruction.attributes
    count = len(results)
    elements = [leaf.element for leaf in instruction.shape.leaves()]
    arrays, inits = operands[:count], operands[count:]
    for result, init in zip(results, inits, strict=True):
        assembler.copy(result, init.broadcast((), result.sizes))
    if not results[0].count:
        return
    window = attributes.window
    if all(map(is_plain, window)) and all(w.padding_low == w.padding_high == 0 for w in window):
        moving = zip(*(_positions(window, a, results[0].sizes) for a in arrays), strict=True)
        for parts in moving:
            assembler.apply(attributes.to_apply, [*results, *parts], results)
        return
    areas, there = _areas(lowering, window, list(zip(elements, arrays, strict=True)))
    combine = _where_there(attributes.to_apply)
    for parts in zip(*(_positions(window, a, results[0].sizes) for a in (*areas, there)), strict=True):
        assembler.apply(combine, [*results, *parts], results)


def _where_there(reducer: HloComputation) -> HloComputation:
    """(accumulators, elements, pred) -> the reducer's result, or the accumulators where pred is false."""
    parameters = [make_parameter(k, p.shape, f"p{k}") for k, p in enumerate(reducer.parameters)]
    there = make_parameter(len(parameters), Shape.array(_PRED), "there")
    new = elements_of(_on(reducer, parameters))
    old = parameters[: len(new)]
    chosen = [make_instruction(_O.SELECT, (there, n, o)) for n, o in zip(new, old, strict=True)]
    return make_computation("where_there", make_tuple(chosen), [*parameters, there])


def _on(computation: HloComputation, operands: Sequence[HloInstruction]) -> HloInstruction:
    """The root of a computation on other operands."""
    root = apply_to_arrays(computation, operands, ())
    if root is None:
        raise not_elementwise(computation)
    return root


def _binary(opcode: Opcode, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, (a, b))


def _less(a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(_O.COMPARE, (a, b), CompareAttributes(ComparisonDirection.LT))


def _equal(a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(_O.COMPARE, (a, b), CompareAttributes(ComparisonDirection.EQ))


def _not(a: HloInstruction) -> HloInstruction:
    return make_instruction(_O.NOT, (a,))


@LOWER.register(_O.SELECT_AND_SCATTER)
def select_and_scatter(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """Each window remembers which of its elements is selected; then the elements are visited once more, and those that
    a window has selected are combined with the source."""
    assembler, attributes, element = lowering.assembler, instruction.attributes, instruction.shape.element
    array, source, init = operands
    window = attributes.window
    if not source.count:
        assembler.copy(results[0], init.broadcast((), results[0].sizes))
        return
    (area,), there = _areas(lowering, window, [(element, array)])
    best, which = assembler.temporary(element, source.sizes), assembler.temporary(_S32, source.sizes)
    nothing = assembler.constant(np.int32(-1).tobytes(), (), 4)
    assembler.copy(which, nothing.broadcast((), source.sizes))
    assembler.copy(best, assembler.constant(bytes(best.itemsize), (), best.itemsize).broadcast((), source.sizes))
    choose, put = _choose(attributes.select, element), _put(attributes.scatter, element)
    moving = list(zip(_positions(window, area, source.sizes), _positions(window, there, source.sizes), strict=True))
    numbers = [assembler.constant(np.int32(k).tobytes(), (), 4).broadcast((), source.sizes) for k in range(len(moving))]
    for number, (part, exists) in zip(numbers, moving, strict=True):
        assembler.apply(choose, [best, which, part, exists, number], [best, which])
    assembler.copy(area, init.broadcast((), area.sizes))
    for number, (part, _) in zip(numbers, moving, strict=True):
        assembler.apply(put, [part, source, which, number], [part])
    assembler.copy(results[0], init.broadcast((), results[0].sizes))
    inside, result = spread(area, results[0], [w.padding_low for w in window], [w.base_dilation for w in window])
    assembler.copy(result, inside)


def _choose(select: HloComputation, element: ElementType) -> HloComputation:
    """(best, which, part, exists, number) -> (best, which): the first that exists, until `select` prefers a later one.
    """
    types = (element, _S32, element, _PRED, _S32)
    best, which, part, exists, number = parameters = [
        make_parameter(k, Shape.array(t), f"p{k}") for k, t in enumerate(types)
    ]
    is_first = _less(which, make_constant(np.int32(0)))
    keep = _on(select, [best, part])
    take = _binary(_O.AND, exists, _binary(_O.OR, is_first, _not(keep)))
    chosen = [make_instruction(_O.SELECT, (take, new, old)) for new, old in ((part, best), (number, which))]
    return make_computation("choose", make_tuple(chosen), parameters)


def _put(scatter: HloComputation, element: ElementType) -> HloComputation:
    """(part, source, which, number) -> part, combined with the source where this element was selected."""
    types = (element, element, _S32, _S32)
    part, source, which, number = parameters = [
        make_parameter(k, Shape.array(t), f"p{k}") for k, t in enumerate(types)
    ]
    combined = _on(scatter, [part, source])
    root = make_instruction(_O.SELECT, (_equal(which, number), combined, part))
    return make_computation("put", root, parameters)


# ---- sort


@LOWER.register(_O.SORT)
def sort(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Batcher's bitonic network, in which every comparison has the same direction. The position, sorted along, makes it
    stable; padding up to a power of two has positions behind all others."""
    assembler, attributes = lowering.assembler, instruction.attributes
    dimension, size = attributes.dimension, operands[0].sizes[attributes.dimension]
    if not operands[0].count:
        return
    rest = operands[0].count // size
    order = [dimension, *(d for d in range(len(operands[0].sizes)) if d != dimension)]
    width = 1 << (size - 1).bit_length()
    elements = [leaf.element for leaf in instruction.shape.leaves()]
    columns = []
    for operand, element in zip(operands, elements, strict=True):
        moved = operand.transpose(order)
        column = assembler.temporary(element, (width, *moved.sizes[1:]))
        assembler.copy(column.part(0, 0, size), moved)
        for start in range(size, width):  # any element of the right type
            assembler.copy(column.part(0, start, 1), moved.part(0, 0, 1))
        columns.append(column.reshape(width, rest))
    line = assembler.temporary(_S32, (width,))
    assembler.iota(line, _S32)
    places = assembler.temporary(_S32, (width, rest))
    assembler.copy(places, line.broadcast((0,), (width, rest)))
    columns.append(places)
    exchange = _exchange(attributes.to_apply, elements, size)
    for block, mirrored in _rounds(width):
        views = [view for column in columns for view in _halves(column, block, mirrored)]
        assembler.apply(exchange, views, views)
    for column, result in zip(columns, results, strict=False):
        moved = result.transpose(order)
        assembler.copy(moved, column.part(0, 0, size).reshape(*moved.sizes))


def _rounds(width: int) -> Iterator[tuple[int, bool]]:
    """For each round, the size of the blocks with halves to compare, and whether the second half is read backwards."""
    merged = 2
    while merged <= width:
        yield merged, True
        block = merged // 2
        while block >= 2:
            yield block, False
            block //= 2
        merged *= 2


def _halves(column: View, block: int, mirrored: bool) -> tuple[View, View]:
    """The elements of a column that are compared with one another."""
    blocks = column.reshape(column.sizes[0] // block, block, column.sizes[1])
    half = block // 2
    return blocks.part(1, 0, half), blocks.part(1, block - 1, half, -1) if mirrored else blocks.part(1, half, half)


def _exchange(comparator: HloComputation, elements: Sequence[ElementType], size: int) -> HloComputation:
    """(a0, b0, a1, b1, ..., place of a, place of b) -> the same, in order."""
    types = [t for element in (*elements, _S32) for t in (element, element)]
    parameters = [make_parameter(k, Shape.array(t), f"p{k}") for k, t in enumerate(types)]
    *values, a, b = parameters
    swapped = [v for k in range(0, len(values), 2) for v in (values[k + 1], values[k])]
    forward, backward = _on(comparator, values), _on(comparator, swapped)
    limit = make_constant(np.int32(size))
    a_is, b_is = _less(a, limit), _less(b, limit)
    # b goes before a: both are elements, and by the comparator, or else by their places; or b is one and a is not
    tied = _binary(_O.AND, _not(forward), _less(b, a))
    by_value = _binary(_O.AND, _binary(_O.AND, a_is, b_is), _binary(_O.OR, backward, tied))
    swap = _binary(_O.OR, by_value, _binary(_O.AND, b_is, _not(a_is)))
    chosen = []
    for k in range(0, len(parameters), 2):
        x, y = parameters[k], parameters[k + 1]
        chosen += [make_instruction(_O.SELECT, (swap, first, second)) for first, second in ((y, x), (x, y))]
    return make_computation("exchange", make_tuple(chosen), parameters)


