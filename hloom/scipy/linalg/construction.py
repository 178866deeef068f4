"""Matrices of a known form. Names and semantics follow scipy.linalg, and jax.scipy.linalg where they differ."""

from __future__ import annotations

from typing import Any

from ...lax.linalg.lapack import fail
from ...lax.movement import broadcast_shapes
from ...numpy.array_creation import arange, zeros, zeros_like
from ...numpy.array_manipulation import concatenate, flip, reshape, tile
from ...numpy.padding import pad
from ...numpy.promotion import broadcast_to_shape, check_arraylike, promote_dtypes
from ...numpy.unary_ufuncs import conj
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.core import Value


def block_diag(*arrs: ArrayLike) -> Value:
    """The matrices below one another, each to the right of the one before; zeros elsewhere. A vector is a row.

    >>> linalg.block_diag(jnp.array([[1, 2], [3, 4]]), jnp.array([[5]]))
    Array([[1, 2, 0],
           [3, 4, 0],
           [0, 0, 5]], dtype=int32)
    """
    if not arrs:
        return zeros((1, 0))
    values = promote_dtypes(*arrs, name="block_diag")
    blocks: list[Any] = []
    for value in values:
        if value.aval.ndim > 2:
            fail("block_diag", [value], "arguments must have at most 2 dimensions", "rank")
        blocks.append(reshape(value, (1,) * (2 - value.aval.ndim) + value.aval.shape))
    width, rows, before = sum(b.shape[1] for b in blocks), [], 0
    for block in blocks:
        rows.append(pad(block, ((0, 0), (before, width - before - block.shape[1]))))
        before += block.shape[1]
    return concatenate(rows)


def _by_antidiagonals(values: Any, rows: int, columns: int) -> Value:
    """The matrices with values[..., i + j] at (i, j): the values repeated, in rows that are longer than them by one."""
    batch, count = values.shape[:-1], values.shape[-1]
    if not rows or not columns:
        return reshape(values[..., :0], (*batch, rows, columns))
    repeated: Any = tile(values, (*[1] * len(batch), rows + 1))
    return reshape(repeated[..., : rows * (count + 1)], (*batch, rows, count + 1))[..., :columns]


def _vectors(name: str, c: ArrayLike, r: ArrayLike) -> list[Any]:
    """Both with a last dimension, of one dtype and with the same batch dimensions."""
    values = [reshape(v, (1,)) if not v.aval.ndim else v for v in promote_dtypes(c, r, name=name)]
    batch = broadcast_shapes(*[v.aval.shape[:-1] for v in values])
    return [broadcast_to_shape(v, (*batch, v.aval.shape[-1])) for v in values]


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """c[..., i - j] on and below the diagonal, r[..., j - i] above it; r is conj(c) by default.

    c: [..., m], r: [..., n]; the result is [..., m, n] with leading dimensions broadcast.

    >>> linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 8, 9]))
    Array([[1, 8, 9],
           [2, 1, 8],
           [3, 2, 1]], dtype=int32)
    """
    check_arraylike("toeplitz", c)
    first, row = _vectors("toeplitz", c, conj(c) if r is None else r)
    values = concatenate([flip(first, -1), row[..., 1:]], -1)
    return flip(_by_antidiagonals(values, first.shape[-1], row.shape[-1]), -2)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """c down the first column, then r[..., 1:] along the last row, zeros by default; constant along antidiagonals.

    c: [..., m], r: [..., n]; the result is [..., m, n] with leading dimensions broadcast.

    >>> linalg.hankel(jnp.array([1, 2, 3]), jnp.array([3, 4, 5]))
    Array([[1, 2, 3],
           [2, 3, 4],
           [3, 4, 5]], dtype=int32)
    """
    check_arraylike("hankel", c)
    first, row = _vectors("hankel", c, zeros_like(c) if r is None else r)
    return _by_antidiagonals(concatenate([first, row[..., 1:]], -1), first.shape[-1], row.shape[-1])


def hilbert(n: int) -> Value:
    """The Hilbert matrix [n, n] of 1 / (i + j + 1), of the default floating-point dtype; badly conditioned.

    >>> linalg.hilbert(3).round(3)
    Array([[1.   , 0.5  , 0.333],
           [0.5  , 0.333, 0.25 ],
           [0.333, 0.25 , 0.2  ]], dtype=float32)
    """
    places: Any = arange(n, dtype=dtypes.default_float())
    found: Value = 1 / (places[:, None] + places + 1)
    return found
