"""Gradients of users' code in hloom.numpy, lax and nn, against JAX's: the same expression with other imports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import config, grad, jit, lax, nn

jax = pytest.importorskip("jax")

X = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

EXPRESSIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "tanh-dot": lambda x, n, lx, nn: n.sum(n.tanh(x) @ x.T),
    "mean-square": lambda x, n, lx, nn: n.mean(x**2),
    "var": lambda x, n, lx, nn: n.var(x),
    "std": lambda x, n, lx, nn: n.std(x, axis=1).sum(),
    "max": lambda x, n, lx, nn: n.max(x),
    "min": lambda x, n, lx, nn: n.min(x, axis=0).sum(),
    "prod": lambda x, n, lx, nn: n.prod(x, axis=1).sum(),
    "norm": lambda x, n, lx, nn: n.linalg.norm(x),
    "logaddexp": lambda x, n, lx, nn: n.logaddexp(x, x.sum()).sum(),
    "where": lambda x, n, lx, nn: n.where(x > 0, x, n.exp(x)).sum(),
    "maximum": lambda x, n, lx, nn: n.maximum(x, 0.0).sum(),
    "clip": lambda x, n, lx, nn: n.clip(x, -0.5, 0.5).sum(),
    "strided-slice": lambda x, n, lx, nn: (x[1:3, ::2] ** 2).sum(),
    "elements": lambda x, n, lx, nn: x[0, 1] * x[2, 3],
    "concatenate": lambda x, n, lx, nn: n.concatenate([x, x * 2], 0).sum(),
    "pad": lambda x, n, lx, nn: (n.pad(x, 1) ** 2).sum(),
    "cumsum": lambda x, n, lx, nn: (n.cumsum(x, 0) ** 2).sum(),
    "einsum": lambda x, n, lx, nn: n.einsum("ij,kj->ik", x, n.sin(x)).sum(),
    "sqrt-abs": lambda x, n, lx, nn: n.sqrt(n.abs(x)).sum(),
    "power": lambda x, n, lx, nn: n.power(n.abs(x), 2.5).sum(),
    "cube": lambda x, n, lx, nn: (x**3).sum(),
    "reverse": lambda x, n, lx, nn: (n.sin(x).reshape(-1)[::-1] * x.reshape(-1)).sum(),
    "outer": lambda x, n, lx, nn: n.outer(x[0], x[1]).sum(),
    "softmax": lambda x, n, lx, nn: nn.softmax(x).max(),
    "log-softmax": lambda x, n, lx, nn: nn.log_softmax(x)[0, 0],
    "gelu": lambda x, n, lx, nn: nn.gelu(x).sum(),
    "sigmoid": lambda x, n, lx, nn: nn.sigmoid(x).sum(),
    "relu": lambda x, n, lx, nn: nn.relu(x - x[0, 0]).sum(),
    "softplus": lambda x, n, lx, nn: nn.softplus(x).sum(),
    "elu": lambda x, n, lx, nn: nn.elu(x).sum(),
    "arctan2": lambda x, n, lx, nn: n.arctan2(x, x + 3).sum(),
    "broadcast": lambda x, n, lx, nn: (n.broadcast_to(x[0], (3, 5)) * x[:3]).sum(),
    "roll": lambda x, n, lx, nn: (n.roll(x, 1) * x).sum(),
    "tril": lambda x, n, lx, nn: (n.tril(x[:4, :4]) ** 2).sum(),
    "mod": lambda x, n, lx, nn: n.mod(x, 0.7).sum(),
    "dynamic-slice": lambda x, n, lx, nn: (lx.dynamic_slice(x, (1, 1), (2, 2)) ** 2).sum(),
    "dynamic-update": lambda x, n, lx, nn: (lx.dynamic_update_slice(x, x[:2, :2] * 2, (1, 1)) ** 2).sum(),
    "at-set": lambda x, n, lx, nn: (x.at[1, 2].set(x[0, 0]) ** 2).sum(),
    "at-add": lambda x, n, lx, nn: (x.at[0].add(x[1]) ** 2).sum(),
    "fori": lambda x, n, lx, nn: lx.fori_loop(0, 3, lambda i, c: n.sin(c) * x[0, i], x[0]).sum(),
    "scan": lambda x, n, lx, nn: lx.scan(lambda c, a: (n.tanh(c + a), c * a), x[0], x)[1].sum(),
    "cond": lambda x, n, lx, nn: lx.cond(x.sum() > 0, lambda a: n.sin(a), lambda a: a * 2, x).sum(),
    "stop-gradient": lambda x, n, lx, nn: (lx.stop_gradient(x) * x).sum(),
    "argmax": lambda x, n, lx, nn: x.reshape(-1)[n.argmax(x)] * x.sum(),
}


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend
    config.update("hloom_backend", "evaluator")
    yield
    config.update("hloom_backend", before)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_gradient(name: str) -> None:
    f = EXPRESSIONS[name]
    expected = np.asarray(jax.jit(jax.grad(lambda x: f(x, jax.numpy, jax.lax, jax.nn)))(X))
    gradient = grad(lambda x: f(x, jnp, lax, nn))
    for found in (gradient(X), jit(gradient)(X)):
        assert isinstance(found, hloom.Array)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)
