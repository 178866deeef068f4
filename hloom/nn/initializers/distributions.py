"""Initializers with one value, or with one distribution for all shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ... import numpy as jnp
from ... import random
from ...hlo.support.tracebacks import boundary
from ...lax.movement import canonical_shape
from ...tracer import dtypes
from ...tracer.core import Value

Initializer: TypeAlias = Callable[..., Value]
"""initializer(key, shape, dtype=float32)."""


def zeros(key: Any, shape: Any, dtype: Any = None) -> Value:
    """Zeros: an initializer without a key's use, for the biases of layers.

    >>> initializers.zeros(random.key(0), (2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    return jnp.zeros(shape, dtype)


def ones(key: Any, shape: Any, dtype: Any = None) -> Value:
    """Ones: an initializer without a key's use, for the scales of normalising layers.

    >>> initializers.ones(random.key(0), (2, 2))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return jnp.ones(shape, dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An array of one value.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> initializers.constant(0.5)(random.key(0), (2, 2))
    Array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        found = default if dtype is None else dtype
        return jnp.full(shape, value, dtypes.default_float() if found is None else found)

    return init


def _scaled(draws: Any, scale: Any) -> Value:
    """In the dtype of the draws, for every dtype of the scale."""
    scaled: Value = draws * jnp.asarray(scale).astype(draws.dtype)
    return scaled


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform on [0, scale).

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.uniform(scale=2.0)(random.key(0), (1000, 100))
    >>> w.shape, bool((0 <= w).all()), float(w.mean().round(1))
    ((1000, 100), True, 1.0)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        return _scaled(random.uniform(key, shape, default if dtype is None else dtype), scale)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """normal(stddev)(key, shape, dtype): normal numbers of mean 0, floating-point or complex; float32 by default.

    >>> w = initializers.normal(stddev=0.1)(random.key(0), (1000, 100))
    >>> w.shape, w.std().round(2)
    ((1000, 100), Array(0.1, dtype=float32))
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        return _scaled(random.normal(key, shape, default if dtype is None else dtype), stddev)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal of mean 0, given that it lies within (lower, upper) standard deviations.

    The initializer is called with (key, shape, dtype); the dtype is float32 by default.

    >>> w = initializers.truncated_normal(stddev=1.0, lower=-1.0, upper=1.0)(random.key(0), (1000,))
    >>> w.shape, bool((abs(w) <= 1).all())
    ((1000,), True)
    """
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        draws = random.truncated_normal(key, lower, upper, canonical_shape(shape), default if dtype is None else dtype)
        return _scaled(draws, stddev)

    return init
