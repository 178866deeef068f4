"""L-BFGS: the last steps stand for the matrix. Nocedal and Wright, algorithm 7.5, for complex vectors too: Sorber, van
Barel, de Lathauwer, "Unconstrained optimization of real functions in complex variables" (2012)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...autodiff.api import value_and_grad
from ...lax import Precision
from .line_search import line_search


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    moved: Any
    """The last steps, one in each row, in a ring; and the changes of the gradient by them."""
    changed: Any
    factors: Any
    """1 / (change . step), 0 for rows that are not used yet."""
    scale: Any
    """Of the first estimate of the inverse of the Hessian."""
    converged: Any
    status: Any
    steps: Any
    evaluations: Any


def lbfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    *,
    maxiter: Any = None,
    norm: Any = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: Any = None,
    maxgrad: Any = None,
    maxls: int = 20,
) -> dict[str, Any]:
    """The fields of a result of `minimize`.

    status: 0 the gradient is small, 1 maxiter steps, 2 maxfun values, 3 maxgrad gradients, 4 a step was lower by less
    than ftol, 5 a line search failed.
    """
    size, dtype = x0.aval.shape[0], x0.aval.dtype
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * size

    def goes_on(s: _State) -> Any:
        return ~s.converged & (s.status == 0)

    def step(s: _State) -> _State:
        direction = _direction(s, maxcor)
        found = line_search(fun, s.x, direction, s.value, s.gradient, 1, maxls)
        moved, change = found.at.astype(dtype) * direction, found.gradient - s.gradient
        product = jnp.real(_dot(change, moved))
        row = s.steps % maxcor
        status = jnp.where(s.value - found.value < ftol, 4, 0)
        for limit, count, number in ((maxgrad, s.evaluations, 3), (maxfun, s.evaluations, 2), (maxiter, s.steps, 1)):
            if limit is not None:
                status = jnp.where(count >= limit, number, status)
        converged = jnp.linalg.norm(found.gradient, ord=norm) < gtol
        return _State(
            s.x + moved, found.value, found.gradient, s.moved.at[row].set(moved), s.changed.at[row].set(change),
            s.factors.at[row].set(1 / product), product / jnp.real(_dot(jnp.conj(change), change)), converged,
            jnp.where(converged, 0, jnp.where(found.failed, 5, status)), s.steps + 1,
            s.evaluations + found.evaluations,
        )  # fmt: skip

    value, gradient = value_and_grad(fun)(x0)
    rows, real, none = jnp.zeros((maxcor, size), dtype), jnp.real(x0).dtype, jnp.zeros((), int)
    no, one = jnp.zeros((), bool), jnp.ones((), real)
    start = _State(x0, value, gradient, rows, rows, jnp.zeros(maxcor, real), one, no, none, none, none + 1)
    s = lax.while_loop(goes_on, step, start)
    return {
        "x": s.x, "success": s.converged, "status": s.status, "fun": s.value, "jac": s.gradient, "hess_inv": None,
        "nfev": s.evaluations, "njev": s.evaluations, "nit": s.steps,
    }  # fmt: skip


def _dot(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, precision=Precision.HIGHEST)


def _direction(s: _State, count: int) -> Any:
    """Minus the estimated inverse times the gradient. Rows that are not used have factor 0, and change nothing."""

    def back(j: Any, state: Any) -> Any:
        q, parts = state
        i = (s.steps - 1 - j) % count
        part = s.factors[i] * jnp.real(_dot(jnp.conj(s.moved[i]), q))
        return q - part * jnp.conj(s.changed[i]), parts.at[i].set(part)

    def forth(j: Any, q: Any) -> Any:
        i = (s.steps + j) % count
        part = s.factors[i] * jnp.real(_dot(s.changed[i], q))
        return q + (parts[i] - part) * s.moved[i]

    q, parts = lax.fori_loop(0, count, back, (-jnp.conj(s.gradient), jnp.zeros_like(s.factors)))
    return lax.fori_loop(0, count, forth, s.scale * q)
