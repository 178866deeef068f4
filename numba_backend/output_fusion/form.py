"""Write an output fusion as an instruction, with its pieces as attributes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...hlo.builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...hlo.custom_call_targets.table import UNWRITTEN
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallAttributes
from ...hlo.ops.structure import FusionAttributes, FusionKind
from ...hlo.provenance import note_replacements
from ...hlo.shape import Shape
from ..runtime.chain import Cut

_CONFIG = "backend_config"


Leaf = tuple[HloInstruction, int]
"""A member of an output fusion, and which of its results."""


class Pieces(NamedTuple):
    """How the rows of an output fusion are cut."""

    cut: Cut
    parts: int
    """The parts of the fusion's own memory: one for each range of pieces that threads take at the same time. 0: the
    memory is for all rows."""

    @property
    def least(self) -> int:
        """The fewest pieces that a thread may take at a time, so that there are parts enough."""
        return -(-self.cut.pieces // self.parts) if self.parts else 1


def is_output_fusion(instruction: HloInstruction) -> bool:
    """True for a product, a convolution or a window with the instructions that follow it."""
    return instruction.opcode is Opcode.FUSION and instruction.attributes.kind is FusionKind.OUTPUT


def scatter_of(fusion: HloInstruction) -> HloInstruction | None:
    """The scatter in a fusion that computes its indices or updates where it reads them; None for other instructions."""
    if fusion.opcode is not Opcode.FUSION or fusion.attributes.kind is not FusionKind.INPUT:
        return None
    root = fusion.attributes.calls.root
    while root.opcode in (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT):
        root = root.operands[0]
    return root if root.opcode is Opcode.SCATTER else None


def in_place(fusion: HloInstruction, scatter: HloInstruction, operand: int, output: int) -> bool:
    """True if a result of such a fusion may be written over an operand: an array that is updated, and read nowhere
    else."""
    body = fusion.attributes.calls
    array = scatter.operands[leaf_of(body.roots[output])[1]]
    return array is body.parameters[operand] and body.users[array] == (scatter,) and scatter.operands.count(array) == 1


def pieces_of(fusion: HloInstruction) -> Pieces | None:
    """The pieces of an output fusion; None for a call of BLAS, which finds its own."""
    text = dict(fusion.annotations).get(_CONFIG)
    if text is None:
        return None
    found = {key: int(value) for key, value in json.loads(text).items()}
    return Pieces(Cut(found["matrices"], found["rows"], found["step"]), found["parts"])


def with_pieces(fusion: HloInstruction, pieces: Pieces) -> HloInstruction:
    """The fusion with its pieces."""
    values = {**pieces.cut._asdict(), "parts": pieces.parts}
    text = ",".join(f'"{key}":"{value}"' for key, value in values.items())
    return replace(fusion, annotations=((_CONFIG, "{" + text + "}"),))


def leaf_of(value: HloInstruction) -> Leaf:
    """The result of a member that an array is."""
    if value.opcode is Opcode.GET_TUPLE_ELEMENT:
        return value.operands[0], value.attributes.index
    return value, 0


def fusion_of(members: Sequence[HloInstruction], outputs: Sequence[Leaf], nbytes: int) -> HloInstruction:
    """The fusion of `members`, which follow one another, on the operands that they read. Its results are `outputs`, and
    then `nbytes` bytes of its own, if that is not 0."""
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    moved: list[HloInstruction] = []

    def inside(value: HloInstruction) -> HloInstruction:
        if value not in inner:
            if value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0] in inner:
                inner[value] = make_get_tuple_element(inner[value.operands[0]], value.attributes.index)
            else:
                inner[value] = make_parameter(len(operands), value.shape, f"param_{len(operands)}")
                operands.append(value)
        return inner[value]

    for member in members:
        inner[member] = member.with_operands(tuple([inside(operand) for operand in member.operands]))
        moved.append(inner[member])
    note_replacements(inner)
    results = [
        make_get_tuple_element(inner[member], k) if member.shape.is_tuple else inner[member] for member, k in outputs
    ]
    if nbytes:
        shape = Shape.array(ElementType.U8, (nbytes,))
        results.append(make_instruction(Opcode.CUSTOM_CALL, (), CustomCallAttributes(UNWRITTEN[0]), shape))
    root = results[0] if len(results) == 1 else make_tuple(results)
    parameters = [inner[operand] for operand in operands]
    order: dict[HloInstruction, None] = dict.fromkeys(parameters)
    for instruction in (*moved, *results, root):  # as scheduled; elements before their readers
        order.update(dict.fromkeys(o for o in instruction.operands if o.opcode is Opcode.GET_TUPLE_ELEMENT))
        order[instruction] = None
    kind, name = FusionKind.OUTPUT, "output"
    if members[-1].opcode is Opcode.SCATTER:
        kind, name = FusionKind.INPUT, "input"
    attributes = FusionAttributes(kind, HloComputation(f"{name}_computation", tuple(order), root))
    return make_instruction(
        Opcode.FUSION, operands, attributes, root.shape, name=f"{name}_fusion", metadata=members[-1].metadata
    )
