"""atan2, atan, asin, acos."""

from __future__ import annotations

from .value import F32, F64, INFINITY, Float, absolute, choose, copysign, fma, polynomial, select, square_root

TAN_PI_8 = 0.4142135623730951
PI_4_HIGH = {F32: 0.785398185253143310546875, F64: 0.7853981633974483}
PI_4_LOW = {F32: -2.1855694143368964e-08, F64: 3.061616997868383e-17}

# (atan(t) / t - 1) / t**2 over t**2, |t| <= tan(pi/8); errors relative to atan: 2**-30.4, 2**-59.4
_ATAN_TAIL = {
    F32: (-0.33333316445350647, 0.19998528063297272, -0.14244391024112701, 0.10599168390035629, -0.06090052053332329),
    F64: (
        -0.333333333333332,
        0.19999999999953672,
        -0.14285714280199574,
        0.1111111078350297,
        -0.09090897758041125,
        0.0769206022285942,
        -0.06663104269873137,
        0.058478922072496206,
        -0.050393243650899366,
        0.03806523643217998,
        -0.01790814559931045,
    ),
}
# (asin(t) / t - 1) / t**2 over t**2, |t| <= 1/2; errors relative to asin: 2**-31.7, 2**-59.9
_ASIN_TAIL = {
    F32: (
        0.16666659712791443,
        0.07500521838665009,
        0.044513385742902756,
        0.03183874115347862,
        0.014317830093204975,
        0.03768926113843918,
    ),
    F64: (
        0.1666666666666676,
        0.07499999999970863,
        0.044642857174564565,
        0.030381942709673097,
        0.022372214941515083,
        0.017351612751272786,
        0.013980812528114075,
        0.011398972520777493,
        0.010779939200263476,
        0.003707516242544062,
        0.021704911572942603,
        -0.020995668104991566,
        0.032626606367409605,
    ),
}


def atan2(y: Float, x: Float) -> Float:
    """The angle of (x, y), with C99's special cases (F.9.1.4).

    With t = min / max of the magnitudes, moved by tan(a - pi/4) = (t - 1) / (t + 1) where t > tan(pi/8), the angle is
    c pi/4 +- atan(t) for a whole c from 0 to 4; one division, and c pi/4 enters by one fma.
    """
    f = x.format
    abs_x, abs_y = absolute(x), absolute(y)
    both_infinite = abs_x.equals(INFINITY) & abs_y.equals(INFINITY)
    swap = abs_y > abs_x
    small, large = select(swap, abs_x, abs_y), select(swap, abs_y, abs_x)
    one = x.constant(1.0)
    small = select(both_infinite, one, small)
    large = select(both_infinite | large.equals(0.0), one, large)
    # The sum of both must not overflow; if one is that large, a denormal partner does not matter.
    scale = choose(large > f.largest / 4, 0.25, 1.0, x)
    t, c = _moved(small * scale, large * scale)
    negative = x.to_bits() < 0
    # The quarter turns to the left of each case, in units of pi/4.
    c = select(swap, 2.0 - c, c)
    c = select(negative, 4.0 - c, c)
    return copysign(_angle(select(swap ^ negative, -t, t), c), y)


def atan(x: Float) -> Float:
    """atan2(x, 1), without a scale: 1 and the largest number add up to that number, so no sum overflows."""
    one, magnitude = x.constant(1.0), absolute(x)
    swap = magnitude > 1.0
    t, c = _moved(select(swap, one, magnitude), select(swap, magnitude, one))
    return copysign(_angle(select(swap, -t, t), select(swap, 2.0 - c, c)), x)


def _moved(small: Float, large: Float) -> tuple[Float, Float]:
    """t and c with atan(small / large) == c pi/4 + atan(t), |t| <= tan(pi/8), and c 0 or 1."""
    upper = small > large * TAN_PI_8
    t = select(upper, small - large, small) / select(upper, small + large, large)
    return t, choose(upper, 1.0, 0.0, t)


def _angle(t: Float, c: Float) -> Float:
    """c pi/4 + atan(t)."""
    f = t.format
    z = t * t
    rest = fma(t * z, polynomial(z, _ATAN_TAIL[f]), fma(c, PI_4_LOW[f], t))
    return fma(c, PI_4_HIGH[f], rest)


def _asin_parts(x: Float) -> tuple[Float, Float, Float]:
    """(s, s_low, tail) with asin(s + s_low) == s + (s_low + tail), where s is |x| up to 1/2 and sqrt((1 - |x|) / 2)
    beyond."""
    magnitude = absolute(x)
    upper = magnitude > 0.5
    z = select(upper, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    root = square_root(z)
    s = select(upper, root, magnitude)
    # The rounding error of the root, which is doubled later.
    divisor = choose(upper & (root > 0.0), root + root, 1.0, x)
    s_low = choose(upper, fma(-root, root, z) / divisor, 0.0, x)
    return s, s_low, s * z * polynomial(z, _ASIN_TAIL[x.format])


def asin(x: Float) -> Float:
    """s + tail, or pi/2 - 2 (s + tail); NaN beyond 1."""
    f = x.format
    s, s_low, tail = _asin_parts(x)
    upper = absolute(x) > 0.5
    # pi/2 - 2 s is exact: both lie between 1/2 and 2, or s is small
    reflected = 2.0 * PI_4_HIGH[f] - (s + s)
    rest = 2.0 * PI_4_LOW[f] - 2.0 * (s_low + tail)
    return copysign(select(upper, reflected + rest, s + tail), x)


def acos(x: Float) -> Float:
    """pi/2 - asin(x); 2 (s + tail) for x > 1/2 and pi - 2 (s + tail) for x < -1/2; NaN beyond 1."""
    f = x.format
    s, s_low, tail = _asin_parts(x)
    upper = absolute(x) > 0.5
    negative = x < 0.0
    signed_s, signed_tail = select(negative, -s, s), select(negative, -tail, tail)
    middle = (2.0 * PI_4_HIGH[f] - signed_s) + (2.0 * PI_4_LOW[f] - signed_tail)
    twice = s + (s_low + tail)
    twice = twice + twice
    left = (4.0 * PI_4_HIGH[f] - (s + s)) + (4.0 * PI_4_LOW[f] - 2.0 * (s_low + tail))
    return select(upper, select(negative, left, twice), middle)
