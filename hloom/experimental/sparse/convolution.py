"""`bcoo_conv_general_dilated`: convolutions with one or two sparse operands. Name and arguments follow
jax.experimental.sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.arrays.operators import ArrayBase
from ...tracer.jit import eval_shape
from .arrays import BCOO
from .layout import bcoo_update_layout


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> BCOO:
    """`lax.conv_general_dilated` with one or two BCOO operands, as a BCOO: each pair of specified elements gives an
    element of the result, and equal indices are not added up.

    It is for one image and one feature (the leading dimensions are (1, 1)) in the default order of dimensions, with
    strides, dilations and group counts of 1.

    Raises:
      UnsupportedError: for anything else.
      TypeError: an operand is neither an array nor a BCOO.
      ValueError: the operands do not fit together, as for `lax.conv_general_dilated`.

    >>> x, kernel = (sparse.BCOO.fromdense(jnp.array(v)[None, None]) for v in ([1.0, 0.0, 2.0, 0.0], [1.0, 3.0]))
    >>> sparse.bcoo_conv_general_dilated(x, kernel, window_strides=(1,), padding="VALID").todense()
    Array([[[1., 6., 2.]]], dtype=float32)
    """
    for operand in (lhs, rhs):
        if not isinstance(operand, BCOO | ArrayBase | np.ndarray):
            raise TypeError(
                f"bcoo_conv_general_dilated: input of type {type(operand).__name__} not recognized: a BCOO or an "
                "array is needed"
            )
    rank = lhs.ndim - 2
    result = eval_shape(
        lambda x, y: lax.conv_general_dilated(
            x, y, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
            feature_group_count, batch_group_count, precision, preferred_element_type,
        ),
        *[ShapeDtypeStruct(x.shape, x.dtype) for x in (lhs, rhs)],
    )  # fmt: skip
    ones = (1,) * rank
    given = {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation, "window_strides": window_strides}
    other = [name for name, value in given.items() if value is not None and tuple(value) != ones]
    other += [f"{k}_group_count" for k, n in (("feature", feature_group_count), ("batch", batch_group_count)) if n != 1]
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if numbers != lax.conv_dimension_numbers(lhs.shape, rhs.shape, None):
        other.append("dimension_numbers")
    if lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        other.append(f"leading dimensions other than (1, 1): {lhs.shape[:2]}, {rhs.shape[:2]}")
    if other:
        raise UnsupportedError(
            f"bcoo_conv_general_dilated with {', '.join(other)}: convert the sparse operands with todense()"
        )
    pads = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], ones, padding) if isinstance(padding, str) else padding
    (values, places), (weights, offsets) = _specified(lhs), _specified(rhs)
    begin = jnp.array([p[0] for p in pads], places.dtype)
    found = (places[:, None] + begin - offsets[None, :]).reshape(-1, rank)
    sizes = jnp.array(result.shape[2:], found.dtype)
    is_inside = jnp.all((found >= 0) & (found < sizes), axis=-1)
    data = jnp.where(is_inside, (values[:, None] * weights[None, :]).ravel(), 0).astype(result.dtype)
    indices = jnp.where(is_inside[:, None], found, sizes)  # an index out of bounds specifies nothing
    return BCOO((data[None, None], indices[None, None]), shape=result.shape)


def _specified(x: Any) -> tuple[Any, Any]:
    """The specified elements of an image, and where each is."""
    if not isinstance(x, BCOO):
        places = jnp.stack([i.ravel() for i in jnp.indices(x.shape[2:])], axis=-1)
        return jnp.ravel(x), places
    x = bcoo_update_layout(x, n_batch=2, n_dense=0, on_inefficient=None)
    data, places = x.data[0, 0], x.indices[0, 0]
    is_inside = jnp.all(places < jnp.array(x.shape[2:], places.dtype), axis=-1)
    return jnp.where(is_inside, data, 0), places
