"""`hloom.experimental.sparse`: every operation on each layout against the dense one, transformations, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.experimental import sparse

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
M = RNG.standard_normal((4, 5)) * (RNG.random((4, 5)) < 0.5)
V, W = RNG.standard_normal(5), RNG.standard_normal((5, 3))
CUBE = RNG.standard_normal((3, 4, 5)) * (RNG.random((3, 4, 5)) < 0.4)

LAYOUTS: dict[str, Callable[[NDArray], Any]] = {
    "bcoo": sparse.BCOO.fromdense,
    "padded": lambda m: sparse.BCOO.fromdense(m, nse=m.size + 3),
    "with a batch": lambda m: sparse.BCOO.fromdense(m, n_batch=1),
    "with dense rows": lambda m: sparse.BCOO.fromdense(m, n_dense=1),
    "repeated": lambda m: sparse.BCOO.fromdense(m * 3) + sparse.BCOO.fromdense(m * -2),
    "bcsr": sparse.BCSR.fromdense,
    "bcsr padded": lambda m: sparse.BCSR.fromdense(m, nse=m.size + 3),
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda s: s,
    "vector": lambda s: s @ V,
    "matrix": lambda s: s @ W,
    "from the left": lambda s: W[:4, :].T @ s,
    "vector from the left": lambda s: V[:4] @ s,
    "scaled": lambda s: 2 * -s / 4 * jnp.asarray(3.0),
    "times rows": lambda s: s * V,
    "times columns": lambda s: V[:4, None] * s,
    "sum": lambda s: s + 2 * s - s * 5,
    "sum of rows": lambda s: s.sum(0),
    "sum of columns": lambda s: s.sum(axis=1),
    "sum of all": lambda s: s.sum(),
    "rows": lambda s: s[1:3],
    "one row": lambda s: s[-1],
    "columns": lambda s: s[:, ::2],
    "backwards": lambda s: s[::-1, None, 3:0:-1],
    "element": lambda s: s[1, ...][2],
    "complex": lambda s: s.astype(complex) * 1j,
}


def close(found: Any, expected: Any) -> None:
    dense = np.asarray(sparse.todense(found))
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(dense, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operations(layout: str) -> None:
    with hloom.enable_x64(True):
        array = LAYOUTS[layout](M)
        for name, operation in OPERATIONS.items():
            close(operation(array), operation(M))
            if name in ("vector", "sum of rows", "times rows"):
                close(hloom.jit(operation)(array), operation(M))
        if array.n_batch == array.n_dense == 0:
            close(array.T, M.T)
            close(array.T @ array, M.T @ M)
            close(array * array, M * M)
            assert array.sum_duplicates().nse == np.count_nonzero(M)


BATCHED: dict[str, dict[str, int]] = {
    "sparse": {},
    "batch": {"n_batch": 1},
    "two": {"n_batch": 1, "n_dense": 1},
    "dense": {"n_dense": 2},
}
PRODUCTS = [
    (((2,), (0,)), ((), ())),
    (((2,), (2,)), ((0,), (0,))),
    (((0, 1), (1, 0)), ((), ())),
    (((1,), (1,)), ((2,), (2,))),
]
OTHERS = [
    RNG.standard_normal((5, 2)),
    RNG.standard_normal((3, 2, 5)),
    RNG.standard_normal((4, 3)),
    RNG.standard_normal((2, 4, 5)),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", BATCHED)
def test_three_dimensions(layout: str) -> None:
    """Products, sums and movement of arrays with batch and dense dimensions."""
    options = BATCHED[layout]
    with hloom.enable_x64(True):
        array = sparse.BCOO.fromdense(CUBE, **options)
        for numbers, other in zip(PRODUCTS, OTHERS, strict=True):
            expected = hloom.lax.dot_general(CUBE, other, numbers)
            close(sparse.bcoo_dot_general(array, other, dimension_numbers=numbers), expected)
            turned = tuple(pair[::-1] for pair in numbers)
            expected = hloom.lax.dot_general(other, CUBE, turned)
            close(sparse.bcoo_dot_general(other, array, dimension_numbers=turned), expected)
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            close(sparse.bcoo_reduce_sum(array, axes=axes), CUBE.sum(axes))
        for n_batch, n_dense in ((0, 0), (1, 0), (0, 2), (1, 1), (2, 1)):
            moved = array.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
            assert (moved.n_batch, moved.n_dense) == (n_batch, n_dense)
            close(moved, CUBE)
        close(array * CUBE[:, :1], CUBE * CUBE[:, :1])
        close(
            sparse.bcoo_concatenate([array, array * 2], dimension=0),
            np.concatenate([CUBE, 2 * CUBE]),
        )
        close(array[1:, 2, ::-1], CUBE[1:, 2, ::-1])
        close(sparse.bcoo_rev(array, (0, 2)), CUBE[::-1, :, ::-1])
        close(sparse.bcoo_extract(array, CUBE + 1), (CUBE + 1) * (sparse.todense(with_ones(array)) != 0))
        if array.n_dense == 0:
            close(
                sparse.bcoo_broadcast_in_dim(array, shape=(2, 3, 4, 5), broadcast_dimensions=(1, 2, 3)),
                np.stack([CUBE] * 2),
            )
            close(array.reshape(3, 20), CUBE.reshape(3, 20))
            close(array.reshape((3, 2, -1)), CUBE.reshape(3, 2, 10))


def with_ones(array: Any) -> Any:
    return sparse.BCOO((jnp.ones_like(array.data), array.indices), shape=array.shape)


def test_broadcasting_and_squeezing() -> None:
    with hloom.enable_x64(True):
        row = sparse.BCOO.fromdense(M[:1])
        close(sparse.bcoo_broadcast_in_dim(row, shape=(3, 5), broadcast_dimensions=(0, 1)), np.repeat(M[:1], 3, 0))
        inner = sparse.bcoo_broadcast_in_dim(sparse.BCOO.fromdense(M), shape=(4, 2, 5), broadcast_dimensions=(0, 2))
        close(inner, np.repeat(M[:, None], 2, 1))
        close(sparse.bcoo_squeeze(row, dimensions=(0,)), M[0])
        close(sparse.bcoo_transpose(sparse.BCOO.fromdense(CUBE), permutation=(2, 0, 1)), CUBE.transpose(2, 0, 1))


def test_products_of_sparse_arrays() -> None:
    with hloom.enable_x64(True):
        one, other = sparse.BCOO.fromdense(CUBE, n_batch=1), sparse.BCOO.fromdense(CUBE.transpose(0, 2, 1), n_batch=1)
        close(one @ other, CUBE @ CUBE.transpose(0, 2, 1))
        close(hloom.jit(lambda a, b: a @ b)(one, other), CUBE @ CUBE.transpose(0, 2, 1))
        places = sparse.BCOO.fromdense(M)
        sampled = sparse.bcoo_dot_general_sampled(
            W.T, W[:, :2], jnp.array([[0, 1], [2, 0]]), dimension_numbers=(((1,), (0,)), ((), ()))
        )
        np.testing.assert_allclose(np.asarray(sampled), (W.T @ W[:, :2])[[0, 2], [1, 0]])
        assert (places.T @ places).nse == min(places.nse**2, places.shape[1] ** 2)


def test_creation_and_form() -> None:
    """Order of elements, numbers of elements, padding, what SciPy has, the form as a pytree."""
    array = sparse.BCOO.fromdense(np.array([[0, 7, 0], [8, 0, 9]], np.float32))
    assert array.indices.tolist() == [[0, 1], [1, 0], [1, 2]] and array.data.tolist() == [7, 8, 9]
    assert (array.shape, array.nse, array.dtype, array.ndim, array.size, len(array)) == ((2, 3), 3, "float32", 2, 6, 2)
    assert (array.n_batch, array.n_sparse, array.n_dense) == (0, 2, 0)
    assert array.indices_sorted and array.unique_indices and repr(array) == "BCOO(float32[2, 3], nse=3)"
    padded = sparse.BCOO.fromdense(array.todense(), nse=5)
    assert padded.indices.tolist()[3:] == [[2, 3], [2, 3]] and padded.data.tolist()[3:] == [0, 0]
    rows = sparse.BCSR.from_bcoo(padded)
    assert rows.indptr.tolist() == [0, 1, 3] and rows.indices.tolist()[:3] == [1, 0, 2]
    assert rows.to_bcoo().todense().tolist() == array.todense().tolist() == [[0, 7, 0], [8, 0, 9]]
    theirs = scipy.sparse.random(6, 5, 0.4, random_state=0, dtype=np.float32)
    for kind in (sparse.BCOO, sparse.BCSR):
        close(kind.from_scipy_sparse(theirs), theirs.todense())
    for k in (-2, 0, 1, 9):
        close(sparse.eye(4, 5, k), np.eye(4, 5, k))
    close(sparse.eye(3, sparse_format="bcsr"), np.eye(3))
    close(sparse.eye(3, n_batch=1), np.eye(3))
    close(sparse.empty((2, 3), n_batch=1, nse=2), np.zeros((2, 3)))
    scrambled = sparse.BCOO((array.data, array.indices[::-1]), shape=(2, 3)).sort_indices()
    assert scrambled.indices.tolist() == array.indices.tolist() and scrambled.data.tolist() == [9, 8, 7]
    leaves, structure = hloom.tree.flatten(rows)
    assert len(leaves) == 3 and hloom.tree.unflatten(structure, leaves).shape == (2, 3)


def test_repeated_places() -> None:
    places = jnp.array([[2], [0], [2], [9], [0]])
    array = sparse.BCOO((jnp.array([1.0, 2, 3, 4, -2]), places), shape=(4,))
    assert array.todense().tolist() == [0, 0, 4, 0]
    found = array.sum_duplicates()
    assert (found.indices.tolist(), found.data.tolist()) == ([[0], [2]], [0, 4])
    fixed = hloom.jit(lambda a: a.sum_duplicates(nse=3))(array)
    assert (fixed.indices.tolist(), fixed.data.tolist()) == ([[0], [2], [4]], [0, 4, 0])
    assert array.sum_duplicates(nse=1).nse == 1


def test_transformations() -> None:
    with hloom.enable_x64(True):
        rows = sparse.BCOO.fromdense(M, n_batch=1)
        close(hloom.vmap(lambda row: row @ V)(rows), M @ V)
        doubled = hloom.vmap(lambda row: 2 * row)(rows)
        assert doubled.shape == (4, 5)
        close(doubled, 2 * M)
        array = sparse.BCOO.fromdense(M)
        there = M != 0
        for kind in (array, sparse.BCSR.fromdense(M)):
            found = sparse.grad(lambda s, v: ((s @ v) ** 2).sum())(kind, V)
            assert type(found) is type(kind)
            close(found, 2 * np.outer(M @ V, V) * there)
            value, by_both = sparse.value_and_grad(lambda s, v: (s @ v).sum(), argnums=(0, 1))(kind, V)
            np.testing.assert_allclose(float(value), (M @ V).sum())
            close(by_both[1], M.sum(0))
        for jacobian in (sparse.jacfwd, sparse.jacrev):
            close(jacobian(lambda s: s @ V)(array), np.einsum("ij,k->ijk", np.eye(4), V) * there)
        close(hloom.grad(lambda m: (sparse.BCOO.fromdense(m, nse=20) @ V).sum())(M), np.where(there, V, 0))
        steps = hloom.lax.fori_loop(0, 3, lambda i, v: (array.T @ array) @ v, V)
        close(steps, np.linalg.matrix_power(M.T @ M, 3) @ V)


SPARSIFIED: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: jnp.sin(x.T * 2) @ V[:4],
    "einsum": lambda x: jnp.einsum("ij,kj->ki", x, W.T),
    "sums": lambda x: (x.sum(0) * V).sum() + 1.0,
    "functions": lambda x: jnp.tanh(x) - jnp.abs(x) ** 3 + jnp.sqrt(x * x),
    "movement": lambda x: jnp.concatenate([x, x[::-1]], 1).reshape(8, 5)[2:, None, 1],
    "nested": lambda x: hloom.jit(lambda y: hloom.nn.relu(V) @ (y.T / 2))(x),
    "quotient": lambda x: x / (1 + V**2) + x,
    "arctangent": lambda x: jnp.arctan(x) + hloom.lax.bessel_i1e(x),
    "dynamic slice": lambda x: hloom.lax.dynamic_slice(x, (1, 2), (2, 3)),
    "complex": lambda x: jnp.conj(hloom.lax.complex(x, 2 * x)) * 1j,
    "parts": lambda x: jnp.real(hloom.lax.complex(x, 2 * x)) - jnp.imag(hloom.lax.complex(x, x * x)),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SPARSIFIED)
def test_sparsify(name: str) -> None:
    function = SPARSIFIED[name]
    with hloom.enable_x64(True):
        array = sparse.BCOO.fromdense(M)
        close(sparse.sparsify(function if name != "nested" else lambda x: function(x))(array), function(jnp.asarray(M)))
        if name in ("product", "sums"):
            close(hloom.jit(sparse.sparsify(function))(array), function(jnp.asarray(M)))


@pytest.mark.parametrize("layout", [sparse.BCOO, sparse.BCSR])
def test_sparsified_parts_keep_the_places(layout: Any) -> None:
    """They are linear: two values at one place are added before or after."""
    array = layout.fromdense(jnp.asarray(M + 1j * M[::-1]), nse=20)
    for function in (jnp.conj, jnp.real, jnp.imag, jnp.negative):
        found = sparse.sparsify(function)(array)
        assert found.indices is array.indices and type(found) is layout
        np.testing.assert_allclose(found.todense(), function(array.todense()), rtol=1e-6)


def test_a_sparsified_convolution() -> None:
    x, y = jnp.array([0.0, 1.0, 0.0, 2.0]), jnp.array([1.0, 2.0, 3.0])
    found = sparse.sparsify(jnp.convolve)(sparse.BCOO.fromdense(x), y)
    np.testing.assert_allclose(found.todense(), jnp.convolve(x, y))


ARRAY = sparse.BCOO.fromdense(M.astype(np.float32))
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "shape": (lambda: sparse.BCOO((ARRAY.data, ARRAY.indices), shape=(4,)), ValueError, "cannot have the shape"),
    "rows": (lambda: sparse.BCSR((ARRAY.data, ARRAY.indices[:, 0], V[:3]), shape=(4, 5)), ValueError, "indptr"),
    "jit": (lambda: hloom.jit(sparse.BCOO.fromdense)(M), ValueError, "must be given by nse="),
    "duplicates": (lambda: hloom.jit(lambda a: a.sum_duplicates())(ARRAY), ValueError, "must be given by nse="),
    "numpy": (lambda: np.asarray(ARRAY), TypeError, r"todense\(\) gives a dense array"),
    "dense": (lambda: ARRAY + 1.0, NotImplementedError, "the sum would be a larger dense array"),
    "sum": (lambda: ARRAY + ARRAY.T, ValueError, "shapes of"),
    "quotient": (lambda: ARRAY / ARRAY, NotImplementedError, "divided by 0"),
    "broadcast": (lambda: ARRAY * V[:3], ValueError, "does not broadcast"),
    "product": (lambda: ARRAY @ V[:3], ValueError, "differ"),
    "layout": (lambda: ARRAY.update_layout(n_batch=1), sparse.SparseEfficiencyError, "makes it larger"),
    "transpose": (lambda: sparse.BCOO.fromdense(M, n_batch=1).T, NotImplementedError, "mixes batch, sparse and dense"),
    "reshape": (lambda: ARRAY.reshape(3, 3), ValueError, "cannot reshape"),
    "index": (lambda: ARRAY[7], IndexError, "out of bounds"),
    "indices": (lambda: ARRAY[0, 0, 0], IndexError, "too many indices"),
    "squeeze": (lambda: sparse.bcoo_squeeze(ARRAY, dimensions=(0,)), ValueError, "must have size 1"),
    "bcsr": (lambda: sparse.BCSR.fromdense(CUBE), ValueError, "two sparse dimensions"),
    "format": (lambda: sparse.eye(3, sparse_format="x"), ValueError, "there are 'bcoo', 'bcsr'"),
    "angle": (lambda: sparse.sparsify(lambda x: jnp.arctan2(x, -1.0))(ARRAY), NotImplementedError, "is not sparse"),
    "parts": (
        lambda: sparse.sparsify(lambda x: hloom.lax.complex(x, jnp.ones((4, 5), np.float32)))(ARRAY),
        NotImplementedError,
        "sparse and dense",
    ),
    "sparsify": (lambda: sparse.sparsify(jnp.exp)(ARRAY), NotImplementedError, "rule for exp is not implemented"),
    "n_batch": (lambda: sparse.BCOO.fromdense(M, n_batch=3), ValueError, "do not fit"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


# ---- arrays in an index, starts from the end, empty slices, sizes of results

ROWS, GRID, PICK = np.array([0, 2]), np.array([[0, 2], [1, 1]]), np.array([True, False, True])
KINDS: dict[str, Any] = {
    "bcoo": lambda m: sparse.BCOO.fromdense(m),
    "with a batch": lambda m: sparse.BCOO.fromdense(m, n_batch=1),
    "with dense rows": lambda m: sparse.BCOO.fromdense(m, n_dense=1),
    "padded": lambda m: sparse.BCOO.fromdense(m, nse=m.size + 3),
}
INDICES: dict[str, Any] = {
    "rows": ROWS,
    "rows from the end": np.array([-1, 0, -1]),
    "a grid of rows": GRID,
    "no rows": np.zeros(0, int),
    "mask": PICK,
    "columns": (slice(None), ROWS),
    "pairs": (ROWS, ROWS),
    "open grid": (ROWS[:, None], ROWS),
    "rows and a slice": (ROWS, slice(1, None)),
    "rows and an integer": (1, ROWS),
    "behind an ellipsis": (..., ROWS),
    "behind a new dimension": (None, ROWS),
    "empty slice": slice(1, 1),
    "empty columns": (slice(None), slice(4, None)),
    "slice beyond the end": slice(5, 9),
    "all empty": (slice(0, 0), slice(0, 0)),
}
SMALL = np.array([[0.0, 2, 0, 5], [3, 0, 0, 0], [0, 7, 0, 1]])


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str, kind: str) -> None:
    with hloom.enable_x64():
        array, index = KINDS[kind](SMALL), INDICES[name]
        close(array[index], SMALL[index])
        if not isinstance(index, tuple) and not isinstance(index, slice) and index.dtype != bool:
            close(hloom.jit(lambda a, i: a[i].todense())(array, index), SMALL[index])


def test_gradient_through_an_index() -> None:
    array = sparse.BCOO.fromdense(SMALL.astype(np.float32))

    def chosen(data: Any) -> Any:
        return (sparse.BCOO((data, array.indices), shape=array.shape)[ROWS].todense() ** 2).sum()

    expected = np.where(np.isin(array.indices[:, 0], ROWS), 2 * array.data, 0)
    np.testing.assert_allclose(hloom.grad(chosen)(array.data), expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("starts", [(-1, -2), (-2, 9), (0, -4), (-9, 1)])
def test_dynamic_slices_from_the_end(kind: str, starts: tuple[int, int]) -> None:
    with hloom.enable_x64():
        array = KINDS[kind](SMALL)
        expected = lax.dynamic_slice(SMALL, starts, (2, 2))
        close(sparse.bcoo_dynamic_slice(array, starts, (2, 2)), expected)
        close(hloom.jit(lambda a, s: sparse.bcoo_dynamic_slice(a, s, (2, 2)))(array, starts), expected)


def test_results_have_no_more_elements_than_places() -> None:
    array = sparse.BCOO.fromdense(SMALL)
    product = array @ array.T
    for _ in range(4):
        product = product @ product + product
        assert product.nse <= 9
        product = product * 1e-3
    total = array
    for _ in range(9):
        total = total + array
    assert total.nse == SMALL.size
    close(total, 10 * SMALL.astype(np.float32))


BATCHES = [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
           ((2, 3, 4), (4,)), ((1, 2, 3, 4), (3, 1, 4, 2))]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("shapes", BATCHES)
def test_products_of_batches(shapes: Any) -> None:
    random = np.random.default_rng(0)
    x, y = (np.where(random.random(s) < 0.5, random.standard_normal(s), 0) for s in shapes)
    with hloom.enable_x64():
        for n_batch in (0, 1):
            a, b = (sparse.BCOO.fromdense(v, n_batch=n_batch if v.ndim > 2 else 0) for v in (x, y))
            for left, right in ((a, b), (a, y), (x, b)):
                close(left @ right, x @ y)


LAYERS: dict[str, tuple[dict[str, int], tuple[int, ...], tuple[int, ...], tuple[int, int]]] = {
    "all are batches": ({"n_batch": 3}, (3, 4, 5, 1), (0, 1, 2), (4, 0)),
    "batches before the dense": ({"n_batch": 2, "n_dense": 1}, (3, 4, 1, 5), (0, 1, 3), (3, 1)),
    "sparse before the dense": ({"n_batch": 1, "n_dense": 1}, (3, 4, 1, 5), (0, 1, 3), (1, 1)),
    "dense behind the dense": ({"n_dense": 2}, (3, 4, 1, 5), (0, 1, 3), (0, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_new_dimensions_are_of_the_kind_before_which_they_stand(name: str) -> None:
    layout, shape, places, wanted = LAYERS[name]
    with hloom.enable_x64(True):
        found = sparse.bcoo_broadcast_in_dim(
            sparse.BCOO.fromdense(CUBE, **layout), shape=shape, broadcast_dimensions=places
        )
        close(found, CUBE.reshape(shape))
    assert (found.n_batch, found.n_dense) == wanted


BROADCAST: dict[str, tuple[NDArray, NDArray]] = {
    "rows": (M, M[:1]), "columns": (M[:, :1], M), "both": (M[:1], M[:, :1]), "dimensions": (CUBE, M[None]),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", [{}, {"n_batch": 1}, {"n_dense": 1}], ids=str)
@pytest.mark.parametrize("name", BROADCAST)
def test_products_of_sparse_arrays_broadcast(name: str, layout: dict[str, int]) -> None:
    x, y = BROADCAST[name]
    with hloom.enable_x64(True):
        close(sparse.BCOO.fromdense(x, **layout) * sparse.BCOO.fromdense(y), x * y)
        with pytest.raises(ValueError, match="do not broadcast"):
            sparse.BCOO.fromdense(x) * sparse.BCOO.fromdense(np.ones((7,) * x.ndim))


def test_arrays_without_elements_and_without_sparse_dimensions() -> None:
    with hloom.enable_x64(True):
        outer = (((), ()), ((), ()))
        sampled = sparse.bcoo_dot_general_sampled(V, W[:, 0], jnp.zeros((2, 0), int), dimension_numbers=outer)
        np.testing.assert_allclose(np.asarray(sampled), np.stack([np.outer(V, W[:, 0])] * 2))
        empty = sparse.BCOO.fromdense(np.zeros(5))
        assert (empty @ empty).shape == ()
        close(empty * empty, np.zeros(5))
    x, kernel = np.array([[[1.0, 0.0, 2.0]]], np.float32), np.ones((1, 1, 2), np.float32)
    for operands in ((sparse.BCOO.fromdense(x), kernel), (x, sparse.BCOO.fromdense(kernel)), (x, kernel)):
        close(sparse.bcoo_conv_general_dilated(*operands, window_strides=(1,), padding="VALID"), [[[1.0, 2.0]]])


def test_sums_with_dense_arrays_and_absolute_values() -> None:
    """As in JAX, a place that occurs twice counts as the sum of its numbers."""
    twice = sparse.BCOO((jnp.array([1.0, -3.0, 2.0]), jnp.array([[0], [0], [2]])), shape=(3,))
    dense = jnp.arange(6.0).reshape(2, 3)
    for found in (twice + dense, dense + twice, hloom.jit(lambda x, y: x + y)(twice, dense)):
        np.testing.assert_array_equal(found, np.array([-2.0, 0, 2]) + np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(abs(twice).todense(), [2, 0, 2])
    assert isinstance(abs(sparse.BCSR.fromdense(-jnp.eye(2))), sparse.BCSR)
    np.testing.assert_array_equal(abs(sparse.BCSR.fromdense(-jnp.eye(2))).todense(), np.eye(2))
