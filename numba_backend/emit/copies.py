"""The kernel that copies bytes, on several threads.

    def copy(lo, hi, x, out, n, stream):
        for i in range(lo, hi):
            first = i * 4096
            size = minimum(4096, n - first)
            if size == 4096:
                if stream != 0:
                    for k in range(first, first + 4096, 64):
                        for m in streamed(64):
                            out[k + m] = x[k + m]
                    size = 0
            for m in range(size):
                out[first + m] = x[first + m]

A copy that is too large for the caches goes past them. One kernel serves arrays of all types and sizes.
"""

from __future__ import annotations

from ...hlo.element_type import ElementType
from ..emitted_kernel import HI, LO, EmittedKernel, program_of
from ..loops.expressions import Name, Number, call
from ..loops.statements import PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer
from ..machine import LINE, target_machine

_PIECE = 4096


def shared_copy() -> int:
    """Threads share a copy of so many bytes."""
    return target_machine().second_cache


def is_streamed(nbytes: int) -> bool:
    """True for a result that is not written to the caches: it would evict all else from them."""
    return nbytes >= target_machine().last_cache // 4


def emit_copy(nbytes: int) -> EmittedKernel:
    """The kernel that copies so many bytes to a place that does not overlap."""
    writer, line = Writer(), LINE
    x, out = (Name(name, pointer_to("uint8")) for name in ("x", "out"))
    parameters = (
        PointerParameter("x", ElementType.U8, 0, None), PointerParameter("out", ElementType.U8, None, 0),
        SizeParameter("n", nbytes), SizeParameter("stream", int(is_streamed(nbytes))),
    )  # fmt: skip
    with writer.loop("i", LO, HI) as i:
        first = writer.assign("first", i * _PIECE)
        size = writer.assign("size", call("minimum", Number(_PIECE), Name("n") - first))
        with writer.if_(size.eq(_PIECE)), writer.if_(Name("stream").ne(0)):
            with (
                writer.loop("k", first, first + _PIECE, step=line) as k,
                writer.loop("m", Number(line), kind="streamed") as m,
            ):
                writer.store(out, k + m, x[k + m])
            writer.assign(size, 0)
        with writer.loop("m", size) as m:
            writer.store(out, first + m, x[first + m])
    pieces = -(-nbytes // _PIECE)
    return EmittedKernel(program_of("copy", parameters, writer), parameters, pieces)
