"""nn.dot_product_attention against NumPy, the small functions of nn beside it, orthogonal initializers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn, random
from hloom.test_util import check_grads

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 5, 6, 4, 2, 3
Q, KEYS, V = (RNG.normal(size=s).astype(np.float32) for s in ((B, T, N, H), (B, S, K, H), (B, S, K, H)))
BIAS = RNG.normal(size=(B, N, T, S)).astype(np.float32)
MASK = RNG.random((B, 1, T, S)) > 0.3
OF_Q, OF_K = np.arange(T)[:, None], np.arange(S)[None, :]
LENGTHS = np.array([3, 5], np.int32)
OPTIONS: dict[str, tuple[dict[str, Any], Any]] = {
    "plain": ({}, True),
    "bias": ({"bias": BIAS}, True),
    "mask": ({"mask": MASK}, MASK),
    "causal": ({"is_causal": True}, OF_K <= OF_Q),
    "window": ({"local_window_size": 2}, abs(OF_K - OF_Q) <= 2),
    "left window": ({"local_window_size": (1, 0)}, (OF_Q <= OF_K + 1) & (OF_Q >= OF_K)),
    "lengths of keys": ({"key_value_seq_lengths": LENGTHS}, LENGTHS[:, None, None, None] > OF_K),
}


def attention(q: Any, k: Any, v: Any, bias: Any, seen: Any) -> Any:
    """In float64, one head after the other."""
    result = np.zeros((B, T, N, H))
    seen = np.broadcast_to(seen, (B, N, T, S))
    for b in range(B):
        for n in range(N):
            keys, values = k[b, :, n // (N // K)].astype(float), v[b, :, n // (N // K)]
            scores = q[b, :, n] @ keys.T / math.sqrt(H) + (0 if bias is None else bias[b, n])
            weights = np.where(seen[b, n], np.exp(scores), 0)
            result[b, :, n] = weights / weights.sum(-1, keepdims=True).clip(1e-300) @ values
    return result


@pytest.mark.parametrize("name", OPTIONS)
def test_attention(name: str) -> None:
    options, seen = OPTIONS[name]
    found, residual = nn.dot_product_attention(Q, KEYS, V, **options, return_residual=True)
    rows = np.broadcast_to(seen, (B, N, T, S)).any(-1)[:, :, :, None].transpose(0, 2, 1, 3)  # that see a key
    expected = attention(Q, KEYS, V, options.get("bias"), seen)
    np.testing.assert_allclose(np.asarray(found) * rows, expected * rows, rtol=1e-5, atol=1e-5)
    assert residual.shape == (B, T, N)
    compiled = hloom.jit(lambda *a: nn.dot_product_attention(*a, **options))(Q, KEYS, V)
    np.testing.assert_allclose(np.asarray(compiled), np.asarray(found), rtol=1e-5, atol=1e-6)


def test_attention_of_other_forms() -> None:
    whole = np.asarray(nn.dot_product_attention(Q, KEYS, V))
    np.testing.assert_allclose(np.asarray(nn.dot_product_attention(Q[0], KEYS[0], V[0])), whole[0], rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(hloom.vmap(nn.dot_product_attention)(Q, KEYS, V)), whole, rtol=1e-5, atol=1e-6
    )
    short = np.asarray(nn.dot_product_attention(Q, KEYS, V, query_seq_lengths=LENGTHS))
    np.testing.assert_allclose(short[0, :3], whole[0, :3], rtol=1e-5)
    assert not short[0, 3:].any()
    half = nn.dot_product_attention(*(jnp.asarray(x, "bfloat16") for x in (Q, KEYS, V)))
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(half, np.float32), whole, atol=0.05)
    check_grads(
        lambda *a: nn.dot_product_attention(*a, is_causal=True),
        (Q, KEYS, V),
        order=1,
        modes=["rev"],
        atol=0.02,
        rtol=0.02,
    )


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "heads": (lambda: nn.dot_product_attention(Q[:, :, :3], KEYS, V), ValueError, "heads, but got 3 vs 2"),
    "value": (lambda: nn.dot_product_attention(Q, KEYS, V[:, :3]), ValueError, "value shape should be"),
    "dtype": (lambda: nn.dot_product_attention(Q.astype(np.float16), KEYS, V), ValueError, "query dtype should be"),
    "mask": (lambda: nn.dot_product_attention(Q, KEYS, V, mask=BIAS), ValueError, "mask dtype should be bool"),
    "cudnn": (lambda: nn.dot_product_attention(Q, KEYS, V, implementation="cudnn"), NotImplementedError, "cuDNN"),
    "other": (lambda: nn.dot_product_attention(Q, KEYS, V, implementation="mine"), ValueError, "Unsupported"),  # type: ignore[arg-type]
    "delta of a matrix": (
        lambda: nn.initializers.delta_orthogonal()(random.key(0), (2, 3)), ValueError, "3D, 4D or 5D",
    ),
    "delta": (lambda: nn.initializers.delta_orthogonal()(random.key(0), (3, 4, 3)), ValueError, "fan_in"),
    "orthogonal": (lambda: nn.initializers.orthogonal()(random.key(0), (3,)), ValueError, "at least a 2D"),
    "one_hot": (
        lambda: hloom.vmap(lambda x: nn.one_hot(x, 4, axis="i"), axis_name="i")(jnp.arange(3)), ValueError, "4 != 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_small_functions() -> None:
    x = np.array([-3, -1, -0.5, 0, 0.3, 0.69, 0.7, 1, 2, 40], np.float32)
    y = x.astype(np.float64)
    middle = np.where(abs(y) < 1, (y + 1) ** 2 / 4, np.maximum(y, 0))
    np.testing.assert_allclose(np.asarray(nn.sparse_plus(x)), middle, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(nn.sparse_sigmoid(x)), np.clip((y + 1) / 2, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(nn.log1mexp(x[4:])), np.log(-np.expm1(-y[4:])), rtol=1e-5, atol=1e-12)
    slope = hloom.vmap(hloom.grad(nn.log1mexp))(x[4:])
    np.testing.assert_allclose(np.asarray(slope), 1 / np.expm1(y[4:]), rtol=1e-5)
    m = RNG.normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(nn.logmeanexp(m, 1)), np.log(np.exp(m).mean(1)), rtol=1e-5)
    some = np.asarray(nn.logmeanexp(m, where=m > 0))
    np.testing.assert_allclose(some, np.log(np.exp(m[m > 0]).mean()), rtol=1e-5)
    own = hloom.vmap(lambda x: nn.one_hot(x, 3, axis="i"), axis_name="i")(jnp.array([0, 2, 2]))
    assert np.asarray(own).tolist() == [1, 0, 1]


def test_orthogonal_initializers() -> None:
    key, initializers = random.key(0), nn.initializers
    q = np.asarray(initializers.orthogonal(2.0)(key, (3, 2, 4)))
    np.testing.assert_allclose(q.reshape(6, 4).T @ q.reshape(6, 4), 4 * np.eye(4), atol=1e-5)
    kernel = np.asarray(initializers.delta_orthogonal()(key, (3, 3, 2, 4)))
    np.testing.assert_allclose(kernel[1, 1] @ kernel[1, 1].T, np.eye(2), atol=1e-5)
    assert np.count_nonzero(kernel) == np.count_nonzero(kernel[1, 1])
    assert initializers.orthogonal()(key, (0, 3)).shape == (0, 3)
    geometric = np.asarray(initializers.variance_scaling(1.0, "fan_geo_avg", "normal")(key, (100, 400)))
    assert abs(geometric.var() * 200 - 1) < 0.05
    assert initializers.variance_scaling(1.0, "fan_in", "uniform", in_axis=0, out_axis=0)(key, (3,)).shape == (3,)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, jnp.bfloat16])
def test_the_scale_of_weights_is_rounded_in_their_type(dtype: Any) -> None:
    """As JAX does it: one rounding at the end would change the last bit of most weights."""
    key, number = random.key(0), np.dtype(dtype).type
    weights = nn.initializers.he_uniform(dtype=dtype)(key, (5, 17))
    factor = np.sqrt(number(3) * number(2 / 5))
    np.testing.assert_array_equal(weights, random.uniform(key, (5, 17), dtype, -1) * factor)
    weights = nn.initializers.lecun_normal(dtype=dtype)(key, (10, 10))
    factor = np.sqrt(number(1 / 10)) / number(0.87962566103423978)
    np.testing.assert_array_equal(weights, random.truncated_normal(key, -2, 2, (10, 10), dtype) * factor)
