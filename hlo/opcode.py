"""The closed set of HLO opcodes. The value is the opcode's name in HLO text. Source: XLA's hlo_opcode.h."""

from __future__ import annotations

from enum import Enum


class Opcode(Enum):
    """An HLO operation; what each one needs and means stands in `hlo/ops/<family>.py`."""

    # elementwise, one operand
    ABS = "abs"
    ACOS = "acos"
    ACOSH = "acosh"
    ASIN = "asin"
    ASINH = "asinh"
    ATANH = "atanh"
    CBRT = "cbrt"
    CEIL = "ceil"
    COS = "cosine"
    COSH = "cosh"
    ERF = "erf"
    EXP = "exponential"
    EXPM1 = "exponential-minus-one"
    FLOOR = "floor"
    IMAG = "imag"
    IS_FINITE = "is-finite"
    LOG = "log"
    LOG1P = "log-plus-one"
    LOGISTIC = "logistic"
    NEGATE = "negate"
    NOT = "not"
    POPULATION_COUNT = "popcnt"
    COUNT_LEADING_ZEROS = "count-leading-zeros"
    REAL = "real"
    ROUND_NEAREST_AFZ = "round-nearest-afz"
    ROUND_NEAREST_EVEN = "round-nearest-even"
    RSQRT = "rsqrt"
    SIGN = "sign"
    SIN = "sine"
    SINH = "sinh"
    SQRT = "sqrt"
    TAN = "tan"
    TANH = "tanh"
    # elementwise, two operands
    ADD = "add"
    AND = "and"
    ATAN2 = "atan2"
    COMPLEX = "complex"
    DIVIDE = "divide"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    MULTIPLY = "multiply"
    OR = "or"
    POWER = "power"
    REMAINDER = "remainder"
    SHIFT_LEFT = "shift-left"
    SHIFT_RIGHT_ARITHMETIC = "shift-right-arithmetic"
    SHIFT_RIGHT_LOGICAL = "shift-right-logical"
    SUBTRACT = "subtract"
    XOR = "xor"
    # elementwise, others
    COMPARE = "compare"
    SELECT = "select"
    CLAMP = "clamp"
    CONVERT = "convert"
    BITCAST_CONVERT = "bitcast-convert"
    # movement
    BITCAST = "bitcast"
    BROADCAST = "broadcast"
    CONCATENATE = "concatenate"
    COPY = "copy"
    DYNAMIC_SLICE = "dynamic-slice"
    DYNAMIC_UPDATE_SLICE = "dynamic-update-slice"
    IOTA = "iota"
    PAD = "pad"
    RESHAPE = "reshape"
    REVERSE = "reverse"
    SLICE = "slice"
    TRANSPOSE = "transpose"
    # reduce, dot, random
    REDUCE = "reduce"
    DOT = "dot"
    RNG_BIT_GENERATOR = "rng-bit-generator"
    # control flow and structure
    CALL = "call"
    CONDITIONAL = "conditional"
    CONSTANT = "constant"
    FUSION = "fusion"
    GET_TUPLE_ELEMENT = "get-tuple-element"
    OPT_BARRIER = "opt-barrier"
    PARAMETER = "parameter"
    TUPLE = "tuple"
    WHILE = "while"

    # Enum's own __hash__ hashes the member's name on every call; identity is enough and much faster.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name


OPCODE_NAMED: dict[str, Opcode] = {opcode.value: opcode for opcode in Opcode}
