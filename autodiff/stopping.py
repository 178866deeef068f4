"""stop_gradient: the identity, with a derivative of zero. A primitive, since the derivative may be taken later."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar, cast

import numpy as np

from ..hlo.ir import HloComputation
from ..tracer import dtypes
from ..tracer.arrays.array import Array, as_value
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.core import Call, Primitive, Value, bind_call, run_meaning
from ..tracer.recording import trace_to_computation
from ..tracer.references.refs import constants_are_made_by
from ..tracer.traced import with_avals
from ..tracer.trees import tree
from .tangents import Tangent, Zero

T = TypeVar("T")

STOP_GRADIENT = Primitive("stop_gradient", evaluate=run_meaning)


@STOP_GRADIENT.def_jvp
def _stop_gradient_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    results = bind_call(call, primals)
    return results, [Zero(r.aval) for r in results]


def stop_gradient(x: T) -> T:
    """x (a pytree), with a derivative of zero. In HLO a composite call of the identity, which inlining removes.

    >>> hloom.grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def one(leaf: object) -> object:
        if isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic):
            return leaf  # a constant, as it is
        value = as_value(leaf)
        if isinstance(value, Array) or not dtypes.is_inexact(value.aval.dtype):
            return value  # differentiation treats it as a constant anyway
        return with_avals(bind_call(Call(STOP_GRADIENT, _identity(value.aval)), [value]), [value.aval])[0]

    return cast(T, tree.map(one, x))


@lru_cache(maxsize=256)
def _identity(aval: ShapedArray) -> HloComputation:
    return trace_to_computation(lambda values: values, [aval], "stop_gradient").computation


on_clear(_identity.cache_clear)
constants_are_made_by(stop_gradient)
