"""Indices of triangles and diagonals, open grids, and the objects that make arrays by slices: `mgrid`, `r_`, `s_`.

Names and semantics follow NumPy, and jax.numpy where they differ. NumPy computes results that depend on sizes alone: a
program holds it as a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..hlo.sizes import as_size, is_symbolic, smaller
from ..hlo.support.tracebacks import boundaries
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_numpy, as_value, shape_of
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError, OperandError
from ..tracer.tracer import Tracer
from .array_creation import arange, asarray, linspace, meshgrid, ones
from .array_manipulation import concatenate, diag, moveaxis, ravel, stack, triangle
from .promotion import check_arraylike, strong
from .searching import nonzero

# ---- triangles and diagonals


def _integer(name: str, what: str, given: Any) -> int:
    try:
        return as_size(given)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise OperandError(f"{name}: {what} must be an integer, not {given!r}", name) from None


def _indices(found: tuple[np.ndarray[Any, Any], ...]) -> tuple[Value, ...]:
    return tuple([array_from_numpy(d.astype(dtypes.default_int())) for d in found])


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """Rows and columns of the elements at and below diagonal k of an [n, m] matrix: two vectors of int32. m is n by
    default.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _triangle("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """Rows and columns of the elements at and above diagonal k of an [n, m] matrix: two vectors of int32. m is n by
    default.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _triangle("triu_indices", np.triu_indices, n, k, m)


def _triangle(name: str, find: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Value, Value]:
    rows = _integer(name, "n", n)
    columns = rows if m is None else _integer(name, "m", m)
    if any(map(is_symbolic, (rows, columns, k))):
        return _symbolic_triangle(name, rows, columns, k)
    first, second = _indices(find(rows, _integer(name, "k", k), columns))
    return first, second


def _symbolic_triangle(name: str, rows: Any, columns: Any, k: Any) -> tuple[Value, Value]:
    """The indices of the elements of a triangle of symbolic sizes, found in a mask."""
    is_lower = name == "tril_indices"
    mask = triangle(name, rows, columns, k if is_lower else k - 1)
    count = _in_upper(columns, rows, -k) if is_lower else _in_upper(rows, columns, k)
    first, second = nonzero(mask if is_lower else ~mask, size=count)
    return first, second


def _in_upper(rows: Any, columns: Any, k: Any) -> Any:
    """How many elements of a matrix are at and above diagonal k."""
    if k < 0:
        return rows * columns - _in_upper(columns, rows, 1 - k)
    if k >= columns:
        return 0
    edge = smaller(rows, columns - k)  # rows that begin at the diagonal, one shorter than the other
    return edge * (edge + 1) // 2 + edge * (columns - k - edge)


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = shape_of(arr)
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by {name}, not shape {shape}")
    return shape[0], shape[1]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`tril_indices` for the shape of a matrix.

    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`triu_indices` for the shape of a matrix.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Value, ...]:
    """The indices of the diagonal of an array with `ndim` dimensions of size n: `ndim` vectors of int32.

    >>> x = jnp.ones((2, 2))
    >>> x.at[jnp.diag_indices(2)].set(0)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    size, count = _integer("diag_indices", "n", n), _integer("diag_indices", "ndim", ndim)
    if size < 0 or count < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative: {size} and {count}")
    return (lax.iota(dtypes.default_int(), size),) * count


def diag_indices_from(arr: ArrayLike) -> tuple[Value, ...]:
    """`diag_indices` for an array of two or more dimensions, which have one size.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    check_arraylike("diag_indices_from", arr)
    shape = shape_of(arr)
    if len(shape) < 2:
        raise ValueError(f"diag_indices_from: input array must be at least 2-d, not {shape}")
    if len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, not {shape}")
    return diag_indices(shape[0], len(shape))


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Value, Value]:
    """Rows and columns of the elements of an [n, n] matrix of ones that ``mask_func(ones, k)`` keeps.

    size: how many to return: the last ones are cut off, or there are zeros at the end. Under `jit` it is needed.

    >>> jnp.mask_indices(2, jnp.tril)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    kept = asarray(mask_func(ones((n, n)), k)) != 0
    concrete = kept.to_concrete_value() if isinstance(kept, Tracer) else kept
    if concrete is not None:
        found = np.nonzero(np.asarray(concrete))
        if size is not None:
            short = [d[:size] for d in found]
            found = tuple([np.pad(d, (0, size - d.size)) for d in short])
        first, second = _indices(found)
        return first, second
    if size is None:
        assert isinstance(kept, Tracer), f"{kept!r} is concrete"
        need = "mask_indices: how many elements the mask keeps must be known, or size is needed"
        raise kept.unknown(need, "Give size=.")
    flat = ravel(kept)
    place = lax.cumsum(lax.convert_element_type(flat, np.int32)) - 1
    place = lax.select(flat, place, lax.full_like(place, size))
    number = (
        lax.full((size,), 0, dtypes.default_int()).at[place].set(lax.iota(dtypes.default_int(), n * n), mode="drop")
    )
    filled = lax.iota(np.int32, size) < lax.reduce_sum(lax.convert_element_type(flat, np.int32), [0])
    number = lax.select(filled, number, lax.full_like(number, 0))
    return number // n, number % n


def diagflat(v: ArrayLike, k: int = 0) -> Value:
    """A matrix with the flattened v on diagonal k: [v.size + |k|, v.size + |k|].

    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    check_arraylike("diagflat", v)
    return strong(diag(ravel(v), _integer("diagflat", "k", k)))


def ix_(*args: ArrayLike) -> tuple[Value, ...]:
    """Vectors as an open grid: the k-th along dimension k, so that ``x[ix_(rows, columns)]`` is a block of a matrix.
    A boolean vector stands for the places where it is true.

    >>> x = jnp.arange(9).reshape(3, 3)
    >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([0, 1]))]
    Array([[0, 1],
           [6, 7]], dtype=int32)
    """
    check_arraylike("ix_", *args)
    found = []
    for k, arg in enumerate(args):
        x = as_value(arg)
        if x.aval.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, not {x.aval.str_short()}")
        if x.aval.dtype.kind == "b":
            concrete = x.to_concrete_value() if isinstance(x, Tracer) else x
            if concrete is None:
                raise NotImplementedError(
                    "ix_: the places where a traced mask is true have no fixed number\n  Use hloom.numpy.where, or "
                    "make the mask outside of jit."
                )
            (places,) = _indices(np.nonzero(np.asarray(concrete)))
            x = places
        elif not x.aval.size and dtypes.is_inexact(x.aval.dtype):
            x = lax.convert_element_type(x, dtypes.default_int())
        found.append(lax.reshape(x, [x.aval.size if d == k else 1 for d in range(len(args))]))
    return tuple(found)


# ---- objects that are indexed


def _steps(key: slice) -> tuple[Any, Any, Any]:
    """A whole slice stands for no numbers."""
    if key.stop is None and key.start is not None:
        raise ValueError(f"a slice that makes numbers needs an end: {key}")
    start, stop = (0 if bound is None else bound for bound in (key.start, key.stop))
    return start, stop, 1 if key.step is None else key.step


def _numbers(name: str, key: slice, inexact: bool = False) -> Value:
    """The numbers that a slice stands for: with a complex step, as many as its size, the end included."""
    for part in ("start", "stop", "step"):
        bound = getattr(key, part)
        if isinstance(bound, Tracer) and bound.to_concrete_value() is None:
            raise bound.unknown(f"the slice {part} of jnp.{name} is needed", "Make it a static argument.")
    start, stop, step = _steps(key)
    if isinstance(step, complex):
        found: Value = linspace(start, stop, int(abs(step)))
        return found
    given = [v for v in (key.start, key.stop, key.step) if v is not None]
    dtype = dtypes.result_type(*(given or [0]), *([1.0] if inexact else []))
    return arange(start, stop, step, dtype=dtype)


class _Indexed:
    """An object that a namespace has under its name, and that is indexed."""

    def __init__(self, name: str, doc: str) -> None:
        self.__name__ = name
        self.__qualname__ = name
        self.__module__ = __name__
        self.__doc__ = doc

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<hloom.numpy.{self.__name__}>"


class _Grid(_Indexed):
    """`mgrid` and `ogrid`: an index with a slice for each dimension is a grid of coordinates."""

    def __init__(self, name: str, sparse: bool, doc: str) -> None:
        super().__init__(name, doc)
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _numbers(self.__name__, key)
        keys = list(key) if isinstance(key, tuple) else [key]
        if not all(isinstance(k, slice) for k in keys):
            raise TypeError(f"{self.__name__}[...] takes slices, not {key!r}")
        if not keys:
            return [] if self._sparse else asarray([], dtypes.default_int())
        inexact = any(isinstance(k.step, complex) for k in keys)
        vectors = [_numbers(self.__name__, k, inexact) for k in keys]
        dtype = dtypes.result_type(*vectors)
        vectors = [lax.convert_element_type(v, dtype) for v in vectors]
        grids = meshgrid(*vectors, indexing="ij", sparse=self._sparse)
        return grids if self._sparse else stack(grids)


class _Joiner(_Indexed):
    """`r_` and `c_`: an index of arrays, numbers and slices is their concatenation."""

    def __init__(self, name: str, axis: int, ndmin: int, place: int, doc: str) -> None:
        super().__init__(name, doc)
        self._defaults = (axis, ndmin, place)

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, place = self._defaults
        as_matrix: str | None = None
        if keys and isinstance(keys[0], str):
            directive = keys.pop(0)
            if directive in ("r", "c"):
                as_matrix = directive
                ndmin = 2
            else:
                axis, ndmin, place = _directive(directive, self._defaults)
        if not keys:
            raise ValueError(f"{self.__name__}[...] needs something to join")
        parts = []
        for k in keys:
            if isinstance(k, str):
                raise ValueError(f"string directive {k!r} must be placed at the beginning")
            value, own = (_numbers(self.__name__, k), 1) if isinstance(k, slice) else _entry(k)
            missing = ndmin - value.aval.ndim
            if missing > 0:
                value = lax.reshape(value, (*[1] * missing, *value.aval.shape))
                if place != -1 or own != value.aval.ndim:
                    value = _placed(value, own, ndmin, place)
            parts.append(value)
        if as_matrix is not None:
            column = as_matrix == "c" and all(p.aval.shape[0] == 1 for p in parts)
            joined = concatenate(parts, 1)
            return lax.reshape(joined, (joined.aval.size, 1)) if column else joined
        return concatenate(parts, axis)


def _entry(key: Any) -> tuple[Value, int]:
    """An entry that is an array or a number, with one dimension at least, and how many dimensions it has itself."""
    value = key if isinstance(key, ArrayBase) else asarray(key)
    own = value.aval.ndim
    return (lax.reshape(value, (1,)), 0) if not own else (value, own)


def _placed(value: Value, own: int, ndmin: int, place: int) -> Value:
    """`value` with its own dimensions, which are the last, moved so that the first is at `place`."""
    own = max(own, 1)
    start = place if place >= 0 else ndmin + place - own + 1
    start = min(max(start, 0), ndmin - own)
    return moveaxis(value, tuple(range(ndmin - own, ndmin)), tuple(range(start, start + own)))


def _directive(text: str, defaults: tuple[int, int, int]) -> tuple[int, int, int]:
    """``"axis"``, ``"axis,ndmin"`` or ``"axis,ndmin,place"``."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"could not understand directive {text!r}") from None
    if len(numbers) > 3:
        raise ValueError(f"unknown special directive {text!r}")
    axis, ndmin, place = (*numbers, *defaults[len(numbers) :])
    return axis, ndmin, place


class _Index(_Indexed):
    """`s_` and `index_exp`: they return the index itself."""

    def __init__(self, name: str, always_tuple: bool, doc: str) -> None:
        super().__init__(name, doc)
        self._always_tuple = always_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._always_tuple and not isinstance(key, tuple) else key


for _kind in (_Grid, _Joiner, _Index):
    boundaries(_kind, "__getitem__")

mgrid: _Grid = _Grid(
    "mgrid",
    False,
    """The coordinates of a grid, in full: ``mgrid[0:2, 0:3]`` is [2, 2, 3]. A complex step is a number of points.

    >>> import hloom.numpy as jnp
    >>> jnp.mgrid[0:2, 0:1:3j].shape
    (2, 2, 3)
    """,
)
ogrid: _Grid = _Grid(
    "ogrid",
    True,
    """The coordinates of a grid, each along its own dimension: a list. A complex step is a number of points.

    >>> import hloom.numpy as jnp
    >>> [x.shape for x in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """,
)
r_: _Joiner = _Joiner(
    "r_", 0, 1, -1,
    """Arrays, numbers and slices, joined along the first axis: ``r_[1, 2:5, x]``.

    A text in front says the axis, the least number of dimensions, and where the dimensions of arrays with fewer go:
    ``r_["-1,2,0", x, y]``; "r" and "c": a matrix of one row or column.

    >>> import hloom.numpy as jnp
    >>> jnp.r_[1, 2:5, jnp.array([7])].tolist()
    [1, 2, 3, 4, 7]
    """,
)  # fmt: skip
c_: _Joiner = _Joiner(
    "c_", -1, 2, 0,
    """Arrays and slices as columns, joined along the last axis: ``r_["-1,2,0", ...]``.

    >>> import hloom.numpy as jnp
    >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])].tolist()
    [[1, 3], [2, 4]]
    """,
)  # fmt: skip
s_: _Index = _Index(
    "s_",
    False,
    """The index itself: ``s_[1:, 0]`` is ``(slice(1, None), 0)``.

    >>> import hloom.numpy as jnp
    >>> jnp.s_[2:4]
    slice(2, 4, None)
    """,
)
index_exp: _Index = _Index(
    "index_exp",
    True,
    """The index itself, as a tuple: ``index_exp[1:]`` is ``(slice(1, None),)``.

    >>> import hloom.numpy as jnp
    >>> jnp.index_exp[2:4]
    (slice(2, 4, None),)
    """,
)
