"""Copies that change a layout become transposes of row-major views, which fuse like any other transpose.

A buffer of f32[2,3]{0,1} holds the same bytes as one of f32[3,2]{1,0}: a bitcast shows it so, and a transpose of that
is the array in row-major order. After this pass only parameters, results and bitcasts are not row-major.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..attributes import TransposeAttributes
from ..builder import make_instruction
from ..errors import UnsupportedError
from ..ir import HloInstruction, HloModule
from ..layout import Layout
from ..opcode import Opcode
from ..shape import Shape
from .rewrite import map_computations, rewrite_computation


@dataclass(frozen=True)
class LayoutCopies:
    """The pass."""

    name: str = "layout-copies"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, lambda c: rewrite_computation(c, lambda old, moved: _rewritten(moved)))


def _rewritten(instruction: HloInstruction) -> HloInstruction:
    if instruction.opcode is not Opcode.COPY:
        return instruction
    operand = instruction.operands[0]
    if instruction.shape.is_tuple:
        return operand
    source, target = operand.shape.array_layout, instruction.shape.array_layout
    if source == target:
        return instruction
    source_order, target_order = _major_to_minor(source), _major_to_minor(target)
    dims = operand.shape.dimensions
    view = _bitcast(operand, Shape.array(operand.shape.element, [dims[d] for d in source_order]))
    permutation = tuple(source_order.index(d) for d in target_order)
    if permutation != tuple(range(len(permutation))):
        view = make_instruction(Opcode.TRANSPOSE, (view,), TransposeAttributes(permutation))
    return _bitcast(view, instruction.shape)


def _bitcast(operand: HloInstruction, shape: Shape) -> HloInstruction:
    return operand if operand.shape == shape else make_instruction(Opcode.BITCAST, (operand,), shape=shape)


def _major_to_minor(layout: Layout) -> tuple[int, ...]:
    if not layout.is_dense:
        raise UnsupportedError(f"layout {layout}: tiled and packed layouts are not compiled for the CPU")
    return layout.minor_to_major[::-1]
