"""hloom.nn against jax.nn, where JAX is installed, and against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn
from hloom.nn.scaled import quantize
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


def test_one_hot_of_what_is_no_array_of_integers() -> None:
    assert np.asarray(nn.one_hot([0, 2], 3)).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.warns(DeprecationWarning, match="one_hot input should be integer-typed"):
        nn.one_hot(jnp.array([1.0]), 3)
    with pytest.raises(hloom.errors.ConcretizationTypeError, match=r"in jax\.nn\.one_hot argument `num_classes`"):
        hloom.jit(nn.one_hot)(3, 5)


def test_exact_gelu_has_tails() -> None:
    """x Phi(x), where 1 + erf is 0."""
    expected = [-1.01572957e-18, -1.07232904e-8, 2.99595031]
    np.testing.assert_allclose(nn.gelu(jnp.array([-9.0, -5.9, 3.0]), approximate=False), expected, rtol=2e-5)


# ---- products with scales


def test_scaled_matmul_is_the_product_of_scaled_blocks() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, (2, 3, 8)), rng.integers(-4, 5, (2, 5, 8))
    a_scales, b_scales = 2.0 ** rng.integers(-2, 3, (2, 3, 2)), 2.0 ** rng.integers(-2, 3, (2, 5, 2))
    expected = np.einsum("bmk,bnk->bmn", a * np.repeat(a_scales, 4, -1), b * np.repeat(b_scales, 4, -1))
    given = [jnp.asarray(a).astype(jnp.float8_e4m3fn), jnp.asarray(b).astype(jnp.float8_e5m2)]
    scales = [jnp.asarray(s).astype(jnp.float8_e8m0fnu) for s in (a_scales, b_scales)]
    np.testing.assert_array_equal(nn.scaled_matmul(*given, *scales), expected)
    assert nn.scaled_matmul(*given, *scales, preferred_element_type=jnp.bfloat16).dtype == jnp.bfloat16


MODES = ["mxfp8", "nvfp4"]
NUMBERS = (((2,), (1,)), ((0,), (0,)))


@pytest.mark.parametrize("mode", MODES)
def test_scaled_dot_general_is_near_the_exact_one_and_so_are_its_derivatives(mode: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 32, 64)).astype(np.float32), rng.normal(size=(2, 64, 32)).astype(np.float32)
    formats = [nn.get_scaled_dot_general_config(mode)] * 3
    rounded = lambda a, b: nn.scaled_dot_general(a, b, NUMBERS, configs=formats)  # noqa: E731
    exact = lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b)  # noqa: E731
    tolerance = 0.05 if mode == "mxfp8" else 0.2
    for f, g in ((rounded, exact), *(
        (hloom.grad(lambda *x: (rounded(*x) * C).sum(), k), hloom.grad(lambda *x: (exact(*x) * C).sum(), k))
        for k in (0, 1)
    )):  # fmt: skip
        found, expected = np.asarray(f(a, b)), np.asarray(g(a, b))
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert error < tolerance
    assert np.linalg.norm(np.asarray(rounded(a, b) - exact(a, b))) > 1e-3  # it does round
    np.testing.assert_array_equal(hloom.jit(hloom.vmap(rounded))(a[None], b[None])[0], rounded(a, b))


C = np.cos(np.arange(2 * 32 * 32, dtype=np.float32)).reshape(2, 32, 32)


@pytest.mark.parametrize(("mode", "scale"), [("mxfp8", 1.0), ("mxfp8", 1e-30), ("nvfp4", 1.0), ("nvfp4", 1e4)])
def test_rounding_is_that_of_jax(mode: str, scale: float) -> None:
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax._src.cudnn.scaled_matmul_stablehlo").quantize
    x = (np.random.default_rng(0).standard_normal((2, 5, 64)) * scale).astype(np.float32)
    found = quantize(jnp.asarray(x), nn.get_scaled_dot_general_config(mode))
    expected = theirs(jax.numpy.asarray(x), jax.nn.get_scaled_dot_general_config(mode))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32))


def test_rounding_of_zeros_and_what_is_refused() -> None:
    formats = [nn.get_scaled_dot_general_config("nvfp4")] * 3
    zeros, ones = jnp.zeros((1, 1, 16)), jnp.ones((1, 16, 1))
    assert nn.scaled_dot_general(zeros, ones, NUMBERS, configs=formats).tolist() == [[[0.0]]]
    with pytest.raises(ValueError, match="blocks of 16"):
        nn.scaled_dot_general(zeros[..., :3], ones[:, :3], NUMBERS, configs=formats)
    with pytest.raises(TypeError, match="preferred_element_type"):
        nn.scaled_dot_general(zeros, ones, NUMBERS, np.int32, configs=formats)
    with pytest.raises(ValueError, match="Unsupported mode"):
        nn.get_scaled_dot_general_config("int3")
    with pytest.raises(ValueError, match="contract"):
        nn.scaled_matmul(zeros, zeros[..., :8], zeros, zeros)
