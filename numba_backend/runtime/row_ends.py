"""Which loops over rows end with a vector under a mask.

    for i in range(lo, hi):                         for i in range(lo, hi):
        for j in range(n):                              rest = n % 16
            out[i * n + j] = exp(x[i * n + j])  ->      for j in range(n - rest):
                                                            out[i * n + j] = exp(x[i * n + j])
                                                        for lane in range(16):
                                                            if lane < rest:
                                                                j = n - rest + lane
                                                                out[i * n + j] = exp(x[i * n + j])

LLVM computes the elements that are left of whole vectors one by one, up to 15 in each row. The second loop becomes one
vector, whose mask is the same for all rows. Of 200,000 numbers of f32 in rows of 31, ``tanh(x + b)`` takes 67 us in
place of 193, five points of a grid 41 in place of 74, softmax 209 in place of 349; in rows of 126 65, 33, and 126 in
place of 92, 41, and 171 (Zen 4).

It pays where an element takes long: if it is a function, or uses neighbours in its row. These LLVM hands on from vector
to vector, and then it has no half vectors for the end either. Two or three such elements are sooner computed one by
one, and so are all that are cheaper: a copy would no longer be a memcpy. Sums of cheap terms stay as they are, since
adding up two vectors takes longer than adding elements, and so do loops that load what they store, since a load waits
where it reads what a masked store has written.

This needs registers of masks (AVX-512): where there are none, AMD's processors store masked elements one by one.
"""

from __future__ import annotations

from ...hlo.support.records import dataclass
from ..loops.expressions import Binary, Call, Load, Name
from ..loops.lanes import WIDTHS
from ..loops.statements import Assign, Block, For, Store, expressions_of
from ..loops.straight_lines import assigned, is_straight, read_first
from ..loops.typing import pointee
from ..loops.vectorized_calls import LONG
from .loop_hints import count_in_text, steps_by_one

_LEAST_OF_NEIGHBOURS = 4
"""Elements without functions that take longer one by one than under a mask."""
_MOST_STATEMENTS = 24
"""A longer body is not written twice: the compile time grows with it."""


@dataclass(frozen=True, slots=True)
class RowEnd:
    """How the end of a row is computed."""

    lanes: int
    """The elements of its vector, a power of two."""
    least: int
    """Fewer elements than these are left to the loop over whole vectors."""


def row_end(loop: For, register: int) -> RowEnd | None:
    """The end for a loop of straight-line code over neighbours in memory, as many as an argument tells. None for other
    loops, and for one over a kernel's whole range. `register`: its bytes."""
    j, body = loop.variable.name, loop.body
    if loop.step != 1 or count_in_text(loop) or "hi" in loop.stop.names or len(body) > _MOST_STATEMENTS:
        return None
    if not is_straight(body):
        return None
    parts = [part for statement in body for whole in expressions_of(statement) for part in whole.walk()]
    loads = [part for part in parts if isinstance(part, Load)]
    stores = [statement for statement in body if isinstance(statement, Store)]
    if not {store.pointer.name for store in stores}.isdisjoint(load.pointer.name for load in loads):
        return None
    if not all(store.index.reads(j) and steps_by_one(store.index, j) for store in stores):
        return None
    if any(isinstance(part, Call) and part.function in LONG for part in parts):
        pays, least = read_first(body, assigned(body)) <= _reduced(body), 1
    else:
        pays, least = _uses_neighbours(loads, j) and not read_first(body, assigned(body)), _LEAST_OF_NEIGHBOURS
    pointers = [store.pointer for store in stores] + [load.pointer for load in loads]
    sizes = [WIDTHS.get(pointee(pointer.type), 0) for pointer in pointers]
    return RowEnd(register // max(sizes), least) if pays and sizes and all(sizes) else None


def _uses_neighbours(loads: list[Load], counter: str) -> bool:
    """True if an element of a row is loaded in several iterations: ``x[i * n + j]`` and ``x[i * n + (j + 1)]``."""
    rows: dict[tuple[str, str], str] = {}
    for load in loads:
        match load.index:
            case Binary(op="+", left=row, right=place) if place.reads(counter) and not row.reads(counter):
                if rows.setdefault((load.pointer.name, row.text), place.text) != place.text:
                    return True
    return False


def _reduced(body: Block) -> set[str]:
    """The names that ``acc = reduce_add(acc, term)`` and the like assign to, and nothing else reads."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case Assign(targets=(target,), values=(Call(function=function, arguments=(Name(name=name), _)),)):
                if function.startswith("reduce_") and name == target.name:
                    found.add(name)
    read = [name for statement in body for whole in expressions_of(statement) for name in whole.names]
    return {name for name in found if read.count(name) == 1}
