"""Buffer assignment: where every value of a scheduled, fused module lies while it runs.

An executable has four kinds of memory: the caller's arguments, fresh memory for each result, constants, and one
arena for all that lies between. `assign_buffers` gives every leaf of every instruction a `BufferSlice` in one of
these, and says which bytes must be copied where sharing was not possible. It computes nothing and changes nothing.

This file holds the interface; the work is done in `analyses/` (values.py: which values are the same bytes, and when
they are live; coalescing.py: which values share a buffer; heap.py: offsets in the arena; buffer_checker.py: an
independent proof that the result is right).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ..ir import HloComputation, HloInstruction, HloModule
from ..literal import Literal

ALIGNMENT = 64
"""Every arena offset is a multiple of this: a cache line, and the widest vector register."""

ShapeIndex = tuple[int, ...]
"""Which leaf of a (nested) tuple shape: () for an array, (1,) for element 1, (1, 0) for element 0 of element 1."""

CanShare = Callable[[HloInstruction, int, int], bool]
"""can_share(instruction, operand_leaf, output_leaf): may the emitted code write this output leaf over this operand
leaf, if both have the same number of bytes and nobody needs the operand afterwards?

True needs: when output element i is written, no element of that operand but those of the same index i is still to
be read (an element-wise kernel), or the operand is only ever partly overwritten in place (dynamic-update-slice).
Leaves are counted over all operands (for instructions without tuple operands: the operand's number) and over the
result's shape (0 for an array). Asked only about FUSION, ordinary instructions, and control flow that is `opaque`.
"""


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

    def slice(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferSlice:
        """Where leaf `index` of `instruction` lies."""
        raise NotImplementedError

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
        """All copies, in schedule order (those of loop bodies once)."""
        raise NotImplementedError

    def to_text(self) -> str:
        """The memory map as text: the arena's buffers by offset with who lies there when, then the copies."""
        raise NotImplementedError


def is_alias(instruction: HloInstruction) -> bool:
    """True when the result is the operands' bytes unchanged, so that no code runs for it.

    tuple, get-tuple-element, bitcast and opt-barrier always; reshape when both layouts are row-major.
    """
    raise NotImplementedError


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
    raise NotImplementedError
