"""Elements that only move: square blocks that are turned in registers, and lines of the cache that are written past it.

    for l in range(16):                                    %r0 = load <16 x i32>, a row of x; ... %r15
        for m in range(16):                                %s0 = shufflevector %r0, %r1; ...      four times 16
            t[(k + m) * 80 + c + l] = x[(r + l) * n + k + m]      store <16 x i32>, a row of t; ...

LLVM's vectoriser makes scattered loads or stores of such a block. Here each row is loaded whole, log2(16) rounds of
shuffles turn all rows, and each row of the result is stored whole. The first rounds interleave two rows within parts of
16 bytes, which all processors with vectors do in one instruction, the last ones exchange such parts.

    for m in streamed(16):                                 store <16 x float>, %row, align 64, !nontemporal
        out[at + m] = row[m]

A plain store reads the line that it writes, and the result of a large transpose drives everything else out of the
caches. A whole line can be written to memory directly, if it begins at a multiple of its size; where it does not, these
are plain stores. What is written so is seen by other threads after a fence, with which the kernel ends.

    for l in range(12):                                    load <8 x i8>, load <4 x i8>, store <8 x i8>, store <4 x i8>
        out[at + l] = x[from + l]                          of bytes

LLVM does not make vectors of straight code with narrow integers (see llvm_backend.py), so a short run of bytes would
move one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import llvmlite.ir as llir

from ..loops.expressions import Expr, Load, Name
from ..loops.statements import Comment, For, Store
from .lane_loops import follows, trip_count

_I32, _I64 = llir.IntType(32), llir.IntType(64)
_WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8}
_WIDTHS |= {f"u{name}": width for name, width in _WIDTHS.items() if name.startswith("int")}
_WIDTHS |= {"complex64": 8, "complex128": 16}
_PART = 16
"""Bytes of the parts of a register within which processors interleave."""
_LINE = 64
_AHEAD = 256
"""Bytes from a block to what is fetched for a later one."""

Scalar = Callable[[Expr, Mapping[str, int]], Any]
"""The LLVM value of an expression, given the numbers of loop variables."""


class Turn(NamedTuple):
    """A square block that is turned: ``store.pointer[... + outer] = load.pointer[... + inner]``."""

    outer: str
    inner: str
    side: int
    width: int
    store: Store
    load: Load


def turned_block(loop: For, local_arrays: Mapping[str, int]) -> Turn | None:
    """The loops of a turned block; None for others. What is written is a local array, so nothing overlaps."""
    side = trip_count(loop)
    if side < 2 or side & (side - 1) or len(loop.body) != 1 or not isinstance(loop.body[0], For):
        return None
    within = loop.body[0]
    if trip_count(within) != side or len(within.body) != 1 or not isinstance(within.body[0], Store):
        return None
    store, outer, inner = within.body[0], loop.variable.name, within.variable.name
    load, type_ = store.value, store.pointer.type
    if not isinstance(load, Load) or load.pointer.type != type_ or type_[:-1] not in _WIDTHS:
        return None
    if store.pointer.name not in local_arrays or load.pointer.name == store.pointer.name:
        return None
    width = _WIDTHS[type_[:-1]]
    if side * width > _LINE or not follows(store.index, outer):
        return None
    if not follows(load.index, inner, tables=set(local_arrays) - {store.pointer.name}):
        return None
    return Turn(outer, inner, side, width, store, load)


def write_turn(builder: Any, turn: Turn, register: int, scalar: Scalar) -> None:
    """The instructions of a turned block, by blocks whose rows fit into registers of so many bytes."""
    unit = min(turn.width, 8)
    units = turn.width // unit
    side = max(min(turn.side, register // turn.width), 1)
    row = llir.VectorType(llir.IntType(8 * unit), side * units)

    def place(pointer: Name, index: Expr, outer: int, inner: int) -> Any:
        at = {turn.outer: outer, turn.inner: inner}
        address = builder.gep(scalar(pointer, at), [scalar(index, at)])
        return builder.bitcast(address, row.as_pointer())

    for n in range(turn.side if 2 * turn.side * turn.width >= _LINE else 0):  # else most lines are asked for again
        _prefetch(builder, place(turn.load.pointer, turn.load.index, n, 0))
    for across in range(0, turn.side, side):
        for down in range(0, turn.side, side):
            source, target = turn.load, turn.store
            rows = [
                builder.load(place(source.pointer, source.index, across + n, down), align=unit) for n in range(side)
            ]
            for n, value in enumerate(_turned(builder, rows, turn.width, units)):
                builder.store(value, place(target.pointer, target.index, across, down + n), align=unit)


def _prefetch(builder: Any, place: Any) -> None:
    """Fetches what a row goes on with: a processor does not foresee the reading of so many rows in turns."""
    byte = llir.IntType(8).as_pointer()
    name = "llvm.prefetch.p0i8"
    function = builder.module.globals.get(name)
    if function is None:
        kind = llir.FunctionType(llir.VoidType(), [byte, _I32, _I32, _I32])
        function = llir.Function(builder.module, kind, name)
    ahead = builder.gep(builder.bitcast(place, byte), [llir.Constant(_I64, _AHEAD)])
    builder.call(function, [ahead, *(llir.Constant(_I32, number) for number in (0, 3, 1))])  # to read; keep; data


def _turned(builder: Any, rows: list[Any], width: int, units: int) -> list[Any]:
    """The rows of a square block, turned: the bits of an element's row number change places with those of its place in
    the row. An element has so many `units`, which are the elements of the vectors."""
    side, rows = len(rows), list(rows)
    part = min(side, max(_PART // width, 1))

    def exchange(bit: int, order: Callable[[int], list[int]]) -> None:
        for n in range(side):
            if not n & bit:
                a, b = rows[n], rows[n | bit]
                for into, first in ((n, 0), (n | bit, 1)):
                    chosen = [e * units + u for e in order(first) for u in range(units)]
                    rows[into] = builder.shuffle_vector(a, b, llir.Constant(llir.VectorType(_I32, len(chosen)), chosen))

    bit = part // 2
    while bit:  # of each part: its lower or its upper half, one from `a`, one from `b`
        exchange(bit, lambda second: [
            start + second * (part // 2) + n + side * which
            for start in range(0, side, part) for n in range(part // 2) for which in range(2)
        ])  # fmt: skip
        bit //= 2
    bit = part
    while bit < side:  # every second part of `a`, then those of `b`
        exchange(bit, lambda second: [
            which * side + start + n
            for which in range(2) for start in range(second * part, side, 2 * part) for n in range(part)
        ])  # fmt: skip
        bit *= 2
    return rows


class Streamed(NamedTuple):
    """A loop over neighbours that are copied, as non-temporal stores."""

    variable: str
    side: int
    width: int
    store: Store
    load: Load


def streamed_line(loop: For, local_arrays: Mapping[str, int]) -> Streamed | None:
    """The loop as stores of whole lines, copied from elsewhere; None if it is none."""
    count, body = trip_count(loop), [s for s in loop.body if not isinstance(s, Comment)]
    if loop.kind != "streamed" or len(body) != 1 or not isinstance(body[0], Store):
        return None
    store, variable = body[0], loop.variable.name
    load, type_ = store.value, store.pointer.type
    if not isinstance(load, Load) or load.pointer.type != type_ or type_[:-1] not in _WIDTHS:
        return None
    width = _WIDTHS[type_[:-1]]
    if store.pointer.name in {load.pointer.name, *local_arrays} or count == 0 or count * width % _LINE:
        return None
    if not follows(store.index, variable) or not follows(load.index, variable):
        return None
    return Streamed(variable, count, width, store, load)


def write_streamed(builder: Any, loop: Streamed, register: int, scalar: Scalar) -> None:
    """The stores of a streamed loop: non-temporal if the first of them begins a line."""
    unit = min(loop.width, 8)
    nbytes = min(register, _LINE)
    lanes = nbytes // unit
    row = llir.VectorType(llir.IntType(8 * unit), lanes)
    at = {loop.variable: 0}
    to = builder.gep(scalar(loop.store.pointer, at), [scalar(loop.store.index, at)])
    source = builder.gep(scalar(loop.load.pointer, at), [scalar(loop.load.index, at)])
    to, source = (builder.bitcast(place, row.as_pointer()) for place in (to, source))
    whole = loop.side * loop.width // nbytes
    values = [builder.load(builder.gep(source, [llir.Constant(_I64, n)]), align=unit) for n in range(whole)]
    within = builder.and_(builder.ptrtoint(to, _I64), llir.Constant(_I64, _LINE - 1))
    lines, others, done = (builder.append_basic_block(name) for name in ("lines", "others", "stored"))
    builder.cbranch(builder.icmp_signed("==", within, llir.Constant(_I64, 0)), lines, others)
    past = builder.module.add_metadata([llir.Constant(_I32, 1)])
    # Of another type: LLVM would make plain stores, after the branches, of two that differ in their hints alone.
    bytes_ = llir.VectorType(llir.IntType(8), nbytes)
    for block, kind, align in ((lines, row, nbytes), (others, bytes_, unit)):
        builder.position_at_end(block)
        for n, value in enumerate(values):
            place = builder.bitcast(builder.gep(to, [llir.Constant(_I64, n)]), kind.as_pointer())
            stored = builder.store(builder.bitcast(value, kind), place, align=align)
            if block is lines:
                stored.set_metadata("nontemporal", past)
        builder.branch(done)
    builder.position_at_end(done)


class ShortRun(NamedTuple):
    """A loop over a few neighbours that are narrow, copied from another buffer."""

    variable: str
    side: int
    width: int
    store: Store
    load: Load


_NARROW = 2
"""Bytes of the widest elements that are copied so: LLVM does it for wider ones."""


def short_run(loop: For, local_arrays: Mapping[str, int]) -> ShortRun | None:
    """The loop as a few moves; None if it is none. Two buffers do not overlap where one is written."""
    count, body = trip_count(loop), [s for s in loop.body if not isinstance(s, Comment)]
    if count < 2 or len(body) != 1 or not isinstance(body[0], Store):
        return None
    store, variable = body[0], loop.variable.name
    load, type_ = store.value, store.pointer.type
    if not isinstance(load, Load) or load.pointer.type != type_ or _WIDTHS.get(type_[:-1], _LINE) > _NARROW:
        return None
    width = _WIDTHS[type_[:-1]]
    if load.pointer.name == store.pointer.name or {load.pointer.name, store.pointer.name} & set(local_arrays):
        return None
    if count * width > _LINE or not follows(store.index, variable) or not follows(load.index, variable):
        return None
    return ShortRun(variable, count, width, store, load)


def write_run(builder: Any, run: ShortRun, register: int, scalar: Scalar) -> None:
    """The moves of a short run: halves of a register, quarters and so on for what is left over. All is read first."""
    at = {run.variable: 0}
    to = builder.gep(scalar(run.store.pointer, at), [scalar(run.store.index, at)])
    source = builder.gep(scalar(run.load.pointer, at), [scalar(run.load.index, at)])
    lanes = register // run.width
    moves: list[tuple[int, Any, Any]] = []
    done = 0
    while done < run.side:
        while lanes > run.side - done:
            lanes //= 2
        kind = llir.VectorType(llir.IntType(8 * run.width), lanes).as_pointer()
        offset = [llir.Constant(_I64, done)]
        value = builder.load(builder.bitcast(builder.gep(source, offset), kind), align=run.width)
        moves.append((done, kind, value))
        done += lanes
    for first, kind, value in moves:
        place = builder.bitcast(builder.gep(to, [llir.Constant(_I64, first)]), kind)
        builder.store(value, place, align=run.width)
