"""Initializers of orthogonal matrices. Source: jax.nn.initializers."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ... import random
from ...hlo.support.tracebacks import boundary
from ...lax.movement import canonical_shape
from ...tracer import dtypes
from ...tracer.core import Value
from .distributions import Initializer


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Uniform orthogonal matrices, times `scale`, with the columns along `column_axis` and rows along all other axes.

    Source: Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2014).

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.orthogonal()(random.key(0), (4, 3))
    >>> w.shape, bool(jnp.allclose(w.T @ w, jnp.eye(3), atol=1e-5))
    ((4, 3), True)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Value:
        return _orthogonal(key, canonical_shape(shape), _dtype(dtype, default), scale, column_axis)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Kernels of convolutions in 1 to 3 dimensions: zero but for an orthogonal matrix at the center.

    Source: Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018).

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> kernel = initializers.delta_orthogonal()(random.key(0), (3, 3, 4, 4))  # height, width, inputs, outputs
    >>> bool((kernel[0] == 0).all()), bool(jnp.allclose(kernel[1, 1] @ kernel[1, 1].T, jnp.eye(4), atol=1e-5))
    (True, True)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Value:
        sizes, found = canonical_shape(shape), _dtype(dtype, default)
        if len(sizes) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: a 3D, 4D or 5D shape is required, not {sizes}")
        if sizes[-1] < sizes[-2]:
            raise ValueError(
                f"delta_orthogonal: `fan_in` must be less or equal than `fan_out`, which {sizes} contradicts"
            )
        matrix = _orthogonal(key, sizes[-2:], found, scale, column_axis)
        center = tuple([(size - 1) // 2 for size in sizes[:-2]])
        kernel: Any = jnp.zeros(sizes, found)
        return kernel.at[center].set(matrix)  # type: ignore[no-any-return]

    return init


def _dtype(dtype: Any, default: Any) -> Any:
    wanted = default if dtype is None else dtype
    return dtypes.default_float() if wanted is None else dtypes.requested_dtype(wanted, "an initializer")


def _orthogonal(key: Any, sizes: tuple[int, ...], dtype: Any, scale: Any, column_axis: int) -> Value:
    if len(sizes) < 2:
        raise ValueError(f"the orthogonal initializer requires at least a 2D shape, not {sizes}")
    if 0 in sizes:
        return jnp.zeros(sizes, dtype)
    columns = sizes[column_axis]
    others = [size for d, size in enumerate(sizes) if d != column_axis % len(sizes)]
    matrix = random.orthogonal(key, math.prod(others), (), dtype, columns)
    moved = jnp.moveaxis(jnp.reshape(matrix, (*others, columns)), -1, column_axis)
    return jnp.multiply(jnp.asarray(scale, dtype), moved)
