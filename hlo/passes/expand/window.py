"""Expansion of a reduce-window that is an ordinary reduction."""

from __future__ import annotations

from ...builder import make_get_tuple_element, make_instruction, make_tuple
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.reduce import ReduceAttributes
from ...window import is_trivial
from ..patterns import reshape


def window_of_everything(instruction: HloInstruction) -> HloInstruction | None:
    """A window with one position along each dimension that it covers, all of it, is a reduce.

    Valid for any reducer: both ops leave the order open. Reductions can be fused, windows cannot.
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
    if not reduced and all(leaf.num_elements == 0 for leaf in instruction.shape.leaves()):
        return None
    reduce = make_instruction(
        Opcode.REDUCE, instruction.operands, ReduceAttributes(tuple(reduced), attributes.to_apply)
    )
    leaves = list(instruction.shape.leaves())
    parts = [reduce] if count == 1 else [make_get_tuple_element(reduce, k) for k in range(count)]
    results = [
        reshape(part, leaf.dimensions)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return results[0] if count == 1 else make_tuple(results)

