"""Kernels of cumulative maxima and minima along rows: block by block, with vectors along the row.

An extremum takes its elements in any number and order. In a block, each element is combined with the three before it,
and the results with the ones four, eight and twelve before them: they are then extrema of sixteen elements. After that
each still lacks the result sixteen before it, so that vectors are combined one after the other::

    for j in range(width):
        b[j + 16] = maximum(maximum(a[j + 16], a[j + 15]), maximum(a[j + 14], a[j + 13]))
    for j in range(width):
        a[j + 16] = maximum(maximum(b[j + 16], b[j + 12]), maximum(b[j + 8], b[j + 4]))
    for v in range(0, width, 16):
        for j in range(16):
            last[j] = maximum(last[j], a[v + j + 16])
            a[v + j + 16] = last[j]

In most blocks of a long row no element is beyond the extremum so far, which is then the result for all of them: a plain
maximum of the block finds that out.

Positions before the block, or after its end, count as the extremum so far. Floats are held as integer keys
(`key_functions`): the maximum of these is one instruction. Long rows are cut into pieces, as in `window_scan.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial

from ...hlo.ir import HloInstruction
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Expr, Name, call, minimum
from ..schedule.steps import size_of
from .window_scan import Rows, Scan
from .window_schedule import ROW, STEP, scan_steps, window_notes

VECTOR = 16
"""Elements that are combined with those sixteen before them at a time."""
VECTOR_BITS = 256
"""Wider vectors make the ends of rows longer, and the kernel takes longer to compile."""

Load = Callable[[Expr], Expr]
"""The key of an element of a block."""
Keep = Callable[[Expr, Expr], None]
"""Stores the result whose key is given for an element of a block."""


def emit_extrema(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The scan along rows, or along their pieces; then output 1 has the start values of the pieces."""
    own = Rows(instruction, scan, "scan_extrema")
    writer, (outputs, first_values) = own.writer, own.results()
    kind, size = own.accumulators()[0].type, size_of(scan.block)
    arrays = [writer.local_array(name, size + VECTOR, kind) for name in ("a", "b")]
    arrays.append(writer.local_array("last", VECTOR, kind))
    with writer.loop(ROW, LO, HI) as number:
        row = own.row(0, number)
        so_far = writer.assign("so_far", first_values(number)[0])
        with writer.loop("block", ZERO, row.steps, step=size) as first:
            width = writer.assign("width", minimum(size, row.steps - first))

            def load(j: Expr) -> Expr:
                return own.load(own.sources, own.offset(row, first + j))[0]

            def keep(j: Expr, value: Expr) -> None:
                own.keep(outputs, own.offset(row, first + j), [value])

            with _unless_same(own, load, keep, width, so_far) if scan.size > size else nullcontext():
                _block(own, load, keep, width, so_far, arrays)
    notes = window_notes(instruction, scan_steps(scan.block, scan.piece), f"{ROW}, {STEP}")
    return own.text.finish(own.total, vector_bits=VECTOR_BITS, notes=notes)


def _combine(own: Rows) -> str:
    """The function that combines two held values."""
    assert own.keys is not None
    return own.keys[1]


@contextmanager
def _unless_same(own: Rows, load: Load, keep: Keep, width: Name, so_far: Name) -> Iterator[None]:
    """Around the code for a block, which is skipped if no element of the block changes the extremum. The first element
    alone shows most blocks of a rising row."""
    writer, combine = own.writer, _combine(own)
    top = writer.assign("top", call(combine, so_far, load(ZERO)))
    with writer.if_(top.eq(so_far), guarded=True), writer.loop("j", width) as j:
        writer.assign(top, call(combine, top, load(j)))
    with writer.if_(top.eq(so_far), guarded=True), writer.loop("j", width) as j:
        keep(j, so_far)
    with writer.else_(guarded=True):
        yield


def _block(own: Rows, load: Load, keep: Keep, width: Name, so_far: Name, arrays: Sequence[Name]) -> None:
    """The extrema of one block. `so_far` is the extremum of all elements before it, and afterwards includes the
    block."""
    writer, (a, b, last) = own.writer, arrays
    extremum = partial(call, _combine(own))
    with writer.lanes("j", VECTOR) as j:
        for array in arrays:
            writer.store(array, j, so_far)
    with writer.loop("j", width) as j:
        writer.store(a, j + VECTOR, load(j))
    with writer.loop("j", width, (width + (VECTOR - 1)) // VECTOR * VECTOR) as j:
        writer.store(a, j + VECTOR, so_far)  # the rest of the last vector
    old, new = a, b
    for distance in (1, 4):
        with writer.loop("j", width) as j:
            four = [old[j + (VECTOR - k * distance)] for k in range(4)]
            writer.store(new, j + VECTOR, extremum(extremum(four[0], four[1]), extremum(four[2], four[3])))
        old, new = new, old
    with writer.loop("v", ZERO, width, step=VECTOR) as v, writer.loop("j", VECTOR) as j:
        writer.store(last, j, extremum(last[j], old[v + j + VECTOR]))
        writer.store(old, v + j + VECTOR, last[j])
    with writer.loop("j", width) as j:
        keep(j, old[j + VECTOR])
    writer.assign(so_far, old[width + (VECTOR - 1)])
