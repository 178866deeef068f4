"""How the attributes of ops that compute arrays are read. `attribute_writer_arrays.py` writes them."""

from __future__ import annotations

from ..ir import Attributes
from ..ops.control_flow import ScanAttributes
from ..ops.convolution import ConvolutionAttributes
from ..ops.dot import DotAttributes, RaggedDotAttributes
from ..ops.dynamic_size import DimensionAttributes
from ..ops.elementwise import (
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    MapAttributes,
    ReducePrecisionAttributes,
)
from ..ops.indexing import GatherAttributes, ScatterAttributes
from ..ops.linalg import CholeskyAttributes, FftAttributes, FftType, TransposeKind, TriangularSolveAttributes
from ..ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..ops.normalization import BatchNormAttributes
from ..ops.random import (
    RandomAlgorithm,
    RandomDistribution,
    RngAttributes,
    RngBitGeneratorAttributes,
    RngGetAndUpdateStateAttributes,
)
from ..ops.reduce import ReduceAttributes
from ..ops.sort import SortAttributes, TopKAttributes
from ..ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from .attribute_form import Form, Reader, Values, keywords, with_dimension
from .attribute_values import (
    read_bool,
    read_computation,
    read_dim_labels,
    read_enum,
    read_float,
    read_integer,
    read_integers,
    read_one_dimension,
    read_padding,
    read_precision,
    read_slice,
    read_window,
    read_word,
)


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


def _dot(values: Values) -> DotAttributes:
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    return DotAttributes(**{key: values[key] for key in (*names, "operand_precision", "algorithm") if key in values})


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
    BroadcastAttributes: Form({"dimensions": read_integers}, lambda v: BroadcastAttributes(v.get("dimensions", ()))),
    CompareAttributes: Form(
        {"direction": read_enum(ComparisonDirection), "type": read_enum(ComparisonType)},
        lambda v: CompareAttributes(v["direction"], v.get("type")),
        ("direction",),
    ),
    ConcatenateAttributes: Form({"dimensions": read_integers}, _concatenate, ("dimensions",)),
    DotAttributes: Form(
        _DOT_READERS,
        _dot,
    ),
    DynamicSliceAttributes: Form(
        {"dynamic_slice_sizes": read_integers},
        lambda v: DynamicSliceAttributes(v["dynamic_slice_sizes"]),
        ("dynamic_slice_sizes",),
    ),
    IotaAttributes: Form(
        {"iota_dimension": read_integer}, lambda v: IotaAttributes(v["iota_dimension"]), ("iota_dimension",)
    ),
    PadAttributes: Form({"padding": read_padding}, _pad, ("padding",)),
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
    BatchNormAttributes: Form(
        {"epsilon": read_float, "feature_index": read_integer},
        keywords(BatchNormAttributes),
        ("epsilon", "feature_index"),
    ),
    CholeskyAttributes: Form({"lower": read_bool}, keywords(CholeskyAttributes)),
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
    DimensionAttributes: Form({"dimensions": read_one_dimension}, with_dimension(DimensionAttributes), ("dimensions",)),
    FftAttributes: Form(
        {"fft_type": read_enum(FftType), "fft_length": read_integers},
        keywords(FftAttributes),
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
        keywords(GatherAttributes),
        ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes"),
    ),
    MapAttributes: Form(
        {"dimensions": read_integers, "to_apply": read_computation},
        lambda v: MapAttributes(v.get("dimensions", ()), v["to_apply"]),
        ("to_apply",),
    ),
    RaggedDotAttributes: Form(
        {**_DOT_READERS, "lhs_ragged_dims": read_integers, "rhs_group_dims": read_integers}, _ragged_dot
    ),
    ReducePrecisionAttributes: Form(
        {"exponent_bits": read_integer, "mantissa_bits": read_integer},
        keywords(ReducePrecisionAttributes),
        ("exponent_bits", "mantissa_bits"),
    ),
    ReduceWindowAttributes: Form(
        {"window": read_window, "to_apply": read_computation},
        lambda v: ReduceWindowAttributes(v.get("window", ()), v["to_apply"]),
        ("to_apply",),
    ),
    RngAttributes: Form({"distribution": read_enum(RandomDistribution)}, keywords(RngAttributes), ("distribution",)),
    RngGetAndUpdateStateAttributes: Form({"delta": read_integer}, keywords(RngGetAndUpdateStateAttributes), ("delta",)),
    ScanAttributes: Form(
        {
            "dimensions": read_one_dimension,
            "to_apply": read_computation,
            "is_reverse": read_bool,
            "is_associative": read_bool,
            "num_carries": read_integer,
        },
        with_dimension(ScanAttributes),
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
        keywords(ScatterAttributes),
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
        with_dimension(SortAttributes),
        ("dimensions", "to_apply"),
    ),
    TopKAttributes: Form({"k": read_integer, "largest": read_bool}, keywords(TopKAttributes), ("k",)),
    TriangularSolveAttributes: Form(
        {
            "left_side": read_bool,
            "lower": read_bool,
            "unit_diagonal": read_bool,
            "transpose_a": read_enum(TransposeKind),
        },
        keywords(TriangularSolveAttributes),
    ),
}
