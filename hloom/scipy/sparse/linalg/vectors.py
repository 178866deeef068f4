"""Pytrees as vectors, and the common parts of the solvers. Names and semantics follow jax.scipy.sparse.linalg."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .... import numpy as jnp
from .... import tree
from ....lax import Precision
from ....numpy.promotion import promote_dtypes_inexact, to_dtype
from ....tracer.arrays.operators import ArrayBase

Function = Callable[[Any], Any]

dot = partial(jnp.dot, precision=Precision.HIGHEST)
vdot = partial(jnp.vdot, precision=Precision.HIGHEST)


def add(x: Any, y: Any) -> Any:
    return tree.map(operator.add, x, y)


def sub(x: Any, y: Any) -> Any:
    return tree.map(operator.sub, x, y)


def scale(factor: Any, x: Any) -> Any:
    return tree.map(lambda leaf: factor * leaf, x)


def choose(which: Any, x: Any, y: Any) -> Any:
    return tree.map(lambda a, b: jnp.where(which, a, b), x, y)


def inner(x: Any, y: Any) -> Any:
    """x^H y."""
    return sum(tree.leaves(tree.map(vdot, x, y)))


def inner_real(x: Any, y: Any) -> Any:
    """The real part of x^H y."""

    def of_leaf(a: Any, b: Any) -> Any:
        found = vdot(a.real, b.real)
        return found + vdot(a.imag, b.imag) if jnp.iscomplexobj(a) or jnp.iscomplexobj(b) else found

    return sum(tree.leaves(tree.map(of_leaf, x, y)))


def norm(x: Any) -> Any:
    return jnp.sqrt(inner_real(x, x))


def unit(x: Any, smallest: Any = None) -> tuple[Any, Any]:
    """(x / |x|, |x|); both are 0 if the norm is not above `smallest`, by default the precision of its dtype."""
    size = norm(x)
    above = size > (jnp.finfo(size.dtype).eps if smallest is None else smallest)
    divisor = jnp.where(above, size, 1)
    return tree.map(lambda leaf: jnp.where(above, leaf / divisor, 0), x), jnp.where(above, size, 0)


def like(x: Any, y: Any) -> Any:
    """x with the dtypes and weak types of y."""
    return tree.map(lambda a, b: to_dtype(a, b.aval.dtype, b.aval.weak_type), x, y)


def identity(x: Any) -> Any:
    return x


def as_function(operator_or_matrix: Any) -> Function:
    """A function that multiplies by a matrix; a function is one already."""
    given = operator_or_matrix
    if callable(given):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, np.ndarray | ArrayBase) and not hasattr(given, "__matmul__"):
        raise TypeError(f"linear operator must be either a function or ndarray: {given!r} is a {type(given).__name__}")
    shape = getattr(given, "shape", (1, 1))
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
    if isinstance(given, np.ndarray | ArrayBase):
        return partial(dot, given)
    return partial(operator.matmul, given)


class Problem(NamedTuple):
    """A x = b, with a first guess and a preconditioner. There are `size` unknowns, of type `dtype`, maybe `weak`."""

    matvec: Function
    b: Any
    x0: Any
    precondition: Function
    size: int
    dtype: Any
    weak: bool

    def number(self, value: Any) -> Any:
        """A number of the solution's type."""
        return to_dtype(jnp.asarray(value), self.dtype, self.weak)

    @property
    def is_real(self) -> bool:
        return bool(self.dtype.kind != "c")


def problem(name: str, a: Any, b: Any, x0: Any, m: Any) -> Problem:
    """The problem of a solver's arguments, checked."""
    b_leaves, structure = tree.flatten(b)
    if not b_leaves:
        raise ValueError(f"{name}: b has no arrays")
    right = promote_each(b_leaves)
    guess, guess_structure = ([jnp.zeros_like(v) for v in right], structure) if x0 is None else tree.flatten(x0)
    if guess_structure != structure:
        raise ValueError(f"x0 and b must have matching tree structure: {guess_structure} vs {structure}")
    guess = [to_dtype(jnp.asarray(g), v.dtype, v.aval.weak_type) for g, v in zip(guess, right, strict=True)]
    shapes = [[v.shape for v in values] for values in (guess, right)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")
    return Problem(
        as_function(a),
        tree.unflatten(structure, right),
        tree.unflatten(structure, guess),
        identity if m is None else as_function(m),
        sum(v.size for v in right),
        jnp.result_type(*right),
        all(v.aval.weak_type for v in right),
    )


def promote_each(leaves: list[Any]) -> list[Any]:
    """The leaves as arrays of numbers that are not integers, each of its own dtype."""
    return [promote_dtypes_inexact(leaf)[0] for leaf in leaves]
