"""Write rows that call a routine of LAPACK for each matrix of a batch, without Python.

A routine takes pointers only. The row's arguments are a table with an entry for each argument of the routine: its
address for matrix 0; the steps from one matrix and from one piece of work to the next; and whether the address counts
from the table itself, which holds numbers and letters. Threads share the pieces; each piece has workspaces of its own.
Large matrices are one piece, and OpenBLAS uses as many threads of its own as the runtime may.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...hlo.custom_call_targets.library import PREFIXES, address_of
from ...hlo.element_type import ElementType
from ..machine import SHARE_NANOSECONDS, this_machine
from .blas import lapack_thread_setting
from .executor import native_function
from .kernel import KernelSource
from .program import Argument, ProgramBuilder, size
from .threads import ENTER_BLAS, LEAVE_BLAS, THREADS, get_num_threads, pool_pointer

# Words of a row: routine, number of calls, calls in a piece, what gets and sets OpenBLAS's threads, the pool's pointer,
# whether OpenBLAS may use several; then the table.
_ROUTINE, _COUNT, _PIECE, _GET, _SET, _POOL, _SEVERAL, _TABLE = (8 * k for k in range(8))
_ENTRY = 4


@functools.cache
def calls(count: int) -> KernelSource:
    """`lo, hi, row`: calls a routine of `count` arguments for the pieces lo to hi."""

    def argument(k: int) -> str:
        address, step, work, own = (f"load(row + {_TABLE + 8 * (_ENTRY * k + j)})" for j in range(_ENTRY))
        return f"{address} + i * {step} + piece * {work} + row * {own}"

    name = f"lapack_calls_{count}"
    source = f"""
def {name}(lo, hi, row):
    pool = load(load(row + {_POOL}))
    set = load(row + {_SET})
    threads = 1
    if load(row + {_SEVERAL}):
        threads = load(pool + {THREADS})
    call4(load(pool + {ENTER_BLAS}), pool, load(row + {_GET}), set, threads)
    for piece in range(lo, hi):
        first = piece * load(row + {_PIECE})
        last = smaller(first + load(row + {_PIECE}), load(row + {_COUNT}))
        for i in range(first, last):
            call_routine{count}(load(row + {_ROUTINE}), {", ".join(argument(k) for k in range(count))})
    call2(load(pool + {LEAVE_BLAS}), pool, set)
    return 0
"""
    return native_function(name, source, 3)


LAPACK_FUNCTIONS = tuple([calls(count) for count in range(5, 21)])
"""For all numbers of arguments that routines have."""


def large_bytes() -> int:
    """A matrix of this many bytes or more uses all threads."""
    return this_machine().second_cache


def nanoseconds(item_bytes: int) -> float:
    """n ** 3 for a matrix of f64 with n rows, and the time of a call."""
    return 200 + float((item_bytes / 8) ** 1.5)


def pieces_of(count: int, item_bytes: int) -> int:
    """Into how many pieces `count` matrices of `item_bytes` are cut, for threads that share them; 1 where OpenBLAS's
    own threads do better, or none would help."""
    threads, total = get_num_threads(), count * nanoseconds(item_bytes)
    if threads == 1 or item_bytes >= large_bytes() or total < 24 * SHARE_NANOSECONDS:
        return 1
    return max(1, min(2 * threads, count, int(total / (12 * SHARE_NANOSECONDS))))


class LapackCall:
    """One row, argument by argument; `count` matrices of at most `item_bytes`."""

    def __init__(self, builder: ProgramBuilder, routine: str, element_type: ElementType, count: int, item_bytes: int):
        self._builder, self._routine = builder, PREFIXES[element_type] + routine
        self._element_type, self._count = element_type, count
        self.nanoseconds: float = count * nanoseconds(item_bytes)
        self._several = item_bytes >= large_bytes()
        self._piece = -(-count // pieces_of(count, item_bytes))
        self.pieces: int = -(-count // self._piece)
        """How many workspaces there are of each kind."""
        self._table: list[tuple[Argument, int, int] | list[int]] = []

    def array(self, place: Argument, step: int) -> None:
        """An array: `step` bytes for each matrix."""
        self._table.append((place, step, 0))

    def work(self, place: Argument, piece_bytes: int) -> None:
        """A workspace for each piece."""
        self._table.append((place, 0, piece_bytes))

    def number(self, value: str | int | float) -> None:
        """A letter, a 32-bit integer, or a float, which becomes a number of the routine's type."""
        if isinstance(value, float):
            data = np.array(value, self._element_type.dtype).tobytes()
        else:
            data = np.array(ord(value) if isinstance(value, str) else value, np.int64).tobytes()
        data = data.ljust(-(-len(data) // 8) * 8, b"\0")
        self._table.append(np.frombuffer(data, np.int64).tolist())

    def add(self) -> None:
        """Add the row."""
        head = [size(address_of(self._routine)), size(self._count), size(self._piece)]
        head += [*map(size, lapack_thread_setting()), size(pool_pointer()), size(int(self._several))]
        table: list[Argument] = []
        numbers: list[Argument] = []
        start = len(head) + _ENTRY * len(self._table)
        for entry in self._table:
            if isinstance(entry, list):
                table += [size(8 * (start + len(numbers))), size(0), size(0), size(1)]
                numbers += [size(word) for word in entry]
            else:
                place, step, work = entry
                table += [place, size(step), size(work), size(0)]
        arguments, title = [*head, *table, *numbers], f"lapack {self._routine}"
        self._builder.pieces(calls(len(self._table)), arguments, self.pieces, self.nanoseconds, title)


def work_bytes(count: int, element_type: ElementType) -> int:
    """Bytes of a workspace: whole cache lines, so that threads do not share one."""
    line = this_machine().cache_line
    return -(-count * element_type.byte_width // line) * line


def per_matrix(element_type: ElementType, shape: Sequence[int]) -> int:
    """The bytes of one array of a batch."""
    return int(np.prod(shape, dtype=np.int64)) * element_type.byte_width
