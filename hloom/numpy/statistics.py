"""Covariance and correlation, and counting into bins. Source: NumPy, and jax.numpy where they differ."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .. import lax
from ..autodiff.placed_results import computed_in
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_numpy, as_value, rank_of, shape_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, ShardingTypeError
from ..tracer.ops import convert
from ..tracer.tracer import Tracer
from .array_creation import asarray, linspace
from .array_manipulation import atleast_2d, diag, diff
from .concrete_values import known_array, known_size
from .indexing_routines import ravel_multi_index
from .promotion import check_arraylike, ensure_arraylike, promote_dtypes, promote_dtypes_inexact, to_dtype
from .reductions import average, sum
from .selection import clip, where
from .sorting import positions, searchsorted
from .tensor_contractions import dot
from .unary_ufuncs import abs, conj, real, sqrt


@compound(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: Any = None,
) -> Value:
    """The covariances of the rows of m (of its columns, if not `rowvar`) and of y, over n - ddof: [k, k] for k rows.

    Args:
      bias: the default of ddof is 0 instead of 1.
      fweights: how often each observation occurs, integers.
      aweights: the weight of each observation.
      dtype: of the result, floating or complex.

    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    given = (m,) if y is None else (m, y)
    arrays = promote_dtypes_inexact(*given, name="cov")
    for name, array in zip("my", arrays):
        if array.aval.ndim > 2:
            raise ValueError(f"cov: {name} has more than 2 dimensions: {array.aval.str_short()}")
    _inexact_or_none("cov", dtype)
    rows = [atleast_2d(array) for array in arrays]
    if not rowvar:
        rows = [
            row.T if (array.aval.ndim != 1 and row.aval.shape[0] != 1) or (k == 0 and array.aval.ndim != 1) else row
            for k, (row, array) in enumerate(zip(rows, arrays, strict=True))
        ]
    if not rows[0].aval.shape[0]:
        return lax.full((0, 0), 0, dtypes.default_float())
    x = rows[0] if len(rows) == 1 else lax.concatenate(rows, 0)
    variables, count = x.aval.shape
    if not count:
        return lax.full(() if variables == 1 else (variables, variables), math.nan, x.aval.dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _weights_of(fweights, aweights, count)
    if dtype is not None:
        kind = dtypes.requested_dtype(dtype, "cov")
        x = convert(x, kind, False)
        weights = None if weights is None else convert(weights, kind, False)
    if weights is not None:
        x, weights = _in_one_dtype(x, weights)
    centre, sums = average(x, 1, weights, returned=True)
    centred = x - lax.expand_dims(centre, [1])
    freedom: Any = count - ddof
    if weights is not None:
        freedom = lax.index_in_dim(sums, 0, 0, False)
        if ddof:
            spent = sum(weights * abs(as_value(aweights))) / freedom if aweights is not None else 1
            freedom = freedom - ddof * spent
    other = centred if weights is None else centred * lax.expand_dims(weights, [0])
    return lax.squeeze(
        found := dot(centred, conj(other).T) / freedom, [d for d in range(2) if found.aval.shape[d] == 1]
    )


def _inexact_or_none(name: str, dtype: Any) -> None:
    if dtype is not None and not dtypes.is_inexact(dtypes.requested_dtype(dtype, name)):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got dtype={dtype!r}")


def _weights_of(fweights: ArrayLike | None, aweights: ArrayLike | None, count: int) -> Value | None:
    """The product of both."""
    found: Value | None = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        w = ensure_arraylike("cov", given)
        if w.aval.ndim > 1:
            raise RuntimeError(f"cov: cannot handle multidimensional {name}: {w.aval.str_short()}")
        if w.aval.shape != (count,):
            raise RuntimeError(f"cov: incompatible numbers of samples and {name}: {count} and {w.aval.str_short()}")
        if name == "fweights" and not dtypes.is_integer(w.aval.dtype):
            raise OperandError(f"cov: fweights must be integer, not {w.aval.str_short()}", "cov")
        if found is not None:
            w, found = _in_one_dtype(w, found)
        found = abs(w) if found is None else found * abs(w)
    return found


def _in_one_dtype(x: Value, y: Value) -> tuple[Value, Value]:
    """Both in the wider of their dtypes; the function itself promotes them."""
    dtype = dtypes.wider(x.aval.dtype, y.aval.dtype)
    return to_dtype(x, dtype, False), to_dtype(y, dtype, False)


@compound(static=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None) -> Value:
    """The coefficients of correlation of the rows of x (of its columns, if not `rowvar`) and of y, from -1 to 1.
    The result is [n, n] for n variables, with ones on its diagonal, in the floating or complex dtype of the data.

    >>> jnp.corrcoef(jnp.array([[1, 2, 3], [3, 2, 1]])).round(3)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    check_arraylike("corrcoef", x)
    _inexact_or_none("corrcoef", dtype)
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.aval.ndim:
        return found / found
    spread = convert(sqrt(real(diag(found))), found.aval.dtype, False)
    found = found / lax.expand_dims(spread, [1]) / lax.expand_dims(spread, [0])
    if dtypes.is_complex(found.aval.dtype):
        return lax.complex(*[clip(part, -1, 1) for part in (lax.real(found), lax.imag(found))])
    return clip(found, -1, 1)


# ---- counting


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Value:
    """How often each number from 0 occurs in a vector of integers, or the sum of its `weights`. Under jit, `length` is
    required.

    Negative numbers count as 0, as in JAX.

    Args:
      minlength: the least size of the result.
      length: the size of the result; larger numbers are not counted. By default the largest number plus 1.
      out_sharding: where the result is: on all devices, or unreduced along all axes that divide `x`, so that each
        device counts its own numbers. ShardingTypeError for another one.

    >>> jnp.bincount(jnp.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    >>> jnp.bincount(jnp.array([0, 1, 1, 3]), length=2)
    Array([1, 2], dtype=int32)
    """
    numbers = ensure_arraylike("bincount", x)
    if numbers.aval.dtype.kind != "b" and not dtypes.is_integer(numbers.aval.dtype):
        raise OperandError(
            f"x argument to bincount must have an integer type; got {numbers.aval.str_short()}", "bincount"
        )
    if numbers.aval.ndim != 1:
        raise ValueError(f"bincount: only 1-dimensional input supported, not {numbers.aval.str_short()}")
    if weights is not None:
        check_arraylike("bincount", weights)
        if shape_of(weights) != numbers.aval.shape:
            raise ValueError(
                f"bincount: shape of weights {shape_of(weights)} must match that of x {numbers.aval.shape}"
            )
    if out_sharding is not None and getattr(out_sharding, "spec", out_sharding).axes():
        raise ShardingTypeError(
            "out_sharding passed to `jnp.bincount` can only be fully replicated or fully unreduced along all mesh axes"
        )
    if length is not None:
        size = known_size("bincount", length)
        given = [numbers] if weights is None else [numbers, weights]
        return computed_in(out_sharding, "bincount", lambda x, w=None: _counted(x, w, size), *given, is_scattered=True)
    least = known_size("bincount", minlength)
    known = known_array("bincount", numbers, "Give length=, the size of the result, which also works under jit.")
    size = max(least, int(known.max()) + 1 if known.size else 0)
    if weights is None:
        counts = np.bincount(np.maximum(known, 0).astype(np.int64), minlength=size)[:size]
        return array_from_numpy(counts.astype(dtypes.default_int()), copy=False)
    return _counted(numbers, weights, size)


@compound(static=("length",))
def _counted(numbers: Value, weights: ArrayLike | None, length: int) -> Value:
    if numbers.aval.dtype.itemsize < 4:
        numbers = lax.convert_element_type(numbers, np.int32)
    if not dtypes.is_unsigned(numbers.aval.dtype):
        numbers = lax.max(numbers, lax.full_like(numbers, 0))
    new = lax.full(numbers.aval.shape, 1, dtypes.default_int()) if weights is None else as_value(weights)
    return added_at(length, numbers, new)


def added_at(size: int, index: Value, new: Value) -> Value:
    """A vector of zeros with new elements added at indices; those out of bounds are dropped."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter_add(lax.full((size,), 0, new.aval.dtype), lax.expand_dims(index, [1]), new, numbers, mode="drop")


Bins = Any
"""A number of bins, or the edges of all."""


def histogram_bin_edges(a: ArrayLike, bins: Bins = 10, range: Any = None, weights: ArrayLike | None = None) -> Value:
    """The edges of bins of equal width, from the least to the largest element or over `range`; or `bins`, if they are
    edges themselves. `weights` have no effect.

    >>> jnp.histogram_bin_edges(jnp.array([0, 1, 4]), bins=4)
    Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError("histogram_bin_edges: string values for `bins` not implemented")
    check_arraylike("histogram_bin_edges", a, bins)
    x = as_value(a)
    dtype = dtypes.to_inexact(x.aval.dtype)
    if not x.aval.size and range is None:
        range = (0, 1)  # of nothing, as in NumPy
    if rank_of(bins) == 1:
        return to_dtype(bins, dtype, False)
    if isinstance(bins, Tracer):
        known_array("histogram: bins", bins, "The number of bins must be known, or give their edges.")
    if range is not None:
        range = asarray(range, dtype)
        if range.aval.shape != (2,):
            raise ValueError(f"`range` must be either None or a sequence of two scalars, got {range.aval.str_short()}")
    return _edges(x, range, operator.index(bins))


@compound(static=("bins",))
def _edges(x: Value, ends: Value | None, bins: int) -> Value:
    dtype = dtypes.to_inexact(x.aval.dtype)
    if ends is None:
        axes = [d for d, _ in enumerate(x.aval.shape)]
        low, high = (convert(v, dtype, False) for v in (lax.reduce_min(x, axes), lax.reduce_max(x, axes)))
    else:
        low, high = (lax.index_in_dim(ends, k, 0, False) for k in (0, 1))
    empty = low == high
    found: Value = linspace(where(empty, low - 0.5, low), where(empty, high + 0.5, high), bins + 1, dtype=dtype)
    return found


def histogram(
    a: ArrayLike,
    bins: Bins = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Value, Value]:
    """How many elements each bin has, as floats, or the sum of their `weights`; and the edges of the bins.

    A bin has its lower edge, and the last one its upper edge too. `bins`, `range`: see `histogram_bin_edges`.
    density: divided by all elements and by the bins' widths.

    >>> counts, edges = jnp.histogram(jnp.array([1.0, 2.0, 2.0, 3.0]), bins=2)
    >>> counts.tolist(), edges.tolist()
    ([1.0, 3.0], [1.0, 2.0, 3.0])
    """
    check_arraylike("histogram", a, bins)
    if weights is None:
        (x,) = promote_dtypes_inexact(a)
        heavy = None
    else:
        check_arraylike("histogram", weights)
        if shape_of(a) != shape_of(weights):
            raise ValueError(
                f"histogram: weights should have the same shape as a, {shape_of(a)}, not {shape_of(weights)}"
            )
        x, heavy = promote_dtypes_inexact(a, weights)
    edges = histogram_bin_edges(x, bins, range)
    return _in_bins(x, edges, heavy, bool(density)), edges


@compound(static=("density",))
def _in_bins(x: Value, edges: Value, weights: Value | None, density: bool) -> Value:
    weights = lax.full_like(x, 1) if weights is None else weights
    size = edges.aval.shape[0]
    places = positions(edges, x, True, closed=True)  # 0 is for values below all edges
    flat = [lax.reshape(v, (x.aval.size,)) for v in (places, weights)]
    counts = lax.slice_in_dim(added_at(size, *flat), 1, size)
    return counts / diff(edges) / sum(counts) if density else counts


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Bins = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Value, Value, Value]:
    """How many pairs of elements of two vectors each bin of a plane has; and the edges along x and y.

    bins: for both, a number or edges; or two of them. `range`: for both a pair. Others: see `histogram`.

    >>> counts, xedges, yedges = jnp.histogram2d(jnp.array([0, 1, 1]), jnp.array([0, 0, 2]), bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("histogram2d", x, y)
    try:
        several = len(bins)
    except TypeError:
        several = 1
    if several not in (1, 2):
        bins = [asarray(bins)] * 2
    sample = lax.concatenate([lax.expand_dims(v, [1]) for v in promote_dtypes(x, y)], 1)
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: Bins = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Value, list[Value]]:
    """How many rows of `sample` each bin of a space has, one dimension for each column; and the edges along each.

    bins: for all, a number; or a number or edges for each. range: for each a pair or None. Others: see `histogram`.

    >>> points = jnp.array([[0, 0], [1, 0], [1, 2]])
    >>> counts, edges = jnp.histogramdd(points, bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("histogramdd", sample)
    if rank_of(sample) != 2:
        raise ValueError(f"histogramdd: sample must have two dimensions, not {rank_of(sample)}")
    if weights is None:
        (x,) = promote_dtypes_inexact(sample)
    else:
        check_arraylike("histogramdd", weights)
        if shape_of(weights) != shape_of(sample)[:1]:
            raise ValueError("histogramdd: should have one weight for each sample")
        x, weights = promote_dtypes_inexact(sample, weights)
    rank = x.aval.shape[1]
    if range is not None and (len(range) != rank or any(r is not None and shape_of(r)[0] != 2 for r in range)):
        raise ValueError(f"histogramdd: for {x.aval.str_short()}, range must be a sequence of {rank} pairs or Nones")
    try:
        bins = list(bins)
    except TypeError:
        bins = [bins] * rank
    if len(bins) != rank:
        raise ValueError(f"histogramdd: should be a bin for each dimension, {rank}, not {len(bins)}")
    columns = [lax.index_in_dim(x, d, 1, False) for d in np.arange(rank).tolist()]
    ranges = [None] * rank if range is None else range
    edges = [histogram_bin_edges(*given) for given in zip(columns, bins, ranges, strict=True)]
    return _in_boxes(columns, edges, weights, bool(density)), edges


@compound(static=("density",))
def _in_boxes(columns: list[Value], edges: list[Value], weights: Value | None, density: bool) -> Value:
    """Boxes outside of all bins are counted too, and cut off."""
    places = []
    for x, edge in zip(columns, edges, strict=True):
        last = edge.aval.shape[0]
        found = searchsorted(edge, x, "right")
        places.append(where(lax.index_in_dim(edge, last - 1, 0, False) == x, found - 1, found))
    sizes = [edge.aval.shape[0] + 1 for edge in edges]
    flat = ravel_multi_index(places, sizes, "clip")
    counts = lax.reshape(_counted(flat, weights, math.prod(sizes)), sizes)
    counts = lax.slice(counts, [1] * len(sizes), [size - 1 for size in sizes])
    if not density:
        return counts
    counts = convert(counts, columns[0].aval.dtype, False)
    counts = counts / sum(counts)
    for d, edge in enumerate(edges):
        counts = counts / lax.broadcast_in_dim(diff(edge), counts.aval.shape, (d,))
    return counts
