"""Values that one nest reads at several indices: computed again where that is little work, else once into memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import compiling_for, this_machine

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.comparing import assert_same_arrays


def second_difference(u: Any) -> Any:
    flux = u[1:] - u[:-1]
    return flux[1:] - flux[:-1]


def fluxes_with_a_limit(u: Any) -> Any:
    """A Laplace operator, and differences of it along both axes that are cut off: it would be computed at five places,
    and the differences at two."""
    lap = 4 * u[1:-1, 1:-1] - (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    x = lap[1:, 1:-1] - lap[:-1, 1:-1]
    x = jnp.where(x * (u[2:-1, 2:-2] - u[1:-2, 2:-2]) > 0, 0, x)
    y = lap[1:-1, 1:] - lap[1:-1, :-1]
    y = jnp.where(y * (u[2:-2, 2:-1] - u[2:-2, 1:-2]) > 0, 0, y)
    return u[2:-2, 2:-2] - 0.1 * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])


def of_a_column(u: Any) -> Any:
    """A row for each row of the result, read at two places."""
    means = u[:, 0] * 2 + u[:, 1]
    return u[1:] * (means[1:] - means[:-1])[:, None]


def a_size_of_one(u: Any) -> Any:
    flux = u[None, 1:] - u[None, :-1]
    return flux[:, 1:] - flux[:, :-1]


def expensive(u: Any) -> Any:
    flux = jnp.exp(u)
    return flux[1:] - flux[:-1]


def much_work(u: Any) -> Any:
    flux = u
    for k in range(30):
        flux = (flux + k) * u
    return flux[1:] - flux[:-1]


def strided(u: Any) -> Any:
    flux = u[1:] + u[:-1]
    return flux[::2][:-1] - flux[1::2]


def padded(u: Any) -> Any:
    flux = u[1:] + u[:-1]
    return lax.pad(flux, 0.0, ((1, 0, 0),)) - lax.pad(flux, 0.0, ((0, 1, 0),))


def with_a_border(u: Any) -> Any:
    """Each read would ask whether it is in the border."""
    wide = jnp.pad(u, 1)
    return wide[2:] - 2 * wide[1:-1] + wide[:-2]


def on_a_ring(u: Any) -> Any:
    ring = jnp.concatenate([u[-1:], u, u[:1]])
    return ring[2:] - 2 * ring[1:-1] + ring[:-2]


def turned(u: Any) -> Any:
    v = u.T
    return v[1:] - v[:-1]


def kept(u: Any) -> Any:
    """A result, too."""
    flux = u[1:] - u[:-1]
    return flux[1:] - flux[:-1], flux


def reduced(u: Any) -> Any:
    flux = u[1:] - u[:-1]
    return jnp.sum(flux[1:] * flux[:-1])


def stencil_in_a_loop(u: Any) -> Any:
    """The next state is an array of the loop: its nest overwrites the last one."""

    def step(_: Any, u: Any) -> Any:
        flux = u[1:] - u[:-1]
        return lax.pad(0.1 * (flux[1:] - flux[:-1]), 0.0, ((1, 1, 0),)) + u

    return lax.fori_loop(0, 3, step, u)


PROGRAMS: dict[Callable[..., Any], tuple[tuple[int, ...], int]] = {
    second_difference: ((2000,), 1),
    fluxes_with_a_limit: ((40, 30), 2),
    of_a_column: ((40, 30), 1),
    a_size_of_one: ((2000,), 1),
    expensive: ((2000,), 2),
    much_work: ((2000,), 2),
    padded: ((2000,), 2),
    with_a_border: ((2000,), 2),
    on_a_ring: ((2000,), 2),
    turned: ((40, 50), 2),
    kept: ((2000,), 2),
}
"""The shape of the argument, and how many kernels there are."""


def arguments(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def module_of(program: Callable[..., Any], x: np.ndarray[Any, Any]) -> HloModule:
    module: HloModule = hloom.jit(program).lower(x).module
    return module


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_one_nest_where_that_is_little_work(program: Callable[..., Any]) -> None:
    shape, count = PROGRAMS[program]
    kernels = NumbaCompiler().compile(module_of(program, arguments(shape))).kernels()
    assert sum(len(text.instructions) for text in kernels.values()) == count


@pytest.mark.parametrize(
    ("program", "cache", "count"),
    [(fluxes_with_a_limit, 1 << 14, 1), (fluxes_with_a_limit, 1 << 15, 2), (much_work, 1 << 13, 2)],
)
def test_more_work_where_a_value_leaves_the_caches(program: Callable[..., Any], cache: int, count: int) -> None:
    """The 4,256 bytes of `lap` are a quarter of a cache of 16 KiB, but not of 32."""
    x = arguments(PROGRAMS[program][0])
    module = module_of(program, x)
    with compiling_for(replace(this_machine(), second_cache=cache, third_cache=cache)):
        compiled = NumbaCompiler().compile(module)
    assert len(compiled.kernels()) == count
    assert_same_arrays(evaluate(module, x), compiled.execute([x]), 1e-4)


@pytest.mark.parametrize("program", [*PROGRAMS, strided, reduced, stencil_in_a_loop], ids=lambda f: f.__name__)
def test_results(program: Callable[..., Any]) -> None:
    shape, _ = PROGRAMS.get(program, ((2000,), 0))
    x = arguments(shape)
    module = module_of(program, x)
    assert_same_arrays(evaluate(module, x), NumbaCompiler().compile(module).execute([x]), 1e-4)
