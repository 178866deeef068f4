"""Solutions of equations, with derivatives by the implicit function theorem. `autodiff/solves.py` has the primitives.

That file needs the transformations, which are loaded when the first of them is used, and so is it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]
Solver = Callable[[Function, Any], Any]


def _primitives() -> Any:
    return import_module("...autodiff.solves", __name__)


def custom_root(
    f: Function, initial_guess: Any, solve: Solver, tangent_solve: Solver, has_aux: bool = False
) -> Any:
    """A root of `f` that ``solve(f, initial_guess)`` finds, differentiable in the variables that `f` closes over. JAX's
    `lax.custom_root`.

    Args:
      f: a function from a pytree to one of the same structure and types.
      initial_guess: where the solver starts; the root does not depend on it.
      solve: solve(f, initial_guess) -> root; it does not have to be differentiable. With `has_aux` it returns
        (root, aux).
      tangent_solve: tangent_solve(g, y) -> x with ``g(x) == y`` for a linear function g, the derivative of f at the
        root. For reverse mode x must be a transposable function of y: ``lambda g, y: y / g(1.0)`` for scalars.

    Raises:
      TreeStructureError (a TypeError and a ValueError): a function returns another structure or other types than the
      initial guess has.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 20, lambda _, x: x - f(x) / hloom.grad(f)(x), x)
    >>> def sqrt(a):
    ...     return lax.custom_root(lambda x: x**2 - a, a, newton, lambda g, y: y / g(1.0))
    >>> sqrt(4.0), hloom.grad(sqrt)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    return _primitives().custom_root(f, initial_guess, solve, tangent_solve, has_aux)


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution x of ``matvec(x) == b`` that ``solve(matvec, b)`` finds. JAX's `lax.custom_linear_solve`.

    Its derivative is the solution of the same equation with another right-hand side.

    Args:
      matvec: a linear function from a pytree like `b` to one like `b`.
      b: the right-hand side, a pytree of arrays.
      solve: solve(matvec, b) -> x; it does not have to be differentiable. With `has_aux` it returns (x, aux).
      transpose_solve: transpose_solve(vecmat, b) -> x, for the transposed function; needed by reverse mode.
      symmetric: matvec is its own transpose, and `solve` solves both equations.

    Raises:
      TreeStructureError (a TypeError and a ValueError): solve returns something that is not like `b`, or matvec where
        it is traced: under jit, a derivative or vmap.
      TypeError: reverse mode without `transpose_solve`.

    >>> halves = lambda matvec, b: b / matvec(jnp.ones_like(b))  # solves any diagonal equation
    >>> lax.custom_linear_solve(lambda x: jnp.array([2.0, 4.0]) * x, jnp.array([1.0, 2.0]), halves)
    Array([0.5, 0.5], dtype=float32)
    """
    return _primitives().custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)
