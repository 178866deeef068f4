"""Write native loops over a batch of problems: the loop runs for a part of the batch at a time.

    def native_loop_add(lo, hi, io0, w0, n0, n1):
        for first in range(lo, hi, 128):
            last = minimum(first + 128, hi)
            for step0 in range(n0):
                for i in range(first * 8, last * 8):
                    w0[i] = ...

`hlo/analyses/batch.py` proves that the members of the batch are independent. Threads get `lo, hi`, parts of the batch,
and divide them into blocks, so small that a block's state stays in the first-level cache for the whole loop. Each
kernel of the body has a loop over its outermost dimension, which is the batch, perhaps merged with dimensions after it;
here it gets the block's bounds. Arrays with a batch are behind pointers, shared by all threads. Each block computes
values that all members share (counters, times) for itself, in local variables. If such a value is a result, the first
block stores it, never over the operand, which the other blocks still read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from ...hlo.analyses.batch import Batch, leaves_with_axes
from ...hlo.buffers.coalescing import Buffer, Coalescing
from ...hlo.buffers.values import ValueAnalysis
from ...hlo.ir import HloComputation
from ..cost import TURN_OF_PART
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import Expr, Name, call, times
from ..loops.statements import Assign, Block, Comment, For, If, LocalArray, Statement, names_of
from ..machine import target_machine
from .memory import Lanes
from .state import loop_in

FIRST, LAST = Name("first"), Name("last")
"""The bounds of a block of the batch."""

BLOCK_ELEMENTS = 256
"""A block has at least so many elements of its smallest arrays, so that loops are long enough for vectors."""
FEWEST_MEMBERS, MOST_MEMBERS = 1, 4096


class NotInParts(Exception):
    """The reason why the code of a loop cannot be written for a part of its batch."""


class Parts:
    """The memory of one loop over a batch: which buffers have a batch, and where."""

    def __init__(self, batch: Batch, fused: HloComputation, analysis: ValueAnalysis, coalescing: Coalescing) -> None:
        self.batch = batch
        self._lanes: dict[Buffer, Lanes] = {}
        shared: dict[Buffer, bool] = {}
        """Buffers with values that all members share -> whether the loop writes one of them."""
        loop = loop_in(fused)
        state = zip(loop.shape.elements, batch.state, strict=True)
        for instruction, number, shape, axis in (
            *leaves_with_axes(batch), *[(loop, number, *both) for number, both in enumerate(state)]
        ):  # fmt: skip
            value = analysis.leaves[instruction][number]
            buffer = coalescing.buffers.get(value)
            if buffer is None or not shape.num_elements:
                continue
            if axis is None:
                known = analysis.values[value]
                written = known.parameter is None and known.constant is None
                shared[buffer] = shared.get(buffer, False) or written
                continue
            outer, inner = math.prod(shape.dimensions[:axis]), math.prod(shape.dimensions[axis + 1 :])
            self._put(buffer, Lanes(batch.size, outer, inner))
        for value, buffer in zip(analysis.outputs, coalescing.outputs, strict=True):
            found = self._lanes.get(coalescing.buffers[value])
            if found is not None:
                self._put(buffer, found)
        if self._lanes.keys() & shared.keys():
            raise NotInParts("one buffer for values with a batch and shared ones")
        self._written_and_shared = {buffer for buffer, written in shared.items() if written}

    def _put(self, buffer: Buffer, lanes: Lanes) -> None:
        if self._lanes.setdefault(buffer, lanes) != lanes:
            raise NotInParts("one buffer for values with the batch in different places")

    def lanes(self, buffer: Buffer) -> Lanes | None:
        """Where the members are; None for a buffer that all share."""
        return self._lanes.get(buffer)

    def require_own_memory(self, buffer: Buffer) -> None:
        """Refuse a buffer without a batch if it is in memory that all threads share."""
        if buffer in self._written_and_shared:
            raise NotInParts("a shared value that is too large for a part's own memory")



def block_bytes() -> int:
    """The state of a block, with temporaries: it stays in the first-level cache."""
    return target_machine().first_cache * 3 // 4


def block_members(memories: Iterable[tuple[Lanes, int]]) -> int:
    """Members of a block, a power of two: a literal of the text, the same for batches of all sizes. `memories`: all
    that have a batch, with the bytes of an element."""
    found = list(memories)
    nbytes = sum(lanes.inner * width for lanes, width in found)
    elements = max(lanes.inner for lanes, _ in found)
    members = FEWEST_MEMBERS
    while members * elements < BLOCK_ELEMENTS or (members * 2 * nbytes <= block_bytes() and members < MOST_MEMBERS):
        members *= 2
    return members


def bounds(kernel: EmittedKernel, batch: int, size: Callable[[int], Expr]) -> Mapping[str, Expr]:
    """`lo` and `hi` of a kernel with an outermost loop along the batch, perhaps merged with more dimensions. `size`
    makes expressions of numbers."""
    if kernel.is_serial or kernel.extent % batch or not _is_sliced(kernel):
        raise NotInParts(f"{kernel.program.name} is not sliced along the batch")
    factor = size(kernel.extent // batch)
    return {"lo": times(FIRST, factor), "hi": times(LAST, factor)}


def _is_sliced(kernel: EmittedKernel) -> bool:
    """True for a kernel that is one loop from `lo` to `hi`, after assignments that do not depend on the bounds."""
    *before, loop = [s for s in kernel.program.body if not isinstance(s, (LocalArray, Comment))]
    if not isinstance(loop, For) or loop.start != LO or loop.stop != HI:
        return False
    if not all(isinstance(s, Assign) for s in before):
        return False
    return {"lo", "hi"}.isdisjoint(names_of([*before])) and "lo" not in names_of(loop.body)


def in_blocks(body: Block, members: int) -> Block:
    """The loop over blocks around all that a loop does. Local arrays are made once."""
    arrays = [s for s in body if isinstance(s, LocalArray)]
    rest = [s for s in body if not isinstance(s, LocalArray)]
    last = Assign((LAST,), (call("minimum", FIRST + members, HI),))
    return [*arrays, For(FIRST, LO, HI, members, [last, *rest])]


def least_members(nanoseconds: float, batch: int) -> int:
    """The fewest members for a thread, if an iteration of the loop takes so long for the whole batch."""
    return max(1, math.ceil(TURN_OF_PART * batch / max(nanoseconds, 1.0)))


def only_once(stores: Block) -> Block:
    """Stores of shared results: one block does them for all."""
    return [If([(FIRST.eq(0), stores)])] if stores else []


def copied(lanes: Lanes, size: Callable[[int], Expr], element: Callable[[Expr], Statement]) -> Block:
    """A copy of a block's elements. `element`: the copy of one, at an offset."""
    i, j = Name("i"), Name("j")
    inner = size(lanes.inner)
    start, stop = times(FIRST, inner), times(LAST, inner)
    if lanes.outer == 1:
        return [For(i, start, stop, 1, [element(i)])]
    offset = times(i, size(lanes.size * lanes.inner))
    return [For(i, None, size(lanes.outer), 1, [For(j, start, stop, 1, [element(offset + j)])])]
