"""memory-space-assignment: puts buffers that fit into the target's fast memory, `S(1)` in layouts on a TPU.

It runs after scheduling, because lifetimes decide. The buffers are those that buffer assignment will make (values that
share one get the same space); `hlo/buffers/memory_spaces.py` ranks and places them. The space is written into the
shapes of all instructions that the value passes: tuples, the state of loops, parameters of branches and of fusions, the
roots of fusions. Values inside a fusion have no memory and keep space 0. The computed numbers do not change.

Source: XLA's MemorySpaceAssignment; fusions are annotated as in XLA's MemorySpacePropagation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...buffers.assignment import ALIGNMENT, shared_buffers
from ...buffers.coalescing import Buffer, CanShare, Coalescing
from ...buffers.memory_spaces import choose, groups_by_merit, room_in
from ...buffers.values import ValueAnalysis
from ...builder import with_unique_names
from ...ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, HloModule
from ...layout import Layout
from ...opcode import Opcode
from ...provenance import note_replacements
from ...shape import Shape
from ...support.records import dataclass
from ...target import MemorySpace


@dataclass(frozen=True, slots=True)
class MemorySpaceAssignment:
    """Puts buffers into `space`, as many as fit; the module must be scheduled, with one caller for each computation."""

    space: MemorySpace
    can_share: CanShare
    """Which results the backend may write over which operands: the rule that its buffer assignment uses."""
    name: str = "memory-space-assignment"

    def __call__(self, module: HloModule) -> HloModule:
        analysis, coalescing = shared_buffers(module, self.can_share)
        if any(self._is_there(buffer) for buffer in coalescing.buffers.values()):  # from an earlier choice
            module = self._with_spaces(module, analysis, coalescing, set())
            analysis, coalescing = shared_buffers(module, self.can_share)
        chosen = choose(groups_by_merit(analysis, coalescing), room_in(self.space, coalescing), ALIGNMENT)
        return self._with_spaces(module, analysis, coalescing, chosen) if chosen else module

    def _is_there(self, buffer: Buffer) -> bool:
        """True if the buffer already has the space. Arguments and results do not count: they keep their spaces."""
        return buffer.fixed is None and buffer.space == self.space.number

    def _with_spaces(
        self, module: HloModule, analysis: ValueAnalysis, coalescing: Coalescing, chosen: set[Buffer]
    ) -> HloModule:
        space = {
            v: self.space.number if b in chosen else 0 if self._is_there(b) else b.space
            for v, b in coalescing.buffers.items()
        }
        spaces = {i: tuple([space[v] for v in values]) for i, values in analysis.leaves.items()}
        return _Writer(spaces).run(module)


Spaces = tuple[int, ...]
"""The memory space of each leaf of a shape."""


class _Writer:
    """Writes memory spaces into the shapes of a module; nothing is dropped or moved."""

    def __init__(self, spaces: dict[HloInstruction, Spaces]) -> None:
        self.spaces = spaces
        self.computations: dict[HloComputation, HloComputation] = {}
        self.bodies: dict[tuple[HloComputation, tuple[Spaces, ...], Spaces], HloComputation] = {}
        """Bodies of fusions, by the spaces of operands and result. Fusions may share one."""
        self.shapes: dict[tuple[int, Spaces], tuple[Shape, Shape]] = {}
        """By identity, because many instructions share a shape: the shape, and the shape in these spaces."""

    def run(self, module: HloModule) -> HloModule:
        reached = {c for c in module.computations if c.root in self.spaces}
        for computation in module.computations:  # callees first
            if computation in reached:
                self.computations[computation] = self.computation(computation)
        entry = self.computations[module.entry]
        return module if entry is module.entry else with_unique_names(replace(module, entry=entry))

    def computation(self, old: HloComputation) -> HloComputation:
        moved: dict[HloInstruction, HloInstruction] = {}
        changed = False
        for instruction in old.instructions:
            new = self.instruction(instruction, moved)
            moved[instruction] = new
            changed = changed or new is not instruction
        if not changed:
            return old
        note_replacements(moved)
        return HloComputation(old.name, tuple(moved.values()), moved[old.root])

    def shape(self, old: Shape, spaces: Spaces) -> Shape:
        found = self.shapes.get((id(old), spaces))
        if found is None:
            found = self.shapes[id(old), spaces] = (old, in_spaces(old, spaces))
        return found[1]

    def instruction(self, old: HloInstruction, moved: dict[HloInstruction, HloInstruction]) -> HloInstruction:
        spaces = self.spaces[old]
        attributes = old.attributes
        if old.opcode is Opcode.FUSION:
            operands = tuple([self.spaces[o] for o in old.operands])
            attributes = attributes.map_computations(lambda body: self.body(body, operands, spaces))
        elif attributes is not NO_ATTRIBUTES:
            attributes = attributes.map_computations(lambda called: self.computations.get(called, called))
        shape = self.shape(old.shape, spaces)
        new_operands = tuple([moved[o] for o in old.operands])
        if shape is old.shape and attributes is old.attributes:
            return old.with_operands(new_operands)
        return _moved(old, shape, new_operands, attributes)

    def body(self, old: HloComputation, operands: tuple[Spaces, ...], result: Spaces) -> HloComputation:
        """The body of a fusion with these spaces for its parameters and its root."""
        key = (old, operands, result)
        found = self.bodies.get(key)
        if found is None:
            ends = [*zip(old.parameters, operands, strict=True), (old.root, result)]
            settled = all(self.shape(i.shape, spaces) is i.shape for i, spaces in ends)
            found = self.bodies[key] = old if settled else self.rewritten(old, operands, result)
        return found

    def rewritten(self, old: HloComputation, operands: tuple[Spaces, ...], result: Spaces) -> HloComputation:
        outside = {parameter: operands[number] for number, parameter in enumerate(old.parameters)}
        if old.root not in outside:
            outside[old.root] = result
            if old.root.opcode is Opcode.TUPLE:
                _name_elements(old.root, result, outside)
        moved: dict[HloInstruction, HloInstruction] = {}
        for i in old.instructions:  # copies: the old body may stay in use
            shape = self.shape(i.shape, outside[i]) if i in outside else i.shape
            moved[i] = _moved(i, shape, tuple([moved[o] for o in i.operands]), i.attributes)
        note_replacements(moved)
        return HloComputation(old.name, tuple(moved.values()), moved[old.root])


def _moved(
    old: HloInstruction, shape: Shape, operands: tuple[HloInstruction, ...], attributes: Attributes
) -> HloInstruction:
    return HloInstruction(
        old.opcode, shape, operands, attributes, old.name, old.metadata, old.frontend_attributes, old.annotations
    )


def _name_elements(root: HloInstruction, result: Spaces, outside: dict[HloInstruction, Spaces]) -> None:
    """Record the spaces of a tuple's elements; none for an element that occurs twice, in two memories."""
    leaves = iter(result)
    elements: dict[HloInstruction, set[Spaces]] = {}
    for element in root.operands:
        elements.setdefault(element, set()).add(tuple([next(leaves) for _ in element.shape.leaves()]))
    for element, spaces in elements.items():
        if element not in outside and len(spaces) == 1:
            outside[element] = spaces.pop()


def in_spaces(shape: Shape, spaces: Sequence[int]) -> Shape:
    """The same shape with its leaves in these memory spaces; the same object if it already has them."""
    if shape.is_array:
        (space,) = spaces
        layout = shape.array_layout
        return shape if layout.memory_space == space else replace(shape, layout=_in_space(layout, space))
    if all(leaf.array_layout.memory_space == space for leaf, space in zip(shape.leaves(), spaces, strict=True)):
        return shape
    return _rebuilt(shape, iter(spaces))


def _rebuilt(shape: Shape, spaces: Iterator[int]) -> Shape:
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_rebuilt(s, spaces) for s in shape.tuple_shapes])
    return in_spaces(shape, (next(spaces),))


def _in_space(layout: Layout, space: int) -> Layout:
    return replace(layout, memory_space=space)
