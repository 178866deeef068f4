"""Define functions of the dialect: one name, and one implementation for each family of types.

`define` makes a function that resolves by the (common) type of its arguments and emits LLVM IR in place:

    EXP = define("exp", 1, real=exponential.exp, complex=complex_functions.exp)

Implementations work on `math.value.Float`, `Integer`, `Boolean` and `math.complex_value.Complex`; `wrap` and `unwrap`
convert between these and LLVM's values. Storage follows the kernel contract: pred is uint8, f16 and bf16 are uint16.
Types have the names of `loops/typing.py`. Nothing here needs Numba: `numba_dialect.py` makes intrinsics of these
functions for those who compile a kernel with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ...hlo.support.records import dataclass
from .llvm_values import pair_of, parts
from .math.complex_value import Complex
from .math.value import Boolean, Float, Integer

Implementation = Callable[..., Any]
ResultType = Callable[[str], str]


class DialectError(TypeError):
    """The function does not take these types."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The name of a type of numbers, as a kernel's text may use it: ``float32(x)``, ``local_array(8, float32)``."""

    type: str

    def __str__(self) -> str:
        return self.type


Kind = str | int | Cast
"""An argument when a function is resolved: its type, or the literal or the name of a type that the function takes."""


class Resolved(NamedTuple):
    """A function for certain types. `emit(builder, values)` gives an LLVM value, or None if the result is ``none``."""

    expected: tuple[Kind, ...]
    result: str
    emit: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class DialectFunction:
    """A function that the text of a kernel, or of a function of the runtime, may call."""

    name: str
    arity: int
    resolve: Callable[..., Resolved]
    """resolve(*kinds of the arguments); raises DialectError."""
    literals: frozenset[int] = frozenset()
    """The arguments that are numbers or names in the text."""


_FAMILIES: dict[Kind, str] = {
    **dict.fromkeys(("float32", "float64"), "real"),
    **dict.fromkeys(("complex64", "complex128"), "complex"),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "signed"),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "unsigned"),
}


def wrap(builder: Any, type_: str, raw: Any) -> Any:
    """An LLVM value of `type_` as a value of `math`."""
    family = _FAMILIES.get(type_)
    if family == "real":
        return Float(builder, raw)
    if family == "complex":
        return Complex(*(Float(builder, part) for part in parts(builder, raw)))
    if type_ == "bool":
        return Boolean(builder, raw)
    return Integer(builder, raw)


def unwrap(builder: Any, value: Any) -> Any:
    """The LLVM value; a Boolean becomes a pred, 0 or 1 in a byte."""
    if isinstance(value, Boolean):
        return builder.zext(value.raw, ir.IntType(8))
    if isinstance(value, Complex):
        return pair_of(builder, value.real.raw, value.imag.raw)
    return value.raw


def define(
    name: str, arity: int, result: ResultType = lambda type_: type_, **implementations: Implementation
) -> DialectFunction:
    """A function of `arity` arguments of one type. `implementations` by family: real, complex, signed, unsigned;
    `integer` means the last two. `result` maps the argument type to the result type."""
    if "integer" in implementations:
        integer = implementations.pop("integer")
        implementations = {"signed": integer, "unsigned": integer, **implementations}

    def resolve(*arguments: Kind) -> Resolved:
        type_ = arguments[0]
        family = _FAMILIES.get(type_)
        same = len(arguments) == arity and all(other == type_ for other in arguments)
        if not same or family not in implementations or not isinstance(type_, str):
            accepted = ", ".join(sorted(implementations))
            given = ", ".join(map(str, arguments))
            raise DialectError(f"{name} takes {arity} argument(s) of one type ({accepted}), not ({given})")
        implementation = implementations[family]

        def emit(builder: Any, raw: Any) -> Any:
            return unwrap(builder, implementation(*(wrap(builder, type_, value) for value in raw)))

        return Resolved(arguments, result(type_), emit)

    return DialectFunction(name, arity, resolve)


def define_exact(
    name: str, result: str, arguments: tuple[str, ...], implementation: Implementation
) -> DialectFunction:
    """A function of exactly these types; a bool is accepted where a pred (uint8) is expected."""

    def resolve(*given: Kind) -> Resolved:
        if len(given) != len(arguments) or any(not _fits(g, a) for g, a in zip(given, arguments)):
            raise DialectError(f"{name} takes ({', '.join(arguments)}), not ({', '.join(map(str, given))})")

        def emit(builder: Any, raw: Any) -> Any:
            wide = [builder.zext(v, ir.IntType(8)) if t == "bool" else v for v, t in zip(raw, given)]
            return unwrap(builder, implementation(*(wrap(builder, t, v) for t, v in zip(arguments, wide))))

        return Resolved(given, result, emit)

    return DialectFunction(name, len(arguments), resolve)


def _fits(given: Kind, expected: str) -> bool:
    return given == expected or (given == "bool" and expected == "uint8")
