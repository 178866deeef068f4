"""Random functions under random stacks of transformations: against JAX where it is installed, and against the same
functions that are neither compiled nor batched."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, seed, settings

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.random_transformations import COSTLY, SIZE, STEPS, TRANSFORMATIONS, Build

HERE = Build(hloom, jnp, lax)
REFERENCE = Build(hloom, jnp, lax, is_reference=True)
POINTS = np.random.default_rng(7).uniform(-1.2, 1.2, (8, SIZE))
CHUNKS = 8
MANY = 400


def stacks(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(TRANSFORMATIONS), min_size=1, max_size=most).filter(
        lambda names: sum(name in COSTLY for name in names) <= 2
    )


steps = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)


def with_jax() -> Build | None:
    if find_spec("jax") is None:
        return None
    import jax
    import jax.numpy

    return Build(jax, jax.numpy, jax.lax)


def check(names: Sequence[str], stack: Sequence[str], point: np.ndarray[Any, Any]) -> None:
    with hloom.enable_x64():
        found = np.asarray(HERE.function(names, stack)(jnp.asarray(point)))
        expected = np.asarray(REFERENCE.function(names, stack)(jnp.asarray(point)))
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * scale)
    other = with_jax()
    if other is not None:
        with other.library.enable_x64():
            theirs = np.asarray(other.function(names, stack)(other.numpy.asarray(point)))
        np.testing.assert_allclose(found, theirs, rtol=1e-8, atol=1e-9 * scale)


@given(steps, stacks(3), st.integers(0, len(POINTS) - 1))
@settings(max_examples=30, suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_a_few(names: list[str], stack: list[str], point: int) -> None:
    check(names, stack, POINTS[point])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_many(chunk: int) -> None:
    @seed(chunk)
    @given(steps, stacks(4), st.integers(0, len(POINTS) - 1))
    @settings(max_examples=MANY // CHUNKS, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    def run(names: list[str], stack: list[str], point: int) -> None:
        check(names, stack, POINTS[point])

    run()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_derivatives(name: str) -> None:
    check([name], ["grad", "vmap", "grad", "jit"], POINTS[0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_every_transformation_nests_in_itself(name: str) -> None:
    check(["sin", "scan"], [name, name], POINTS[1])


def test_the_reference_is_neither_compiled_nor_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("used")

    for name in ("jit", "vmap", "checkpoint"):
        monkeypatch.setattr(hloom, name, refuse)
    for name in ("jit", "vmap", "vmap_columns", "checkpoint"):
        REFERENCE.function(STEPS, [name])(jnp.asarray(POINTS[0]))
        with pytest.raises(AssertionError, match="used"):
            HERE.function(["sin"], [name])(jnp.asarray(POINTS[0]))
