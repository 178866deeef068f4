"""Solvers with short recurrences: conjugate gradients and BiCGSTAB. Source: jax.scipy.sparse.linalg.

The solution has its own derivatives, by another solve (`lax.custom_linear_solve`), and they are as good as that solve.
"""

from __future__ import annotations

from typing import Any

from .... import lax
from .... import numpy as jnp
from .vectors import Function, Problem, add, choose, inner, inner_real, problem, scale, sub


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """(x, None): A x = b by conjugate gradients; A is Hermitian and positive definite.

    Args:
      A: a function x -> A x, a square matrix, or an object with ``A @ x``.
      b: an array, or a pytree of arrays that is one vector. x is like it.
      x0: where to begin, zeros by default.
      tol, atol: it ends when norm(b - A x) <= max(tol norm(b), atol).
      maxiter: or after so many steps, by default ten for each unknown.
      M: a function or a matrix near to the inverse of A.

    Raises:
      ValueError: x0 is not like b, or a matrix is not square. TypeError: A or M is neither a function nor a matrix.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import linalg
    >>> from hloom.scipy.sparse import linalg
    >>> x, info = linalg.cg(lambda x: jnp.array([2.0, 4.0, 8.0]) * x, jnp.array([2.0, 2.0, 2.0]))
    >>> x.round(3)
    Array([1.  , 0.5 , 0.25], dtype=float32)
    """
    return _solved(_cg, problem("cg", A, b, x0, M), tol, atol, maxiter, may_be_symmetric=True)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """(x, None): A x = b by the stabilized method of biconjugate gradients, for any A. Arguments as for `cg`.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import linalg
    >>> from hloom.scipy.sparse import linalg
    >>> a, b = jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([5.0, 5.0])
    >>> linalg.bicgstab(a, b)[0].round(3)
    Array([1., 1.], dtype=float32)
    """
    return _solved(_bicgstab, problem("bicgstab", A, b, x0, M), tol, atol, maxiter)


def _solved(
    method: Any, given: Problem, tol: Any, atol: Any, maxiter: Any, *, may_be_symmetric: bool = False
) -> tuple[Any, None]:
    most = 10 * given.size if maxiter is None else maxiter

    def solve(matvec: Function, b: Any) -> Any:
        allowed = jnp.maximum(jnp.square(tol) * inner_real(b, b), jnp.square(atol))
        return method(matvec, b, given, allowed, most)

    x = lax.custom_linear_solve(given.matvec, given.b, solve, solve, symmetric=may_be_symmetric and given.is_real)
    return x, None


def _cg(matvec: Function, b: Any, given: Problem, allowed: Any, most: Any) -> Any:
    """`allowed`: the square of the norm of the residual at which it ends."""

    def goes_on(state: Any) -> Any:
        _, r, _, _, k = state
        return (inner_real(r, r) > allowed) & (k < most)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        moved = matvec(p)
        alpha = gamma / given.number(inner_real(p, moved))
        x, r = add(x, scale(alpha, p)), sub(r, scale(alpha, moved))
        z = given.precondition(r)
        following = given.number(inner_real(r, z))
        return x, r, following, add(z, scale(following / gamma, p)), k + 1

    r = sub(b, matvec(given.x0))
    z = given.precondition(r)
    return lax.while_loop(goes_on, step, (given.x0, r, given.number(inner_real(r, z)), z, 0))[0]


def _bicgstab(matvec: Function, b: Any, given: Problem, allowed: Any, most: Any) -> Any:
    """As `_cg`. A step that cannot go on, because a product is 0, sets k to -10 or -11."""

    def goes_on(state: Any) -> Any:
        r, k = state[1], state[-1]
        return (inner_real(r, r) > allowed) & (k < most) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, first, alpha, omega, rho, p, q, k = state
        following = inner(first, r)
        beta = following / rho * alpha / omega
        p = add(r, scale(beta, sub(p, scale(omega, q))))
        toward = given.precondition(p)
        q = matvec(toward)
        alpha = following / inner(first, q)
        half = sub(r, scale(alpha, q))
        ends = inner_real(half, half) < allowed
        other = given.precondition(half)
        t = matvec(other)
        omega = inner(t, half) / inner(t, t)
        x = add(x, scale(alpha, toward))
        x = choose(ends, x, add(x, scale(omega, other)))
        r = choose(ends, half, sub(half, scale(omega, t)))
        k = jnp.where((omega == 0) | (alpha == 0), -11, k + 1)
        return x, r, first, alpha, omega, following, p, q, jnp.where(following == 0, -10, k)

    r = sub(b, matvec(given.x0))
    one = given.number(1)
    return lax.while_loop(goes_on, step, (given.x0, r, r, one, one, one, r, r, 0))[0]
