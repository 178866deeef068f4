"""layout-normalization: numbers every array's dimensions in the order of memory, so that all arrays are row-major.

f32[2,3]{0,1} becomes f32[3,2]{1,0}: the same bytes. Each instruction is rewritten for it (`renumber.py`); a copy from
one order to another becomes a transpose, and a transpose or reshape that moves nothing disappears. Parameters and
results keep the caller's layout: a bitcast follows such a parameter and precedes such a result. If the caller's layout
has tiles, packing or a memory space, there is also a copy on the inner side of the bitcast, from or to the tiled array;
its dimensions are already in order. Afterwards only these parameters, results, bitcasts and copies are not row-major,
and the operands and results of custom calls that state their layouts.

The pass requires nothing: an operand in a wrong order is transposed. layout-assignment makes such operands rare.
Source: XLA's LayoutNormalization.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...builder import make_get_tuple_element, make_instruction, make_tuple, with_unique_names
from ...ir import HloComputation, HloInstruction, HloModule
from ...layout import Layout
from ...opcode import Opcode
from ...ops.dimensions import maps_dimensions
from ...shape import Shape
from ...support.records import dataclass
from ..rewrite import calling, rebuild, rewrite_computation
from .layout_erasure import is_row_major, keeps_layouts
from .order_rules import ROW_MAJOR, first_result, rule_of
from .orders import Order, completed, identity, in_order, meets, order_of
from .renumber import Renumbering, arranged, renumbered, with_numbers


@dataclass(frozen=True, slots=True)
class LayoutNormalization:
    """The pass."""

    name: str = "layout-normalization"

    def __call__(self, module: HloModule) -> HloModule:
        layouts = (*module.entry_parameter_layouts, *module.entry_result_layouts)
        asked = any(layout is not None and not layout.is_row_major for layout in layouts)
        if not asked and all(is_row_major(i.shape) for i in module.instructions()):
            return module
        new: dict[HloComputation, HloComputation] = {}
        for computation in module.computations:
            new[computation] = _Normalizer(module, computation, new).run()
        entry = new[module.entry]
        return module if entry is module.entry else with_unique_names(replace(module, entry=entry))


class _Normalizer:
    """Rewrites one computation; `new` are the rewritten computations that it calls."""

    def __init__(
        self, module: HloModule, computation: HloComputation, new: dict[HloComputation, HloComputation]
    ) -> None:
        self.computation = computation
        self.new = new
        self.is_entry = computation is module.entry
        self.wanted = module.entry_result_layouts
        self.given = dict(zip(computation.parameters, module.entry_parameter_shapes)) if self.is_entry else {}
        """The shapes of the entry's parameters as the caller sees them."""

    def run(self) -> HloComputation:
        changed = rewrite_computation(self.computation, self._visit)
        if not self.is_entry:
            return changed
        root = _left(changed.root, self.computation.root.shape, iter(self.wanted))
        return changed if root is changed.root else rebuild(changed, {changed.root: root})

    def _visit(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        moved = calling(moved, self.new)
        match old.opcode:
            case Opcode.PARAMETER:
                return self._parameter(old)
            case Opcode.TUPLE | Opcode.OPT_BARRIER | Opcode.WHILE | Opcode.CONDITIONAL | Opcode.CALL:
                shape = _numbered(old.shape)
                return moved if shape == moved.shape else replace(moved, shape=shape)
            case Opcode.GET_TUPLE_ELEMENT:
                shape = moved.operands[0].shape.elements[old.attributes.index]
                return moved if shape == moved.shape else replace(moved, shape=shape)
            case Opcode.COPY:
                return _relaid(moved.operands[0], old.operands[0].shape, old.shape)
            case Opcode.CUSTOM_CALL if keeps_layouts(old):
                return _custom_call(old, moved)
            case Opcode.BITCAST:
                return _bitcast(moved.operands[0], _numbered(old.shape))  # the same bytes
            case _ if rule_of(old.opcode) is ROW_MAJOR:
                return _in_row_major(old, moved)
        return _by_rule(old, moved)

    def _parameter(self, old: HloInstruction) -> HloInstruction:
        if not self.is_entry:
            shape = _numbered(old.shape)
            return old if shape == old.shape else replace(old, shape=shape)
        outer = self.given[old]
        value = old if outer == old.shape else replace(old, shape=outer)
        return _entered(value, old.shape)


def _by_rule(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """`old` with renumbered dimensions, by the rule of its opcode."""
    if is_row_major(old.shape) and all(is_row_major(o.shape) for o in old.operands):
        return moved
    rule, result = rule_of(old.opcode), first_result(old)
    wanted = order_of(result)
    order = wanted if rule.allows(old, wanted) else identity(result.rank)
    takes_any_order = maps_dimensions(type(old.attributes))
    operands, orders = [], []
    for k, (before, operand) in enumerate(zip(old.operands, moved.operands, strict=True)):
        current = order_of(before.shape) if before.shape.is_array else ()
        needed = current
        if before.shape.is_array and not takes_any_order:
            needed = completed(rule.needs(old, k, order), current)
        operands.append(operand if needed == current else arranged(operand, current, needed))
        orders.append(needed)
    made = with_numbers(Renumbering(moved, tuple(operands), tuple(orders), order))
    if order == wanted:
        return made
    if made.shape.is_array:
        return arranged(made, order, wanted)
    parts = [make_get_tuple_element(made, k) for k in range(len(made.shape.elements))]
    return make_tuple([arranged(part, order, wanted) for part in parts])


def _in_row_major(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """An op that takes and returns only row-major arrays, between transposes if its neighbours have other orders."""
    operands = tuple(
        _relaid(operand, before.shape, before.shape.with_default_layout())
        for operand, before in zip(moved.operands, old.operands, strict=True)
    )
    shape = old.shape.with_default_layout()
    if shape == old.shape and all(a is b for a, b in zip(operands, moved.operands, strict=True)):
        return moved
    return _relaid(replace(moved, operands=operands, shape=shape), shape, old.shape)


def _custom_call(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """A custom call that states its layouts: between bitcasts."""
    operands = []
    for operand, before, wanted in zip(
        moved.operands, old.operands, old.attributes.operand_layout_constraints, strict=True
    ):
        operands.append(_stored(_relaid(operand, before.shape, wanted), wanted))
    return _numbers_of(replace(moved, operands=tuple(operands)))


def _numbered(shape: Shape) -> Shape:
    """The shape with each array's dimensions numbered in the order of memory, row-major."""
    if shape.is_token or is_row_major(shape):
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_numbered(s) for s in shape.tuple_shapes])
    return renumbered(shape, order_of(shape))


def _relaid(value: HloInstruction, source: Shape, target: Shape) -> HloInstruction:
    """A value with the dimension numbers of `source`, renumbered by the orders of `target`."""
    if source.is_token:
        return value
    if source.tuple_shapes is None:
        before, after = order_of(source), order_of(target)
        return value if before == after else arranged(value, before, after)
    parts = [make_get_tuple_element(value, k) for k in range(len(source.tuple_shapes))]
    new = [_relaid(part, *shapes) for part, *shapes in zip(parts, source.elements, target.elements, strict=True)]
    return value if all(a is b for a, b in zip(parts, new, strict=True)) else make_tuple(new)


def _stored(value: HloInstruction, target: Shape) -> HloInstruction:
    """A value numbered by the orders of `target`, as arrays of that shape in dense layouts: bitcasts."""
    if target.is_token:
        return value
    if target.tuple_shapes is None:
        order = order_of(target)
        return value if order == identity(target.rank) else _bitcast(value, in_order(target, order))
    parts = [make_get_tuple_element(value, k) for k in range(len(target.tuple_shapes))]
    new = [_stored(part, shape) for part, shape in zip(parts, target.tuple_shapes, strict=True)]
    return value if all(a is b for a, b in zip(parts, new, strict=True)) else make_tuple(new)


def _numbers_of(value: HloInstruction) -> HloInstruction:
    """A value in dense layouts, with its dimensions numbered in the order of memory: bitcasts."""
    shape = value.shape
    if shape.is_token or is_row_major(shape):
        return value
    if shape.tuple_shapes is None:
        return _bitcast(value, renumbered(shape, order_of(shape)))
    return make_tuple([_numbers_of(make_get_tuple_element(value, k)) for k in range(len(shape.tuple_shapes))])


def _bitcast(value: HloInstruction, shape: Shape) -> HloInstruction:
    return value if value.shape == shape else make_instruction(Opcode.BITCAST, (value,), shape=shape)


# The caller's layouts


def in_memory_order(shape: Shape) -> Shape:
    """The same bytes as a shape numbered in the order of memory, with the same tiles, packing and padding."""
    layout, order = shape.array_layout, order_of(shape)
    padded = tuple(layout.padded_dimensions[d] for d in order) if layout.padded_dimensions else ()
    descending = tuple(reversed(range(shape.rank)))
    moved = replace(layout, minor_to_major=descending, padded_dimensions=padded)
    return Shape.array(shape.element, [shape.dimensions[d] for d in order], moved)


def _same_bytes(a: Order, b: Order, shape: Shape) -> bool:
    """True when only dimensions of size 1 of a dense array change their position."""
    return shape.array_layout.is_dense and shape.array_layout.memory_space == 0 and meets(a, b, shape.dimensions)


def _entered(value: HloInstruction, inside: Shape) -> HloInstruction:
    """A parameter in the caller's layouts, numbered by the orders of `inside`."""
    outer = value.shape
    if outer.is_token or (is_row_major(outer) and is_row_major(inside)):
        return value
    if outer.tuple_shapes is not None:
        parts = [_entered(make_get_tuple_element(value, k), s) for k, s in enumerate(inside.elements)]
        return make_tuple(parts)
    before, after = order_of(outer), order_of(inside)
    if _same_bytes(before, after, outer):
        return _bitcast(value, renumbered(outer, after))
    value = _bitcast(value, in_memory_order(outer))
    if not is_row_major(value.shape):
        value = make_instruction(Opcode.COPY, (value,), shape=value.shape.with_default_layout())
    return arranged(value, before, after)


def _left(value: HloInstruction, inside: Shape, layouts: Iterator[Layout | None]) -> HloInstruction:
    """A result numbered by the orders of `inside`, in the caller's layouts."""
    if inside.is_token:
        return value
    if inside.tuple_shapes is not None:
        parts = [make_get_tuple_element(value, k) for k in range(len(inside.tuple_shapes))]
        new = [_left(part, shape, layouts) for part, shape in zip(parts, inside.tuple_shapes, strict=True)]
        return value if all(a is b for a, b in zip(parts, new, strict=True)) else make_tuple(new)
    outer = inside.with_layout(next(layouts, None) or inside.array_layout)
    before, after = order_of(inside), order_of(outer)
    if _same_bytes(before, after, outer):
        return value if is_row_major(outer) and before == after else _bitcast(value, outer)
    value = arranged(value, before, after)
    target = in_memory_order(outer)
    if not is_row_major(target):
        value = make_instruction(Opcode.COPY, (value,), shape=target)
    return _bitcast(value, outer)
