"""How the attributes of ops that compute arrays are written. `attribute_forms_arrays.py` reads them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..opcode import Opcode
from .attribute_text import ComputationName, Writer, boolean, dim_labels, integers, precision_text, window_text

if TYPE_CHECKING:
    from ..ir import HloInstruction
    from ..ops.control_flow import ScanAttributes
    from ..ops.convolution import ConvolutionAttributes
    from ..ops.dot import DotAttributes, RaggedDotAttributes
    from ..ops.dynamic_size import DimensionAttributes
    from ..ops.elementwise import CompareAttributes, MapAttributes, ReducePrecisionAttributes
    from ..ops.indexing import GatherAttributes, ScatterAttributes
    from ..ops.linalg import CholeskyAttributes, FftAttributes, TriangularSolveAttributes
    from ..ops.movement import (
        ConcatenateAttributes,
        DynamicSliceAttributes,
        IotaAttributes,
        PadAttributes,
        SliceAttributes,
    )
    from ..ops.normalization import BatchNormAttributes
    from ..ops.random import RngAttributes, RngBitGeneratorAttributes, RngGetAndUpdateStateAttributes
    from ..ops.reduce import ReduceAttributes
    from ..ops.sort import SortAttributes, TopKAttributes
    from ..ops.window import ReduceWindowAttributes, SelectAndScatterAttributes


def _dimensions(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    yield f"dimensions={integers(instruction.attributes.dimensions)}"


def _concatenate(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ConcatenateAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"


def _iota(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: IotaAttributes = instruction.attributes
    yield f"iota_dimension={attributes.iota_dimension}"


def _slice(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: SliceAttributes = instruction.attributes
    limits = zip(attributes.start_indices, attributes.limit_indices, attributes.strides)
    ranges = [f"[{start}:{limit}{f':{stride}' if stride != 1 else ''}]" for start, limit, stride in limits]
    yield f"slice={{{', '.join(ranges)}}}"


def _pad(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: PadAttributes = instruction.attributes
    sizes = zip(attributes.low, attributes.high, attributes.interior)
    yield "padding=" + "x".join(f"{low}_{high}{f'_{inner}' if inner else ''}" for low, high, inner in sizes)


def _dynamic_slice(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: DynamicSliceAttributes = instruction.attributes
    yield f"dynamic_slice_sizes={integers(attributes.dynamic_slice_sizes)}"


def _compare(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: CompareAttributes = instruction.attributes
    yield f"direction={attributes.direction.value}"
    if attributes.type is not None:
        yield f"type={attributes.type.value}"


def _reduce(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ReduceAttributes = instruction.attributes
    yield f"dimensions={integers(attributes.dimensions)}"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _dot(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: DotAttributes = instruction.attributes
    yield from _dot_numbers(attributes)
    yield from precision_text(attributes.operand_precision)
    if attributes.algorithm:
        yield f"algorithm={attributes.algorithm}"


def _dot_numbers(attributes: DotAttributes) -> Iterator[str]:
    if attributes.lhs_batch_dims or attributes.rhs_batch_dims:
        yield f"lhs_batch_dims={integers(attributes.lhs_batch_dims)}"
    yield f"lhs_contracting_dims={integers(attributes.lhs_contracting_dims)}"
    if attributes.lhs_batch_dims or attributes.rhs_batch_dims:
        yield f"rhs_batch_dims={integers(attributes.rhs_batch_dims)}"
    yield f"rhs_contracting_dims={integers(attributes.rhs_contracting_dims)}"


def _rng_bit_generator(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: RngBitGeneratorAttributes = instruction.attributes
    yield f"algorithm={attributes.algorithm.value}"


def _convolution(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ConvolutionAttributes = instruction.attributes
    yield from window_text(attributes.window)
    yield f"dim_labels={dim_labels(attributes.dimension_numbers)}"
    if attributes.feature_group_count != 1:
        yield f"feature_group_count={attributes.feature_group_count}"
    if attributes.batch_group_count != 1:
        yield f"batch_group_count={attributes.batch_group_count}"
    yield from precision_text(attributes.operand_precision)


def _reduce_window(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ReduceWindowAttributes = instruction.attributes
    yield from window_text(attributes.window)
    yield f"to_apply=%{name(attributes.to_apply)}"


def _select_and_scatter(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: SelectAndScatterAttributes = instruction.attributes
    yield from window_text(attributes.window)
    yield f"select=%{name(attributes.select)}"
    yield f"scatter=%{name(attributes.scatter)}"


def _gather(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: GatherAttributes = instruction.attributes
    yield f"offset_dims={integers(attributes.offset_dims)}"
    yield f"collapsed_slice_dims={integers(attributes.collapsed_slice_dims)}"
    yield f"start_index_map={integers(attributes.start_index_map)}"
    if attributes.operand_batching_dims:
        yield f"operand_batching_dims={integers(attributes.operand_batching_dims)}"
        yield f"start_indices_batching_dims={integers(attributes.start_indices_batching_dims)}"
    yield f"index_vector_dim={attributes.index_vector_dim}"
    yield f"slice_sizes={integers(attributes.slice_sizes)}"
    if attributes.indices_are_sorted:
        yield "indices_are_sorted=true"


def _scatter(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ScatterAttributes = instruction.attributes
    yield f"update_window_dims={integers(attributes.update_window_dims)}"
    yield f"inserted_window_dims={integers(attributes.inserted_window_dims)}"
    yield f"scatter_dims_to_operand_dims={integers(attributes.scatter_dims_to_operand_dims)}"
    if attributes.input_batching_dims:
        yield f"input_batching_dims={integers(attributes.input_batching_dims)}"
        yield f"scatter_indices_batching_dims={integers(attributes.scatter_indices_batching_dims)}"
    yield f"index_vector_dim={attributes.index_vector_dim}"
    if attributes.indices_are_sorted:
        yield "indices_are_sorted=true"
    if attributes.unique_indices:
        yield "unique_indices=true"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _sort(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: SortAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"
    if attributes.is_stable:
        yield "is_stable=true"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _topk(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: TopKAttributes = instruction.attributes
    yield f"k={attributes.k}"
    yield f"largest={boolean(attributes.largest)}"


def _map(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: MapAttributes = instruction.attributes
    yield f"dimensions={integers(attributes.dimensions)}"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _reduce_precision(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ReducePrecisionAttributes = instruction.attributes
    yield f"exponent_bits={attributes.exponent_bits}"
    yield f"mantissa_bits={attributes.mantissa_bits}"


def _batch_norm(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: BatchNormAttributes = instruction.attributes
    yield f"epsilon={attributes.epsilon:.9g}"
    yield f"feature_index={attributes.feature_index}"


def _fft(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: FftAttributes = instruction.attributes
    yield f"fft_type={attributes.fft_type.value}"
    yield f"fft_length={integers(attributes.fft_length)}"


def _cholesky(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: CholeskyAttributes = instruction.attributes
    if attributes.lower:
        yield "lower=true"


def _triangular_solve(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: TriangularSolveAttributes = instruction.attributes
    for key in ("left_side", "lower", "unit_diagonal"):
        if getattr(attributes, key):
            yield f"{key}=true"
    yield f"transpose_a={attributes.transpose_a.value}"


def _rng(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: RngAttributes = instruction.attributes
    yield f"distribution={attributes.distribution.value}"


def _rng_get_and_update_state(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: RngGetAndUpdateStateAttributes = instruction.attributes
    yield f"delta={attributes.delta}"


def _ragged_dot(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: RaggedDotAttributes = instruction.attributes
    yield from _dot_numbers(attributes.dot)
    yield from precision_text(attributes.dot.operand_precision)
    yield f"lhs_ragged_dims={integers(attributes.lhs_ragged_dims)}"
    if attributes.rhs_group_dims:
        yield f"rhs_group_dims={integers(attributes.rhs_group_dims)}"


def _scan(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ScanAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"
    if attributes.is_reverse:
        yield "is_reverse=true"
    if attributes.is_associative is not None:
        yield f"is_associative={boolean(attributes.is_associative)}"
    yield f"num_carries={attributes.num_carries}"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _dimension(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: DimensionAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"


WRITERS: dict[Opcode, Writer] = {
    Opcode.BATCH_NORM_GRAD: _batch_norm,
    Opcode.BATCH_NORM_INFERENCE: _batch_norm,
    Opcode.BATCH_NORM_TRAINING: _batch_norm,
    Opcode.BROADCAST: _dimensions,
    Opcode.CHOLESKY: _cholesky,
    Opcode.COMPARE: _compare,
    Opcode.CONCATENATE: _concatenate,
    Opcode.CONVOLUTION: _convolution,
    Opcode.DOT: _dot,
    Opcode.DYNAMIC_SLICE: _dynamic_slice,
    Opcode.FFT: _fft,
    Opcode.GATHER: _gather,
    Opcode.GET_DIMENSION_SIZE: _dimension,
    Opcode.IOTA: _iota,
    Opcode.MAP: _map,
    Opcode.PAD: _pad,
    Opcode.RAGGED_DOT: _ragged_dot,
    Opcode.REDUCE: _reduce,
    Opcode.REDUCE_PRECISION: _reduce_precision,
    Opcode.REDUCE_WINDOW: _reduce_window,
    Opcode.REVERSE: _dimensions,
    Opcode.RNG: _rng,
    Opcode.RNG_BIT_GENERATOR: _rng_bit_generator,
    Opcode.RNG_GET_AND_UPDATE_STATE: _rng_get_and_update_state,
    Opcode.SCALED_DOT: _dot,
    Opcode.SCAN: _scan,
    Opcode.SCATTER: _scatter,
    Opcode.SELECT_AND_SCATTER: _select_and_scatter,
    Opcode.SET_DIMENSION_SIZE: _dimension,
    Opcode.SLICE: _slice,
    Opcode.SORT: _sort,
    Opcode.TOPK: _topk,
    Opcode.TRANSPOSE: _dimensions,
    Opcode.TRIANGULAR_SOLVE: _triangular_solve,
}
