"""Functions of matrices, and equations of them. Names and semantics follow scipy.linalg, and jax.scipy.linalg where
they differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import lax
from ...autodiff.api import jvp
from ...hlo.errors import UnsupportedError
from ...lax import linalg
from ...lax.linalg.lapack import fail, half_of, matrices, widened
from ...lax.linalg.lu import solve
from ...numpy import linalg as np_linalg
from ...numpy import reductions as red
from ...numpy import unary_ufuncs as ew
from ...numpy.array_manipulation import stack
from ...numpy.binary_ufuncs import maximum, minimum
from ...numpy.promotion import promote_dtypes_inexact, promote_inexact
from ...numpy.selection import clip, where
from ...numpy.vectorizing import vectorize
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    adjoint,
    as_complex,
    compare_places,
    diagonal,
    identity,
    matmul,
    places,
    solve_triangular,
    upper_part,
    with_diagonal,
)
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


def _square(name: str, a: ArrayLike) -> Any:
    (x,) = promote_inexact(name, a)
    return matrices(name, x, square=True)


# ---- the exponential
#
# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): the Pade approximant of degree
# m is accurate to rounding for matrices with a 1-norm of at most theta; others are halved s times before, and the
# result squared s times.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}
"""By the size of the real type in bytes: m and theta."""


def _pade_coefficients(degree: int) -> list[float]:
    """Of x^0, x^1, ... in the numerator; the denominator is the numerator at -x. Integers, the last one 1."""
    top = math.factorial(2 * degree) // math.factorial(degree)
    found = [
        top
        * math.factorial(2 * degree - k)
        * math.factorial(degree)
        // (math.factorial(2 * degree) * math.factorial(k) * math.factorial(degree - k))
        for k in range(degree + 1)
    ]
    return [float(c // found[-1]) for c in found]


@compound(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Value:
    """The exponentials of square matrices [..., n, n].

    With `upper_triangular` the system to solve is taken to be so. NaN where more than `max_squarings` squarings would
    be needed: for norms above about 2**max_squarings.

    >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = _square("expm", A)
    degree, theta = _DEGREES[dtypes.real_of(x.aval.dtype).itemsize]
    norms = lax.stop_gradient(red.max(red.sum(ew.abs(x), -2), -1, initial=0))
    halvings: Any = maximum(ew.ceil(ew.log2(norms / theta)), 0)
    scaled = x * ew.exp2(-halvings)[..., None, None].astype(x.dtype)
    result: Any = _pade(scaled, degree, upper_triangular)

    def squared(i: Any, found: Any) -> Any:
        is_wanted = i < halvings
        return lax.cond(
            red.any(is_wanted), lambda y: where(is_wanted[..., None, None], matmul(y, y), y), lambda y: y, found
        )

    result = lax.fori_loop(0, max_squarings, squared, result)
    return where((halvings > max_squarings)[..., None, None] | ew.isnan(norms)[..., None, None], math.nan, result)


def _pade(x: Any, degree: int, is_triangular: bool) -> Value:
    """The approximant: odd powers are x times a polynomial of x^2, even ones are another."""
    coefficients = _pade_coefficients(degree)
    square = matmul(x, x)
    power: Any = identity(x.aval.shape, x.aval.dtype)
    even, odd = coefficients[0] * power, coefficients[1] * power
    for k in range(2, degree + 1, 2):
        power = matmul(power, square) if k > 2 else square
        even = even + coefficients[k] * power
        if k < degree:
            odd = odd + coefficients[k + 1] * power
    odd = matmul(x, odd)
    if is_triangular:
        return solve_triangular(even - odd, even + odd, lower=False)
    return solve(even - odd, even + odd)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """(expm(A), its derivative at A in the direction E); the derivative alone unless `compute_expm`.

    >>> a, e = jnp.zeros((2, 2)), jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> linalg.expm_frechet(a, e, compute_expm=False)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"Unrecognized method {method!r}: there are 'SPS' and 'blockEnlarge'")
    x, direction = promote_dtypes_inexact(A, E, name="expm_frechet")
    if x.aval.shape != direction.aval.shape:
        fail("expm_frechet", [x, direction], "both must have one shape", "shape")
    found, moved = jvp(expm, (matrices("expm_frechet", x, square=True),), (direction,))
    return (found, moved) if compute_expm else moved


# ---- by the Schur form


@compound(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Value, Value]:
    """The complex Schur form of real matrices [..., n, n] from their real one: T becomes triangular, Z T Z^H stays.
    Leading dimensions broadcast.

    >>> t, z = linalg.schur(jnp.array([[0.0, 2.0], [-2.0, 0.0]]))
    >>> t, z = linalg.rsf2csf(t, z)
    >>> jnp.diag(t).round(3) + 0.0
    Array([0.+2.j, 0.-2.j], dtype=complex64)
    """
    t, z = (matrices("rsf2csf", v, square=True) for v in promote_dtypes_inexact(T, Z, name="rsf2csf"))
    if t.aval.shape[-2:] != z.aval.shape[-2:]:
        fail("rsf2csf", [t, z], "both must be matrices of one size", "shape")
    if max(t.aval.ndim, z.aval.ndim) > 2:
        found: tuple[Value, Value] = vectorize(_rsf2csf, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)
        return found
    return _rsf2csf(t, z)


def _rsf2csf(t: Value, z: Value) -> tuple[Value, Value]:
    wide, n = dtypes.to_complex(t.aval.dtype), t.aval.shape[0]
    if n < 2:
        return as_complex(t, wide), as_complex(z, wide)
    eps = float(dtypes.finfo(dtypes.real_of(wide)).eps)

    def step(k: Any, state: Any) -> Any:
        """Rows and columns i and i + 1, from the last ones on: a rotation, unless the element below is negligible."""
        t, z = state
        i = n - 2 - k
        block = lax.dynamic_slice(t, (i, i), (2, 2))
        a, b, c, d = (block[p, q] for p in range(2) for q in range(2))
        is_block = ew.abs(c) > eps * (ew.abs(a) + ew.abs(d))
        shift = (a - d) / 2 + ew.sqrt(((a - d) / 2) ** 2 + b * c)  # an eigenvalue minus d
        length = ew.sqrt(ew.abs(shift) ** 2 + ew.abs(c) ** 2)
        cosine, sine = (where(is_block, v / where(is_block, length, 1), one) for v, one in ((shift, 1), (c, 0)))
        turn = stack([stack([ew.conj(cosine), ew.conj(sine)]), stack([-sine, cosine])]).astype(wide)
        t = lax.dynamic_update_slice(t, matmul(turn, lax.dynamic_slice(t, (i, 0), (2, n))), (i, 0))
        t, z = (
            lax.dynamic_update_slice(v, matmul(lax.dynamic_slice(v, (0, i), (n, 2)), adjoint(turn)), (0, i))
            for v in (t, z)
        )
        return t, z

    found, turned = lax.fori_loop(0, n - 1, step, (as_complex(t, wide), as_complex(z, wide)))
    return upper_part(found), turned


def _complex_schur(x: Any) -> tuple[Any, Any]:
    """T, upper triangular, and Z with x = Z T Z^H. Real eigenvalues of real matrices have no imaginary part at all, so
    that functions with a branch cut along the real axis see them on one side."""
    t, z = linalg.schur(x)
    return rsf2csf(t, z) if not dtypes.is_complex(x.aval.dtype) else (upper_part(t), z)


def _by_columns(n: int, start: Any, column: Callable[[Any, Any, Any, Any], tuple[Any, Any]]) -> Any:
    """An upper triangular F with the diagonal of `start`: column j follows from those before it.

    column(F, j, is_j, is_before) -> (M, b): the elements of column j above the diagonal solve M f = b. Where the
    diagonal of M is 0, the element is the remaining element of b.
    """
    rows = places((n,))

    def step(j: Any, found: Any) -> Any:
        is_j, is_before = rows == j.astype(dtypes.int32), rows < j.astype(dtypes.int32)
        matrix, right = column(found, j, is_j, is_before)
        inside = is_before[:, None] & is_before[None, :]
        unit = identity((n, n), found.dtype)
        matrix = where(inside & ((unit == 0) | (matrix != 0)), matrix, unit)
        solved = solve_triangular(matrix, where(is_before, right, 0)[..., None].astype(found.dtype), lower=False)
        return where(is_before[:, None] & is_j[None, :], solved, found)

    return lax.fori_loop(0, n, step, start)


def _column(x: Any, is_j: Any) -> Any:
    """Column j."""
    return red.sum(where(is_j, x, 0), -1)


@compound(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Value:
    """The principal square root of a square matrix [n, n]: complex. `blocksize` must be 1.

    NaN where a matrix with several eigenvalues 0 has none.

    >>> linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise UnsupportedError(f"sqrtm: a block size of {blocksize} is not supported; 1 is")
    x = _one("sqrtm", *(widened(A) if half_of(A) else [A]))
    n = x.aval.shape[-1]
    t, z = _complex_schur(x)
    roots = ew.sqrt(diagonal(t))

    def column(found: Any, j: Any, is_j: Any, is_before: Any) -> Any:
        """R r + r_jj r = t, the part of R before column j."""
        root = red.sum(where(is_j, roots, 0))
        return found + root * identity((n, n), found.dtype), _column(t, is_j)

    start = with_diagonal(lax.full_like(t, 0), roots)
    root = _by_columns(n, start, column)
    # two eigenvalues 0: nothing may be left of t there
    is_lost = (roots[:, None] + roots[None, :] == 0) & (upper_part(root, 1) != 0)
    root = where(red.any(is_lost), math.nan, root)
    return matmul(z, matmul(root, adjoint(z)))


def _one(name: str, a: ArrayLike) -> Any:
    x = _square(name, a)
    if x.aval.ndim != 2:
        fail(name, [x], "it takes one matrix; hloom.vmap takes several", "rank")
    return x


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a square matrix [n, n], computed from its eigenvalues (Schur and Parlett); complex.

    Not accurate where eigenvalues are close; equal ones are right if the matrix is diagonal in their space. Unless
    `disp`, (result, SciPy's estimate of its relative error: the norm of the part above the diagonal of the Schur form,
    over the smallest difference of eigenvalues, times eps; between eps and 1; infinite if nothing in the result is
    finite).

    >>> linalg.funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    x = _one("funm", A)
    n = x.aval.shape[-1]
    t, z = _complex_schur(x)
    values: Any = func(diagonal(t))

    def column(found: Any, j: Any, is_j: Any, is_before: Any) -> Any:
        """(t_jj - T) f = f_jj t - F t, the part before column j, since F T = T F."""
        own, pivot = red.sum(where(is_j, values, 0)), red.sum(where(is_j, diagonal(t), 0))
        above = where(is_before, _column(t, is_j), 0)
        return pivot * identity((n, n), t.dtype) - t, own * above - _times(found, above)

    start = with_diagonal(lax.full_like(t, 0), values.astype(t.dtype))
    found = _by_columns(n, start, column)
    result = matmul(z, matmul(found, adjoint(z)))
    if disp:
        return result
    values = diagonal(t)
    gaps = where(compare_places((n, n), "GT"), ew.abs(_differences(values)), math.inf)
    closest = minimum(red.min(gaps, initial=math.inf), ew.abs(values[0])) if n else 1
    largest = np_linalg.norm(upper_part(t, 1), 1) if n else 0
    eps = float(dtypes.finfo(dtypes.real_of(t.dtype)).eps)
    error = clip(eps / where(closest == 0, eps, closest) * largest, eps, 1)
    return result, where(red.any(ew.isfinite(result)) | (n == 0), error, math.inf)


def _times(matrix: Any, vector: Any) -> Any:
    return matmul(matrix, vector[:, None])[:, 0]


def _differences(w: Any) -> Any:
    return w[None, :] - w[:, None]


@compound(static=("method", "tol"))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Value:
    """X of A X + X B = C; A: [..., m, m], B: [..., n, n], C: [..., m, n]. Leading dimensions broadcast.

    `method`: "schur", or "eigen" by eigenvectors, which must be independent; `tol` is ignored. It is not finite if an
    eigenvalue of A is minus one of B.

    >>> a, b, c = jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[6.0]])
    >>> linalg.solve_sylvester(a, b, c).round(3)
    Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method!r}: there are 'schur' and 'eigen'")
    given = promote_dtypes_inexact(A, B, C, name="solve_sylvester")
    a, b, c = (matrices("solve_sylvester", v, square=k < 2) for k, v in enumerate(given))
    if c.aval.shape[-2:] != (a.aval.shape[-1], b.aval.shape[-1]):
        fail("solve_sylvester", [a, b, c], "C must have the rows of A and the columns of B", "shape")

    def of_one(a: Value, b: Value, c: Value) -> Value:
        return _solve_sylvester(a, b, c, method)

    if max(a.aval.ndim, b.aval.ndim, c.aval.ndim) > 2:
        found: Value = vectorize(of_one, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)
        return found
    return of_one(a, b, c)


def _solve_sylvester(a: Value, b: Value, c: Value, method: str) -> Value:
    m, n = a.aval.shape[0], b.aval.shape[0]
    dtype = dtypes.to_complex(a.aval.dtype)
    if method == "eigen":
        (w, v), (s, u) = np_linalg.eig(a), np_linalg.eig(b)
        inner: Any = matmul(solve(v, as_complex(c, dtype)), u) / (w[:, None] + s[None, :])
        found = adjoint(solve(adjoint(u), adjoint(matmul(v, inner))))
    else:
        (r, u), (s, v) = _complex_schur(a), _complex_schur(b)
        right = matmul(adjoint(u), matmul(as_complex(c, dtype), v))
        columns = places((n,))

        def step(j: Any, y: Any) -> Any:
            """(R + s_jj) y = f - Y s, by the columns of Y before column j."""
            is_j, is_before = columns == j.astype(dtypes.int32), columns < j.astype(dtypes.int32)
            shifted = r + red.sum(where(is_j, diagonal(s), 0)) * identity((m, m), dtype)
            rest = _column(right, is_j) - _times(y, where(is_before, _column(s, is_j), 0))
            return where(is_j, solve_triangular(shifted, rest[:, None], lower=False), y)

        y: Any = lax.fori_loop(0, n, step, lax.full_like(right, 0))
        found = matmul(u, matmul(y, adjoint(v)))
    is_real = not dtypes.is_complex(a.aval.dtype)
    return ew.real(found) if is_real else found
