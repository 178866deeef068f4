"""Loops that wait for a quotient divide by a constant with two multiplications, and get the bits of a division."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import ANY_TARGET, compiling_for, this_machine

import hloom
import hloom.numpy as hnp
from hloom import lax

DIVISORS = [9.0, 3.0, 6.0, -7.0, 1.0, 0.125, 1000.0, 2.0**19 - 1, -(2.0**21) + 1, 1.5e-3, 0.1, 1 / 3, 3e-6, 1e30, 1e-30]
DIVISORS += [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-44]


def quotients(divisor: float) -> Callable[[Any], Any]:
    """A loop in which each quotient waits for the one before."""

    def run(x: Any) -> Any:
        def step(last: Any, element: Any) -> Any:
            quotient = hnp.where(last == 12345, 0, element) / divisor
            return quotient, quotient

        return lax.scan(step, hnp.zeros((), x.dtype), x)[1]

    return run


def dividends(divisor: float, dtype: Any) -> np.ndarray[Any, Any]:
    """Numbers of all sizes, those whose quotients are nearly midpoints between two numbers, and the special ones."""
    rng, limits = np.random.default_rng(1), np.finfo(dtype)
    bits = limits.nmant + 2
    halves = 2 * rng.integers(1 << (bits - 2), 1 << (bits - 1), 2000) + 1
    wide = np.ldexp(halves.astype(np.longdouble), rng.integers(-70, 40, 2000)) * np.longdouble(divisor)
    near = wide.astype(dtype)
    sizes = np.ldexp(rng.uniform(-1, 1, 2000), rng.integers(limits.minexp - limits.nmant, limits.maxexp, 2000))
    special = [0, -0.0, np.inf, -np.inf, np.nan, limits.smallest_subnormal, limits.tiny, limits.max, -limits.max, 1, 9]
    ends = np.ldexp(1.0, [-700, 699, 700, -60, 60, 59])
    parts = [near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf)), sizes, special, ends]
    return np.concatenate([np.asarray(part).astype(dtype) for part in parts])


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", DIVISORS, ids=str)
def test_the_quotients_are_those_of_a_division(divisor: float, dtype: Any) -> None:
    """Every bit, the zeros' signs among them."""
    x = dividends(divisor, dtype)
    with hloom.enable_x64(True):
        executable = NumbaCompiler().compile(hloom.make_hlo(quotients(divisor))(x))
        found = np.asarray(executable.execute((x,))[0])
    expected = x / dtype(divisor)
    same = (found.view(f"u{x.itemsize}") == expected.view(f"u{x.itemsize}")) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), (x[~same][:5], found[~same][:5], expected[~same][:5])


needs_fma = pytest.mark.skipif(not this_machine().fuses, reason="the processor has no fused multiply-add")


def kernels(function: Callable[..., Any], *arguments: Any) -> str:
    with hloom.enable_x64(True):
        executable = NumbaCompiler().compile(hloom.make_hlo(function)(*arguments))
    return "\n".join(map(str, executable.kernels().values()))


@needs_fma
def test_one_reciprocal_for_each_divisor() -> None:
    def run(x: Any) -> Any:
        def step(carry: Any, element: Any) -> Any:
            a, b = carry
            new = (a + element) / 9, ((b - element) / 9 + a) / 7
            return new, new

        zero = hnp.zeros((), x.dtype)
        return lax.scan(step, (zero, zero), x)[1]

    text = kernels(run, np.ones(100))
    assert text.count(" = fma(") == 5  # two for the divisors, three quotients
    assert text.count("likely(") == 3


def test_quotients_that_no_iteration_waits_for_are_divided() -> None:
    def run(x: Any) -> Any:
        def step(total: Any, element: Any) -> Any:
            total = total + element / 9
            return total, total / 7

        return lax.scan(step, hnp.zeros((), x.dtype), x)

    assert "fma(" not in kernels(run, np.ones(100))


def test_divisors_that_change_are_divided_by() -> None:
    def run(x: Any) -> Any:
        def step(last: Any, element: Any) -> Any:
            last = (last + 1) / element
            return last, last

        return lax.scan(step, hnp.zeros((), x.dtype), x)[1]

    assert "fma(" not in kernels(run, np.ones(100))


def test_targets_without_fused_instructions_divide() -> None:
    """There, `fma` is a call of the library."""
    with compiling_for(ANY_TARGET):
        assert "fma(" not in kernels(quotients(9.0), np.ones(100))
