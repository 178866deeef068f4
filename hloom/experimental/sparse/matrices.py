"""Sparse matrices without batch and dense dimensions: COO, CSR and CSC, as SciPy has them, and their functions.

Operations on them use BCOO arrays of the same elements; sums, products by elements and parts of them are BCOO arrays.
Names and arguments follow jax.experimental.sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...hlo.support.tracebacks import boundaries
from ...tracer.errors import OperandError
from .arrays import BCOO, BCSR, JAXSparse, _arrays, register
from .layout import bcoo_fromdense


class COOInfo(NamedTuple):
    """The properties that a COO matrix promises."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@boundaries
class Matrix(JAXSparse):
    """The common base of COO, CSR and CSC."""

    _promises: ClassVar[tuple[str, ...]] = ("shape",)
    shape: tuple[int, ...] = ()
    n_batch = 0
    n_dense = 0
    n_sparse = 2

    def __init__(self, args: Any, *, shape: Sequence[int]) -> None:
        self.shape = tuple(int(n) for n in shape)
        if len(self.shape) != 2:
            raise OperandError(
                f"{type(self).__name__}: a matrix has two dimensions, not the shape {self.shape}", "sparse_shape"
            )
        for name, part in zip(self._parts, _arrays(type(self).__name__, args), strict=True):
            setattr(self, name, part)

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        raise NotImplementedError

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Any:
        """The matrix of the elements of a BCOO array with two sparse dimensions and no others."""
        raise NotImplementedError

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32) -> Any:
        """The sparse matrix of a dense one: `nse` is the number of its nonzero elements by default."""
        return cls.from_bcoo(bcoo_fromdense(_matrix(mat), nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> Any:
        """The sparse matrix of one of SciPy's."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype))

    def _swapped(self, axes: Sequence[int] | None) -> None:
        if axes is not None and tuple(a % 2 for a in axes) != (1, 0):
            raise UnsupportedError(f"{type(self).__name__}.transpose: axes={tuple(axes)}; a matrix has one transpose")


def _matrix(mat: Any) -> Any:
    dense = jnp.asarray(mat)
    if dense.ndim != 2:
        raise OperandError(f"a matrix is needed, not an array of shape {dense.shape}", "sparse_shape")
    return dense


@boundaries
class COO(Matrix):
    """A sparse matrix in coordinates: COO((data, row, col), shape=...). A pytree.

    rows_sorted: the rows are in order; cols_sorted: the columns are. An element of row or column `shape` is padding.

    >>> m = sparse.COO.fromdense(jnp.eye(3))
    >>> m, m @ jnp.arange(3.0)
    (COO(float32[3, 3], nse=3), Array([0., 1., 2.], dtype=float32))
    """

    _parts = ("data", "row", "col")
    _promises = ("shape", "_rows_sorted", "_cols_sorted")
    row: Any
    col: Any

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @property
    def indices(self) -> Any:
        """The places, a row and a column each."""
        return jnp.stack([self.row, self.col], -1)

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        return BCOO((self.data, self.indices), shape=self.shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """The matrix of the elements of a BCOO array with two sparse dimensions and no others."""
        parts = (arr.data, arr.indices[:, 0], arr.indices[:, 1])
        return cls(parts, shape=arr.shape, rows_sorted=arr.indices_sorted)

    def _sort_indices(self) -> COO:
        """The elements by rows, and by columns in a row."""
        return COO.from_bcoo(self.to_bcoo().sort_indices())

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Rows as columns."""
        self._swapped(axes)
        order = {"rows_sorted": self._cols_sorted, "cols_sorted": self._rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **order)


@boundaries
class CSR(Matrix):
    """A sparse matrix in compressed rows: CSR((data, indices, indptr), shape=...). A pytree.

    Row i has the entries from indptr[i] to indptr[i + 1]; `indices` are their columns.

    >>> m = sparse.CSR((jnp.array([2.0, 3.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2))
    >>> m.todense(), m @ jnp.array([1.0, 10.0])
    (Array([[0., 2.],
           [3., 0.]], dtype=float32), Array([20.,  3.], dtype=float32))
    """

    _parts = ("data", "indices", "indptr")
    indptr: Any

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSR:
        """The matrix of the elements of a BCOO array with two sparse dimensions and no others."""
        rows = BCSR.from_bcoo(arr)
        return cls((rows.data, rows.indices, rows.indptr), shape=arr.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Rows as columns: a CSC matrix of the same arrays."""
        self._swapped(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@boundaries
class CSC(Matrix):
    """A sparse matrix in compressed columns: CSC((data, indices, indptr), shape=...), the transpose of a CSR matrix.

    >>> m = sparse.CSC((jnp.array([2.0, 3.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2))
    >>> m.todense()
    Array([[0., 3.],
           [2., 0.]], dtype=float32)
    """

    _parts = ("data", "indices", "indptr")
    indptr: Any

    def to_bcoo(self) -> BCOO:
        """The same elements as a BCOO array."""
        return self.transpose().to_bcoo().transpose()  # type: ignore[no-any-return]

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSC:
        """The matrix of the elements of a BCOO array with two sparse dimensions and no others."""
        return CSR.from_bcoo(arr.transpose()).transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Columns as rows: a CSR matrix of the same arrays."""
        self._swapped(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


for _kind in (COO, CSR, CSC):
    register(_kind)

for _base in (Matrix, COO):
    boundaries(_base, "__init__")


# ---- functions


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32) -> COO:
    """The COO matrix of a dense one: `nse` is the number of its nonzero elements by default.

    >>> m = sparse.coo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.data, m.row, m.col
    (Array([2., 3.], dtype=float32), Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)  # type: ignore[no-any-return]


def coo_todense(mat: COO) -> Any:
    """A COO matrix as a dense one.

    >>> sparse.coo_todense(sparse.coo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """The product of a COO matrix, or of its transpose, and a vector.

    >>> m = sparse.coo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.coo_matvec(m, jnp.array([1.0, 10.0])), sparse.coo_matvec(m, jnp.array([1.0, 10.0]), transpose=True)
    (Array([20.,  3.], dtype=float32), Array([30.,  2.], dtype=float32))
    """
    return _product("coo_matvec", mat, v, transpose, 1)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """The product of a COO matrix, or of its transpose, and a dense matrix.

    >>> m = sparse.coo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.coo_matmat(m, jnp.array([[1.0], [10.0]]))
    Array([[20.],
           [ 3.]], dtype=float32)
    """
    return _product("coo_matmat", mat, B, transpose, 2)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32) -> CSR:
    """The CSR matrix of a dense one: `nse` is the number of its nonzero elements by default.

    >>> m = sparse.csr_fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> m.data, m.indices, m.indptr
    (Array([2., 3., 4.], dtype=float32), Array([1, 0, 1], dtype=int32), Array([0, 1, 3], dtype=int32))
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)  # type: ignore[no-any-return]


def csr_todense(mat: CSR) -> Any:
    """A CSR matrix as a dense one.

    >>> sparse.csr_todense(sparse.csr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])))
    Array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """The product of a CSR matrix, or of its transpose, and a vector.

    >>> m = sparse.csr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.csr_matvec(m, jnp.array([1.0, 10.0]))
    Array([20.,  3.], dtype=float32)
    """
    return _product("csr_matvec", mat, v, transpose, 1)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """The product of a CSR matrix, or of its transpose, and a dense matrix.

    >>> m = sparse.csr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.csr_matmat(m, jnp.array([[1.0], [10.0]]))
    Array([[20.],
           [ 3.]], dtype=float32)
    """
    return _product("csr_matmat", mat, B, transpose, 2)


def _product(name: str, mat: Matrix, dense: Any, transpose: bool, rank: int) -> Any:
    other = jnp.asarray(dense)
    left = mat.shape[0 if transpose else 1]
    if other.ndim != rank or other.shape[0] != left:
        raise OperandError(
            f"{name}: {mat!r}{'.T' if transpose else ''} and an array of shape {other.shape} have no product",
            "sparse_shape",
        )
    return (mat.transpose() if transpose else mat) @ other
