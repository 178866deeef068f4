"""Linear systems, inverses and least squares. Names and semantics follow NumPy, and jax.numpy.linalg where they
differ."""

from __future__ import annotations

import math
from typing import Any, cast

from ...extend.primitive import Primitive
from ...lax import linalg
from ...lax.linalg.lapack import fail, half_of, matrices, rounded, takes_batches, widened
from ...lax.linalg.least_squares import least_squares
from ...lax.linalg.lu import solve as solve_matrices
from ...lax.movement import broadcast_shapes, canonical_axis
from ...tracer import dtypes
from ...tracer.arrays.array import as_value
from ...tracer.arrays.matrices import adjoint, batch_of, identity, sizes
from ...tracer.arrays.matrices import matmul as product
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .. import reductions as red
from .. import unary_ufuncs as ew
from ..array_manipulation import moveaxis, reshape
from ..promotion import broadcast_to_shape, check_arraylike, promote_dtypes_inexact, promote_inexact, to_dtype
from ..selection import where
from .decompositions import svd


@compound()
def solve(a: ArrayLike, b: ArrayLike) -> Value:
    """x of a x = b; a: [..., n, n]; b: [n], or [..., n, k]. Leading dimensions broadcast.

    Its derivatives use the factors of a that it finds.
    Integers become floats. A singular matrix gives infinity or NaN, where NumPy raises LinAlgError.

    >>> a = jnp.array([[2.0, 0.0], [0.0, 4.0]])
    >>> jnp.linalg.solve(a, jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    check_arraylike("linalg.solve", a, b)
    if half := half_of(a, b):
        return cast("Value", rounded(half, solve(*widened(a, b))))
    x, y = promote_dtypes_inexact(a, b)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        fail("solve", [x, y], "Argument to solve must have shape [..., n, n]", "square")
    if not y.aval.ndim:
        fail("solve", [x, y], "b must have at least one dimension", "b")
    is_vector = y.aval.ndim == 1
    if is_vector:
        y = reshape(y, (-1, 1))
    n = x.aval.shape[-1]
    if y.aval.shape[-2] != n:
        why = f"b must have {n} rows"
        if y.aval.shape[-1] == n:
            why += "; for a vector for each matrix, solve(a, b[..., None])[..., 0]"
        fail("solve", [x, y], why, "rows")
    batch = broadcast_shapes(batch_of(x), batch_of(y))
    x, y = (matrices("solve", broadcast_to_shape(v, (*batch, *sizes(v)))) for v in (x, y))
    found: Value = solve_matrices(x, y)
    return reshape(found, found.aval.shape[:-1]) if is_vector else found


@compound()
def inv(a: ArrayLike) -> Value:
    """The inverses of square matrices [..., n, n]; infinite or NaN where there is none (NumPy raises LinAlgError).

    To solve equations, `solve` is faster and more accurate.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    check_arraylike("linalg.inv", a)
    if half := half_of(a):
        return cast("Value", rounded(half, inv(*widened(a))))
    (x,) = promote_dtypes_inexact(a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        fail("inv", [x], "Argument to inv must have shape [..., n, n]", "square")
    x = matrices("inv", x)
    return solve_matrices(x, identity(x.aval.shape, x.aval.dtype))


# ---- pseudo-inverses and least squares


@compound(static=("hermitian",))
def pinv(a: ArrayLike, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Value:
    """The pseudo-inverse of matrices [..., m, n], [..., n, m].

    Singular values below `rtol` (also called `rcond`) times the largest one count as zero; it is a number, or one for
    each matrix, by default 10 max(m, n) eps. `hermitian` says that a is Hermitian. The derivative is that for constant
    rank.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]])).round(3)
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    check_arraylike("linalg.pinv", a)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    (x,) = promote_dtypes_inexact(a)
    x = matrices("pinv", x, square=hermitian)
    real = dtypes.real_of(x.aval.dtype)
    limit = 10.0 * max(sizes(x)) * float(dtypes.finfo(real).eps) if rtol is None else rtol
    given, batch = to_dtype(limit, real, False), batch_of(x)
    shape = given.aval.shape
    if len(shape) > len(batch) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(batch), strict=False)):
        raise ValueError(
            f"pinv: rtol is a number, or one for each matrix: its shape {shape} does not broadcast to {batch}, the "
            f"batch of {x.aval.str_short()}"
        )
    limits = broadcast_to_shape(given, batch)
    found: Value = _pinv.bind(x, limits, hermitian=bool(hermitian))
    return found


_pinv = Primitive("pinv")
takes_batches(_pinv)


@_pinv.def_meaning
def _pinv_meaning(a: Value, rtol: Value, *, hermitian: bool) -> Value:
    m, n = sizes(a)
    if not m or not n:
        return adjoint(a)
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    is_kept = s > rtol[..., None] * s[..., :1]
    inverse = where(is_kept, 1 / where(is_kept, s, 1), 0).astype(a.dtype)
    return product(adjoint(vh) * inverse[..., None, :], adjoint(u))


@_pinv.def_jvp
def _pinv_jvp(primals: Any, tangents: Any, *, hermitian: bool) -> tuple[Value, Value]:
    """Golub and Pereyra, 1973: dP = -P da P + P P^H da^H (1 - a P) + (1 - P a) da^H P^H P."""
    (a, rtol), (da, _) = primals, tangents
    p: Any = _pinv.bind(a, rtol, hermitian=hermitian)
    if hermitian:  # the singular values are those of this mean
        a, da = (a + adjoint(a)) / 2, (da + adjoint(da)) / 2
    m, n = sizes(a)

    def triple(x: Any, y: Any, z: Any) -> Any:
        """x y z, of [n, m], [m, n] and [n, m], by way of the smaller square."""
        return product(product(x, y), z) if n < m else product(x, product(y, z))

    ph, dah = adjoint(p), adjoint(da)
    beside, above = triple(p, ph, dah), triple(dah, ph, p)
    return p, beside - triple(beside, a, p) + above - triple(p, a, above) - triple(p, da, p)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[Value, Value, Value, Value]:
    """x with the smallest |a x - b|, and of these the smallest |x|: (x, residuals, rank of a, singular values of a).

    a: [m, n]; b: [m] or [m, k]. Singular values below `rcond` times the largest one count as zero; by default eps times
    the larger of m and n. Residuals are |a x - b|^2 of each column; with `numpy_resid` there are none where the rank is
    less than n or m <= n, as in NumPy: then the rank must not be traced.

    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))
    >>> x.round(3), rank
    (Array([1., 2.], dtype=float32), Array(2, dtype=int32))
    """
    found = _lstsq(a, b, rcond)
    if not numpy_resid:
        return found
    x, residuals, rank, s = found
    m, n = as_value(a).aval.shape
    return x, (residuals[:0] if m <= n or int(rank) < n else residuals), rank, s


@compound()
def _lstsq(a: ArrayLike, b: ArrayLike, rcond: Any) -> tuple[Value, Value, Value, Value]:
    x, y = promote_dtypes_inexact(a, b, name="linalg.lstsq")
    if x.aval.shape[:1] != y.aval.shape[:1] or not x.aval.ndim:
        fail("lstsq", [x, y], "Leading dimensions of input arrays must match", "rows")
    if x.aval.ndim != 2 or y.aval.ndim > 2:
        fail("lstsq", [x, y], "a must be two-dimensional, b one or two-dimensional", "rank")
    x = matrices("lstsq", x)
    m, n = sizes(x)
    columns = reshape(y, (m, 1)) if y.aval.ndim == 1 else y
    real = dtypes.real_of(x.aval.dtype)
    eps = float(dtypes.finfo(real).eps)
    if not x.aval.size:
        s, rank = ew.abs(x).reshape(-1)[:0], red.sum(x, dtype=dtypes.default_int())
        solution: Any = broadcast_to_shape(red.sum(columns[:0], 0), (n, columns.aval.shape[1]))
    else:
        limit: Any = eps * max(m, n) if rcond is None else rcond
        if rcond is not None:
            limit = where(as_value(limit) < 0, eps, limit)
        u, s, vh = linalg.svd(x, full_matrices=False)
        is_kept = (s > 0) & (s >= to_dtype(limit, real, False) * s[0])
        rank = is_kept.sum()
        inverse = where(is_kept, 1 / where(is_kept, s, 1), 0)
        solution = least_squares(x, (u, inverse, vh), columns)
    residuals = red.sum(ew.square(ew.abs(columns - product(x, solution))), 0)
    return (solution[:, 0] if y.aval.ndim == 1 else solution), residuals, rank, s


# ---- systems of tensors


@compound(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Value:
    """The inverse of `tensordot(a, ., ind')`: a is square if its first `ind` dimensions count as rows.

    >>> a = 2 * jnp.eye(4).reshape(4, 2, 2)
    >>> x = jnp.linalg.tensorinv(a, ind=1)
    >>> x.shape, jnp.tensordot(x, jnp.array([2.0, 4.0, 6.0, 8.0]), 1)
    ((2, 2, 4), Array([[1., 2.],
           [3., 4.]], dtype=float32))
    """
    (x,) = promote_inexact("linalg.tensorinv", a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = x.aval.shape[:ind], x.aval.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        why = f"the product of the first {ind} dimensions must equal that of the others"
        fail("tensorinv", [x], why, "square")
    return reshape(inv(reshape(x, (math.prod(rows), math.prod(columns)))), (*columns, *rows))


@compound(static=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Value:
    """x of `tensordot(a, x, x.ndim) == b`; `axes` of a are moved to its end first.

    >>> a = 2 * jnp.eye(4).reshape(4, 2, 2)
    >>> jnp.linalg.tensorsolve(a, jnp.array([2.0, 4.0, 6.0, 8.0]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x, y = promote_dtypes_inexact(a, b, name="linalg.tensorsolve")
    if axes is not None:
        given = [canonical_axis(axis, x.aval.ndim) for axis in axes]
        x = moveaxis(x, given, range(x.aval.ndim - len(given), x.aval.ndim))
    rank, size = y.aval.ndim, y.aval.size
    if x.aval.shape[:rank] != y.aval.shape:
        fail("tensorsolve", [x, y], "After moving axes to end, leading shape of a must match shape of b", "shape")
    unknown = x.aval.shape[rank:]
    if math.prod(unknown) != size:
        fail("tensorsolve", [x, y], "a must have as many elements after b's dimensions as b has", "square")
    return reshape(solve(reshape(x, (size, size)), reshape(y, (size,))), unknown)
