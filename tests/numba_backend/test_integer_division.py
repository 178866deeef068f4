"""Division and remainders of integers where they are hard: by 0, and of the least number by -1. As JAX has them.

lax.div and lax.rem are HLO's: x / 0 is -1 (all bits set), x rem 0 is x, and the least number / -1 is itself. NumPy's
functions round down, and their remainders by 0 are 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

DTYPES = ("int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def hard_pairs(low: int, high: int) -> list[tuple[int, int]]:
    numbers = sorted(n for n in {low, low + 1, -1, 0, 1, 2, high - 1, high} if low <= n <= high)
    return list(itertools.product(numbers, numbers))


def wrapped(value: int, low: int, high: int) -> int:
    return (value - low) % (high - low + 1) + low


def div(x: int, y: int) -> int:
    if y == 0:
        return -1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def rem(x: int, y: int) -> int:
    return x - div(x, y) * y if y else x


def sign(x: int) -> int:
    return (x > 0) - (x < 0)


def floor_divide(x: int, y: int) -> int:
    """-2 for division of a number that is not 0 by 0: the quotient -1, less 1 because it has a remainder."""
    return div(x, y) - (sign(x) != sign(y) and rem(x, y) != 0)


def unsigned_floor_divide(x: int, y: int) -> int:
    return div(x, y)


def fmod(x: int, y: int) -> int:
    return rem(x, y) if y else 0


def mod(x: int, y: int) -> int:
    return x % y if y else 0


FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "lax.div": (lax.div, div),
    "lax.rem": (lax.rem, rem),
    "floor_divide": (jnp.floor_divide, floor_divide),
    "//": (lambda x, y: x // y, floor_divide),
    "mod": (jnp.mod, mod),
    "%": (lambda x, y: x % y, mod),
    "remainder": (jnp.remainder, mod),
    "fmod": (jnp.fmod, fmod),
    "divmod 0": (lambda x, y: jnp.divmod(x, y)[0], floor_divide),
    "divmod 1": (lambda x, y: divmod(x, y)[1], mod),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hard_pairs(name: str) -> None:
    function, rule = FUNCTIONS[name]
    with hloom.enable_x64():
        for dtype in DTYPES:
            low, high = limits(dtype)
            pairs = hard_pairs(low, high)
            scalar_rule = div if rule is floor_divide and dtype.startswith("u") else rule
            wanted = [wrapped(scalar_rule(x, y), low, high) for x, y in pairs]
            x, y = (jnp.asarray(list(column), dtype) for column in zip(*pairs))
            for found in (function(x, y), hloom.jit(function)(x, y)):
                assert found.dtype == x.dtype
                assert [int(v) for v in found] == wanted, dtype


@pytest.mark.parametrize("name", ["mod", "fmod", "floor_divide", "%"])
@pytest.mark.parametrize("divisor", [-1, 0, 3])
def test_constant_divisor(name: str, divisor: int) -> None:
    function, rule = FUNCTIONS[name]
    x = [-(2**31), -7, -1, 0, 1, 7, 2**31 - 1]
    wanted = [wrapped(rule(v, divisor), -(2**31), 2**31 - 1) for v in x]
    for found in (function(jnp.asarray(x), divisor), hloom.jit(lambda v: function(v, divisor))(jnp.asarray(x))):
        assert found.tolist() == wanted


inf, nan = np.inf, np.nan
FLOATS: list[tuple[Any, list[tuple[float, float, float]]]] = [
    # function, (x, y, JAX's result)
    (jnp.floor_divide, [(1, 0, inf), (-1, 0, -inf), (0, 0, nan), (1, -0.0, -inf), (inf, 1, nan), (1, inf, 0)]),
    (jnp.floor_divide, [(-1, inf, -1), (7, -2, -4)]),
    (jnp.mod, [(1, 0, nan), (0, 0, nan), (1, inf, 1), (-1, inf, inf), (inf, 1, nan), (-7, 2, 1), (7, -2, -1)]),
    (jnp.fmod, [(1, 0, nan), (1, inf, 1), (-1, inf, -1), (inf, 1, nan), (-7, 2, -1), (7, -2, 1), (1, nan, nan)]),
    (lax.rem, [(1, 0, nan), (-0.0, 1, -0.0), (-7, 2, -1), (1, inf, 1)]),
    (lambda x, y: jnp.divmod(x, y)[0], [(1, 0, inf), (-1, inf, -1), (7, -2, -4)]),
    (lambda x, y: jnp.divmod(x, y)[1], [(1, 0, nan), (-1, inf, inf), (7, -2, -1)]),
]


@pytest.mark.parametrize(("function", "rows"), FLOATS)
def test_floats(function: Callable[[Any, Any], Any], rows: list[tuple[float, float, float]]) -> None:
    x, y, wanted = np.array(rows, np.float32).T
    for found in (function(jnp.asarray(x), jnp.asarray(y)), hloom.jit(function)(x, y)):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.slow
def test_jax_says_the_same() -> None:
    jax = pytest.importorskip("jax")
    wrong = []
    for name, (_, rule) in FUNCTIONS.items():
        if name.startswith(("lax", "divmod")) or name in ("//", "%"):
            continue
        for dtype in ("int8", "uint8", "int32", "uint32", "int4"):
            low, high = limits(dtype)
            pairs = hard_pairs(low, high)
            x, y = (jax.numpy.asarray(list(c), dtype) for c in zip(*pairs))
            scalar_rule = div if rule is floor_divide and dtype.startswith("u") else rule
            found = [int(v) for v in getattr(jax.numpy, name)(x, y)]
            if found != [wrapped(scalar_rule(a, b), low, high) for a, b in pairs]:
                wrong.append((name, dtype))
    for function, rows in FLOATS[:4]:
        x, y, wanted = np.array(rows, np.float32).T
        found = np.asarray(getattr(jax.numpy, function.__name__)(x, y))
        if not np.array_equal(found, wanted, equal_nan=True):
            wrong.append((function.__name__, list(zip(x, y, found, wanted))))
    assert wrong == []
