"""Emit transposes of arrays of any rank, in tiles that read and write whole cache lines.

The most minor dimensions of the operand together are a *run*: elements that are contiguous there. The most minor
dimensions of the result are a run too. A tile is a piece of either run, and one index of each other dimension::

    for m in range(m0): ...                       froms[count] = ...; the offset of each element of the result's run
    for tile in range(lo, hi):
        j_tile = tile % m1
        ...
        for k_tile in range(0, rows, 16):
            k = minimum(k_tile, rows - 16)
            for l_tile in range(0, columns, 16):
                l = minimum(l_tile, columns - 16)
                for m in range(16):
                    for p in range(16):
                        transposed[(k + p) * pitch + (l + m)] = x0[source + froms[l + m] + (k + p)]
        for k in range(rows):
            for l_tile in range(0, columns, 16):
                l = minimum(l_tile, columns - 16)
                for m in range(16):
                    out[target + tos[k] + (l + m)] = transposed[k * pitch + (l + m)]

Where blocks are whole lines of the result, and the lines of a block do not evict each other, the blocks are written to
the result itself.

So a dimension of 8 bytes costs no more than a long one: its neighbours fill the line. The compiler transposes the
blocks in registers (`runtime/block_moves.py`); the last block of a row overlaps the one before. Tiles follow each other
along the dimensions that are minor in both arrays, so that they stay within the same pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.permutations import inverse
from ...hlo.support.records import dataclass
from ..emitted_kernel import HI, LO
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, call
from ..loops.statements import LoopKind
from ..loops.writer import Writer
from ..machine import target_machine
from .copies import is_streamed
from .sizes import Sizes

_ROWS, _RUN_LINES, _ROW_LINES = 64, 2, 4
"""A run takes in dimensions until it has so many elements, or lines (`_RUN_LINES`). These, and at most
`_ROW_LINES`, are what a tile has of the operand's run, if the result's run fills the tile."""

_MOST_ELEMENTS, _MOST_BYTES = 8192, 1 << 15
"""Most elements and bytes of a tile."""

_MOST_ENTRIES = 1024
"""Elements of a tile along one run."""

_BLOCK, _LEAST_BLOCK = 16, 4

_WHOLE_LINES = 4
"""Blocks of elements of so many bytes read whole lines. Blocks of smaller elements would read a line twice, and lines
that are a power of two apart may have evicted it in between: so the rows of a tile are copied first."""


_WAY, _SETS = 4096, 4
"""Lines that are a multiple of so many bytes apart are in one set of a first-level cache; in how many sets those of a
block should at least be."""


@dataclass(frozen=True)
class _Run:
    """Dimensions of the result with elements that are contiguous in an array, minor to major; a tile has `chunk`
    indices of the last one."""

    dimensions: tuple[int, ...]
    chunk: int
    within: int
    """Elements of the other dimensions together."""

    @property
    def elements(self) -> int:
        return self.chunk * self.within


@dataclass(frozen=True)
class Tiles:
    """How a transpose is cut."""

    rows: _Run
    """The run of the operand."""
    columns: _Run
    """The run of the result."""
    side: int
    """Rows and columns of a block."""
    streams: bool
    """The result is too large for the caches."""
    begins_lines: bool
    """Each run of the result begins a line."""
    spreads: bool
    """The lines of a block are in several sets of the cache, in both arrays."""
    writes_lines: bool
    """Blocks are read as whole lines, and a row of one is a line of the result."""

    @property
    def is_direct(self) -> bool:
        """Blocks are written to the result itself: 0.65 to 0.85 of the time. Where the lines of a block are in a set or
        two, it takes up to 1.6 times as long."""
        return self.writes_lines and self.begins_lines and self.spreads and not self.streams


def moved_parameter(root: HloInstruction) -> tuple[HloInstruction, tuple[int, ...]] | None:
    """The parameter that a value is in another order; for each of its dimensions, which one of the value it is."""
    where = tuple(range(root.shape.rank))
    while root.opcode is Opcode.TRANSPOSE:
        where, root = tuple([where[d] for d in inverse(root.attributes.dimensions)]), root.operands[0]
    return (root, where) if root.opcode is Opcode.PARAMETER else None


def _capacity(width: int) -> int:
    """Elements of the local array of a tile, including the padding of its rows: a number in the text, which is the same
    on all machines."""
    return 2 * min(_MOST_BYTES // width, _MOST_ELEMENTS)


def _tile_elements(width: int) -> int:
    """The most elements of a tile, which takes half of a first-level cache."""
    return min(min(target_machine().first_cache // 2, _MOST_BYTES) // width, _MOST_ELEMENTS)


def _pitch(elements: int, line: int) -> int:
    """From a row of a tile to the next one: an odd number of lines, so that rows do not evict each other from the
    cache."""
    return elements if elements < line else (-(-elements // line) | 1) * line


def tiles_of(sizes: Sequence[int], where: Sequence[int], width: int) -> Tiles | None:
    """How to cut the transpose to an array of `sizes`: its dimension `where[e]` is dimension e of the operand. None if
    there is no block to transpose."""
    rank, cache_line = len(sizes), target_machine().cache_line
    is_small = math.prod(sizes) * width < target_machine().first_cache // 8  # it is in the first cache anyhow
    if is_small or where[-1] == rank - 1:
        return None
    orders = (where[::-1], range(rank - 1, -1, -1))
    runs = [[where[-1]], [rank - 1]]
    lengths = [sizes[run[0]] for run in runs]
    for k, order in enumerate(orders):
        for d in order[1:]:
            if lengths[k] >= min(_ROWS, _RUN_LINES * cache_line // width) or d in runs[1 - k]:
                break
            runs[k].append(d)
            lengths[k] *= sizes[d]
    line = max(cache_line // width, 1)
    elements = _tile_elements(width)
    rows = min(lengths[0], _ROWS, _ROW_LINES * cache_line // width)
    columns = min(lengths[1], elements // rows, _MOST_ENTRIES)
    capacity = _capacity(width)
    rows = min(lengths[0], elements // max(columns, line), _MOST_ENTRIES, capacity // _pitch(columns, line))
    columns = min(columns, capacity // _pitch(rows, line))
    found: list[_Run] = []
    for run, most in zip(runs, (rows, columns), strict=True):
        within = math.prod(sizes[d] for d in run[:-1])
        size = sizes[run[-1]]
        count = -(-size // max(most // within, 1))
        step = line // math.gcd(line, within)  # whole lines, where they fit
        even = -(-size // (count * step)) * step
        found.append(_Run(tuple(run), even if even * within <= most else max(most // within, 1), within))
    least = min(_BLOCK, line, *(run.elements for run in found))
    side = 1 << (least.bit_length() - 1)
    if side < min(_LEAST_BLOCK, line):
        return None
    of_row, of_column = (  # from a row of a block to the next one in the result, and likewise in the operand
        math.prod(sizes[where[-1] + 1 :]),
        math.prod(sizes[d] for d in where[where.index(rank - 1) + 1 :]),
    )
    spreads = all(math.gcd(step * width, _WAY) * _SETS <= _WAY for step in (of_row, of_column))
    writes_lines = width >= _WHOLE_LINES and side == line and len(found[0].dimensions) == 1
    streams, begins_lines = is_streamed(math.prod(sizes) * width), lengths[1] % line == 0
    return Tiles(found[0], found[1], side, streams, begins_lines, spreads, writes_lines)


class TransposeEmitter:
    """Write the kernel of a transpose, with the `writer` and the `sizes` of its nest."""

    def __init__(
        self, writer: Writer, sizes: Sizes, root: HloInstruction, parameter: HloInstruction, where: Sequence[int],
        tiles: Tiles,
    ) -> None:  # fmt: skip
        self.writer, self.sizes, self.tiles = writer, sizes, tiles
        self.root, self.parameter, self.where = root, parameter, where
        self.width, self.line = root.shape.element.byte_width, target_machine().cache_line
        self.dimensions: tuple[int, ...] = root.shape.dimensions
        blocks = [run.dimensions for run in (tiles.rows, tiles.columns) if run.elements == tiles.side]
        for d in range(root.shape.rank):  # few texts are all transposes, and their code comes with the package
            if (d,) not in blocks:
                sizes.mark_outer(root, d)

    def _offsets(self, index: Mapping[int, Expr]) -> tuple[Expr, Expr]:
        """Where an element is in the operand and in the result; dimensions that are not in `index` are at 0."""
        whole = [index.get(d, ZERO) for d in range(len(self.dimensions))]
        source = self.sizes.offset(self.parameter, tuple(whole[d] for d in self.where))
        return source, self.sizes.offset(self.root, tuple(whole))

    def write(self, x: Name, out: Name) -> int:
        """Writes the kernel's body; gives the number of tiles."""
        writer, tiles, width = self.writer, self.tiles, self.width
        rows, columns, side = tiles.rows, tiles.columns, tiles.side
        line = max(self.line // width, 1)
        stream = self.sizes.argument("stream", int(tiles.streams and tiles.begins_lines))
        pitch = self.sizes.argument("pitch", _pitch(columns.elements, line))
        capacity = _capacity(width)
        assert rows.elements * _pitch(columns.elements, line) <= capacity, "a tile that is too large"
        assert columns.elements * _pitch(rows.elements, line) <= capacity, "a tile that is too large"
        transposed = writer.local_array("transposed0", capacity, x.type[:-1])
        staged, staged_pitch = None, pitch
        if width < _WHOLE_LINES:
            staged = writer.local_array("staged0", capacity, x.type[:-1])
            staged_pitch = self.sizes.argument("pitch0", _pitch(rows.elements, line))
        direct = self.sizes.argument("direct", int(tiles.is_direct)) if tiles.writes_lines else None
        chunks = [self.sizes.argument(f"chunk{k}", run.chunk) for k, run in enumerate((rows, columns))]
        tos = self._table("tos", rows, chunks[0], 1)
        froms = self._table("froms", columns, chunks[1], 0)

        def to(k: Expr) -> Expr:
            return tos[k] if tos is not None else self._offsets({rows.dimensions[0]: k})[1]

        def source(k: Expr) -> Expr:
            return froms[k] if froms is not None else self._offsets({columns.dimensions[0]: k})[0]

        with writer.loop("tile", LO, HI) as tile:
            starts, count = self._starts(tile, chunks)
            lengths = []
            for k, run in enumerate((rows, columns)):
                d = run.dimensions[-1]
                some = call("minimum", chunks[k], self.sizes.of(self.root, d) - starts[d])
                for e in run.dimensions[:-1]:
                    some = some * self.sizes.of(self.root, e)
                lengths.append(writer.assign("rows" if k == 0 else "columns", some))
            high, wide = lengths
            first, target = self._offsets(starts)
            first, target = writer.assign("source", first), writer.assign("target", target)
            read = x
            if staged is not None:
                with writer.loop("l", wide) as left:
                    start = writer.assign("start", first + source(left))
                    self._copy(staged, left * staged_pitch, x, start, high, self._piece(rows), "k")
                read = staged

            def beside(k: Expr) -> Expr:
                return first + source(k) if staged is None else k * staged_pitch

            has_blocks = call("minimum", high, wide) >= side
            with ExitStack() as stack:
                if direct is not None:
                    by_rows = self._block(("k", high), ("l", wide))
                    with writer.if_(all_of([direct.ne(0), has_blocks])), by_rows as (left, top, m, p):
                        writer.store(out, target + to(top + p) + (left + m), read[beside(left + m) + (top + p)])
                    stack.enter_context(writer.else_())
                    at_tile = writer.assign("at_tile", target)  # (a branch in an "else" alone would be an "elif")
                else:
                    at_tile = target
                by_columns = self._block(("l", wide), ("k", high))
                with writer.if_(has_blocks), by_columns as (left, top, m, p):
                    writer.store(transposed, (top + p) * pitch + (left + m), read[beside(left + m) + (top + p)])
                with writer.else_(), writer.loop("l", wide) as left:
                    start = writer.assign("start", beside(left))
                    with writer.loop("k", high) as top:
                        writer.store(transposed, top * pitch + left, read[start + top])
                with writer.loop("k", high) as row:
                    at = writer.assign("at", at_tile + to(row))
                    here = writer.assign("here", row * pitch)
                    self._copy(out, at, transposed, here, wide, self._piece(columns), "l", stream)
        return count

    @contextmanager
    def _block(self, outer: tuple[str, Name], inner: tuple[str, Name]) -> Iterator[tuple[Name, Name, Name, Name]]:
        """The loops over blocks of a tile, by the names of their counters and the lengths of the tile, and over the
        columns and rows of a block: the first column and row of the block, and the counters within it."""
        writer, side = self.writer, self.tiles.side
        with ExitStack() as stack:
            first: dict[str, Name] = {}
            tiles = [(name, length, stack.enter_context(writer.loop(f"{name}_tile", ZERO, length, step=side)))
                     for name, length in (outer, inner)]  # fmt: skip
            for name, length, tile in tiles:
                first[name] = writer.assign(name, call("minimum", tile, length - side))
            m = stack.enter_context(writer.lanes("m", Number(side)))
            p = stack.enter_context(writer.loop("p", Number(side)))
            yield first["l"], first["k"], m, p

    def _piece(self, run: _Run) -> int:
        """How many neighbours are copied at once: whole lines, if a tile has so many."""
        line = max(self.line // self.width, 1)
        return line if run.elements >= line else self.tiles.side

    def _copy(
        self, to: Name, at: Expr, source: Name, start: Expr, length: Expr, piece: int, name: str,
        stream: Name | None = None,
    ) -> None:  # fmt: skip
        """Copy neighbours, in pieces of `piece` if there are so many; non-temporal stores of lines if `stream` says
        so."""
        writer = self.writer
        both = stream is not None and piece == max(self.line // self.width, 1)
        with writer.if_(length >= piece), writer.loop(f"{name}_tile", ZERO, length, step=piece) as first:
            first = writer.assign(name, call("minimum", first, length - piece))
            kinds: tuple[LoopKind, ...] = ("streamed", "lanes") if both else ("lanes",)
            for kind in kinds:
                with ExitStack() as stack:
                    if both and stream is not None:
                        stack.enter_context(writer.if_(stream.ne(0)) if kind == "streamed" else writer.else_())
                    m = stack.enter_context(writer.loop("m", Number(piece), kind=kind))
                    writer.store(to, at + (first + m), source[start + (first + m)])
        with writer.else_(), writer.loop(name, length) as first:
            writer.store(to, at + first, source[start + first])

    def _table(self, name: str, run: _Run, chunk: Expr, array: int) -> Name | None:
        """The offsets, in the other array, of the elements of a run; None for a run of one dimension."""
        if len(run.dimensions) == 1:
            return None
        writer = self.writer
        table = writer.local_array(name, _MOST_ENTRIES, "int64")
        count = writer.assign(f"{name}_count", ZERO)
        with ExitStack() as stack:
            index: dict[int, Expr] = {}
            for level, d in enumerate(reversed(run.dimensions)):
                size = chunk if level == 0 else self.sizes.of(self.root, d)
                index[d] = stack.enter_context(writer.loop(f"{name}_{level}", size))
            writer.store(table, count, self._offsets(index)[array])
            writer.augment(count, "+", Number(1))
        return table

    def _starts(self, tile: Expr, chunks: Sequence[Name]) -> tuple[dict[int, Expr], int]:
        """The indices where a tile begins, and how many tiles there are."""
        writer, rank = self.writer, len(self.dimensions)
        runs = (self.tiles.rows, self.tiles.columns)
        inner = {d for run in runs for d in run.dimensions[:-1]}
        chunk_of = {run.dimensions[-1]: k for k, run in enumerate(runs)}
        major = {d: rank - 1 - d + (rank - 1 - e) for e, d in enumerate(self.where)}
        order = sorted((d for d in range(rank) if d not in inner), key=lambda d: (major[d], chunk_of.get(d, 2)))
        starts: dict[int, Expr] = {}
        total = 1
        rest = tile
        for number, d in enumerate(order):
            size = self.dimensions[d]
            k = chunk_of.get(d)
            if k is None:
                count: Expr = self.sizes.of(self.root, d)
                times = size
            else:
                times = -(-size // runs[k].chunk)
                count = self.sizes.argument(f"m{d}", times)
            total *= times
            part: Expr = rest
            if number < len(order) - 1:
                part = rest % count
                rest = writer.assign(f"rest{number}", rest // count)
            starts[d] = writer.assign(f"i{d}", part if k is None else part * chunks[k])
        return starts, total
