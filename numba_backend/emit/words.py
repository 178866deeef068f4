"""Products of small numbers as algorithms: operands are packed so that a word has several numbers of one sum.

    s8, u8                    four in a word, dot_bytes; sums wrap around
    s16, or s8, u8 with it    two in a word, dot_shorts
    bf16                      two in a word where the processor multiplies these, dot_bf16_normal
    f16, bf16                 converted to f32 otherwise

Processors multiply unsigned bytes by signed ones. If both operands are signed or both are not, the upper bit of each
byte of the left-hand side is flipped, which adds 128 to it, or takes 128 from it; the products of the same 128 with the
other operand are taken from the sums.

The instruction for bf16 takes subnormal numbers for zeros. There are none, and no product or sum is one, if no number
but zero is less than 2**-56: all products, and so all sums, are multiples of 2**-126. While operands are packed, each
word is tested; where one has a smaller number, the sums are made by other instructions.
"""

from __future__ import annotations

import math

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.support.records import dataclass
from ..emitted_kernel import memory_type
from ..loops.expressions import Expr, Name, call, product_of, sum_of
from ..loops.typing import is_float
from ..loops.writer import cast
from ..schedule.algorithm import TOTAL


@dataclass(frozen=True, slots=True)
class Words:
    """How a product of small numbers is computed."""

    function: str
    """The function of a sum and two words that gives the next sum; "": the numbers are converted to f32."""
    per_word: int = 1
    swaps: bool = False
    """The right-hand side's word is the function's first one."""
    flips: bool = False
    """The upper bit of each of the left-hand side's bytes is flipped."""

    @property
    def total(self) -> str:
        """The type of sums."""
        return "uint32" if self.function in ("dot_bytes", "dot_shorts") else "float32"

    @property
    def word(self) -> str:
        """The type of packed operands."""
        return "uint32" if self.function else "float32"

    def updates(self, a: Expr, b: Expr) -> tuple[Expr, Expr | None]:
        """The next sum; and where there are subnormal numbers, if that makes a difference."""
        total = Name(TOTAL, self.total)
        if not self.function:
            return sum_of(total, product_of(a, b)), None
        is_plain = self.function != "dot_bf16_normal"
        pair = (b, a) if self.swaps else (a, b)
        return call(self.function, total, *pair), None if is_plain else call("dot_bf16", total, *pair)

    def finished(self, element: ElementType) -> Expr:
        """A sum as an element of the result. Sums of 32 bits have a sign, unless both operands are unsigned."""
        total: Expr = Name(TOTAL, self.total)
        if is_float(self.total):
            return total if element is ElementType.F32 else call(f"f32_to_{element.value}", total)
        has_sign = element.byte_width > 4 and not (self.swaps and self.flips)
        return cast(memory_type(element), cast("int32", total) if has_sign else total)


_BYTES = frozenset((ElementType.S8, ElementType.U8))
_SHORTS = _BYTES | {ElementType.S16}
_HALVES = frozenset((ElementType.BF16, ElementType.F16))

MOST_DEPTH_OF_LONG = 1 << 16
"""A sum of so many products of two bytes has 32 bits."""


def words_of(dot: HloInstruction, multiplies_bf16: bool) -> Words | None:
    """How a product of small numbers is computed, or None for one of others. `multiplies_bf16`: the processor does."""
    lhs, rhs = (o.shape.element for o in dot.operands)
    result = dot.shape.element
    if {lhs, rhs} <= _HALVES and (result in _HALVES or result is ElementType.F32):
        return Words("dot_bf16_normal", 2) if lhs is rhs is ElementType.BF16 and multiplies_bf16 else Words("")
    if not result.is_integral or result.is_small or result is ElementType.PRED:
        return None
    if {lhs, rhs} <= _BYTES:
        depth = math.prod(dot.operands[0].shape.dimensions[d] for d in dot.attributes.lhs_contracting_dims)
        if result.byte_width > 4 and depth > MOST_DEPTH_OF_LONG:
            return None
        return Words("dot_bytes", 4, rhs is ElementType.U8, lhs is rhs)
    if {lhs, rhs} <= _SHORTS and result.byte_width <= 4:
        return Words("dot_shorts", 2)
    return None
