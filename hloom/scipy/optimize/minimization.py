"""`minimize`, with the results of jax.scipy.optimize.minimize. The methods are in files of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...numpy.promotion import promote_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.errors import OperandError
from .bfgs import bfgs
from .lbfgs import lbfgs


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    x: where; fun, jac: value and gradient there; success: whether the gradient is small enough; status: 0 if so, else
    why not, by the method; hess_inv: an estimate of the inverse of the Hessian, or None; nfev, njev: how often the
    function and its gradient were computed; nit: steps.

    >>> found = optimize.minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2), method="BFGS")
    >>> found.x.round(3), bool(found.success)
    (Array([3., 3.], dtype=float32), True)
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


_METHODS: dict[str, Callable[..., dict[str, Any]]] = {"bfgs": bfgs, "l-bfgs-experimental-do-not-rely-on-this": lbfgs}


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of fun(x, *args), by its gradient.

    Args:
      fun: a function of a vector that returns a real number, and can be differentiated.
      x0: the vector to begin with.
      args: further arguments of fun.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", which keeps no matrix, and takes complex vectors.
      tol: the option gtol of both methods.
      options: gtol: the norm of the gradient that is small enough, 1e-5 by default; norm: its order, by default inf;
        maxiter: the number of steps, at most. Also line_search_maxiter of BFGS; maxcor, ftol, maxfun, maxgrad, maxls of
        L-BFGS.

    Raises:
      ValueError: an unknown method, or x0 is no vector. TypeError: args is no tuple, or an unknown option.

    >>> def rosenbrock(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> optimize.minimize(rosenbrock, jnp.array([-1.0, 2.0]), method="BFGS").x.round(2)
    Array([1., 1.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to scipy.optimize.minimize must be a tuple, got {args}")
    found = _METHODS.get(method.lower())
    if found is None:
        raise ValueError(f"Method {method} not recognized\n  Use {' or '.join(map(repr, _METHODS))}.")
    (x,) = promote_inexact("minimize", x0)
    if x.aval.ndim != 1:
        raise OperandError(f"minimize: x0 must be a vector, not {x.aval.str_short()}", "vector")
    chosen = dict(options or {})
    if tol is not None:
        chosen.setdefault("gtol", tol)
    return OptimizeResults(**found(lambda y: fun(y, *args), x, **chosen))
