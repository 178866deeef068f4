"""Further matrices of a known form. Names and semantics follow scipy.linalg, and jax.scipy.linalg where they differ.

Vectors may have leading batch dimensions; then there is a matrix for each.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import lax
from ...lax.linalg.lapack import fail
from ...numpy.array_creation import arange, array, asarray, eye, ones, zeros
from ...numpy.array_manipulation import atleast_1d, concatenate, expand_dims, flip
from ...numpy.padding import pad
from ...numpy.promotion import check_arraylike, promote, promote_dtypes, promote_inexact
from ...numpy.selection import where
from ...numpy.unary_ufuncs import absolute, exp
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .construction import toeplitz

# ---- of vectors


def _vector(name: str, a: ArrayLike, least: int, *, inexact: bool = True) -> Any:
    """The argument `a` as an array with at least `least` numbers along its last dimension."""
    (value,) = promote_inexact(name, a) if inexact else promote(name, a)
    found = atleast_1d(value)
    if found.shape[-1] < least:
        wanted = "nonzero" if least == 1 else f"at least {least}"
        why = f"the length of `a` along the last axis must be {wanted}; got shape {found.shape}"
        fail(name, [found], why, "length")
    return found


@compound()
def circulant(c: ArrayLike) -> Value:
    """c[..., (i - j) mod n] at (i, j).

    A vector [..., n] gives a matrix [..., n, n] of its dtype.

    >>> linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    values = _vector("circulant", c, 0, inexact=False)
    places = np.arange(values.shape[-1])
    found: Value = values[..., (places[:, None] - places) % max(len(places), 1)]
    return found


@compound()
def companion(a: ArrayLike) -> Value:
    """The matrix with the roots of the polynomial a[..., 0] x^n + ... + a[..., n].

    >>> a = linalg.companion(jnp.array([1.0, -3.0, 2.0]))  # x**2 - 3 x + 2
    >>> a, jnp.sort(jnp.linalg.eigvals(a).real).round(3)
    (Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32), Array([1., 2.], dtype=float32))
    """
    values = _vector("companion", a, 2)
    size = values.shape[-1] - 1
    first = -values[..., 1:] / values[..., :1]
    return _below(first, ones((*values.shape[:-1], size - 1), values.dtype))


@compound()
def leslie(f: ArrayLike, s: ArrayLike) -> Value:
    """The matrix of a population in ages: f, how many children each age has, above s, which part of it lives on.

    >>> linalg.leslie(jnp.array([0.0, 1.5, 1.0]), jnp.array([0.5, 0.25]))
    Array([[0.  , 1.5 , 1.  ],
           [0.5 , 0.  , 0.  ],
           [0.  , 0.25, 0.  ]], dtype=float32)
    """
    first, low = (atleast_1d(v) for v in promote_dtypes(f, s, name="leslie"))
    if first.shape[-1] < 2:
        fail("leslie", [first, low], "the length of f along the last axis must be at least 2", "length")
    if low.shape[-1] != first.shape[-1] - 1:
        fail("leslie", [first, low], "Incorrect lengths for f and s: s must have one number less than f", "length")
    batch = lax.broadcast_shapes(first.shape[:-1], low.shape[:-1])
    first, low = (lax.broadcast_in_dim(v, (*batch, v.shape[-1]), range(len(batch) + 1 - v.ndim, len(batch) + 1))
                  for v in (first, low))  # fmt: skip
    return _below(first, low)


def _below(first: Any, low: Any) -> Value:
    """The matrices with a first row, and numbers below the diagonal."""
    size = low.shape[-1]
    rest = expand_dims(low, -1) * eye(size, size + 1, dtype=low.dtype)
    return concatenate([expand_dims(first, -2), rest], -2)


@compound()
def fiedler(a: ArrayLike) -> Value:
    """|a[..., i] - a[..., j]| at (i, j).

    A vector [..., n] gives a matrix [..., n, n] of its dtype.

    >>> linalg.fiedler(jnp.array([1, 4, 9]))
    Array([[0, 3, 8],
           [3, 0, 5],
           [8, 5, 0]], dtype=int32)
    """
    values = _vector("fiedler", a, 0, inexact=False)
    return absolute(values[..., None] - values[..., None, :])


@compound()
def fiedler_companion(a: ArrayLike) -> Value:
    """As `companion`, with five diagonals: M. Fiedler, "A note on companion matrices" (2003).

    >>> linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    values = _vector("fiedler_companion", a, 1)
    size, batch = values.shape[-1] - 1, values.shape[:-1]
    scaled = values / values[..., :1]
    found: Any = zeros((*batch, size, size), values.dtype)
    if not size:
        return found  # type: ignore[no-any-return]
    found = found.at[..., 0, 0].set(-scaled[..., 1])
    if size > 1:
        found = found.at[..., 1, 0].set(1)
    even, odd = np.arange(0, size - 1, 2), np.arange(2, size, 2)
    found = found.at[..., even, even + 1].set(-scaled[..., even + 2])
    found = found.at[..., odd, odd - 1].set(-scaled[..., odd + 1])
    found = found.at[..., even[even < size - 2], even[even < size - 2] + 2].set(1)
    below = np.arange(3, size, 2)
    result: Value = found.at[..., below, below - 2].set(1)
    return result


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Value:
    """The matrix that takes a vector of n numbers to `numpy.convolve(a, vector, mode)`.

    >>> linalg.convolution_matrix(jnp.array([1, 2, 3]), 2)
    Array([[1, 0],
           [2, 1],
           [3, 2],
           [0, 3]], dtype=int32)
    """
    count = operator.index(n)
    if count <= 0:
        raise ValueError(f"n must be a positive integer; got {count}.")
    check_arraylike("convolution_matrix", a)
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    value = asarray(a)
    if not value.ndim or not value.shape[-1]:
        fail("convolution_matrix", [value], "a must be at least 1-dimensional, and len(a) must be at least 1", "length")
    return _convolution_matrix(value, count, mode)


@compound(static=("n", "mode"))
def _convolution_matrix(a: Any, n: int, mode: str) -> Value:
    size = a.shape[-1]
    cut = {"full": 0, "same": min(n, size) - 1, "valid": 2 * (min(n, size) - 1)}[mode]
    before = cut // 2
    width = [(0, 0)] * (a.ndim - 1) + [(0, n - 1)]
    column: Any = pad(a, width)
    row: Any = pad(flip(a, -1), width)
    rows = size + n - 1
    return toeplitz(column[..., before : rows - (cut - before)], row[..., rows - n - before : rows - before])


# ---- of sizes


@compound(static=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Value:
    """exp(-2 pi i j k / n): the matrix of `numpy.fft.fft`. scale: "sqrtn" or "n", the divisor.

    >>> x = jnp.array([1.0, 2.0, 4.0])
    >>> bool(jnp.allclose(linalg.dft(3) @ x, jnp.fft.fft(x), atol=1e-5))
    True
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    chosen = dtypes.to_complex(dtypes.default_float()) if dtype is None else dtypes.requested_dtype(dtype, "dft")
    if not dtypes.is_complex(chosen):
        raise ValueError(f"dtype must be a complex floating-point type; got {chosen}.")
    places: Any = arange(n)
    turns = (places[:, None] * places % max(n, 1)).astype(dtypes.real_of(chosen)) * (-2 * math.pi / max(n, 1))
    found: Any = exp(lax.complex(lax.full_like(turns, 0), turns))
    return found / {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]  # type: ignore[no-any-return]


@compound(static=("n", "dtype"))
def hadamard(n: int, dtype: Any = int) -> Value:
    """1 and -1 in rows that are orthogonal: Sylvester's matrix. n: a power of 2.

    >>> linalg.hadamard(4)
    Array([[ 1,  1,  1,  1],
           [ 1, -1,  1, -1],
           [ 1,  1, -1, -1],
           [ 1, -1, -1,  1]], dtype=int32)
    """
    size = operator.index(n)
    if size < 1 or size & (size - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    places: Any = arange(size)
    is_odd = lax.population_count(places[:, None] & places) & 1
    found: Any = where(is_odd == 1, -1, 1)
    return found.astype(dtypes.requested_dtype(dtype, "hadamard"))  # type: ignore[no-any-return]


@compound(static=("n", "full"))
def helmert(n: int, full: bool = False) -> Value:
    """Orthonormal rows: row i compares the mean of the first i + 1 numbers with the next; `full`: below one of
    1 / sqrt(n).

    >>> linalg.helmert(3).round(3)
    Array([[ 0.707, -0.707,  0.   ],
           [ 0.408,  0.408, -0.816]], dtype=float32)
    """
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    real = dtypes.default_float()
    k: Any = arange(1, n, dtype=real)[:, None]
    places: Any = arange(n, dtype=real)
    found: Value = where(places < k, 1, where(places == k, -k, 0)) / lax.sqrt(k * (k + 1))
    if not full:
        return found
    return concatenate([lax.full((1, n), 1 / math.sqrt(n), real), found], 0)


def invhilbert(n: int) -> Value:
    """The inverse of `hilbert(n)`, with integers as entries, as floats.

    >>> linalg.invhilbert(3)
    Array([[   9.,  -36.,   30.],
           [ -36.,  192., -180.],
           [  30., -180.,  180.]], dtype=float32)
    """
    numbers = [
        [
            (-1) ** (i + j) * (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
            * math.comb(i + j, i) ** 2
            for j in range(n)
        ]
        for i in range(n)
    ]  # fmt: skip
    return _constant(numbers, n)


def pascal(n: int, kind: str | None = None) -> Value:
    """Pascal's triangle: "lower" binomial(i, j) at (i, j), "upper" its transpose, "symmetric" (also None) their
    product.

    >>> linalg.pascal(4, kind="lower")
    Array([[1., 0., 0., 0.],
           [1., 1., 0., 0.],
           [1., 2., 1., 0.],
           [1., 3., 3., 1.]], dtype=float32)
    """
    chosen = _kind(kind)
    if chosen == "symmetric":
        return _constant([[math.comb(i + j, i) for j in range(n)] for i in range(n)], n)
    lower = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    return _constant(lower if chosen == "lower" else list(zip(*lower, strict=True)), n)


def invpascal(n: int, kind: str | None = None) -> Value:
    """The inverse of `pascal(n, kind)`.

    >>> linalg.invpascal(3)
    Array([[ 3., -3.,  1.],
           [-3.,  5., -2.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    chosen = _kind(kind)
    lower = [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    upper = list(zip(*lower, strict=True))
    if chosen != "symmetric":
        return _constant(lower if chosen == "lower" else upper, n)
    return _constant([[sum(a * b for a, b in zip(u, v)) for v in upper] for u in upper], n)


def _kind(kind: str | None) -> str:
    kinds = ["symmetric", "lower", "upper"]
    if kind is not None and kind not in kinds:
        raise ValueError(f"Expected kind to be one of: {kinds}; got {kind}")
    return kind or "symmetric"


def _constant(rows: Any, n: int) -> Value:
    """Exact integers as floats."""
    numbers = np.array([[float(x) for x in row] for row in rows], np.float64).reshape(n, n)
    return array(numbers, dtype=dtypes.default_float())
