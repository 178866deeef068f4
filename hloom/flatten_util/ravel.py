"""A pytree of arrays as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import numpy as jnp
from ..hlo.support.tracebacks import boundaries
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.errors import OperandError
from ..tracer.trees.tree import PyTreeDef, flatten


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A pytree of arrays and numbers as a vector, and the function that makes such a pytree of such a vector.

    The vector has the dtype that the leaves promote to; unraveling gives each leaf its own again.

    Returns:
      (vector, unravel). `unravel` compares equal for equal structures, shapes and dtypes, and is hashable. It raises
      ValueError for an array of another size, and TypeError for one of another dtype if the leaves differ in theirs.

    >>> vector, unravel = ravel_pytree({"b": 3.0, "w": jnp.array([[1.0, 2.0]])})
    >>> vector, unravel(vector * 10)
    (Array([3., 1., 2.], dtype=float32), {'b': Array(30., dtype=float32), 'w': Array([[10., 20.]], dtype=float32)})
    """
    leaves, treedef = flatten(pytree)
    values = [as_value(leaf) for leaf in leaves]
    dtype = jnp.result_type(*values) if values else jnp.result_type(float)
    unravel = _Unravel(treedef, tuple([v.aval for v in values]), dtype)
    if not values:
        return jnp.zeros((0,), dtype), unravel
    if unravel.is_uniform:
        return jnp.concatenate([jnp.ravel(v) for v in values]) if values[1:] else jnp.ravel(values[0]), unravel
    return jnp.concatenate([jnp.ravel(v).astype(dtype) for v in values]), unravel


@boundaries
class _Unravel:
    """From a vector to the pytree. Compared by value, so that it can be a static argument of a jitted function."""

    def __init__(self, treedef: PyTreeDef, avals: tuple[ShapedArray, ...], dtype: Any) -> None:
        self._treedef, self._avals, self._dtype = treedef, avals, dtype
        self.is_uniform = all(a.dtype == dtype for a in avals)

    def __call__(self, vector: Any) -> Any:
        value = jnp.asarray(vector)
        sizes = [a.size for a in self._avals]
        if not self.is_uniform and value.dtype != self._dtype:
            raise TypeError(
                f"unravel function given array of dtype {value.dtype}, but expected dtype {self._dtype}, to which the "
                "dtypes of the leaves are promoted\n  Convert it with astype."
            )
        if value.ndim == 0 or value.shape[0] != sum(sizes) or math.prod(value.shape) != sum(sizes):
            raise OperandError(
                f"unravel function given array of shape {value.shape}, but expected shape ({sum(sizes)},) for "
                f"{self._treedef} with leaves {', '.join([a.str_short() for a in self._avals])}"
            )
        leaves, begin = [], 0
        for aval, size in zip(self._avals, sizes, strict=True):
            part = value[begin : begin + size].reshape(aval.shape)
            leaves.append(part if self.is_uniform else _converted(part, aval))
            begin += size
        return self._treedef.unflatten(leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._treedef, self._avals, self._dtype

    def __repr__(self) -> str:
        return f"<unravel to {self._treedef}>"


def _converted(part: Any, aval: ShapedArray) -> Any:
    if part.aval.dtype.kind == "c" and aval.dtype.kind != "c":
        part = part.real  # the leaf had no imaginary part
    return part.astype(aval.dtype)

