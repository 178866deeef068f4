"""numpy.vectorize against numpy.vectorize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "fun, signature, args",
    [
        (lambda x: x * x + 1, None, (A,)),
        (lambda x, y: x - y, None, (A, A[0, 0])),
        (lambda x, y: x - y, None, (A[:, :1], A[0])),
        (lambda x: x.sum(), "(n)->()", (A,)),
        (lambda x, y: x @ y, "(m,n),(n)->(m)", (A, A[:, 0])),
        (lambda x, y: x @ y, "(m,n),(n)->(m)", (A[0], A[:, 0])),
        (lambda x, y: x @ y, "(n),(n)->()", (A[:, None, 0], A[0])),
        (lambda x: (x.sum(), x * 2), "(n)->(),(n)", (A,)),
        (lambda x, y: x + y, "(),(3)->(3)", (A[0, :, 0], A[0, :3, 0])),
        (lambda x, y: x + y, "(),()->()", (A[:, :, :1], A[:1])),
    ],
)
def test_against_numpy(fun: Any, signature: str | None, args: tuple[np.ndarray, ...]) -> None:
    expected = np.vectorize(fun, signature=signature)(*args)
    vectorized = jnp.vectorize(fun, signature=signature)
    for found in (vectorized(*args), hloom.jit(vectorized)(*args)):
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for got, wanted in pairs:
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_excluded_arguments() -> None:
    fun = jnp.vectorize(lambda n, x, scale: x[:n].sum() * scale, excluded={0, "scale"}, signature="(k)->()")
    np.testing.assert_allclose(fun(2, A, scale=3.0), A[..., :2].sum(-1) * 3)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.vectorize(lambda x: x, signature="(n->()"), ValueError, "not a valid gufunc signature"),
        (lambda: jnp.vectorize(lambda x: x, signature="(n)->()")(1.0), ValueError, "does not have enough dimensions"),
        (lambda: jnp.vectorize(lambda x: x, signature="(n)->()")(A), ValueError, "does not match core dimensions"),
        (lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->()")(A, A[..., :2]), ValueError, "inconsistent"),
        (lambda: jnp.vectorize(lambda x: x, signature="(),()->()")(1.0), TypeError, "wrong number of positional"),
        (lambda: jnp.vectorize(lambda x: x, excluded={1.5}), TypeError, "can only exclude integer or string"),
        (lambda: jnp.vectorize(lambda x: x, excluded={-1}), ValueError, "negative"),
        (lambda: jnp.vectorize(lambda x: x)(x=1.0), ValueError, "keyword arguments"),
        (lambda: jnp.vectorize(jnp.add)(A, A[:, :2]), ValueError, "shapes"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
