"""The operations of VHLO, as a table: attributes, their defaults, and what the versions changed.

VHLO stores every attribute, also one that has its default, and numbers instead of structures: `window_strides` is a
tensor, and `dimension_numbers` of a gather are six attributes. The table says how each is in StableHLO. Source:
stablehlo/dialect/VhloOps.td (attributes and versions), stablehlo/transforms/StablehloLegalizeToVhlo.cpp (defaults, and
what is a structure), VhloToVersionPatterns.td (what an older version lacks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..mlir.tree import Dense, DenseArray, Enumerated, Integer, NoneType, Record, Tensor, TypeAttribute
from .record_fields import CONVOLUTION, DOT, DOT_ALGORITHM, GATHER, SCATTER

S64 = ElementType.S64
CURRENT = (1, 20)
"""The newest version that this table has."""


class Kind(Enum):
    """How StableHLO has an attribute, if it differs from VHLO."""

    PLAIN = "the same"
    INTEGERS = "array<i64: ...>, a tensor in VHLO"
    BOOLEANS = "array<i1: ...>, a tensor in VHLO"
    SYMBOL = "a symbol, a string in VHLO"
    SYMBOLS = "an array of symbols"
    FLAG = "there or not, a boolean in VHLO"
    CHANNEL = "a channel handle, its number in VHLO"
    API_VERSION = "an integer, an enumeration in VHLO"


@dataclass(frozen=True, slots=True)
class Default:
    """A value that StableHLO omits. `make` gets the number of windowed dimensions."""

    make: Callable[[int], Any]
    is_value: Callable[[Any], bool]


def constant(value: Any) -> Default:
    """A default that is always the same."""
    return Default(lambda rank: value, lambda found: type(found) is type(value) and found == value)


def filled(number: int, *inner: int, dtype: ElementType = S64) -> Default:
    """A tensor with `number` everywhere, with a row for each windowed dimension."""

    def make(rank: int) -> Dense:
        dimensions = (rank, *inner)
        return Dense(Tensor(dimensions, dtype), np.full(dimensions, number, dtype.dtype))

    return Default(make, lambda found: isinstance(found, Dense) and _is_filled(found, number))


def _is_filled(dense: Dense, number: int) -> bool:
    if not dense.array.size:
        return False
    if dense.is_splat:  # its dimensions may be those of no array that fits in memory
        return bool(dense.array[(0,) * dense.array.ndim] == number)
    return bool((dense.array == number).all())


def integer(value: int) -> Default:
    """An integer of any type."""
    return Default(lambda rank: Integer(value, S64), lambda found: isinstance(found, Integer) and found.value == value)


EMPTY_TENSOR = Default(
    lambda rank: Dense(Tensor((0,), S64), np.zeros(0, np.int64)),
    lambda found: (isinstance(found, Dense) and not found.array.size) or found == DenseArray(S64, ()),
)
_PRECISION = Enumerated("stablehlo", "precision", "DEFAULT")
_PRECISIONS = Default(
    lambda rank: (_PRECISION, _PRECISION),
    lambda found: isinstance(found, tuple) and all(each == _PRECISION for each in found),
)
_ACCURACY_MODE = Enumerated("stablehlo", "result_accuracy_mode", "DEFAULT")
ACCURACY = constant(Record("stablehlo", "result_accuracy", {"mode": _ACCURACY_MODE}))
_NO_CONFIG = Default(lambda rank: "", lambda found: found in ("", {}) and isinstance(found, (str, dict)))
_CONFIG = Default(lambda rank: "", lambda found: False)
"""MLIR adds this attribute where it is missing, so it is never omitted."""
NO_VALUE = TypeAttribute(NoneType())
"""The value in VHLO for each field of a dot's algorithm, if there is none."""
_ONES, ZERO_PAIRS, _FALSE = filled(1), filled(0, 2), constant(False)


@dataclass(frozen=True, slots=True)
class Plain:
    """One attribute, with the same name in both. An attribute without a default is always there."""

    name: str
    kind: Kind = Kind.PLAIN
    default: Default | None = None

    @property
    def stored(self) -> tuple[str, ...]:
        """The names in VHLO."""
        return ("channel_id",) if self.kind is Kind.CHANNEL else (self.name,)


@dataclass(frozen=True, slots=True)
class Group:
    """A record in StableHLO, whose fields are attributes in VHLO. `omits`: fields that are empty or 0 are missing in
    the record. `may_miss`: there may be no record, and then VHLO stores NO_VALUE for each field."""

    name: str
    kind: str
    lists: tuple[str, ...] = ()
    """Fields that are lists of numbers."""
    others: tuple[str, ...] = ()
    omits: bool = True
    may_miss: bool = False
    fields: tuple[str, ...] = ()
    """The names of the fields, where they are not those in VHLO."""

    @property
    def stored(self) -> tuple[str, ...]:
        """The names in VHLO."""
        return (*self.lists, *self.others)

    @property
    def items(self) -> list[tuple[str, str, bool]]:
        """Of each field: its name in VHLO and in the record, and whether it is a list."""
        names = self.fields or self.stored
        return [(stored, field, stored in self.lists) for stored, field in zip(self.stored, names)]


@dataclass(frozen=True, slots=True)
class Second:
    """The additions of the second version of an operation. The first version suffices if they have their defaults."""

    since: tuple[int, int]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Attributes that only the first version has, and that mean nothing."""
    one_operand: bool = False
    """The first version has one operand."""
    no_regions: bool = False
    """The first version has no regions."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operation."""

    attributes: tuple[Plain | Group, ...] = ()
    since: tuple[int, int] = (0, 9)
    second: Second | None = None
    rank_of: str = ""
    """The attribute in StableHLO that tells how many windowed dimensions there are."""


def _ints(*names: str, default: Default | None = None) -> tuple[Plain, ...]:
    return tuple(Plain(name, Kind.INTEGERS, default) for name in names)


def _plain(*names: str) -> tuple[Plain, ...]:
    return tuple(Plain(name) for name in names)


_CHANNEL = Plain("channel_handle", Kind.CHANNEL, integer(0))
_GLOBAL_IDS = Plain("use_global_device_ids", Kind.FLAG, _FALSE)
_DYNAMIC_ROOT = Plain("has_dynamic_root", Kind.FLAG, _FALSE)
_SORTED = Plain("indices_are_sorted", default=_FALSE)
_PRECISION_CONFIG = Plain("precision_config", default=_PRECISIONS)
_TRANSFER = (
    Group("channel_handle", "channel_handle", (), ("channel_id", "channel_type"), False, fields=("handle", "type")),
    Plain("is_host_transfer", default=_FALSE), Plain("source_target_pairs", default=EMPTY_TENSOR),
)  # fmt: skip
_GATHER = Group("dimension_numbers", "gather", GATHER[:-1], GATHER[-1:])
_SCATTER = Group("scatter_dimension_numbers", "scatter", SCATTER[:-1], SCATTER[-1:])
_CONV = Group(
    "dimension_numbers", "conv", tuple(name for name in CONVOLUTION if "spatial" in name),
    tuple(name for name in CONVOLUTION if "spatial" not in name), omits=False,
)  # fmt: skip
_DOT = Group("dot_dimension_numbers", "dot", tuple(DOT))
_ALGORITHM = Group("algorithm", "dot_algorithm", (), DOT_ALGORITHM, omits=False, may_miss=True)
_CONVOLUTION: tuple[Plain | Group, ...] = (
    *_ints("window_strides", "lhs_dilation", "rhs_dilation", default=_ONES),
    Plain("window_reversal", Kind.BOOLEANS, filled(0, dtype=ElementType.PRED)),
    _CONV, *_plain("feature_group_count", "batch_group_count"), _PRECISION_CONFIG,
)  # fmt: skip

OPS: dict[str, Op] = {
    **{
        name: Op()
        for name in (
            "abs", "add", "after_all", "and", "atan2", "bitcast_convert", "case", "ceil", "clamp",
            "count_leading_zeros", "complex", "convert", "create_token", "divide", "dynamic_pad", "dynamic_reshape",
            "dynamic_update_slice", "floor", "if", "imag", "is_finite", "maximum", "minimum", "multiply", "negate",
            "not", "optimization_barrier", "or", "partition_id", "popcnt", "power", "real_dynamic_slice", "real",
            "remainder", "replica_id", "reshape", "return", "round_nearest_even", "round_nearest_afz", "select",
            "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "subtract", "tuple",
            "uniform_dequantize", "uniform_quantize", "while", "xor",
        )
    },
    **{
        name: Op((Plain("result_accuracy", default=ACCURACY),), second=Second((1, 10), ("result_accuracy",)))
        for name in (
            "cbrt", "cosine", "exponential_minus_one", "log_plus_one", "logistic", "log", "rsqrt", "sine", "sqrt",
            "tanh",
        )
    },
    "exponential": Op((Plain("result_accuracy", default=ACCURACY),), second=Second((1, 9), ("result_accuracy",))),
    "tan": Op((Plain("result_accuracy", default=ACCURACY),), (1, 4), Second((1, 10), ("result_accuracy",))),
    "all_gather": Op(
        (*_plain("all_gather_dim", "replica_groups"), _CHANNEL, _GLOBAL_IDS), second=Second((1, 5), one_operand=True)
    ),
    "all_reduce": Op((*_plain("replica_groups"), _CHANNEL, _GLOBAL_IDS), second=Second((1, 5), one_operand=True)),
    "all_to_all": Op(
        (*_plain("split_dimension", "concat_dimension", "split_count", "replica_groups"), _CHANNEL),
        second=Second((1, 5), one_operand=True),
    ),
    "async_start": Op(since=(1, 15)),
    "async_done": Op(since=(1, 15)),
    "batch_norm_grad": Op(_plain("epsilon", "feature_index")),
    "batch_norm_inference": Op(_plain("epsilon", "feature_index")),
    "batch_norm_training": Op(_plain("epsilon", "feature_index")),
    "broadcast": Op(_ints("broadcast_sizes")),
    "broadcast_in_dim": Op(_ints("broadcast_dimensions")),
    "call": Op((Plain("callee", Kind.SYMBOL),)),
    "cholesky": Op((Plain("lower", default=_FALSE),)),
    "collective_broadcast": Op(
        (*_plain("replica_groups"), _CHANNEL, _DYNAMIC_ROOT), (0, 16),
        Second((1, 20), ("has_dynamic_root",), one_operand=True),
    ),
    "collective_permute": Op((*_plain("source_target_pairs"), _CHANNEL)),
    "collective_reduce": Op((*_plain("replica_groups"), _CHANNEL, _GLOBAL_IDS, _DYNAMIC_ROOT), (1, 19)),
    "compare": Op(
        (
            Plain("comparison_direction"),
            Plain("compare_type", default=constant(Enumerated("stablehlo", "comparison_type", "NOTYPE"))),
        )
    ),
    "composite": Op(
        (
            Plain("name"), Plain("composite_attributes", default=constant({})), Plain("decomposition", Kind.SYMBOL),
            Plain("version", default=integer(0)),
        ),
        (0, 19), Second((1, 14), no_regions=True),
    ),
    "concatenate": Op(_plain("dimension")),
    "constant": Op(_plain("value")),
    "convolution": Op((*_CONVOLUTION, Plain("padding", default=ZERO_PAIRS)), rank_of="dimension_numbers"),
    "cross-replica-sum": Op(_plain("replica_groups")),
    "custom_call": Op(
        (
            Plain("call_target_name"), Plain("has_side_effect", default=_FALSE),
            Plain("backend_config", default=_NO_CONFIG), Plain("api_version", Kind.API_VERSION, integer(1)),
            Plain("called_computations", Kind.SYMBOLS, constant(())), Plain("operand_layouts", default=constant(())),
            Plain("result_layouts", default=constant(())), Plain("output_operand_aliases", default=constant(())),
            Plain("result_tilings", default=constant(())),
        ),
        second=Second((1, 18), ("result_tilings",)),
    ),
    "dot": Op((_PRECISION_CONFIG,)),
    "dot_general": Op((_DOT, _PRECISION_CONFIG, _ALGORITHM), second=Second((1, 6), _ALGORITHM.stored)),
    "dynamic_broadcast_in_dim": Op(
        (
            *_ints("broadcast_dimensions"),
            *_ints("known_expanding_dimensions", "known_nonexpanding_dimensions", default=EMPTY_TENSOR),
        )
    ),
    "dynamic_conv": Op(_CONVOLUTION, second=Second((0, 20), removed=("padding",)), rank_of="dimension_numbers"),
    "dynamic_gather": Op(
        (_GATHER, _SORTED), second=Second((1, 1), ("operand_batching_dims", "start_indices_batching_dims"))
    ),
    "dynamic_iota": Op(_plain("iota_dimension")),
    "dynamic_slice": Op(_ints("slice_sizes")),
    "einsum": Op(_plain("einsum_config")),
    "fft": Op((*_plain("fft_type"), *_ints("fft_length"))),
    "func": Op(
        (
            *_plain("sym_name", "function_type"), Plain("sym_visibility", default=constant("")),
            Plain("arg_attrs", default=constant(())), Plain("res_attrs", default=constant(())),
        )
    ),
    "gather": Op(
        (_GATHER, _SORTED, *_ints("slice_sizes")),
        second=Second((1, 1), ("operand_batching_dims", "start_indices_batching_dims")),
    ),
    "get_dimension_size": Op(_plain("dimension")),
    "get_tuple_element": Op(_plain("index")),
    "infeed": Op((Plain("infeed_config", default=_CONFIG), Plain("layout", default=constant(())))),
    "iota": Op(_plain("iota_dimension")),
    "map": Op(_ints("dimensions")),
    "outfeed": Op((Plain("outfeed_config", default=_CONFIG),)),
    "pad": Op(_ints("edge_padding_low", "edge_padding_high", "interior_padding")),
    "recv": Op(_TRANSFER, second=Second((1, 12), ("source_target_pairs",))),
    "reduce": Op(_ints("dimensions")),
    "reduce_precision": Op(_plain("exponent_bits", "mantissa_bits")),
    "reduce_scatter": Op((*_plain("scatter_dimension", "replica_groups"), _CHANNEL, _GLOBAL_IDS)),
    "reduce_window": Op(
        (
            *_ints("window_dimensions"), *_ints("window_strides", "base_dilations", "window_dilations", default=_ONES),
            Plain("padding", default=ZERO_PAIRS),
        ),
        rank_of="window_dimensions",
    ),
    "reverse": Op(_ints("dimensions")),
    "rng": Op(_plain("rng_distribution")),
    "rng_bit_generator": Op(_plain("rng_algorithm")),
    "scatter": Op(
        (_SCATTER, _SORTED, Plain("unique_indices", default=_FALSE)),
        second=Second((1, 1), ("input_batching_dims", "scatter_indices_batching_dims")),
    ),
    "select_and_scatter": Op(
        (*_ints("window_dimensions"), *_ints("window_strides", default=_ONES), Plain("padding", default=ZERO_PAIRS)),
        rank_of="window_dimensions",
    ),
    "send": Op(_TRANSFER, second=Second((1, 12), ("source_target_pairs",))),
    "set_dimension_size": Op(_plain("dimension")),
    "slice": Op(_ints("start_indices", "limit_indices", "strides")),
    "sort": Op((Plain("dimension", default=integer(-1)), Plain("is_stable", default=_FALSE))),
    "torch_index_select": Op(_plain("dim", "batch_dims")),
    "transpose": Op(_ints("permutation")),
    "triangular_solve": Op(_plain("left_side", "lower", "unit_diagonal", "transpose_a")),
    "unary_einsum": Op(_plain("einsum_config")),
}  # fmt: skip


def attribute_names(name: str) -> tuple[str, ...]:
    """The attributes that `stablehlo.NAME` may have."""
    return tuple(each.name for each in OPS[name].attributes)


@lru_cache(maxsize=1024)
def split_name(name: str) -> tuple[str, int] | None:
    """`add` and 1 for `vhlo.add_v1`; None if the table has no such operation."""
    base, _, number = name.removeprefix("vhlo.").rpartition("_v")
    op = OPS.get(base)
    if op is None or number not in ("1", "2") or (number == "2" and op.second is None):
        return None
    return base, int(number)


@lru_cache(maxsize=1024)
def property_names(name: str) -> tuple[tuple[str, bool], ...] | None:
    """The attributes of `vhlo.add_v1` in alphabetical order; each must be there. None if the table has no such
    operation."""
    found = split_name(name)
    if found is None:
        return None
    op = OPS[found[0]]
    names = {stored for each in op.attributes for stored in each.stored}
    if found[1] == 1 and op.second is not None:
        names = (names - set(op.second.added)) | set(op.second.removed)
    return tuple((each, False) for each in sorted(names))
