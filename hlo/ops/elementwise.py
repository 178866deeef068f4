"""Ops that compute each result element from the operand elements at the same index.

Source: XLA's ShapeInference::InferUnaryOpShape, InferBinaryOpShape, InferTernaryOpShape, InferConvertShape and
InferBitcastConvertShape. HLO has no implicit broadcast: operands have equal dimensions, except where a rule says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codec import Codec
from ..text.codecs import COMPUTATION, INTEGER, INTEGER_LIST, enumeration
from ..text.scanner import Scanner
from .checks import (
    ANY,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PRED,
    SIGNED_INTEGERS,
    array_of,
    fail,
    in_default_layout,
    names,
    require_declared,
    require_signature,
)
from .declare import Attr, Dims, Of
from .spec import OpSpec, ShapeRule, Trait


class ComparisonDirection(Enum):
    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


class ComparisonType(Enum):
    """How compare orders values; TOTALORDER puts -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. Integers have only one
    order."""

    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


def _read_order(scanner: Scanner) -> ComparisonType | None:
    """XLA's newer way of saying it: `order=TOTAL` is TOTALORDER, `order=PARTIAL` the default order."""
    for word, meaning in (("TOTAL", ComparisonType.TOTALORDER), ("PARTIAL", None)):
        if scanner.accept_word(word):
            return meaning
    raise scanner.expected("one of TOTAL, PARTIAL")


_ORDER: Codec[ComparisonType | None] = Codec(_read_order, lambda value, writing: "TOTAL" if value else "PARTIAL")


@dataclass(frozen=True, slots=True)
class CompareAttributes(Attributes):
    direction: Annotated[ComparisonDirection, Attr(enumeration(ComparisonDirection))]
    type: Annotated[ComparisonType | None, Attr(enumeration(ComparisonType), also=("order", _ORDER))] = None
    """None: the default for the operands' element type, as in XLA."""

    def as_read(self, operands: Sequence[Shape]) -> CompareAttributes:
        """XLA takes TOTALORDER for integers too, which have no other order."""
        element_type = operands[0].element_type if operands else None
        has_one_order = element_type in INTEGERS | PRED
        return replace(self, type=None) if has_one_order and self.type is ComparisonType.TOTALORDER else self


@dataclass(frozen=True, slots=True)
class MapAttributes(Attributes):
    """`to_apply` takes one scalar for each operand. `dimensions` are all dimensions, in order."""

    dimensions: Annotated[
        tuple[int, ...],
        Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0, is_set=True), absent=(), always=True),
    ]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION)]


@dataclass(frozen=True, slots=True)
class ReducePrecisionAttributes(Attributes):
    exponent_bits: Annotated[int, Attr(INTEGER)]
    mantissa_bits: Annotated[int, Attr(INTEGER)]


TypeMap = Callable[[ElementType], ElementType]
_COMPLEX_OF = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}
_FAMILY = "elementwise"


def _same(element_type: ElementType) -> ElementType:
    return element_type


def _real(element_type: ElementType) -> ElementType:
    return element_type.real


def _pred(element_type: ElementType) -> ElementType:
    return ElementType.PRED


def _complex(element_type: ElementType) -> ElementType:
    return _COMPLEX_OF[element_type]


def _not_admitted(what: str, operand: Shape, admitted: frozenset[ElementType]) -> str:
    given = operand if operand.element_type is None else operand.element_type.dtype
    return f"{what} does not accept dtype {given}: it accepts {names(admitted)}"


def _elementwise_rule(opcode: Opcode, admitted: frozenset[ElementType], result: TypeMap) -> ShapeRule:
    """The rule of an op on arrays of one type.

    c1: operands are arrays of an element type that the op admits; c2: they have one element type; c3: and the same
    dimensions.
    """
    keeps_type = result is _same

    def rule(operands: Sequence[Shape], attributes: Any, declared: Shape | None) -> Shape:
        first = operands[0]
        for operand in operands:
            if operand.element_type not in admitted:
                fail(opcode, operands, _not_admitted(opcode.value, operand, admitted), 1)
            if operand.element_type is not first.element_type:
                fail(opcode, operands, "operands must have one element type", 2)
            if operand.dimensions != first.dimensions:
                fail(opcode, operands, "operands must have the same dimensions (HLO does not broadcast)", 3)
        if keeps_type:
            return in_default_layout(first)
        return array_of(result(first.element), first.dimensions)

    rule.__doc__ = _elementwise_rule.__doc__
    return rule


_COMPARISON_TYPES = {
    ComparisonType.FLOAT: FLOATS | COMPLEX,
    ComparisonType.TOTALORDER: FLOATS,
    ComparisonType.SIGNED: SIGNED_INTEGERS,
    ComparisonType.UNSIGNED: (INTEGERS - SIGNED_INTEGERS) | PRED,
}


def _compare_rule(operands: Sequence[Shape], attributes: CompareAttributes, declared: Shape | None) -> Shape:
    """c1, c2, c3: as for all elementwise ops; c4: complex numbers have no order: only EQ and NE; c5: the comparison
    type fits the element type (FLOAT floats and complex, TOTALORDER floats, SIGNED signed integers, UNSIGNED the
    unsigned ones and pred)."""
    result = _compare_types(operands, attributes, declared)
    element_type = operands[0].element
    if element_type.is_complex and attributes.direction not in (ComparisonDirection.EQ, ComparisonDirection.NE):
        fail(Opcode.COMPARE, operands, _no_order(attributes.direction, element_type), 4)
    if attributes.type is not None and element_type not in _COMPARISON_TYPES[attributes.type]:
        fail(Opcode.COMPARE, operands, f"comparison type {attributes.type.value} does not fit {element_type.value}", 5)
    return result


_compare_types = _elementwise_rule(Opcode.COMPARE, ANY, _pred)


def _select_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """c1: the first operand is pred; c2: the branches are arrays of one type; c3: the first operand is a scalar or
    has the branches' dimensions."""
    pred, on_true, on_false = operands
    if pred.element_type is not ElementType.PRED:
        fail(Opcode.SELECT, operands, "the first operand must be pred", 1)
    if on_true.element_type is None or not on_true.compatible(on_false):
        fail(Opcode.SELECT, operands, "the second and third operand must be arrays of one type", 2)
    if pred.dimensions and pred.dimensions != on_true.dimensions:
        fail(Opcode.SELECT, operands, "the first operand must be a scalar or have the others' dimensions", 3)
    return in_default_layout(on_true)


def _no_order(direction: ComparisonDirection, element_type: ElementType) -> str:
    return f"{direction.value.lower()} does not accept dtype {element_type.dtype}: complex numbers have no order"


def _clamp_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Operands: lower bound, value, upper bound. c1: the element type is not complex; c2: all have one
    element type; c3: each bound is a scalar or has the value's dimensions."""
    low, value, high = operands
    if value.element_type not in ANY - COMPLEX:
        fail(Opcode.CLAMP, operands, _not_admitted("clamp", value, ANY - COMPLEX), 1)
    for bound in (low, high):
        if bound.element_type is not value.element_type:
            fail(Opcode.CLAMP, operands, "operands must have one element type", 2)
        if bound.dimensions and bound.dimensions != value.dimensions:
            fail(Opcode.CLAMP, operands, "a bound must be a scalar or have the value's dimensions", 3)
    return in_default_layout(value)


def _convert_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Between any two types. c1: operand and declared result are arrays; c2: the dimensions are equal."""
    declared = require_declared(Opcode.CONVERT, operands, declared, 1)
    operand = operands[0]
    if operand.element_type is None or declared.element_type is None:
        fail(Opcode.CONVERT, operands, "operand and result must be arrays", 1)
    if operand.dimensions != declared.dimensions:
        fail(Opcode.CONVERT, operands, f"the result {declared} must have the operand's dimensions", 2)
    return declared


def _bitcast_convert_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Reinterpret bits. From wide to narrow a minor dimension is added (f64[3] -> u32[3,2], s8[3] -> s4[3,2]), from
    narrow to wide it is removed (u8[3,4] -> f32[3]); the least significant part is element 0.

    c1: operand and declared result are arrays; c2: pred becomes only pred, and a complex type only itself; c3: the
    dimensions are those described.
    """
    declared = require_declared(Opcode.BITCAST_CONVERT, operands, declared, 1)
    operand = operands[0]
    if operand.element_type is None or declared.element_type is None:
        fail(Opcode.BITCAST_CONVERT, operands, "operand and result must be arrays", 1)
    source, target = operand.element_type, declared.element_type
    for element_type in (source, target):
        if element_type in PRED | COMPLEX and source is not target:
            fail(Opcode.BITCAST_CONVERT, operands, f"{source.value} cannot be reinterpreted as {target.value}", 2)
    expected: tuple[int, ...] | None = operand.dimensions
    if source.bit_width > target.bit_width:
        expected = (*operand.dimensions, source.bit_width // target.bit_width)
    elif source.bit_width < target.bit_width:
        minor = operand.dimensions[-1:]
        expected = operand.dimensions[:-1] if minor == (target.bit_width // source.bit_width,) else None
    if declared.dimensions != expected:
        fail(Opcode.BITCAST_CONVERT, operands, f"the bits do not have the shape of {declared}", 3)
    return declared


def _map_rule(operands: Sequence[Shape], attributes: MapAttributes, declared: Shape | None) -> Shape:
    """The computation applied to the scalars at each index.

    c1: there is an operand, all are arrays; c2: they have the same dimensions; c3: `dimensions` are all, in order;
    c4: the computation takes one scalar for each operand, of its element type; c5: it returns a scalar.
    """
    if not operands or any(o.element_type is None for o in operands):
        fail(Opcode.MAP, operands, "there must be at least one operand, and all must be arrays", 1)
    first = operands[0]
    if any(o.dimensions != first.dimensions for o in operands):
        fail(Opcode.MAP, operands, "operands must have the same dimensions", 2)
    if attributes.dimensions != tuple(range(first.rank)):
        fail(Opcode.MAP, operands, f"dimensions {list(attributes.dimensions)} must be all of them, in order", 3)
    computation = attributes.to_apply
    require_signature(Opcode.MAP, operands, computation, [array_of(o.element, ()) for o in operands], 4)
    result = computation.root.shape
    if result.element_type is None or result.dimensions:
        fail(Opcode.MAP, operands, f"computation {computation.name} returns {result}, not a scalar", 5)
    return array_of(result.element_type, first.dimensions)


def _reduce_precision_rule(
    operands: Sequence[Shape], attributes: ReducePrecisionAttributes, declared: Shape | None
) -> Shape:
    """c1: the element type is a float; c2: there is at least one exponent bit; c3: mantissa bits are not negative."""
    operand = operands[0]
    if operand.element_type not in FLOATS:
        fail(Opcode.REDUCE_PRECISION, operands, f"it accepts {names(FLOATS)}", 1)
    if attributes.exponent_bits < 1:
        fail(Opcode.REDUCE_PRECISION, operands, f"exponent_bits {attributes.exponent_bits} must be positive", 2)
    if attributes.mantissa_bits < 0:
        fail(Opcode.REDUCE_PRECISION, operands, f"mantissa_bits {attributes.mantissa_bits} must not be negative", 3)
    return in_default_layout(operand)


_ROUNDED_STOCHASTICALLY = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})


def _stochastic_convert_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Operands: numbers, and random bits that decide whether they are rounded up or down.

    c1: the first is of f16, bf16, f32 or f64; c2: the second has the unsigned integer type of that width; c3: they
    have the same dimensions; c4: the result is declared, with a signed integer type (XLA allows no other).
    """
    operand, random = operands
    opcode = Opcode.STOCHASTIC_CONVERT
    if operand.element_type not in _ROUNDED_STOCHASTICALLY:
        fail(opcode, operands, f"it accepts {names(_ROUNDED_STOCHASTICALLY)}", 1)
    wanted = f"u{operand.element.bit_width}"
    if random.element_type is None or random.element.value != wanted:
        fail(opcode, operands, f"the random bits must be of type {wanted}", 2)
    if operand.dimensions != random.dimensions:
        fail(opcode, operands, "operands must have the same dimensions", 3)
    declared = require_declared(opcode, operands, declared, 4)
    if declared.element_type not in SIGNED_INTEGERS:
        fail(opcode, operands, f"the result {declared} must be of a signed integer type", 4)
    return array_of(declared.element, operand.dimensions)


def _unary(
    admitted: frozenset[ElementType], *opcodes: Opcode, result: TypeMap = _same, traits: Trait = Trait.NONE
) -> tuple[OpSpec, ...]:
    return tuple(
        OpSpec(o, _FAMILY, 1, Attributes, _elementwise_rule(o, admitted, result), Trait.ELEMENTWISE | traits)
        for o in opcodes
    )


def _binary(
    admitted: frozenset[ElementType], *opcodes: Opcode, result: TypeMap = _same, traits: Trait = Trait.NONE
) -> tuple[OpSpec, ...]:
    return tuple(
        OpSpec(o, _FAMILY, 2, Attributes, _elementwise_rule(o, admitted, result), Trait.ELEMENTWISE | traits)
        for o in opcodes
    )


_SIGNED = SIGNED_INTEGERS | FLOATS | COMPLEX
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    # one operand
    *_unary(_SIGNED, _O.ABS, result=_real),
    *_unary(_SIGNED, _O.SIGN),
    *_unary(NUMBERS, _O.NEGATE),
    *_unary(INTEGERS | PRED, _O.NOT),
    *_unary(INTEGERS, _O.POPULATION_COUNT, _O.COUNT_LEADING_ZEROS),
    *_unary(FLOATS, _O.CEIL, _O.FLOOR, _O.ROUND_NEAREST_AFZ, _O.ROUND_NEAREST_EVEN),
    *_unary(FLOATS, _O.IS_FINITE, result=_pred),
    *_unary(FLOATS | COMPLEX, _O.REAL, _O.IMAG, result=_real),
    *_unary(FLOATS, _O.CBRT, _O.ERF, traits=Trait.EXPENSIVE),
    *_unary(
        FLOATS | COMPLEX,
        *(_O.ACOS, _O.ACOSH, _O.ASIN, _O.ASINH, _O.ATANH, _O.COS, _O.COSH, _O.EXP, _O.EXPM1, _O.LOG, _O.LOG1P),
        *(_O.LOGISTIC, _O.RSQRT, _O.SIN, _O.SINH, _O.SQRT, _O.TAN, _O.TANH),
        traits=Trait.EXPENSIVE,
    ),
    # two operands
    *_binary(ANY, _O.ADD, _O.MULTIPLY, traits=Trait.COMMUTATIVE),
    *_binary(ANY, _O.MAXIMUM, _O.MINIMUM, traits=Trait.COMMUTATIVE),
    *_binary(INTEGERS | PRED, _O.AND, _O.OR, _O.XOR, traits=Trait.COMMUTATIVE),
    *_binary(NUMBERS, _O.SUBTRACT),
    *_binary(NUMBERS, _O.DIVIDE, _O.POWER, traits=Trait.EXPENSIVE),
    *_binary(INTEGERS | FLOATS, _O.REMAINDER, traits=Trait.EXPENSIVE),
    *_binary(FLOATS | COMPLEX, _O.ATAN2, traits=Trait.EXPENSIVE),
    *_binary(INTEGERS, _O.MULHI, traits=Trait.COMMUTATIVE),
    *_binary(INTEGERS, _O.SHIFT_LEFT, _O.SHIFT_RIGHT_ARITHMETIC, _O.SHIFT_RIGHT_LOGICAL),
    *_binary(frozenset(_COMPLEX_OF), _O.COMPLEX, result=_complex),
    # others
    OpSpec(_O.COMPARE, _FAMILY, 2, CompareAttributes, _compare_rule, Trait.ELEMENTWISE),
    OpSpec(_O.SELECT, _FAMILY, 3, Attributes, _select_rule, Trait.ELEMENTWISE),
    OpSpec(_O.CLAMP, _FAMILY, 3, Attributes, _clamp_rule, Trait.ELEMENTWISE),
    OpSpec(_O.CONVERT, _FAMILY, 1, Attributes, _convert_rule, Trait.ELEMENTWISE),
    OpSpec(_O.BITCAST_CONVERT, _FAMILY, 1, Attributes, _bitcast_convert_rule),
    OpSpec(_O.MAP, _FAMILY, None, MapAttributes, _map_rule, Trait.ELEMENTWISE | Trait.APPLIES),
    OpSpec(_O.REDUCE_PRECISION, _FAMILY, 1, ReducePrecisionAttributes, _reduce_precision_rule, Trait.ELEMENTWISE),
    OpSpec(_O.STOCHASTIC_CONVERT, _FAMILY, 2, Attributes, _stochastic_convert_rule, Trait.ELEMENTWISE),
)
