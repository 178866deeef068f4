"""Buffer assignment: where every value of a scheduled, fused module lies while it runs.

An executable has four kinds of memory: the caller's arguments, fresh memory for each result, constants, and one
arena for all that lies between. `assign_buffers` gives every leaf of every instruction a `BufferSlice` in one of
these, and says which bytes must be copied where sharing was not possible. It computes nothing and changes nothing.

This file holds the interface; the work is done in `analyses/` (values.py: which values are the same bytes, and when
they are live; coalescing.py: which values share a buffer; heap.py: offsets in the arena) and checked by
buffer_checker.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..analyses.coalescing import Buffer, CanShare, Coalescing, Home, coalesce
from ..analyses.heap import Request, place
from ..analyses.values import ValueAnalysis, analyse_values, is_alias, leaf_count, leaf_number
from ..ir import HloComputation, HloInstruction, HloModule
from ..literal import Literal

__all__ = [
    "ALIGNMENT",
    "Allocation",
    "AllocationKind",
    "BufferAssignment",
    "BufferCopy",
    "BufferSlice",
    "CanShare",
    "MemoryMapRow",
    "ShapeIndex",
    "assign_buffers",
    "is_alias",
]

ALIGNMENT = 64
"""Every arena offset is a multiple of this: a cache line, and the widest vector register."""

ShapeIndex = tuple[int, ...]
"""Which leaf of a (nested) tuple shape: () for an array, (1,) for element 1, (1, 0) for element 0 of element 1."""

class AllocationKind(Enum):
    """Whose memory it is."""

    PARAMETER = "parameter"
    """An argument, owned by the caller: written only when it is donated."""
    OUTPUT = "output"
    """A result, fresh in every execution."""
    CONSTANT = "constant"
    """Owned by the executable, never written."""
    ARENA = "arena"
    """Scratch memory of one execution."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One piece of memory.

    `index` counts, by kind: the leaves of the entry's parameters in order; the leaves of the entry's result; the
    entries of `BufferAssignment.constants`; 0 for the arena. `size` is in bytes.
    """

    kind: AllocationKind
    index: int
    size: int

    def __str__(self) -> str:
        return "arena" if self.kind is AllocationKind.ARENA else f"{self.kind.value} {self.index}"


@dataclass(frozen=True, slots=True)
class BufferSlice:
    """`size` bytes at `offset` of an allocation. Equal slices are the same memory."""

    allocation: Allocation
    offset: int
    size: int

    def overlaps(self, other: BufferSlice) -> bool:
        """True when the two have a byte in common."""
        a, b = self.allocation, other.allocation
        return (
            a.kind is b.kind
            and a.index == b.index
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )

    def __str__(self) -> str:
        return f"{self.allocation}[{self.offset}:{self.offset + self.size}]"


@dataclass(frozen=True, slots=True)
class BufferCopy:
    """Bytes to be copied: source and target have the same size and do not overlap."""

    source: BufferSlice
    target: BufferSlice


@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """Where the values of `module` lie. Covers the entry and what it reaches through while, conditional and call.

    The bodies of fusions, reducers and opaque control flow have no buffers.

    How to run a module by it: walk `instructions` of the entry in order. An instruction for which `is_alias` holds,
    a parameter or a constant needs no code. FUSION and ordinary ones read the slices of their operands' leaves and
    write their own. For the others:

    * WHILE: do `copies_before(instruction)`; then loop: run the condition, whose parameter leaves lie where the
      while's result leaves lie; stop when its root's slice holds 0; run the body, do `copies_at_end(body)`.
    * CONDITIONAL: the branches' parameters lie where the operands lie; run the chosen one, do
      `copies_at_end(branch)`.
    * CALL: run the callee; its parameters lie where the operands lie, its root where the call's result lies.

    At the end do `copies_at_end(module.entry)`. Lists of copies are to be done in the given order.
    """

    module: HloModule
    slices: Mapping[HloInstruction, tuple[BufferSlice, ...]]
    """Per instruction, one slice a leaf of its shape, depth first."""
    parameters: tuple[BufferSlice, ...]
    """One a leaf of the entry's parameters: the whole PARAMETER allocations."""
    outputs: tuple[BufferSlice, ...]
    """One a leaf of the entry's result: an OUTPUT allocation, or the PARAMETER that was donated for it."""
    constants: tuple[Literal, ...]
    """The contents of the CONSTANT allocations; equal ones are kept once."""
    arena_size: int
    """Bytes of the arena, a multiple of ALIGNMENT."""
    before: Mapping[HloInstruction, tuple[BufferCopy, ...]]
    at_end: Mapping[HloComputation, tuple[BufferCopy, ...]]

    rows: tuple[MemoryMapRow, ...] = field(default=(), repr=False)
    """The memory map, by allocation and offset."""

    def slice(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferSlice:
        """Where leaf `index` of `instruction` lies."""
        return self.slices[instruction][leaf_number(instruction.shape, index)]

    def leaves(self, instruction: HloInstruction) -> tuple[BufferSlice, ...]:
        """Where all leaves of `instruction` lie, depth first; for an array, one."""
        return self.slices[instruction]

    def operand_leaves(self, instruction: HloInstruction) -> tuple[BufferSlice, ...]:
        """Where all leaves of all operands of `instruction` lie."""
        return tuple(s for operand in instruction.operands for s in self.slices[operand])

    def copies_before(self, instruction: HloInstruction) -> tuple[BufferCopy, ...]:
        """What must be copied just before `instruction` (a WHILE: initial values that cannot lie in place)."""
        return self.before.get(instruction, ())

    def copies_at_end(self, computation: HloComputation) -> tuple[BufferCopy, ...]:
        """What must be copied after the last instruction of the entry, a loop body or a branch."""
        return self.at_end.get(computation, ())

    @property
    def copies(self) -> tuple[BufferCopy, ...]:
        """All copies: those before loops, then those at the ends of blocks (of loop bodies once)."""
        return tuple(copy for copies in (*self.before.values(), *self.at_end.values()) for copy in copies)

    def total_size(self, kind: AllocationKind) -> int:
        """Bytes of all allocations of a kind: what MemoryAnalysis reports."""
        match kind:
            case AllocationKind.ARENA:
                return self.arena_size
            case AllocationKind.PARAMETER:
                return sum(s.size for s in self.parameters)
            case AllocationKind.OUTPUT:
                return sum(s.size for s in self.outputs if s.allocation.kind is AllocationKind.OUTPUT)
            case AllocationKind.CONSTANT:
                return sum(c.array.nbytes for c in self.constants)

    def to_text(self) -> str:
        """The memory map as text: the arena's buffers by offset with who lies there when, then the copies."""
        return "\n".join(_memory_map(self)) + "\n"


def assign_buffers(
    module: HloModule,
    can_share: CanShare,
    *,
    is_opaque: Callable[[HloInstruction], bool] = lambda instruction: False,
) -> BufferAssignment:
    """Give every value of a scheduled module its place.

    `can_share` says which outputs the emitted code may write over which operands. `is_opaque` says which WHILE,
    CONDITIONAL and CALL instructions become one kernel: these are treated as ordinary instructions and their
    computations get no buffers. Donation comes from `module.input_output_aliases`.

    Each computation may be called from one place only (the pass `flatten-call-graph` sees to that), the schedule is
    the order of the instructions, inner layouts are row-major.
    """
    analysis = analyse_values(module, is_opaque)
    coalescing = coalesce(analysis, can_share, _donations(module))
    slices, constants, arena_size = _place(analysis, coalescing)
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
        arena_size,
        before,
        at_end,
        tuple(_rows(analysis, coalescing, slices)),
    )


def _donations(module: HloModule) -> dict[int, int]:
    """The parameter leaf that is donated for each output leaf that has one."""
    firsts = [0]
    for parameter in module.entry.parameters:
        firsts.append(firsts[-1] + leaf_count(parameter.shape))
    found: dict[int, int] = {}
    for alias in module.input_output_aliases:
        parameter = module.entry.parameters[alias.parameter]
        number = firsts[alias.parameter] + leaf_number(parameter.shape, alias.parameter_index)
        output = leaf_number(module.entry.root.shape, alias.output_index)
        assert output not in found and number not in found.values(), f"{alias} donates twice"
        found[output] = number
    return found


def _place(
    analysis: ValueAnalysis, coalescing: Coalescing
) -> tuple[dict[Buffer, BufferSlice], tuple[Literal, ...], int]:
    """The slice of each buffer, the constants in the order of their allocations, the size of the arena."""
    buffers = coalescing.all_buffers()
    in_arena = [b for b in buffers if b.home is None]
    # Whole positions: what is handed over is read and written at one position, and copies come one after the other.
    requests = [Request(b.size, b.intervals[0][0] // 2, (b.intervals[-1][1] + 1) // 2) for b in in_arena]
    offsets, arena_size = place(requests, ALIGNMENT)
    arena = Allocation(AllocationKind.ARENA, 0, arena_size)
    slices = {b: BufferSlice(arena, offset, b.size) for b, offset in zip(in_arena, offsets, strict=True)}
    constants: list[Literal] = []
    for buffer in buffers:
        if buffer.home is None:
            continue
        home, index = buffer.home
        if home is Home.CONSTANT:
            literal = analysis.values[index].constant
            assert literal is not None
            index = len(constants)
            constants.append(literal)
        slices[buffer] = BufferSlice(Allocation(AllocationKind(home.value), index, buffer.size), 0, buffer.size)
    return slices, tuple(constants), arena_size


@dataclass(frozen=True, slots=True)
class MemoryMapRow:
    """One buffer: where it lies, the schedule positions from and to which it is needed, and whose results it holds."""

    slice: BufferSlice
    first: int
    last: int
    holders: tuple[str, ...]


def _rows(
    analysis: ValueAnalysis, coalescing: Coalescing, slices: Mapping[Buffer, BufferSlice]
) -> Iterator[MemoryMapRow]:
    rows = []
    for buffer in coalescing.all_buffers():
        holders = []
        for number in sorted(buffer.values):
            value = analysis.values[number]
            leaves = analysis.leaves.get(value.instruction, ())
            holders.append(f"{value.instruction.name}{{{value.leaf}}}" if len(leaves) > 1 else value.instruction.name)
        intervals = buffer.intervals or [(0, 0)]
        rows.append(
            MemoryMapRow(slices[buffer], intervals[0][0] // 2, (intervals[-1][1] - 1) // 2, tuple(holders) or ("-",))
        )
    kinds = list(AllocationKind)
    rows.sort(key=lambda r: (kinds.index(r.slice.allocation.kind), r.slice.allocation.index, r.slice.offset, r.first))
    yield from rows


def _memory_map(assignment: BufferAssignment) -> Iterator[str]:
    yield f"memory map of {assignment.module.name}"
    for kind in AllocationKind:
        rows = [r for r in assignment.rows if r.slice.allocation.kind is kind]
        if not rows:
            continue
        yield ""
        yield f"{kind.value}s" if kind is not AllocationKind.ARENA else "arena"
        yield f"  {len(rows)} buffers, {assignment.total_size(kind):,} bytes"
        yield f"  {'at':>12} {'bytes':>14}  {'needed':<13} holds"
        for row in rows:
            where = row.slice.offset if kind is AllocationKind.ARENA else row.slice.allocation.index
            needed = f"{row.first}-{row.last}"
            yield f"  {where:>12,} {row.slice.size:>14,}  {needed:<13} {', '.join(row.holders)}"
    places = (
        *((f"before {i.name}", copies) for i, copies in assignment.before.items()),
        *((f"at the end of {c.name}", copies) for c, copies in assignment.at_end.items()),
    )
    if places:
        yield ""
        yield "copies"
    for place_, copies in places:
        for copy in copies:
            yield f"  {place_}: {copy.target} <- {copy.source}"
