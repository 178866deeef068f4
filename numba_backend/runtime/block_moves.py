"""Move elements: transpose square blocks in registers, and write whole cache lines by non-temporal stores.

    for l in lanes(16):                                    %r0 = load <16 x i32>, a row of x; ... %r15
        for m in range(16):                                %s0 = shufflevector %r0, %r1; ...      four times 16
            t[(k + m) * 80 + c + l] = x[(r + l) * n + k + m]      store <16 x i32>, a row of t; ...

LLVM's vectoriser makes scattered loads or stores of such a block. Here each row is loaded whole, log2(16) rounds of
shuffles transpose all rows, and each row of the result is stored whole. The first rounds interleave two rows within
parts of 16 bytes, which all processors with vectors do in one instruction, the last ones exchange such parts.

    for m in streamed(16):                                 store <16 x float>, %row, align 64, !nontemporal
        out[at + m] = row[m]

A plain store reads the line that it writes, and the result of a large transpose drives everything else out of the
caches. A non-temporal store writes a whole line directly to memory, if the line begins at a multiple of its size;
otherwise these are plain stores. The kernel ends with a fence, so that other threads see the elements that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as llir

from ..loops.expressions import Expr, Load, Name
from ..loops.lanes import WIDTHS, statements_of, trip_count
from ..loops.statements import For, Store
from ..machine import LINE
from .lane_loops import Scalar
from .math.value import call_intrinsic

_I32, _I64 = llir.IntType(32), llir.IntType(64)
_PART = 16
"""Bytes of the parts of a register within which processors interleave."""
_AHEAD = 256
"""Bytes from a block to the prefetched data of a later one."""


def write_transpose(builder: Any, loop: For, register: int, scalar: Scalar) -> None:
    """The instructions that transpose a block, in smaller blocks with rows that fit into registers of so many bytes."""
    (within,) = statements_of(loop.body)
    assert isinstance(within, For)
    store, load = _copied(within)
    outer_name, inner_name, whole = loop.variable.name, within.variable.name, trip_count(loop)
    width = WIDTHS[store.pointer.type[:-1]]
    unit = min(width, 8)
    units = width // unit
    side = max(min(whole, register // width), 1)
    row = llir.VectorType(llir.IntType(8 * unit), side * units)

    def place(pointer: Name, index: Expr, outer: int, inner: int) -> Any:
        at = {outer_name: outer, inner_name: inner}
        address = builder.gep(scalar(pointer, at), [scalar(index, at)])
        return builder.bitcast(address, row.as_pointer())

    for n in range(whole if 2 * whole * width >= LINE else 0):  # else most lines are requested again
        _prefetch(builder, place(load.pointer, load.index, n, 0))
    for across in range(0, whole, side):
        for down in range(0, whole, side):
            rows = [builder.load(place(load.pointer, load.index, across + n, down), align=unit) for n in range(side)]
            for n, value in enumerate(_transposed(builder, rows, width, units)):
                builder.store(value, place(store.pointer, store.index, across, down + n), align=unit)


def _copied(loop: For) -> tuple[Store, Load]:
    """The store and the load of a loop that only copies."""
    (store,) = statements_of(loop.body)
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    return store, store.value


def _prefetch(builder: Any, place: Any) -> None:
    """Prefetch the next elements of a row: a processor does not predict that many rows are read alternately."""
    byte = llir.IntType(8).as_pointer()
    ahead = builder.gep(builder.bitcast(place, byte), [llir.Constant(_I64, _AHEAD)])
    hints = [llir.Constant(_I32, number) for number in (0, 3, 1)]  # to read; keep; data
    call_intrinsic(builder, "llvm.prefetch.p0i8", llir.VoidType(), ahead, *hints)


def _transposed(builder: Any, rows: list[Any], width: int, units: int) -> list[Any]:
    """The rows of a square block, transposed: the bits of an element's row number and of its place in the row are
    exchanged. An element has so many `units`, which are the elements of the vectors."""
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
    while bit < side:  # every second part of `a`, then of `b`
        exchange(bit, lambda second: [
            which * side + start + n
            for which in range(2) for start in range(second * part, side, 2 * part) for n in range(part)
        ])  # fmt: skip
        bit *= 2
    return rows


def write_streamed(builder: Any, loop: For, register: int, scalar: Scalar) -> None:
    """The stores of a streamed loop over whole lines: non-temporal if the first of them begins a line."""
    store, load = _copied(loop)
    width = WIDTHS[store.pointer.type[:-1]]
    unit = min(width, 8)
    nbytes = min(register, LINE)
    lanes = nbytes // unit
    row = llir.VectorType(llir.IntType(8 * unit), lanes)
    at = {loop.variable.name: 0}
    to = builder.gep(scalar(store.pointer, at), [scalar(store.index, at)])
    source = builder.gep(scalar(load.pointer, at), [scalar(load.index, at)])
    to, source = (builder.bitcast(place, row.as_pointer()) for place in (to, source))
    whole = trip_count(loop) * width // nbytes
    values = [builder.load(builder.gep(source, [llir.Constant(_I64, n)]), align=unit) for n in range(whole)]
    within = builder.and_(builder.ptrtoint(to, _I64), llir.Constant(_I64, LINE - 1))
    lines, others, done = (builder.append_basic_block(name) for name in ("lines", "others", "stored"))
    builder.cbranch(builder.icmp_signed("==", within, llir.Constant(_I64, 0)), lines, others)
    past = builder.module.add_metadata([llir.Constant(_I32, 1)])
    # Of another type: LLVM would make plain stores, after the branches, of two that differ in their hints alone.
    bytes_ = llir.VectorType(llir.IntType(8), nbytes)
    for block, kind, align in ((lines, row, nbytes), (others, bytes_, unit)):
        builder.position_at_end(block)
        for n, value in enumerate(values):
            place = builder.bitcast(builder.gep(to, [llir.Constant(_I64, n)]), kind.as_pointer())
            written = builder.store(builder.bitcast(value, kind), place, align=align)
            if block is lines:
                written.set_metadata("nontemporal", past)
        builder.branch(done)
    builder.position_at_end(done)
