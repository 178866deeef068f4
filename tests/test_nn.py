"""hloom.nn against jax.nn, where JAX is installed, and against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

X = np.concatenate([np.linspace(-9, 9, 37), [0.0, 100.0, -100.0]]).astype(np.float32)
M = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32) * 3
P = M > -2

FUNCTIONS = [
    *("relu", "relu6", "sigmoid", "softplus", "soft_sign", "silu", "swish", "mish", "log_sigmoid", "leaky_relu", "elu"),
    *("celu", "selu", "gelu", "hard_tanh", "hard_sigmoid", "hard_silu", "squareplus", "tanh", "identity"),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_activations_are_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    expected = np.asarray(getattr(jax.nn, name)(X))
    for found in (getattr(nn, name)(jnp.asarray(X)), hloom.jit(getattr(nn, name))(X)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5, atol=1e-6)
        assert found.dtype == np.float32


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("hard_tanh", "relu6", "hard_sigmoid", "hard_silu")])
def test_derivatives_are_those_of_jax(name: str) -> None:
    """Also at the corner and where exp overflows."""
    jax = pytest.importorskip("jax")
    expected = np.asarray(jax.vmap(jax.grad(getattr(jax.nn, name)))(X))
    found = hloom.grad(lambda x: getattr(nn, name)(x).sum())(jnp.asarray(X))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda ns, x: ns.softmax(x),
        lambda ns, x: ns.softmax(x, axis=0),
        lambda ns, x: ns.softmax(x, axis=(0, 1)),
        lambda ns, x: ns.softmax(x, where=P),
        lambda ns, x: ns.log_softmax(x * 50),
        lambda ns, x: ns.log_softmax(x, axis=0),
        lambda ns, x: ns.logsumexp(x * 40, axis=1),
        lambda ns, x: ns.logsumexp(x),
        lambda ns, x: ns.logsumexp(x, axis=0, keepdims=True, b=x * x),
        lambda ns, x: ns.standardize(x),
        lambda ns, x: ns.standardize(x, axis=0, epsilon=0.1),
        lambda ns, x: ns.glu(x),
        lambda ns, x: ns.gelu(x, approximate=False),
    ],
)
def test_normalisations_are_those_of_jax(call: Any) -> None:
    jax = pytest.importorskip("jax")
    expected = np.asarray(call(jax.nn, jax.numpy.asarray(M)))
    for found in (call(nn, jnp.asarray(M)), hloom.jit(lambda x: call(nn, x))(M)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=3e-5, atol=3e-6)


def test_softmax_without_jax() -> None:
    exact = np.exp(M.astype(np.float64))
    exact /= exact.sum(1, keepdims=True)
    np.testing.assert_allclose(np.asarray(nn.softmax(M)), exact, rtol=1e-5)
    assert np.asarray(nn.softmax(jnp.asarray([-np.inf, 0.0]))).tolist() == [0, 1]
    assert nn.softmax(M.astype(np.float16)).dtype == np.float16


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_one_hot(axis: int, dtype: Any) -> None:
    labels = np.array([[0, 2], [1, 5], [-1, 3]], np.int32)
    found = np.asarray(nn.one_hot(labels, 4, dtype=dtype, axis=axis))
    expected = np.moveaxis(labels[..., None] == np.arange(4), -1, axis)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="odd size"):
        nn.glu(jnp.ones(3))
    with pytest.raises(ValueError, match="out of bounds"):
        nn.softmax(jnp.ones(3), axis=2)
