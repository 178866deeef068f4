"""Functions that JAX has since 0.12, beside NumPy and SciPy, and where one of these is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import hloom
import hloom.numpy as jnp
from hloom import lax, random, sharding
from hloom.test_util import check_grads

RNG = np.random.default_rng(0)
M = RNG.standard_normal((3, 5)).astype(np.float32)
ODD = np.array([[3.0, np.nan, 1.0, 3.0], [2.0, 5.0, -np.inf, 7.0]], np.float32)
MASK = np.array([True, False, True, True, False])
X = np.array([-0.9, -0.1, 0.0, 0.5, 1.0], np.float32)

CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "minmax": (lambda j: j.numpy.minmax(M), (M.min(), M.max())),
    "minmax, axis": (lambda j: j.numpy.minmax(M, 1, keepdims=True), (M.min(1)[:, None], M.max(1)[:, None])),
    "minmax, where": (
        lambda j: j.numpy.minmax(M, axis=1, initial=(9, -9), where=MASK),
        (M[:, MASK].min(1), M[:, MASK].max(1)),
    ),
    "minmax, one initial": (lambda j: j.numpy.minmax(np.array([3, 1]), initial=2), (1, 3)),
    "top_k": (lambda j: j.numpy.top_k(ODD, 2), ([[np.nan, 3], [7, 5]], [[1, 0], [3, 1]])),
    "top_k, axis": (lambda j: j.numpy.top_k(ODD, 1, axis=0), ([[3, np.nan, 1, 7]], [[0, 0, 0, 1]])),
    "top_k, smallest": (
        lambda j: j.numpy.top_k(ODD, 3, mode="smallest"),
        ([[1, 3, 3], [-np.inf, 2, 5]], [[2, 0, 3], [2, 0, 1]]),
    ),
    "top_k, none": (lambda j: j.numpy.top_k(ODD, 0, mode="smallest"), (np.zeros((2, 0)), np.zeros((2, 0)))),
    "log2": (lambda j: j.lax.log2(np.array([1, 8, 0.25, 0, -1], np.float32)), [0, 3, -2, -np.inf, np.nan]),
    "log2, complex": (lambda j: j.lax.log2(np.array([4j], np.complex64)), np.log2(np.array([4j]))),
    "one_minus_square": (lambda j: j.lax.one_minus_square(X), 1 - X.astype(float) ** 2),
    "one_minus_square, integers": (lambda j: j.lax.one_minus_square(3), -8),
    "polynomial": (lambda j: j.lax.polynomial(X, [1.0, 5.0, 2.0]), 1 + 5 * X + 2 * X**2),
    "polynomial, nothing": (lambda j: j.lax.polynomial(X, []), np.zeros(5)),
    "polynomial, a constant": (lambda j: j.lax.polynomial(X, [2.0]), np.full(5, 2.0)),
    "polynomial, integers": (lambda j: j.lax.polynomial(np.arange(3), [1, 2]), [1, 3, 5]),
    "polynomial, arrays": (
        lambda j: j.lax.polynomial(M, [M[:1], 1.0, M[:, :1]]),
        M[:1] + M + M[:, :1] * M**2,
    ),
    "polynomial, many terms": (
        lambda j: j.lax.polynomial(X, [1 / (k + 1) for k in range(20)]),
        np.polynomial.polynomial.polyval(X.astype(float), [1 / (k + 1) for k in range(20)]),
    ),
    "erfcinv": (
        lambda j: j.scipy.special.erfcinv(np.array([0, 1e-30, 0.01, 0.5, 1, 1.5, 2, 2.5, -1], np.float32)),
        scipy.special.erfcinv([0, np.float32(1e-30), np.float32(0.01), 0.5, 1, 1.5, 2, 2.5, -1]),
    ),
    "erfcinv, integers": (lambda j: j.scipy.special.erfcinv(np.array([1, 0, 2])), [0, np.inf, -np.inf]),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("library", ["hloom", "hloom in jit", "jax"])
def test_values(library: str, name: str) -> None:
    j = pytest.importorskip(library.partition(" ")[0])
    pytest.importorskip(f"{j.__name__}.scipy.special")
    if not hasattr(j.lax, "polynomial"):
        pytest.skip("a version of JAX without these names")
    call, wanted = CALLS[name]
    found = hloom.jit(lambda: call(j))() if library == "hloom in jit" else call(j)
    hloom.tree.map(
        lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-6, atol=1e-6),
        list(found) if isinstance(wanted, tuple) else found,
        list(wanted) if isinstance(wanted, tuple) else np.asarray(wanted),
        is_leaf=lambda x: isinstance(x, (np.ndarray, hloom.Array)),
    )


def test_derivatives() -> None:
    with hloom.enable_x64(True):
        x = np.array([0.3, -0.7, 1.2])
        for coefficients in ([1.0, x, 2.0], [x] * 9):
            check_grads(lambda x, c=coefficients: lax.polynomial(x, c), (x,), 2)
        check_grads(lax.one_minus_square, (x,), 2)
        check_grads(hloom.scipy.special.erfcinv, (np.array([0.1, 0.9, 1.7]),), 2)
        check_grads(lax.log2, (np.array([0.1, 0.9, 1.7]),), 2)
    assert hloom.grad(lax.one_minus_square)(1e-20) == np.float32(-2e-20)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.minmax(jnp.zeros(0)), ValueError, "no value"),
    (lambda: jnp.minmax(M, where=M > 0), ValueError, "initial"),
    (lambda: jnp.top_k(ODD, 5), ValueError, "k"),
    (lambda: jnp.top_k(ODD, 5, mode="smallest"), ValueError, r"k must be in \[0, 4\], got 5"),
    (lambda: jnp.top_k(ODD, 1, mode="first"), ValueError, "mode must be"),
    (lambda: lax.polynomial(M, [X]), TypeError, "must have the same number of dimensions"),
    (lambda: lax.log2(3), TypeError, "log"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_meshes_and_keys() -> None:
    assert hloom.get_mesh() == sharding.get_mesh() and hloom.get_abstract_mesh() == sharding.get_abstract_mesh()
    with hloom.use_abstract_mesh(sharding.AbstractMesh((4,), ("x",))):
        assert hloom.get_abstract_mesh().shape["x"] == 4
    key = random.key(0)
    assert random.Key(key) is key


@pytest.mark.parametrize("inline", list(hloom.Inline))
def test_inline(inline: hloom.Inline) -> None:
    def f(x: Any) -> Any:
        return 2 * jnp.sin(x)

    def text(inline: Any) -> str:
        inner = hloom.jit(f, inline=inline)
        return str(hloom.jit(lambda x: inner(x) + 1).lower(1.0).as_text())

    assert text(inline) == text(inline is hloom.Inline.JAX_EARLY)
