"""Buffer assignment: the memory of every value of a scheduled, fused module while it runs.

An executable has four kinds of memory: the caller's arguments, new memory for each result, constants, and for each
memory space an arena for all other values. `assign_buffers` gives every leaf of every instruction a `BufferSlice` of
one of these, and lists the bytes that must be copied where sharing was not possible. It computes and changes nothing.

This file has the interface. values.py finds which values are the same bytes, and when they are live; coalescing.py
decides which values share a buffer, heap.py finds offsets in an arena, and memory_spaces.py does the same in a small
memory. report.py shows the result and checker.py checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ..ir import HloComputation, HloInstruction, HloModule
from ..literal import Literal
from ..physical_array import to_physical
from ..shape import Shape
from ..support.lazy import lazy_property
from ..support.records import dataclass
from ..target import MemorySpace
from .allocation import Allocation, AllocationKind, BufferCopy, BufferSlice
from .coalescing import Buffer, CanShare, Coalescing, coalesce
from .heap import place
from .memory_spaces import Arrangement, arrange, groups_by_merit, request_of, room_in
from .report import MemoryMapRow, MemoryReport
from .values import FirstLeaves, ValueAnalysis, analyse_values, is_alias, leaf_count, leaf_number

__all__ = [
    "ALIGNMENT",
    "Allocation",
    "AllocationKind",
    "BufferAssignment",
    "BufferCopy",
    "BufferSlice",
    "CanShare",
    "MemoryMapRow",
    "MemoryReport",
    "ShapeIndex",
    "assign_buffers",
    "is_alias",
]

ALIGNMENT = 64
"""Every arena offset is a multiple of this: a cache line, and the widest vector register."""

ShapeIndex = tuple[int, ...]
"""Which leaf of a (nested) tuple shape: () for an array, (1,) for element 1, (1, 0) for element 0 of element 1."""

@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """The memory of the values of `module`: of the entry and the computations that it reaches through while,
    conditional and call.

    The bodies of fusions, reducers and opaque control flow have no buffers.

    How to run a module by it: walk `instructions` of the entry in order. A parameter, a constant, and an instruction
    with `is_alias` need no code. FUSION and ordinary instructions read the slices of their operands' leaves and write
    the slices of their own leaves. For the others:

    * WHILE: do `copies_before(instruction)`; then loop: run the condition; its parameter leaves have the slices of the
      while's result leaves; stop when its root's slice holds 0; run the body, do `copies_at_end(body)`.
    * CONDITIONAL: the branches' parameters have the slices of the operands; run the chosen one, do
      `copies_at_end(branch)`.
    * CALL: run the callee; its parameters have the slices of the operands, and its root has the slices of the call's
      result.

    At the end do `copies_at_end(module.entry)`. Lists of copies must be done in the given order.
    """

    module: HloModule
    slices: Mapping[HloInstruction, tuple[BufferSlice, ...]]
    """For each instruction, one slice for each leaf of its shape, depth first."""
    parameters: tuple[BufferSlice, ...]
    """One for each leaf of the entry's parameters: the whole PARAMETER allocations."""
    outputs: tuple[BufferSlice, ...]
    """One for each leaf of the entry's result: an OUTPUT allocation, or the PARAMETER that was donated for it."""
    constants: tuple[Literal, ...]
    """The contents of the CONSTANT allocations; equal ones in one layout are kept once."""
    constant_shapes: tuple[Shape, ...]
    """The shapes of the constants, with their layouts."""
    arenas: tuple[Allocation, ...]
    """The arena of each memory space that has one, by number; space 0 always has one."""
    before: Mapping[HloInstruction, tuple[BufferCopy, ...]]
    at_end: Mapping[HloComputation, tuple[BufferCopy, ...]]

    find_rows: Callable[[], tuple[MemoryMapRow, ...]] = field(default=tuple, repr=False)
    """See `rows`."""
    fast_memory: MemorySpace | None = None
    """The memory space with a limit that was kept."""
    schedule: Mapping[int, HloInstruction] = field(default_factory=dict, repr=False)
    """By position: the instructions that run as code."""

    @lazy_property
    def rows(self) -> tuple[MemoryMapRow, ...]:
        """The memory map, by allocation and offset. It is for people: most programs do without it."""
        return self.find_rows()

    @property
    def arena_size(self) -> int:
        """Bytes of one block of memory that holds all arenas one after the other, a multiple of ALIGNMENT."""
        return sum(a.size for a in self.arenas)

    def arena_offset(self, allocation: Allocation) -> int:
        """The offset of an arena in a block that holds all of them."""
        return sum(a.size for a in self.arenas if a.index < allocation.index)

    def slice(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferSlice:
        """The slice of leaf `index` of `instruction`."""
        return self.slices[instruction][leaf_number(instruction.shape, index)]

    def leaves(self, instruction: HloInstruction) -> tuple[BufferSlice, ...]:
        """The slices of all leaves of `instruction`, depth first; for an array, one."""
        return self.slices[instruction]

    def operand_leaves(self, instruction: HloInstruction) -> tuple[BufferSlice, ...]:
        """The slices of all leaves of all operands of `instruction`."""
        return tuple(s for operand in instruction.operands for s in self.slices[operand])

    def copies_before(self, instruction: HloInstruction) -> tuple[BufferCopy, ...]:
        """The copies just before `instruction` (a WHILE: initial values that cannot share the state's buffers)."""
        return self.before.get(instruction, ())

    def copies_at_end(self, computation: HloComputation) -> tuple[BufferCopy, ...]:
        """The copies after the last instruction of the entry, a loop body or a branch."""
        return self.at_end.get(computation, ())

    @property
    def copies(self) -> tuple[BufferCopy, ...]:
        """All copies: those before loops, then those at the ends of blocks (of loop bodies once)."""
        return tuple(copy for copies in (*self.before.values(), *self.at_end.values()) for copy in copies)

    def constant_bytes(self) -> list[np.ndarray[Any, Any]]:
        """The contents of the CONSTANT allocations: a vector for each."""
        pairs = zip(self.constants, self.constant_shapes, strict=True)
        return [c.array if s.array_layout.is_row_major else to_physical(c.array, s) for c, s in pairs]

    def total_size(self, kind: AllocationKind) -> int:
        """Bytes of all allocations of a kind: the numbers in MemoryAnalysis."""
        match kind:
            case AllocationKind.ARENA:
                return self.arena_size
            case AllocationKind.PARAMETER:
                return sum(s.size for s in self.parameters)
            case AllocationKind.OUTPUT:
                return sum(s.size for s in self.outputs if s.allocation.kind is AllocationKind.OUTPUT)
            case AllocationKind.CONSTANT:
                return sum(s.byte_size for s in self.constant_shapes)

    def report(self) -> MemoryReport:
        """The report: every buffer, its padding, and the reason for its memory space."""
        copies = [(f"before {i.name}", found) for i, found in self.before.items()]
        copies += [(f"at the end of {c.name}", found) for c, found in self.at_end.items()]
        schedule = {position: i.name for position, i in sorted(self.schedule.items(), key=lambda item: item[0])}
        return MemoryReport.of(self.module.name, self.rows, self.arenas, self.fast_memory, copies, schedule)

    def to_text(self) -> str:
        """The memory map as text: the arenas' buffers by offset, with their values and times, then the copies."""
        return self.report().to_text()


def assign_buffers(
    module: HloModule,
    can_share: CanShare,
    *,
    is_opaque: Callable[[HloInstruction], bool] = lambda instruction: False,
    fast_memory: MemorySpace | None = None,
) -> BufferAssignment:
    """Give every value of a scheduled module its memory.

    `can_share` says which outputs the emitted code may write over which operands. `is_opaque` says which WHILE,
    CONDITIONAL and CALL instructions become one kernel: these are treated as ordinary instructions and their
    computations get no buffers. Donation comes from `module.input_output_aliases`.

    A value is in the memory space that its layout names. `fast_memory` is the space that the pass
    `memory-space-assignment` filled, with the same `can_share`: its arena respects the limit, and the report says why
    the other buffers are not there.

    Each computation may have only one caller (the pass `flatten-call-graph` ensures that); the schedule is
    the order of the instructions.
    """
    analysis, coalescing = shared_buffers(module, can_share, is_opaque)
    arrangement = _arrangement(analysis, coalescing, fast_memory)
    slices, constants, constant_shapes, arenas = _place(analysis, coalescing, arrangement)
    before: dict[HloInstruction, tuple[BufferCopy, ...]] = {}
    at_end: dict[HloComputation, tuple[BufferCopy, ...]] = {}
    for transfer, moves in coalescing.moves:
        copies = tuple(BufferCopy(slices[m.source], slices[m.target]) for m in moves)
        if transfer.before is not None:
            before[transfer.before] = copies
        else:
            assert transfer.block is not None
            at_end[transfer.block] = copies
    return BufferAssignment(
        module,
        {i: tuple([slices[coalescing.buffers[v]] for v in values]) for i, values in analysis.leaves.items()},
        tuple(s for p in module.entry.parameters for s in (slices[coalescing.buffers[v]] for v in analysis.leaves[p])),
        tuple(slices[b] for b in coalescing.outputs),
        constants,
        constant_shapes,
        arenas,
        before,
        at_end,
        lambda: tuple(_rows(analysis, coalescing, slices, arrangement)),
        fast_memory,
        analysis.computing,
    )


def shared_buffers(
    module: HloModule, can_share: CanShare, is_opaque: Callable[[HloInstruction], bool] = lambda instruction: False
) -> tuple[ValueAnalysis, Coalescing]:
    """The values of a module, and the buffers that they share, before these have offsets."""
    analysis = analyse_values(module, is_opaque)
    return analysis, coalesce(analysis, can_share, _donations(module))


def _donations(module: HloModule) -> dict[int, int]:
    """The parameter leaf that is donated for each output leaf that has one."""
    firsts, leaves = [0], FirstLeaves()
    for parameter in module.entry.parameters:
        firsts.append(firsts[-1] + leaf_count(parameter.shape))
    found: dict[int, int] = {}
    donated: set[int] = set()
    for alias in module.input_output_aliases:
        parameter = module.entry.parameters[alias.parameter]
        number = firsts[alias.parameter] + leaves.number(parameter.shape, alias.parameter_index)
        output = leaves.number(module.entry.root.shape, alias.output_index)
        assert output not in found and number not in donated, f"{alias} donates twice"
        found[output] = number
        donated.add(number)
    return found


def _arrangement(
    analysis: ValueAnalysis, coalescing: Coalescing, fast_memory: MemorySpace | None
) -> Arrangement:
    """The offsets of the buffers in fast memory; why others are not there, if `fast_memory` is known."""
    spaces = {b.space for b in coalescing.all_buffers() if b.fixed is None} - {0}
    number = fast_memory.number if fast_memory is not None else next(iter(spaces), 0)
    if not number:
        return Arrangement()
    limit = None if fast_memory is None else room_in(fast_memory, coalescing)
    groups = groups_by_merit(analysis, coalescing)
    return arrange(groups, number, limit, ALIGNMENT)


def _place(
    analysis: ValueAnalysis, coalescing: Coalescing, arrangement: Arrangement
) -> tuple[dict[Buffer, BufferSlice], tuple[Literal, ...], tuple[Shape, ...], tuple[Allocation, ...]]:
    """The slice of each buffer, the constants and their shapes in the order of their allocations, the arenas."""
    buffers = coalescing.all_buffers()
    by_space: dict[int, list[Buffer]] = {0: []}
    for buffer in buffers:
        if buffer.fixed is None:
            by_space.setdefault(buffer.space, []).append(buffer)
    slices: dict[Buffer, BufferSlice] = {}
    arenas = []
    for space, members in sorted(by_space.items()):
        if members and members[0] in arrangement.offsets:
            offsets, size = [arrangement.offsets[b] for b in members], arrangement.size
        else:
            offsets, size = place([request_of(b) for b in members], ALIGNMENT)
        arenas.append(Allocation(AllocationKind.ARENA, space, size))
        slices.update({b: BufferSlice(arenas[-1], offset, b.size) for b, offset in zip(members, offsets, strict=True)})
    constants: list[Literal] = []
    shapes: list[Shape] = []
    for buffer in buffers:
        if buffer.fixed is None:
            continue
        kind, index = buffer.fixed
        if kind is AllocationKind.CONSTANT:
            literal, shape = analysis.values[index].constant, analysis.values[index].shape
            assert literal is not None
            index = len(constants)
            constants.append(literal)
            shapes.append(shape)
        slices[buffer] = BufferSlice(Allocation(kind, index, buffer.size), 0, buffer.size)
    return slices, tuple(constants), tuple(shapes), tuple(arenas)


def _rows(
    analysis: ValueAnalysis,
    coalescing: Coalescing,
    slices: Mapping[Buffer, BufferSlice],
    arrangement: Arrangement,
) -> Iterator[MemoryMapRow]:
    rows = []
    outputs = {b: analysis.values[v] for b, v in zip(coalescing.outputs, analysis.outputs, strict=True)}
    for buffer in coalescing.all_buffers():
        values = [analysis.values[number] for number in sorted(buffer.values)]
        holders = []
        for value in values:
            leaves = analysis.leaves.get(value.instruction, ())
            holders.append(f"{value.instruction.name}{{{value.leaf}}}" if len(leaves) > 1 else value.instruction.name)
        shapes = [v.shape for v in values] or [outputs[b].shape for b in (buffer,) if b in outputs]
        intervals = buffer.intervals or [(0, 0)]
        rows.append(
            MemoryMapRow(
                slices[buffer],
                intervals[0][0] // 2,
                (intervals[-1][1] - 1) // 2,
                tuple(holders) or ("-",),
                shapes[0] if shapes else None,
                max((s.logical_byte_size for s in shapes), default=buffer.size),
                arrangement.reasons.get(buffer, ""),
            )
        )
    kinds = list(AllocationKind)
    rows.sort(key=lambda r: (kinds.index(r.slice.allocation.kind), r.slice.allocation.index, r.slice.offset, r.first))
    yield from rows
