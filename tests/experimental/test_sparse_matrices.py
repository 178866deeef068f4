"""COO, CSR and CSC matrices, slices at traced places, and random sparse arrays, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
from hloom.experimental import sparse
from hloom.experimental.sparse.layout import with_data

DENSE = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 0, 4]], np.float32)
KINDS = [sparse.COO, sparse.CSR, sparse.CSC]
V, W, B = np.arange(4, dtype=np.float32), np.arange(3, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nse", [None, 6])
def test_a_matrix_is_what_it_was_made_of(kind: Any, nse: int | None) -> None:
    m = kind.fromdense(DENSE, nse=nse)
    assert repr(m) == f"{kind.__name__}(float32[3, 4], nse={nse or 4})"
    assert np.array_equal(m.todense(), DENSE) and np.array_equal(m.T.todense(), DENSE.T)
    assert np.array_equal(hloom.jit(lambda m, v: m @ v)(m, V), DENSE @ V)
    assert np.array_equal(m @ B, DENSE @ B) and np.array_equal(W @ m, W @ DENSE)
    assert np.array_equal(m.T @ W, DENSE.T @ W)
    assert np.array_equal((2 * m - m).todense(), DENSE) and np.array_equal((-m).todense(), -DENSE)
    assert np.array_equal((m**2).todense(), DENSE**2)
    assert m.astype("int32").dtype == np.int32 and m.sum() == DENSE.sum()
    again = hloom.tree.map(lambda x: x, m)
    assert type(again) is kind and np.array_equal(again.todense(), DENSE)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_by_the_specified_elements(kind: Any) -> None:
    m = kind.fromdense(DENSE)
    places = np.asarray(m.to_bcoo().indices)

    def loss(data: Any) -> Any:
        return ((with_data(m, data) @ V) ** 2).sum()

    whole = 2 * (DENSE @ V)[:, None] * V
    assert np.array_equal(hloom.grad(loss)(m.data), whole[places[:, 0], places[:, 1]])


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_by_their_formats(kind: Any) -> None:
    name = kind.__name__.lower()
    assert type(sparse.eye(3, 4, 1, sparse_format=name)) is kind
    assert np.array_equal(sparse.eye(3, 4, 1, sparse_format=name).todense(), np.eye(3, 4, 1))
    assert not np.any(sparse.empty((2, 3), sparse_format=name).todense())


def test_functions_of_matrices() -> None:
    for make, product, matrix, dense in (
        (sparse.coo_fromdense, sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense),
        (sparse.csr_fromdense, sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense),
    ):
        m: Any = make(DENSE)
        assert np.array_equal(dense(m), DENSE)
        assert np.array_equal(product(m, V), DENSE @ V) and np.array_equal(product(m, W, transpose=True), DENSE.T @ W)
        assert np.array_equal(matrix(m, B), DENSE @ B)
        with pytest.raises(TypeError, match="have no product"):
            product(m, W)
    with pytest.raises(TypeError, match="two dimensions"):
        sparse.COO((V, V, V), shape=(4,))


@pytest.mark.parametrize("n_batch", [0, 1])
@pytest.mark.parametrize(("start", "sizes"), [((1, 1), (2, 3)), ((0, 9), (2, 2)), ((1, 2), (2, 2)), ((-5, 0), (1, 4))])
def test_slices_at_traced_places(n_batch: int, start: Any, sizes: Any) -> None:
    m = sparse.BCOO.fromdense(DENSE, n_batch=n_batch)
    found = hloom.jit(lambda m, *s: sparse.bcoo_dynamic_slice(m, s, sizes).todense())(m, *start)
    assert np.array_equal(found, hloom.lax.dynamic_slice(DENSE, [max(s, 0) for s in start], sizes))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", [{}, {"n_batch": 1}, {"n_dense": 1}, {"sorted_indices": True}])
@pytest.mark.parametrize("unique", [True, False])
def test_random_arrays(options: dict[str, Any], unique: bool) -> None:
    shape = (3, 4, 5)
    m = sparse.random_bcoo(hloom.random.key(0), shape, nse=0.3, unique_indices=unique, **options)
    places = np.prod(shape[options.get("n_batch", 0) : 3 - options.get("n_dense", 0)])
    assert m.shape == shape and m.nse == int(np.ceil(0.3 * places))
    assert m.unique_indices is unique and m.indices_sorted is options.get("sorted_indices", False)
    rows = np.asarray(m.indices).reshape(-1, m.nse, m.n_sparse)
    for row in rows:
        as_tuples = [tuple(r) for r in row]
        assert not unique or len(set(as_tuples)) == m.nse
        assert not m.indices_sorted or as_tuples == sorted(as_tuples)
    with pytest.raises(ValueError, match="expected to be between 0 and 4"):
        sparse.random_bcoo(hloom.random.key(0), (2, 2), nse=5)
