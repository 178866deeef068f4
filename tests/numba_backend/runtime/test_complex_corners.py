"""Complex functions where intermediate results overflow, or cancel, and the result does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate

import hloom
from hloom import lax

POINTS: list[tuple[Callable[..., Any], complex, complex]] = [
    (lax.atan, 3e38 + 3e38j, 1.5707963267948966),
    (lax.atan, -3e38 + 1j, -1.5707963267948966),
    (lax.atan, 1e30 - 1e20j, 1.5707963267948966),
    (lax.atan, 1e-3 + 1e-10j, 9.999996666668667e-4 + 9.999990000010000e-11j),
    (lax.atan, 0.5 + 2j, 1.4215468610018069 + 0.5003700000525333j),
    (lax.sqrt, 3e38 + 3e38j, 1.9029768147083555e19 + 7.882387990853164e18j),
    (lax.sqrt, -3e38 - 2.9e38j, 7.6567918e18 - 1.8937435e19j),
    (lax.rsqrt, 3e38 + 3e38j, 4.485358942e-20 - 1.857896502e-20j),
    (lax.log1p, 3e38 + 3e38j, 88.94342 + 0.7853981633974483j),
    (lax.log1p, 1e-10 + 1e-20j, 1e-10 + 1e-20j),
    (lax.log1p, -1e-12 + 1e-20j, -1e-12 + 1e-20j),
    (lax.log1p, -1 + 1e-10j, -23.025850929940457 + 1.5707963267948966j),
    (lax.log1p, -1 + 1j, 1.5707963267948966j),
    (lax.square, 3e38 + 3e38j, complex(0, np.inf)),
    (lax.square, 1e19 + 1e19j, 2e38j),
    (lax.square, 3e19 + 1e19j, complex(np.inf, np.inf)),
    (lax.square, 3 + 4j, -7 + 24j),
    (lax.square, 1e19 + 0.99999994e19j, 2.199023e31 + 2e38j),
]


@pytest.mark.parametrize(("function", "point", "expected"), POINTS)
def test_corners(function: Callable[..., Any], point: complex, expected: complex) -> None:
    z = np.array([point, point], np.complex64)
    for found in (function(z), hloom.jit(function)(z), hloom.jit(function)(z[0])):
        value = np.ravel(np.asarray(found))[0]
        for part, wanted in ((value.real, np.real(expected)), (value.imag, np.imag(expected))):
            np.testing.assert_allclose(part, wanted, rtol=1e-5, atol=1e-37 + 1e-15 * abs(np.real(expected)))


@pytest.mark.parametrize("function", [lax.atan, lax.square])
def test_their_derivatives(function: Callable[..., Any]) -> None:
    derivative = {lax.atan: lambda z: 1 / (1 + z * z), lax.square: lambda z: 2 * z}[function]
    z = np.array([0.5 + 0.5j, 1 - 2j, 0.3 + 0j], np.complex64)
    found = hloom.vmap(hloom.grad(function, holomorphic=True))(z)
    np.testing.assert_allclose(found, derivative(z), rtol=1e-5)
    (_, tangent) = hloom.jvp(hloom.jit(function), (z,), (np.ones_like(z),))
    np.testing.assert_allclose(tangent, derivative(z), rtol=1e-5)


PARTS = (0.0, -0.0, 1.0, -2.0, 50.0, -800.0, np.inf, -np.inf, np.nan)
PLANE = [complex(a, b) for a in PARTS for b in PARTS]
UNARY = (
    *("exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
    *("asinh", "acosh", "atanh", "sqrt", "rsqrt", "logistic", "square", "sign", "abs"),
)
BINARY = ("add", "mul", "div", "pow")


def _equal(found: Any, expected: Any, with_signs: bool) -> None:
    """NaN and infinities in the same parts, and zeros of the same sign `with_signs`."""
    for f, e in ((np.real(found), np.real(expected)), (np.imag(found), np.imag(expected))):
        np.testing.assert_allclose(f, e, rtol=2e-6, atol=1e-37)
        zeros = (f == 0) & (e == 0) & with_signs
        np.testing.assert_array_equal(np.signbit(f[zeros]), np.signbit(e[zeros]))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", UNARY)
def test_one_meaning_at_zeros_and_infinities(name: str, dtype: str) -> None:
    """Outside of jit and inside: the evaluator's C99, and the kernels'."""
    function = getattr(lax, name)
    with hloom.enable_x64(True):
        z = np.array(PLANE, dtype)
        is_quotient = name in ("rsqrt", "logistic", "sign")  # the sign of 0 + -0 depends on how it is written
        _equal(np.asarray(hloom.jit(function)(z)), np.asarray(function(z)), not is_quotient)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", BINARY)
def test_one_meaning_of_pairs(name: str, dtype: str) -> None:
    function = getattr(lax, name)
    parts = [complex(a, b) for a in (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan) for b in (0.0, -2.0, np.inf, np.nan)]
    z, w = np.repeat(np.array(parts, dtype), len(parts)), np.tile(np.array(parts, dtype), len(parts))
    with hloom.enable_x64(True):
        found, expected = np.asarray(hloom.jit(function)(z, w)), np.asarray(function(z, w))
        np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_powers_of_zero() -> None:
    """0**w is 0 where the real part of w is positive, and so are the derivatives that exist."""
    zero, w = np.complex64(0), np.complex64(2 + 1j)
    for wrap in (lambda f: f, hloom.jit):
        assert complex(wrap(lax.pow)(zero, w)) == 0
        assert complex(wrap(hloom.grad(lax.pow, holomorphic=True))(zero, w)) == 0
        assert complex(wrap(hloom.grad(lax.pow, 1, holomorphic=True))(zero, w)) == 0


def of_any_size(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Parts of any exponent, also subnormal."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    parts = np.exp2(rng.uniform(low, high, (2, 4000))) * rng.choice([-1, 1], (2, 4000))
    return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)


def check_beside_the_larger_part(found: Any, exact: Any, ulps: int) -> None:
    """`exact`: in a wider type."""
    info = np.finfo(np.asarray(found).dtype)
    largest = np.maximum(np.abs(exact.real), np.abs(exact.imag))
    told = largest < float(info.max) * 0.999
    assert told.sum() > 1000
    error = np.asarray(found).astype(exact.dtype) - exact
    allowed = ulps * float(info.eps) * largest + 2 * float(info.smallest_subnormal)
    assert (np.maximum(np.abs(error.real), np.abs(error.imag)) <= allowed)[told].all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients_of_any_size(dtype: str) -> None:
    z, w = of_any_size(dtype, 0), of_any_size(dtype, 1)
    with hloom.enable_x64(True), np.errstate(all="ignore"):
        exact = z.astype(np.clongdouble) / w.astype(np.clongdouble)
        lowered = hloom.jit(lax.div).lower(z, w)
        for found in (lowered.compile()(z, w), lax.div(z, w), *evaluate(lowered.module, z, w)):
            check_beside_the_larger_part(found, exact, 4)


@pytest.mark.parametrize("name", [name for name in UNARY if name != "exp2"])
def test_functions_of_any_size(name: str) -> None:
    """Results in single precision, compared with double precision. (`exp2` multiplies the angle by a rounded log 2.)"""
    function = getattr(lax, name)
    z = of_any_size("complex64", 0)
    with np.errstate(all="ignore"):
        lowered = hloom.jit(function).lower(z)
        with hloom.enable_x64(True):
            (exact,) = evaluate(hloom.jit(function).lower(z.astype(np.complex128)).module, z.astype(np.complex128))
        for found in (lowered.compile()(z), function(z), *evaluate(lowered.module, z)):
            check_beside_the_larger_part(found, np.asarray(exact), 64)


@pytest.mark.parametrize(("function", "expected"), [(lax.log, -713.801378828 - 1e-10j), (lax.sign, 1 - 1e-10j)])
def test_subnormal_numbers_of_double_precision(function: Callable[..., Any], expected: complex) -> None:
    with hloom.enable_x64(True):
        z = np.array([1e-310 - 1e-320j])
        lowered = hloom.jit(function).lower(z)
        for found in (lowered.compile()(z), function(z), *evaluate(lowered.module, z)):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            np.testing.assert_allclose(np.imag(found), np.imag(expected), rtol=1e-4)
