"""The polynomials of the dialect's mathematics: the comments state their errors, and `support.minimax` makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import pytest
from hloom.numba_backend.runtime.math import (
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)
from hloom.numba_backend.runtime.math.value import F32, F64, FloatFormat

from support.minimax import evaluate, fit

Real = Callable[[mp.mpf], mp.mpf]
LN2_HALF = 0.34657359
SMALLEST = 1e-12


def odd(function: Real) -> tuple[Real, Real]:
    """(f(x) / x - 1) / x**2 as a function of z = x**2, and the weight that makes its error relative to f."""

    def ratio(z: mp.mpf) -> mp.mpf:
        return function(mp.sqrt(z)) / mp.sqrt(z)

    return lambda z: (ratio(z) - 1) / z, lambda z: z / ratio(z)


@dataclass(frozen=True)
class Table:
    """Coefficients by format, the approximated function, its weight and interval, and log2 of the largest error."""

    coefficients: dict[FloatFormat, tuple[float, ...]]
    function: Real
    weight: Real
    interval: tuple[float, float]
    stated: dict[FloatFormat, float]


def _atanh(s: mp.mpf) -> mp.mpf:
    return mp.atanh(s) / s


TABLES = {
    "exp": Table(
        exponential._EXP_TAIL,
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        (-LN2_HALF, LN2_HALF),
        {F32: -28.0, F64: -57.3},
    ),
    "sinh": Table(exponential._SINH_TAIL, *odd(mp.sinh), (SMALLEST, 1.0), {F32: -31.6, F64: -61.7}),
    "log": Table(
        logarithm._LOG_TAIL,
        lambda z: (2 * _atanh(mp.sqrt(z)) - 2) / z,
        lambda z: z / 2,
        (SMALLEST, 0.02944),
        {F32: -35.2, F64: -59.4},
    ),
    "atanh": Table(
        {F64: power._ATANH_TAIL},
        lambda z: (_atanh(mp.sqrt(z)) - 1 - z / 3) / z**2,
        lambda z: z**2,
        (SMALLEST, 0.02944),
        {F64: -76},
    ),
    "log2": Table(
        {F64: power._LOG2},
        lambda r: mp.log(1 + r, 2) / r,
        lambda r: r / mp.log(1 + r, 2),
        (-0.29289322, 0.41421356),
        {F64: -38.4},
    ),
    "exp2": Table({F64: power._EXP2}, lambda t: mp.mpf(2) ** t, lambda t: mp.mpf(2) ** -t, (-0.5, 0.5), {F64: -28.9}),
    "sin": Table(trigonometric._SIN_TAIL, *odd(mp.sin), (SMALLEST, 0.61685), {F32: -32.5, F64: -57.8}),
    "cos": Table(
        trigonometric._COS_TAIL,
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        (SMALLEST, 0.61685),
        {F32: -32.9, F64: -63.8},
    ),
    "atan": Table(inverse_trigonometric._ATAN_TAIL, *odd(mp.atan), (SMALLEST, 0.17157), {F32: -30.4, F64: -59.3}),
    "asin": Table(inverse_trigonometric._ASIN_TAIL, *odd(mp.asin), (SMALLEST, 0.25), {F32: -31.6, F64: -59.8}),
    "erf": Table(
        error_function._SMALL,
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        (SMALLEST, 1.0),
        {F32: -29.3, F64: -55.9},
    ),
    "erfc": Table(
        error_function._LARGE,
        lambda x: -mp.log(mp.erfc(x)),
        lambda x: mp.erfc(x) / mp.erf(x),
        (1.0, 3.93),
        {F32: -29.7, F64: -56.9},
    ),
    "erfc, all of f64's": Table(
        error_function._LARGE,
        lambda x: -mp.log(mp.erfc(x)),
        lambda x: mp.erfc(x) / mp.erf(x),
        (1.0, 5.93),
        {F64: -56.9},
    ),
}
CASES = [(name, format_) for name, table in TABLES.items() for format_ in table.stated]


@pytest.mark.parametrize(("name", "format_"), CASES, ids=[f"{name}-{format_.name}" for name, format_ in CASES])
def test_error_is_as_stated(name: str, format_: FloatFormat) -> None:
    table = TABLES[name]
    low, high = table.interval
    worst = mp.mpf(0)
    with mp.workdps(50):
        for k in range(151):
            x = (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / 151)
            error = evaluate(table.coefficients[format_], x) - table.function(x)
            worst = max(worst, abs(error) * table.weight(x))
        assert mp.log(worst, 2) <= table.stated[format_]


def test_minimax_makes_the_coefficients_of_exp() -> None:
    table = TABLES["exp"]
    made = fit(table.function, table.interval, degree=4, bits=24, weight=table.weight, fixed=(0.5,))
    assert mp.log(made.error, 2) < -27.9
    for coefficient, stored in zip(made.coefficients, table.coefficients[F32]):
        assert abs(coefficient - stored) < 1e-4 * abs(stored)
