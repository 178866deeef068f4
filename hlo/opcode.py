"""The closed set of HLO opcodes. The value is the opcode's name in HLO text. Source: XLA's hlo_opcode.h."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar


class Opcode(Enum):
    """An HLO operation; `hlo/ops/<family>.py` declares each one."""

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
    MULHI = "mulhi"
    MULTIPLY = "multiply"
    OR = "or"
    POWER = "power"
    STOCHASTIC_CONVERT = "stochastic-convert"
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
    MAP = "map"
    REDUCE_PRECISION = "reduce-precision"
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
    # indexing and sorting
    GATHER = "gather"
    SCATTER = "scatter"
    SORT = "sort"
    TOPK = "topk"
    # reduce, windows, dot, convolution
    REDUCE = "reduce"
    REDUCE_WINDOW = "reduce-window"
    SELECT_AND_SCATTER = "select-and-scatter"
    SCAN = "scan"
    DOT = "dot"
    RAGGED_DOT = "ragged-dot"
    SCALED_DOT = "scaled-dot"
    CONVOLUTION = "convolution"
    # normalisation
    BATCH_NORM_GRAD = "batch-norm-grad"
    BATCH_NORM_INFERENCE = "batch-norm-inference"
    BATCH_NORM_TRAINING = "batch-norm-training"
    # linear algebra, Fourier transforms
    CHOLESKY = "cholesky"
    FFT = "fft"
    TRIANGULAR_SOLVE = "triangular-solve"
    # random
    RNG = "rng"
    RNG_BIT_GENERATOR = "rng-bit-generator"
    RNG_GET_AND_UPDATE_STATE = "rng-get-and-update-state"
    # control flow and structure
    CALL = "call"
    CONDITIONAL = "conditional"
    CONSTANT = "constant"
    CUSTOM_CALL = "custom-call"
    DOMAIN = "domain"
    DYNAMIC_RESHAPE = "dynamic-reshape"
    FUSION = "fusion"
    GET_DIMENSION_SIZE = "get-dimension-size"
    GET_TUPLE_ELEMENT = "get-tuple-element"
    OPT_BARRIER = "opt-barrier"
    PARAMETER = "parameter"
    SET_DIMENSION_SIZE = "set-dimension-size"
    TUPLE = "tuple"
    WHILE = "while"
    # tokens, asynchronous pairs, queues
    ADD_DEPENDENCY = "add-dependency"
    AFTER_ALL = "after-all"
    ASYNC_DONE = "async-done"
    ASYNC_START = "async-start"
    ASYNC_UPDATE = "async-update"
    COPY_DONE = "copy-done"
    COPY_START = "copy-start"
    INFEED = "infeed"
    OUTFEED = "outfeed"
    RECV = "recv"
    RECV_DONE = "recv-done"
    SEND = "send"
    SEND_DONE = "send-done"
    # replicas
    ALL_GATHER = "all-gather"
    ALL_GATHER_DONE = "all-gather-done"
    ALL_GATHER_START = "all-gather-start"
    ALL_REDUCE = "all-reduce"
    ALL_REDUCE_DONE = "all-reduce-done"
    ALL_REDUCE_START = "all-reduce-start"
    ALL_TO_ALL = "all-to-all"
    COLLECTIVE_BROADCAST = "collective-broadcast"
    COLLECTIVE_PERMUTE = "collective-permute"
    COLLECTIVE_PERMUTE_DONE = "collective-permute-done"
    COLLECTIVE_PERMUTE_START = "collective-permute-start"
    PARTITION_ID = "partition-id"
    RAGGED_ALL_TO_ALL = "ragged-all-to-all"
    REDUCE_SCATTER = "reduce-scatter"
    REPLICA_ID = "replica-id"

    # Enum's own __hash__ hashes the member's name on every call; identity is enough and much faster.
    __hash__: ClassVar[Callable[[object], int]] = object.__hash__
    if not TYPE_CHECKING:  # Enum's own property calls functions of Python
        value = property(attrgetter("_value_"))

    def __repr__(self) -> str:
        return self.name


OPCODE_NAMED: dict[str, Opcode] = {opcode.value: opcode for opcode in Opcode}
