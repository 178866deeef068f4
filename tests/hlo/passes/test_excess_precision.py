"""The option that lets kernels keep bf16 and f16 in f32: what changes with it, and that nothing does without."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal(4000) for _ in range(2))
EXCESS = {"xla_allow_excess_precision": True}


def chain(x: Any, y: Any) -> Any:
    return (x * y + x) * y - x


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
def test_each_operation_is_rounded_unless_excess_is_allowed(kind: Any) -> None:
    x, y = jnp.asarray(X.astype(kind)), jnp.asarray(Y.astype(kind))
    step_by_step = np.asarray(chain(x, y)).astype(np.float64)
    exact = chain(X.astype(kind).astype(np.float64), Y.astype(kind).astype(np.float64))
    for options in (None, {"xla_allow_excess_precision": False}):
        compiled = np.asarray(hloom.jit(chain, compiler_options=options)(x, y))
        assert compiled.dtype == kind
        np.testing.assert_array_equal(compiled.astype(np.float64), step_by_step)
    excess = np.asarray(hloom.jit(chain, compiler_options=EXCESS)(x, y))
    assert excess.dtype == kind
    spacing = float(ml_dtypes.finfo(kind).eps)
    size = (abs(X * Y) + abs(X)) * abs(Y) + abs(X)
    assert (abs(excess.astype(np.float64) - exact) <= 0.51 * spacing * abs(exact) + 1e-6 * size).all()
    assert (abs(step_by_step - exact) > 0.51 * spacing * abs(exact) + 1e-6 * size).any()


def test_the_option_belongs_to_the_function_it_is_given_for() -> None:
    """A program with it and one without are different programs; `lower().compile()` takes it too."""
    x, y = (jnp.asarray(v.astype(ml_dtypes.bfloat16)) for v in (X, Y))
    plain, excess = hloom.jit(chain), hloom.jit(chain, compiler_options=EXCESS)
    first = np.asarray(plain(x, y)).astype(np.float32)
    other = np.asarray(excess(x, y)).astype(np.float32)
    assert (first != other).any()
    np.testing.assert_array_equal(np.asarray(plain(x, y)).astype(np.float32), first)
    for compiled in (plain.lower(x, y).compile(EXCESS), excess.lower(x, y).compile()):
        np.testing.assert_array_equal(np.asarray(compiled(x, y)).astype(np.float32), other)
        assert compiled.as_text().count("convert(") == 3
    np.testing.assert_array_equal(np.asarray(plain.lower(x, y).compile()(x, y)).astype(np.float32), first)


def test_conversions_that_the_program_has_go_too() -> None:
    """As XLA documents it; reduce_precision is for programs that want the rounding."""
    def rounded(x: Any) -> Any:
        return x.astype(jnp.bfloat16).astype(jnp.float32) * 3

    x = jnp.asarray(X.astype(np.float32))
    expected = X.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32) * 3
    np.testing.assert_array_equal(np.asarray(hloom.jit(rounded)(x)), expected)
    np.testing.assert_array_equal(np.asarray(hloom.jit(rounded, compiler_options=EXCESS)(x)), X.astype(np.float32) * 3)


def test_special_values() -> None:
    """NaN, infinities, signs of zeros and subnormal numbers are the same as in f32."""
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-39, -1e-39, 3e38, 1.0], ml_dtypes.bfloat16)
    function = hloom.jit(lambda x: -(x + x) * jnp.bfloat16(0.5), compiler_options=EXCESS)
    actual = np.asarray(function(jnp.asarray(values))).astype(np.float32)
    single = values.astype(np.float32)
    with np.errstate(over="ignore"):
        expected = (-(single + single) * np.float32(0.5)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def test_the_option_is_a_bool() -> None:
    with pytest.raises(ValueError, match="'xla_allow_excess_precision' must be a bool, not 1"):
        hloom.jit(chain, compiler_options={"xla_allow_excess_precision": 1})
