"""The semantics of the elementwise ops.

f16 and bf16 are computed in f32 and rounded once for each op; NumPy's own loops for these types do that for arithmetic,
and `_function` does it for everything else. Floats of a byte or less are computed in f16 (f8e8m0fnu in f32). Integers
of less than a byte are computed in 8 bits, and the upper bits are then dropped: `_on_wider`. Floats follow XLA for NaN,
infinities and -0.0.

Eager execution runs these rules: for an op of a few elements the overhead around NumPy's call is the cost. All operands
of a computing op have one type, so the first one determines it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..ops.elementwise import (
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    MapAttributes,
    ReducePrecisionAttributes,
)
from ..shape import Shape
from . import special
from .scalar_computations import Applied
from .table import EVALUATE, NDArray, Rule
from .ufuncs import MAXIMUM, MINIMUM, UFUNCS, Extremum

_NARROW = frozenset({ElementType.F16, ElementType.BF16})
_NARROW_DTYPES = frozenset(t.dtype for t in _NARROW)
_SMALL_DTYPES = frozenset(t.dtype for t in ElementType if t.is_small)
_INTEGER_KINDS = "iu"


def _wider(element_type: ElementType) -> ElementType:
    if element_type.is_floating:
        return ElementType.F32 if element_type is ElementType.F8E8M0FNU else ElementType.F16
    return ElementType.S8 if element_type.is_signed else ElementType.U8


def _on_wider(rule: Rule, shape: Shape, attributes: Any, operands: Sequence[NDArray]) -> NDArray:
    """The rule on small types: computes in the wider type and converts the result back."""
    wide = [converted(o, _wider(element_type_of(o.dtype))) for o in operands]
    if not shape.element.is_small:
        return np.asarray(rule(shape, attributes, *wide))
    wide_shape = Shape.array(_wider(shape.element), shape.dimensions)
    return converted(np.asarray(rule(wide_shape, attributes, *wide)), shape.element)


def _widening(rule: Rule) -> Rule:
    """The rule, extended to small types."""

    def widened(shape: Shape, attributes: Any, *operands: NDArray) -> Any:
        if operands[0].dtype in _SMALL_DTYPES:
            return _on_wider(rule, shape, attributes, operands)
        return rule(shape, attributes, *operands)

    return widened


def _arithmetic(opcode: Opcode, compute: Callable[..., Any]) -> None:
    """Register `compute` as the rule, on the unchanged operands."""

    def rule(shape: Shape, attributes: Any, *operands: NDArray) -> NDArray:
        if operands[0].dtype in _SMALL_DTYPES:
            return _on_wider(rule, shape, attributes, operands)
        return np.asarray(compute(*operands))

    EVALUATE[opcode] = rule
    if isinstance(compute, np.ufunc | Extremum) and has_trait(opcode, Trait.COMMUTATIVE):
        UFUNCS[opcode] = compute


def _function(opcode: Opcode, compute: Callable[..., Any]) -> None:
    """Register `compute` as the rule; narrower floats are converted to f32."""

    def rule(shape: Shape, attributes: Any, *operands: NDArray) -> NDArray:
        dtype = operands[0].dtype
        if dtype in _NARROW_DTYPES:
            return np.asarray(compute(*[o.astype(np.float32) for o in operands])).astype(dtype)
        if dtype in _SMALL_DTYPES:
            return _on_wider(rule, shape, attributes, operands)
        return np.asarray(compute(*operands))

    EVALUATE[opcode] = rule


def _on_bits(opcode: Opcode, compute: Callable[..., Any], *, sign_extends: bool = False) -> None:
    """Register the rule of an op on bit patterns. Small integers come as bytes with upper bits that are zeros (or
    copies of the sign bit); the upper bits of the result are dropped."""

    def rule(shape: Shape, attributes: Any, *operands: NDArray) -> NDArray:
        if not shape.element.is_small:
            return np.asarray(compute(*operands))
        above = 8 - shape.element.bit_width
        first, *distance = ((o.view(np.uint8) << np.uint8(above)) >> np.uint8(above) for o in operands)
        if sign_extends:
            first = ((first << np.uint8(above)).view(np.int8) >> np.int8(above)).view(np.uint8)
        result = np.asarray(compute(first, *distance))
        if opcode is Opcode.COUNT_LEADING_ZEROS:
            result = result - np.uint8(above)
        return np.asarray((result << np.uint8(above)) >> np.uint8(above)).view(shape.element.dtype)

    EVALUATE[opcode] = rule


def _as_unsigned(x: NDArray) -> NDArray:
    return x.view(f"u{x.dtype.itemsize}")


def _as_signed(x: NDArray) -> NDArray:
    return x.view(f"i{x.dtype.itemsize}")


# --- one operand


def _sign(x: NDArray) -> Any:
    """-1, 0 or 1; zeros keep their sign, NaN stays; z / |z| for complex numbers."""
    if x.dtype.kind in _INTEGER_KINDS:
        return np.sign(x)
    if x.dtype.kind == "c":
        return special.complex_sign(x)
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def _count_leading_zeros(x: NDArray) -> Any:
    """Smear the highest set bit downwards; the bits that stay clear are the leading zeros."""
    bits = _as_unsigned(x)
    width = 8 * x.dtype.itemsize
    shift = 1
    while shift < width:
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return (width - np.bitwise_count(bits)).astype(x.dtype)


def _population_count(x: NDArray) -> Any:
    return np.bitwise_count(_as_unsigned(x)).astype(x.dtype)


def _round_away_from_zero(x: NDArray) -> Any:
    """To the nearest integer, halves away from zero, keeping the sign of zeros."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _real(x: NDArray) -> Any:
    return x.real.copy() if x.dtype.kind == "c" else x


def _imag(x: NDArray) -> Any:
    return x.imag.copy() if x.dtype.kind == "c" else np.zeros_like(x)


def _log1p(x: NDArray) -> Any:
    """log|1 + z| + i arg(1 + z). The first is log(1 + t) / 2; t = |1 + z|**2 - 1 has all its digits for small z."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    wide: Any = np.float64 if x.dtype == np.complex64 else np.longdouble
    a: Any = x.real.astype(wide)
    b: Any = x.imag.astype(wide)
    t = a * (2 + a) + b * b
    is_near = (np.maximum(np.abs(a), np.abs(b)) < 2) & (t > -0.5)
    size = np.where(is_near, np.log1p(np.where(is_near, t, 0)) / 2, np.log(np.hypot(a + 1, b)))
    return special.joined(size, np.arctan2(b, a + 1)).astype(x.dtype)


def _expm1(x: NDArray) -> Any:
    """exp(a) cos b - 1 + i exp(a) sin b; real where the operand is, also where exp(a) is infinite."""
    if x.dtype.kind != "c":
        return np.expm1(x)
    a, b = x.real, x.imag
    imaginary = np.where(b == 0, b, np.exp(a) * np.sin(b))
    found = special.joined(np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2, imaginary)
    without_angle = np.isinf(a) & ~np.isfinite(b)
    return np.where(without_angle, np.exp(x) - x.dtype.type(1), found)


def _logistic(x: NDArray) -> Any:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)), whichever has a finite exponential."""
    if x.dtype.kind == "c":
        return special.complex_logistic(x)
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def _rsqrt(x: NDArray) -> Any:
    return special.complex_quotient(x.dtype.type(1), np.sqrt(x)) if x.dtype.kind == "c" else 1 / np.sqrt(x)


_arithmetic(Opcode.ABS, lambda x: special.complex_magnitude(x) if x.dtype.kind == "c" else np.abs(x))
_arithmetic(Opcode.CEIL, np.ceil)
_on_bits(Opcode.COUNT_LEADING_ZEROS, _count_leading_zeros)
_arithmetic(Opcode.FLOOR, np.floor)
_arithmetic(Opcode.IMAG, _imag)
_arithmetic(Opcode.IS_FINITE, np.isfinite)
_arithmetic(Opcode.NEGATE, np.negative)
_arithmetic(Opcode.NOT, np.invert)
_on_bits(Opcode.POPULATION_COUNT, _population_count)
_arithmetic(Opcode.REAL, _real)
_arithmetic(Opcode.ROUND_NEAREST_EVEN, np.rint)
_arithmetic(Opcode.SQRT, np.sqrt)
_function(Opcode.SIGN, _sign)
_function(Opcode.ROUND_NEAREST_AFZ, _round_away_from_zero)

_function(Opcode.ACOS, np.arccos)
_function(Opcode.ACOSH, np.arccosh)
_function(Opcode.ASIN, np.arcsin)
_function(Opcode.ASINH, np.arcsinh)
_function(Opcode.ATANH, np.arctanh)
_function(Opcode.CBRT, np.cbrt)
_function(Opcode.COS, np.cos)
_function(Opcode.COSH, np.cosh)
_function(Opcode.ERF, special.erf)
_function(Opcode.EXP, np.exp)
_function(Opcode.EXPM1, _expm1)
_function(Opcode.LOG, np.log)
_function(Opcode.LOG1P, _log1p)
_function(Opcode.LOGISTIC, _logistic)
_function(Opcode.RSQRT, _rsqrt)
_function(Opcode.SIN, np.sin)
_function(Opcode.SINH, np.sinh)
_function(Opcode.TAN, np.tan)
_function(Opcode.TANH, np.tanh)


# --- two operands


def _divide(x: NDArray, y: NDArray) -> Any:
    """Integers: towards zero; x / 0 is -1 (all bits set), and the quotient that does not fit, MIN / -1, is MIN."""
    if x.dtype.kind not in _INTEGER_KINDS:
        return special.complex_quotient(x, y) if x.dtype.kind == "c" else np.true_divide(x, y)
    by_zero = y == 0
    divisor = np.where(by_zero, y.dtype.type(1), y)
    quotient = np.floor_divide(x - np.fmod(x, divisor), divisor)
    return np.where(by_zero, np.invert(y.dtype.type(0)), quotient)


def _remainder(x: NDArray, y: NDArray) -> Any:
    """With the sign of x; for integers, x % 0 is x."""
    if x.dtype.kind not in _INTEGER_KINDS:
        return np.fmod(x, y)
    by_zero = y == 0
    return np.where(by_zero, x, np.fmod(x, np.where(by_zero, y.dtype.type(1), y)))


def _power(x: NDArray, y: NDArray) -> Any:
    """Integers wrap around; a negative exponent gives 1 / x**-y towards zero: 1, -1 or 0 (also for x = 0)."""
    if x.dtype.kind == "c":
        return special.complex_power(x, y)
    if x.dtype.kind not in _INTEGER_KINDS:
        if x.ndim == 0:  # NumPy takes the square root of a scalar for 0.5, which differs for -inf and -0.0
            return np.power(x.reshape(1), y.reshape(1)).reshape(())
        return np.power(x, y)
    one = x.dtype.type(1)
    result, square, bits = np.full(np.broadcast_shapes(x.shape, y.shape), one), x, _as_unsigned(np.asarray(y))
    while np.any(bits):
        result = np.where(bits & bits.dtype.type(1), result * square, result)
        square, bits = square * square, bits >> bits.dtype.type(1)
    inverse = np.where(x == 1, one, np.where(x == -1, np.where(y & one, -one, one), x.dtype.type(0)))
    return np.where(y < 0, inverse, result) if x.dtype.kind == "i" else result


def _complex(real: NDArray, imag: NDArray) -> Any:
    dtype = np.complex64 if real.dtype == np.float32 else np.complex128
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    result.real, result.imag = real, imag
    return result


def _shift_left(x: NDArray, y: NDArray) -> Any:
    """Distances count as unsigned; distances of at least the width shift all bits out."""
    distance, width = _as_unsigned(y), 8 * x.dtype.itemsize
    bits = _as_unsigned(x)
    return np.where(distance < width, bits << (distance % width), bits.dtype.type(0)).view(x.dtype)


def _shift_right_logical(x: NDArray, y: NDArray) -> Any:
    distance, width = _as_unsigned(y), 8 * x.dtype.itemsize
    bits = _as_unsigned(x)
    return np.where(distance < width, bits >> (distance % width), bits.dtype.type(0)).view(x.dtype)


def _shift_right_arithmetic(x: NDArray, y: NDArray) -> Any:
    """Copies of the highest bit come in from the left, for unsigned types, too."""
    bits, last = _as_signed(x), 8 * x.dtype.itemsize - 1
    distance = np.minimum(_as_unsigned(y), last).astype(bits.dtype)
    return np.asarray(bits >> distance).view(x.dtype)


@EVALUATE.register(Opcode.MULHI)
def _mulhi(shape: Shape, attributes: Any, x: NDArray, y: NDArray) -> NDArray:
    """The upper half of the product in twice the width: Python's integers are as wide as it takes."""
    width = shape.element.bit_width
    products = [(int(a) * int(b)) >> width for a, b in zip(x.ravel(), y.ravel())]
    return np.array(products, shape.element.dtype).reshape(x.shape)


_arithmetic(Opcode.ADD, np.add)
_arithmetic(Opcode.AND, np.bitwise_and)
_arithmetic(Opcode.COMPLEX, _complex)
_arithmetic(Opcode.DIVIDE, _divide)
_arithmetic(Opcode.MAXIMUM, MAXIMUM)
_arithmetic(Opcode.MINIMUM, MINIMUM)
_arithmetic(Opcode.MULTIPLY, np.multiply)
_arithmetic(Opcode.OR, np.bitwise_or)
_on_bits(Opcode.SHIFT_LEFT, _shift_left)
_on_bits(Opcode.SHIFT_RIGHT_ARITHMETIC, _shift_right_arithmetic, sign_extends=True)
_on_bits(Opcode.SHIFT_RIGHT_LOGICAL, _shift_right_logical)
_arithmetic(Opcode.SUBTRACT, np.subtract)
_arithmetic(Opcode.XOR, np.bitwise_xor)
_function(Opcode.ATAN2, special.atan2)
_function(Opcode.POWER, _power)
_function(Opcode.REMAINDER, _remainder)


# --- others

_COMPARISONS: dict[ComparisonDirection, np.ufunc] = {
    ComparisonDirection.EQ: np.equal,
    ComparisonDirection.NE: np.not_equal,
    ComparisonDirection.GE: np.greater_equal,
    ComparisonDirection.GT: np.greater,
    ComparisonDirection.LE: np.less_equal,
    ComparisonDirection.LT: np.less,
}


def _total_order_key(x: NDArray) -> NDArray:
    """Integers that order as the floats do: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = _as_signed(x)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


@EVALUATE.register(Opcode.COMPARE)
@_widening
def _compare(shape: Shape, attributes: CompareAttributes, x: NDArray, y: NDArray) -> NDArray:
    """By value, with NaN unordered, unless the attributes say total order."""
    if attributes.type is ComparisonType.TOTALORDER:
        x, y = _total_order_key(x), _total_order_key(y)
    return np.asarray(_COMPARISONS[attributes.direction](x, y))


@EVALUATE.register(Opcode.SELECT)
def _select(shape: Shape, attributes: Any, pred: NDArray, on_true: NDArray, on_false: NDArray) -> NDArray:
    return np.where(pred, on_true, on_false)


@EVALUATE.register(Opcode.CLAMP)
@_widening
def _clamp(shape: Shape, attributes: Any, low: NDArray, x: NDArray, high: NDArray) -> NDArray:
    """min(max(low, x), high): a NaN operand gives NaN, and low > high gives high."""
    return MINIMUM(MAXIMUM(low, x), high)


@EVALUATE.register(Opcode.CONVERT)
def _convert(shape: Shape, attributes: Any, x: NDArray) -> NDArray:
    return converted(x, shape.element)


def converted(x: NDArray, target: ElementType) -> NDArray:
    """To pred: is it nonzero? Complex to real: the real part. Floats to integers: towards zero, saturating, NaN
    to 0. Integers to integers wrap around. All to floats: round to nearest even, f64 to f16 and bf16 through f32. To
    small floats with one rounding; a type without NaN gets -0 for it."""
    source = element_type_of(x.dtype)
    if source.is_small and source is not target:
        return converted(x.astype(np.float32) if source.is_floating else _bytes_of(x, source), target)
    if target is ElementType.PRED:
        return np.asarray(x != 0)
    if x.dtype.kind == "c" and not target.is_complex:
        x = x.real
    if target.is_small and target.is_floating:
        x = _rounded_to_odd(x) if x.dtype == np.float64 else x.astype(np.float32)
        if target is ElementType.F4E2M1FN:
            x = np.where(np.isnan(x), np.float32(-0.0), x)
    if x.dtype in (np.float64, np.bool_) and target in _NARROW:  # a pred is 1 for any nonzero byte
        x = x.astype(np.float32)
    if target.is_integral and x.dtype.kind not in "biu" and source is not target:
        return _saturated(x, target.dtype)
    if target.is_small and target.is_integral and source is not target:
        mask = np.uint8(2**target.bit_width - 1)
        return np.asarray(x.astype(np.uint8) & mask).view(target.dtype)
    return x.astype(target.dtype)


def _rounded_to_odd(x: NDArray) -> NDArray:
    """f64 to f32: towards zero, with an odd last bit if anything was lost. Rounding that to a type with much fewer bits
    gives the same as rounding the f64 directly."""
    single = x.astype(np.float32)
    bits = single.view(np.uint32)
    back = single.astype(np.float64)
    bits = np.where(np.abs(back) > np.abs(x), bits - np.uint32(1), bits)
    return np.where((back != x) & ~np.isnan(x), bits | np.uint32(1), bits).view(np.float32)


def _bytes_of(x: NDArray, element_type: ElementType) -> NDArray:
    """Integers of less than a byte as int8 or uint8."""
    return x.astype(np.int8 if element_type.is_signed else np.uint8)


_INTEGER_LIMITS = {t.dtype: t.limits for t in ElementType if t.is_integral}


def _saturated(x: NDArray, dtype: np.dtype[Any]) -> NDArray:
    x = x if x.dtype.itemsize > 2 else x.astype(np.float32)
    smallest, largest = _INTEGER_LIMITS[dtype]
    # As floats, the limits may round up to one beyond the largest integer: those must not be cast, but replaced.
    low, high = x.dtype.type(smallest), x.dtype.type(largest)
    fits = (x > low) & (x < high)
    if fits.all():
        return x.astype(dtype)
    result = np.where(fits, x, x.dtype.type(0)).astype(dtype)
    result[x >= high] = dtype.type(largest)
    result[x <= low] = dtype.type(smallest)
    return result


@EVALUATE.register(Opcode.BITCAST_CONVERT)
def _bitcast_convert(shape: Shape, attributes: Any, x: NDArray) -> NDArray:
    """The same bits, read as elements of another width; the least significant come first."""
    target, source = shape.element, element_type_of(x.dtype)
    if target.bit_width == source.bit_width:
        return x.view(target.dtype)
    if min(target.bit_width, source.bit_width) >= 8:
        return np.ascontiguousarray(x).reshape(-1).view(target.dtype).reshape(shape.dimensions)
    # Elements of less than a byte are stored in a byte each: convert through an array of single bits.
    stored = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8)
    bits = np.unpackbits(stored, axis=1, bitorder="little")[:, : source.bit_width]
    bits = bits.reshape(-1, min(target.bit_width, 8))
    return np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(target.dtype).reshape(shape.dimensions)


@EVALUATE.register(Opcode.MAP)
def _map(shape: Shape, attributes: MapAttributes, *operands: NDArray) -> NDArray:
    (result,) = Applied(attributes.to_apply)(operands)
    return np.asarray(result)


@EVALUATE.register(Opcode.REDUCE_PRECISION)
@_widening
def _reduce_precision(shape: Shape, attributes: ReducePrecisionAttributes, x: NDArray) -> NDArray:
    """Round the mantissa to nearest even, on the bits; then a too large exponent gives infinity, one that is too
    small gives zero. NaN stays."""
    if element_type_of(x.dtype) is ElementType.BF16:
        narrow: NDArray = _reduce_precision(shape, attributes, x.astype(np.float32)).astype(x.dtype)
        return narrow
    info = np.finfo(x.dtype)
    bits, unit = _as_unsigned(x), _as_unsigned(x).dtype.type
    sign_bit, exponent_mask = unit(1 << (info.bits - 1)), unit(((1 << info.iexp) - 1) << info.nmant)
    dropped = info.nmant - attributes.mantissa_bits
    if dropped > 0:
        last_kept = (bits >> unit(dropped)) & unit(1)
        bits = (bits + last_kept + unit((1 << (dropped - 1)) - 1)) & ~unit((1 << dropped) - 1)
    if attributes.exponent_bits < info.iexp:
        bias, narrow_bias = (1 << (info.iexp - 1)) - 1, (1 << (attributes.exponent_bits - 1)) - 1
        exponent, sign = (bits & exponent_mask) >> unit(info.nmant), bits & sign_bit
        bits = np.where(exponent > unit(bias + narrow_bias), sign | exponent_mask, bits)
        bits = np.where(exponent < unit(bias - narrow_bias + 1), sign, bits)
    return np.where(np.isnan(x), x, bits.view(x.dtype))


@EVALUATE.register(Opcode.STOCHASTIC_CONVERT)
def _stochastic_convert(shape: Shape, attributes: Any, x: NDArray, random: NDArray) -> NDArray:
    """Rounds away from zero if the random number is below the fractional part, as an integer of the same width. Out of
    range becomes the nearest limit, NaN becomes 0."""
    low, high = shape.element.limits
    wide = x.astype(np.float64)
    whole = np.floor(np.abs(wide))
    fraction = np.abs(wide) - whole
    threshold = fraction * 2.0 ** (8 * random.dtype.itemsize)
    magnitude = whole + (random < np.floor(threshold))
    result = np.clip(np.copysign(magnitude, wide), low, high)
    result = np.where(wide <= low, low, np.where(wide >= high, high, result))
    return converted(np.where(np.isnan(wide), 0, result), shape.element)
