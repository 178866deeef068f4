"""The matrix versions of functions in `hloom.numpy`: here matrices are in the last two dimensions, and arguments
positional or by keyword only, as the array API standard has them."""

from __future__ import annotations

from typing import Any

from ...tracer.arrays.operators import ArrayLike
from ...tracer.core import Value
from ...tracer.errors import OperandError
from .. import array_manipulation
from ..promotion import ensure_arraylikes
from ..tensor_contractions import matmul as any_matmul
from ..tensor_contractions import outer as any_outer
from ..tensor_contractions import tensordot as any_tensordot


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Value:
    """The diagonals of the matrices in the last two dimensions, as the last dimension; `numpy.diagonal` takes the first
    two.

    >>> jnp.linalg.diagonal(jnp.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    Array([[1, 4],
           [5, 8]], dtype=int32)
    """
    return array_manipulation.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Value:
    """The sums of the diagonals of the matrices in the last two dimensions; `numpy.trace` takes the first two.

    >>> jnp.linalg.trace(jnp.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    Array([ 5, 13], dtype=int32)
    """
    return array_manipulation.trace(x, offset, -2, -1, dtype)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: Any = None) -> Value:
    """`hloom.numpy.matmul`: matrix products, [..., m, k] and [..., k, n].

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return any_matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Value:
    """`hloom.numpy.tensordot`: the product summed over `axes`.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return any_tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """All products of two vectors, [x1.size, x2.size]; `numpy.outer` takes any arrays and flattens them.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([1, 10]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    x, y = ensure_arraylikes("outer", x1, x2)
    if x.aval.ndim != 1 or y.aval.ndim != 1:
        types = f"{x.aval.str_short()} and {y.aval.str_short()}"
        raise OperandError(
            f"linalg.outer of {types}: both must have one dimension\n  hloom.numpy.outer flattens its arguments.",
            "outer",
        )
    return any_outer(x, y)
