"""Strict promotion, of dtypes and of ranks, is about the arrays of users and not about those inside of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn, random
from hloom.experimental.ode import odeint
from hloom.scipy import special, stats
from hloom.scipy.cluster.vq import vq
from hloom.scipy.optimize import minimize

F, I = np.float32, np.int32  # noqa: E741
X, N, V = np.full((3, 4), 2, F), np.ones((3, 4), I), np.ones(4, F)
Z = X.astype(np.complex64)
KEY = np.array([0, 7], np.uint32)

ACCEPTED: dict[str, Callable[[], Any]] = {
    "logsumexp": lambda: special.logsumexp(jnp.asarray(Z), return_sign=True),
    "logsumexp with weights": lambda: special.logsumexp(jnp.asarray(X), b=jnp.asarray(N)),
    "multigammaln": lambda: special.multigammaln(jnp.asarray(X) + 5, 3),
    "bessel_jn": lambda: special.bessel_jn(jnp.asarray(V), v=2),
    "vq": lambda: vq(jnp.asarray(X), jnp.asarray(X[:2])),
    "norm.logpdf": lambda: stats.norm.logpdf(jnp.asarray(X)),
    "categorical": lambda: random.categorical(KEY, jnp.asarray(V), shape=(5,)),
    "multivariate_normal": lambda: random.multivariate_normal(KEY, jnp.asarray(V), jnp.eye(4), shape=(5,)),
    "initializer": lambda: nn.initializers.normal(jnp.float32(1), jnp.bfloat16)(KEY, (2, 2)),
    "attention": lambda: nn.dot_product_attention(*[jnp.ones((2, 3, 1, 4))] * 3, is_causal=True, local_window_size=1),
    "minimize": lambda: minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(3), method="BFGS"),
    "odeint": lambda: odeint(lambda y, t: -y, jnp.float32(1), jnp.array([0.0, 1.0])),
}

REFUSED: dict[str, Callable[[], Any]] = {
    "operator": lambda: jnp.asarray(X) + jnp.asarray(N),
    "operator on ranks": lambda: jnp.asarray(X) + jnp.asarray(V),
    "where": lambda: jnp.where(jnp.asarray(X) > 0, jnp.asarray(X), jnp.asarray(N)),
    "hypot": lambda: jnp.hypot(jnp.asarray(X), jnp.asarray(V)),
    "logaddexp": lambda: jnp.logaddexp(jnp.asarray(X), jnp.asarray(N)),
    "concatenate": lambda: jnp.concatenate([jnp.asarray(X), jnp.asarray(N)]),
    "xlogy": lambda: special.xlogy(jnp.asarray(X), jnp.asarray(N)),
    "xlogy of ranks": lambda: special.xlogy(jnp.asarray(X), jnp.asarray(V)),
    "norm.logpdf": lambda: stats.norm.logpdf(jnp.asarray(X), jnp.asarray(N)),
    "norm.logpdf of ranks": lambda: stats.norm.logpdf(jnp.asarray(X), jnp.asarray(V)),
    "a user's function": lambda: minimize(lambda x: jnp.sum((x - 1) * jnp.arange(3)), jnp.zeros(3), method="BFGS"),
}


@pytest.mark.parametrize("how", ["called", "jit"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_library_does_inside_is_not_checked(name: str, how: str) -> None:
    call = ACCEPTED[name]
    expected = hloom.tree.leaves(call())
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        found = hloom.tree.leaves(call() if how == "called" else hloom.jit(call)())
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a).astype(np.complex64), np.asarray(b).astype(np.complex64), rtol=1e-4)


@pytest.mark.parametrize("how", ["called", "jit"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_users_hand_over_is_checked(name: str, how: str) -> None:
    call = REFUSED[name]
    call()
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        for _ in range(2):  # what was refused once is not remembered as a program
            with pytest.raises((ValueError, TypeError), match=r"strict promotion|rank_promotion"):
                call() if how == "called" else hloom.jit(call)()
    call()
