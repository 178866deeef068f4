"""Batching rules for primitives. `hloom.interpreters.batching` offers these names."""

from __future__ import annotations

from typing import Any

from ..autodiff.batches import Axis, with_batch
from ..extend.protocol import Definition, to_front
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.ops import reshape
from .rules import Rule, Rules


def _plain(definition: Definition, rule: Rule) -> None:
    definition.set_batch(lambda axis, operands, positions, **params: rule(operands, positions, **params))


def _with_axis(definition: Definition, rule: Rule) -> None:
    definition.set_batch(
        lambda axis, operands, positions, **params: rule(axis.size, axis.name, None, operands, positions, **params)
    )


primitive_batchers: Rules = Rules("batching rule", _plain)
"""By primitive: rule(operands, positions, **params) -> (results, positions). A position is the dimension along which
the batch lies, or None."""
axis_primitive_batchers: Rules = Rules("batching rule", _with_axis)
"""As `primitive_batchers`: rule(axis size, axis name, None, operands, positions, **params)."""
fancy_primitive_batchers: Rules = Rules("batching rule", Definition.set_batch)
"""As `primitive_batchers`: rule(axis data, operands, positions, **params), with `axis_data.size` and `.name`."""


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: None = None) -> Value:
    """x as a batch of `size` elements along dimension 0: moved there, or repeated if `bdim` is None.

    >>> bdim_at_front(jnp.ones((2, 3)), 1, 3).shape, bdim_at_front(jnp.ones(2), None, 5).shape
    ((3, 2), (5, 2))
    """
    value = as_value(x)
    return with_batch(Axis(None, size), value, False) if bdim is None else to_front(value, bdim)


def defvectorized(prim: Any) -> None:
    """Say that a primitive acts element by element on operands of one shape: a batch of them is such an operand.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.batching import defvectorized
    >>> double = Primitive("double", lambda x: 2 * x)
    >>> defvectorized(double)
    >>> hloom.vmap(double.bind)(jnp.array([1, 2]))
    Array([2, 4], dtype=int32)
    """

    def rule(axis: Any, operands: Any, positions: Any, **params: Any) -> Any:
        given = {p for p in positions if p is not None}
        if len(given) != 1 or None in positions:
            operands = [bdim_at_front(x, p, axis.size) for x, p in zip(operands, positions, strict=True)]
            given = {0}
        return prim.bind(*operands, **params), given.pop()

    fancy_primitive_batchers[prim] = rule


def defbroadcasting(prim: Any) -> None:
    """Say that a primitive acts element by element, and broadcasts operands as NumPy does.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.batching import defbroadcasting
    >>> add = Primitive("my_add", lambda x, y: x + y)
    >>> defbroadcasting(add)
    >>> hloom.vmap(add.bind, in_axes=(0, None))(jnp.array([1, 2]), 10)
    Array([11, 12], dtype=int32)
    """

    def rule(axis: Any, operands: Any, positions: Any, **params: Any) -> Any:
        values = [as_value(x) for x in operands]
        ranks = [v.aval.ndim - (p is not None) for v, p in zip(values, positions, strict=True)]
        whole = []
        for value, p, rank in zip(values, positions, ranks, strict=True):
            if p is not None or rank:
                value = bdim_at_front(value, p, axis.size)
                count, *sizes = value.aval.shape
                value = reshape(value, (count, *[1] * (max(ranks) - rank), *sizes))
            whole.append(value)
        results = prim.bind(*whole, **params)
        return (results, [0] * len(results)) if prim.multiple_results else (results, 0)

    fancy_primitive_batchers[prim] = rule
