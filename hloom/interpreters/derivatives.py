"""Derivatives of primitives. `hloom.interpreters.ad` offers these names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.stopping import STOP_GRADIENT
from ..autodiff.tangents import Operand, Tangent, Zero, add_tangents
from ..autodiff.tangents import instantiate as instantiate_zeros
from ..extend.protocol import Definition, UndefinedPrimal, transposed
from ..jaxpr.primitives import primitive_named
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Call, Value
from ..tracer.ops import add, zeros
from .rules import Rules

primitive_jvps: Rules = Rules("jvp rule", Definition.set_jvp)
"""By primitive: rule(primals, tangents, **params) -> (results, their tangents). A tangent may be a `Zero`."""


class _Transposes(Rules):
    """Also takes a rule of `stop_gradient`, which libraries set: the transpose of a linear function that contains
    one."""

    def __setitem__(self, primitive: Any, rule: Callable[..., Any]) -> None:
        if primitive is not primitive_named("stop_gradient"):
            super().__setitem__(primitive, rule)
            return

        def transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> Sequence[Value | None]:
            first = Zero(operands[0].aval) if cts[0] is None else cts[0]
            return transposed(rule, first, operands, {}, "stop_gradient")

        STOP_GRADIENT.def_transpose(transpose)
        dict.__setitem__(self, primitive, rule)


primitive_transposes: _Transposes = _Transposes("transpose rule", Definition.set_transpose)
"""By primitive: rule(cotangents, *operands, **params) -> a cotangent, or None, for each operand. Operands in which the
primitive is linear are `UndefinedPrimal`."""


def is_undefined_primal(x: Any) -> bool:
    """Whether x is an `UndefinedPrimal`.

    >>> import hloom
    >>> from hloom.interpreters.ad import UndefinedPrimal, is_undefined_primal
    >>> is_undefined_primal(UndefinedPrimal(hloom.typeof(1.5))), is_undefined_primal(1.5)
    (True, False)
    """
    return type(x) is UndefinedPrimal


def add_jaxvals(x: Value, y: Value) -> Value:
    """The sum of two arrays of one type.

    >>> add_jaxvals(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """
    return add(as_value(x), as_value(y))


def zeros_like_aval(aval: ShapedArray) -> Value:
    """Zeros of a type.

    >>> zeros_like_aval(hloom.typeof(jnp.ones(2)))
    Array([0., 0.], dtype=float32)
    """
    return zeros(aval)


def get_primitive_transpose(p: Any) -> Callable[..., Any]:
    """The transpose rule of a primitive; NotImplementedError if it has none here.

    >>> import hloom
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import deflinear, get_primitive_transpose
    >>> double = Primitive("double", lambda x: 2 * x)
    >>> deflinear(double, lambda ct: [2 * ct])
    >>> callable(get_primitive_transpose(double))
    True
    """
    try:
        return primitive_transposes[p]
    except KeyError as error:
        raise NotImplementedError(error.args[0]) from None


def _zero_of(result: Any) -> Zero:
    return Zero(as_value(result).aval)


def deflinear2(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Say that a primitive is linear in all operands together: transpose_rule(cotangent, *operands, **params).

    >>> import hloom
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import deflinear2
    >>> double = Primitive("double", lambda x: 2 * x)
    >>> deflinear2(double, lambda ct, x: [2 * ct])
    >>> hloom.grad(lambda x: double.bind(x))(1.5)
    Array(2., dtype=float32, weak_type=True)
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        result = primitive.bind(*primals, **params)
        return result, primitive.bind(*map(instantiate_zeros, tangents), **params)

    def transpose(cotangent: Any, *operands: Any, **params: Any) -> Any:
        if type(cotangent) is Zero:
            return [None] * len(operands)
        return transpose_rule(cotangent, *operands, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """As `deflinear2`; the rule is transpose_rule(cotangent, **params).

    >>> import hloom
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import deflinear
    >>> double = Primitive("double", lambda x: 2 * x)
    >>> deflinear(double, lambda ct: [2 * ct])
    >>> hloom.grad(lambda x: double.bind(x))(1.5)
    Array(2., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda cotangent, *operands, **params: transpose_rule(cotangent, **params))


def defjvp(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Set a derivative by operand: rule(tangent, *primals, **params) -> its part of the tangent; None: no part.

    >>> import hloom
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import defjvp
    >>> mul = Primitive("mul", lambda x, y: x * y)
    >>> defjvp(mul, lambda t, x, y: t * y, lambda t, x, y: x * t)
    >>> hloom.grad(mul.bind, argnums=(0, 1))(2.0, 3.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    defjvp2(primitive, *[None if r is None else _without_result(r) for r in jvprules])


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tangent, result, *primals, **params: rule(tangent, *primals, **params)


def defjvp2(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """As `defjvp`; the rules are rule(tangent, result, *primals, **params).

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import defjvp2
    >>> exp = Primitive("my_exp", jnp.exp)
    >>> defjvp2(exp, lambda t, result, x: t * result)
    >>> hloom.grad(exp.bind)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if primitive.multiple_results:
        raise TypeError(f"{primitive} has multiple results: set ad.primitive_jvps[primitive] instead")

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        result = primitive.bind(*primals, **params)
        parts = [
            rule(t, result, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        tangent: Tangent = _zero_of(result)
        for part in parts:
            tangent = add_tangents(tangent, part)
        return result, tangent

    primitive_jvps[primitive] = jvp


def defbilinear(prim: Any, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Say that a primitive of two operands is linear in each: the rules are rule(cotangent, x, y, **params).

    >>> import hloom
    >>> from hloom.extend.core import Primitive
    >>> from hloom.interpreters.ad import defbilinear
    >>> mul = Primitive("mul", lambda x, y: x * y)
    >>> defbilinear(mul, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> hloom.grad(mul.bind, argnums=(0, 1))(2.0, 3.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    defjvp(
        prim,
        lambda g, x, y, **params: prim.bind(g, y, **params),
        lambda g, x, y, **params: prim.bind(x, g, **params),
    )

    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> Any:
        if type(cotangent) is Zero:
            return None, None
        if is_undefined_primal(x):
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    primitive_transposes[prim] = transpose
