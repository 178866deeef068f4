"""`sparsify` of branches, loops, `todense` and powers, beside the same functions of dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.experimental import sparse
from hloom.experimental.sparse import BCOO, BCSR

DENSE = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.5, 1.0]], np.float32)
X = np.array([1.0, -2.0, 0.5], np.float32)


def _exchange(state: Any) -> Any:
    turn, a, b = state
    return turn + 1, b, a


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cond, the same array": lambda m: lax.cond(False, lambda m: m, lambda m: 2 * m, m),
    "cond, by a product": lambda m: lax.cond((m @ X)[0] < 0, lambda m: m @ X, lambda m: -(m @ X), m),
    "cond, powers": lambda m: lax.cond(True, lambda m: m**2, lambda m: m, m),
    "switch": lambda m: lax.switch(2, [lambda m: m, lambda m: 2 * m, lambda m: m**3], m),
    "while": lambda m: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, 2 * c[1]), (0, m))[1],
    "while, exchanged": lambda m: lax.while_loop(lambda c: c[0] < 5, _exchange, (0, m, 3 * m))[1],
    "while, a constant": lambda m: lax.while_loop(lambda x: abs(x).sum() < 1e3, lambda x: m @ x + x, X),
    "while, its condition": lambda m: lax.while_loop(lambda c: c < jnp.sum(m), lambda c: c + 1, 0.0),
    "fori_loop": lambda m: lax.fori_loop(0, 3, lambda i, x: m @ x, X),
    "fori_loop, carried": lambda m: lax.fori_loop(0, 3, lambda i, m: m * 0.5, m),
    "scan": lambda m: lax.scan(lambda c, x: (m @ c, c[0] + x), X, np.arange(4.0, dtype=np.float32)),
    "loop in a branch": lambda m: lax.cond(True, lambda: lax.fori_loop(0, 2, lambda i, x: m @ x, X), lambda: X),
    "todense": lambda m: sparse.todense(m) + 1,
    "todense in a loop": lambda m: lax.fori_loop(0, 2, lambda i, x: x + sparse.todense(m), jnp.zeros((3, 3))),
    "a power": lambda m: m**3,
}


def _dense(x: Any) -> Any:
    return hloom.tree.map(
        lambda leaf: np.asarray(leaf.todense() if isinstance(leaf, sparse.JAXSparse) else leaf),
        x,
        is_leaf=lambda leaf: isinstance(leaf, sparse.JAXSparse),
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("jitted", [False, True], ids=["as it is", "in jit"])
@pytest.mark.parametrize("kind", [BCOO, BCSR])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_of_dense_arrays(name: str, kind: Any, jitted: bool) -> None:
    function = FUNCTIONS[name]
    of_sparse = sparse.sparsify(function)
    found = (hloom.jit(of_sparse) if jitted else of_sparse)(kind.fromdense(DENSE))
    hloom.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), _dense(found), _dense(function(DENSE)))


def test_places_that_are_named_twice() -> None:
    twice = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
    for function, wanted in ((lambda m: m**3, 27), (jnp.sin, np.sin(3))):
        np.testing.assert_allclose(sparse.sparsify(function)(twice).todense(), [0, wanted, 0], rtol=1e-6)


def test_powers_keep_their_number_of_elements() -> None:
    m = BCOO.fromdense(DENSE)
    assert sparse.sparsify(lambda m: m**3)(m).nse == (m**3).nse == m.nse


def test_derivatives_of_todense() -> None:
    def f(x: Any) -> Any:
        return (sparse.todense(x) ** 2).sum()

    np.testing.assert_array_equal(hloom.grad(f)(X), 2 * X)
    np.testing.assert_array_equal(hloom.vmap(sparse.todense)(DENSE), DENSE)


M = BCOO.fromdense(DENSE)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "branches of other kinds": (
        lambda: sparse.sparsify(lambda m, x: lax.cond(False, lambda: m, lambda: x))(M, DENSE),
        TypeError,
        "cond branch outputs|switch branch outputs",
    ),
    "more elements each turn": (
        lambda: sparse.sparsify(lambda m: lax.while_loop(lambda m: True, lambda m: m + m.T, m))(M),
        TypeError,
        "equal types",
    ),
    "mapped over": (
        lambda: sparse.sparsify(lambda m: lax.scan(lambda c, x: (c, x), 0, m))(M),
        NotImplementedError,
        "sparse arrays cannot be mapped over by scan",
    ),
    "returned by each turn": (
        lambda: sparse.sparsify(lambda m: lax.scan(lambda c, x: (c, m), 0, X))(M),
        NotImplementedError,
        "sparse arrays cannot be returned by each turn of scan",
    ),
    "dense": (
        lambda: sparse.sparsify(jnp.cos)(M),
        NotImplementedError,
        "^sparse rule for cos is not implemented because it would result in dense output.",
    ),
    "no rule": (lambda: sparse.sparsify(jnp.sort)(M), NotImplementedError, "^sparse rule for sort is not implemented."),
    "a power": (
        lambda: M**-1,
        NotImplementedError,
        "sparse rule for integer_pow with non-positive exponent",
    ),
    "a power that is no integer": (lambda: M**0.5, NotImplementedError, "sparse rule for pow is not implemented"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
