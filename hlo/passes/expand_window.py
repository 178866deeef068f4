"""Expansion of reduce-window: what is an ordinary reduction, and halves in f32."""

from __future__ import annotations

from collections.abc import Callable

from ..attributes import ReduceAttributes, ReduceWindowAttributes
from ..builder import make_get_tuple_element, make_instruction, make_tuple
from ..element_type import ElementType
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..window import is_trivial

_HALF = (ElementType.F16, ElementType.BF16)
_MONOIDS = (Opcode.ADD, Opcode.MULTIPLY)


def window_of_everything(instruction: HloInstruction) -> HloInstruction | None:
    """A window that has one place along each dimension that it moves on, and covers it: a reduce.

    Valid for any reducer: both leave the order open. Reductions can be fused, windows cannot.
    """
    attributes = instruction.attributes
    count = len(instruction.operands) // 2
    sizes = instruction.operands[0].shape.dimensions
    reduced = [d for d, part in enumerate(attributes.window) if not is_trivial(part)]
    for d in reduced:
        part = attributes.window[d]
        whole = (part.size, part.padding_low, part.padding_high, part.base_dilation, part.window_dilation)
        if whole != (sizes[d], 0, 0, 1, 1):
            return None
    if not reduced and instruction.shape.leaves().__next__().num_elements == 0:
        return None
    reduce = make_instruction(
        Opcode.REDUCE, instruction.operands, ReduceAttributes(tuple(reduced), attributes.to_apply)
    )
    leaves = list(instruction.shape.leaves())
    parts = [reduce] if count == 1 else [make_get_tuple_element(reduce, k) for k in range(count)]
    results = [
        make_instruction(Opcode.RESHAPE, (part,), shape=Shape.array(leaf.element, leaf.dimensions))
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return results[0] if count == 1 else make_tuple(results)


def half_window_in_f32(
    convert: Callable[[HloInstruction, ElementType], HloInstruction],
    reducer: Callable[[Opcode, ElementType], HloComputation],
) -> Callable[[HloInstruction], HloInstruction | None]:
    """The rule: sums and products of f16 and bf16 are accumulated in f32 and rounded once."""

    def rule(instruction: HloInstruction) -> HloInstruction | None:
        element = instruction.operands[0].shape.element
        computation = instruction.attributes.to_apply
        root = computation.root
        if len(instruction.operands) != 2 or element not in _HALF or root.opcode not in _MONOIDS:
            return None
        if set(root.operands) != set(computation.parameters):
            return None
        operands = [convert(o, ElementType.F32) for o in instruction.operands]
        attributes = ReduceWindowAttributes(instruction.attributes.window, reducer(root.opcode, ElementType.F32))
        return convert(make_instruction(Opcode.REDUCE_WINDOW, operands, attributes), element)

    return rule
