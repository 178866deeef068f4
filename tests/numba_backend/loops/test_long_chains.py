"""Chains of long functions in stages: which loops are, the same bits, and nothing beyond the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.numba_backend import emitted_kernel
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops import long_chains

import hloom
import hloom.numpy as jnp
from support.guarded import GuardedProgram

CHAINS: dict[str, tuple[Callable[..., Any], int]] = {
    # function, stages
    "softplus": (lambda x, y: jnp.log1p(jnp.exp(-abs(x))) * y, 2),
    "side by side": (lambda x, y: jnp.exp(x) + jnp.sin(y), 0),
    "one": (lambda x, y: jnp.tanh(x * y) - y, 0),
    "two results": (lambda x, y: ((z := jnp.tanh(jnp.sin(x))), jnp.exp(z * y) + z), 3),
    "early and late": (lambda x, y: jnp.sin(x) * jnp.exp(jnp.log(abs(y)) + jnp.cos(x)) + jnp.sqrt(abs(x)), 2),
    "a test between stages": (lambda x, y: jnp.where(x > y, jnp.exp(jnp.sin(x)), jnp.cos(y)), 2),
    "three": (lambda x, y: jnp.exp(jnp.sin(jnp.log(x * x + 1))) / y, 3),
}


@pytest.fixture
def short_kernels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitted_kernel, "IN_STAGES", 0.0)


def _values(size: int, dtype: str, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(size).astype(dtype)
    some = values[:: max(size // 7, 1)]
    some[:] = np.resize([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 80.0], some.size)
    return values


def _bits(values: Any) -> np.ndarray:
    """All NaN are one: which one an operation gives depends on the order of its operands in an instruction."""
    values = np.asarray(values)
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(np.uint8)


@pytest.mark.usefixtures("short_kernels_too")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHAINS)
def test_results_are_the_same_bits(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, stages = CHAINS[name]
    for size in (2, 7, 255, 256, 257, 1000):
        given = [_values(size, dtype, seed) for seed in (1, 2)]
        with hloom.enable_x64(dtype == "float64"):
            module = parse(hloom.jit(function).lower(*given).as_text())
        text = "".join(NumbaCompiler().compile(module).kernels().values())
        assert text.count("for j0 in range(some0)") == stages
        results = [GuardedProgram(module, at_end=at_end, pattern=0xFF).run(given) for at_end in (True, False)]
        with monkeypatch.context() as patch:
            patch.setattr(emitted_kernel, "IN_STAGES", float("inf"))
            plain = NumbaCompiler().compile(module)
            assert "some0" not in "".join(plain.kernels().values())
            expected = plain.execute(given)
        for found in results:
            for actual, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(_bits(actual), _bits(wanted))


@pytest.mark.usefixtures("short_kernels_too")
def test_a_donated_argument_is_written_over() -> None:
    def f(x: Any) -> Any:
        return jnp.exp(jnp.sin(x)) + x

    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    np.testing.assert_array_equal(hloom.jit(f, donate_argnums=0)(jnp.array(x)), hloom.jit(f)(x))


@pytest.mark.usefixtures("short_kernels_too")
def test_elements_at_loaded_places() -> None:
    """A place is known in the stage in which it was loaded; the element is kept."""
    i = np.random.default_rng(0).integers(0, 50, 600).astype(np.int32)
    x = np.linspace(0.1, 3, 50, dtype=np.float32)

    def f(x: Any, i: Any) -> Any:
        return jnp.exp(jnp.sin(x[i])) * x[i]

    module = parse(hloom.jit(f).lower(x, i).as_text())
    (actual,) = NumbaCompiler().compile(module).execute([x, i])
    np.testing.assert_allclose(actual, np.exp(np.sin(x[i])) * x[i], rtol=1e-5)


@pytest.mark.usefixtures("short_kernels_too")
def test_many_values_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_chains, "MOST_HELD", 1)

    def f(x: Any) -> Any:
        return jnp.exp(jnp.sin(x) + jnp.cos(x))

    x = np.linspace(0.1, 3, 50, dtype=np.float32)
    compiled = NumbaCompiler().compile(parse(hloom.jit(f).lower(x).as_text()))
    assert "some0" not in "".join(compiled.kernels().values())


def test_a_short_kernel_has_no_stages() -> None:
    """They take longer to compile."""
    f = CHAINS["softplus"][0]

    def text(size: int) -> str:
        x = np.ones(size, np.float32)
        return "".join(hloom.jit(f).lower(x, x).compile().kernels().values())

    assert "some0" not in text(1000) and "some0" in text(1_000_000)
