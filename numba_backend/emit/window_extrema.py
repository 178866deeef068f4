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

Positions before the block, or after its end, count as the extremum so far. Floats are held as integer keys
(`key_functions`): the maximum of these is one instruction. Long rows are cut into pieces, as in `window_scan.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ..loops.expressions import ZERO, Expr, Name, call, minimum
from .kernel import HI, LO, EmittedKernel
from .reduce import key_functions
from .scalar_computations import Buffer
from .window_scan import Row, Scan, Scans

BLOCK = 256
"""Elements of a block: all its passes find it in the first-level cache."""
VECTOR = 16
"""Elements that are combined with those sixteen before them at a time."""
VECTOR_BITS = 256
"""Wider vectors make the ends of rows longer, and the kernel takes longer to compile."""
LEAST = 64
"""Shorter rows are scanned several at a time, one in each lane: here they would fill few vectors."""

_FUNCTIONS = {Opcode.MAXIMUM: "maximum", Opcode.MINIMUM: "minimum"}


def is_extremum(instruction: HloInstruction, scan: Scan) -> bool:
    """True for scans along rows that the kernels here are for."""
    if scan.inner > 1 or scan.size < LEAST or len(instruction.operands) != 2:
        return False
    element_type = instruction.operands[0].shape.element
    if reducer_opcode(instruction.attributes.to_apply) not in _FUNCTIONS:
        return False
    return key_functions(instruction) is not None or element_type in _PLAIN


_PLAIN = frozenset(
    {
        ElementType.S8, ElementType.S16, ElementType.S32, ElementType.S64,
        ElementType.U8, ElementType.U16, ElementType.U32, ElementType.U64,
    }
)  # fmt: skip
"""Types of integers, which are their own keys."""


class _Extrema(Scans):
    """The base of both kernels."""

    def __init__(self, instruction: HloInstruction, scan: Scan, name: str) -> None:
        super().__init__(instruction, scan, name)
        opcode = reducer_opcode(instruction.attributes.to_apply)
        assert opcode is not None
        self.to_key: str | None = None
        self.function = _FUNCTIONS[opcode]
        if (keys := key_functions(instruction)) is not None:
            self.to_key, self.function = keys

    def key(self, value: Expr) -> Expr:
        return value if self.to_key is None else call(self.to_key, value)

    def number(self, key: Expr) -> Expr:
        return key if self.to_key is None else call("from_key", key)

    def extremum(self, a: Expr, b: Expr) -> Expr:
        return call(self.function, a, b)


def emit_extremum_sums(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output 0: the extremum of each piece. The operands are the instruction's."""
    own = _Extrema(instruction, scan, "scan_extrema_of_pieces")
    text, writer = own.text, own.writer
    (source,), (output,) = own.operands(), own.held("sums", 0)
    size, pieces = text.size("n0", scan.size), text.size("pieces", scan.pieces)
    with writer.loop("piece", LO, HI) as piece:
        row = own.piece(0, piece, size, pieces)
        acc = writer.assign("acc", own.key(source.load(own.offset(row.start, size, ZERO))))
        with writer.loop("s", 1, row.steps) as s:
            writer.assign(acc, own.extremum(acc, own.key(source.load(own.offset(row.start, size, s)))))
        text.store(output, piece, own.number(acc))
    return text.finish(scan.outer * scan.pieces)


def emit_extrema(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The scan along rows, or along their pieces; then output 1 has the start values of the pieces."""
    own = _Extrema(instruction, scan, "scan_extrema")
    text, writer = own.text, own.writer
    cut = scan.pieces > 1
    (source,), inits, (output,) = own.operands(), [] if cut else own.inits(), own.outputs()
    starts = own.held("starts", 1) if cut else []
    size, pieces = text.size("n0", scan.size), text.size("pieces", scan.pieces)
    first_values = [writer.assign("init", own.key(init.load(ZERO))) for init in inits]
    kind = own.key(source.load(ZERO)).type
    a, b = [writer.local_array(name, BLOCK + VECTOR, kind) for name in ("a", "b")]
    last = writer.local_array("last", VECTOR, kind)
    with writer.loop("number", LO, HI) as number:
        row = own.piece(0, number, size, pieces) if cut else Row(number * size, size)
        begin = own.key(starts[0].load(number)) if cut else first_values[0]
        so_far = writer.assign("so_far", begin)
        with writer.loop("first", ZERO, row.steps, step=BLOCK) as first:
            width = writer.assign("width", minimum(BLOCK, row.steps - first))
            _block(own, source, output, lambda j: own.offset(row.start, size, first + j), width, so_far, (a, b, last))
    return text.finish(scan.outer * scan.pieces, vector_bits=VECTOR_BITS)


def _block(
    own: _Extrema, source: Buffer, output: Buffer, offset: Callable[[Expr], Expr], width: Name, so_far: Name,
    arrays: Sequence[Name],
) -> None:  # fmt: skip
    """The extrema of one block. `so_far` is the extremum of all elements before it, and afterwards includes the
    block."""
    writer, (a, b, last) = own.writer, arrays
    with writer.lanes("j", VECTOR) as j:
        for array in arrays:
            writer.store(array, j, so_far)
    with writer.loop("j", width) as j:
        writer.store(a, j + VECTOR, own.key(source.load(offset(j))))
    with writer.loop("j", width, (width + (VECTOR - 1)) // VECTOR * VECTOR) as j:
        writer.store(a, j + VECTOR, so_far)  # the rest of the last vector
    old, new = a, b
    for distance in (1, 4):
        with writer.loop("j", width) as j:
            four = [old[j + (VECTOR - k * distance)] for k in range(4)]
            best = own.extremum(own.extremum(four[0], four[1]), own.extremum(four[2], four[3]))
            writer.store(new, j + VECTOR, best)
        old, new = new, old
    with writer.loop("v", ZERO, width, step=VECTOR) as v, writer.loop("j", VECTOR) as j:
        writer.store(last, j, own.extremum(last[j], old[v + j + VECTOR]))
        writer.store(old, v + j + VECTOR, last[j])
    with writer.loop("j", width) as j:
        own.text.store(output, offset(j), own.number(old[j + VECTOR]))
    writer.assign(so_far, old[width + (VECTOR - 1)])
