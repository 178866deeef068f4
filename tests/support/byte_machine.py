"""Runs a module by its buffer assignment, on real bytes, as a backend does; the evaluator computes the results.

Memory starts as garbage, and so does every result before it is written. Fusions and reducers are evaluated whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hloom.hlo.buffers.assignment import AllocationKind, BufferAssignment, BufferCopy, BufferSlice, is_alias
from hloom.hlo.evaluator import evaluate_op
from hloom.hlo.ir import HloComputation, HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import Trait, has_trait
from hloom.hlo.shape import Shape

Array = np.ndarray[Any, Any]


def can_share(instruction: HloInstruction, operand: int, output: int) -> bool:
    """Whether the evaluator's kernels can share the buffer; a fusion is elementwise if all its instructions are."""
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return operand == 0
    if instruction.opcode is Opcode.FUSION:
        body = instruction.attributes.calls.instructions
        return all(has_trait(i.opcode, Trait.ELEMENTWISE) or i.opcode in _STRUCTURE for i in body)
    return has_trait(instruction.opcode, Trait.ELEMENTWISE)


_STRUCTURE = (Opcode.PARAMETER, Opcode.TUPLE, Opcode.CONSTANT)


class ByteMachine:
    """Memory of one execution."""

    def __init__(
        self,
        assignment: BufferAssignment,
        is_opaque: Callable[[HloInstruction], bool] = lambda instruction: False,
    ) -> None:
        self.assignment = assignment
        self.is_opaque = is_opaque
        self.memory: dict[tuple[AllocationKind, int], Array] = {}

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results for one array a parameter leaf."""
        assignment = self.assignment
        garbage = np.random.default_rng(0)
        self.memory[AllocationKind.ARENA, 0] = garbage.integers(0, 256, assignment.arena_size, np.uint8)
        for place in (*assignment.outputs, *(s for slices in assignment.slices.values() for s in slices)):
            key = place.allocation.kind, place.allocation.index
            if key not in self.memory:
                self.memory[key] = garbage.integers(0, 256, place.allocation.size, np.uint8)
        for place, array in zip(assignment.parameters, arguments, strict=True):
            self.store(place, array)
        for number, values in enumerate(assignment.constant_bytes()):
            self.memory[AllocationKind.CONSTANT, number] = np.frombuffer(values.tobytes(), np.uint8).copy()
        before = {key: block.copy() for key, block in self.memory.items() if key[0] in _READ_ONLY}
        entry = assignment.module.entry
        self.block(entry)
        self.copy(assignment.copies_at_end(entry))
        donated = {s.allocation.index for s in assignment.outputs if s.allocation.kind is AllocationKind.PARAMETER}
        for key, block in before.items():
            if key[0] is AllocationKind.CONSTANT or key[1] not in donated:
                np.testing.assert_array_equal(self.memory[key], block, "read-only memory was written")
        return [
            self.load(place, shape)
            for place, shape in zip(assignment.outputs, entry.root.shape.leaves(), strict=True)
        ]

    def bytes_of(self, place: BufferSlice) -> Array:
        block = self.memory[place.allocation.kind, place.allocation.index]
        return block[place.offset : place.offset + place.size]

    def load(self, place: BufferSlice, shape: Shape) -> Array:
        flat = np.frombuffer(self.bytes_of(place).tobytes(), shape.element.dtype)
        return flat.reshape(shape.dimensions)

    def store(self, place: BufferSlice, array: Array) -> None:
        self.bytes_of(place)[:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)

    def copy(self, copies: Sequence[BufferCopy]) -> None:
        for copy in copies:
            self.bytes_of(copy.target)[:] = self.bytes_of(copy.source)

    def value(self, instruction: HloInstruction) -> Any:
        """The bytes at the place of the instruction's result, as the evaluator's value."""
        places = iter(self.assignment.leaves(instruction))

        def packed(shape: Shape) -> Any:
            if shape.is_tuple:
                return tuple(packed(s) for s in shape.elements)
            return self.load(next(places), shape)

        return packed(instruction.shape)

    def scalar(self, instruction: HloInstruction) -> Any:
        return self.value(instruction)[()]

    def block(self, computation: HloComputation) -> None:
        for instruction in computation.instructions:
            self.step(instruction)

    def step(self, instruction: HloInstruction) -> None:
        opcode = instruction.opcode
        if opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(instruction):
            return
        assignment, attributes = self.assignment, instruction.attributes
        if not self.is_opaque(instruction):
            if opcode is Opcode.WHILE:
                self.copy(assignment.copies_before(instruction))
                while True:
                    self.block(attributes.condition)
                    if not self.scalar(attributes.condition.root):
                        return
                    self.block(attributes.body)
                    self.copy(assignment.copies_at_end(attributes.body))
            if opcode is Opcode.CONDITIONAL:
                index = self.scalar(instruction.operands[0])
                branches = attributes.branch_computations
                if isinstance(index, np.bool_):
                    taken = 0 if index else 1
                else:
                    taken = int(index) if 0 <= index < len(branches) else len(branches) - 1
                self.block(branches[taken])
                self.copy(assignment.copies_at_end(branches[taken]))
                return
            if opcode is Opcode.CALL:
                self.block(attributes.to_apply)
                return
        operands = [self.value(o) for o in instruction.operands]
        result = evaluate_op(opcode, operands, attributes, instruction.shape)
        for place, array in zip(assignment.leaves(instruction), _flat(result), strict=True):
            self.store(place, array)


_READ_ONLY = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)


def _flat(value: Any) -> list[Array]:
    return [leaf for element in value for leaf in _flat(element)] if isinstance(value, tuple) else [value]
