"""Write a row of a large result by non-temporal stores.

    for j_tile in range(0 - shift, n0, 1024):
        low = maximum(j_tile, 0)
        stop = minimum(j_tile + 1024, n0)
        for j in range(low, stop):
            row[j - j_tile] = x[n0 - 1 - j]                 in the place of out[i * n0 + j] = ...
        ...                                                 elements before the first line
        for line in range(first, last, 16):
            for lane in streamed(16):
                out[at + (line + lane)] = row[line + lane]
        ...                                                 elements after the last line

A plain store reads the line that it writes, and a large result drives everything else out of the caches. Pieces of a
row are made in a local array and are copied from there by whole lines; `shift` lets pieces begin with a line. Elements
that do not fill a line are stored as ever, so parts of a row that different loops or threads write do not disturb each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ..machine import LINE
from .expressions import ZERO, Expr, Name, maximum, minimum
from .lanes import WIDTHS
from .writer import Writer

_PIECE = 4096
"""Bytes of a piece of a row."""


@contextmanager
def streamed_row(
    writer: Writer, names: Sequence[str], bounds: tuple[Expr, Expr], together: int, out: Name,
    place: Callable[[Expr], Expr],
) -> Iterator[tuple[list[Expr], Name, Expr]]:  # fmt: skip
    """Opens the loop over a row, piece by piece, and with two names in it one over `together` neighbours. The elements
    of an iteration belong to ``out[place(iteration)]`` and what follows. Gives the counters, the array to write to, and
    where in it."""
    width = WIDTHS[out.type[:-1]]
    line, piece = LINE // width, max(_PIECE // (width * together * LINE), 1) * LINE
    start, end = bounds
    row = writer.local_array(writer.fresh("row"), piece * together, out.type[:-1])
    shift: Expr = ZERO
    if line % together == 0:
        shift = writer.assign("shift", (place(start) & (line - 1)) // together)
    with writer.loop(f"{names[0]}_tile", start - shift, end, step=piece) as tile:
        low, stop = writer.assign("low", maximum(tile, start)), writer.assign("stop", minimum(tile + piece, end))
        with ExitStack() as stack:
            counter = stack.enter_context(writer.loop(names[0], low, stop))
            inner = [stack.enter_context(writer.neighbours(name, together, ())) for name in names[1:]]
            local = (counter - tile) * together
            yield [counter, *inner], row, local + inner[0] if inner else local
        at = writer.assign("at", place(tile))
        begin = writer.assign("begin", (low - tile) * together)
        rest = writer.assign("rest", (stop - tile) * together)
        first = writer.assign("first", minimum(begin + (ZERO - (at + begin) & (line - 1)), rest))
        last = writer.assign("last", first + (rest - first) // line * line)
        for edge in ((begin, first), (last, rest)):
            with writer.loop("edge", *edge) as element:
                writer.store(out, at + element, row[element])
        with writer.loop("line", first, last, step=line) as whole, writer.loop("lane", line, kind="streamed") as lane:
            writer.store(out, at + (whole + lane), row[whole + lane])
