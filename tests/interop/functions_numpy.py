"""jax.numpy: arithmetic, comparisons, bits, reductions, cumulative sums, statistics, products."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .cases import bf16, c64, c128, case, cases, f16, f32, f64, positive, pred, s8, s16, s32, s64, typed, u8, u16, u32

numpy = partial(cases, within="numpy")

# One operand

numpy("sin cos tan sinh cosh tanh asinh atan exp exp2 expm1 cbrt deg2rad rad2deg degrees radians", f32(3, 5))
numpy("acos asin atanh", f32(3, 5, low=-0.95, high=0.95))
numpy("log log2 log10 log1p sqrt reciprocal", positive(3, 5))
numpy("acosh", f32(3, 5, low=1.1, high=9.0))
numpy("abs fabs negative positive sign square floor ceil trunc rint round signbit isfinite isnan isinf", f32(4, 4))
numpy("isneginf isposinf", np.array([np.inf, -np.inf, np.nan, 0.0, -3.5], np.float32))
numpy("sinc i0 real imag conj angle frexp modf spacing nan_to_num", f32(3, 4))
numpy("sin cos tan sinh cosh tanh exp expm1 sqrt log abs sign square conj angle", c64(3, 4), label="c64")
numpy("acos asin atan acosh asinh atanh log1p log2 log10 reciprocal exp2", c64(7), label="c64")
numpy("exp sin tanh sqrt abs", c128(3), label="c128")
numpy("exp tanh sqrt sin cbrt", bf16(9, low=0.1), label="bf16")
numpy("exp tanh sqrt cos log1p", f16(9, low=0.1), label="f16")
numpy("exp log sin tanh cbrt expm1", f64(9, low=0.1), label="f64")
numpy("abs sign negative square", s8(9), label="s8")
numpy("bitwise_not bitwise_count", s32(3, 4))
numpy("bitwise_not bitwise_count", u8(7), label="u8")
numpy("logical_not", pred(5))
numpy("iscomplex isreal", c64(5))
numpy("isscalar iscomplexobj isrealobj ndim size", f32(2, 3), call=lambda f, x: x + f(x))
numpy("shape", f32(2, 3), call=lambda f, x: x.sum() + f(x)[1])
case("numpy.round", f32(9, low=-99, high=99), label="decimals", decimals=1)
case("numpy.nan_to_num", np.array([np.nan, np.inf, -np.inf, 1.5], np.float32), label="special", nan=3.0)
case("numpy.clip", f32(9), -0.5, 0.5)
case("numpy.clip", s16(9), -3, 3, label="s16")
case("numpy.unwrap", f32(12, low=-9, high=9))

# Two operands

numpy("add subtract multiply divide maximum minimum fmax fmin arctan2 hypot copysign", f32(3, 4), f32(4))
numpy("logaddexp logaddexp2 float_power nextafter heaviside", f32(3, 4), positive(4))
numpy("power", positive(3, 4), f32(4))
numpy("equal not_equal less less_equal greater greater_equal isclose", s32(3, 4), s32(4))
numpy("equal less", f32(3, 4), f32(3, 1), label="f32")
numpy("floor_divide remainder fmod mod divmod", f32(9), f32(9, low=0.5, high=3))
numpy("floor_divide remainder fmod mod divmod", s32(9), s32(9, low=1), label="s32")
numpy("floor_divide remainder power", u16(9), u16(9, low=1, high=4), label="u16")
numpy("add subtract multiply maximum left_shift", s8(9), s8(9, low=0, high=5), label="s8")
numpy("bitwise_and bitwise_or bitwise_xor", u32(3, 4), u32(4))
numpy("bitwise_left_shift bitwise_right_shift left_shift right_shift", s32(9), s32(9, low=0))
numpy("logical_and logical_or logical_xor", pred(3, 4), pred(4))
numpy("add multiply divide power", c64(3, 4), c64(4), label="c64")
numpy("gcd lcm", s32(7, low=1, high=60), s32(7, low=1, high=60))
case("numpy.ldexp", f32(6), s32(6))
numpy("allclose array_equal array_equiv", f32(3), f32(3))
typed("numpy.add", [bf16, f16, f64, c128, s16, s64, u8, u32], (3, 4), (3, 4))
typed("numpy.divide", [bf16, f64, s32], (5,), (5,))

# Reductions

REDUCTIONS = "sum prod mean var std max min median nanmax nanmin nansum nanprod nanmean nanvar nanstd nanmedian"
numpy(REDUCTIONS, f32(4, 5), axis=0)
numpy("ptp argmax argmin nanargmax nanargmin count_nonzero", f32(4, 5), axis=1)
numpy("sum prod max min argmax argmin", s32(3, 4), axis=-1, label="s32")
numpy("sum prod mean", c64(3, 4), axis=0, label="c64")
numpy("sum mean max argmin", bf16(3, 4), axis=1, label="bf16")
numpy("sum max mean var", f64(3, 4), label="f64")
numpy("sum max", f16(30), label="f16")
numpy("sum max any", u8(3, 4), label="u8")
numpy("all any", pred(3, 4), axis=1)
numpy("sum min", f32(2, 3, 4), axis=(0, 2), keepdims=True, label="axes")
numpy("argmax argmin", np.array([1.0, np.nan, 3.0, np.nan], np.float32), label="nan")
numpy("nansum nanmax nanmean nanargmin", np.array([[1.0, np.nan, 3.0], [np.nan, -1, 2]], np.float32), label="nan")
case("numpy.sum", f32(3, 4), pred(3, 4), label="where", call=lambda f, x, m: f(x, axis=0, where=m, initial=2.0))
case("numpy.average", f32(3, 4), positive(4), call=lambda f, x, w: f(x, axis=1, weights=w))
numpy("cumsum cumprod nancumsum nancumprod", f32(3, 5), axis=1)
numpy("cumulative_sum cumulative_prod", f32(6), include_initial=True)
typed("numpy.cumsum", [s32, bf16, c64, f64], (7,))
numpy("quantile nanquantile", f32(4, 5), np.array([0.1, 0.5], np.float32), axis=0)
numpy("percentile nanpercentile", f32(7), np.float32(30.0))
case("numpy.quantile", f32(7), np.float32(0.4), label="nearest", method="nearest")
numpy("cov corrcoef", f32(3, 6))
case("numpy.apply_along_axis", f32(3, 4), call=lambda f, x: f(lambda row: row - row.max(), 1, x))
case("numpy.apply_over_axes", f32(2, 3, 4), call=lambda f, x: f(np_sum, x, [0, 2]))


def np_sum(x: Any, axis: Any) -> Any:
    """The sum over an axis, for any array."""
    return x.sum(axis)


# Products

numpy("dot matmul", f32(3, 4), f32(4, 5))
typed("numpy.matmul", [bf16, f16, f64, c64, s32, u8], (3, 4), (4, 2))
case("numpy.matmul", f32(2, 1, 3, 4), f32(5, 4, 2), label="broadcast")
case("numpy.matmul", f32(4), f32(4), label="vectors")
numpy("vdot inner outer kron", f32(4), f32(4))
numpy("vdot vecdot", c64(4), c64(4), label="c64")
numpy("vecdot", f32(3, 4), f32(3, 4))
case("numpy.matvec", f32(2, 3, 4), f32(4))
case("numpy.vecmat", f32(3), f32(2, 3, 4))
case("numpy.tensordot", f32(2, 3, 4), f32(4, 3, 5), axes=((1, 2), (1, 0)))
case("numpy.cross", f32(5, 3), f32(5, 3))
case("numpy.einsum", f32(2, 3, 4), f32(2, 4, 5), call=lambda f, x, y: f("bij,bjk->bki", x, y))
case("numpy.einsum", f32(3, 3), label="trace", call=lambda f, x: f("ii->i", x))
case("numpy.einsum", f32(3, 4), f32(4, 5), f32(5, 2), label="three", call=lambda f, *a: f("ij,jk,kl->il", *a))
case("numpy.convolve", f32(7), f32(3), mode="same")
case("numpy.correlate", f32(7), f32(3), mode="full")
case("numpy.convolve", c64(7), c64(3), label="c64")

# Polynomials, interpolation, differences

numpy("polyadd polysub polymul", f32(4), f32(3))
case("numpy.polydiv", f32(5), f32(3, low=1))
numpy("polyder polyint", f32(5))
case("numpy.polyval", f32(4), f32(6))
case("numpy.polyfit", f32(8), f32(8), deg=2)
case("numpy.poly", f32(4))
case("numpy.roots", np.array([1.0, -6.0, 11.0, -6.5], np.float32), strip_zeros=False)
case("numpy.interp", f32(6), np.array([-1.0, 0.0, 0.5, 1.5], np.float32), f32(4))
case("numpy.diff", f32(3, 6), n=2)
case("numpy.ediff1d", f32(6))
case("numpy.gradient", f32(4, 5))
case("numpy.trapezoid", f32(3, 6), dx=0.5)
case(
    "numpy.vectorize", f32(3, 4), f32(4), call=lambda f, x, y: f(lambda a, b: a * b.sum(), signature="(),(n)->()")(x, y)
)
case("numpy.frompyfunc", f32(3, 4), f32(4), call=lambda f, x, y: f(lambda a, b: a * b, nin=2, nout=1, identity=1)(x, y))
case(
    "numpy.piecewise",
    f32(9),
    call=lambda f, x: f(x, [x < -1, x > 1], [lambda v: v * v, lambda v: -v, 0.5]),
)

# Windows and other tables

numpy("bartlett blackman hamming hanning", call=lambda f: f(9))
case("numpy.kaiser", call=lambda f: f(9, 4.0))
