"""The dialect's complex functions against mpmath and against C99's special values.

Errors are relative to the magnitude of the result; each part by itself may lose accuracy through cancellation.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn
from support.dialect_kernels import STORAGE, Apply, compiled

INF, NAN = np.inf, np.nan
REAL = {"c64": "f32", "c128": "f64"}
FORMATS = tuple(REAL)


@dataclass(frozen=True)
class Function:
    """`bounds`: errors in ulps of |result|, for c64 and c128. `wide`: also tried over the whole range of exponents."""

    reference: Callable[..., mp.mpc]
    bounds: tuple[float, float]
    wide: bool = False


def _log1p(z: mp.mpc) -> mp.mpc:
    return z - z * z / 2 if abs(z) < 1e-25 else mp.log(1 + z)


FUNCTIONS: dict[str, Function] = {
    "exp": Function(mp.exp, (2.5, 2.5)),
    "expm1": Function(mp.expm1, (4, 4)),
    "log": Function(mp.log, (2.5, 2.5), wide=True),
    "log1p": Function(_log1p, (2.5, 2.5), wide=True),
    "sqrt": Function(mp.sqrt, (2, 2), wide=True),
    "rsqrt": Function(lambda z: 1 / mp.sqrt(z), (3.5, 3.5), wide=True),
    "tanh": Function(mp.tanh, (4.5, 4.5)),
    "tan": Function(mp.tan, (4.5, 4.5)),
    "sin": Function(mp.sin, (3, 3)),
    "cos": Function(mp.cos, (3, 3)),
    "logistic": Function(lambda z: 1 / (1 + mp.exp(-z)), (5, 5)),
    "sinh": Function(mp.sinh, (3, 3)),
    "cosh": Function(mp.cosh, (3, 3)),
    "asin": Function(mp.asin, (3, 3), wide=True),
    "acos": Function(mp.acos, (3, 3), wide=True),
    "asinh": Function(mp.asinh, (3, 3), wide=True),
    "acosh": Function(mp.acosh, (3, 3), wide=True),
    "atanh": Function(mp.atanh, (4, 4), wide=True),
    "sign": Function(lambda z: z / abs(z), (2.5, 2.5), wide=True),
}
NAMES = list(FUNCTIONS)


@functools.cache
def unary(dtype: str) -> Apply:
    return compiled([f"{name}(x[i])" for name in NAMES], [dtype], dtype)


@functools.cache
def binary(dtype: str) -> Apply:
    return compiled(["multiply(x[i], y[i])", "divide(x[i], y[i])", "pow(x[i], y[i])"], [dtype, dtype], dtype)


def sample(dtype: str, count: int, wide: bool, seed: int = 0) -> np.ndarray:
    """Numbers of several sizes, near the unit circle, near -1; and with all exponents."""
    generator = np.random.default_rng(seed)

    def normal() -> np.ndarray:
        return np.asarray(generator.standard_normal(count) + 1j * generator.standard_normal(count))

    parts = [normal() * size for size in (1, 8, 0.1, 1e-3, 1e-9)]
    parts += [np.exp(1j * generator.uniform(0, 7, count)) * (1 + 1e-6 * normal()), -1 + 1e-4 * normal()]
    if wide:
        info = np.finfo(STORAGE[REAL[dtype]])
        exponents = generator.uniform(0.97 * info.minexp, 0.97 * info.maxexp, (2, count))
        parts.append(2.0 ** exponents[0] * normal())
        parts.append(2.0 ** exponents[0] - 1j * 2.0 ** exponents[1])
    return np.concatenate(parts).astype(STORAGE[dtype])


def relative_errors(actual: np.ndarray, exact: list[mp.mpc]) -> np.ndarray:
    """|actual - exact| in ulps of |exact|."""
    info = np.finfo(actual.dtype)
    errors = np.zeros(actual.size)
    for k, (got, want) in enumerate(zip(actual, exact)):
        size = abs(want)
        exponent = max(mp.frexp(size)[1] - 1, int(info.minexp)) if size else int(info.minexp)
        errors[k] = abs(mp.ldexp(abs(mp.mpc(complex(got)) - want), int(info.nmant) - exponent))
    return errors


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_bound(name: str, dtype: str) -> None:
    function = FUNCTIONS[name]
    # mpmath's inverse functions lose parts far below the rest of an argument: it gets digits for f64's whole range.
    costly = name.startswith("a") and dtype == "c128"
    points = sample(dtype, 15 if costly else 40, function.wide)
    with mp.workdps(700 if costly else 60):
        errors = relative_errors(
            unary(dtype)(points)[NAMES.index(name)], [mp.mpc(function.reference(mp.mpc(complex(z)))) for z in points]
        )
    worst = int(errors.argmax())
    bound = function.bounds[FORMATS.index(dtype)]
    assert errors[worst] <= bound, f"{name}({points[worst]!r}) is off by {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", FORMATS)
def test_abs(dtype: str) -> None:
    points = sample(dtype, 100, wide=True)
    (result,) = compiled(["abs(x[i])"], [dtype], REAL[dtype])(points)
    with mp.workdps(60):
        assert relative_errors(result, [mp.mpc(abs(mp.mpc(complex(z)))) for z in points]).max() <= 1
    special = np.array([complex(INF, NAN), complex(NAN, -INF), complex(NAN, 1), 0, complex(-0.0, -0.0)] * 3)
    (result,) = compiled(["abs(x[i])"], [dtype], REAL[dtype])(special)
    np.testing.assert_array_equal(result, [NAN, NAN, NAN, 0, 0] * 3)  # as XLA; NumPy's first two are infinite


@pytest.mark.parametrize(("dtype", "bound"), [("c64", 3.0), ("c128", 3.0)])
def test_quotients(dtype: str, bound: float) -> None:
    z, w = sample(dtype, 60, True, 1), sample(dtype, 60, True, 2)
    info = np.finfo(STORAGE[REAL[dtype]])
    with np.errstate(all="ignore"), mp.workdps(60):
        exact = [mp.mpc(complex(a)) / mp.mpc(complex(b)) for a, b in zip(z, w)]
        kept = np.array([abs(e) < float(info.max) / 2 for e in exact])
        errors = relative_errors(binary(dtype)(z, w)[1][kept], [e for e, k in zip(exact, kept) if k])
    assert errors.max() <= bound


@pytest.mark.parametrize("dtype", FORMATS)
def test_products_are_textbook_products(dtype: str) -> None:
    z, w = sample(dtype, 60, False, 1), sample(dtype, 60, False, 2)
    result = binary(dtype)(z, w)[0]
    np.testing.assert_array_equal(result.real, z.real * w.real - z.imag * w.imag)
    np.testing.assert_array_equal(result.imag, z.real * w.imag + z.imag * w.real)


@pytest.mark.parametrize(("dtype", "bound"), [("c64", 1.0), ("c128", 40.0)])
def test_pow(dtype: str, bound: float) -> None:
    generator = np.random.default_rng(3)
    z, w = sample(dtype, 60, False, 1), generator.uniform(-3, 3, 420) + 1j * generator.uniform(-3, 3, 420)
    z, w = z[:300], w[:300].astype(STORAGE[dtype])  # of size 1e-3 to 8
    with mp.workdps(60):
        exact = [mp.mpc(complex(a)) ** mp.mpc(complex(b)) for a, b in zip(z[:240], w[:240])]
        errors = relative_errors(binary(dtype)(z, w)[2][:240], exact)
    assert errors.max() <= bound


@pytest.mark.parametrize("dtype", FORMATS)
def test_pow_special_values(dtype: str) -> None:
    """z**0 and 1**w are 1; 0 to a power with a positive real part is 0, to others undefined."""
    undefined = complex(NAN, NAN)
    cases = [
        (0, 0, 1), (0, 2, 0), (0, 0.5, 0), (0, 1j, undefined), (2 + 1j, 0, 1), (INF, 0, 1), (1, complex(INF, NAN), 1),
        (1, -3j, 1), (1j, 0, 1), (0, 1 + 1j, 0), (-0.0, 0.5 - 2j, 0), (0, -1 + 1j, undefined), (0, -1, undefined),
        (0, complex(1, INF), undefined), (0, complex(INF, 1), undefined), (0, INF, 0),
    ]  # fmt: skip
    z, w, expected = (np.array([case[k] for case in cases], STORAGE[dtype]) for k in range(3))
    np.testing.assert_array_equal(binary(dtype)(z, w)[2], expected)
    np.testing.assert_array_equal(np.asarray(lax.pow(jnp.array(z[1:]), jnp.array(w[1:]))).astype(z.dtype), expected[1:])


PARTS = (0.0, -0.0, 1.0, -0.5, INF, -INF, NAN)
SPECIAL = [complex(a, b) for a in PARTS for b in PARTS]
# Where C99 says nothing, and NumPy has NaN
UNSPECIFIED: dict[str, Callable[[complex], bool]] = {
    "expm1": lambda z: not np.isfinite(z.real) or not np.isfinite(z.imag),
}
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("rsqrt", "logistic", "sign")])
def test_special_values(name: str, dtype: str) -> None:
    points = np.array([z for z in SPECIAL if not UNSPECIFIED.get(name, lambda z: False)(z)], STORAGE[dtype])
    result = unary(dtype)(points)[NAMES.index(name)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = getattr(np, NUMPY_NAMES.get(name, name))(points)
    for part in ("real", "imag"):
        got, want = getattr(result, part), getattr(expected, part)
        np.testing.assert_allclose(got, want, rtol=4e-7)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize(("dtype", "tolerance"), [("c64", 1e-6), ("c128", 1e-14)])
def test_atan2(dtype: str, tolerance: float) -> None:
    """By its definition, which branch included; and on real numbers the angle."""
    y, x = sample(dtype, 60, False, 1)[:180], sample(dtype, 60, False, 2)[:180]
    (result,) = compiled(["atan2(x[i], y[i])"], [dtype, dtype], dtype)(y, x)
    y, x = y.astype(np.complex128), x.astype(np.complex128)
    expected = -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    np.testing.assert_allclose(result, expected, rtol=0, atol=100 * tolerance)
    (result,) = compiled(["atan2(x[i], y[i])"], [dtype, dtype], dtype)(y.real, x.real)
    np.testing.assert_allclose(result.real, np.arctan2(y.real, x.real), atol=tolerance * 10)


def test_quotients_of_special_values() -> None:
    """C99 G.5.1, as XLA; the expected values were recorded from XLA 0.10.2."""
    cases = [
        (1, 0, complex(INF, NAN)), (complex(1, 1), 0, complex(INF, INF)), (0, 0, complex(NAN, NAN)),
        (complex(INF, 1), 1, complex(INF, NAN)), (complex(INF, NAN), complex(1, 1), complex(INF, -INF)),
        (1, complex(INF, INF), 0), (complex(1, -2), complex(INF, NAN), 0), (INF, INF, complex(NAN, NAN)),
    ]  # fmt: skip
    z, w, expected = (np.array([case[k] for case in cases] * 3, np.complex64) for k in range(3))
    np.testing.assert_array_equal(binary("c64")(z, w)[1], expected)


def test_exponentials_beyond_the_range_of_their_factors() -> None:
    """exp(x) overflows, but a small cosine brings the product back."""
    points = np.array([89 + 1.5j, 100 + 1.5707963j, 88.9 + 0.8j, 120 + 1.5707963j])
    exact = [mp.exp(mp.mpc(complex(np.complex64(z)))) for z in points]
    result = unary("c64")(points)[NAMES.index("exp")]
    np.testing.assert_allclose(result.real[:3], [float(e.real) for e in exact[:3]], rtol=1e-6)


# ---- logarithms of sums of exponentials

_Z = np.array([[0.1 + 1.4j, 200 - 3j, 3j, -3 + 2j, 1 + 3j], [-3 + 2j, 0.5 + 3j, -3j, 2.9j, 1.1 + 3.1j]], np.complex64)
_LOG_SUMS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (jnp.logaddexp, lambda x, y: np.log(np.exp(x) + np.exp(y))),
    (lambda x, y: nn.softplus(x), lambda x, y: np.log(1 + np.exp(x))),
    (lambda x, y: nn.log_sigmoid(y), lambda x, y: -np.log(1 + np.exp(-y))),
    (lambda x, y: lax.cumlogsumexp(x), lambda x, y: np.log(np.cumsum(np.exp(x)))),
]


@pytest.mark.parametrize("transform", [lambda f: f, hloom.jit], ids=["evaluator", "compiled"])
@pytest.mark.parametrize(("mine", "theirs"), _LOG_SUMS, ids=["logaddexp", "softplus", "log_sigmoid", "cumlogsumexp"])
def test_logarithms_of_sums_are_the_principal_ones(mine: Any, theirs: Any, transform: Any) -> None:
    found = np.asarray(transform(mine)(*_Z))
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, theirs(*_Z.astype(np.complex128)), rtol=5e-6)


def test_logaddexp_of_infinite_complex_numbers() -> None:
    """The infinite one."""
    x = np.array([complex(INF, 1), complex(INF, 1), -INF, -INF, complex(INF, 1)], np.complex64)
    y = np.array([2 + 1j, complex(INF, 1), 2 + 1j, -INF, complex(NAN, 0)], np.complex64)
    expected = np.array([complex(INF, 1), complex(INF, 1), 2 + 1j, -INF], np.complex64)
    for a, b in ((x, y), (y, x)):
        found = np.asarray(jnp.logaddexp(a, b))
        np.testing.assert_array_equal(found[:4], expected)
        assert np.isnan(found[4])
