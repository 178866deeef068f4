"""Printing: computations as HLO text, in XLA's syntax, so that XLA's parser accepts it.

Source: XLA's HloComputation::ToString and HloInstruction::ToString. Operands are printed as names, attributes as
their classes declare, constants in full by `literals.py`. `parser.py` reads all of it back to equal computations.
`HloModule.to_text` in `ir.py`, above this file, adds the first line.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..instruction import HloComputation, HloInstruction
from ..metadata import Metadata
from ..opcode import Opcode
from .attributes import attribute_texts
from .escape import escape
from .frontend_attributes import composite_frontend_attributes, frontend_attributes_text
from .literals import literal_text
from .names import Names


def computation_texts(
    computations: Sequence[HloComputation],
    entry: HloComputation | None = None,
    elide_over: int | None = None,
    metadata: bool = True,
) -> list[str]:
    """The text of each of `computations`; one of them may be a module's entry. With `elide_over`, constants of more
    elements are shown as `{...}`."""
    names = Names(computations)
    return [("ENTRY " if c is entry else "") + _computation_text(c, names, elide_over, metadata) for c in computations]


def instruction_text(instruction: HloInstruction, names: Names, elide_over: int | None = None) -> str:
    """One instruction, without its metadata: `%add.1 = f32[2]{0} add(%x, %y)`."""
    return f"%{names.of_instruction(instruction)} = {operation_text(instruction, names, elide_over)}"


def operation_text(instruction: HloInstruction, names: Names, elide_over: int | None = None) -> str:
    """The right side of an instruction's `=`, without its metadata."""
    opcode = instruction.opcode
    if opcode is Opcode.CONSTANT:
        inside = literal_text(instruction.attributes.literal, elide_over)
    elif opcode is Opcode.PARAMETER:
        inside = str(instruction.attributes.number)
    else:
        inside = ", ".join([f"%{names.of_instruction(operand)}" for operand in instruction.operands])
    written = [f"{instruction.shape.to_text()} {opcode.value}({inside})"]
    written += attribute_texts(instruction, names.of_computation)
    return ", ".join([*written, *further_texts(instruction)])


def further_texts(instruction: HloInstruction) -> list[str]:
    """What follows an instruction's own attributes: its sharding, frontend attributes, and other annotations."""
    opcode, written = instruction.opcode, []
    annotations, frontend_attributes = instruction.annotations, instruction.frontend_attributes
    if annotations:
        written += [f"{key}={text}" for key, text in annotations if key == "sharding"]
    if opcode is Opcode.CALL and instruction.attributes.composite is not None:
        composite = composite_frontend_attributes(instruction.attributes.composite)
        frontend_attributes = (*composite, *frontend_attributes)
    if frontend_attributes:
        written.append(frontend_attributes_text(frontend_attributes))
    if annotations:
        written += [f"{key}={text}" for key, text in annotations if key not in _PRINTED_ELSEWHERE]
    return written


_PRINTED_ELSEWHERE = ("sharding", "backend_config")


def _computation_text(computation: HloComputation, names: Names, elide_over: int | None, metadata: bool) -> str:
    """
    %name (x: f32[2]) -> f32[2] {
      %x = f32[2]{0} parameter(0)
      ROOT %negate = f32[2]{0} negate(%x)
    }
    """
    parameters = ", ".join(f"{names.of_instruction(p)}: {p.shape}" for p in computation.parameters)
    lines = [f"%{names.of_computation(computation)} ({parameters}) -> {computation.root.shape} {{"]
    for instruction in computation.instructions:
        root = "ROOT " if instruction is computation.root else ""
        rest = _metadata_text(instruction.metadata) if metadata and instruction.metadata is not None else ""
        if instruction.annotations:
            rest += "".join(f", {key}={text}" for key, text in instruction.annotations if key == "backend_config")
        lines.append(f"  {root}{instruction_text(instruction, names, elide_over)}{rest}")
    return "\n".join([*lines, "}"])


def _metadata_text(metadata: Metadata) -> str:
    fields = []
    if metadata.op_name:
        fields.append(f'op_name="{escape(metadata.op_name)}"')
    if metadata.source_file:
        fields.append(f'source_file="{escape(metadata.source_file)}"')
    if metadata.source_line:
        fields.append(f"source_line={metadata.source_line}")
    fields += [f"{key}={text}" for key, text in metadata.others]
    return f", metadata={{{' '.join(fields)}}}" if fields else ""
