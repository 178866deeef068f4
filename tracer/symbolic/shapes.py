"""Symbolic shapes from text, for `hloom.export`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ...hlo.sizes import is_symbolic
from ...hlo.symbolic.expressions import Dim
from ...hlo.symbolic.parser import parse_sizes
from ...hlo.symbolic.scope import SymbolicScope
from ..arguments import ShapeDtypeStruct, typeof
from ..trees import tree
from . import values as values  # symbolic sizes are values, too


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic.

    >>> b, three = hloom.export.symbolic_shape("b, 3")
    >>> hloom.export.is_symbolic_dim(b), hloom.export.is_symbolic_dim(three)
    (True, False)
    """
    return is_symbolic(p)


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The least and the greatest value that a size can be shown to have; -inf and inf where no bound is found.

    They may be wider than necessary. TypeError for a number that is no size; InconclusiveDimensionOperation where an
    operation of the expression may be undefined.

    >>> a, b = hloom.export.symbolic_shape("a, mod(a, 3) + 5")
    >>> hloom.export.symbolic_dim_bounds(a), hloom.export.symbolic_dim_bounds(b), hloom.export.symbolic_dim_bounds(4)
    ((1, inf), (5, 7), (4, 4))
    """
    if isinstance(dimension, Dim):
        return dimension.scope.bounds(dimension)
    try:
        size = operator.index(dimension)
    except TypeError:
        raise TypeError(f"symbolic_dim_bounds: a size is an integer or symbolic, not {dimension!r}") from None
    return size, size


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A shape with the sizes that a text lists: numbers, variables, and expressions ``2*b + 1``, ``b^2``,
    ``floordiv(b, 2)``, ``mod(b, 2)``, ``max(b, 4)``, ``min(b, 4)``.

    constraints: what holds between the variables; see `SymbolicScope`.
    scope: the scope of the variables, which has its own constraints; None: a new one.
    like: the shape from which `_` takes one size, and `...` all others. None as `shape_spec` stands for "...".

    ValueError for a text that is malformed or does not fit `like`, and for constraints that contradict each other.

    >>> hloom.export.symbolic_shape("b, 2*n, _", like=(None, None, 3))
    (b, 2*n, 3)
    >>> b, = hloom.export.symbolic_shape("b", constraints=["b >= 4"])
    >>> b >= 3
    True
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec!r}.")
    return parse_sizes("..." if shape_spec is None else shape_spec, like, _scope(scope, constraints), shape_spec)


def _scope(scope: SymbolicScope | None, constraints: Sequence[str]) -> SymbolicScope:
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return scope


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The types of arguments, as ShapeDtypeStruct, with the shapes that `shapes_specs` lists, in one scope.

    args: a tree of arrays or their types, which gives the dtypes, and the sizes for placeholders.
    shapes_specs: a text for all of them, or a tree of texts (and None, for the shape of the argument) with the
      structure of `args` or of its upper part.

    ValueError for a tree of another structure, and as `symbolic_shape`.

    >>> hloom.export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(3)), ("b, ...", None))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    leaves, structure = tree.flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    texts = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    scope = _scope(scope, constraints)
    found = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = leaf if isinstance(leaf, ShapeDtypeStruct) else typeof(leaf)
        found.append(ShapeDtypeStruct(symbolic_shape(text, like=aval.shape, scope=scope), aval.dtype))
    return tree.unflatten(structure, found)
