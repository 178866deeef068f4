"""The floating-point remainder, C's fmod: x - trunc(x / y) y, exact, with the sign of x."""

from __future__ import annotations

from llvmlite import ir

from .slow_path import slow_path_call
from .value import INFINITY, Boolean, Float, Integer, absolute, copysign, fma, from_bits, select, truncate


def remainder(x: Float, y: Float) -> Float:
    """One fma if the quotient fits the mantissa: the true remainder is then representable, and so is the remainder of a
    quotient that is off by one (the division rounds). Larger quotients need long division. NaN for infinite x and for
    y == 0."""
    magnitude, divisor = absolute(x), absolute(y)
    limit = 2.0**x.format.mantissa_bits

    def is_large(a: Float, b: Float) -> Boolean:
        return (a / b >= limit) & (a < INFINITY) & (b > 0.0)

    reduced = slow_path_call(is_large, _long_division, magnitude, divisor)
    large = is_large(magnitude, divisor)
    rest = fma(-truncate(magnitude / divisor), divisor, magnitude)
    rest = select(rest < 0.0, rest + divisor, rest)
    rest = select(divisor.equals(INFINITY) & (magnitude < INFINITY), magnitude, rest)
    return copysign(select(large, reduced, rest), x)


def _long_division(x: Float, y: Float) -> Float:
    """fmod of positive finite x and y with x / y >= 2**mantissa_bits; each round handles as many bits of the quotient
    as fit 64."""
    f = x.format
    builder = x.builder
    x_mantissa, x_exponent = _decompose(x)
    y_mantissa, y_exponent = _decompose(y)
    bits_per_round = 64 - (f.mantissa_bits + 1)
    all_bits = x_exponent - y_exponent
    entry = builder.block
    loop = builder.append_basic_block("divide")
    done = builder.append_basic_block("divided")
    builder.branch(loop)
    builder.position_at_end(loop)
    rest_raw, left_raw = builder.phi(ir.IntType(64)), builder.phi(ir.IntType(64))
    rest, left = Integer(builder, rest_raw), Integer(builder, left_raw)
    step = select(left < bits_per_round, left, left.constant(bits_per_round))
    following = Integer(builder, builder.urem((rest << step).raw, y_mantissa.raw))
    remaining = left - step
    rest_raw.add_incoming(x_mantissa.raw, entry)
    rest_raw.add_incoming(following.raw, loop)
    left_raw.add_incoming(all_bits.raw, entry)
    left_raw.add_incoming(remaining.raw, loop)
    builder.cbranch((remaining > 0).raw, loop, done)
    builder.position_at_end(done)
    whole = Float(builder, builder.uitofp(following.raw, x.raw.type))
    exponent = y_exponent if f.bits == 64 else y_exponent.truncate(32)
    return whole * from_bits(exponent << f.mantissa_bits) * 2.0**-f.mantissa_bits


def _decompose(x: Float) -> tuple[Integer, Integer]:
    """(mantissa, biased exponent of at least 1) as 64-bit integers, also for denormals."""
    f = x.format
    bits = x.to_bits() if f.bits == 64 else x.to_bits().extend_unsigned(64)
    exponent = bits.shift_right_logical(f.mantissa_bits)
    mantissa = bits & ((1 << f.mantissa_bits) - 1)
    denormal = exponent.equals(0)
    implicit = mantissa | (1 << f.mantissa_bits)
    return select(denormal, mantissa, implicit), select(denormal, exponent.constant(1), exponent)


