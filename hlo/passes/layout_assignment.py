"""layout-assignment: everything inside a program is row-major; only parameters and results keep the caller's layouts.

A `copy` turns a parameter that comes in another layout into a row-major array, and a result the other way. It runs
first, so that all other passes may take row-major for granted. Layouts that a module's text gives to values inside
are a choice of whoever wrote it and carry no meaning, except for bitcast, which is written with reshape and transpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..builder import make_get_tuple_element, make_instruction, make_tuple
from ..errors import UnsupportedError
from ..ir import HloComputation, HloInstruction, HloModule
from ..layout import Layout
from ..opcode import Opcode
from ..shape import Shape
from .patterns import reshape, transpose
from .rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class LayoutAssignment:
    """Row-major inside, the caller's layouts at the entry. UnsupportedError for a bitcast between tiled layouts, which
    moves elements as an accelerator stores them."""

    name: str = "layout-assignment"

    def __call__(self, module: HloModule) -> HloModule:
        given, wanted = module.entry_parameter_layouts, module.entry_result_layouts
        asked = any(layout is not None and not layout.is_row_major for layout in (*given, *wanted))
        if not asked and all(_is_row_major(i.shape) for i in module.instructions()):
            return module
        entry = module.entry.name

        def rewrite(computation: HloComputation) -> HloComputation:
            if computation.name != entry:
                return _row_major_inside(computation, {})
            layouts = iter(given)
            outside = {p: _outer_shape(p.shape, layouts) for p in computation.parameters}
            inside = _row_major_inside(computation, {p: s for p, s in outside.items() if not _is_row_major(s)})
            result = _outer_shape(computation.root.shape, iter(wanted))
            return _with_result_shape(inside, result)

        return map_computations(module, rewrite)


def _is_row_major(shape: Shape) -> bool:
    if shape.tuple_shapes is not None:
        return all(map(_is_row_major, shape.tuple_shapes))
    return shape.array_layout.is_row_major


def _outer_shape(shape: Shape, layouts: Iterator[Layout | None]) -> Shape:
    """The shape that the caller sees; the module's entry layouts, one a leaf, count before the instruction's. Tiles,
    packing and memory spaces say how an accelerator stores an array; here all arrays are dense."""
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_outer_shape(s, layouts) for s in shape.tuple_shapes])
    layout = next(layouts, None) or shape.array_layout
    return shape.with_layout(Layout(layout.minor_to_major))


def _unpacked(shape: Shape) -> Shape:
    """Without what XLA says of elements of less than a byte (`E(4)`): that several share one in its memory. Here they
    have one each, inside and outside of programs."""
    if shape.array_layout.element_size_in_bits != shape.element.bit_width:
        return shape
    return shape.with_layout(replace(shape.array_layout, element_size_in_bits=0))


def _require_dense(shape: Shape, name: str) -> None:
    for leaf in shape.leaves():
        if not leaf.array_layout.is_dense:
            raise UnsupportedError(f"{name}: layout {leaf.to_text()} is tiled or packed; the CPU needs dense arrays")


def _row_major_inside(computation: HloComputation, outside: dict[HloInstruction, Shape]) -> HloComputation:
    """Every shape row-major but those of the parameters in `outside`, which are copied first."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old in outside:
            shape = outside[old]
            return _relayout(old if old.shape == shape else replace(old, shape=shape), shape.with_default_layout())
        if old.opcode is Opcode.BITCAST:
            return _bitcast(moved.operands[0], old.operands[0].shape, old.shape)
        if old.opcode is Opcode.COPY:
            return moved.operands[0]  # only layouts differed
        return moved if _is_row_major(old.shape) else replace(moved, shape=old.shape.with_default_layout())

    return rewrite_computation(computation, visit)


def _relayout(value: HloInstruction, shape: Shape) -> HloInstruction:
    """`value` in the layouts of `shape`: copies of the leaves that differ."""
    if value.shape == shape:
        return value
    if shape.is_tuple:
        elements = [_relayout(make_get_tuple_element(value, k), s) for k, s in enumerate(shape.elements)]
        return make_tuple(elements)
    return make_instruction(Opcode.COPY, (value,), shape=shape)


def _with_result_shape(entry: HloComputation, shape: Shape) -> HloComputation:
    root = _relayout(entry.root, shape)
    if root is entry.root:
        return entry
    order = dict.fromkeys(entry.instructions)
    _append(root, order)
    return HloComputation(entry.name, tuple(order), root)


def _append(root: HloInstruction, order: dict[HloInstruction, None]) -> None:
    """Add what is new below `root` (tuples and copies: not deep)."""
    for operand in root.operands:
        if operand not in order:
            _append(operand, order)
    order[root] = None


def _bitcast(value: HloInstruction, source: Shape, target: Shape) -> HloInstruction:
    """What a bitcast between these layouts does, on a row-major `value`: the elements in the order in which `source`
    lies in memory, read in the order in which `target` does."""
    for shape in (source, target):
        _require_dense(_unpacked(shape), "bitcast")
    value = transpose(value, source.array_layout.minor_to_major[::-1])
    if source.element_type is not target.element_type:
        same_width = value.shape.with_element_type(target.element)
        value = make_instruction(Opcode.BITCAST_CONVERT, (value,), shape=same_width)
    physical = target.array_layout.minor_to_major[::-1]
    value = reshape(value, [target.dimensions[d] for d in physical])
    return transpose(value, [physical.index(d) for d in range(len(physical))])
