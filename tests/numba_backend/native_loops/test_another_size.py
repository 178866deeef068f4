"""A loop at another size: the kernels in it are not written anew, and the results are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Call, Load, Name, Number
from hloom.numba_backend.native_loops import emit

import hloom
import hloom.numpy as jnp


def _loss(x: Any) -> Any:
    """Oscillators, each with a spring to the one before."""

    def step(x: Any, _: Any) -> Any:
        slope = jnp.stack([x[1], -jnp.sin(x[0]) + 0.3 * (jnp.roll(x[0], 1) - x[0])])
        return x + 0.01 * slope, x[0].sum()

    return (hloom.lax.scan(step, x, None, length=20)[1] ** 2).mean()


def _array(size: int) -> Any:
    return np.random.default_rng(size).standard_normal((2, size)).astype(np.float32)


def test_kernels_of_a_loop_are_written_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []

    class Counting(emit.Substitution):
        def __init__(self, *given: Any) -> None:
            written.append(given)
            super().__init__(*given)

    monkeypatch.setattr(emit, "Substitution", Counting)
    emit._written.clear()
    step = hloom.jit(hloom.grad(_loss))
    texts = []
    for size in (100, 130, 150):
        before = len(written)
        x = _array(size)
        compiled = step.lower(x).compile()
        assert bool(len(written) - before) == (size == 100)
        with hloom.disable_jit():
            expected = hloom.grad(_loss)(x)
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-6)
        texts.append({str(text).partition("def ")[2] for text in compiled.kernels().values()})
    assert texts[0] == texts[1] == texts[2]


def test_a_kernel_is_written_with_its_own_memory_and_literals() -> None:
    """Small sizes are literals, and arrays of so many elements are local; types are not in the text of a kernel."""
    for size, dtype in ((3, np.float32), (5, np.float32), (5, np.float64), (100, np.float64), (5, np.float32)):
        x = _array(size).astype(dtype)
        with hloom.enable_x64():
            given = hloom.jit(hloom.grad(_loss))(x)
            with hloom.disable_jit():
                expected = hloom.grad(_loss)(x)
        assert given.dtype == dtype
        np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-6)


def test_names_and_loads_of_an_expression() -> None:
    a, b, x = Name("a"), Name("b"), Name("x", "float32*")
    inner = Load(Name("table", "int64*"), a + 1)
    e = Call("add", (Load(x, inner + b), Load(x, a)))
    assert sorted(e.names) == ["a", "a", "b", "table", "x", "x"]
    assert sorted(load.text for load in e.loads) == ["table[a + 1]", "x[a]", "x[table[a + 1] + b]"]
    assert e.reads("b")
    assert not e.reads("c")
    assert (a.names, a.loads, Number(1).names) == (("a",), (), ())
