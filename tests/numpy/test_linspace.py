"""linspace: the values of JAX bit for bit, its shapes and types, its derivative."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.machine import this_machine

import hloom
import hloom.numpy as jnp

JAX = importlib.util.find_spec("jax") is not None


def _sum_of_bits(x: Any) -> int:
    found = np.asarray(x)
    return int(found.view(f"u{found.dtype.itemsize}").astype(object).sum())


def test_the_values_of_jax() -> None:
    """Those of JAX 0.10.2 on a processor with a fused multiply-add, as sums of their bits."""
    f = np.float32
    x = jnp.linspace(f(-1.3), f(2.7), 100)
    assert np.asarray(x).view(np.int32)[[7, 31, 50, 77, 99]].tolist() == [
        -1081986386, -1119718185, 1060658985, 1072157309, 1076677837,
    ]  # fmt: skip
    assert _sum_of_bits(x) == 177071008274
    assert _sum_of_bits(jnp.linspace(f(0.1), f(5.3), 41, endpoint=False)) == 44004397185
    with hloom.enable_x64(True):
        assert _sum_of_bits(jnp.linspace(-1.3, 2.7, 100)) == 764911667852743001957


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("dtype", [None, jnp.float16, jnp.bfloat16, jnp.int32, jnp.complex64])
@pytest.mark.parametrize(("start", "stop"), [(1, 7.5), (np.array([1, 2]), 5), (0.5, np.arange(3.0)), (1, 2)])
@pytest.mark.parametrize("count", [0, 1, 2, 9, 500])
def test_types_and_values(start: Any, stop: Any, count: int, dtype: Any) -> None:
    for endpoint in (True, False):
        found, step = jnp.linspace(start, stop, count, endpoint=endpoint, retstep=True, dtype=dtype, axis=-1)
        with np.errstate(invalid="ignore"):
            wide, width = np.linspace(start, stop, count, endpoint=endpoint, retstep=True, axis=-1)
        if dtype == jnp.int32:
            wide = np.floor(wide)
        assert found.shape == wide.shape and found.dtype == (dtype or jnp.float32)
        small = dtype in (jnp.float16, jnp.bfloat16)
        off = 1 if dtype == jnp.int32 and count == 500 else 0  # the floor of a rounded value
        near = off or (1e-2 if small else 1e-6)
        np.testing.assert_allclose(found.astype(complex), wide, rtol=2e-2 if small else 1e-6, atol=near)
        np.testing.assert_allclose(np.broadcast_to(step, np.shape(width)).astype(complex), width, rtol=1e-2)
        if endpoint and count > 1 and dtype is None:
            np.testing.assert_array_equal(found[..., -1], np.broadcast_to(stop, found.shape[:-1]))


@pytest.mark.usefixtures("evaluator")
def test_the_derivative() -> None:
    w = np.random.default_rng(0).normal(size=40).astype(np.float32)
    t = np.arange(40) / 39
    found = hloom.grad(lambda a, b: (w * jnp.linspace(a, b, 40)).sum(), argnums=(0, 1))(0.3, 1.7)
    np.testing.assert_allclose(found, [(w * (1 - t)).sum(), (w * t).sum()], rtol=1e-5)
    by_rows = hloom.jacfwd(lambda a: jnp.linspace(a, 1.0, 5, endpoint=False))(jnp.array([0.0, 2.0]))
    np.testing.assert_allclose(by_rows, (1 - np.arange(5) / 5)[:, None, None] * np.eye(2), rtol=1e-6)


WRITTEN_OUT = 216
"""Elements for which XLA makes no loop. With more of them, its last bits depend on the length of registers."""


@pytest.mark.skipif(not JAX, reason="needs JAX")
@pytest.mark.parametrize("count", [*range(2, 36), 100, 351])
def test_beside_jax(count: int) -> None:
    import jax.numpy

    rows = np.random.default_rng(count)
    for endpoint in (True, False):
        a, b = (rows.normal(size=2) * 10 ** rows.uniform(-2, 2)).astype(np.float32)
        mine = np.asarray(jnp.linspace(a, b, count, endpoint=endpoint))
        theirs = np.asarray(jax.numpy.linspace(a, b, count, endpoint=endpoint))
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-7 * max(abs(a), abs(b)))
        if count > WRITTEN_OUT and this_machine().register_bytes != 32:
            continue
        differ = np.nonzero(mine != theirs)[0]
        assert differ.tolist() in ([], [1]) and (count < 36 or not differ.size)  # see `_between`
