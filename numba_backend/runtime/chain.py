"""Run several kernels piece by piece in one row: for example attention's products and softmax, head by head.

The kernels of a chain go through the same rows: matrices of a batch, or rows of all of them, in order. All kernels run
for one piece of these rows, and then for the next, so that the results of one are in the cache when the next one reads
them. Threads share the pieces.

Arrays that only the chain uses are small, and stay in the cache: a thread computes several pieces one after the other,
and all of them use the same memory. That is either the place of the first piece, in memory for all rows, or one of a
few parts: such a range has at least `grain` pieces, so the first one's number, divided by `grain`, tells the ranges
apart. A kernel finds row r of an array as if the array had all rows; the addresses that it gets are moved back by the
rows before the piece, and forward to the place.

The words of a row, after the words that `Op.CHAIN` lists: the rows of a matrix, the rows of a piece, the pieces of a
matrix, the number of pieces that share a part (0: there is memory for all rows), the number of kernels. Then for each
kernel: entry; where its arguments begin; their number; its iterations for a row, or 0 if it has one iteration for each
piece. Then for each argument its `move`: the bytes from one row and from one place to the next, for an array that only
the chain uses, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...hlo.ir import HloInstruction
from .errors import ProgramError
from .executor import native_function
from .kernel import KernelSource

MOST_ARGUMENTS = 64
"""Most arguments of a kernel in a chain."""

_ROWS, _STEP, _PIECES, _SHARING, _COUNT, _STAGES = 6, 7, 8, 9, 10, 11
_STAGE = 4  # words of a stage before its arguments

_CHAIN_ITEMS = f"""
def chain_items(lo, hi, arguments):
    row = load(arguments)
    rows = load(row + {8 * _ROWS})
    step = load(row + {8 * _STEP})
    pieces = load(row + {8 * _PIECES})
    words = stack({MOST_ARGUMENTS})
    matrix = quotient(lo, pieces)
    home = matrix * rows + (lo - matrix * pieces) * step
    if load(row + {8 * _SHARING}) > 0:
        home = quotient(lo, load(row + {8 * _SHARING}))
    for item in range(lo, hi):
        matrix = quotient(item, pieces)
        piece = item - matrix * pieces
        begin = matrix * rows + piece * step
        end = begin + step
        if piece == pieces - 1:
            end = matrix * rows + rows
        stage = row + {8 * _STAGES}
        for _ in range(load(row + {8 * _COUNT})):
            given = arguments + load(stage + 8) * 8
            count = load(stage + 16)
            iterations = load(stage + 24)
            for word in range(count):
                move = stage + {8 * _STAGE} + word * 16
                store(words + word * 8, load(given + word * 8) - load(move) * begin + load(move + 8) * home)
            if iterations == 0:
                call_kernel(load(stage), item, item + 1, words)
            else:
                call_kernel(load(stage), begin * iterations, end * iterations, words)
            stage += (count + count + {_STAGE}) * 8
    return 0
"""

CHAIN_ITEMS = native_function("chain_items", _CHAIN_ITEMS, 3)


class Stage(NamedTuple):
    """A kernel of a chain, or one that follows a product of BLAS row by row."""

    kernel: KernelSource
    arguments: tuple[Any, ...]
    """Each a `program.Argument`."""
    extent: int
    """All iterations; a kernel that is called alone has this one."""
    grain: int
    nanoseconds: float
    origin: HloInstruction | None = None
    """The instruction that it computes."""
    iterations: int = 0
    """In a chain: the number of iterations of a row; 0: one for each piece."""


class Cut(NamedTuple):
    """How the rows of a chain are cut: each of `matrices` into pieces of `step` rows, and the rest in the last one."""

    matrices: int
    rows: int
    step: int

    @property
    def per_matrix(self) -> int:
        """The pieces of one matrix."""
        return max(1, self.rows // self.step)

    @property
    def pieces(self) -> int:
        """The pieces of all."""
        return self.matrices * self.per_matrix


def parts_of(cut: Cut, grain: int) -> int:
    """How many ranges of pieces threads may take at the same time."""
    return -(-cut.pieces // grain) if grain else 1


def chain_words(
    stages: Sequence[Stage], cut: Cut, first: int, grain: int, in_parts: bool
) -> tuple[int | KernelSource, ...]:
    """The words of the row after its opcode. `in_parts`: memory is in as many parts as `parts_of` says. The program's
    arguments from `first` on: one for the address of the row, then the arguments of all stages, in order."""
    words: list[int | KernelSource] = [CHAIN_ITEMS, first, cut.pieces, grain, 0, cut.rows, cut.step, cut.per_matrix]
    words += [grain if in_parts else 0, len(stages)]
    begin = 1
    for stage in stages:
        count = len(stage.arguments)
        if count > MOST_ARGUMENTS:
            raise ProgramError(f"kernel {stage.kernel.name!r} has {count} arguments, a chain {MOST_ARGUMENTS} at most")
        words += [stage.kernel, begin, count, stage.iterations, *[word for a in stage.arguments for word in a.move]]
        begin += count
    words[4] = 1 + len(words)
    return tuple(words)
