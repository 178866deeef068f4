"""The kernel of select-and-scatter, the gradient of max-pooling.

It first writes the init value to the result; then each position of the window finds its element and scatters, in
order. Small windows are unrolled without branches, because branches here would be unpredictable::

    keep = best >= value
    best = select(keep, best, value)
    found = select(keep, found, cell)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import ExitStack

from ...hlo.ir import HloInstruction
from ...hlo.window import dilated, is_plain
from .applied import Buffer, KernelText, cost_of
from .source import EmittedKernel, Expr
from .window_places import MANY_ROWS, UNROLLED, Place, axes_of, offset_of


def emit_select_and_scatter(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a select-and-scatter.

    Threads share the dimensions that the window does not change: the leading ones, or the trailing ones if the window
    moves along the first dimension. No two threads scatter to the same element. For each of its indices, in order::

        found = -1
        for k0 in range(2):
            ...
            if found < 0 or not (best >= x[cell]):
                best = x[cell]
                found = cell
        if found >= 0:
            out[found] = out[found] + source[first]
    """
    array, source = (o.shape for o in instruction.operands[:2])
    attributes = instruction.attributes
    axes = axes_of(array.dimensions, source.dimensions, attributes.window)
    text = KernelText("select_and_scatter", attributes.scatter)
    values = text.operand("x", array.element, 0)
    updates = text.operand("y", source.element, 1)
    start = text.operand("i", array.element, 2)
    output = text.output("out", array.element, 0)
    places = [Place(text, number, axis) for number, axis in enumerate(axes)]
    sliced = _shared_dimension(places)
    text.line(f"init = {start.load('0')}")
    with ExitStack() as whole:
        if sliced == 0:
            whole.enter_context(text.block("for o0 in range(lo, hi):"))
        _select_and_scatter(text, instruction, values, updates, output, places, sliced, int(sliced == 0))
    extent = 1 if sliced is None else axes[sliced].size
    taps = math.prod(axis.part.size for axis in axes)
    total = source.num_elements * (2.0 + taps * (1.0 + cost_of(attributes.select))) + array.num_elements
    return text.finish(extent, total / max(extent, 1))


def _select_and_scatter(
    text: KernelText, instruction: HloInstruction, values: Buffer, updates: Buffer, output: Buffer,
    places: Sequence[Place], sliced: int | None, shared: int,
) -> None:  # fmt: skip
    """Fill, then scatter, inside `shared` loops: the filled part is then still in the cache. Windows that neither
    overlap nor leave the array are written whole, which vectorises."""
    moving = [place for place in places if place.moves]
    disjoint = all(
        is_plain(p.axis.part) and p.axis.part.stride >= dilated(p.axis.part.size, p.axis.part.window_dilation)
        for p in moving
    )
    disjoint = disjoint and math.prod(p.axis.part.size for p in moving) <= UNROLLED
    with ExitStack() as stack:
        terms = _loops(text, stack, places, sliced, shared, [p.size for p in places])
        text.line(output.store(offset_of(terms, [p.size for p in places]), Expr("init")))
    with ExitStack() as stack:
        terms = _loops(text, stack, places, sliced, shared, [p.count for p in places])
        if disjoint:
            _write_window(text, instruction, values, updates, output, places, terms)
            return
        _select(text, instruction, values, places, terms)
        with text.block("if found >= 0:"):
            text.line(f"old = {output.load('found')}")
            text.line(f"update = {updates.load(offset_of(terms, [p.count for p in places]))}")
            (new,) = text.apply(instruction.attributes.scatter, [Expr("old"), Expr("update")])
            text.line(output.store("found", new))


def _select(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    """Set `found` to the position of the selected element for one position of the window, or to -1."""
    moving = [place for place in places if place.moves]
    taps = math.prod(place.axis.part.size for place in moving)
    if taps > UNROLLED or any(place.axis.part.base_dilation != 1 for place in moving):
        _select_in_loops(text, instruction, values, places, terms)
        return
    tests = []
    for place in moving:
        text.line(f"at{place.number} = {place.origin(terms[place.number])}")
        if not is_plain(place.axis.part):
            span = dilated(place.axis.part.size, place.axis.part.window_dilation) - 1
            reach = text.size(f"r{place.number}", span, literal=True)
            tests.append(f"at{place.number} >= 0 and at{place.number} + {reach} < {place.size}")
    if not tests:
        _select_unrolled(text, instruction, values, places, terms)
        return
    with text.block(f"if {' and '.join(tests)}:"):
        _select_unrolled(text, instruction, values, places, terms)
    with text.block("else:"):
        _select_in_loops(text, instruction, values, places, terms)


def _select_unrolled(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    """The same without branches, which would be unpredictable."""
    for number, cell in enumerate(_cells(places, terms)):
        text.line(f"cell = {cell}")
        text.line(f"value = {values.load('cell')}")
        if not number:
            text.line("best = value")
            text.line("found = cell")
            continue
        (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
        text.line(f"keep = {keep.text}")
        text.line("best = select(keep, best, value)")
        text.line("found = select(keep, found, cell)")


def _cells(places: Sequence[Place], terms: Sequence[str]) -> list[str]:
    """The positions of a window's elements, in order."""
    moving = [place for place in places if place.moves]
    found = []
    for element in itertools.product(*(range(p.axis.part.size) for p in moving)):
        shifts = dict(zip((p.number for p in moving), element, strict=True))
        cells = [
            f"at{p.number} + {p.shift(str(shifts[p.number]))}" if p.moves else term
            for p, term in zip(places, terms, strict=True)
        ]
        found.append(offset_of(cells, [p.size for p in places]))
    return found


def _write_window(
    text: KernelText, instruction: HloInstruction, values: Buffer, updates: Buffer, output: Buffer,
    places: Sequence[Place], terms: Sequence[str],
) -> None:  # fmt: skip
    """All elements of one window: the selected one is combined, the others keep the init value."""
    for place in places:
        if place.moves:
            text.line(f"at{place.number} = {place.origin(terms[place.number])}")
    cells = _cells(places, terms)
    text.line(f"best = {values.load(cells[0])}")
    text.line("which = int32(0)")
    for number, cell in enumerate(cells[1:], start=1):
        text.line(f"value = {values.load(cell)}")
        (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
        text.line(f"keep = {keep.text}")
        text.line("best = select(keep, best, value)")
        text.line(f"which = select(keep, which, int32({number}))")
    text.line(f"update = {updates.load(offset_of(terms, [p.count for p in places]))}")
    (new,) = text.apply(instruction.attributes.scatter, [Expr("init"), Expr("update")])
    text.line(f"new = {new.text}")
    for number, cell in enumerate(cells):
        text.line(output.store(cell, Expr(f"select(which == int32({number}), new, init)")))


def _select_in_loops(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    text.line("found = -1")
    text.line("best = init")
    with ExitStack() as stack:
        text.line(f"cell = {_window_cell(text, stack, places, terms)}")
        text.line(f"value = {values.load('cell')}")
        text.line("again = found < 0")
        with text.block("if not again:"):
            (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
            text.line(f"again = not ({keep.text})")
        with text.block("if again:"):
            text.line("best = value")
            text.line("found = cell")


def _shared_dimension(places: Sequence[Place]) -> int | None:
    """The dimension to slice, of those that the window does not change: the first if long enough, else the largest."""
    still = [p.number for p in places if not p.moves]
    if not still:
        return None
    return still[0] if places[still[0]].axis.size >= MANY_ROWS else max(still, key=lambda d: places[d].axis.size)


def _loops(
    text: KernelText, stack: ExitStack, places: Sequence[Place], sliced: int | None, shared: int, bounds: Sequence[str]
) -> list[str]:
    """Opens a loop for each dimension from `shared` on; gives the variables of all dimensions."""
    for place, bound in list(zip(places, bounds, strict=True))[shared:]:
        limits = "lo, hi" if place.number == sliced else bound
        stack.enter_context(text.block(f"for o{place.number} in range({limits}):"))
    return [f"o{place.number}" for place in places]


def _window_cell(text: KernelText, stack: ExitStack, places: Sequence[Place], terms: Sequence[str]) -> str:
    """Opens the loops over the window, as far as it is inside the array; gives the element's position."""
    cells = []
    for place, term in zip(places, terms, strict=True):
        if not place.moves:
            cells.append(term)
            continue
        number = place.number
        text.line(f"at{number} = {place.origin(term)}")
        stack.enter_context(text.block(f"for k{number} in {place.elements(f'at{number}')}:"))
        text.line(f"cell{number} = at{number} + {place.shift(f'k{number}')}")
        tests = place.tests(f"cell{number}")
        if tests:
            stack.enter_context(text.block(f"if {' and '.join(tests)}:"))
        cells.append(place.row(f"cell{number}"))
    return offset_of(cells, [p.size for p in places])
