"""How the attributes of calls, control flow, custom calls, asynchronous pairs, queues and collectives are written.

`attribute_forms_structure.py` reads them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..opcode import Opcode
from .attribute_text import ComputationName, Writer, dictionary_or_quoted, integers
from .escape import escape

if TYPE_CHECKING:
    from ..ir import HloInstruction
    from ..ops.asynchronous import AsyncAttributes, ChannelAttributes, InfeedAttributes, OutfeedAttributes
    from ..ops.collective import CollectiveAttributes
    from ..ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
    from ..ops.custom_call import CustomCallAttributes
    from ..ops.structure import DomainAttributes, FusionAttributes, GetTupleElementAttributes


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


def _fusion(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: FusionAttributes = instruction.attributes
    yield f"kind={attributes.kind.value}"
    yield f"calls=%{name(attributes.calls)}"


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
    if attributes.api_version.value == "API_VERSION_TYPED_FFI":
        yield f"backend_config={dictionary_or_quoted(attributes.backend_config or '{}')}"
    elif attributes.backend_config:
        yield f'backend_config="{escape(attributes.backend_config)}"'


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


WRITERS: dict[Opcode, Writer] = {
    Opcode.ALL_GATHER: _collective,
    Opcode.ALL_GATHER_START: _collective,
    Opcode.ALL_REDUCE: _collective,
    Opcode.ALL_REDUCE_START: _collective,
    Opcode.ALL_TO_ALL: _collective,
    Opcode.ASYNC_DONE: _async,
    Opcode.ASYNC_START: _async,
    Opcode.ASYNC_UPDATE: _async,
    Opcode.CALL: _call,
    Opcode.COLLECTIVE_BROADCAST: _collective,
    Opcode.COLLECTIVE_PERMUTE: _collective,
    Opcode.COLLECTIVE_PERMUTE_START: _collective,
    Opcode.CONDITIONAL: _conditional,
    Opcode.CUSTOM_CALL: _custom_call,
    Opcode.DOMAIN: _domain,
    Opcode.FUSION: _fusion,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.INFEED: _infeed,
    Opcode.OUTFEED: _outfeed,
    Opcode.RAGGED_ALL_TO_ALL: _collective,
    Opcode.RECV: _channel,
    Opcode.RECV_DONE: _channel,
    Opcode.REDUCE_SCATTER: _collective,
    Opcode.SEND: _channel,
    Opcode.SEND_DONE: _channel,
    Opcode.WHILE: _while,
}
