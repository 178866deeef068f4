"""The dialect's mathematics against mpmath: over the whole range, at its edges, in vectors and in remainder loops.

Every function has a bound in ulps for f32 and f64. The default run measures some hundred points for each function;
``-m slow`` measures many more.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest

from support.dialect_kernels import STORAGE, Apply, compiled, kernel_of, optimised_ir
from support.ulp import boundaries, random_bits, ulp_errors, with_neighbours

INF, NAN = np.inf, np.nan
FORMATS = ("f32", "f64")


@dataclass(frozen=True)
class Function:
    """`bounds`: largest error in ulps for f32 and f64. `intervals`: where the function has its structure.
    `specials`: argument -> exact result, compared with the sign of zeros; NaN gives NaN without being listed."""

    reference: Callable[..., mp.mpf]
    bounds: tuple[float, float]
    intervals: Sequence[tuple[float, float]]
    specials: Sequence[tuple[float, float]]
    edges: Sequence[float] = ()
    digits: int = 60


def _logistic(x: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(-x))


def _odd_root(x: mp.mpf) -> mp.mpf:
    return mp.sign(x) * mp.cbrt(abs(x))


ODD_TO_ONE = ((INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0))
ODD_TO_INFINITY = ((INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0))
UNDEFINED_AT_INFINITY = ((INF, NAN), (-INF, NAN))
EXP_EDGES = (88.72283, 88.72284, 88.3762, 87.3365, 103.9, 103.972, 103.98, 709.782712893384, 745.1332, 708.3964, 744.4)
# f64 numbers that come closest to a multiple of pi/2 (Muller, Elementary Functions, table 11.1), and f32's
TRIGONOMETRIC_EDGES = (
    *(k * np.pi / 2 for k in range(1, 9)), *(k * np.pi / 4 for k in (1, 3, 5)), 6381956970095103.0 * 2.0**797,
    16367173.0 * 2.0**72, 2.0**30, 2.0**30 - 0.5, 2.0**40, 33.0 * np.pi / 2, 1e5, 1e22,
)  # fmt: skip
FUNCTIONS: dict[str, Function] = {
    "exp": Function(
        mp.exp, (1.05, 1.05), [(-1, 1), (-105, 90), (-746, 711)], ((INF, INF), (-INF, 0.0), (0.0, 1.0)), EXP_EDGES
    ),
    "expm1": Function(
        mp.expm1, (1.6, 2), [(-1, 1), (-0.4, 0.4), (-40, 90)],
        ((INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0)), (*EXP_EDGES, 17.4, 37.5),
    ),
    "log": Function(
        mp.log, (1, 1), [(0, 2), (0.7, 1.5), (0, 1e9)],
        ((INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (1.0, 0.0)),
    ),
    "log1p": Function(
        mp.log1p, (1.5, 1.5), [(-1, 1), (-0.3, 0.5), (-1, 1e6)],
        ((INF, INF), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN)),
    ),
    "tanh": Function(mp.tanh, (2, 2.3), [(-1, 1), (-10, 10), (-23, 23)], ODD_TO_ONE, (9.0, 19.06, 22.0)),
    "logistic": Function(
        _logistic, (1.7, 1.7), [(-2, 2), (-105, 20), (-746, 40)], ((INF, 1.0), (-INF, 0.0)), EXP_EDGES
    ),
    "sin": Function(
        mp.sin, (1.5, 1.4), [(-4, 4), (-100, 100), (-1e6, 1e6)],
        (*UNDEFINED_AT_INFINITY, (0.0, 0.0), (-0.0, -0.0)), TRIGONOMETRIC_EDGES, 360,
    ),
    "cos": Function(
        mp.cos, (1.5, 1.4), [(-4, 4), (-100, 100), (-1e6, 1e6)],
        (*UNDEFINED_AT_INFINITY, (0.0, 1.0), (-0.0, 1.0)), TRIGONOMETRIC_EDGES, 360,
    ),
    "tan": Function(
        mp.tan, (3, 2.6), [(-4, 4), (-100, 100), (-1e6, 1e6)],
        (*UNDEFINED_AT_INFINITY, (0.0, 0.0), (-0.0, -0.0)), TRIGONOMETRIC_EDGES, 360,
    ),
    "erf": Function(mp.erf, (1.1, 1.1), [(-1, 1), (-4, 4), (-6, 6)], ODD_TO_ONE, (3.93, 5.93, 5.86)),
    "sqrt": Function(mp.sqrt, (0.5, 0.5), [(0, 4)], ((INF, INF), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (-1.0, NAN))),
    "rsqrt": Function(
        lambda x: 1 / mp.sqrt(x), (1.5, 1.5), [(0, 4)], ((INF, 0.0), (-INF, NAN), (0.0, INF), (-0.0, -INF), (-1.0, NAN))
    ),
    "cbrt": Function(_odd_root, (0.6, 0.6), [(-8, 8)], ODD_TO_INFINITY),
    "asin": Function(
        mp.asin, (2, 2), [(-1, 1), (0.9, 1)], ((0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (INF, NAN)), (0.5, 1)
    ),
    "acos": Function(mp.acos, (1.5, 1.5), [(-1, 1), (0.9, 1)], ((1.0, 0.0), (-1.5, NAN), (INF, NAN)), (0.5, 1)),
    "atan": Function(mp.atan, (2.2, 2), [(-2, 2), (-10, 10)], ((0.0, 0.0), (-0.0, -0.0)), (np.sqrt(2) - 1, 1)),
    "sinh": Function(mp.sinh, (1.8, 1.8), [(-1, 1), (-2, 2), (-91, 91)], ODD_TO_INFINITY, (*EXP_EDGES, 89.41, 710.47)),
    "cosh": Function(
        mp.cosh, (1.8, 1.8), [(-2, 2), (-91, 91)], ((INF, INF), (-INF, INF), (0.0, 1.0)), (*EXP_EDGES, 89.41, 710.47)
    ),
    "asinh": Function(mp.asinh, (2.5, 2.5), [(-1, 1), (-20, 20)], ODD_TO_INFINITY),
    "acosh": Function(
        mp.acosh, (2.5, 2.5), [(1, 1.1), (1, 20)], ((INF, INF), (1.0, 0.0), (0.5, NAN), (-2.0, NAN), (-INF, NAN))
    ),
    "atanh": Function(
        mp.atanh, (2.5, 2.5), [(-1, 1), (-0.1, 0.1)],
        ((0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)),
    ),
}  # fmt: skip
NAMES = list(FUNCTIONS)


@functools.cache
def unary(dtype: str) -> Apply:
    return compiled([f"{name}(x[i])" for name in NAMES], [dtype], dtype)


@functools.cache
def binary(dtype: str) -> Apply:
    return compiled(["pow(x[i], y[i])", "atan2(x[i], y[i])", "remainder(x[i], y[i])"], [dtype, dtype], dtype)


def exact(function: Function, points: np.ndarray) -> tuple[np.ndarray, list[mp.mpf]]:
    """The points at which the function is real and finite, and its values there."""
    kept, values = [], []
    with mp.workdps(function.digits):
        for x in points:
            try:
                value = function.reference(mp.mpf(float(x)))
            except (ZeroDivisionError, ValueError):
                continue
            if isinstance(value, mp.mpf) and mp.isfinite(value):
                kept.append(x)
                values.append(value)
    return np.array(kept, points.dtype), values


def sample(function: Function, dtype: type, count: int) -> np.ndarray:
    parts = [random_bits(dtype, count, 1), with_neighbours([*boundaries(dtype), *function.edges], dtype)]
    generator = np.random.default_rng(2)
    parts += [generator.uniform(low, high, count).astype(dtype) for low, high in function.intervals]
    return np.concatenate(parts)


def measure(name: str, dtype: str, count: int) -> tuple[float, float]:
    """The largest error in ulps, and where."""
    function = FUNCTIONS[name]
    points, values = exact(function, sample(function, STORAGE[dtype], count))
    with mp.workdps(function.digits):
        errors = ulp_errors(unary(dtype)(points)[NAMES.index(name)], values)
    worst = int(errors.argmax())
    return float(errors[worst]), float(points[worst])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_bound(name: str, dtype: str) -> None:
    error, where = measure(name, dtype, 130)
    assert error <= FUNCTIONS[name].bounds[FORMATS.index(dtype)], f"{name}({where!r}) is off by {error:.2f} ulp"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_bound_at_many_points(name: str, dtype: str) -> None:
    error, where = measure(name, dtype, 3000)
    assert error <= FUNCTIONS[name].bounds[FORMATS.index(dtype)], f"{name}({where!r}) is off by {error:.2f} ulp"


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str, dtype: str) -> None:
    # Five times over, so that each value goes through vectors and remainders.
    pairs = [*FUNCTIONS[name].specials, (NAN, NAN)] * 5
    arguments, expected = (np.array(column, STORAGE[dtype]) for column in zip(*pairs))
    results = unary(dtype)(arguments)[NAMES.index(name)]
    np.testing.assert_array_equal(results, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(results[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("dtype", FORMATS)
def test_vectors_and_remainders_agree_bit_for_bit(dtype: str) -> None:
    points = np.concatenate([random_bits(STORAGE[dtype], 300, 3), np.linspace(-3, 3, 211).astype(STORAGE[dtype])])
    whole, one_by_one = unary(dtype)(points), unary(dtype)(points, pieces=1)
    for name, a, b in zip(NAMES, whole, one_by_one):
        np.testing.assert_array_equal(a, b, err_msg=name)
    other = points[::-1].copy()
    for a, b in zip(binary(dtype)(points, other), binary(dtype)(points, other, pieces=1)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_loop_is_vectorised(dtype: str) -> None:
    expressions = [f"{name}(x[i])" for name in NAMES]
    expressions += [f"{name}(x[i], y[i])" for name in ("pow", "atan2", "remainder", "maximum", "minimum")]
    text = optimised_ir(kernel_of(expressions, [dtype, dtype], dtype))
    loops = [line for line in text.splitlines() if line.startswith("vector.body")]
    assert len(loops) == len(expressions)


# pow, atan2 and remainder


def pairs(dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random bit patterns, moderate numbers, and bases near one with large exponents."""
    generator = np.random.default_rng(4)
    near_one = (1 + generator.uniform(-1, 1, count) * 2.0 ** generator.uniform(-20, 0, count)).astype(dtype)
    large = generator.uniform(-1, 1, count) * 2.0 ** generator.uniform(0, 20, count)
    x = [random_bits(dtype, 2 * count, 5)[:count], generator.uniform(0, 10, count), near_one]
    y = [random_bits(dtype, 2 * count, 6)[:count], generator.uniform(-30, 30, count), large]
    return np.concatenate(x).astype(dtype), np.concatenate(y).astype(dtype)


@pytest.mark.parametrize(("dtype", "bound"), [("f32", 0.6), ("f64", 1.1)])
def test_pow(dtype: str, bound: float) -> None:
    x, y = pairs(STORAGE[dtype], 400)
    x = np.abs(x)
    with mp.workdps(60):
        # Where the logarithm is beyond every format, mpmath would compute for ever.
        size = [mp.mpf(float(b)) * mp.log(mp.mpf(float(a))) if a else mp.mpf(0) for a, b in zip(x, y)]
        values = [mp.exp(max(min(s, mp.mpf(5000)), mp.mpf(-5000))) for s in size]
        errors = ulp_errors(binary(dtype)(x, y)[0], values)
    errors[x == 0] = 0
    worst = int(errors.argmax())
    assert errors[worst] <= bound, f"pow({x[worst]!r}, {y[worst]!r}) is off by {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", FORMATS)
def test_pow_special_values(dtype: str) -> None:
    """C99 F.9.4.4, which is also what XLA computes."""
    numbers = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -2.5, 1e30, -1e30, INF, -INF, NAN]
    x, y = (grid.ravel().astype(STORAGE[dtype]) for grid in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    result = binary(dtype)(x, y)[0]
    np.testing.assert_array_max_ulp(*(np.where(np.isnan(v), 0, v) for v in (result, expected)), maxulp=2)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("dtype", FORMATS)
def test_atan2(dtype: str) -> None:
    x, y = pairs(STORAGE[dtype], 400)
    x[::3], y[::2] = -x[::3], -y[::2]
    with mp.workdps(60):
        values = [mp.atan2(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y)]
        errors = ulp_errors(binary(dtype)(x, y)[1], values)
    worst = int(errors.argmax())
    assert errors[worst] <= 2, f"atan2({x[worst]!r}, {y[worst]!r}) is off by {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", FORMATS)
def test_atan2_special_values(dtype: str) -> None:
    """C99 F.9.1.4."""
    numbers = [0.0, -0.0, 1.0, -1.0, 1e-30, -1e30, INF, -INF, NAN, float(np.finfo(STORAGE[dtype]).max)]
    y, x = (grid.ravel().astype(STORAGE[dtype]) for grid in np.meshgrid(numbers, numbers))
    expected, result = np.arctan2(y, x), binary(dtype)(y, x)[1]
    np.testing.assert_array_max_ulp(*(np.where(np.isnan(v), 0, v) for v in (result, expected)), maxulp=2)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    numbers_only = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[numbers_only]), np.signbit(expected[numbers_only]))


@pytest.mark.parametrize("dtype", FORMATS)
def test_atan_is_atan2_above_one(dtype: str) -> None:
    """The same bits, up to the largest numbers."""
    info = np.finfo(STORAGE[dtype])
    edges = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, info.max, -info.max, info.max / 2, info.smallest_subnormal]
    x = np.concatenate([random_bits(STORAGE[dtype], 5_000, 4), np.array(edges, STORAGE[dtype])])
    atan, atan2 = compiled(["atan(x[i])", "atan2(x[i], y[i])"], [dtype, dtype], dtype)(x, np.ones_like(x))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(atan), ~numbers)
    np.testing.assert_array_equal(atan[numbers].view(np.uint8), atan2[numbers].view(np.uint8))


@pytest.mark.parametrize("dtype", FORMATS)
def test_remainder_is_exact(dtype: str) -> None:
    info = np.finfo(STORAGE[dtype])
    numbers = [0.0, -0.0, 1.0, -1.5, 5.3, 1e30, INF, -INF, NAN, float(info.max), float(info.max) / 2]
    numbers += [float(info.smallest_subnormal), -3 * float(info.smallest_normal)]
    x, y = (np.concatenate([part, grid.ravel()]).astype(STORAGE[dtype]) for part, grid in zip(
        pairs(STORAGE[dtype], 1000), np.meshgrid(numbers, numbers)
    ))  # fmt: skip
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    result = binary(dtype)(x, y)[2]
    np.testing.assert_array_equal(result, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize(
    ("function", "dtype", "tiny"),
    [("sin", "f32", 1e-25), ("tan", "f32", 1e-25), ("log1p", "f64", 1e-200), ("asinh", "f64", 1e-200)],
)
def test_tiny_arguments_meet_no_subnormal_number(function: str, dtype: str, tiny: float) -> None:
    """Where an argument's square would be subnormal or 0: on some processors such a result costs a hundred cycles."""
    apply = compiled([f"{function}(x[i])"], [dtype], dtype)
    values = np.full(1000, tiny)
    apply(values)  # compiles and imports first
    assert _underflows(lambda: np.multiply(np.float64(1e-200), np.float64(1e-200)))
    assert not _underflows(lambda: apply(values))


def _underflows(call: Callable[[], object]) -> bool:
    """Whether this thread's call raised the processor's underflow flag."""
    flag = {"x86_64": 0x10, "aarch64": 0x8}.get(platform.machine())
    if flag is None:
        pytest.skip("the number of the flag is not known here")
    c_math = ctypes.CDLL(None)
    c_math.feclearexcept(flag)
    call()
    return bool(c_math.fetestexcept(flag))
