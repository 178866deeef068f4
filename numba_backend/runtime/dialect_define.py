"""How a dialect function is defined: one name, one implementation for each family of types, no Numba callee.

`define` makes an `@intrinsic` that resolves by the (common) type of its arguments and emits LLVM IR in place:

    EXP = define("exp", 1, real=exponential.exp, complex=complex_functions.exp)

Implementations work on `math.value.Float`, `Integer`, `Boolean` and `math.complex_value.Complex`; `wrap` and `unwrap`
convert between these and Numba's values. Storage follows the kernel contract: pred is uint8, f16 and bf16 are uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

from .math.complex_value import Complex
from .math.value import Boolean, Float, Integer

Implementation = Callable[..., Any]
ResultType = Callable[[Any], Any]

_FAMILIES: dict[Any, str] = {
    **dict.fromkeys((types.float32, types.float64), "real"),
    **dict.fromkeys((types.complex64, types.complex128), "complex"),
    **dict.fromkeys((types.int8, types.int16, types.int32, types.int64), "signed"),
    **dict.fromkeys((types.uint8, types.uint16, types.uint32, types.uint64), "unsigned"),
}


def wrap(builder: Any, type_: Any, raw: Any) -> Any:
    """A Numba value of `type_` as a value of `math`."""
    if isinstance(type_, types.Float):
        return Float(builder, raw)
    if isinstance(type_, types.Complex):
        return Complex(Float(builder, builder.extract_value(raw, 0)), Float(builder, builder.extract_value(raw, 1)))
    if isinstance(type_, types.Boolean):
        return Boolean(builder, raw)
    return Integer(builder, raw)


def unwrap(builder: Any, value: Any) -> Any:
    """The LLVM value for Numba; a Boolean becomes a pred, 0 or 1 in a byte."""
    if isinstance(value, Boolean):
        return builder.zext(value.raw, ir.IntType(8))
    if isinstance(value, Complex):
        pair = ir.Constant(ir.LiteralStructType([value.real.raw.type] * 2), ir.Undefined)
        return builder.insert_value(builder.insert_value(pair, value.real.raw, 0), value.imag.raw, 1)
    return value.raw


def define(
    name: str, arity: int, result: ResultType = lambda type_: type_, **implementations: Implementation
) -> Any:
    """An intrinsic of `arity` arguments of one type. `implementations` by family: real, complex, signed, unsigned;
    `integer` means the last two. `result` maps the argument type to the result type."""
    if "integer" in implementations:
        integer = implementations.pop("integer")
        implementations = {"signed": integer, "unsigned": integer, **implementations}

    def resolve(*arguments: Any) -> tuple[Any, Callable[..., Any]]:
        type_ = arguments[0]
        family = _FAMILIES.get(type_)
        if any(other != type_ for other in arguments) or family not in implementations:
            accepted = ", ".join(sorted(implementations))
            given = ", ".join(str(argument) for argument in arguments)
            raise NumbaTypeError(f"{name} takes {arity} argument(s) of one type ({accepted}), not ({given})")
        implementation = implementations[family]

        def codegen(context: Any, builder: Any, signature: Any, raw: Any) -> Any:
            return unwrap(builder, implementation(*(wrap(builder, type_, value) for value in raw)))

        return result(type_)(*arguments), codegen

    return make_intrinsic(name, arity, resolve)


def define_exact(name: str, result: Any, arguments: tuple[Any, ...], implementation: Implementation) -> Any:
    """An intrinsic for exactly these Numba types; a Numba boolean is accepted where a pred (uint8) is expected."""

    def resolve(*given: Any) -> tuple[Any, Callable[..., Any]]:
        if len(given) != len(arguments) or any(not _fits(g, a) for g, a in zip(given, arguments)):
            raise NumbaTypeError(f"{name} takes ({', '.join(map(str, arguments))}), not ({', '.join(map(str, given))})")

        def codegen(context: Any, builder: Any, signature: Any, raw: Any) -> Any:
            wide = [builder.zext(v, ir.IntType(8)) if t == types.boolean else v for v, t in zip(raw, given)]
            return unwrap(builder, implementation(*(wrap(builder, t, v) for t, v in zip(arguments, wide))))

        return result(*given), codegen

    return make_intrinsic(name, len(arguments), resolve)


def _fits(given: Any, expected: Any) -> bool:
    return bool(given == expected or (given == types.boolean and expected == types.uint8))


def make_intrinsic(name: str, arity: int, resolve: Callable[..., Any]) -> Any:
    # Numba reads the arity from the signature of the function itself.
    def unary(typingctx, a):  # type: ignore[no-untyped-def]
        return resolve(a)

    def binary(typingctx, a, b):  # type: ignore[no-untyped-def]
        return resolve(a, b)

    def ternary(typingctx, a, b, c):  # type: ignore[no-untyped-def]
        return resolve(a, b, c)

    definition = (unary, binary, ternary)[arity - 1]
    definition.__name__ = definition.__qualname__ = name
    return intrinsic(definition)
