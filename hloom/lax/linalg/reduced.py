"""Hessenberg, Schur and tridiagonal form, and tridiagonal systems. Names and semantics follow jax.lax.linalg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autodiff.tangents import Linear
from ...extend.primitive import Primitive
from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ...tracer import dtypes
from ...tracer.arrays.matrices import batch_of, rows_scaled, sizes
from ...tracer.aval import ShapedArray
from ...tracer.core import Value, bind
from ...tracer.ops import array_shape, concatenate, is_complex, neg, slice_, sub, zeros
from .lapack import fail, inexact, lapack, matrices, nan_unless, no_derivative, succeeded, takes_batches


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Value]:
    """[T, Z] with x = Z T Z^H of square matrices [..., n, n], Z unitary; [T] without `compute_schur_vectors`.

    T is upper triangular; for a real matrix, it has 2 x 2 blocks on its diagonal for pairs of complex eigenvalues.
    UnsupportedError for sorted eigenvalues. NaN where LAPACK finds none. It has no derivative.

    >>> t, z = lax.linalg.schur(jnp.array([[1.0, 5.0], [0.0, 2.0]]))
    >>> t, z
    (Array([[1., 5.],
           [0., 2.]], dtype=float32), Array([[1., 0.],
           [0., 1.]], dtype=float32))
    """
    a = matrices("schur", x, square=True)
    if sort_eig_vals or select_callable is not None:
        raise UnsupportedError("schur: eigenvalues cannot be sorted or selected")
    return list(_schur.bind(a, vectors=bool(compute_schur_vectors)))


_schur = Primitive("schur")
takes_batches(_schur)
no_derivative(_schur, "those of eigh and eigvals are")


@_schur.def_meaning
def _schur_meaning(x: Value, *, vectors: bool) -> tuple[Value, ...]:
    batch, dtype = batch_of(x), x.aval.dtype
    eigenvalues = [(x.aval.shape[:-1], dtype)] * (1 if is_complex(x) else 2)
    ends = [(batch, dtypes.int32)] * 2
    shapes = [(x.aval.shape, dtype), (x.aval.shape, dtype), *eigenvalues, *ends]
    t, z, *_, info = lapack("gees", [x], shapes, mode="V" if vectors else "N", sort="N")
    return tuple(nan_unless(succeeded(info), found) for found in ((t, z) if vectors else (t,)))


def hessenberg(a: Any) -> tuple[Value, Value]:
    """(H, taus) of square matrices a = Q H Q^H: H is zero below the first subdiagonal, where the result has the
    Householder vectors of Q instead; `householder_product(H[1:, :-1], taus)` is Q without its first row and column.

    >>> a = jnp.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0], [4.0, 1.0, 2.0]])
    >>> h, taus = lax.linalg.hessenberg(a)
    >>> jnp.triu(h, -1).round(3)
    Array([[ 1. , -3.6,  0.2],
           [-5. ,  2.6, -0.2],
           [ 0. , -0.2,  0.4]], dtype=float32)
    """
    x = matrices("hessenberg", a, square=True)
    found: tuple[Value, Value] = _hessenberg.bind(x)
    return found


_hessenberg = Primitive("hessenberg")
takes_batches(_hessenberg)
no_derivative(_hessenberg, "those of eigh and eigvals are")


@_hessenberg.def_meaning
def _hessenberg_meaning(x: Value) -> tuple[Value, Value]:
    batch, dtype, n = batch_of(x), x.aval.dtype, sizes(x)[0]
    if not n:
        return x, zeros(ShapedArray((*batch, 0), dtype))
    shapes = [(x.aval.shape, dtype), ((*batch, n - 1), dtype), (batch, dtypes.int32)]
    h, taus, info = lapack("gehrd", [x], shapes, n=n, low=1, high=n)
    return nan_unless(succeeded(info), h), nan_unless(succeeded(info), taus)


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Value, Value, Value, Value]:
    """(a, d, e, taus): Hermitian matrices brought to real tridiagonal form, d on the diagonal and e beside it.

    Only the triangle that `lower` names is read; the first result has the form there, and the Householder vectors that
    led to it beyond it.

    >>> a = jnp.array([[1.0, 3.0, 4.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    >>> _, d, e, taus = lax.linalg.tridiagonal(a)
    >>> d.shape, abs(e).round(3)
    ((3,), Array([5., 0.], dtype=float32))
    """
    x = matrices("tridiagonal", a, square=True)
    found: tuple[Value, Value, Value, Value] = _tridiagonal.bind(x, lower=bool(lower))
    return found


_tridiagonal = Primitive("tridiagonal")
takes_batches(_tridiagonal)
no_derivative(_tridiagonal, "that of eigh is")


@_tridiagonal.def_meaning
def _tridiagonal_meaning(x: Value, *, lower: bool) -> tuple[Value, ...]:
    batch, dtype, n = batch_of(x), x.aval.dtype, sizes(x)[0]
    real, beside = dtypes.real_of(dtype), (*batch, max(n, 1) - 1)
    shapes = [(x.aval.shape, dtype), ((*batch, n), real), (beside, real), (beside, dtype), (batch, dtypes.int32)]
    *found, info = lapack("sytrd", [x], shapes, uplo="L" if lower else "U")
    return tuple(nan_unless(succeeded(info), f) for f in found)


# ---- tridiagonal systems


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Value:
    """x of T x = b; T has the diagonals dl (below: dl[..., 0] is not read), d, and du (above: du[..., -1] is not read).

    dl, d, du: [..., n]; b: [..., n, k]. With `perturb_singular` pivots that are about zero are moved away from it; else
    x is NaN where T is singular.

    >>> dl, d, du = jnp.array([0.0, 1.0, 1.0]), jnp.array([2.0, 2.0, 2.0]), jnp.array([1.0, 1.0, 0.0])
    >>> lax.linalg.tridiagonal_solve(dl, d, du, jnp.array([[3.0], [4.0], [3.0]])).round(3)
    Array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    values = [inexact("tridiagonal_solve", v) for v in (dl, d, du, b)]
    low, middle, up, right = values
    if not low.aval.shape == middle.aval.shape == up.aval.shape:
        fail("tridiagonal_solve", values, "all diagonal arguments must have the same shape", "diagonals")
    if right.aval.ndim < 2 or right.aval.shape[:-1] != middle.aval.shape:
        why = "b must have rank at least 2, and the diagonals' shape before its last dimension"
        fail("tridiagonal_solve", values, why, "b")
    if len({v.aval.dtype for v in values}) > 1:
        fail("tridiagonal_solve", values, "all must have one dtype", "dtype")
    found: Value = _tridiagonal_solve.bind(*values, perturb_singular=bool(perturb_singular))
    return found


_tridiagonal_solve = Primitive("tridiagonal_solve")
takes_batches(_tridiagonal_solve)


@_tridiagonal_solve.def_meaning
def _tridiagonal_solve_meaning(dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool) -> Value:
    dtype = b.aval.dtype
    if perturb_singular:
        attributes = CustomCallAttributes("tridiagonal_solve_perturbed_ffi", "{}", CustomCallApiVersion.TYPED_FFI)
        return bind(Opcode.CUSTOM_CALL, (dl, d, du, b), attributes, shape=array_shape(dtype, b.aval.shape))
    diagonals = [(d.aval.shape, dtype)] * 3
    shapes = [*diagonals, (b.aval.shape, dtype), (batch_of(b), dtypes.int32)]
    *_, x, info = lapack("gtsv", [dl, d, du, b], shapes)
    return nan_unless(succeeded(info), x)


def _tridiagonal_solve_jvp(primals: Any, tangents: Any, *, perturb_singular: bool) -> tuple[Value, Value]:
    """T dx = db - dT x."""
    dl, d, du, b = primals
    moved_l, moved_d, moved_u, moved_b = tangents
    x = _tridiagonal_solve.bind(dl, d, du, b, perturb_singular=perturb_singular)
    above, below = _shifted(x, -1), _shifted(x, 1)
    terms = [(moved_l, above), (moved_d, x), (moved_u, below)]
    right = moved_b
    for moved, rows in terms:
        if moved is not None:
            product = rows_scaled(rows, moved)
            right = neg(product) if right is None else sub(right, product)
    return x, _tridiagonal_solve.bind(dl, d, du, right, perturb_singular=perturb_singular)


_tridiagonal_solve.def_jvp(_tridiagonal_solve_jvp, symbolic_zeros=True)


def _shifted(x: Value, step: int) -> Value:
    """Row i + step of x as row i, 0 where there is none."""
    return _moved(x, step, x.aval.ndim - 2)


def _moved(x: Value, step: int, dimension: int) -> Value:
    size, rank = x.aval.shape[dimension], x.aval.ndim
    if not size:
        return x
    first, last = max(step, 0), size + min(step, 0)
    starts, limits = [0] * rank, list(x.aval.shape)
    starts[dimension], limits[dimension] = first, last
    kept = slice_(x, starts, limits)
    edge = [1 if k == dimension else n for k, n in enumerate(x.aval.shape)]
    none = zeros(ShapedArray(tuple(edge), x.aval.dtype))
    return concatenate([kept, none] if step > 0 else [none, kept], dimension)


@_tridiagonal_solve.def_transpose
def _tridiagonal_solve_transpose(ct: Value, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> Any:
    """The diagonals of T^T: du one place later, d, dl one place earlier."""
    if any(isinstance(v, Linear) for v in (dl, d, du)):
        raise TypeError("a tridiagonal solve is not linear in its matrix and cannot be transposed")
    last = dl.aval.ndim - 1
    backward = (_moved(du, -1, last), d, _moved(dl, 1, last))
    return None, None, None, _tridiagonal_solve.bind(*backward, ct, perturb_singular=perturb_singular)
