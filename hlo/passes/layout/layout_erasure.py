"""layout-erasure: everything inside a program becomes row-major; only the module keeps the caller's layouts.

It runs early, so that all simplification can rely on row-major arrays. Layouts that a module's text gives to values
inside are its author's choice and have no meaning, with two exceptions: a bitcast reads bytes, and is replaced by
operations that move elements; a custom call may state the layouts in which its function takes and returns arrays, and
keeps those. `entry_parameter_layouts` and `entry_result_layouts` are complete afterwards: order, tiles, packing, memory
space. `layout_assignment.py` and `layout_normalization.py` use them later, when the program is simple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...custom_calls import is_built_in
from ...errors import UnsupportedError
from ...ir import HloComputation, HloInstruction, HloModule
from ...layout import Layout
from ...opcode import Opcode
from ...ops.custom_call import CustomCallAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..rewrite import map_computations, rewrite_computation
from .bitcast import bitcast_as_moves


@dataclass(frozen=True, slots=True)
class LayoutErasure:
    """The pass. UnsupportedError for a bitcast that no operations on logical arrays can replace."""

    name: str = "layout-erasure"

    def __call__(self, module: HloModule) -> HloModule:
        if all(_is_erased(i) for i in module.instructions()):
            return module
        given = _complete(module.entry_parameter_layouts, [p.shape for p in module.entry.parameters])
        wanted = _complete(module.entry_result_layouts, [module.entry.root.shape])
        if (given, wanted) != (module.entry_parameter_layouts, module.entry_result_layouts):
            module = replace(module, entry_parameter_layouts=given, entry_result_layouts=wanted)
        return map_computations(module, _erased)


def _complete(layouts: tuple[Layout | None, ...], shapes: list[Shape]) -> tuple[Layout | None, ...]:
    """One layout for each leaf, or none if all are the default. The module's layouts override the instructions'."""
    stated: Iterator[Layout | None] = iter(layouts)
    found = [next(stated, None) or leaf.array_layout for shape in shapes for leaf in shape.leaves()]
    if all(layout.is_row_major for layout in found):
        return ()
    return tuple(None if layout.is_row_major else layout for layout in found)


def is_row_major(shape: Shape) -> bool:
    """True when all arrays in a shape have the default layout."""
    if shape.tuple_shapes is not None:
        return all(map(is_row_major, shape.tuple_shapes))
    return shape.array_layout.is_row_major


def keeps_layouts(instruction: HloInstruction) -> bool:
    """True for a custom call that states the layouts of its function, unless that kind of function sees
    only elements. UnsupportedError if it wants tiles."""
    if instruction.opcode is not Opcode.CUSTOM_CALL:
        return False
    attributes: CustomCallAttributes = instruction.attributes
    constraints = attributes.operand_layout_constraints
    if constraints is None or is_built_in(attributes.custom_call_target):
        return False
    for leaf in Shape.tuple([instruction.shape, *constraints]).leaves():
        if leaf.array_layout.tiles or leaf.array_layout.padded_dimensions:
            raise UnsupportedError(
                f"custom-call {instruction.name} of target {attributes.custom_call_target!r} wants an array as "
                f"{leaf.to_text()}: functions get and give dense arrays, in any order of dimensions"
            )
    return True


def _is_erased(instruction: HloInstruction) -> bool:
    if instruction.opcode in (Opcode.BITCAST, Opcode.COPY) and not is_row_major(instruction.operands[0].shape):
        return False
    return is_row_major(instruction.shape) or keeps_layouts(instruction)


def _erased(computation: HloComputation) -> HloComputation:
    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if _is_erased(old):
            return moved
        if old.opcode is Opcode.BITCAST:
            return bitcast_as_moves(moved.operands[0], old.operands[0].shape, old.shape)
        if old.opcode is Opcode.COPY:
            return moved.operands[0]  # only layouts differed
        return replace(moved, shape=old.shape.with_default_layout())

    return rewrite_computation(computation, visit)
