"""The classes of sparse arrays: their contents, their form as pytrees, and their operators.

A BCOO array of shape (*batch, *sparse, *dense) has `data` [*batch, nse, *dense] and `indices` [*batch, nse, n_sparse]:
`nse` specified elements, each with its place among the sparse dimensions. Places outside of the array are padding. The
numbers of a place that occurs more than once are added. A BCSR array has two sparse dimensions, rows in order:
`indices` [*batch, nse] are columns, and row i has the entries from indptr[i] to indptr[i + 1].

The batch dimensions of the shape are those that the arrays have, so `vmap` can take them away and add them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, ClassVar

from ... import numpy as jnp
from ...hlo.support.tracebacks import boundaries
from ...tracer.arrays.array import as_value
from ...tracer.errors import OperandError
from ...tree_util import register_pytree_node


class SparseEfficiencyError(ValueError):
    """An operation that would make an array much larger, and was not allowed to."""


class SparseEfficiencyWarning(UserWarning):
    """An operation makes an array much larger."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """JAX's kernels of NVIDIA's cuSPARSE are not used. Never given here, where there are none: a filter may name it."""


def _rules() -> Any:
    """The operations, which are written with the classes."""
    return import_module(".operators", __package__)


@boundaries
class JAXSparse:
    """The common base of sparse arrays.

    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    __array_priority__ = 100
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    _parts: ClassVar[tuple[str, ...]] = ("data", "indices")
    """The arrays of which it consists."""
    _promises: ClassVar[tuple[str, ...]] = ("_sizes", "indices_sorted", "unique_indices")
    """The attributes that are no arrays."""
    data: Any
    indices: Any
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the dense array has."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of its elements."""
        return self.data.dtype

    @property
    def T(self) -> Any:
        """Its transpose."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """The array itself: there is nothing to wait for."""
        return self

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions in another order, reversed by default."""
        return _rules().transpose(self, axes)

    def todense(self) -> Any:
        """The array as a dense one."""
        return _rules().todense(self)

    def sum(self, axis: Any = None) -> Any:
        """The sum over dimensions, all by default."""
        return _rules().sum_of(self, axis)

    def astype(self, dtype: Any) -> Any:
        """The array with another dtype."""
        return _rules().with_data(self, self.data.astype(dtype))

    def __repr__(self) -> str:
        if not hasattr(self.data, "shape"):
            return f"{type(self).__name__}({type(self.data).__name__})"
        sizes = ", ".join(map(str, self.shape))
        layout = "".join(f", {n}={k}" for n, k in (("n_batch", self.n_batch), ("n_dense", self.n_dense)) if k)
        return f"{type(self).__name__}({self.dtype}[{sizes}], nse={self.nse}{layout})"

    @property
    def nse(self) -> int:
        """How many elements are specified, in each batch, with padding."""
        return int(self.data.shape[self.n_batch])

    @property
    def n_batch(self) -> int:
        """How many batch dimensions it has."""
        raise NotImplementedError

    @property
    def n_dense(self) -> int:
        """How many dense dimensions it has."""
        return int(self.data.ndim) - self.n_batch - 1

    def _batch(self) -> tuple[int, ...]:
        k = self.n_batch
        return tuple(self.data.shape[:k])

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self!r} is sparse\n  todense() gives a dense array.")

    def __neg__(self) -> Any:
        return _rules().with_data(self, -self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        found = _rules().unique(self)
        return _rules().with_data(found, jnp.abs(found.data))

    def __matmul__(self, other: Any) -> Any:
        return _rules().matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _rules().matmul(other, self)

    def __mul__(self, other: Any) -> Any:
        return _rules().multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return _rules().multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        return _rules().divide(self, other)

    def __pow__(self, exponent: int) -> Any:
        return _rules().power(self, exponent)

    def __add__(self, other: Any) -> Any:
        return _rules().add(self, other)

    def __radd__(self, other: Any) -> Any:
        return _rules().add(self, other)

    def __sub__(self, other: Any) -> Any:
        return _rules().add(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return _rules().add(-self, other)

    def __getitem__(self, index: Any) -> Any:
        return _rules().getitem(self, index)


def _arrays(name: str, values: Sequence[Any]) -> list[Any]:
    return [as_value(jnp.asarray(v)) for v in values]


@boundaries
class BCOO(JAXSparse):
    """A sparse array in coordinates, with batch and dense dimensions. A pytree.

    BCOO((data, indices), shape=...); made of dense arrays by `fromdense`. `indices_sorted` and `unique_indices` promise
    that the places are in order, and that none occurs twice.

    >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.nse, m.indices
    (2, Array([[0, 1],
           [1, 0]], dtype=int32))
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices = _arrays("BCOO", args)
        sizes = tuple(int(n) for n in shape)
        n_batch = indices.ndim - 2
        n_sparse = indices.shape[-1] if indices.ndim else -1
        n_dense = data.ndim - 1 - n_batch
        if n_batch < 0 or n_dense < 0 or n_batch + n_sparse + n_dense != len(sizes):
            raise OperandError(
                f"BCOO of data {data.aval.str_short()} and indices {indices.aval.str_short()} cannot have the shape "
                f"{sizes}: data are [*batch, nse, *dense], indices [*batch, nse, n_sparse]",
                "sparse_shape",
            )
        batch, dense = sizes[:n_batch], sizes[n_batch + n_sparse :]
        nse = indices.shape[n_batch]
        data = jnp.broadcast_to(data, (*batch, nse, *dense))
        self.data, self.indices = data, jnp.broadcast_to(indices, (*batch, nse, n_sparse))
        self._sizes = sizes[n_batch : n_batch + n_sparse]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the dense array."""
        return (*self._batch(), *self._sizes, *self.data.shape[self.n_batch + 1 :])

    @property
    def n_batch(self) -> int:
        """How many batch dimensions it has."""
        return int(self.indices.ndim) - 2

    @property
    def n_sparse(self) -> int:
        """How many sparse dimensions it has."""
        return len(self._sizes)

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The sparse array of a dense one. See `bcoo_fromdense`."""
        return _rules().fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)  # type: ignore[no-any-return]

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The sparse array of one of SciPy's."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        found = mat.tocoo()
        indices = jnp.stack([jnp.asarray(found.row), jnp.asarray(found.col)], -1).astype(index_dtype or jnp.int32)
        return cls((jnp.asarray(found.data), indices), shape=found.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0,
               n_batch: int = 0, nse: int = 0) -> BCOO:  # fmt: skip
        sizes = tuple(shape)
        n_sparse = len(sizes) - n_dense - n_batch
        batch, sparse, dense = sizes[:n_batch], sizes[n_batch : n_batch + n_sparse], sizes[n_batch + n_sparse :]
        outside = jnp.broadcast_to(jnp.array(sparse, index_dtype), (*batch, nse, n_sparse))
        return cls((jnp.zeros((*batch, nse, *dense), dtype), outside), shape=sizes)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str = "error"
    ) -> BCOO:
        """The array with other numbers of batch and dense dimensions. See `bcoo_update_layout`."""
        return _rules().update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)  # type: ignore[no-any-return]

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Each place once, in order. See `bcoo_sum_duplicates`."""
        return _rules().sum_duplicates(self, nse, remove_zeros)  # type: ignore[no-any-return]

    def sort_indices(self) -> BCOO:
        """The places in order."""
        return _rules().sort_indices(self)  # type: ignore[no-any-return]

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with another shape of the same size; batch and dense dimensions must stay."""
        if kwargs:
            raise TypeError(f"reshape takes no arguments by name: {sorted(kwargs)}")
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return _rules().reshape(self, sizes)  # type: ignore[no-any-return]


@boundaries
class BCSR(JAXSparse):
    """A sparse array in compressed rows, with batch and dense dimensions: BCSR((data, indices, indptr), shape=...).

    >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> m.data, m.indices, m.indptr
    (Array([2., 3., 4.], dtype=float32), Array([1, 0, 1], dtype=int32), Array([0, 1, 3], dtype=int32))
    >>> m @ jnp.array([1.0, 10.0])
    Array([20., 43.], dtype=float32)
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices, indptr = _arrays("BCSR", args)
        sizes = tuple(int(n) for n in shape)
        n_batch = indices.ndim - 1
        n_dense = data.ndim - 1 - n_batch
        if n_batch < 0 or n_dense < 0 or n_batch + 2 + n_dense != len(sizes) or (
            indptr.shape[-1] != sizes[n_batch] + 1
        ):  # fmt: skip
            raise OperandError(
                f"BCSR of data {data.aval.str_short()}, indices {indices.aval.str_short()} and indptr "
                f"{indptr.aval.str_short()} cannot have the shape {sizes}: data are [*batch, nse, *dense], indices "
                "[*batch, nse], indptr [*batch, rows + 1]",
                "sparse_shape",
            )
        batch, dense, nse = sizes[:n_batch], sizes[n_batch + 2 :], indices.shape[-1]
        self.data = jnp.broadcast_to(data, (*batch, nse, *dense))
        self.indices = jnp.broadcast_to(indices, (*batch, nse))
        self.indptr = jnp.broadcast_to(indptr, (*batch, sizes[n_batch] + 1))
        self._sizes = sizes[n_batch : n_batch + 2]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    _parts = ("data", "indices", "indptr")
    n_sparse = 2
    """How many sparse dimensions it has."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the dense array."""
        return (*self._batch(), *self._sizes, *self.data.shape[self.n_batch + 1 :])

    @property
    def n_batch(self) -> int:
        """How many batch dimensions it has."""
        return int(self.indices.ndim) - 1

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = jnp.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The sparse array of a dense one: `nse` is the number of its nonzero elements by default."""
        found = BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)
        return cls.from_bcoo(found)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array with rows in order. It must have two sparse dimensions."""
        return _rules().compressed(arr)  # type: ignore[no-any-return]

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The sparse array of one of SciPy's."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse with nonzero n_dense/n_batch")
        found = mat.tocsr()
        places, indptr = (jnp.asarray(p).astype(index_dtype or jnp.int32) for p in (found.indices, found.indptr))
        return cls((jnp.asarray(found.data), places, indptr), shape=found.shape)

    def to_bcoo(self) -> BCOO:
        """The array in coordinates."""
        return _rules().coordinates(self)  # type: ignore[no-any-return]

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Each place once, in order."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))


for _kind in (BCOO, BCSR):
    boundaries(_kind, "__init__")


def register(kind: type[JAXSparse]) -> None:
    """Make a class of sparse arrays a pytree."""

    def flatten(x: Any) -> Any:
        return tuple([getattr(x, n) for n in kind._parts]), tuple([getattr(x, n) for n in kind._promises])

    def unflatten(promises: Any, parts: Any) -> Any:
        found = object.__new__(kind)
        for name, value in zip((*kind._parts, *kind._promises), (*parts, *promises), strict=True):
            setattr(found, name, value)
        return found

    register_pytree_node(kind, flatten, unflatten)


register(BCOO)
register(BCSR)

Function = Callable[..., Any]
