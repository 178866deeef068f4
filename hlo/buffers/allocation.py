"""Pieces of memory and parts of them: the types of the result of buffer assignment."""

from __future__ import annotations

from enum import Enum

from ..support.records import dataclass


class AllocationKind(Enum):
    """The kind and the owner of the memory."""

    PARAMETER = "parameter"
    """An argument, owned by the caller: written only when it is donated."""
    OUTPUT = "output"
    """A result: new memory in every execution."""
    CONSTANT = "constant"
    """Owned by the executable, never written."""
    ARENA = "arena"
    """Scratch memory of one execution, in the memory space that is its index."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One piece of memory.

    `index` counts within the kind: the leaves of the entry's parameters in order; the leaves of the entry's result; the
    entries of `BufferAssignment.constants`; for an arena it is the memory space. `size` is in bytes.
    """

    kind: AllocationKind
    index: int
    size: int

    def __str__(self) -> str:
        if self.kind is AllocationKind.ARENA:
            return f"arena S({self.index})" if self.index else "arena"
        return f"{self.kind.value} {self.index}"


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
