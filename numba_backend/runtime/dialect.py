"""The kernel dialect: every name that a kernel's text may use, as the scope in which it is executed.

A kernel calls `exp(x[i])`, `maximum(a, b)`, `convert_f32_s32(v)`. A name serves all types and is resolved by the type
of the arguments, which all have one type; where the result's type differs, the name contains it. Each emits LLVM IR in
place, and is written so that LLVM vectorises the loop around it. The semantics are HLO's as XLA's CPU compiler
implements them, but denormals are kept.

Importing this module imports llvmlite; only modules that compile kernels may do so.

Rules for the texts: the operands of one call have one type (write ``float32(0.5)``, not ``0.5``); pred is uint8 0 or 1,
f16 and bf16 are uint16 and are converted explicitly; ``+ - *`` on floats are Python's operators; on integers these
compute in 64 bits, as Numba does (wrap them in a cast, or use `add`, `subtract`, `multiply`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from ..loops.statements import LOOP_KINDS
from ..loops.typing import SCALARS
from . import dialect_conversion as conversion
from . import dialect_float as floating
from . import dialect_integer as integer
from . import dialect_small as small
from .dialect_define import Cast, DialectError, DialectFunction, Kind, Resolved, define, define_exact
from .dialect_memory import memory_functions
from .dialect_words import word_functions
from .llvm_values import PARTS
from .math import (
    complex_functions,
    complex_inverse,
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
    value,
)
from .math.complex_value import Complex
from .math.value import Float, Integer


def _to_pred(_: str) -> str:
    return "uint8"


def _real_part(type_: str) -> str:
    return PARTS.get(type_, type_)


def _key_type(type_: str) -> str:
    return "int32" if type_ == "float32" else "int64"


def _keyed_type(type_: str) -> str:
    return "float32" if type_ == "int32" else "float64"


def _of_both_signs(function: Callable[..., Any]) -> dict[str, Any]:
    """A function of integers that has the argument `signed`, as two families of types."""
    return {"signed": partial(function, signed=True), "unsigned": partial(function, signed=False)}


def _elementary_functions() -> dict[str, Any]:
    one_argument: dict[str, tuple[Any, Any]] = {
        "exp": (exponential.exp, complex_functions.exp),
        "expm1": (exponential.expm1, complex_functions.expm1),
        "log": (logarithm.log, complex_functions.log),
        "log1p": (logarithm.log1p, complex_functions.log1p),
        "tanh": (exponential.tanh, complex_functions.tanh),
        "logistic": (exponential.logistic, complex_functions.logistic),
        "sin": (trigonometric.sin, complex_functions.sin),
        "cos": (trigonometric.cos, complex_functions.cos),
        "tan": (trigonometric.tan, complex_functions.tan),
        "sqrt": (value.square_root, complex_functions.sqrt),
        "rsqrt": (power.rsqrt, complex_functions.rsqrt),
        "cbrt": (power.cbrt, None),
        "erf": (error_function.erf, None),
        "asin": (inverse_trigonometric.asin, complex_inverse.asin),
        "acos": (inverse_trigonometric.acos, complex_inverse.acos),
        "atan": (inverse_trigonometric.atan, None),
        "sinh": (exponential.sinh, complex_functions.sinh),
        "cosh": (exponential.cosh, complex_functions.cosh),
        "asinh": (logarithm.asinh, complex_inverse.asinh),
        "acosh": (logarithm.acosh, complex_inverse.acosh),
        "atanh": (logarithm.atanh, complex_inverse.atanh),
    }
    functions = {}
    for name, (real, complex_) in one_argument.items():
        families = {"real": real} if complex_ is None else {"real": real, "complex": complex_}
        functions[name] = define(name, 1, **families)
    functions["atan2"] = define("atan2", 2, real=inverse_trigonometric.atan2, complex=complex_inverse.atan2)
    functions["pow"] = define(
        "pow", 2, real=power.power, complex=complex_functions.power,
        signed=integer.power_signed, unsigned=integer.power_unsigned,
    )  # fmt: skip
    return functions


def _arithmetic() -> dict[str, Any]:
    quotients, remainders = _of_both_signs(integer.divide), _of_both_signs(integer.remainder)
    return {
        "add": define("add", 2, real=floating.add, complex=operator.add, integer=operator.add),
        "subtract": define("subtract", 2, real=floating.subtract, complex=operator.sub, integer=operator.sub),
        "multiply": define("multiply", 2, real=floating.multiply, complex=operator.mul, integer=operator.mul),
        "divide": define("divide", 2, real=floating.divide, complex=complex_functions.divide, **quotients),
        "remainder": define("remainder", 2, real=remainder.remainder, **remainders),
        "idiv": define("idiv", 2, **quotients),
        "irem": define("irem", 2, **remainders),
        "mulhi": define("mulhi", 2, **_of_both_signs(integer.upper_half)),
        "negate": define("negate", 1, real=operator.neg, complex=operator.neg, integer=operator.neg),
        "abs": define(
            "abs", 1, _real_part, real=value.absolute, complex=complex_functions.absolute_value,
            signed=integer.absolute_signed, unsigned=lambda x: x,
        ),
        "sign": define(
            "sign", 1, real=floating.sign, complex=complex_functions.sign,
            signed=integer.sign_signed, unsigned=integer.sign_unsigned,
        ),
        "fma": define("fma", 3, real=value.fma),
        "floor": define("floor", 1, real=value.floor),
        "ceil": define("ceil", 1, real=value.ceil),
        "round_even": define("round_even", 1, real=value.round_half_even),
        "round_away": define("round_away", 1, real=value.round_half_away),
        "is_finite": define("is_finite", 1, _to_pred, real=floating.is_finite),
    }


def _extrema_and_reductions() -> dict[str, Any]:
    maxima = {"real": floating.maximum, **_of_both_signs(integer.maximum)}
    minima = {"real": floating.minimum, **_of_both_signs(integer.minimum)}

    def add_parts(a: Complex, b: Complex) -> Complex:
        return Complex(floating.reduce_add(a.real, b.real), floating.reduce_add(a.imag, b.imag))

    return {
        "maximum": define("maximum", 2, **maxima),
        "minimum": define("minimum", 2, **minima),
        "reduce_max": define("reduce_max", 2, **maxima),
        "reduce_min": define("reduce_min", 2, **minima),
        "reduce_largest": define("reduce_largest", 2, real=floating.largest),
        "reduce_smallest": define("reduce_smallest", 2, real=floating.smallest),
        "reduce_add": define(
            "reduce_add", 2, real=floating.reduce_add, complex=add_parts, integer=operator.add
        ),
        "reduce_mul": define(
            "reduce_mul", 2, real=floating.reduce_multiply, complex=operator.mul, integer=operator.mul
        ),
        "reduce_and": define("reduce_and", 2, integer=operator.and_),
        "reduce_or": define("reduce_or", 2, integer=operator.or_),
        "reduce_xor": define("reduce_xor", 2, integer=operator.xor),
    }


def _bits_and_logic() -> dict[str, Any]:
    return {
        "bit_and": define("bit_and", 2, integer=operator.and_),
        "bit_or": define("bit_or", 2, integer=operator.or_),
        "bit_xor": define("bit_xor", 2, integer=operator.xor),
        "bit_not": define("bit_not", 1, integer=lambda a: a ^ -1),
        "logical_not": define_exact("logical_not", "uint8", ("uint8",), lambda a: a.equals(0)),
        "shl": define("shl", 2, integer=integer.shift_left),
        "shr_logical": define("shr_logical", 2, integer=integer.shift_right_logical),
        "shr_arithmetic": define("shr_arithmetic", 2, integer=integer.shift_right_arithmetic),
        "popcnt": define("popcnt", 1, integer=integer.population_count),
        "clz": define("clz", 1, integer=integer.count_leading_zeros),
        "maximum_key": define("maximum_key", 1, _key_type, real=floating.maximum_key),
        "minimum_key": define("minimum_key", 1, _key_type, real=floating.minimum_key),
        "from_key": define("from_key", 1, _keyed_type, signed=floating.from_key),
        "total_order_key": define("total_order_key", 1, _key_type, real=floating.total_order_key),
    }


def _comparisons() -> dict[str, Any]:
    functions = {}
    for name, relation in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        families = {"real": floating.compare(relation), **_of_both_signs(partial(integer.compare, relation))}
        if name == "eq":
            families["complex"] = lambda a, b: a.real.equals(b.real) & a.imag.equals(b.imag)
        if name == "ne":
            families["complex"] = lambda a, b: a.real.differs(b.real) | a.imag.differs(b.imag)
        functions[name] = define(name, 2, _to_pred, **families)
    return functions


def _complex_parts() -> dict[str, Any]:
    def make(part: str) -> str:
        return "complex64" if part == "float32" else "complex128"

    return {
        "complex_from": define("complex_from", 2, make, real=Complex),
        "real": define("real", 1, _real_part, complex=lambda z: z.real, real=lambda x: x),
        "imag": define("imag", 1, _real_part, complex=lambda z: z.imag, real=lambda x: x.constant(0.0)),
        "conj": define("conj", 1, complex=lambda z: Complex(z.real, -z.imag), real=lambda x: x),
    }


def _select() -> DialectFunction:
    """select(p, a, b): p is a pred or a bool, a and b have one type; both are computed before."""

    def resolve(*given: Kind) -> Resolved:
        flag_fits, same = given[0] in ("uint8", "bool"), len(given) == 3 and given[1] == given[2]
        if not (flag_fits and same) or given[1] not in (*SCALARS, "bool"):
            raise DialectError(f"select takes (pred, T, T), not ({', '.join(map(str, given))})")
        condition, chosen = given[0], str(given[1])

        def emit(builder: Any, raw: Any) -> Any:
            flag = raw[0]
            if condition == "uint8":
                flag = builder.icmp_unsigned("!=", flag, ir.Constant(flag.type, 0))
            if chosen not in PARTS:
                return builder.select(flag, raw[1], raw[2])
            # Pairs are selected part by part: the vectoriser cannot handle a select of structs.
            result = raw[1]
            for part in (0, 1):
                sides = [builder.extract_value(pair, part) for pair in raw[1:]]
                result = builder.insert_value(result, builder.select(flag, *sides), part)
            return result

        return Resolved(given, chosen, emit)

    return DialectFunction("select", 3, resolve)


def _reduce_precision(name: str, *accepted: str) -> DialectFunction:
    """reduce_precision(x, exponent_bits, mantissa_bits): the two numbers are literals in the text."""

    def resolve(*given: Kind) -> Resolved:
        x, *literals = given
        bits = [n for n in literals if isinstance(n, int)]
        if x not in accepted or not len(bits) == len(literals) == 2:
            raise DialectError(f"{name} takes (float, literal, literal), not ({', '.join(map(str, given))})")

        def emit(builder: Any, raw: Any) -> Any:
            if x == "uint16":
                return floating.reduce_precision_f16(Integer(builder, raw[0]), *bits).raw
            return floating.reduce_precision(Float(builder, raw[0]), *bits).raw

        return Resolved(given, str(x), emit)

    return DialectFunction(name, 3, resolve, frozenset((1, 2)))


def _conversions() -> dict[str, Any]:
    functions = conversion.conversions() | conversion.bit_casts() | small.conversions()
    halves = {f"{a}_to_{b}": functions[f"convert_{a}_{b}"] for a in ("f16", "bf16") for b in ("f32", "f64")}
    backs = {f"{b}_to_{a}": functions[f"convert_{b}_{a}"] for a in ("f16", "bf16") for b in ("f32", "f64")}
    to_pred = define("pred", 1, _to_pred, real=lambda x: x.differs(0.0), integer=lambda x: ~x.equals(0))
    held = define_exact("held_to_bf16", "uint16", ("float32",), conversion.held_to_bf16)
    return functions | halves | backs | {"pred": to_pred, "held_to_bf16": held}


SCOPE: dict[str, object] = {
    **{name: Cast(name) for name in SCALARS},
    **_elementary_functions(),
    **_arithmetic(),
    **_extrema_and_reductions(),
    **_bits_and_logic(),
    **_comparisons(),
    **_complex_parts(),
    **_conversions(),
    **memory_functions(),
    **word_functions(),
    **dict.fromkeys(LOOP_KINDS, range),
    "select": _select(),
    "reduce_precision": _reduce_precision("reduce_precision", "float32", "float64"),
    "reduce_precision_f16": _reduce_precision("reduce_precision_f16", "uint16"),
}

__all__ = ["SCOPE"]
