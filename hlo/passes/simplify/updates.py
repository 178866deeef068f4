"""Rules of the algebraic simplifier that make an array's change as small as the part that changes. They hold for all
element types.

As in arithmetic.py, a rule takes an instruction and returns its replacement, or None.
"""

from __future__ import annotations

import numpy as np

from ...builder import make_constant, make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes, SliceAttributes
from ..map_inliner import apply_to_arrays
from ..patterns import binary, convert, reshape
from ..rules import rule

Instruction = HloInstruction

_MAX_UPDATES = 8
"""A longer chain of updates is not searched for the array that it updates."""


def select_of_updates(i: Instruction) -> Instruction | None:
    """select(p, update(a, u, at), a) = update(a, select(p', u, old), at), with the slices p' of p and old of a at `at`;
    also if both sides are updates of a, and for updates of updates."""
    p, *sides = i.operands
    first, second = map(_updated, sides)
    base = next((x for x in first if any(x is y for y in second)), None)
    if base is None or sides[0] is sides[1]:
        return None
    found = base
    for chain, taken in ((first, True), (second, False)):
        updates = chain[: next(k for k, x in enumerate(chain) if x is base)]
        for update in reversed(updates):
            found = _masked(p, update, found, taken)
    return found


def _updated(array: Instruction) -> list[Instruction]:
    """The array, the array that it is an update of, and so on."""
    found = [array]
    while array.opcode is Opcode.DYNAMIC_UPDATE_SLICE and len(found) <= _MAX_UPDATES:
        array = array.operands[0]
        found.append(array)
    return found


def _masked(p: Instruction, update: Instruction, array: Instruction, taken: bool) -> Instruction:
    """The update of `array` instead of its own one, where p is `taken`."""
    new, *starts = update.operands[1:]
    mask = p if p.shape.is_scalar else _block(p, starts, new.shape.dimensions)
    old = _block(array, starts, new.shape.dimensions)
    if array.opcode is Opcode.DYNAMIC_UPDATE_SLICE and _same_place(array, update):
        old, array = array.operands[1], array.operands[0]
    chosen = (new, old) if taken else (old, new)
    value = make_instruction(Opcode.SELECT, (mask, *chosen))
    return make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, (array, value, *starts))


def _same_place(a: Instruction, b: Instruction) -> bool:
    same = a.operands[1].shape.dimensions == b.operands[1].shape.dimensions
    return same and all(x is y for x, y in zip(a.operands[2:], b.operands[2:], strict=True))


def _block(array: Instruction, starts: list[Instruction], sizes: tuple[int, ...]) -> Instruction:
    return make_instruction(Opcode.DYNAMIC_SLICE, (array, *starts), DynamicSliceAttributes(sizes))


def scatter_of_one(i: Instruction) -> Instruction | None:
    """A scatter of one window is a dynamic-update-slice of old and new values combined; of the old ones if the window
    is not inside of the array, where a scatter does nothing. The combiner must consist of element-wise ops."""
    if len(i.operands) != 3:
        return None
    array, indices, update = i.operands
    a = i.attributes
    windows = [size for d, size in enumerate(update.shape.dimensions) if d not in a.update_window_dims]
    if a.input_batching_dims or any(size != 1 for size in windows) or not update.shape.num_elements:
        return None
    left_out = set(a.inserted_window_dims)
    kept = iter(a.update_window_dims)
    sizes = tuple(1 if d in left_out else update.shape.dimensions[next(kept)] for d in range(array.shape.rank))
    starts, inside = _starts(i, indices, sizes)
    whole = sizes == array.shape.dimensions
    old = array if whole else _block(array, starts, sizes)
    value = apply_to_arrays(a.to_apply, (old, reshape(update, sizes)), sizes)
    if value is None:
        return None
    if inside is not None:
        value = make_instruction(Opcode.SELECT, (inside, value, old))
    return value if whole else make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, (array, value, *starts))


def _starts(
    i: Instruction, indices: Instruction, sizes: tuple[int, ...]
) -> tuple[list[Instruction], Instruction | None]:
    """Where the one window of a scatter starts in each dimension, and whether it is inside of the array (None: yes)."""
    places, dimensions = i.attributes.scatter_dims_to_operand_dims, i.operands[0].shape.dimensions
    narrow = indices.shape.element is ElementType.S32 and all(d < 1 << 31 for d in dimensions)
    element = ElementType.S32 if narrow else ElementType.S64
    starts = [_number(0, element)] * len(dimensions)
    if not places:
        return starts, None
    # (A u64 beyond s64 becomes negative here, which is outside too.)
    vector = convert(reshape(indices, (len(places),) if len(places) > 1 else ()), element)
    inside: Instruction | None = None
    for component, d in enumerate(places):
        part = SliceAttributes((component,), (component + 1,), (1,))
        one = vector if len(places) == 1 else make_instruction(Opcode.SLICE, (vector,), part)
        starts[d] = start = reshape(one, ())
        for direction, bound in ((ComparisonDirection.GE, 0), (ComparisonDirection.LE, dimensions[d] - sizes[d])):
            operands = start, _number(bound, element)
            test = make_instruction(Opcode.COMPARE, operands, CompareAttributes(direction))
            inside = test if inside is None else binary(Opcode.AND, inside, test)
    return starts, inside


def _number(value: int, element: ElementType) -> Instruction:
    return make_constant(np.asarray(value, element.dtype))


UPDATE_RULES = (
    rule(select_of_updates, Opcode.SELECT, operands={Opcode.DYNAMIC_UPDATE_SLICE}),
    rule(scatter_of_one, Opcode.SCATTER),
)
"""In the order in which they are tried."""
