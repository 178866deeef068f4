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
        CallAttributes,
        CompareAttributes,
        Composite,
        ConcatenateAttributes,
        ConditionalAttributes,
        DotAttributes,
        DynamicSliceAttributes,
        FusionAttributes,
        GetTupleElementAttributes,
        IotaAttributes,
        PadAttributes,
        ReduceAttributes,
        RngBitGeneratorAttributes,
        SliceAttributes,
        WhileAttributes,
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
    if attributes.lhs_batch_dims or attributes.rhs_batch_dims:
        yield f"lhs_batch_dims={integers(attributes.lhs_batch_dims)}"
    yield f"lhs_contracting_dims={integers(attributes.lhs_contracting_dims)}"
    if attributes.lhs_batch_dims or attributes.rhs_batch_dims:
        yield f"rhs_batch_dims={integers(attributes.rhs_batch_dims)}"
    yield f"rhs_contracting_dims={integers(attributes.rhs_contracting_dims)}"
    if attributes.operand_precision != ("default", "default"):
        yield f"operand_precision={{{','.join(attributes.operand_precision)}}}"


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


def _fusion(instruction: HloInstruction, name: ComputationName) -> Iterator[str]:
    attributes: FusionAttributes = instruction.attributes
    yield f"kind={attributes.kind.value}"
    yield f"calls=%{name(attributes.calls)}"


WRITERS: dict[Opcode, Writer] = {
    Opcode.BROADCAST: _dimensions,
    Opcode.CALL: _call,
    Opcode.COMPARE: _compare,
    Opcode.CONCATENATE: _concatenate,
    Opcode.CONDITIONAL: _conditional,
    Opcode.DOT: _dot,
    Opcode.DYNAMIC_SLICE: _dynamic_slice,
    Opcode.FUSION: _fusion,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.IOTA: _iota,
    Opcode.PAD: _pad,
    Opcode.REDUCE: _reduce,
    Opcode.REVERSE: _dimensions,
    Opcode.RNG_BIT_GENERATOR: _rng_bit_generator,
    Opcode.SLICE: _slice,
    Opcode.TRANSPOSE: _dimensions,
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
