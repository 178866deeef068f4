"""layout-assignment: an order of dimensions for every array of a program, so that little must be copied.

It works on a simplified program with row-major arrays, except for the module's entry layouts and those of custom calls.
Where two orders meet, a `copy` is inserted; as few bytes as possible are copied. A transpose or reshape that moves
nothing in the chosen orders stays; layout-normalization removes it. Tiles, packing and memory spaces are not decided
here; they stay in the entry layouts.

Source: XLA's LayoutAssignment. XLA applies one constraint after the other; here `problem.py` weighs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...builder import make_get_tuple_element, make_instruction, make_tuple, with_unique_names
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shape import Shape
from ...support.records import dataclass
from ..rewrite import calling, rebuild, rewrite_computation
from .flow import Flow, IsMatrix, Preferences, turns_back, writes_columns
from .layout_erasure import is_row_major, keeps_layouts
from .order_rules import ROW_MAJOR, STRUCTURE, is_free_to_remake, rule_of
from .orders import Order, completed, in_order, meets, order_of


@dataclass(frozen=True, slots=True)
class LayoutAssignment:
    """The pass, with a backend's preferences between equal choices: operands of dots that it can multiply without a
    transpose (`is_matrix`); certain orders for single instructions that can have them (`preferences`)."""

    is_matrix: IsMatrix | None = None
    preferences: Preferences | None = None
    name: str = "layout-assignment"

    def __call__(self, module: HloModule) -> HloModule:
        asked = self.preferences is not None or asks_for_layouts(module)
        if not asked and not writes_columns(module) and not turns_back(module):
            return module
        flow = Flow(module, self.is_matrix, self.preferences)
        new: dict[HloComputation, HloComputation] = {}
        for computation in flow.computations:
            new[computation] = _Writer(flow, computation, new).run()
        entry = new[module.entry]
        return module if entry is module.entry else with_unique_names(replace(module, entry=entry))


def asks_for_layouts(module: HloModule) -> bool:
    """True when the caller or a custom call has arrays that are not row-major."""
    layouts = (*module.entry_parameter_layouts, *module.entry_result_layouts)
    if any(layout is not None and not layout.is_row_major for layout in layouts):
        return True
    return any(
        not is_row_major(shape)
        for i in module.instructions()
        if i.opcode is Opcode.CUSTOM_CALL and keeps_layouts(i)
        for shape in (i.shape, *i.attributes.operand_layout_constraints)
    )


class _Writer:
    """Writes one computation in the chosen orders."""

    def __init__(
        self, flow: Flow, computation: HloComputation, new: Mapping[HloComputation, HloComputation]
    ) -> None:
        self.flow = flow
        self.computation = computation
        self.new = new
        self._copies: dict[tuple[HloInstruction, Order], HloInstruction] = {}

    def run(self) -> HloComputation:
        changed = rewrite_computation(self.computation, self._visit)
        root = self._laid_out(changed.root, self.flow.result(self.computation))
        return changed if root is changed.root else rebuild(changed, {changed.root: root})

    def _visit(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        moved = calling(moved, self.new)
        orders = self.flow.of(old)
        operands = tuple(self._operands(old, moved.operands, orders))
        shape = _with_orders(old.shape, iter(orders))
        if all(a is b for a, b in zip(operands, moved.operands, strict=True)) and shape == moved.shape:
            return moved
        return replace(moved, operands=operands, shape=shape)

    def _operands(
        self, old: HloInstruction, operands: Sequence[HloInstruction], orders: Sequence[Order]
    ) -> Iterator[HloInstruction]:
        for k, operand in enumerate(operands):
            wanted = self._wanted(old, k)
            if wanted is not None:
                yield self._laid_out(operand, wanted)
            elif old.opcode in STRUCTURE or operand.shape.is_tuple or operand.shape.rank < 2:
                yield operand
            elif old.opcode in (Opcode.TRANSPOSE, Opcode.BROADCAST):
                yield operand  # moves elements anyway, from any order to any other
            else:
                sequence = rule_of(old.opcode).needs(old, k, orders[0] if orders else ())
                current = order_of(operand.shape)
                fits = meets(current, sequence, operand.shape.dimensions)
                yield operand if fits else self._copied(operand, completed(sequence, current))

    def _wanted(self, old: HloInstruction, k: int) -> list[Order] | None:
        """The order of each leaf of operand k, if it does not depend on the result's."""
        match old.opcode:
            case Opcode.WHILE:
                return self.flow.parameter(old.attributes.body, 0)
            case Opcode.CONDITIONAL if k:
                return self.flow.parameter(old.attributes.branch_computations[k - 1], 0)
            case Opcode.CALL:
                return self.flow.parameter(old.attributes.to_apply, k)
            case Opcode.CUSTOM_CALL if keeps_layouts(old):
                return [order_of(leaf) for leaf in old.attributes.operand_layout_constraints[k].leaves()]
            case Opcode.BITCAST:
                return [order_of(old.operands[0].shape)]
            case _ if old.opcode not in STRUCTURE and rule_of(old.opcode) is ROW_MAJOR:
                return [tuple(range(leaf.rank)) for leaf in old.operands[k].shape.leaves()]
        return None

    def _laid_out(self, value: HloInstruction, orders: Sequence[Order]) -> HloInstruction:
        """`value` with its leaves in these orders: leaves in other orders are copied."""
        leaves = list(value.shape.leaves())
        if all(order_of(s) == o for s, o in zip(leaves, orders, strict=True)):
            return value
        return _relaid(value, iter(orders), self._copied)

    def _copied(self, value: HloInstruction, order: Order) -> HloInstruction:
        found = self._copies.get((value, order))
        if found is None:
            shape = in_order(value.shape, order)
            if is_free_to_remake(value):
                found = replace(value, shape=shape, name="")
            else:
                found = make_instruction(Opcode.COPY, (value,), shape=shape)
            self._copies[value, order] = found
        return found


def _relaid(
    value: HloInstruction, orders: Iterator[Order], copied: Callable[[HloInstruction, Order], HloInstruction]
) -> HloInstruction:
    """`value` with each leaf in the next of `orders`; `copied(array, order)` converts one that has another order."""
    if value.shape.tuple_shapes is not None:
        parts = [make_get_tuple_element(value, k) for k in range(len(value.shape.tuple_shapes))]
        new = [_relaid(part, orders, copied) for part in parts]
        return value if all(a is b for a, b in zip(parts, new, strict=True)) else make_tuple(new)
    order = next(orders)
    return value if order_of(value.shape) == order else copied(value, order)


def _with_orders(shape: Shape, orders: Iterator[Order]) -> Shape:
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_with_orders(s, orders) for s in shape.tuple_shapes])
    order = next(orders)
    return shape if order_of(shape) == order else in_order(shape, order)
