"""Emit sums and products of many floats in blocks: each has an accumulator, and their results are added up in f64.

One accumulator for all would stop growing: 1 is lost beside 16,777,216 in f32, and rounding errors add up to percents
long before. With blocks rounding errors do not grow with the length. (Sums of f64 and of complex numbers are added up
in their own type.) The inner loop is unchanged; a block costs one more addition::

    total0 = float64(acc0)
    for start in range(0, n0, 4096):
        acc0 = c1
        for j in range(start, minimum(start + 4096, n0)):
            acc0 = reduce_add(acc0, x0[j])
        total0 = reduce_add(total0, float64(acc0))
    acc0 = float32(total0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ..loops.expressions import Expr
from ..loops.writer import cast
from .element import ElementEmitter

BLOCK_OF_ROW = 4096
"""Elements of a block of a row, which has some 32 accumulators, in the lanes of vectors."""
BLOCK_OF_COLUMN = 1024
"""The same for a single accumulator: of a column, which mostly gets four elements at a time, or of complex numbers."""
_BLOCKS = 4
"""Sums of fewer blocks have one accumulator."""
_NEUTRAL = {Opcode.ADD: -0.0, Opcode.MULTIPLY: 1.0}
_WIDE = {ElementType.F32: "float64"}


def is_inexact_sum(reduce: HloInstruction) -> bool:
    """True for a sum or product with a result that depends on the order."""
    if reduce.opcode is not Opcode.REDUCE or len(reduce.operands) != 2:
        return False
    element = reduce.operands[0].shape.element
    return reducer_opcode(reduce.attributes.to_apply) in _NEUTRAL and (
        element.is_complex or element in (ElementType.F32, ElementType.F64)
    )


def block_of(sizes: Sequence[int], most: int) -> int | None:
    """Into how many indices of the first one the dimensions `sizes`, over which is reduced, are cut for blocks of at
    most `most` elements; None: not at all. A power of two, so that there are few different kernels."""
    if not sizes:
        return None
    inner = max(math.prod(sizes[1:]), 1)
    if inner * sizes[0] <= _BLOCKS * most:
        return None
    rows = max(most // inner, 1)
    block = 1 << (rows.bit_length() - 1)
    return block if sizes[0] > block else None


def neutral(e: ElementEmitter, reduce: HloInstruction) -> Expr:
    """The initial value of a block's accumulator."""
    opcode = reducer_opcode(reduce.attributes.to_apply)
    assert opcode is not None, "not a sum"
    return e.scalar(reduce.operands[0].shape.element, _NEUTRAL[opcode])


def wide_type(reduce: HloInstruction) -> str | None:
    """The type in which the blocks' results are added, where it is another one."""
    return _WIDE.get(reduce.operands[0].shape.element)


def widened(reduce: HloInstruction, value: Expr) -> Expr:
    """An accumulator's value in the type of the total."""
    kind = wide_type(reduce)
    return value if kind is None else cast(kind, value)


def narrowed(reduce: HloInstruction, value: Expr) -> Expr:
    """The total in the type of the result."""
    return value if wide_type(reduce) is None else cast("float32", value)
