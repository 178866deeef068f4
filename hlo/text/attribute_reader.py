"""How attributes are read: a form for each attribute class, with its keys. `attribute_writer.py` writes them.

Source: the attribute tables in XLA's HloParserImpl::CreateInstruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from ..attributes import (
    AsyncAttributes,
    BatchNormAttributes,
    BroadcastAttributes,
    CallAttributes,
    ChannelAttributes,
    CholeskyAttributes,
    CollectiveAttributes,
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    Composite,
    ConcatenateAttributes,
    ConditionalAttributes,
    ConstantAttributes,
    ConvolutionAttributes,
    CustomCallApiVersion,
    CustomCallAttributes,
    CustomCallSchedule,
    DimensionAttributes,
    DomainAttributes,
    DotAttributes,
    DynamicSliceAttributes,
    FftAttributes,
    FftType,
    FusionAttributes,
    FusionKind,
    GatherAttributes,
    GetTupleElementAttributes,
    InfeedAttributes,
    IotaAttributes,
    MapAttributes,
    OutfeedAttributes,
    PadAttributes,
    ParameterAttributes,
    RaggedDotAttributes,
    RandomAlgorithm,
    RandomDistribution,
    ReduceAttributes,
    ReducePrecisionAttributes,
    ReduceWindowAttributes,
    ReverseAttributes,
    RngAttributes,
    RngBitGeneratorAttributes,
    RngGetAndUpdateStateAttributes,
    ScanAttributes,
    ScatterAttributes,
    SelectAndScatterAttributes,
    SliceAttributes,
    SortAttributes,
    TopKAttributes,
    TransposeAttributes,
    TransposeKind,
    TriangularSolveAttributes,
    WhileAttributes,
)
from ..ir import NO_ATTRIBUTES, Attributes, Metadata
from ..shape import read_shape
from .attribute_values import (
    read_any_text,
    read_bool,
    read_braced,
    read_computation,
    read_computations,
    read_dim_labels,
    read_enum,
    read_float,
    read_integer,
    read_integer_lists,
    read_integers,
    read_one_dimension,
    read_output_operand_aliases,
    read_padding,
    read_pairs,
    read_precision,
    read_replica_groups,
    read_shapes,
    read_slice,
    read_string,
    read_window,
    read_word,
)
from .mlir_dictionary import read_dictionary
from .scanner import Scanner
from .source_table import SourceTable
from .syntax import FrontendAttributes

E = TypeVar("E", bound=Enum)
Reader = Callable[[Scanner], Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One attribute class in text: a reader for each key, the keys that must be there, and how to build it.

    `build` gets the values by key, computations resolved. It raises ValueError for a combination that makes no sense.
    """

    readers: Mapping[str, Reader]
    build: Callable[[Values], Attributes]
    required: tuple[str, ...] = ()


# Builders


def _slice(values: Values) -> Attributes:
    ranges = values["slice"]
    return SliceAttributes(tuple(r[0] for r in ranges), tuple(r[1] for r in ranges), tuple(r[2] for r in ranges))


def _pad(values: Values) -> Attributes:
    sizes = values["padding"]
    return PadAttributes(tuple(s[0] for s in sizes), tuple(s[1] for s in sizes), tuple(s[2] for s in sizes))


def _concatenate(values: Values) -> Attributes:
    if len(values["dimensions"]) != 1:
        raise ValueError("concatenate needs one dimension: expected dimensions={d}")
    return ConcatenateAttributes(values["dimensions"][0])


def _conditional(values: Values) -> Attributes:
    branches = values.get("branch_computations")
    on_true, on_false = values.get("true_computation"), values.get("false_computation")
    if branches is not None and on_true is None and on_false is None:
        return ConditionalAttributes(branches)
    if branches is None and on_true is not None and on_false is not None:
        return ConditionalAttributes((on_true, on_false))
    raise ValueError("conditional needs either branch_computations, or true_computation and false_computation")


def _dot(values: Values) -> DotAttributes:
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    return DotAttributes(
        **{key: values[key] for key in (*names, "operand_precision", "algorithm") if key in values}
    )


def _keywords(kind: Callable[..., Attributes]) -> Callable[[Values], Attributes]:
    """For an attribute class whose fields are called as in the text."""
    return lambda values: kind(**values)


def _custom_call(values: Values) -> Attributes:
    given = dict(values)
    renamed = {"called_computations": "callees", "custom_call_has_side_effect": "has_side_effect"}
    given = {renamed.get(key, key): value for key, value in given.items()}
    if "to_apply" in given:
        if "callees" in given:
            raise ValueError("custom-call takes called_computations or to_apply, not both")
        given["callees"] = (given.pop("to_apply"),)
    return CustomCallAttributes(**given)


def _collective(values: Values) -> Attributes:
    given = dict(values)
    if "dimensions" in given:
        given["dimension"] = given.pop("dimensions")
    return CollectiveAttributes(**given)


def _with_dimension(kind: Callable[..., Attributes]) -> Callable[[Values], Attributes]:
    """For an attribute class whose field `dimension` is `dimensions={d}` in the text."""

    def build(values: Values) -> Attributes:
        given = dict(values)
        given["dimension"] = given.pop("dimensions")
        return kind(**given)

    return build


def _ragged_dot(values: Values) -> Attributes:
    return RaggedDotAttributes(_dot(values), values.get("lhs_ragged_dims", ()), values.get("rhs_group_dims", ()))


_DOT_READERS: dict[str, Reader] = {
    "lhs_batch_dims": read_integers,
    "rhs_batch_dims": read_integers,
    "lhs_contracting_dims": read_integers,
    "rhs_contracting_dims": read_integers,
    "operand_precision": read_precision,
    "algorithm": read_word,
}


FORMS: dict[type[Attributes], Form] = {
    Attributes: Form({}, lambda v: NO_ATTRIBUTES),
    BroadcastAttributes: Form({"dimensions": read_integers}, lambda v: BroadcastAttributes(v.get("dimensions", ()))),
    CallAttributes: Form(
        {"to_apply": read_computation, "is_composite": read_bool},
        lambda v: CallAttributes(v["to_apply"], v.get("composite")),
        ("to_apply",),
    ),
    CompareAttributes: Form(
        {"direction": read_enum(ComparisonDirection), "type": read_enum(ComparisonType)},
        lambda v: CompareAttributes(v["direction"], v.get("type")),
        ("direction",),
    ),
    ConcatenateAttributes: Form({"dimensions": read_integers}, _concatenate, ("dimensions",)),
    ConditionalAttributes: Form(
        {
            "branch_computations": read_computations,
            "true_computation": read_computation,
            "false_computation": read_computation,
        },
        _conditional,
    ),
    ConstantAttributes: Form({}, lambda v: ConstantAttributes(v["literal"])),
    DotAttributes: Form(
        _DOT_READERS,
        _dot,
    ),
    DynamicSliceAttributes: Form(
        {"dynamic_slice_sizes": read_integers},
        lambda v: DynamicSliceAttributes(v["dynamic_slice_sizes"]),
        ("dynamic_slice_sizes",),
    ),
    FusionAttributes: Form(
        {"kind": read_enum(FusionKind), "calls": read_computation},
        lambda v: FusionAttributes(v["kind"], v["calls"]),
        ("kind", "calls"),
    ),
    GetTupleElementAttributes: Form(
        {"index": read_integer}, lambda v: GetTupleElementAttributes(v["index"]), ("index",)
    ),
    IotaAttributes: Form(
        {"iota_dimension": read_integer}, lambda v: IotaAttributes(v["iota_dimension"]), ("iota_dimension",)
    ),
    PadAttributes: Form({"padding": read_padding}, _pad, ("padding",)),
    ParameterAttributes: Form({}, lambda v: ParameterAttributes(v["number"])),
    ReduceAttributes: Form(
        {"dimensions": read_integers, "to_apply": read_computation},
        lambda v: ReduceAttributes(v["dimensions"], v["to_apply"]),
        ("dimensions", "to_apply"),
    ),
    ReverseAttributes: Form(
        {"dimensions": read_integers}, lambda v: ReverseAttributes(v["dimensions"]), ("dimensions",)
    ),
    RngBitGeneratorAttributes: Form(
        {"algorithm": read_enum(RandomAlgorithm)},
        lambda v: RngBitGeneratorAttributes(v["algorithm"]),
        ("algorithm",),
    ),
    SliceAttributes: Form({"slice": read_slice}, _slice, ("slice",)),
    TransposeAttributes: Form(
        {"dimensions": read_integers}, lambda v: TransposeAttributes(v["dimensions"]), ("dimensions",)
    ),
    WhileAttributes: Form(
        {"condition": read_computation, "body": read_computation},
        lambda v: WhileAttributes(v["condition"], v["body"]),
        ("condition", "body"),
    ),
    AsyncAttributes: Form(
        {"calls": read_computation, "async_execution_thread": read_string}, _keywords(AsyncAttributes)
    ),
    BatchNormAttributes: Form(
        {"epsilon": read_float, "feature_index": read_integer},
        _keywords(BatchNormAttributes),
        ("epsilon", "feature_index"),
    ),
    ChannelAttributes: Form(
        {"channel_id": read_integer, "is_host_transfer": read_bool}, _keywords(ChannelAttributes)
    ),
    CholeskyAttributes: Form({"lower": read_bool}, _keywords(CholeskyAttributes)),
    CollectiveAttributes: Form(
        {
            "replica_groups": read_replica_groups,
            "channel_id": read_integer,
            "use_global_device_ids": read_bool,
            "constrain_layout": read_bool,
            "dimensions": read_one_dimension,
            "to_apply": read_computation,
            "source_target_pairs": read_pairs,
            "slice_sizes": read_integer_lists,
        },
        _collective,
    ),
    ConvolutionAttributes: Form(
        {
            "window": read_window,
            "dim_labels": read_dim_labels,
            "feature_group_count": read_integer,
            "batch_group_count": read_integer,
            "operand_precision": read_precision,
        },
        lambda v: ConvolutionAttributes(
            v.get("window", ()),
            v["dim_labels"],
            v.get("feature_group_count", 1),
            v.get("batch_group_count", 1),
            v.get("operand_precision", ("default", "default")),
        ),
        ("dim_labels",),
    ),
    CustomCallAttributes: Form(
        {
            "custom_call_target": read_string,
            "operand_layout_constraints": read_shapes,
            "custom_call_has_side_effect": read_bool,
            "called_computations": read_computations,
            "to_apply": read_computation,
            "output_to_operand_aliasing": read_output_operand_aliases,
            "schedule": read_enum(CustomCallSchedule),
            "api_version": read_enum(CustomCallApiVersion),
            "backend_config": read_any_text,
        },
        _custom_call,
        ("custom_call_target",),
    ),
    DimensionAttributes: Form(
        {"dimensions": read_one_dimension}, _with_dimension(DimensionAttributes), ("dimensions",)
    ),
    DomainAttributes: Form({"domain": read_braced}, _keywords(DomainAttributes), ("domain",)),
    FftAttributes: Form(
        {"fft_type": read_enum(FftType), "fft_length": read_integers},
        _keywords(FftAttributes),
        ("fft_type", "fft_length"),
    ),
    GatherAttributes: Form(
        {
            "offset_dims": read_integers,
            "collapsed_slice_dims": read_integers,
            "start_index_map": read_integers,
            "index_vector_dim": read_integer,
            "slice_sizes": read_integers,
            "operand_batching_dims": read_integers,
            "start_indices_batching_dims": read_integers,
            "indices_are_sorted": read_bool,
        },
        _keywords(GatherAttributes),
        ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"),
    ),
    InfeedAttributes: Form({"infeed_config": read_string}, _keywords(InfeedAttributes)),
    MapAttributes: Form(
        {"dimensions": read_integers, "to_apply": read_computation},
        lambda v: MapAttributes(v.get("dimensions", ()), v["to_apply"]),
        ("to_apply",),
    ),
    OutfeedAttributes: Form(
        {"outfeed_shape": read_shape, "outfeed_config": read_string}, _keywords(OutfeedAttributes)
    ),
    RaggedDotAttributes: Form(
        {**_DOT_READERS, "lhs_ragged_dims": read_integers, "rhs_group_dims": read_integers}, _ragged_dot
    ),
    ReducePrecisionAttributes: Form(
        {"exponent_bits": read_integer, "mantissa_bits": read_integer},
        _keywords(ReducePrecisionAttributes),
        ("exponent_bits", "mantissa_bits"),
    ),
    ReduceWindowAttributes: Form(
        {"window": read_window, "to_apply": read_computation},
        lambda v: ReduceWindowAttributes(v.get("window", ()), v["to_apply"]),
        ("to_apply",),
    ),
    RngAttributes: Form({"distribution": read_enum(RandomDistribution)}, _keywords(RngAttributes), ("distribution",)),
    RngGetAndUpdateStateAttributes: Form(
        {"delta": read_integer}, _keywords(RngGetAndUpdateStateAttributes), ("delta",)
    ),
    ScanAttributes: Form(
        {
            "dimensions": read_one_dimension,
            "to_apply": read_computation,
            "is_reverse": read_bool,
            "is_associative": read_bool,
            "num_carries": read_integer,
        },
        _with_dimension(ScanAttributes),
        ("dimensions", "to_apply"),
    ),
    ScatterAttributes: Form(
        {
            "update_window_dims": read_integers,
            "inserted_window_dims": read_integers,
            "scatter_dims_to_operand_dims": read_integers,
            "index_vector_dim": read_integer,
            "to_apply": read_computation,
            "input_batching_dims": read_integers,
            "scatter_indices_batching_dims": read_integers,
            "indices_are_sorted": read_bool,
            "unique_indices": read_bool,
        },
        _keywords(ScatterAttributes),
        (
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
            "to_apply",
        ),
    ),
    SelectAndScatterAttributes: Form(
        {"window": read_window, "select": read_computation, "scatter": read_computation},
        lambda v: SelectAndScatterAttributes(v.get("window", ()), v["select"], v["scatter"]),
        ("select", "scatter"),
    ),
    SortAttributes: Form(
        {"dimensions": read_one_dimension, "to_apply": read_computation, "is_stable": read_bool},
        _with_dimension(SortAttributes),
        ("dimensions", "to_apply"),
    ),
    TopKAttributes: Form({"k": read_integer, "largest": read_bool}, _keywords(TopKAttributes), ("k",)),
    TriangularSolveAttributes: Form(
        {
            "left_side": read_bool,
            "lower": read_bool,
            "unit_diagonal": read_bool,
            "transpose_a": read_enum(TransposeKind),
        },
        _keywords(TriangularSolveAttributes),
    ),
}


# What every instruction may have


def read_frontend_attributes(scanner: Scanner) -> FrontendAttributes:
    """`{a="b",c={d = 1}}`"""
    scanner.expect("{", "to open the frontend attributes")
    pairs: dict[str, str] = {}
    while not scanner.peek("}"):
        if pairs:
            scanner.expect(",", "or '}' after a frontend attribute")
        position = scanner.skip()
        key = scanner.string("a key") if scanner.peek('"') else scanner.word("the key of a frontend attribute")
        if key in pairs:
            raise scanner.error(f"frontend attribute {key!r} is given twice", position)
        scanner.expect("=")
        pairs[key] = scanner.braced("a value") if scanner.peek("{") else scanner.string("a value in quotes or braces")
    scanner.expect("}")
    return tuple(pairs.items())


def read_metadata(scanner: Scanner, sources: SourceTable) -> Metadata | None:
    """`{op_name="f" source_file="a.py" source_line=3}`; a stack frame gives file and line too. Other fields go."""
    op_name, source_file, source_line, frame = "", "", 0, 0
    scanner.expect("{", "to open the metadata")
    while not scanner.accept("}"):
        key = scanner.word("a field of the metadata or '}'")
        scanner.expect("=")
        if key == "op_name":
            op_name = scanner.string("a string")
        elif key == "source_file":
            source_file = scanner.string("a string")
        elif key == "source_line":
            source_line = scanner.integer("a line number")
        elif key == "stack_frame_id":
            frame = scanner.integer("the number of a stack frame")
        else:
            scanner.skip_value()
        scanner.accept(",")
    location = sources.location(frame)
    if location is not None and not source_file:
        source_file, source_line = location
    return Metadata(op_name, source_file, source_line) if op_name or source_file or source_line else None


def read_composite(frontend_attributes: FrontendAttributes) -> tuple[Composite, FrontendAttributes]:
    """The composite that a call with `is_composite=true` stands for, and the frontend attributes that are not its own.

    ValueError tells which one is missing or malformed.
    """
    given = dict(frontend_attributes)
    name = given.pop("composite.name", None)
    if name is None:
        raise ValueError("a composite call needs the frontend attribute composite.name")
    version = given.pop("composite.version", "0")
    if not version.isdecimal() or len(version) > 9:
        raise ValueError(f"composite.version must be a number, not {version!r}")
    try:
        parameters = read_dictionary(given.pop("composite.attributes", "{}"))
    except ValueError as error:
        raise ValueError(f"composite.attributes: {error}") from None
    return Composite(name, parameters, version=int(version)), tuple(given.items())
