"""buffer-layouts: every buffer inside a program gets the layout that the target wants for it.

It runs after fusion, when every instruction outside of fused computations is a buffer. Before it all buffers are dense
and row-major, except parameters and results of the entry, which have the caller's layouts; a separate copy converts
each of these once if the target wants another layout. A reshape that no longer keeps the same bytes goes through a
dense array. Inside fused computations only parameters and outputs are buffers: other layouts there have no meaning.
"""

from __future__ import annotations

from dataclasses import field, replace

from ...builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule, post_order
from ...layout import Layout
from ...opcode import Opcode
from ...ops.structure import FusionAttributes, FusionKind
from ...provenance import note_made, note_replacements
from ...shape import Shape
from ...support.records import dataclass
from ...target import Target
from ..rewrite import map_each_computation, rewrite_computation
from .layout_erasure import keeps_layouts


@dataclass(frozen=True, slots=True)
class BufferLayouts:
    """The pass for one target."""

    target: Target
    name: str = "buffer-layouts"

    def __call__(self, module: HloModule) -> HloModule:
        layouts = _Layouts(self.target)
        if layouts.are_in(module):
            return module

        def rewrite(old: HloComputation, computation: HloComputation) -> HloComputation:
            if old is module.entry:
                return _Entry(layouts).rewritten(computation)
            return rewrite_computation(computation, lambda old, moved: _inside(layouts, old, moved))

        return map_each_computation(module, rewrite)


@dataclass(slots=True)
class _Layouts:
    """The layouts that the target wants, asked once for each shape. An array that is not row-major has the layout that
    it must have: a custom call requires it."""

    target: Target
    _known: dict[Shape, Shape] = field(default_factory=dict)

    def of(self, shape: Shape) -> Shape:
        """`shape` in the target's layouts; the same object if it has them."""
        if shape.is_token:
            return shape
        found = self._known.get(shape)
        if found is None:
            if shape.tuple_shapes is not None:
                found = Shape.tuple([self.of(s) for s in shape.tuple_shapes])
            elif not shape.array_layout.is_row_major:
                found = shape
            else:
                found = shape.with_layout(self.target.buffer_layout(shape))
            found = self._known[shape] = shape if found == shape else found
        return found

    def are_in(self, module: HloModule) -> bool:
        """True if all arrays have the target's layouts and are row-major, and no custom call requires others: then
        there is nothing to do."""
        shapes: dict[int, Shape] = {}
        for computation in module.computations:
            shapes.update([(id(i.shape), i.shape) for i in computation.instructions])
            if Opcode.CUSTOM_CALL in computation.opcodes and any(map(keeps_layouts, computation.instructions)):
                return False
        return all(
            self.of(shape) == shape and all(leaf.array_layout.is_row_major for leaf in shape.leaves())
            for shape in shapes.values()
        )


class _Entry:
    """The entry computation: a value in the caller's layout has a converted version for use inside."""

    def __init__(self, layouts: _Layouts) -> None:
        self.layouts = layouts
        self._outside: set[HloInstruction] = set()

    def rewritten(self, entry: HloComputation) -> HloComputation:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if old.opcode is Opcode.PARAMETER or (_is_view(old) and old.operands[0] in self._outside):
                self._outside.add(old)
                return moved if old.shape.is_tuple else in_layouts(old, self.layouts.of(old.shape))
            return _inside(self.layouts, old, self._on_converted(old, moved))

        inside = rewrite_computation(entry, visit)
        root = self._result(entry.root, inside.root)
        if root is inside.root:
            return inside
        note_replacements({inside.root: root}, trees=True)
        kept = post_order(root, effects_of(inside))
        parameters = [p for p in inside.parameters if p not in kept]
        return HloComputation(entry.name, (*parameters, *kept), root)

    def _on_converted(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        """The instruction on tuples of the caller's in the layouts of the inside: a loop's state, the operands of
        branches."""
        if not any(o.shape.is_tuple and o in self._outside for o in old.operands):
            return moved
        operands = [
            in_layouts(new, self.layouts.of(o.shape)) if o in self._outside else new
            for o, new in zip(old.operands, moved.operands, strict=True)
        ]
        return moved if tuple(operands) == moved.operands else moved.with_operands(tuple(operands))

    def _result(self, old: HloInstruction, new: HloInstruction) -> HloInstruction:
        """The result in the caller's layouts; a parameter that already has them is returned without a copy."""
        if old in self._outside:
            return old
        if old.opcode is Opcode.TUPLE and new.opcode is Opcode.TUPLE:
            leaves = [self._result(a, b) for a, b in zip(old.operands, new.operands, strict=True)]
            return new if all(a is b for a, b in zip(leaves, new.operands, strict=True)) else make_tuple(leaves)
        return in_layouts(new, old.shape)


def _is_view(instruction: HloInstruction) -> bool:
    return instruction.opcode in (Opcode.BITCAST, Opcode.GET_TUPLE_ELEMENT)


def _permuted_view(layouts: _Layouts, old: HloInstruction, moved: HloInstruction) -> HloInstruction | None:
    """A bitcast to or from the order of the caller or of a custom call, on a dense array or on an operand that already
    has the required layout."""
    if old.opcode is not Opcode.BITCAST:
        return None
    source = old.operands[0].shape
    if not old.shape.array_layout.is_row_major:
        return moved.with_operands((in_layouts(moved.operands[0], source),))
    if not source.array_layout.is_row_major:
        return in_layouts(moved, layouts.of(old.shape))
    return None


def _custom_call(layouts: _Layouts, moved: HloInstruction) -> HloInstruction:
    """A custom call on dense arrays in the orders that it requires; its row-major results are ordinary buffers."""
    wanted = [_dense(constraint) for constraint in moved.attributes.operand_layout_constraints]
    operands = tuple(in_layouts(o, shape) for o, shape in zip(moved.operands, wanted, strict=True))
    call = moved
    if any(a is not b for a, b in zip(operands, moved.operands, strict=True)) or moved.shape != _dense(moved.shape):
        call = replace(moved, operands=operands, shape=_dense(moved.shape))
    return in_layouts(call, layouts.of(call.shape))


def _dense(shape: Shape) -> Shape:
    """The shape in dense layouts of the same orders."""
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_dense(s) for s in shape.tuple_shapes])
    return shape.with_layout(Layout(shape.array_layout.minor_to_major))


def in_layouts(value: HloInstruction, shape: Shape) -> HloInstruction:
    """`value` with the layouts of `shape`: itself, or copies of the leaves that differ. A constant gets the layout."""
    if value.shape == shape:
        return value
    if value.opcode is Opcode.CONSTANT:
        return replace(value, shape=shape)
    if shape.is_tuple:
        leaves = value.operands if value.opcode is Opcode.TUPLE else [
            make_get_tuple_element(value, k) for k in range(len(shape.elements))
        ]
        return make_tuple([in_layouts(leaf, s) for leaf, s in zip(leaves, shape.elements, strict=True)])
    return _as_kernel(make_instruction(Opcode.COPY, (value,), shape=shape))


def _as_kernel(instruction: HloInstruction) -> HloInstruction:
    """A fusion of one instruction with one operand."""
    (operand,) = instruction.operands
    parameter = make_parameter(0, operand.shape, "param_0")
    root = replace(instruction, operands=(parameter,), name=instruction.opcode.value)
    note_made(parameter, (operand,))
    body = HloComputation("fused_computation", (parameter, root), root)
    return make_instruction(
        Opcode.FUSION, (operand,), FusionAttributes(FusionKind.LOOP, body), instruction.shape,
        name=f"{instruction.opcode.value}_fusion", metadata=instruction.metadata,
    )  # fmt: skip


def _inside(layouts: _Layouts, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    opcode = old.opcode
    if opcode is Opcode.TUPLE:
        return moved if moved is old else make_instruction(opcode, moved.operands, name=old.name)
    if opcode is Opcode.GET_TUPLE_ELEMENT:
        shape = moved.operands[0].shape.elements[old.attributes.index]
        return moved if shape == moved.shape else replace(moved, shape=shape)
    if keeps_layouts(old):
        return _custom_call(layouts, moved)
    view = _permuted_view(layouts, old, moved)
    if view is not None:
        return view
    shape = layouts.of(old.shape)
    if opcode in (Opcode.RESHAPE, Opcode.BITCAST):
        return _reshape(moved, shape)
    if opcode is Opcode.FUSION:
        return _fusion(moved, shape)
    return moved if shape == old.shape else replace(moved, shape=shape)


def _reshape(moved: HloInstruction, shape: Shape) -> HloInstruction:
    source = moved.operands[0].shape
    if source.array_layout.is_row_major and shape.array_layout.is_row_major:
        return moved
    if source.element_type is shape.element_type and reshape_is_bitcast(source, shape):
        return make_instruction(Opcode.BITCAST, moved.operands, shape=shape, name=moved.name)
    # A dense array's elements are in the right order. Two copies, each along the tiles of one side, take a fraction
    # of the time of one loop that computes with linear indices.
    dense = in_layouts(moved.operands[0], source.with_default_layout())
    return in_layouts(replace(moved, operands=(dense,), shape=shape.with_default_layout()), shape)


def reshape_is_bitcast(source: Shape, target: Shape) -> bool:
    """True when an array's reshape has the same bytes at the same addresses.

    For dense row-major arrays it always has. For tiled ones it has when both have the same tiles and agree on the
    dimensions within them. The most major of these may differ: it may merge with others if all its tiles are full.
    """
    a, b = source.array_layout, target.array_layout
    if a.is_row_major and b.is_row_major:
        return True
    if replace(a, minor_to_major=()) != replace(b, minor_to_major=()) or a.padded_dimensions or not a.tiles:
        return False
    if not (a.is_monotonic_with_dim0_major and b.is_monotonic_with_dim0_major):
        return False
    tile = a.tiles[0].dimensions
    inner = len(tile) - 1
    if None in tile or min(source.rank, target.rank) < len(tile):
        return False
    kept = [shape.dimensions[shape.rank - inner :] for shape in (source, target)]
    rows = [shape.dimensions[shape.rank - inner - 1] for shape in (source, target)]
    full = all(row % (tile[0] or 1) == 0 for row in rows)
    return kept[0] == kept[1] and (full or rows[0] == rows[1])


def _fusion(moved: HloInstruction, shape: Shape) -> HloInstruction:
    """The fusion with buffers of these layouts, which its body states for its parameters and outputs."""
    body: HloComputation = moved.attributes.calls
    is_tuple = body.root.opcode is Opcode.TUPLE
    wanted = dict(zip(body.root.operands, shape.elements, strict=True)) if is_tuple else {body.root: shape}

    def visit(old: HloInstruction, new: HloInstruction) -> HloInstruction:
        if old.opcode is Opcode.PARAMETER:
            operand = moved.operands[old.attributes.number].shape
            new = new if operand == old.shape else replace(new, shape=operand)
        if old in wanted:
            return _output(new, wanted[old])
        return make_tuple(new.operands) if old is body.root and new is not old else new

    inside = rewrite_computation(body, visit)
    if inside is body and shape == moved.shape:
        return moved
    return replace(moved, shape=shape, attributes=replace(moved.attributes, calls=inside))


def _output(value: HloInstruction, shape: Shape) -> HloInstruction:
    """An output of a fused computation as it is written to memory."""
    if value.shape == shape:
        return value
    if value.opcode in (Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT):  # their layouts say where they come from
        return make_instruction(Opcode.COPY, (value,), shape=shape)
    return replace(value, shape=shape)
