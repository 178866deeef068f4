"""chosen-windows: a scatter that replaces many windows of an array becomes a choice between old windows and new ones.

    scatter(x[20000,64], i[8192], u[8192,64]), to_apply=second

copies x and then writes the updates, so that nearly half of the result is written twice. The same result is

    last[20000] = scatter(-1, i, iota(8192)), to_apply=second      the number of the last update of each window, or -1
    select(last >= 0, gather(u, last), x)

Its windows are independent of each other, so threads share them, and the choice is fused with the operations on the
result. An array that may be overwritten keeps its scatter, which writes the new windows alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from ...builder import make_instruction, make_parameter
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.indexing import GatherAttributes
from ...ops.movement import IotaAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import binary, broadcast, make_splat, reshape
from ..rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class ChosenWindows:
    """Rewrites scatters of at least one window in `part` of an array of `large` bytes, if a window has `wide` bytes, or
    more."""

    wide: int
    large: int
    part: int
    name: str = "chosen-windows"

    def __call__(self, module: HloModule) -> HloModule:
        overwritten = {module.entry.parameters[alias.parameter] for alias in module.input_output_aliases}

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if not self._pays(old) or old.operands[0] in overwritten:
                return moved
            return _chosen(moved)

        def changed(computation: HloComputation) -> HloComputation:
            if computation is not module.entry or not any(map(self._pays, computation.instructions)):
                return computation
            return rewrite_computation(computation, visit)

        return map_computations(module, changed)

    def _pays(self, i: HloInstruction) -> bool:
        if i.opcode is not Opcode.SCATTER or len(i.operands) != 3 or not _replaces_windows(i):
            return False
        array = i.operands[0]
        leading = len(i.attributes.inserted_window_dims)
        windows, count = math.prod(array.shape.dimensions[:leading]), _updates(i)
        return (
            _is_never_overwritten(array)
            and array.shape.byte_size >= self.large
            and array.shape.byte_size >= self.wide * windows
            and windows <= count * self.part
            and count < 1 << 31
        )


def _is_never_overwritten(array: HloInstruction) -> bool:
    """An argument that is not donated stays, and a splat is made where it is used."""
    if array.opcode is Opcode.BROADCAST:
        return array.operands[0].shape.rank == 0
    return array.opcode in (Opcode.PARAMETER, Opcode.CONSTANT)


def _updates(scatter: HloInstruction) -> int:
    """The number of windows that are written."""
    updates, window = scatter.operands[2].shape, scatter.attributes.update_window_dims
    return math.prod([size for d, size in enumerate(updates.dimensions) if d not in window])


def _replaces_windows(scatter: HloInstruction) -> bool:
    """Whether a scatter of one array stores the updates themselves, and an index chooses all of an array's elements
    that have the same leading numbers."""
    a, (array, _, updates) = scatter.attributes, scatter.operands
    rank, leading = array.shape.rank, len(a.inserted_window_dims)
    window = range(updates.shape.rank - (rank - leading), updates.shape.rank)
    root = a.to_apply.root
    return (
        root.opcode is Opcode.PARAMETER
        and root.attributes.number == 1
        and not a.input_batching_dims
        and 0 < leading < rank
        and tuple(a.inserted_window_dims) == tuple(range(leading))
        and sorted(a.scatter_dims_to_operand_dims) == list(range(leading))
        and tuple(a.update_window_dims) == tuple(window)
        and [updates.shape.dimensions[d] for d in window] == list(array.shape.dimensions[leading:])
        and array.shape.num_elements > 0
        and updates.shape.num_elements > 0
    )


def _chosen(scatter: HloInstruction) -> HloInstruction:
    """`select(last >= 0, gather(updates, last), array)`"""
    a, (array, indices, updates) = scatter.attributes, scatter.operands
    leading, count = len(a.inserted_window_dims), _updates(scatter)
    numbered, window = array.shape.dimensions[:leading], array.shape.dimensions[leading:]
    numbers = Shape.array(ElementType.S32, numbered)
    iota = make_instruction(Opcode.IOTA, (), IotaAttributes(0), Shape.array(ElementType.S32, (count,)))
    batch = updates.shape.dimensions[: updates.shape.rank - len(window)]
    number_of_update = replace(a, update_window_dims=(), to_apply=_second())
    last = make_instruction(
        Opcode.SCATTER, (make_splat(-1, numbers), indices, reshape(iota, batch)), number_of_update,
        metadata=scatter.metadata,
    )  # fmt: skip
    zero = make_splat(0, numbers)
    is_new = make_instruction(Opcode.COMPARE, (last, zero), CompareAttributes(ComparisonDirection.GE))
    windows = tuple(range(leading, array.shape.rank))
    take = GatherAttributes(windows, (0,), (0,), leading, (1, *window))
    new = make_instruction(
        Opcode.GATHER, (reshape(updates, (count, *window)), binary(Opcode.MAXIMUM, last, zero)), take,
        metadata=scatter.metadata,
    )  # fmt: skip
    tests = broadcast(is_new, array.shape.with_element_type(ElementType.PRED), range(leading))
    return make_instruction(Opcode.SELECT, (tests, new, array), metadata=scatter.metadata)


@functools.cache
def _second() -> HloComputation:
    """The computation of two numbers that is the second one."""
    scalar = Shape.array(ElementType.S32)
    x, y = make_parameter(0, scalar, "x"), make_parameter(1, scalar, "y")
    return HloComputation("second_s32", (x, y), y)
