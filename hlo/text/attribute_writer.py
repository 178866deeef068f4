"""How each opcode's attributes are written: one writer an opcode that has any. `attribute_reader.py` reads them back.

Source: XLA's HloInstruction::ExtraAttributesToString. Writers look at fields by name only, so that this module does not
need the attribute classes: `ir.py` imports the printer, and the classes import `ir.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..opcode import Opcode
from .escape import escape
from .mlir_dictionary import write_dictionary

if TYPE_CHECKING:
    from ..attributes import (
        AsyncAttributes,
        BatchNormAttributes,
        CallAttributes,
        ChannelAttributes,
        CholeskyAttributes,
        CollectiveAttributes,
        CompareAttributes,
        Composite,
        ConcatenateAttributes,
        ConditionalAttributes,
        ConvolutionAttributes,
        ConvolutionDimensionNumbers,
        CustomCallAttributes,
        DimensionAttributes,
        DomainAttributes,
        DotAttributes,
        DynamicSliceAttributes,
        FftAttributes,
        FusionAttributes,
        GatherAttributes,
        GetTupleElementAttributes,
        InfeedAttributes,
        IotaAttributes,
        MapAttributes,
        OutfeedAttributes,
        PadAttributes,
        RaggedDotAttributes,
        ReduceAttributes,
        ReducePrecisionAttributes,
        ReduceWindowAttributes,
        RngAttributes,
        RngBitGeneratorAttributes,
        RngGetAndUpdateStateAttributes,
        ScanAttributes,
        ScatterAttributes,
        SelectAndScatterAttributes,
        SliceAttributes,
        SortAttributes,
        TopKAttributes,
        TriangularSolveAttributes,
        WhileAttributes,
        Window,
    )
    from ..ir import HloComputation, HloInstruction

ComputationName = Callable[["HloComputation"], str]
Writer = Callable[["HloInstruction", ComputationName], Iterable[str]]
"""writer(instruction, name of a called computation) -> `key=value` texts."""


def integers(values: Sequence[int]) -> str:
    """`{0,2,1}`"""
    return "{" + ",".join(map(str, values)) + "}"


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
    yield from _precision(attributes.operand_precision)
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


def _get_tuple_element(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: GetTupleElementAttributes = instruction.attributes
    yield f"index={attributes.index}"


def _call(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: CallAttributes = instruction.attributes
    yield f"to_apply=%{name(attributes.to_apply)}"
    if attributes.composite is not None:
        yield "is_composite=true"


def _while(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: WhileAttributes = instruction.attributes
    yield f"condition=%{name(attributes.condition)}"
    yield f"body=%{name(attributes.body)}"


def _conditional(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    """XLA's parser takes the branches by index, or by the two values of a pred, never in the other's form."""
    attributes: ConditionalAttributes = instruction.attributes
    branches = [f"%{name(branch)}" for branch in attributes.branch_computations]
    if instruction.operands[0].shape.element.value == "pred":
        yield f"true_computation={branches[0]}"
        yield f"false_computation={branches[1]}"
    else:
        yield f"branch_computations={{{', '.join(branches)}}}"


def _window(window: Window) -> Iterator[str]:
    """`window={size=2x3 stride=2x1 pad=0_1x1_1 rhs_reversal=0x1}`; a part that says nothing is left out, the size too
    where there are no dimensions. Source: XLA's window_util::ToString."""
    if not window:
        return
    parts = ["size=" + "x".join(str(d.size) for d in window)]
    if any(d.stride != 1 for d in window):
        parts.append("stride=" + "x".join(str(d.stride) for d in window))
    if any(d.padding_low or d.padding_high for d in window):
        parts.append("pad=" + "x".join(f"{d.padding_low}_{d.padding_high}" for d in window))
    if any(d.base_dilation != 1 for d in window):
        parts.append("lhs_dilate=" + "x".join(str(d.base_dilation) for d in window))
    if any(d.window_dilation != 1 for d in window):
        parts.append("rhs_dilate=" + "x".join(str(d.window_dilation) for d in window))
    if any(d.reversed for d in window):
        parts.append("rhs_reversal=" + "x".join(str(int(d.reversed)) for d in window))
    yield f"window={{{' '.join(parts)}}}"


def dim_labels(numbers: ConvolutionDimensionNumbers) -> str:
    """`b01f_01io->b01f`: what each dimension of input, kernel and result is."""

    def labels(names: str, places: tuple[int, int], spatial: Sequence[int]) -> str:
        label = {place: name for name, place in zip(names, places)}
        label |= {place: str(k) for k, place in enumerate(spatial)}
        return "".join(label[d] for d in sorted(label))

    source = labels("bf", (numbers.input_batch, numbers.input_feature), numbers.input_spatial)
    kernel = labels("io", (numbers.kernel_input_feature, numbers.kernel_output_feature), numbers.kernel_spatial)
    result = labels("bf", (numbers.output_batch, numbers.output_feature), numbers.output_spatial)
    return f"{source}_{kernel}->{result}"


def _precision(precisions: tuple[str, str]) -> Iterator[str]:
    if precisions != ("default", "default"):
        yield f"operand_precision={{{','.join(precisions)}}}"


def _convolution(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ConvolutionAttributes = instruction.attributes
    yield from _window(attributes.window)
    yield f"dim_labels={dim_labels(attributes.dimension_numbers)}"
    if attributes.feature_group_count != 1:
        yield f"feature_group_count={attributes.feature_group_count}"
    if attributes.batch_group_count != 1:
        yield f"batch_group_count={attributes.batch_group_count}"
    yield from _precision(attributes.operand_precision)


def _reduce_window(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ReduceWindowAttributes = instruction.attributes
    yield from _window(attributes.window)
    yield f"to_apply=%{name(attributes.to_apply)}"


def _select_and_scatter(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: SelectAndScatterAttributes = instruction.attributes
    yield from _window(attributes.window)
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
    yield f"largest={_bool(attributes.largest)}"


def _bool(value: bool) -> str:
    return "true" if value else "false"


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
    yield from _precision(attributes.dot.operand_precision)
    yield f"lhs_ragged_dims={integers(attributes.lhs_ragged_dims)}"
    if attributes.rhs_group_dims:
        yield f"rhs_group_dims={integers(attributes.rhs_group_dims)}"


def _scan(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ScanAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"
    if attributes.is_reverse:
        yield "is_reverse=true"
    if attributes.is_associative is not None:
        yield f"is_associative={_bool(attributes.is_associative)}"
    yield f"num_carries={attributes.num_carries}"
    yield f"to_apply=%{name(attributes.to_apply)}"


def _custom_call(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    """The backend_config of a typed call is a dictionary and goes without quotes."""
    attributes: CustomCallAttributes = instruction.attributes
    yield f'custom_call_target="{escape(attributes.custom_call_target)}"'
    if attributes.operand_layout_constraints is not None:
        layouts = ", ".join(shape.to_text() for shape in attributes.operand_layout_constraints)
        yield f"operand_layout_constraints={{{layouts}}}"
    if attributes.has_side_effect:
        yield "custom_call_has_side_effect=true"
    if attributes.callees:
        yield f"called_computations={{{', '.join(f'%{name(c)}' for c in attributes.callees)}}}"
    if attributes.output_to_operand_aliasing:
        aliases = ", ".join(
            f"{integers(a.output_index)}: ({a.operand}, {integers(a.operand_index)})"
            for a in attributes.output_to_operand_aliasing
        )
        yield f"output_to_operand_aliasing={{{aliases}}}"
    if attributes.schedule.value != "SCHEDULE_NONE":
        yield f"schedule={attributes.schedule.value}"
    if attributes.api_version.value != "API_VERSION_ORIGINAL":
        yield f"api_version={attributes.api_version.value}"
    config = attributes.backend_config
    if config or attributes.api_version.value == "API_VERSION_TYPED_FFI":
        bare = attributes.api_version.value == "API_VERSION_TYPED_FFI"
        yield f"backend_config={config or '{}'}" if bare else f'backend_config="{escape(config)}"'


def _dimension(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: DimensionAttributes = instruction.attributes
    yield f"dimensions={integers((attributes.dimension,))}"


def _domain(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: DomainAttributes = instruction.attributes
    yield f"domain={attributes.domain}"


def _async(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: AsyncAttributes = instruction.attributes
    if attributes.async_execution_thread != "main" and instruction.opcode is Opcode.ASYNC_START:
        yield f'async_execution_thread="{escape(attributes.async_execution_thread)}"'
    if attributes.calls is not None:
        yield f"calls=%{name(attributes.calls)}"


def _infeed(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: InfeedAttributes = instruction.attributes
    if attributes.infeed_config:
        yield f'infeed_config="{escape(attributes.infeed_config)}"'


def _outfeed(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: OutfeedAttributes = instruction.attributes
    if attributes.outfeed_shape is not None:
        yield f"outfeed_shape={attributes.outfeed_shape.to_text()}"
    if attributes.outfeed_config:
        yield f'outfeed_config="{escape(attributes.outfeed_config)}"'


def _channel(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: ChannelAttributes = instruction.attributes
    if attributes.channel_id is not None:
        yield f"channel_id={attributes.channel_id}"
    if attributes.is_host_transfer:
        yield "is_host_transfer=true"


def _collective(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: CollectiveAttributes = instruction.attributes
    if attributes.channel_id is not None:
        yield f"channel_id={attributes.channel_id}"
    if instruction.opcode in (Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START):
        yield f"source_target_pairs={{{','.join(f'{{{a},{b}}}' for a, b in attributes.source_target_pairs)}}}"
        if attributes.slice_sizes:
            yield f"slice_sizes={{{','.join(map(integers, attributes.slice_sizes))}}}"
        return
    yield f"replica_groups={attributes.replica_groups.text}"
    if attributes.constrain_layout:
        yield "constrain_layout=true"
    if attributes.use_global_device_ids:
        yield "use_global_device_ids=true"
    if attributes.dimension is not None:
        yield f"dimensions={integers((attributes.dimension,))}"
    if attributes.to_apply is not None:
        yield f"to_apply=%{name(attributes.to_apply)}"


def _fusion(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: FusionAttributes = instruction.attributes
    yield f"kind={attributes.kind.value}"
    yield f"calls=%{name(attributes.calls)}"


WRITERS: dict[Opcode, Writer] = {
    Opcode.ALL_GATHER: _collective,
    Opcode.ALL_GATHER_START: _collective,
    Opcode.ALL_REDUCE: _collective,
    Opcode.ALL_REDUCE_START: _collective,
    Opcode.ALL_TO_ALL: _collective,
    Opcode.ASYNC_DONE: _async,
    Opcode.ASYNC_START: _async,
    Opcode.ASYNC_UPDATE: _async,
    Opcode.BATCH_NORM_GRAD: _batch_norm,
    Opcode.BATCH_NORM_INFERENCE: _batch_norm,
    Opcode.BATCH_NORM_TRAINING: _batch_norm,
    Opcode.BROADCAST: _dimensions,
    Opcode.CALL: _call,
    Opcode.CHOLESKY: _cholesky,
    Opcode.COLLECTIVE_BROADCAST: _collective,
    Opcode.COLLECTIVE_PERMUTE: _collective,
    Opcode.COLLECTIVE_PERMUTE_START: _collective,
    Opcode.COMPARE: _compare,
    Opcode.CONCATENATE: _concatenate,
    Opcode.CONDITIONAL: _conditional,
    Opcode.CONVOLUTION: _convolution,
    Opcode.CUSTOM_CALL: _custom_call,
    Opcode.DOMAIN: _domain,
    Opcode.DOT: _dot,
    Opcode.DYNAMIC_SLICE: _dynamic_slice,
    Opcode.FFT: _fft,
    Opcode.FUSION: _fusion,
    Opcode.GATHER: _gather,
    Opcode.GET_DIMENSION_SIZE: _dimension,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.INFEED: _infeed,
    Opcode.IOTA: _iota,
    Opcode.MAP: _map,
    Opcode.OUTFEED: _outfeed,
    Opcode.PAD: _pad,
    Opcode.RAGGED_ALL_TO_ALL: _collective,
    Opcode.RAGGED_DOT: _ragged_dot,
    Opcode.RECV: _channel,
    Opcode.RECV_DONE: _channel,
    Opcode.REDUCE: _reduce,
    Opcode.REDUCE_PRECISION: _reduce_precision,
    Opcode.REDUCE_SCATTER: _collective,
    Opcode.REDUCE_WINDOW: _reduce_window,
    Opcode.REVERSE: _dimensions,
    Opcode.RNG: _rng,
    Opcode.RNG_BIT_GENERATOR: _rng_bit_generator,
    Opcode.RNG_GET_AND_UPDATE_STATE: _rng_get_and_update_state,
    Opcode.SCALED_DOT: _dot,
    Opcode.SCAN: _scan,
    Opcode.SCATTER: _scatter,
    Opcode.SELECT_AND_SCATTER: _select_and_scatter,
    Opcode.SEND: _channel,
    Opcode.SEND_DONE: _channel,
    Opcode.SET_DIMENSION_SIZE: _dimension,
    Opcode.SLICE: _slice,
    Opcode.SORT: _sort,
    Opcode.TOPK: _topk,
    Opcode.TRANSPOSE: _dimensions,
    Opcode.TRIANGULAR_SOLVE: _triangular_solve,
    Opcode.WHILE: _while,
}


def composite_frontend_attributes(composite: Composite) -> list[tuple[str, str]]:
    """What XLA keeps of a composite call beside `is_composite=true`."""
    return [
        ("composite.attributes", write_dictionary(composite.parameters)),
        ("composite.name", composite.name),
        ("composite.version", str(composite.version)),
    ]


# Frontend attributes


_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_DICTIONARY = re.compile(r'\{(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}')


def frontend_attributes_text(attributes: Iterable[tuple[str, str]]) -> str:
    """`frontend_attributes={a="b",c={d = 1}}`: as XLA does, a value that is a dictionary goes without quotes."""
    return "frontend_attributes={" + ",".join(f"{_key(key)}={_value(value)}" for key, value in attributes) + "}"


def _key(key: str) -> str:
    """XLA has no form for a key that is no identifier; in quotes, our parser takes it."""
    return key if _KEY.fullmatch(key) else f'"{escape(key)}"'


def _value(value: str) -> str:
    return value if value.isprintable() and _DICTIONARY.fullmatch(value) else f'"{escape(value)}"'
