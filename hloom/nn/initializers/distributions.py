"""Initializers with one value, or with one distribution for all shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ... import numpy as jnp
from ... import random
from ...hlo.tracebacks import boundary
from ...lax.movement import canonical_shape
from ...tracer import dtypes
from ...tracer.core import Value

__all__ = [
    "Initializer",
    "constant",
    "normal",
    "ones",
    "truncated_normal",
    "uniform",
    "zeros",
]

Initializer: TypeAlias = Callable[..., Value]
"""initializer(key, shape, dtype=float32)."""


def zeros(key: Any, shape: Any, dtype: Any = None) -> Value:
    """Zeros."""
    return jnp.zeros(shape, dtype)


def ones(key: Any, shape: Any, dtype: Any = None) -> Value:
    """Ones."""
    return jnp.ones(shape, dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An array of one value."""
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        found = default if dtype is None else dtype
        return jnp.full(shape, value, dtypes.default_float() if found is None else found)

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform on [0, scale)."""
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        draws: Value = random.uniform(key, shape, default if dtype is None else dtype) * scale
        return draws

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal of mean 0."""
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        draws: Value = random.normal(key, shape, default if dtype is None else dtype) * stddev
        return draws

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal of mean 0, given that it lies within (lower, upper) standard deviations."""
    default = dtype

    @boundary
    def init(key: Any, shape: Any, dtype: Any = None) -> Value:
        draws = random.truncated_normal(key, lower, upper, canonical_shape(shape), default if dtype is None else dtype)
        scaled: Value = draws * stddev
        return scaled

    return init
