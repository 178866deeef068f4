"""StableHLO's and CHLO's ops beside HLO's opcodes: the table from which both directions follow.

    _op(O.TRANSPOSE, renamed("permutation", "dimensions"))

says that `stablehlo.transpose` is the opcode TRANSPOSE, and that its attribute `permutation` is the field `dimensions`
of the opcode's attribute class. A field that no mapping of the row mentions is an attribute of the same name, in the
form that its type has: `array<i64: 0, 1>` for a tuple of integers, `3 : i64`, `true`, `#stablehlo<fft_type FFT>`.
Fields that hold computations are regions, in their order. An op without a row has a rule of its own in `reading_*.py`,
and an opcode without a row one in `writing_*.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..mlir.tree import Attribute
from ..opcode import Opcode
from ..ops import SPECS
from ..ops.declare import REQUIRED, declared
from ..ops.elementwise import ComparisonDirection, ComparisonType
from ..ops.linalg import TransposeKind
from ..ops.random import RandomAlgorithm, RandomDistribution
from ..shape import Shape
from ..support.records import dataclass
from .attribute_mappings import (
    AttributeMapping,
    channel,
    collective_unit,
    convolution_numbers,
    dot_algorithm,
    one,
    pairs,
    precision,
    record,
    renamed,
    replica_groups,
    window,
)
from .attributes import BOOLEAN, INTEGER32, INTEGER64, converter_of, words
from .record_fields import DOT, GATHER, SCATTER

O = Opcode  # noqa: E741


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the table."""

    name: str
    """With its dialect, e.g. `stablehlo.add`."""
    opcode: Opcode
    given: tuple[AttributeMapping, ...] = ()
    left_out: tuple[str, ...] = ()
    """Fields that StableHLO does not have: they keep their defaults."""


_MAPPINGS: dict[Op, tuple[AttributeMapping, ...]] = {}


def mappings_of(op: Op) -> tuple[AttributeMapping, ...]:
    """The mappings of an op: those of its row, and those that follow from the fields' types."""
    found = _MAPPINGS.get(op)
    if found is None:
        named = {name for mapping in op.given for name in mapping.fields}
        derived = [
            one(field.name, field.name, converter_of(field.type, field.name), field.default)
            for field in declared(SPECS[op.opcode].attributes)
            if field.name not in named and field.name not in op.left_out and not _is_region(field.type)
        ]
        found = _MAPPINGS[op] = (*op.given, *derived)
    return found


def regions_of(op: Op) -> tuple[str, ...]:
    """The fields that hold computations, in order."""
    fields = declared(SPECS[op.opcode].attributes)
    return tuple(field.name for field in fields if _is_region(field.type) and field.name not in op.left_out)


def _is_region(type_: Any) -> bool:
    return "HloComputation" in str(type_)


def fields_of(op: Op, attributes: Mapping[str, Attribute], operands: Sequence[Shape]) -> dict[str, Any]:
    """The values of the fields, read from an operation's attributes. UnsupportedError for one that is missing, or is
    of another kind."""
    values: dict[str, Any] = {}
    for mapping in mappings_of(op):
        values.update(mapping.read(attributes, operands))
    return values


def attributes_of(op: Op, fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
    """The attributes of the operation, from an object of the opcode's attribute class. UnsupportedError for a field
    that StableHLO does not have and that is not its default."""
    for field in declared(type(fields)):
        if field.name in op.left_out and field.default is not REQUIRED and getattr(fields, field.name) != field.default:
            value = getattr(fields, field.name)
            raise UnsupportedError(f"{op.name} has no attribute for {field.name}={value!r} of {op.opcode.value}")
    found: dict[str, Attribute] = {}
    for mapping in mappings_of(op):
        found.update(mapping.write(fields, operands))
    return found


def _op(opcode: Opcode, *mappings: AttributeMapping, name: str = "", left_out: Sequence[str] = ()) -> Op:
    plain = f"stablehlo.{opcode.value.replace('-', '_')}"
    return Op(name or plain, opcode, mappings, tuple(left_out))


_UNARY = (
    *(O.ABS, O.CBRT, O.CEIL, O.COS, O.EXP, O.EXPM1, O.FLOOR, O.IMAG, O.IS_FINITE, O.LOG, O.LOG1P, O.LOGISTIC),
    *(O.NEGATE, O.NOT, O.POPULATION_COUNT, O.COUNT_LEADING_ZEROS, O.REAL, O.ROUND_NEAREST_AFZ, O.ROUND_NEAREST_EVEN),
    *(O.RSQRT, O.SIGN, O.SIN, O.SQRT, O.TAN, O.TANH),
)
_BINARY = (
    *(O.ADD, O.AND, O.ATAN2, O.COMPLEX, O.DIVIDE, O.MAXIMUM, O.MINIMUM, O.MULTIPLY, O.OR, O.POWER, O.REMAINDER),
    *(O.SHIFT_LEFT, O.SHIFT_RIGHT_ARITHMETIC, O.SHIFT_RIGHT_LOGICAL, O.SUBTRACT, O.XOR),
)
_PLAIN = (O.SELECT, O.CLAMP, O.CONVERT, O.BITCAST_CONVERT, O.DYNAMIC_UPDATE_SLICE, O.RESHAPE)
_CHLO = (O.ACOS, O.ACOSH, O.ASIN, O.ASINH, O.ATANH, O.COSH, O.ERF, O.MULHI, O.SINH)

_COMPARISON = (
    one("comparison_direction", "direction", words("comparison_direction", ComparisonDirection)),
    one("compare_type", "type", words("comparison_type", {**ComparisonType.__members__, "NOTYPE": None}), None),
)
_ALGORITHMS = {
    "DEFAULT": RandomAlgorithm.DEFAULT,
    "THREE_FRY": RandomAlgorithm.THREEFRY,
    "PHILOX": RandomAlgorithm.PHILOX,
}
_UNUSED = ("constrain_layout", "source_target_pairs", "slice_sizes")
"""Fields of the attributes that all collectives share."""
_NO_REGION = (*_UNUSED, "to_apply")
_GROUPS = (replica_groups(), channel())
_GLOBAL = collective_unit("use_global_device_ids")

OPS: tuple[Op, ...] = (
    *(_op(opcode) for opcode in (*_UNARY, *_BINARY, *_PLAIN)),
    *(_op(opcode, name=f"chlo.{opcode.value}") for opcode in _CHLO),
    _op(O.COMPARE, *_COMPARISON),
    _op(O.MAP),
    _op(O.REDUCE_PRECISION, *[renamed(name, converter=INTEGER32) for name in ("exponent_bits", "mantissa_bits")]),
    # movement
    _op(O.BROADCAST, renamed("broadcast_dimensions", "dimensions"), name="stablehlo.broadcast_in_dim"),
    _op(O.CONCATENATE),
    _op(O.DYNAMIC_SLICE, renamed("slice_sizes", "dynamic_slice_sizes")),
    _op(O.IOTA),
    _op(
        O.PAD, renamed("edge_padding_low", "low"), renamed("edge_padding_high", "high"),
        renamed("interior_padding", "interior"),
    ),
    _op(O.REVERSE),
    _op(O.SLICE),
    _op(O.TRANSPOSE, renamed("permutation", "dimensions")),
    # indexing and sorting
    _op(O.GATHER, record("dimension_numbers", "gather", dict(zip(GATHER, GATHER)))),
    _op(O.SCATTER, record("scatter_dimension_numbers", "scatter", dict(zip(SCATTER, SCATTER)))),
    _op(O.SORT, one("dimension", "dimension", INTEGER64, -1)),
    _op(O.TOPK, one("is_stable", "is_stable", BOOLEAN, True, is_new=True), name="chlo.top_k", left_out=("largest",)),
    # reductions, windows, products
    _op(O.REDUCE),
    _op(O.REDUCE_WINDOW, window("window_dimensions", "window_strides", "base_dilations", "window_dilations")),
    _op(O.SELECT_AND_SCATTER, window("window_dimensions", "window_strides", "", "")),
    _op(
        O.DOT, record("dot_dimension_numbers", "dot", DOT), precision(), dot_algorithm(),
        name="stablehlo.dot_general",
    ),
    _op(
        O.CONVOLUTION, window("", "window_strides", "lhs_dilation", "rhs_dilation"), convolution_numbers(),
        precision(),
    ),
    # normalisation, linear algebra, random numbers
    *(_op(opcode) for opcode in (O.BATCH_NORM_GRAD, O.BATCH_NORM_INFERENCE, O.BATCH_NORM_TRAINING, O.CHOLESKY, O.FFT)),
    _op(O.TRIANGULAR_SOLVE, one("transpose_a", "transpose_a", words("transpose", TransposeKind))),
    _op(O.RNG_BIT_GENERATOR, one("rng_algorithm", "algorithm", words("rng_algorithm", _ALGORITHMS))),
    # structure
    _op(O.GET_DIMENSION_SIZE),
    _op(O.SET_DIMENSION_SIZE),
    # collectives
    _op(O.PARTITION_ID),
    _op(O.REPLICA_ID),
    _op(O.ALL_GATHER, *_GROUPS, _GLOBAL, renamed("all_gather_dim", "dimension", INTEGER64), left_out=_NO_REGION),
    _op(O.ALL_REDUCE, *_GROUPS, _GLOBAL, left_out=("dimension", *_UNUSED)),
    _op(O.REDUCE_SCATTER, *_GROUPS, _GLOBAL, renamed("scatter_dimension", "dimension", INTEGER64), left_out=_UNUSED),
    _op(
        O.COLLECTIVE_BROADCAST, *_GROUPS, collective_unit("has_dynamic_root"),
        left_out=("use_global_device_ids", "dimension", *_NO_REGION),
    ),
    _op(
        O.COLLECTIVE_PERMUTE, pairs(), channel(),
        left_out=(
            "replica_groups", "use_global_device_ids", "dimension", "constrain_layout", "slice_sizes", "to_apply",
        ),
    ),
)  # fmt: skip

RNG_DISTRIBUTION = words(
    "rng_distribution", {"UNIFORM": RandomDistribution.UNIFORM, "NORMAL": RandomDistribution.NORMAL}
)

OP_NAMED: dict[str, Op] = {op.name: op for op in OPS}
OP_OF: dict[Opcode, Op] = {op.opcode: op for op in OPS}
