"""Error-free transformations: a sum or product as a rounded value and its exact rounding error.

They hold only if the compiler neither fuses nor reorders instructions: hence the strict instructions of `value`.
"""

from __future__ import annotations

from .value import Float, fma


def two_sum(a: Float, b: Float | float) -> tuple[Float, Float]:
    """s + e == a + b exactly, s the rounded sum. Knuth, TAOCP 2, 4.2.2."""
    if not isinstance(b, Float):
        b = a.constant(b)
    total = a + b
    b_rounded = total - a
    a_rounded = total - b_rounded
    return total, (a - a_rounded) + (b - b_rounded)


def fast_two_sum(a: Float, b: Float) -> tuple[Float, Float]:
    """As `two_sum`, for |a| >= |b| or a == 0. Dekker, 1971."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Float, b: Float | float) -> tuple[Float, Float]:
    """p + e == a * b exactly, unless it underflows."""
    product = a * b
    return product, fma(a, b, -product)
