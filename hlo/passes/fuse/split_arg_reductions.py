"""A part of split-reductions: argmax and argmin of few long rows, or of few columns, run in two steps.

The first step finds the best pair of each part of a row, the second the best of these. Indices of parts are computed,
so that they need no array. The initial pair may enter twice. Workers that share parts of columns, and not columns, read
whole rows, and keep the accumulators of a few columns in registers.
"""

from __future__ import annotations

from collections.abc import Callable

from ...analyses.arg_reducers import arg_reducer, last_index
from ...builder import make_get_tuple_element, make_instruction
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops.movement import IotaAttributes
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ..patterns import binary, make_splat
from ..rewrite import rewrite_computation

PartsOf = Callable[[int, int, bool], int | None]
"""Into how many parts rows are split, by the number of all elements and the size of a row, and whether the rows are
columns of the array; None: they are not."""


def split_arg_reductions(computation: HloComputation, parts_of: PartsOf) -> HloComputation:
    """The computation; the same object if nothing is split."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode is not Opcode.REDUCE or len(old.operands) != 4:
            return moved
        return _split(moved, parts_of) or moved

    return rewrite_computation(computation, visit)


def _split(reduce: HloInstruction, parts_of: PartsOf) -> HloInstruction | None:
    values, indices, *inits = reduce.operands
    sizes, to_apply = values.shape.dimensions, reduce.attributes.to_apply
    d, *others = reduce.attributes.dimensions
    if others or indices.opcode is not Opcode.IOTA or arg_reducer(to_apply) is None:
        return None
    parts = parts_of(values.shape.num_elements, sizes[d], d + 1 < len(sizes))
    if parts is None or last_index(indices, d) is None:
        return None
    length = sizes[d] // parts
    new_sizes = (*sizes[:d], parts, length, *sizes[d + 1 :])
    shape = Shape.array(indices.shape.element, new_sizes)
    major, minor = (make_instruction(Opcode.IOTA, (), IotaAttributes(k), shape) for k in (d, d + 1))
    ranges = binary(Opcode.ADD, binary(Opcode.MULTIPLY, major, make_splat(length, shape)), minor)
    viewed = make_instruction(Opcode.RESHAPE, (values,), shape=Shape.array(values.shape.element, new_sizes))
    partial = make_instruction(Opcode.REDUCE, (viewed, ranges, *inits), ReduceAttributes((d + 1,), to_apply))
    pairs = [make_get_tuple_element(partial, k) for k in range(2)]
    return make_instruction(Opcode.REDUCE, (*pairs, *inits), ReduceAttributes((d,), to_apply))
