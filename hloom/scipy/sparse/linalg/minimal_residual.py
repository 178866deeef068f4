"""GMRES: the least residual in a growing Krylov space, with restarts. Source: jax.scipy.sparse.linalg.

The space is spanned by orthonormal vectors, columns of V: for each leaf of b an array with a further last dimension.
Row k of H has the coefficients of the product of A with column k: M A V[:, k] = V H[k]. Rows that are not yet known are
rows of the identity, so that the system of equations of the last step has one solution in any case.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .... import lax, tree
from .... import numpy as jnp
from ....numpy.linalg import qr
from ...linalg import solve_triangular
from .vectors import Function, Problem, add, dot, like, norm, problem, sub, unit


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: Any = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """(x, info): A x = b by GMRES, for any A. info: -1 if x has NaN, else 0.

    Args:
      A, b, x0, tol, atol, M: as for `cg`.
      restart: how many dimensions the Krylov space has before a new one begins at the x that was found.
      maxiter: how many of these spaces, at most; by default ten for each unknown.
      solve_method: "incremental" updates factors in each step, so it knows the residual and may end inside of a space;
        "batched" factors the matrix at the end of each space.

    Raises:
      ValueError: x0 is not like b, a matrix is not square, or an unknown method. TypeError: A or M is no operator.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import linalg
    >>> from hloom.scipy.sparse import linalg
    >>> x, info = linalg.gmres(jnp.array([[0.0, 1.0], [2.0, 3.0]]), jnp.array([2.0, 8.0]))
    >>> x.round(3), info
    (Array([1., 2.], dtype=float32), Array(0, dtype=int32, weak_type=True))
    """
    given = problem("gmres", A, b, x0, M)
    methods = {"incremental": True, "batched": False}
    if solve_method not in methods:
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    most = 10 * given.size if maxiter is None else maxiter
    size = min(int(restart), given.size)

    def solve(matvec: Function, right: Any) -> Any:
        scale = norm(right)
        allowed = jnp.maximum(tol * scale, atol)
        inside = norm(given.precondition(right)) * jnp.minimum(1.0, allowed / scale)
        method = partial(_space, given, matvec, right, size, inside, methods[solve_method])
        return _restarted(method, given, matvec, right, allowed, most)

    x = lax.custom_linear_solve(given.matvec, given.b, solve, solve)
    return x, jnp.where(jnp.isnan(norm(x)), -1, 0)


def _restarted(method: Any, given: Problem, matvec: Function, b: Any, allowed: Any, most: Any) -> Any:
    def goes_on(state: Any) -> Any:
        _, _, size, k = state
        return (size > allowed) & (k < most)

    def step(state: Any) -> Any:
        x, direction, size, k = state
        x = method(x, direction, size)
        return x, *unit(given.precondition(sub(b, matvec(x)))), k + 1

    start = unit(given.precondition(sub(b, matvec(given.x0))))
    return lax.while_loop(goes_on, step, (given.x0, *start, 0))[0]


def _space(
    given: Problem,
    matvec: Function,
    b: Any,
    size: int,
    allowed: Any,
    is_incremental: bool,
    x: Any,
    direction: Any,
    residual: Any,
) -> Any:
    """x after one Krylov space that begins with `direction`, the residual of norm `residual`."""
    dtype = given.dtype
    v = tree.map(lambda d: jnp.pad(d[..., None], [(0, 0)] * d.ndim + [(0, size)]), direction)
    h = jnp.eye(size, size + 1, dtype=dtype)
    right = jnp.zeros(size + 1, dtype).at[0].set(residual.astype(dtype))
    if is_incremental:
        rotations = jnp.zeros((size, 2), dtype)

        def goes_on(state: Any) -> Any:
            return (state[-1] < size) & (state[-2] > allowed)

        def step(state: Any) -> Any:
            v, h, right, rotations, _, k = state
            v, row, _ = _next_vector(given, matvec, v, k)
            row = lax.fori_loop(0, k, lambda i, r: _rotated(r, i, rotations[i]), row)
            rotations = rotations.at[k].set(_rotation(row[k], row[k + 1]))
            row, right = _rotated(row, k, rotations[k]), _rotated(right, k, rotations[k])
            return v, h.at[k].set(row), right, rotations, abs(right[k + 1]), k + 1

        state = (v, h, right, rotations, residual, 0)
        v, h, right, *_ = lax.while_loop(goes_on, step, state)
        factor, right = h[:, :-1].T, right[:-1]
    else:

        def has_more(state: Any) -> Any:
            return (state[-1] < size) & ~state[-2]

        def extend(state: Any) -> Any:
            v, h, _, k = state
            v, row, is_last = _next_vector(given, matvec, v, k)
            return v, h.at[k].set(row), is_last, k + 1

        v, h, *_ = lax.while_loop(has_more, extend, (v, h, False, 0))
        q, factor = qr(h.T)
        right = dot(q.conj().T, right)
    y = solve_triangular(factor, right)
    return like(add(x, _combined(tree.map(lambda columns: columns[..., :-1], v), y)), x)


def _combined(v: Any, factors: Any) -> Any:
    """The sum of the vectors, each with a factor."""
    return tree.map(lambda columns: dot(columns, factors.astype(columns.dtype)), v)


def _overlap(v: Any, x: Any) -> Any:
    """V^H x."""

    def of_leaf(columns: Any, y: Any) -> Any:
        return dot(y.reshape(-1), columns.conj().reshape(-1, columns.shape[-1]))

    return sum(tree.leaves(tree.map(of_leaf, v, x)))


def _next_vector(given: Problem, matvec: Function, v: Any, k: Any) -> tuple[Any, Any, Any]:
    """V with column k + 1, row k of H, and whether the space is complete: then that column is 0.

    The new vector is made orthogonal to the others twice, which makes it so up to rounding errors (Giraud, Langou,
    Rozloznik 2005).
    """
    new = given.precondition(matvec(tree.map(lambda columns: columns[..., k], v)))
    before = norm(new)
    row: Any = 0
    for _ in range(2):
        overlap = _overlap(v, new).astype(given.dtype)
        new = sub(new, _combined(v, overlap))
        row = row + overlap
    direction, size = unit(new, jnp.finfo(before.dtype).eps * before)
    v = tree.map(lambda columns, y: columns.at[..., k + 1].set(y), v, direction)
    return v, row.at[k + 1].set(size.astype(given.dtype)), size == 0


def _rotation(a: Any, b: Any) -> Any:
    """(c, s) with c a - conj(s) b real and s a + c b = 0, c real: a Givens rotation."""
    is_zero = abs(b) == 0
    length = jnp.sqrt(abs(a) ** 2 + abs(b) ** 2)
    safe = jnp.where(length == 0, 1, length)
    phase = jnp.where(abs(a) == 0, 1, a / jnp.where(abs(a) == 0, 1, abs(a)))
    c = jnp.where(is_zero, 1, abs(a) / safe)
    s = jnp.where(is_zero, 0, -b * phase.conj() / safe)
    return jnp.stack([c.astype(s.dtype), s])


def _rotated(row: Any, i: Any, rotation: Any) -> Any:
    """The numbers i and i + 1 of a vector, rotated."""
    c, s = rotation
    first, second = row[i], row[i + 1]
    return row.at[i].set(c * first - s.conj() * second).at[i + 1].set(s * first + c * second)
