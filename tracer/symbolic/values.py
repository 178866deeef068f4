"""Symbolic sizes as values of the program that is being traced.

A variable is the size of a dimension of an array, counted in the program by get-dimension-size; an expression is
integer arithmetic on these. JAX's `jnp.array(x.shape[0])` and `y * x.shape[0]`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.dynamic_size import DimensionAttributes
from ...hlo.ops.movement import IotaAttributes
from ...hlo.shape import Shape
from ...hlo.symbolic.evaluate import Operations, evaluate
from ...hlo.symbolic.expressions import FLOORDIV, MAX, MIN, MOD, Dim, variable
from ..arrays.array import as_value
from ..core import EVAL, Value, bind, current_trace
from ..dtypes import default_int
from ..ops import convert


def size_as_value(size: Dim, dtype: np.dtype[Any] | None = None) -> Value:
    """The size as a scalar of a dtype; weakly typed, int32, or int64 with 64-bit types, if that is None.

    UnsupportedError where nothing is traced: then it has no value.
    """
    if current_trace() is EVAL:
        raise UnsupportedError(
            f"The symbolic size {size} has no value here. Evaluation rule for 'dim_as_value' is not implemented. It "
            "seems that you are using shape polymorphism outside jax.export.\n  Compute with it in a function that "
            "export, eval_shape or jit(f).lower traces."
        )
    values = {name: _value_of(name, size) for name in sorted(size.variables())}
    found: Value = evaluate(size, values, operations())
    return current_trace().with_weak_type(found, True) if dtype is None else convert(found, dtype, False)


def _value_of(name: str, size: Dim) -> Value:
    dim: Any = variable(name, size.scope)
    counted = bind(Opcode.IOTA, (), IotaAttributes(0), shape=Shape.array(ElementType.S32, (dim,)))
    found = bind(Opcode.GET_DIMENSION_SIZE, (counted,), DimensionAttributes(0), weak_type=True)
    if default_int() == np.int32:
        return found
    return bind(Opcode.CONVERT, (found,), shape=Shape.array(ElementType.S64), weak_type=True)


def operations() -> Operations:
    """The operations of expressions on values."""
    return {
        FLOORDIV: operator.floordiv,
        MOD: operator.mod,
        MAX: lambda x, y: bind(Opcode.MAXIMUM, (as_value(x), as_value(y))),
        MIN: lambda x, y: bind(Opcode.MINIMUM, (as_value(x), as_value(y))),
    }
