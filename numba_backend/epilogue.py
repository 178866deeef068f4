"""Which fusions can follow a product piece by piece: bias, activation, residual, scaling, softmax of rows.

A large product is cut into pieces of rows, one or more for each thread. A kernel that computes each row of its results
from the same row of the product can run on a piece as soon as that is done, in the same thread, while the piece is in
the cache. The row of the product in the program's table then has the kernel as well (`runtime/blas.py`).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Sequence

from ..hlo.buffers.assignment import BufferSlice
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops import Trait, has_trait
from .machine import target_machine
from .runtime.blas import MOST_EPILOGUES

__all__ = [
    "MOST_EPILOGUES", "Rowwise", "divides_rows", "has_epilogues", "keeps_rows", "leading_sizes", "least_bytes",
    "overlap",
]  # fmt: skip

_STRUCTURE = frozenset((Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.PARAMETER, Opcode.CONSTANT, Opcode.IOTA))
_RESHAPES = frozenset((Opcode.RESHAPE, Opcode.BITCAST))


def least_bytes() -> int:
    """Smaller results of products are in the cache when the next kernel reads them, whoever computed them."""
    return target_machine().second_cache


def has_epilogues(dot: HloInstruction) -> bool:
    """True for a product that is worth computing piece by piece with what follows."""
    return dot.shape.byte_size >= least_bytes()


def leading_sizes(dot: HloInstruction) -> tuple[int, ...]:
    """The dimensions that number the rows of a product's result: those of the batch, and the free ones of the lhs."""
    count = dot.operands[0].shape.rank - len(dot.attributes.lhs_contracting_dims)
    return dot.shape.dimensions[:count]


def keeps_rows(body: HloComputation, given: Collection[int], leading: tuple[int, ...]) -> bool:
    """True if each row of a fused computation's results needs only that row of the parameters with the numbers `given`,
    and if its nest goes through rows in order. `leading`: the dimensions that number the rows of these parameters.

    Only operations are allowed that keep the leading dimensions where they are: element-wise ones, sums and maxima
    along the others, broadcasts along the others.
    """
    rank = len(leading)
    follows: set[HloInstruction] = set()
    for i in body.instructions:
        if any(not s.is_array or not s.array_layout.is_row_major for s in i.shape.leaves()):
            return False
        reads = any(o in follows for o in i.operands)
        if i.opcode is Opcode.PARAMETER and i.attributes.number in given:
            reads = True
        if reads:
            follows.add(i)
            if any(s.dimensions[:rank] != leading for s in i.shape.leaves()):
                return False
        if i.opcode in _STRUCTURE or has_trait(i.opcode, Trait.ELEMENTWISE):
            continue
        if i.opcode is Opcode.REDUCE:
            if i.operands[0].shape.dimensions[:rank] != leading or min(i.attributes.dimensions, default=rank) < rank:
                return False
        elif i.opcode is Opcode.BROADCAST:
            if reads and tuple(i.attributes.dimensions[:rank]) != tuple(range(rank)):
                return False
        elif i.opcode not in _RESHAPES:
            return False
    return all(s.dimensions[:rank] == leading for s in body.root.shape.leaves())


def divides_rows(extent: int, sizes: tuple[int, ...]) -> bool:
    """True if a loop of this extent goes through the first dimensions of `sizes`."""
    return extent in itertools.accumulate(sizes, operator.mul)


class Rowwise:
    """The memory that a product and the kernels after it use, to find out whether they may run row by row.

    A buffer that one of them reads may be the result of a later one, if nothing needs it after that. Row by row, the
    later one would overwrite what the earlier one has still to read. It may overwrite only what was computed for the
    same rows, in a buffer of the same place and size.
    """

    def __init__(self, operands: Sequence[BufferSlice], results: Sequence[BufferSlice]) -> None:
        self._read = list(operands)
        self._by_rows = list(results)

    def allows(
        self, operands: Sequence[BufferSlice], given: Collection[int], outputs: Sequence[BufferSlice]
    ) -> bool:
        """True if a kernel with these operands and outputs may follow; `given`: see `keeps_rows`."""
        others = [place for k, place in enumerate(operands) if k not in given]
        if any(overlap(place, computed) for place in others for computed in self._by_rows):
            return False  # a view of what is computed row by row
        for output in outputs:
            if any(overlap(output, read) for read in self._read):
                return False
            if any(overlap(output, place) and output != place for place in (*self._by_rows, *others)):
                return False
        return True

    def add(self, operands: Sequence[BufferSlice], given: Collection[int], outputs: Sequence[BufferSlice]) -> None:
        """The kernel follows."""
        self._read += [place for k, place in enumerate(operands) if k not in given and place not in outputs]
        self._by_rows += [*outputs, *[place for place in operands if place in outputs]]


def overlap(a: BufferSlice, b: BufferSlice) -> bool:
    """True if two buffers have a byte in common."""
    return bool(a.size) and bool(b.size) and a.overlaps(b)
