"""The order of a fusion's outputs depends on how they are computed, not on which one the program needs first."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp


def _values(x: Any, y: Any) -> dict[str, Any]:
    """As in a normalisation with its derivative: several values of each element, and two of each row."""
    centred = x - x.mean(1, keepdims=True)
    variance = (centred * centred).mean(1) + 1e-5
    scaled = centred * hloom.lax.rsqrt(variance)[:, None] + y
    return {
        "positive": scaled > 0, "active": jnp.maximum(scaled, 0), "twice": centred + centred, "centred": centred,
        "inverse": hloom.lax.rsqrt(variance),
    }  # fmt: skip


def _program(names: tuple[str, ...], size: int) -> tuple[set[str], dict[str, np.ndarray]]:
    """The kernels of a program that returns the values in this order, and its results."""
    x, y = (np.random.default_rng(seed).standard_normal((size, 50)).astype(np.float32) for seed in (1, 2))
    compiled = hloom.jit(lambda x, y: [_values(x, y)[name] for name in names]).lower(x, y).compile()
    texts = {str(text).partition("def ")[2] for text in compiled.kernels().values()}
    return texts, dict(zip(names, map(np.asarray, compiled(x, y)), strict=True))


ORDERS = list(itertools.permutations(("positive", "active", "twice", "centred", "inverse")))


def test_programs_that_need_them_in_other_orders_have_equal_kernels() -> None:
    kernels, expected = _program(ORDERS[0], 200)
    assert len(kernels) == 1
    for names in ORDERS[1::7]:
        found, results = _program(names, 300 if names[0] == "centred" else 200)
        assert found == kernels
        if names[0] != "centred":
            for name, value in results.items():
                np.testing.assert_array_equal(value, expected[name])



def test_results_are_those_of_the_program() -> None:
    for names in ORDERS[::17]:
        x, y = (np.random.default_rng(seed).standard_normal((20, 50)).astype(np.float32) for seed in (1, 2))
        _, results = _program(names, 20)
        with hloom.disable_jit():
            expected = _values(x, y)
        for name in names:
            np.testing.assert_allclose(results[name], expected[name], rtol=1e-4, atol=1e-6)
