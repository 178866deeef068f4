"""Expand powers with a small multiple of one half as exponent into products and a square root."""

from __future__ import annotations

import numpy as np

from ...hlo.builder import make_instruction
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ...hlo.passes.patterns import convert, is_never_negative, make_splat, splat_value

_O = Opcode

_COMPUTED = {ElementType.F16: ElementType.F32, ElementType.BF16: ElementType.F64, ElementType.F32: ElementType.F64}
"""The types in which a handful of products and one root or quotient are exact to far below an ulp of the result, and
do not overflow where the result does not."""
_LARGEST = 8.0
_SIMPLIFIED = frozenset((-1.0, 0.0, 1.0, 2.0, 3.0))
"""Exponents that the algebraic simplifier handles for every type."""


def small_power(instruction: HloInstruction) -> HloInstruction | None:
    """power(x, n) for n = 0.5, -0.5, 1.5, -1.5, -2, 2.5, ..., up to 8: rounded once, and several times as fast.

    For x < 0 and a half in n: NaN, but power(-0, n) is power(0, n), and power(-inf, n) is power(inf, n): two
    operations, unless x is known to be never negative. In f64, which has no wider type, only n = 0.5.
    """
    x, exponent = instruction.operands
    element = instruction.shape.element
    value = splat_value(exponent)
    if value is None or not element.is_floating:
        return None
    n = float(value)
    if n in _SIMPLIFIED or not abs(n) <= _LARGEST or not (2 * n).is_integer():
        return None
    if n != 0.5 and element not in _COMPUTED:
        return None
    base = x if n == 0.5 else convert(x, _COMPUTED[element])
    whole, half = divmod(int(2 * abs(n)), 2)
    root = None
    if half and is_never_negative(x):
        root = make_instruction(_O.SQRT, (base,))
    elif half:
        lowest, highest = (make_splat(limit, base.shape) for limit in (-np.inf, np.inf))
        is_lowest = make_instruction(_O.COMPARE, (base, lowest), CompareAttributes(ComparisonDirection.EQ))
        base = make_instruction(_O.SELECT, (is_lowest, highest, base))
        base = make_instruction(_O.ADD, (base, make_splat(0.0, base.shape)))  # -0 becomes 0
        root = make_instruction(_O.SQRT, (base,))
    product = _product(root, base, whole)
    if n < 0:
        product = make_instruction(_O.DIVIDE, (make_splat(1.0, product.shape), product))
    return convert(product, element)


def _product(factor: HloInstruction | None, base: HloInstruction, n: int) -> HloInstruction:
    """factor * base**n by repeated squaring; at least one of them."""
    while n:
        if n & 1:
            factor = base if factor is None else make_instruction(_O.MULTIPLY, (factor, base))
        n >>= 1
        if n:
            base = make_instruction(_O.MULTIPLY, (base, base))
    assert factor is not None
    return factor
