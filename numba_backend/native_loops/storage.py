"""Names, arguments and memory of a native loop while it is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...hlo.analyses.batch import Batch
from ...hlo.buffers.allocation import AllocationKind
from ...hlo.buffers.assignment import shared_buffers
from ...hlo.buffers.coalescing import Buffer
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloModule, InputOutputAlias
from ...hlo.opcode import Opcode
from ..emitted_kernel import memory_type
from ..fused_computations import FusedComputations
from ..loops.expressions import Expr, Name, Number
from ..loops.statements import Block, LocalArray, PointerParameter, ScalarParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import cast
from .batch import Parts
from .cost import instructions_in
from .memory import LONG, MOST_LOCAL_ELEMENTS, MOST_LOCAL_ELEMENTS_OF_LONG, Lanes, Memory, most_local_bytes
from .state import overwritten

_LOOP_VARIABLES = frozenset("ijklmpqr")
"""All kernels use these names, and only for counters of loops."""


class Storage:
    """The buffers of an outlined loop, and the memory that they have so far."""

    def __init__(self, fused: HloComputation, bodies: FusedComputations, batch: Batch | None) -> None:
        self.fused, self.bodies = fused, bodies
        self._is_long = instructions_in(fused) > LONG
        self._most_literal = MOST_LOCAL_ELEMENTS_OF_LONG if self._is_long else MOST_LOCAL_ELEMENTS
        """Sizes of up to this are in the text."""
        single = fused.root.opcode is not Opcode.TUPLE
        self.overwritten: dict[int, int] = overwritten(fused)
        aliases = tuple(
            InputOutputAlias(() if single else (output,), operand) for output, operand in self.overwritten.items()
        )
        module = HloModule("native_loop", fused, aliases, is_scheduled=True)
        self.analysis, self.coalescing = shared_buffers(module, bodies.can_share)
        self._parts = None if batch is None else Parts(batch, fused, self.analysis, self.coalescing)
        self._numbers: dict[str, int] = {}
        self._head: Block = []
        self._registers: set[str] = set()
        """The local arrays."""
        self._parameters: list[SizeParameter | ScalarParameter] = []
        self._pointers: list[PointerParameter] = []
        self._memories: dict[Buffer, Memory] = {}
        self._scratch: list[tuple[PointerParameter, int]] = []
        self._constants: list[tuple[PointerParameter, np.ndarray]] = []
        self._local_bytes = 0
        self._unchanging: set[Memory] = set()
        self._with_lanes: list[tuple[Lanes, int]] = []
        """The arrays with a batch, and the bytes of an element."""

    def fresh(self, name: str) -> str:
        """A new name for a variable of a kernel; the counters of loops keep theirs."""
        if name in _LOOP_VARIABLES:
            return name
        stem = name.rstrip("0123456789")
        number = self._numbers.get(stem, 0)
        self._numbers[stem] = number + 1
        return f"{stem}{number}"

    def _local(self, element_type: ElementType, count: int, *, is_array: bool = False) -> Memory | None:
        """A variable or a local array, if the buffer is small enough."""
        kind = memory_type(element_type)
        if count == 1 and not is_array:
            return Memory(Name(self.fresh("s"), kind), 1, is_variable=True)
        nbytes = count * element_type.byte_width
        if count > self._most_literal or self._local_bytes + nbytes > most_local_bytes():
            return None
        self._local_bytes += nbytes
        return self._local_array("v", kind, count)

    def _local_array(self, stem: str, kind: str, count: int) -> Memory:
        name = Name(self.fresh(stem), pointer_to(kind))
        self._head.append(LocalArray(name, count, kind))
        self._registers.add(name.name)
        return Memory(name, count)

    def _memory(self, buffer: Buffer) -> Memory:
        found = self._memories.get(buffer)
        if found is None:
            found = self._memories[buffer] = self._new_memory(buffer)
        return found

    def _new_memory(self, buffer: Buffer) -> Memory:
        shapes = [self.analysis.values[v].shape for v in buffer.values]
        if not shapes:  # it holds a value for a moment, while others are exchanged
            raise AssertionError("scratch memory of an exchange is made where it is used")
        element_type = shapes[0].element
        assert all(s.element is element_type for s in shapes), "one buffer for values of several types"
        count = shapes[0].num_elements
        if buffer.fixed is not None and buffer.fixed[0] is AllocationKind.CONSTANT:
            return self._constant(buffer, element_type, count)
        lanes = None if self._parts is None else self._parts.lanes(buffer)
        values = [self.analysis.values[v] for v in buffer.values]
        # topk moves the elements of its result: with one element it never does, but a variable would lack a value
        is_array = any(v.instruction.opcode is Opcode.TOPK for v in values)
        local = None if lanes else self._local(element_type, count, is_array=is_array)
        return local or self._seen_by_all(self._scratch_memory(element_type, count, lanes), buffer)

    def _constant(self, buffer: Buffer, element_type: ElementType, count: int) -> Memory:
        literal = self.analysis.values[buffer.values[0]].constant
        assert literal is not None
        if count == 1 and not element_type.is_complex and not element_type.is_small:
            return Memory(self._scalar(element_type, literal.array.reshape(())), 1, is_variable=True)
        return self._table(element_type, literal.array)

    def _table(self, element_type: ElementType, array: np.ndarray) -> Memory:
        name = Name(self.fresh("table"), pointer_to(memory_type(element_type)))
        self._constants.append((PointerParameter(name.name, element_type, None, None), array))
        memory = Memory(name, array.size)
        self._unchanging.add(memory)
        return memory

    def _outside(self, name: Name, element_type: ElementType, count: int, buffer: Buffer) -> Memory:
        """An operand's or result's memory."""
        lanes = None if self._parts is None else self._parts.lanes(buffer)
        if lanes is not None:
            self._with_lanes.append((lanes, element_type.byte_width))
        return Memory(name, count, lanes=lanes)

    def _seen_by_all(self, memory: Memory, buffer: Buffer) -> Memory:
        if self._parts is not None:
            self._parts.require_own_memory(buffer)
        return memory

    def _scratch_memory(self, element_type: ElementType, count: int, lanes: Lanes | None = None) -> Memory:
        name = Name(self.fresh("w"), pointer_to(memory_type(element_type)))
        nbytes = max(count * element_type.byte_width, 1)
        self._scratch.append((PointerParameter(name.name, element_type, None, None), nbytes))
        if lanes is not None:
            self._with_lanes.append((lanes, element_type.byte_width))
        return Memory(name, count, lanes=lanes)

    def _scalar(self, element_type: ElementType, value: Any, *, literal: bool = False) -> Expr:
        """A constant: an argument of the kernel, but a literal if it is a small integer or, with `literal`, any."""
        kind = memory_type(element_type)
        if element_type.is_integral and (literal or abs(int(value)) <= self._most_literal) and int(value) < 1 << 63:
            return cast(kind, int(value))
        scalar = ScalarParameter(self.fresh("c"), element_type, value)
        self._parameters.append(scalar)
        return Name(scalar.name, kind)

    def _size(self, value: int) -> Expr:
        """A number that is an argument of the kernel, unless it is small."""
        return Number(value) if abs(value) <= self._most_literal else self._argument(value)

    def _number(self, value: int) -> Expr:
        """A start or a number of iterations. It is an argument unless it is -1, 0 or 1: other numbers give the same
        text."""
        return Number(value) if abs(value) <= 1 else self._argument(value)

    def _argument(self, value: int) -> Name:
        name = self.fresh("n")
        self._parameters.append(SizeParameter(name, value))
        return Name(name)
