"""jacfwd, jacrev and hessian: against formulas, for pytrees, and within jit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hloom.tracer.core import Value
from hloom.tracer.ops import sum_all

from hloom import config, hessian, jacfwd, jacobian, jacrev, jit, lax
from support.grad_check import concrete

X = np.array([0.3, 0.7, 1.1], np.float32)
W = np.arange(6, dtype=np.float32).reshape(2, 3)
BOTH = pytest.mark.parametrize("transform", [jacfwd, jacrev])


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend
    config.update("hloom_backend", "evaluator")
    yield
    config.update("hloom_backend", before)


def f32(value: Any) -> Value:
    return concrete(np.asarray(value, np.float32))


@BOTH
def test_of_an_elementwise_function(transform: Any) -> None:
    np.testing.assert_allclose(transform(lax.sin)(f32(X)), np.diag(np.cos(X)), rtol=1e-6)
    np.testing.assert_allclose(jit(transform(lax.sin))(f32(X)), np.diag(np.cos(X)), rtol=1e-6)


@BOTH
def test_of_pytrees(transform: Any) -> None:
    def f(w: Any, tree: Any) -> Any:
        return {"y": lax.dot(w, tree["x"]), "s": sum_all(lax.mul(tree["x"], tree["x"]))}

    by_w, by_tree = 0, 1
    found = transform(f, argnums=(0, 1))(f32(W), {"x": f32(X)})
    np.testing.assert_allclose(found["y"][by_tree]["x"], W)
    np.testing.assert_allclose(found["y"][by_w], np.einsum("ij,k->ijk", np.eye(2), X))
    np.testing.assert_allclose(found["s"][by_tree]["x"], 2 * X)
    np.testing.assert_array_equal(found["s"][by_w], np.zeros((2, 3)))
    alone = transform(f)(f32(W), {"x": f32(X)})
    np.testing.assert_allclose(alone["y"], found["y"][by_w])


@BOTH
def test_aux_and_holomorphic(transform: Any) -> None:
    found, aux = transform(lambda x: (lax.mul(x, x), "text"), has_aux=True)(f32(X))
    np.testing.assert_allclose(found, np.diag(2 * X))
    assert aux == "text"
    z = concrete(X.astype(np.complex64) * (1 + 1j))
    np.testing.assert_allclose(transform(lax.sin, holomorphic=True)(z), np.diag(np.cos(np.asarray(z))), rtol=1e-5)


def test_hessian() -> None:
    def f(x: Any) -> Value:
        return lax.mul(sum_all(lax.sin(x)), sum_all(lax.mul(x, x)))

    s, c = np.sin(X), np.cos(X)
    expected = np.diag(-s * (X @ X) + 2 * s.sum()) + np.outer(c, 2 * X) + np.outer(2 * X, c)
    np.testing.assert_allclose(hessian(f)(f32(X)), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(hessian(f))(f32(X)), expected, rtol=1e-5)
    np.testing.assert_allclose(jacrev(jacrev(f))(f32(X)), expected, rtol=1e-5)
    np.testing.assert_array_equal(jacobian(jacobian(f))(f32(X)), jacrev(jacrev(f))(f32(X)))


@BOTH
def test_what_is_refused(transform: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)requires real-.*valued inputs.*int32.*for argument x\["):
        transform(lambda x: lax.neg(x[0]))([concrete(np.int32(1))])
    with pytest.raises(TypeError, match="complex"):
        transform(lax.neg, holomorphic=True)(f32(1))
    with pytest.raises(TypeError, match="at least 2 positional"):
        transform(lax.neg, argnums=1)(f32(1))
