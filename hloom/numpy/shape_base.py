"""Arrays put together from blocks and taken apart, and functions applied along axes or to indices.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import lax
from ..hlo.sizes import as_size
from ..lax.movement import canonical_axis, canonical_shape
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.trees import tree
from .array_manipulation import concatenate, moveaxis, ravel, split, tile
from .binary_ufuncs import power
from .promotion import check_arraylike, ensure_arraylike, strong_array, to_dtype

# ---- joining and splitting


def block(arrays: Any) -> Value:
    """An array made of blocks in nested lists: the innermost lists are joined along the last axis, those around them
    along the axis before, and so on. All arrays must be at one depth.

    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 2))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    return _block(arrays, _depth(arrays, ()))


@compound(static=("depth",), small=True)
def _block(arrays: Any, depth: int) -> Value:
    rank = max([depth, *[as_value(leaf).aval.ndim for leaf in _leaves(arrays)]])
    return _joined(arrays, depth, rank)


def _depth(arrays: Any, place: tuple[int, ...]) -> int:
    """How deep lists are nested. ValueError unless that is the same everywhere."""
    at = "arrays" + "".join(f"[{k}]" for k in place)
    if isinstance(arrays, tuple):
        raise OperandError(f"jax.numpy.block does not allow tuples, and {at} is one: use lists", "block")
    if not isinstance(arrays, list):
        check_arraylike("block", arrays)
        return 0
    if not arrays:
        raise ValueError(f"block: List at {at} cannot be empty")
    depths = {_depth(item, (*place, k)) for k, item in enumerate(arrays)}
    if len(depths) > 1:
        raise ValueError(f"block: List depths are mismatched: those in {at} are {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for item in arrays for leaf in _leaves(item)] if isinstance(arrays, list) else [arrays]


def _joined(arrays: Any, depth: int, rank: int) -> Value:
    if depth:
        return concatenate([_joined(item, depth - 1, rank) for item in arrays], -depth)
    x = as_value(arrays)
    return lax.reshape(x, (*[1] * (rank - x.aval.ndim), *x.aval.shape))


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with 3 dimensions at least: a vector becomes [1, n, 1], a matrix [m, n, 1]. A list, unless there is one.

    >>> jnp.atleast_3d(jnp.ones(4)).shape
    (1, 4, 1)
    """
    check_arraylike("atleast_3d", *arys)
    found = []
    for arg in arys:
        x = as_value(arg)
        sizes = x.aval.shape
        wanted = {0: (1, 1, 1), 1: (1, *sizes, 1), 2: (*sizes, 1)}.get(len(sizes), sizes)
        found.append(lax.reshape(x, wanted))
    return found[0] if len(found) == 1 else found


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Value]:
    """`split` along the first axis; of a vector too, as in JAX.

    >>> [x.shape for x in jnp.vsplit(jnp.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return _split_along("vsplit", ary, indices_or_sections, 0, 1)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Value]:
    """`split` along the second axis; of a vector along its only one.

    >>> [x.shape for x in jnp.hsplit(jnp.ones((4, 3)), [1])]
    [(4, 1), (4, 2)]
    """
    x = ensure_arraylike("hsplit", ary)
    return _split_along("hsplit", x, indices_or_sections, 0 if x.aval.ndim == 1 else 1, 1)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Value]:
    """`split` along the third axis; the array has 3 dimensions at least.

    >>> [x.shape for x in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def _split_along(name: str, ary: ArrayLike, where: Any, axis: int, rank: int) -> list[Value]:
    x = ensure_arraylike(name, ary)
    if x.aval.ndim < rank:
        raise ValueError(f"{name} needs {rank} dimensions at least, not {x.aval.str_short()}")
    return split(x, where, axis)


@compound(static=("axis",), small=True)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Value, ...]:
    """The arrays that `stack` along this axis puts together.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    value = ensure_arraylike("unstack", x)
    if not value.aval.shape:
        raise ValueError(f"unstack needs a dimension, not {value.aval.str_short()}")
    return lax.unstack(value, canonical_axis(axis, value.aval.ndim))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Value:
    """An axis moved before the axis that is at `start`. `moveaxis` is easier to read.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = ensure_arraylike("rollaxis", a)
    rank = x.aval.ndim
    origin, before = canonical_axis(axis, rank), operator.index(start)
    if not -rank <= before <= rank:
        raise ValueError(f"rollaxis: start={before} is not between {-rank} and {rank}")
    before += rank if before < 0 else 0
    return moveaxis(x, origin, before - 1 if origin < before else before)


def resize(a: ArrayLike, new_shape: Any) -> Value:
    """The elements in order, as often as it takes to fill the shape.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    check_arraylike("resize", a)
    return _resize(a, canonical_shape(new_shape))


@compound(static=("shape",), small=True)
def _resize(a: ArrayLike, shape: tuple[int, ...]) -> Value:
    if any(size < 0 for size in shape):
        raise ValueError(f"resize: all elements of `new_shape` must be non-negative, not {shape}")
    flat, count = ravel(a), math.prod(shape)
    if not flat.aval.size or not count:
        return lax.full_like(flat, 0, shape=shape)
    times = -(-count // flat.aval.size)
    return lax.reshape(lax.slice_in_dim(tile(flat, times), 0, count), shape)


@compound(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Value:
    """The powers of a vector's elements as rows of a matrix, [n, N]; the highest first, unless `increasing`. N is n by
    default.

    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    value = ensure_arraylike("vander", x)
    if value.aval.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array, not {value.aval.str_short()}")
    count = value.aval.size if N is None else as_size(N)
    if count < 0:
        raise ValueError(f"N must be nonnegative, not {count}")
    shape = (value.aval.size, count)
    exponent = lax.broadcasted_iota(dtypes.int32, shape, 1)
    exponent = exponent if increasing else count - 1 - exponent
    own = value.aval.dtype
    return strong_array(power(lax.broadcast_in_dim(value, shape, (0,)), to_dtype(exponent, own, False)))


# ---- applying functions


def _vmap() -> Any:
    from ..autodiff.vmap import vmap  # with it come all transformations: they are loaded when the first one is used

    return vmap


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    """``func1d(vector, *args, **kwargs)`` for each vector along an axis, by vmap: it runs once, on a traced vector. The
    dimensions of its result stand where the axis was.

    >>> jnp.apply_along_axis(lambda v: v / v.sum(), 1, jnp.array([[1, 1], [1, 3]]))
    Array([[0.5 , 0.5 ],
           [0.25, 0.75]], dtype=float32)
    """
    x = ensure_arraylike("apply_along_axis", arr)
    place = canonical_axis(axis, x.aval.ndim)
    lines = moveaxis(x, place, -1)
    outer = lines.aval.shape[:-1]
    count = math.prod(outer)

    def call(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    results = _vmap()(call)(lax.reshape(lines, (count, lines.aval.shape[-1])))

    def placed(found: Any) -> Value:
        own = found.aval.shape[1:]
        whole = lax.reshape(found, (*outer, *own))
        rank, split_at = len(outer) + len(own), len(outer)
        return lax.transpose(whole, [*range(place), *range(split_at, rank), *range(place, split_at)])

    return tree.map(placed, results)


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]) -> Value:
    """``func(a, axis)`` for one axis after the other. A result without the axis gets it back, with size 1.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2]).shape
    (1, 3, 1)
    """
    x = ensure_arraylike("apply_over_axes", a)
    for axis in axes if isinstance(axes, Sequence) else [axes]:
        place = canonical_axis(axis, x.aval.ndim)
        found = as_value(func(x, place))
        if found.aval.ndim == x.aval.ndim - 1:
            found = lax.expand_dims(found, [place])
        if found.aval.ndim != x.aval.ndim:
            raise ValueError(
                f"function is not returning an array of the correct shape: {x.aval.str_short()} became "
                f"{found.aval.str_short()}"
            )
        x = found
    return x


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function(i, j, ..., **kwargs)`` of all indices of an array, which are scalars of the dtype; by vmap.

    Unlike NumPy's, the function may take scalars only; it runs once, on traced scalars.

    >>> jnp.fromfunction(lambda i, j: i - j, (2, 3), dtype=int)
    Array([[ 0, -1, -2],
           [ 1,  0, -1]], dtype=int32)
    """
    sizes = canonical_shape(shape)
    target = dtypes.requested_dtype(dtype, "fromfunction")

    def mapped(*indices: Any) -> Any:
        return function(*indices, **kwargs)

    for axis in reversed(range(len(sizes))):
        mapped = _vmap()(mapped, in_axes=tuple([0 if d == axis else None for d in range(len(sizes))]))
    return mapped(*[lax.iota(target, size) for size in sizes])
