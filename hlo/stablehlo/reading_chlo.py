"""Reading CHLO: operations that broadcast, and functions that HLO has no opcode for.

Source: StableHLO's passes chlo-legalize-to-stablehlo and chlo-legalize-to-high-level-math. Functions such as lgamma are
those of the library (`hloom/lax/`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..instruction import HloInstruction
from ..library import part_above
from ..mlir.tree import Float, Integer, Operation, Record
from ..opcode import Opcode
from ..ops.control_flow import CallAttributes
from ..ops.dot import DotAttributes, RaggedDotAttributes
from ..ops.elementwise import ComparisonDirection
from ..shape import Shape
from .attribute_mappings import precision
from .attributes import read_float, read_integers
from .instruction_builders import compare, splat
from .ops import OP_NAMED
from .reading_arrays import broadcast
from .record_fields import DOT
from .scope import Rule, Scope
from .table_rules import by_table, made

Results = Sequence[HloInstruction]


# ---- operations that broadcast


def _broadcasting(name: str) -> Rule:
    """The rule of `chlo.broadcast_NAME`: NAME on operands that are broadcast to one shape."""

    def rule(scope: Scope, operation: Operation) -> Results:
        operands = _aligned(scope, operation)
        attributes = {key: value for key, value in operation.attributes.items() if key != "broadcast_dimensions"}
        for dialect in ("stablehlo", "chlo"):
            full = f"{dialect}.{name}"
            plain = Operation(full, [], operation.results, attributes)
            if full in OP_NAMED:
                return by_table(scope, plain, OP_NAMED[full], operands)
        return _applied(scope, plain, operands)

    return rule


def _aligned(scope: Scope, operation: Operation) -> list[HloInstruction]:
    """The operands, broadcast as in NumPy; `broadcast_dimensions` says where the dimensions of the smaller one are."""
    operands = scope.operands(operation)
    rank = max(o.shape.rank for o in operands)
    given = operation.attributes.get("broadcast_dimensions")
    places = []
    for o in operands:
        is_smaller = o.shape.rank < rank
        default = range(rank - o.shape.rank, rank)
        places.append(read_integers(given) if given is not None and is_smaller else tuple(default))
    sizes = [1] * rank
    for o, place in zip(operands, places, strict=True):
        if len(place) != o.shape.rank or not all(0 <= d < rank for d in place):
            raise UnsupportedError(f"broadcast_dimensions = {list(place)} do not fit {o.shape} and rank {rank}")
        for d, size in zip(place, o.shape.dimensions, strict=True):
            if size != 1:
                sizes[d] = size
    return [
        o if o.shape.dimensions == tuple(sizes) else broadcast(scope, o, place, sizes)
        for o, place in zip(operands, places, strict=True)
    ]


# ---- functions


def _applied(scope: Scope, operation: Operation, operands: Sequence[HloInstruction]) -> Results:
    return _FUNCTIONS[operation.name](scope, *operands)


def _function(scope: Scope, operation: Operation) -> Results:
    return _applied(scope, operation, scope.operands(operation))


def _of_library(name: str) -> Callable[..., Results]:
    """A call of the library's function, traced for these operands."""

    def rule(scope: Scope, *operands: HloInstruction) -> Results:
        computation = part_above("special").computation_of(name, [o.shape for o in operands])
        return [scope.op(Opcode.CALL, operands, CallAttributes(computation))]

    return rule


def _atan(scope: Scope, x: HloInstruction) -> Results:
    return [scope.op(Opcode.ATAN2, (x, splat(scope, 1, x.shape)))]


def _conj(scope: Scope, x: HloInstruction) -> Results:
    if not x.shape.element.is_complex:
        return [x]
    imaginary = scope.op(Opcode.NEGATE, (scope.op(Opcode.IMAG, (x,)),))
    return [scope.op(Opcode.COMPLEX, (scope.op(Opcode.REAL, (x,)), imaginary))]


def _square(scope: Scope, x: HloInstruction) -> Results:
    """Of a complex number as (a + b)(a - b) + 2abi, which does not cancel. Source: CHLO's legalisation."""
    if not x.shape.element.is_complex:
        return [scope.op(Opcode.MULTIPLY, (x, x))]
    a, b = scope.op(Opcode.REAL, (x,)), scope.op(Opcode.IMAG, (x,))
    both = scope.op(Opcode.ADD, (a, b)), scope.op(Opcode.SUBTRACT, (a, b))
    real = scope.op(Opcode.MULTIPLY, both)
    # Where |a| = |b|, also if both are infinite, the real part is 0.
    same = compare(scope, ComparisonDirection.EQ, scope.op(Opcode.ABS, (a,)), scope.op(Opcode.ABS, (b,)))
    real = scope.op(Opcode.SELECT, (same, splat(scope, 0, real.shape), real))
    product = scope.op(Opcode.MULTIPLY, (a, b))
    return [scope.op(Opcode.COMPLEX, (real, scope.op(Opcode.ADD, (product, product))))]


def _equals(value: float, of_size: bool) -> Callable[..., Results]:
    def rule(scope: Scope, x: HloInstruction) -> Results:
        size = scope.op(Opcode.ABS, (x,)) if of_size else x
        return [compare(scope, ComparisonDirection.EQ, size, splat(scope, value, x.shape))]

    return rule


_FUNCTIONS: dict[str, Callable[..., Results]] = {
    "chlo.atan": _atan,
    "chlo.conj": _conj,
    "chlo.square": _square,
    "chlo.is_inf": _equals(np.inf, True),
    "chlo.is_pos_inf": _equals(np.inf, False),
    "chlo.is_neg_inf": _equals(-np.inf, False),
    "chlo.bessel_i1e": _of_library("bessel_i1e"),
    "chlo.digamma": _of_library("digamma"),
    "chlo.erf_inv": _of_library("erf_inv"),
    "chlo.erfc": _of_library("erfc"),
    "chlo.lgamma": _of_library("lgamma"),
    "chlo.next_after": _of_library("nextafter"),
    "chlo.polygamma": _of_library("polygamma"),
    "chlo.zeta": _of_library("zeta"),
}

# ---- others


def _constant_like(scope: Scope, operation: Operation) -> Results:
    """The value in an array like the operand."""
    (operand,) = scope.operands(operation)
    value = operation.attributes.get("value")
    match value:
        case Float():
            return [splat(scope, read_float(value), Shape.array(value.type, operand.shape.dimensions))]
        case Integer() if isinstance(value.type, ElementType):
            return [splat(scope, value.value, Shape.array(value.type, operand.shape.dimensions))]
        case bool():
            return [splat(scope, value, Shape.array(ElementType.PRED, operand.shape.dimensions))]
    raise UnsupportedError(f"a constant of the value {value!r} is not supported")


def _ragged_dot(scope: Scope, operation: Operation) -> Results:
    numbers = operation.attributes.get("ragged_dot_dimension_numbers")
    if not isinstance(numbers, Record):
        raise UnsupportedError("the attribute ragged_dot_dimension_numbers is missing")
    fields: dict[str, Any] = {field: read_integers(numbers.fields.get(key, ())) for key, field in DOT.items()}
    asked = precision("chlo").read(operation.attributes, ())
    attributes = RaggedDotAttributes(
        DotAttributes(**fields, **asked), read_integers(numbers.fields.get("lhs_ragged_dimensions", ())),
        read_integers(numbers.fields.get("rhs_group_dimensions", ())),
    )  # fmt: skip
    return made(scope, operation, Opcode.RAGGED_DOT, scope.operands(operation), attributes)


_BROADCASTING = (
    *("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or"),
    *("polygamma", "power", "remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
    *("subtract", "xor", "zeta"),
)

RULES: dict[str, Rule] = {
    **{f"chlo.broadcast_{name}": _broadcasting(name) for name in _BROADCASTING},
    **dict.fromkeys(_FUNCTIONS, _function),
    "chlo.constant_like": _constant_like,
    "chlo.tan": lambda scope, op: by_table(scope, op, OP_NAMED["stablehlo.tan"], scope.operands(op)),
    "chlo.ragged_dot": _ragged_dot,
}
