"""Types of derivative rules beside values: zero tangents, and operands with a known type only.

Nothing here knows of traces, so a library function can name these types without loading the transformations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.support.records import dataclass
from ..tracer.arrays.float0 import float0 as float0
from ..tracer.aval import ShapedArray
from ..tracer.core import Value
from ..tracer.ops import add, zeros
from ..tracer.trees import tree


def float0_zeros(aval: ShapedArray) -> Any:
    """The tangent of an integer or boolean value."""
    return np.zeros(aval.shape, float0)


@dataclass(frozen=True, slots=True)
class Zero:
    """A tangent or cotangent that is known to be zero. No arithmetic is ever emitted for it.

    >>> Zero(hloom.typeof(1.5)).aval
    ShapedArray(float32[], weak_type=True)
    """

    aval: ShapedArray
    """The type of the primal value; for integers and booleans its only tangent is this one."""


tree.register_pytree_node(Zero, lambda z: ((), z.aval), lambda aval, _: Zero(aval))


@dataclass(frozen=True, slots=True)
class Linear:
    """In a transpose rule, an operand in which the op is linear: its type is known, its value is not.

    >>> import hloom
    >>> from hloom.extend.core import Linear, Primitive
    >>> scaled = Primitive("scaled", lambda x, c: c * x)
    >>> @scaled.def_transpose
    ... def rule(ct, x, c):
    ...     print(isinstance(x, Linear), isinstance(c, Linear))
    ...     return c * ct, None
    >>> hloom.linear_transpose(lambda x: scaled.bind(x, 3.0), 1.0)(2.0)
    True False
    (Array(6., dtype=float32, weak_type=True),)
    """

    aval: ShapedArray


Tangent = Value | Zero
Operand = Value | Linear


def instantiate(tangent: Tangent) -> Value:
    """The tangent as a value: zeros for a symbolic zero.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.interpreters.ad import Zero, instantiate_zeros
    >>> instantiate_zeros(Zero(hloom.typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    """
    return zeros(tangent.aval) if isinstance(tangent, Zero) else tangent


def add_tangents(s: Tangent, t: Tangent) -> Tangent:
    """The sum of two tangents of one type.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.interpreters.ad import Zero, add_tangents
    >>> add_tangents(jnp.array(2.0), Zero(hloom.typeof(2.0)))
    Array(2., dtype=float32, weak_type=True)
    """
    if isinstance(s, Zero):
        return t
    return s if isinstance(t, Zero) else add(s, t)


def nonzero(tangents: Sequence[Tangent]) -> list[Value]:
    """The tangents that are values."""
    return [t for t in tangents if not isinstance(t, Zero)]


def is_linear(operand: Operand) -> bool:
    return isinstance(operand, Linear)
