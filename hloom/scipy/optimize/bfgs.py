"""BFGS: steps by an estimate of the inverse of the Hessian. Nocedal and Wright, algorithm 6.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...autodiff.api import value_and_grad
from ...lax import Precision
from ...tracer import dtypes
from .line_search import line_search


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    inverse: Any
    """Of the Hessian, an estimate."""
    before: Any
    """The value before the last step."""
    converged: Any
    search_status: Any
    steps: Any
    evaluations: Any


def bfgs(
    fun: Callable[[Any], Any],
    x0: Any,
    *,
    maxiter: Any = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> dict[str, Any]:
    """The fields of a result of `minimize`.

    status: 0 the gradient is small, 1 maxiter steps, else 2 and the status of the line search that failed.
    """
    if dtypes.is_complex(x0.aval.dtype):
        raise TypeError(f"minimize by BFGS takes real vectors, not {x0.aval.str_short()}")
    size = x0.aval.shape[0]
    most = 200 * size if maxiter is None else maxiter
    identity = jnp.eye(size, dtype=x0.aval.dtype)

    def is_small(gradient: Any) -> Any:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def goes_on(s: _State) -> Any:
        return ~s.converged & (s.search_status == 0) & (s.steps < most)

    def step(s: _State) -> _State:
        direction = -_product(s.inverse, s.gradient)
        likely = 2.02 * (s.value - s.before) / _product(s.gradient, direction)
        first = jnp.where((likely > 0) & (likely < 1), likely, 1)
        found = line_search(fun, s.x, direction, s.value, s.gradient, first, line_search_maxiter)
        moved, change = found.at.astype(direction.dtype) * direction, found.gradient - s.gradient
        return _State(
            s.x + moved, found.value, found.gradient, _updated(s.inverse, moved, change, identity), s.value,
            is_small(found.gradient), found.status, s.steps + 1, s.evaluations + found.evaluations,
        )  # fmt: skip

    value, gradient = value_and_grad(fun)(x0)
    none = jnp.zeros((), int)
    start = _State(
        x0, value, gradient, identity, value + jnp.linalg.norm(gradient) / 2, is_small(gradient), none, none, none + 1
    )
    s = lax.while_loop(goes_on, step, start)
    failed = jnp.where(s.search_status != 0, 2 + s.search_status, -1)
    return {
        "x": s.x, "success": s.converged, "fun": s.value, "jac": s.gradient, "hess_inv": s.inverse,
        "status": jnp.where(s.converged, 0, jnp.where(s.steps == most, 1, failed)),
        "nfev": s.evaluations, "njev": s.evaluations, "nit": s.steps,
    }  # fmt: skip


def _product(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, precision=Precision.HIGHEST)


def _updated(inverse: Any, moved: Any, change: Any, identity: Any) -> Any:
    """The inverse, so that it takes the change of the gradient to the motion; unchanged if that is not possible."""
    factor = 1 / _product(change, moved)
    w = identity - factor * moved[:, None] * change
    found = _product(_product(w, inverse), w.T) + factor * moved[:, None] * moved
    return jnp.where(jnp.isfinite(factor), found, inverse)
