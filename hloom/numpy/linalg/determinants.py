"""Determinants and ranks. Names and semantics follow NumPy, and jax.numpy.linalg where they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import lax
from ...autodiff.api import jvp, vjp
from ...extend.primitive import Primitive
from ...hlo.errors import UnsupportedError
from ...lax import linalg
from ...lax.linalg.lapack import fail, takes_batches
from ...lax.linalg.lu import permuted, solve
from ...lax.linalg.qr import geqrf
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    adjoint,
    diagonal,
    identity,
    matmul,
    places,
    real_part,
    solve_triangular,
    transposed,
    with_diagonal,
)
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .. import reductions as red
from .. import unary_ufuncs as ew
from ..promotion import check_arraylike, promote_dtypes_inexact, promote_inexact, to_dtype
from ..selection import where
from .decompositions import svd


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Value
    logabsdet: Value


def _square(name: str, a: ArrayLike) -> tuple[Value, Any]:
    """The matrices, in a type that LAPACK has, and the result's dtype."""
    (x,) = promote_inexact(f"linalg.{name}", a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        fail(name, [x], f"Argument to {name} must have shape [..., n, n]", "square")
    dtype = x.aval.dtype
    return to_dtype(x, dtypes.float32 if dtype.itemsize < 4 else dtype, False), dtype


@compound()
def det(a: ArrayLike) -> Value:
    """The determinants of square matrices [..., n, n].

    For n > 4 by LU factors. Singular matrices have derivatives, too: the first is the adjugate matrix.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(3)
    Array(-2., dtype=float32)
    """
    x, dtype = _square("det", a)
    n = x.aval.shape[-1]
    found = _small(x) if n <= _SMALL else _det.bind(x)
    return to_dtype(found, dtype, False)


_SMALL = 4


def _small(x: Any) -> Any:
    """The sum over permutations, for at most `_SMALL` rows; it has derivatives everywhere, of any order."""
    n = x.aval.shape[-1]
    if not n:
        return red.prod(x, (-2, -1))
    if n == 1:
        return x[..., 0, 0]
    if n == 2:
        return _minor(x, 0, (0, 1))
    if n == 3:
        a, b, c = (x[..., 0, k] for k in range(3))
        return a * _minor(x, 1, (1, 2)) - b * _minor(x, 1, (0, 2)) + c * _minor(x, 1, (0, 1))
    # Laplace's expansion by the first two rows
    pairs = [((0, 1), (2, 3), 1), ((0, 2), (1, 3), -1), ((0, 3), (1, 2), 1)]
    terms = [
        term
        for p, q, sign in pairs
        for term in (sign * _minor(x, 0, p) * _minor(x, 2, q), sign * _minor(x, 0, q) * _minor(x, 2, p))
    ]
    return sum(terms[1:], terms[0])


def _minor(x: Any, row: int, columns: tuple[int, int]) -> Any:
    """The determinant of two columns of the rows `row` and row + 1."""
    j, k = columns
    return x[..., row, j] * x[..., row + 1, k] - x[..., row, k] * x[..., row + 1, j]


_det = Primitive("det")
_det.custom_call_target = "hloom.determinant"
takes_batches(_det)


@_det.def_meaning
def _det_meaning(x: Value) -> Value:
    factors, pivots, _ = linalg.lu(x)
    return red.prod(_signed(diagonal(factors), pivots), -1)


def _signed(pivots: Any, exchanges: Any) -> Any:
    """Pivots that multiply to the determinant: each exchange of rows changes the sign of one."""
    return where(exchanges != places(exchanges.aval.shape), -pivots, pivots)


@_det.def_jvp
def _det_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    (x,), (dx,) = primals, tangents
    return _by_adjugate(x, dx, *linalg.lu(lax.stop_gradient(x)))


def _by_adjugate(x: Value, dx: Any, *found: Value) -> tuple[Value, Value]:
    """The determinant, and its derivative: the trace of adj(x) dx. `found`: LU factors, pivots and permutation."""
    adjugate: Any = _adjugate.bind(x, *found)
    return _factored_det.bind(x, *found), red.sum(transposed(adjugate) * dx, (-2, -1))


_factored_det = Primitive("factored_det")
takes_batches(_factored_det)
"""The determinant of a matrix from its LU factors, pivots and permutation."""


@_factored_det.def_meaning
def _factored_det_meaning(x: Value, factors: Value, pivots: Value, order: Value) -> Value:
    return red.prod(_signed(diagonal(factors), pivots), -1)


@_factored_det.def_jvp
def _factored_det_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    return _by_adjugate(primals[0], tangents[0], *primals[1:])


_adjugate = Primitive("adjugate")
takes_batches(_adjugate)
"""adj(x) = det(x) x^-1, which singular matrices have, too. Operands: x, its LU factors, pivots and permutation."""


@_adjugate.def_meaning
def _adjugate_meaning(x: Value, factors: Value, pivots: Value, order: Value) -> Value:
    """By LU factors with a last pivot that may be 0; if another one is, of any matrix of the batch, by singular
    values."""
    own: Any = diagonal(factors)
    is_singular = red.any(own[..., :-1] == 0)
    found: Value = lax.cond(
        is_singular,
        lambda x, *_: _adjugate_by_singular_values(x),
        lambda _, *found: _adjugate_by_factors(*found),
        x,
        factors,
        pivots,
        order,
    )
    return found


def _adjugate_by_factors(factors: Any, pivots: Any, order: Any) -> Any:
    """Of U = [U1 u; 0 p], let D be the determinant over p, and Y = L^-1 P. The last row of det(x) U^-1 Y is D times the
    last row of Y, and the others follow by U1 from D p Y - u (that row): one solve, with 1 in place of p."""
    n = factors.aval.shape[-1]
    own: Any = diagonal(factors)
    signed: Any = _signed(own, pivots)
    rest = red.prod(signed[..., :-1], -1, keepdims=True)
    rest = where(pivots[..., -1:] != n - 1, -rest, rest)
    unit = identity(factors.aval.shape, factors.aval.dtype)
    y: Any = solve_triangular(factors, permuted(unit, order), lower=True, unit=True)
    is_last = places((n,)) == n - 1
    weights = where(is_last, rest, rest * own[..., -1:])
    ones = where(is_last, 1, own).astype(own.dtype)
    return solve_triangular(with_diagonal(factors, ones), y * weights[..., None], lower=False)


def _adjugate_by_singular_values(x: Any) -> Any:
    """Of x = U diag(s) V^H it is V diag(t) U^H times the determinants of U and V^H; t: products of the other s."""
    u, s, vh = svd(x, full_matrices=False)
    n = x.aval.shape[-1]
    others = red.prod(where(places((n,)) == places((n,))[:, None], 1, s[..., None, :]), -1)
    scaled = adjoint(vh) * (others * _phase(u, vh)[..., None]).astype(x.aval.dtype)[..., None, :]
    return matmul(scaled, adjoint(u))


def _phase(u: Value, vh: Value) -> Any:
    """det u det v^H, of modulus 1."""
    return _det_meaning(matmul(u, vh))


@_adjugate.def_jvp
def _adjugate_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    """The second derivative of the determinant."""

    def adjugate(x: Any) -> Any:
        found, pull = vjp(_det_by_blocks, x)
        return transposed(pull(lax.full_like(found, 1))[0])

    x, *_ = primals
    return _adjugate.bind(*primals), jvp(adjugate, (x,), (tangents[0],))[1]


def _det_by_blocks(x: Any) -> Any:
    """The determinant in a form with derivatives of any order, also at singular matrices of rank n - 4 and more; for
    lower ranks the first four derivatives are 0, which is right.

    Near c = U diag(s) V^H, which is x without its derivatives, U^H x V = [A B; C D] is diag(s) plus the derivatives; D
    has the four smallest s. Then det x = det U det V^H det A det(D - C A^-1 B), where the last one is a polynomial, and
    A is not singular. If it is, a factor of det A is 0, and it may have any inverse.
    """
    c = lax.stop_gradient(x)
    u, s, vh = (lax.stop_gradient(v) for v in svd(c, full_matrices=False))
    n, dtype = x.aval.shape[-1], x.aval.dtype
    k = n - _SMALL
    moved: Any = matmul(matmul(adjoint(u), x - c), adjoint(vh))
    unit: Any = identity(x.aval.shape, dtype)
    is_first = places((n,)) < k
    y = moved + unit * where(is_first & (s == 0), 1, s).astype(dtype)[..., None, :]
    inner = y[..., :k, :k]
    sign, logarithm = _slogdet.bind(inner)
    growth = sign * ew.exp(logarithm - lax.stop_gradient(logarithm)).astype(dtype)
    product = red.prod(s[..., :k], -1).astype(dtype) * _phase(u, vh)
    schur = y[..., k:, k:] - matmul(y[..., k:, :k], solve(inner, y[..., :k, k:]))
    return product * growth * _small(schur)


@compound(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """(sign, log |det|) of square matrices [..., n, n]; of singular ones 0 and -infinity. No overflow, where `det` has
    one.

    A named tuple. The sign of a complex determinant has magnitude 1. `method`: "lu" (also None) or, for real matrices,
    "qr".

    >>> sign, logdet = jnp.linalg.slogdet(-1e20 * jnp.eye(3))
    >>> print(sign, logdet.round(2))
    -1.0 138.16
    """
    x, dtype = _square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method {method!r}; there are 'lu' (None) and 'qr'")
    if method == "qr":
        if dtypes.is_complex(dtype):
            raise UnsupportedError("slogdet: method 'qr' is for real matrices")
        return SlogdetResult(*(to_dtype(v, dtype, False) for v in _by_qr(x)))
    sign, logarithm = _slogdet.bind(x)
    return SlogdetResult(to_dtype(sign, dtype, False), to_dtype(logarithm, dtypes.real_of(dtype), False))


def _by_qr(x: Value) -> tuple[Any, Any]:
    """Each reflection changes the sign, unless its tau is zero."""
    _, r = linalg.qr(x)
    _, taus = geqrf(lax.stop_gradient(x))
    on_diagonal: Any = diagonal(r)
    sign = red.prod(ew.sign(on_diagonal * where(taus != 0, -1, 1)), -1)
    return sign, red.sum(ew.log(ew.abs(on_diagonal)), -1)


_slogdet = Primitive("slogdet")
takes_batches(_slogdet)


@_slogdet.def_meaning
def _slogdet_meaning(x: Value) -> tuple[Value, Value]:
    factors, pivots, _ = linalg.lu(x)
    pivots_signed: Any = _signed(diagonal(factors), pivots)
    magnitude = ew.abs(pivots_signed)
    is_singular = red.any(magnitude == 0, -1)
    sign = red.prod(pivots_signed / where(magnitude == 0, 1, magnitude).astype(x.dtype), -1)
    sign = where(is_singular, 0, sign).astype(x.dtype)
    return sign, red.sum(ew.log(magnitude), -1)


@_slogdet.def_jvp
def _slogdet_jvp(primals: Any, tangents: Any) -> Any:
    """The trace of x^-1 dx is the derivative of log det."""
    (x,), (dx,) = primals, tangents
    sign, logarithm = _slogdet.bind(x)
    moved: Any = red.sum(diagonal(solve(x, dx)), -1)
    turned = (moved - ew.real(moved).astype(x.dtype)) * sign if dtypes.is_complex(x.aval.dtype) else None
    return (sign, logarithm), (turned, real_part(moved))


@compound(static=("hermitian",))
def matrix_rank(M: ArrayLike, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Value:
    """How many singular values of matrices [..., m, n] are larger than a limit.

    The limit is `tol`, or `rtol` times the largest one, by default max(m, n) eps times it. An array of fewer dimensions
    has rank 1 unless it is zero.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)
    """
    check_arraylike("linalg.matrix_rank", M)
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified")
    (x,) = promote_dtypes_inexact(M)
    if x.aval.ndim < 2:
        return lax.convert_element_type(red.any(x != 0), dtypes.int32)
    s: Any = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if not s.aval.shape[-1]:
        return red.sum(s, -1, dtype=dtypes.default_int())
    if tol is None:
        factor = max(x.aval.shape[-2:]) * float(dtypes.finfo(s.aval.dtype).eps) if rtol is None else rtol
        tol = to_dtype(factor, s.aval.dtype, False) * s[..., 0]
    return red.sum(s > to_dtype(tol, s.aval.dtype, False)[..., None], -1)
